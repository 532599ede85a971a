// The page: views of a running program, as they change. Everything that the program says is text,
// never markup.

import { html, render, useEffect, useState } from "/preact-htm.js";
import { Mirror, readEvents } from "/mirror.js";
import { count, percent, rate, time, typeName, uptime, value } from "/format.js";

// The token comes in the fragment, which a browser never sends, and stays in this tab.
function takeToken() {
  const found = /^#t=(.+)$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem("token", found[1]);
    history.replaceState(null, "", "#/overview");
  }
  return sessionStorage.getItem("token");
}
const token = takeToken();
const headers = token ? { authorization: `Bearer ${token}` } : {};

const TABS = ["overview", "actors", "tree", "timers", "jobs", "graphs", "events", "workers", "deadletters"];

// `#/actors?filter=..` names what is shown.
function place() {
  const [name, query] = location.hash.replace(/^#\//, "").split("?");
  return { name: name || "overview", params: new URLSearchParams(query ?? "") };
}
const link = (name, params) => {
  const query = new URLSearchParams(params).toString();
  return query ? `#/${name}?${query}` : `#/${name}`;
};

// Subscribes to the overview and the view of the place; calls `each` with all views by name.
async function subscribe({ name, params }, signal, each) {
  const query = params.toString();
  const main = query ? `${name}?${query}` : name;
  const wanted = new URLSearchParams([["view", "overview"], ["hz", "2"]]);
  if (name !== "overview") wanted.append("view", main);
  const answer = await fetch(`/v1/stream?${wanted}`, { headers, signal, cache: "no-store" });
  if (!answer.ok) {
    const { error } = await answer.json().catch(() => ({ error: `refused with ${answer.status}` }));
    throw Object.assign(new Error(error), { isRefused: answer.status !== 503 });
  }
  const mirrors = { overview: new Mirror(), [main]: new Mirror() };
  let skipped = 0;
  await readEvents(answer.body, (event, data) => {
    if (event === "skipped") skipped += JSON.parse(data).n;
    if (event !== "frame") return each({ skipped });
    const frame = JSON.parse(data);
    if (!frame.error) mirrors[frame.view].apply(frame);
    each({
      skipped,
      error: frame.view === main ? frame.error : undefined,
      overview: mirrors.overview.value(),
      main: mirrors[main].value(),
    });
  });
}

// Follows a place: connects, and connects again after the program has gone.
function useFollow(at, isPaused) {
  const [shown, setShown] = useState({ state: "connecting" });
  const key = location.hash;
  useEffect(() => {
    if (isPaused) {
      setShown((old) => ({ ...old, state: "paused" }));
      return undefined;
    }
    const abort = new AbortController();
    const follow = async () => {
      while (!abort.signal.aborted) {
        try {
          await subscribe(at, abort.signal, (views) => {
            setShown((old) => ({ ...old, ...views, key, state: "live", at: Date.now() }));
          });
          setShown((old) => ({ ...old, state: "program ended" }));
        } catch (error) {
          if (abort.signal.aborted) return;
          if (error.isRefused) return setShown((old) => ({ ...old, state: error.message }));
          setShown((old) => ({ ...old, state: old.overview ? "program ended" : "connecting" }));
        }
        await new Promise((wake) => setTimeout(wake, 1000));
      }
    };
    follow();
    return () => abort.abort();
  }, [key, isPaused]);
  return shown.key === key ? shown : { ...shown, main: undefined, error: undefined };
}

// A table. A column is [title, what a cell shows, whether it is a number].
function Table({ caption, columns, rows, keyOf }) {
  return html`<table>
    <caption>${caption}</caption>
    <thead><tr>${columns.map(([title, , isNumber]) => html`<th scope="col" class=${isNumber ? "n" : ""}>${title}</th>`)}</tr></thead>
    <tbody>${rows.map((row, index) => html`<tr key=${keyOf ? keyOf(row) : index}>
      ${columns.map(([, cell, isNumber]) => html`<td class=${isNumber ? "n" : ""}>${cell(row)}</td>`)}
    </tr>`)}</tbody>
  </table>`;
}

const BAD = ["stuck", "failed", "restarting"];
const State = (name) => (BAD.includes(name) ? html`<span class="bad">${name.toUpperCase()}</span>` : name);
const depth = (row) => (value(row.capacity) === null ? count(row.depth) : `${count(row.depth)}/${count(row.capacity)}`);
const actorLink = (row) => html`<a href=${link("actor", { pid: row.pid })}>${row.path}</a>`;
const swept = (sweep) => (sweep?.age_ms == null ? "" : `, swept ${(sweep.age_ms / 1000).toFixed(1)} s ago`);

function Filter({ at }) {
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    location.hash = link(at.name, { sort: form.get("sort"), filter: form.get("filter") });
  };
  return html`<form onSubmit=${submit} role="search">
    <label>filter <input type="search" name="filter" id="filter" defaultValue=${at.params.get("filter") ?? ""}
      placeholder="till state:stuck depth>100 -path:/system"/></label>
    <label>sort <select name="sort" defaultValue=${at.params.get("sort") ?? "rate"}>
      ${["rate", "depth", "share", "wait", "restarts"].map((name) => html`<option selected=${name === (at.params.get("sort") ?? "rate")}>${name}</option>`)}
    </select></label>
    <button>show</button>
  </form>`;
}

function Actors({ at, view }) {
  return html`<${Filter} at=${at} key=${location.hash}/>
  <${Table} caption=${`${count(view.total)} actors${swept(view.sweep)}, ${count(view.matches)} match`}
    rows=${view.rows} keyOf=${(row) => row.pid} columns=${[
      ["path", actorLink],
      ["state", (row) => State(row.state)],
      ["depth", depth, true],
      ["rate", (row) => rate(row.rate), true],
      ["wait", (row) => time(row.wait_ns), true],
      ["time", (row) => percent(row.share), true],
      ["restarts", (row) => count(row.restarts), true],
      ["type", (row) => typeName(row.type)],
    ]}/>`;
}

function Tree({ at, view }) {
  const here = at.params.get("at") ?? "/";
  const parent = here.slice(0, here.lastIndexOf("/")) || "/";
  return html`<p>${here === "/" ? null : html`<a href=${link("tree", { at: parent })}>up to ${parent}</a>`}</p>
  <${Table} caption=${`children of ${here}${swept(view.sweep)}`} rows=${view.rows} keyOf=${(row) => row.pid}
    columns=${[
      ["child", (row) => html`<a href=${link("tree", { at: row.path })}>${row.path}</a>`],
      ["actor", (row) => html`<a href=${link("actor", { pid: row.pid })}>open</a>`],
      ["state", (row) => State(row.state)],
      ["children", (row) => count(row.children), true],
      ["below", (row) => count(row.below), true],
      ["depth", depth, true],
      ["depth below", (row) => count(row.depth_below), true],
      ["rate below", (row) => rate(row.rate_below), true],
      ["type", (row) => typeName(row.type)],
    ]}/>`;
}

// Members of an object as a list; what is inside of them is shown as text.
const Facts = ({ of }) => html`<dl>${Object.entries(of).map(([name, one]) => html`<dt>${name}</dt><dd>${one}</dd>`)}</dl>`;

function Actor({ view }) {
  return html`<h2>${view.path}</h2>
  ${view.has_ended ? html`<p class="bad">has ended: ${view.ended_because}</p>` : null}
  ${view.handling ? html`<p class="bad">handles a ${view.handling.message_type} for ${time(view.handling.for_ns)}</p>` : null}
  <${Facts} of=${{
    state: State(view.state),
    pid: view.pid,
    type: view.type,
    mailbox: `${depth(view)}, ${count(view.mailbox.claimed)} have come, ${count(view.mailbox.freed)} have left, ${count(view.mailbox.refused)} refused`,
    rate: rate(view.rate),
    wait: time(view.wait_ns),
    time: percent(view.share),
    restarts: count(view.restarts),
    children: html`<a href=${link("tree", { at: view.path })}>${count(view.children)}</a>`,
  }}/>
  <h3>Supervision</h3>
  <ol>${view.supervision.map((row) => html`<li>${row.path} ${State(row.state)} ${row.strategy ?? ""}</li>`)}</ol>
  <h3>Asks</h3>
  <ul>${view.asks.map((ask) => html`<li>${ask.from} waits for ${ask.to}${ask.is_in_cycle ? html` <span class="bad">CYCLE</span>` : null}</li>`)}</ul>
  <h3>Last failures</h3>
  <ul>${view.failures.map((row) => html`<li>${row.decision}: ${row.text}</li>`)}</ul>`;
}

function Overview({ view }) {
  return html`<h2>What is wrong</h2>
  ${view.findings.length === 0 ? html`<p>nothing</p>` : html`<${Table} caption="the worst first" rows=${view.findings}
    columns=${[
      ["code", (row) => html`<span class="bad">${row.code}</span>`],
      ["what", (row) => row.text],
      ["since", (row) => time(row.since_ms * 1e6), true],
      ["explained by", (row) => html`<code>clockjack explain ${row.code}</code>`],
    ]}/>`}
  <h2>The system</h2>
  <${Facts} of=${{
    workers: html`${count(view.workers)}, busy ${percent(view.busy)} <meter min="0" max="1" value=${value(view.busy) ?? 0} aria-label="busy">${percent(view.busy)}</meter>`,
    queue: count(view.queue),
    messages: rate(view.messages_rate),
    "dead letters": rate(view.dead_rate),
    actors: count(view.actors),
    failures: count(view.failures),
    restarts: count(view.restarts),
    timers: count(view.timers),
    jobs: count(view.jobs),
    clock: `${view.clock.kind}, ${time(view.clock.resolution_ns)}`,
    "blocking threads": view.blocking ? `${count(view.blocking.running)} of ${count(view.blocking.threads_max)}` : "-",
    "this console": `${count(view.console.clients)} clients, ${count(view.console.bytes)} bytes, ${count(view.console.frames_skipped)} frames skipped`,
  }}/>`;
}

const heat = (slots) => slots.map((n) => (n ? "#" : ".")).join("");

function Timers({ view }) {
  return html`<${Facts} of=${{
    armed: `${count(view.pending)}, ${rate(view.armed_rate)}`,
    fired: rate(view.fired_rate),
    cancelled: rate(view.cancelled_rate),
    late: `p99 ${count(view.late_p99_ticks)} ticks, at most ${count(view.late_max_ticks)} ticks`,
  }}/>
  ${view.shards.map((shard) => html`<h3>${shard.pool} shard ${shard.shard}: ${count(shard.pending)} pending</h3>
    <div class="heat">${shard.levels.map((slots, n) => `${String(shard.slot_ticks[n] ?? "").padStart(8)} ticks  ${heat(slots)}\n`)}</div>`)}`;
}

const plain = (caption, columns) => ({ view }) =>
  html`<${Table} caption=${caption(view)} rows=${view.rows} columns=${columns}/>`;

const VIEWS = {
  overview: Overview,
  actors: Actors,
  actor: Actor,
  tree: Tree,
  timers: Timers,
  jobs: plain((view) => `${count(view.total)} jobs`, [
    ["job", (row) => row.job],
    ["mode", (row) => row.mode],
    ["state", (row) => row.state],
    ["due in", (row) => time(row.due_in_ns), true],
    ["period", (row) => time(row.period_ns), true],
    ["missed", (row) => count(row.missed), true],
    ["policy", (row) => row.policy],
  ]),
  graphs: plain((view) => `${view.rows.length} graphs`, [
    ["graph", (row) => html`<a href=${link("graph", { name: row.name })}>${row.name}</a>`],
    ["state", (row) => (row.is_running ? "running" : "ended")],
    ["components", (row) => count(row.components), true],
    ["epochs", (row) => rate(row.epochs_rate), true],
    ["calls", (row) => rate(row.calls_rate), true],
    ["drops", (row) => count(row.drops), true],
    ["overruns", (row) => count(row.overruns), true],
  ]),
  graph: ({ view }) => html`<h2>${view.name}</h2>
    <${Table} caption="lanes" rows=${view.lanes} columns=${[
      ["lane", (row) => row.lane],
      ["ticks", (row) => rate(row.ticks_rate), true],
      ["overruns", (row) => count(row.overruns), true],
      ["skipped", (row) => count(row.skipped), true],
    ]}/>
    <${Table} caption="components" rows=${view.components} columns=${[
      ["component", (row) => row.component],
      ["lane", (row) => row.lane],
      ["calls", (row) => rate(row.calls_rate), true],
      ["p50", (row) => time(row.p50_ns), true],
      ["p99", (row) => time(row.p99_ns), true],
    ]}/>
    <${Table} caption="edges" rows=${view.edges} columns=${[
      ["edge", (row) => row.edge],
      ["rate", (row) => rate(row.rate), true],
      ["depth", depth, true],
      ["drops", (row) => count(row.drops), true],
      ["age", (row) => time(row.age_ns), true],
    ]}/>`,
  events: ({ view }) => html`<${Table} caption=${`${view.rows.length} events, the newest first`}
    rows=${[...view.rows].reverse()} keyOf=${(row) => row.number} columns=${[
      ["number", (row) => row.number, true],
      ["time", (row) => (row.at_ns / 1e9).toFixed(3), true],
      ["kind", (row) => row.kind],
      ["actor", (row) => row.path ?? ""],
      ["what", (row) => row.text],
    ]}/>`,
  workers: plain((view) => `${view.rows.length} workers`, [
    ["pool", (row) => row.pool],
    ["worker", (row) => row.worker, true],
    ["busy", (row) => percent(row.busy), true],
    ["steps", (row) => rate(row.steps_rate), true],
    ["stolen", (row) => rate(row.steals_in_rate), true],
    ["parks", (row) => rate(row.parks_rate), true],
    ["longest", (row) => time(row.longest_ns), true],
    ["runs now", (row) => (row.running ? `${row.running.name || row.running.type} ${time(row.running.for_ns)}` : "-")],
  ]),
  deadletters: plain((view) => `${view.rows.length} groups`, [
    ["recipient", (row) => row.recipient],
    ["reason", (row) => row.reason],
    ["count", (row) => count(row.count), true],
    ["rate", (row) => rate(row.rate), true],
    ["message", (row) => typeName(row.message_type)],
  ]),
};

function useTheme() {
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  const next = { "": "dark", dark: "light", light: "" };
  return [theme || "as the system", () => setTheme(next[theme])];
}

function App() {
  const [, setHash] = useState(location.hash);
  const [isPaused, setPaused] = useState(false);
  const [hello, setHello] = useState({});
  const [theme, turnTheme] = useTheme();
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const moved = () => setHash(location.hash);
    const pressed = (event) => {
      if (event.target.matches("input, select, textarea")) return;
      const tab = TABS[Number(event.key) - 1];
      if (tab) location.hash = link(tab);
      if (event.key === "p") setPaused((old) => !old);
      if (event.key === "/") {
        event.preventDefault();
        document.getElementById("filter")?.focus();
      }
    };
    addEventListener("hashchange", moved);
    addEventListener("keydown", pressed);
    const clock = setInterval(() => setNow(Date.now()), 1000);
    fetch("/v1/hello", { headers }).then((answer) => answer.json()).then(setHello).catch(() => {});
    return () => {
      removeEventListener("hashchange", moved);
      removeEventListener("keydown", pressed);
      clearInterval(clock);
    };
  }, []);
  const at = place();
  const shown = useFollow(at, isPaused);
  const silent = shown.state === "live" && now - shown.at > 7000;
  const state = silent ? `stale since ${Math.round((now - shown.at) / 1000)} s` : shown.state;
  const View = VIEWS[at.name];
  const view = at.name === "overview" ? shown.overview : shown.main;
  const findings = shown.overview?.findings ?? [];
  return html`<header>
    <h1>${hello.system ?? "Clockjack"}</h1>
    <span class="soft">${hello.pid ? `pid ${hello.pid}, up ${uptime(Math.max(0, now - hello.started))}` : null}</span>
    <p role="status" aria-live="polite"><span class="state" id="state">${state}</span>${shown.skipped ? `, skipped ${shown.skipped} frames` : ""}</p>
    <ul class="findings" aria-label="findings">${findings.map((one) => html`<li>! ${one.code} ${one.text}</li>`)}</ul>
    <nav aria-label="views"><ul>${TABS.map((name, n) => html`<li><a href=${link(name)} aria-current=${name === at.name ? "page" : undefined}>${n + 1} ${name}</a></li>`)}</ul></nav>
    <div class="buttons">
      <button onClick=${() => setPaused(!isPaused)} aria-pressed=${isPaused}>pause</button>
      <button onClick=${turnTheme}>colours: ${theme}</button>
    </div>
  </header>
  <main id=${`view-${at.name}`}>${
    shown.error ? html`<p class="bad">${shown.error}</p>`
      : !View ? html`<p class="bad">there is no view ${at.name}</p>`
      : view ? html`<${View} at=${at} view=${view}/>` : html`<p>..</p>`
  }</main>`;
}

const app = document.getElementById("app");
app.textContent = "";
render(html`<${App}/>`, app);
