// The views. Everything that the program says is text, never markup.

import { html, useState } from "/preact-htm.js";
import { count, percent, rate, time, typeName, value } from "/format.js";
import { link } from "/place.js";
import { Chart } from "/chart.js";
import { Drawing } from "/drawing.js";
import { Timeline } from "/timeline.js";
import { Facts, Pages, State, Table, actorLink, depth, pathLink, seconds, since, swept } from "/table.js";

const SORTS = ["rate", "depth", "share", "wait", "restarts"];

function Filter({ at, sorts }) {
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    location.hash = link(at.name, [...form].filter(([, text]) => text));
  };
  const sort = at.params.get("sort") ?? "rate";
  return html`<form onSubmit=${submit} role="search">
    <label>filter <input type="search" name="filter" id="filter" defaultValue=${at.params.get("filter") ?? ""}
      placeholder="till state:stuck depth>100 -path:/system"/></label>
    ${sorts ? html`<label>sort <select name="sort">
      ${SORTS.map((name) => html`<option selected=${name === sort}>${name}</option>`)}
    </select></label>` : null}
    <button>show</button>
  </form>`;
}

function Actors({ at, view }) {
  return html`<${Filter} at=${at} sorts key=${location.hash}/>
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
    ]}/>
  <${Pages} at=${at} view=${view}/>`;
}

function Tree({ at, view }) {
  const here = at.params.get("at") ?? "/";
  const parent = here.slice(0, here.lastIndexOf("/")) || "/";
  return html`<p class="up">${here === "/" ? null : html`<a href=${link("tree", { at: parent })}>up to ${parent}</a>`}</p>
  <${Table} caption=${`children of ${here}${swept(view.sweep)}`} rows=${view.rows} keyOf=${(row) => row.pid}
    columns=${[
      ["child", (row) => html`<a href=${link("tree", { at: row.path })}>${row.path}</a>`],
      ["actor", (row) => html`<a href=${link("actor", { pid: row.pid })} aria-label=${`open ${row.path}`}>open</a>`],
      ["state", (row) => State(row.state)],
      ["children", (row) => count(row.children), true],
      ["below", (row) => count(row.below), true],
      ["depth", depth, true],
      ["depth below", (row) => count(row.depth_below), true],
      ["rate below", (row) => rate(row.rate_below), true],
      ["type", (row) => typeName(row.type)],
    ]}/>
  <${Pages} at=${at} view=${view}/>`;
}

const asks = (rows, caption) => html`<${Table} caption=${caption} rows=${rows} columns=${[
  ["from", (row) => pathLink(row.from)],
  ["to", (row) => pathLink(row.to)],
  ["cycle", (row) => (row.is_in_cycle ? html`<span class="bad">CYCLE</span>` : "no")],
]}/>`;

// A list of what an actor has; nothing is said if there is nothing, and that it is unknown if so.
const Part = ({ title, rows, children }) => html`<section><h3>${title}</h3>${
  rows === null ? html`<p class="soft">not known</p>` : rows.length === 0 ? html`<p class="soft">none</p>` : children
}</section>`;

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
    children: html`<a href=${link("tree", { at: view.path })} aria-label=${`${count(view.children)} children`}>${count(view.children)}</a>`,
  }}/>
  <div class="parts">
  <${Part} title="Supervision" rows=${view.supervision}>
    <ol>${view.supervision.map((row) => html`<li>${pathLink(row.path)} ${State(row.state)} ${row.strategy ?? ""}</li>`)}</ol>
  <//>
  <${Part} title="Timers" rows=${view.timers}>
    <${Table} caption="by key" rows=${view.timers ?? []} columns=${[
      ["key", (row) => row.key],
      ["due in", (row) => time(row.due_in_ns), true],
      ["period", (row) => time(row.period_ns), true],
    ]}/>
  <//>
  <${Part} title="Futures" rows=${view.futures}>
    <ul>${(view.futures ?? []).map((row) => html`<li>${row.type} ${row.waits_at ?? ""}</li>`)}</ul>
  <//>
  <${Part} title="Asks" rows=${view.asks}>${asks(view.asks, "asks without an answer yet")}<//>
  <${Part} title="Last failures" rows=${view.failures}>
    <ul>${view.failures.map((row) => html`<li>${row.decision}: ${row.text}</li>`)}</ul>
  <//>
  </div>`;
}

const perSecond = (n) => rate(n);

function Overview({ view, history }) {
  return html`<h2>What is wrong</h2>
  ${view.findings.length === 0 ? html`<p>nothing</p>` : html`<${Table} caption="the worst first" rows=${view.findings}
    columns=${[
      ["code", (row) => html`<span class="bad">${row.code}</span>`],
      ["what", (row) => html`<span class="long">${row.text}</span>`],
      ["since", (row) => since(row.since_ms), true],
      ["explained by", (row) => html`<code>clockjack explain ${row.code}</code>`],
    ]}/>`}
  <h2>The last minute</h2>
  <div class="charts">
    <${Chart} title="messages per second" history=${history} of=${(one) => one.messages} show=${perSecond}/>
    <${Chart} title="workers busy" history=${history} of=${(one) => one.busy} show=${percent} max=${1}/>
  </div>
  <h2>The system</h2>
  <${Facts} of=${{
    workers: html`${count(view.workers)}, busy ${percent(view.busy)} <meter min="0" max="1" value=${value(view.busy) ?? 0} aria-label="busy">${percent(view.busy)}</meter>`,
    queue: count(view.queue),
    messages: rate(view.messages_rate),
    steps: rate(view.steps_rate),
    "dead letters": rate(view.dead_rate),
    actors: count(view.actors),
    failures: count(view.failures),
    restarts: count(view.restarts),
    refused: count(view.refused),
    timers: count(view.timers),
    jobs: count(view.jobs),
    clock: `${view.clock.kind}, ${time(view.clock.resolution_ns)}`,
    "blocking threads": view.blocking ? `${count(view.blocking.running)} of ${count(view.blocking.threads_max)}` : "-",
    "this console": `${count(view.console.clients)} clients, ${count(view.console.bytes)} bytes, ${count(view.console.frames_skipped)} frames skipped`,
  }}/>`;
}

// A level of a wheel: a cell per slot, filled if the slot has timers.
const Level = ({ slots, ticks }) => html`<tr>
  <th scope="row" class="n">${count(ticks)}</th>
  <td class="n">${count(slots.filter((n) => n > 0).length)} of ${count(slots.length)}</td>
  <td><span class="heat" aria-hidden="true">${slots.map((n) => html`<i class=${n ? "on" : ""}></i>`)}</span></td>
</tr>`;

function Timers({ view }) {
  return html`<${Facts} of=${{
    armed: `${count(view.pending)}, ${rate(view.armed_rate)}`,
    fired: rate(view.fired_rate),
    cancelled: rate(view.cancelled_rate),
    late: `p99 ${count(view.late_p99_ticks)} ticks, at most ${count(view.late_max_ticks)} ticks`,
  }}/>
  ${view.shards.map((shard) => html`<div class="table" tabindex="0" role="region" aria-label=${`${shard.pool} shard ${shard.shard}`}><table class="wheel">
    <caption>${shard.pool} shard ${shard.shard}: ${count(shard.pending)} wait, ${count(shard.overflow)} beyond the wheel, next in ${count(shard.next_due_ticks)} ticks</caption>
    <thead><tr><th scope="col" class="n">ticks per slot</th><th scope="col" class="n">slots in use</th><th scope="col">slots, from now on</th></tr></thead>
    <tbody>${shard.levels.map((slots, n) => html`<${Level} slots=${slots} ticks=${shard.slot_ticks[n]}/>`)}</tbody>
  </table></div>`)}`;
}

function Graph({ view, overview }) {
  const [pointed, setPointed] = useState(null);
  return html`<h2>${view.name}</h2>
    <${Drawing} name=${view.name} run=${overview?.system} edges=${view.edges} pointed=${pointed}/>
    <${Table} caption="edges" rows=${view.edges} keyOf=${(row) => row.edge} onPoint=${(row) => setPointed(row?.edge ?? null)} columns=${[
      ["edge", (row) => row.edge],
      ["rate", (row) => rate(row.rate), true],
      ["delivered", (row) => count(row.delivered), true],
      ["depth", depth, true],
      ["drops", (row) => count(row.drops), true],
      ["rejected", (row) => count(row.rejected), true],
      ["age", (row) => time(row.age_ns), true],
    ]}/>
    <${Table} caption="lanes" rows=${view.lanes} keyOf=${(row) => row.lane} columns=${[
      ["lane", (row) => row.lane],
      ["ticks", (row) => rate(row.ticks_rate), true],
      ["overruns", (row) => count(row.overruns), true],
      ["skipped", (row) => count(row.skipped), true],
      ["drops", (row) => count(row.drops), true],
    ]}/>
    <${Table} caption="components" rows=${view.components} keyOf=${(row) => row.component} columns=${[
      ["component", (row) => row.component],
      ["lane", (row) => row.lane],
      ["calls", (row) => rate(row.calls_rate), true],
      ["p50", (row) => time(row.p50_ns), true],
      ["p99", (row) => time(row.p99_ns), true],
      ["errors", (row) => count(row.errors), true],
    ]}/>`;
}

// The kinds of events, as the server names them.
const KINDS = [
  "failure", "restarted", "dead-letter", "stuck", "unhandled", "scheduler", "mailbox-overflow",
  "mailbox-refusals", "straggler", "ask-cycle",
];

function Events({ at, view }) {
  const chosen = (at.params.get("kinds") ?? "").split(",").filter(Boolean);
  const turn = (kind) => () => {
    const kinds = chosen.includes(kind) ? chosen.filter((one) => one !== kind) : [...chosen, kind];
    location.hash = link("events", kinds.length > 0 ? { kinds: kinds.join(",") } : {});
  };
  return html`<fieldset><legend>kinds; all if none is chosen</legend>${KINDS.map((kind) => html`<label>
    <input type="checkbox" name=${kind} checked=${chosen.includes(kind)} onChange=${turn(kind)}/> ${kind}</label>`)}
  </fieldset>
  <${Table} caption=${`${view.rows.length} events, the newest first; ${count(view.gap)} are gone, ${count(view.lost)} were lost`}
    rows=${[...view.rows].reverse()} keyOf=${(row) => row.number} columns=${[
      ["number", (row) => row.number, true],
      ["time", (row) => seconds(row.at_ns), true],
      ["kind", (row) => row.kind],
      ["actor", (row) => pathLink(row.path)],
      ["what", (row) => html`<span class="long">${row.text}</span>`],
    ]}/>`;
}

const listed = (caption, columns, hasFilter) => ({ at, view }) => html`
  ${hasFilter ? html`<${Filter} at=${at} key=${location.hash}/>` : null}
  <${Table} caption=${caption(view)} rows=${view.rows} columns=${columns}/>
  ${view.page === undefined ? null : html`<${Pages} at=${at} view=${view}/>`}`;

export const BODIES = {
  overview: Overview,
  actors: Actors,
  actor: Actor,
  tree: Tree,
  timers: Timers,
  jobs: listed((view) => `${count(view.total)} jobs`, [
    ["job", (row) => row.job],
    ["mode", (row) => row.mode],
    ["state", (row) => row.state],
    ["due in", (row) => time(row.due_in_ns), true],
    ["period", (row) => time(row.period_ns), true],
    ["backlog", (row) => count(row.backlog), true],
    ["missed", (row) => count(row.missed), true],
    ["policy", (row) => row.policy],
  ]),
  graphs: listed((view) => `${view.rows.length} graphs`, [
    ["graph", (row) => html`<a href=${link("graph", { name: row.name })}>${row.name}</a>`],
    ["state", (row) => (row.is_running ? "running" : "ended")],
    ["components", (row) => count(row.components), true],
    ["epochs", (row) => rate(row.epochs_rate), true],
    ["calls", (row) => rate(row.calls_rate), true],
    ["drops", (row) => count(row.drops), true],
    ["overruns", (row) => count(row.overruns), true],
  ]),
  graph: Graph,
  events: Events,
  workers: listed((view) => `${view.rows.length} workers`, [
    ["pool", (row) => row.pool],
    ["worker", (row) => row.worker, true],
    ["busy", (row) => percent(row.busy), true],
    ["steps", (row) => rate(row.steps_rate), true],
    ["stolen", (row) => rate(row.steals_in_rate), true],
    ["parks", (row) => rate(row.parks_rate), true],
    ["longest", (row) => time(row.longest_ns), true],
    ["timers", (row) => count(row.timers), true],
    ["runs now", (row) => (row.running ? `${row.running.name || row.running.type} ${time(row.running.for_ns)}` : "-")],
  ]),
  deadletters: listed((view) => `${view.rows.length} groups, the largest rate first`, [
    ["recipient", (row) => row.recipient],
    ["reason", (row) => row.reason],
    ["count", (row) => count(row.count), true],
    ["rate", (row) => rate(row.rate), true],
    ["message", (row) => typeName(row.message_type)],
  ]),
  timeline: Timeline,
  asks: ({ at, view }) => html`${asks(view.rows, `${count(view.total)} asks without an answer yet`)}
    <${Pages} at=${at} view=${view}/>`,
};
