// The page: views of a running program, as they change.

import { html, render, useEffect, useRef, useState } from "/preact-htm.js";
import { uptime } from "/format.js";
import { useFollow } from "/follow.js";
import { VIEWS, keyOf, link, nameOf, parentOf, place } from "/place.js";
import { BODIES } from "/views.js";

// From how much silence on a view is not live any more: the program sends something each 5 s.
const STALE_MS = 7000;
// How many findings are above each view; the overview has all.
const FINDINGS_MAX = 3;

function useTheme() {
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  const next = { "": "dark", dark: "light", light: "" };
  return [theme || "as the system", () => setTheme(next[theme])];
}

const Key = ({ name }) => html`<kbd aria-hidden="true">${name}</kbd>`;

function Help({ at }) {
  const rows = [
    ...VIEWS.map((view) => [keyOf(view), nameOf(view)]),
    ["/", "the filter"], ["p", "pause"], ["c", "colours"], ["?", "this list"],
  ];
  return html`<dialog ref=${at} aria-label="keys"><h2>Keys</h2>
    <dl>${rows.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
    <form method="dialog"><button>close</button></form></dialog>`;
}

function App() {
  const [, setHash] = useState(location.hash);
  const [isPaused, setPaused] = useState(false);
  const [theme, turnTheme] = useTheme();
  const [now, setNow] = useState(Date.now());
  const help = useRef(null);
  const keys = {
    p: () => setPaused(!isPaused),
    c: turnTheme,
    "?": () => help.current.showModal(),
    "/": () => document.getElementById("filter")?.focus(),
    ...Object.fromEntries(VIEWS.map((view) => [keyOf(view), () => { location.hash = link(view); }])),
  };
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const moved = () => setHash(location.hash);
    const pressed = (event) => {
      // What the browser does with a key is its own: Ctrl+P prints.
      if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
      if (event.target.matches?.("input, select, textarea") || help.current.open) return;
      const act = Object.hasOwn(latest.current, event.key) && latest.current[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("hashchange", moved);
    addEventListener("keydown", pressed);
    const clock = setInterval(() => setNow(Date.now()), 1000);
    return () => {
      removeEventListener("hashchange", moved);
      removeEventListener("keydown", pressed);
      clearInterval(clock);
    };
  }, []);
  const at = place();
  const shown = useFollow(at, isPaused);
  const { hello } = shown;
  const silent = shown.state === "live" && now - shown.at > STALE_MS;
  const state = silent ? `stale since ${Math.round((now - shown.at) / 1000)} s` : shown.state;
  const Body = BODIES[at.name];
  // The timeline asks for itself.
  const view = ["overview", "timeline"].includes(at.name) ? shown.overview : shown.main;
  const findings = shown.overview?.findings ?? [];
  const more = findings.length - FINDINGS_MAX;
  return html`<nav class="views" aria-label="views">
    <h1>${hello.system ?? "Clockjack"}</h1>
    <p class="soft" id="program">${hello.pid ? html`${hello.program}<br/>pid ${hello.pid}<br/>up ${uptime(Math.max(0, now - hello.started))}` : null}</p>
    <ul>${VIEWS.map((name) => html`<li><a href=${link(name)} aria-current=${name === parentOf(at.name) ? "page" : undefined}><${Key} name=${keyOf(name)}/> ${nameOf(name)}</a></li>`)}</ul>
  </nav>
  <header>
    <p role="status" aria-live="polite"><span class=${`state ${state === "live" ? "" : "bad"}`} id="state">${state}</span>${shown.skipped ? `, skipped ${shown.skipped} frames` : ""}</p>
    <ul class="findings" aria-label="findings">${findings.slice(0, FINDINGS_MAX).map((one) => html`<li>! ${one.code} ${one.text}</li>`)}${more > 0 ? html`<li>and ${more} more</li>` : null}</ul>
    <div class="buttons">
      <button id="pause" onClick=${keys.p} aria-pressed=${isPaused}>pause</button>
      <button id="colours" onClick=${turnTheme}>colours: ${theme}</button>
      <button id="help" onClick=${keys["?"]} aria-label="keys">?</button>
    </div>
  </header>
  <main id=${`view-${at.name}`} tabindex="-1">${
    shown.error ? html`<p class="bad">${shown.error}</p>`
      : !Body ? html`<p class="bad">there is no view ${at.name}</p>`
      : view ? html`<${Body} at=${at} view=${view} overview=${shown.overview} history=${shown.history}/>` : html`<p>..</p>`
  }</main>
  <${Help} at=${help}/>`;
}

const app = document.getElementById("app");
app.textContent = "";
render(html`<${App}/>`, app);
