// What each worker did, poll by poll: a picture with a brush, and the longest spans as a table.

import { html, useEffect, useRef, useState } from "/preact-htm.js";
import { count, time } from "/format.js";
import { ask } from "/connection.js";
import { useColours } from "/chart.js";
import { Table } from "/table.js";

const ROW_PX = 32;
const LEFT_PX = 150;
const AXIS_PX = 22;
// How many spans the table has.
const LONGEST = 20;
// A worker that is parked does nothing: that is no work to be listed.
const PARKED = "parked";
// A window is not made smaller than this, in microseconds.
const WINDOW_MIN_US = 0.5;

// Chrome's events as rows of spans; times in microseconds.
export function read(trace) {
  const rows = new Map();
  const row = ({ pid, tid }) => {
    const key = `${pid}/${tid}`;
    if (!rows.has(key)) rows.set(key, { key, name: key, spans: [], marks: [] });
    return rows.get(key);
  };
  const sources = new Map();
  const flows = [];
  for (const event of trace.traceEvents) {
    if (event.ph === "M" && event.name === "thread_name") row(event).name = event.args.name;
    if (event.ph === "X") row(event).spans.push({ at: event.ts, took: event.dur, name: event.name });
    if (event.ph === "i") row(event).marks.push({ at: event.ts, name: event.name });
    if (event.ph === "s") sources.set(event.id, { row: row(event), at: event.ts });
    if (event.ph === "f" && sources.has(event.id)) {
      flows.push({ from: sources.get(event.id), to: { row: row(event), at: event.ts } });
    }
  }
  const used = [...rows.values()].filter((one) => one.spans.length + one.marks.length > 0);
  const begin = Math.min(...used.flatMap((one) => [...one.spans, ...one.marks].map((event) => event.at)));
  const end = Math.max(...used.flatMap((one) => [...one.spans, ...one.marks].map((event) => event.at + (event.took ?? 0))));
  const full = used.length === 0 ? [0, 1] : [begin, Math.max(end, begin + WINDOW_MIN_US)];
  return { rows: used, flows, full, traced: trace.traced };
}

const work = (data) => data.rows.flatMap((row) => row.spans.filter((span) => span.name !== PARKED).map((span) => ({ ...span, row: row.name })));

// A round step so that there are some marks on the axis.
function stepOf(length, px) {
  const rough = (length * 100) / px;
  const unit = 10 ** Math.floor(Math.log10(rough));
  return unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough);
}

function draw(canvas, data, [from, to], brush) {
  const scale = devicePixelRatio;
  const width = canvas.clientWidth;
  const height = AXIS_PX + data.rows.length * ROW_PX;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const paint = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  const [ink, line, fill, text] = ["--soft-ink", "--line-ink", "--span", "--span-ink"].map((name) => style.getPropertyValue(name));
  paint.scale(scale, scale);
  paint.font = "11px system-ui, sans-serif";
  paint.textBaseline = "middle";
  const x = (at) => LEFT_PX + ((at - from) / (to - from)) * (width - LEFT_PX);
  const step = stepOf(to - from, width - LEFT_PX);
  paint.fillStyle = ink;
  paint.strokeStyle = line;
  const [begin] = data.full;
  for (let n = Math.ceil((from - begin) / step); begin + n * step <= to; n += 1) {
    const at = begin + n * step;
    paint.beginPath();
    paint.moveTo(x(at), AXIS_PX);
    paint.lineTo(x(at), height);
    paint.stroke();
    paint.fillText(time(n * step * 1000), x(at) + 3, AXIS_PX / 2);
  }
  const top = new Map(data.rows.map((row, n) => [row.key, AXIS_PX + n * ROW_PX]));
  for (const row of data.rows) {
    const y = top.get(row.key);
    paint.fillStyle = ink;
    paint.fillText(row.name, 4, y + ROW_PX / 2, LEFT_PX - 12);
    paint.save();
    paint.beginPath();
    paint.rect(LEFT_PX, y, width - LEFT_PX, ROW_PX);
    paint.clip();
    // Rests below, work above them: a poll is short. What would share a pixel is drawn once.
    for (const isRest of [true, false]) {
      let drawn = -1;
      for (const span of row.spans) {
        const right = x(span.at + span.took);
        if ((span.name === PARKED) !== isRest || span.at > to || right < Math.max(LEFT_PX, drawn)) continue;
        const left = x(span.at);
        const wide = Math.max(1, right - left);
        drawn = left + wide;
        paint.fillStyle = isRest ? line : fill;
        const inset = isRest ? ROW_PX / 2 - 1 : 4;
        paint.fillRect(left, y + inset, wide, ROW_PX - 2 * inset);
        if (isRest || wide < 40) continue;
        paint.save();
        paint.beginPath();
        paint.rect(left, y, wide - 2, ROW_PX);
        paint.clip();
        paint.fillStyle = text;
        paint.fillText(span.name, Math.max(left, LEFT_PX) + 3, y + ROW_PX / 2);
        paint.restore();
      }
    }
    paint.fillStyle = ink;
    for (const mark of row.marks) {
      if (mark.at >= from && mark.at <= to) paint.fillRect(x(mark.at), y + ROW_PX - 5, 1, 4);
    }
    paint.restore();
  }
  // Wake-ups and steals, while they are few enough to be told apart.
  const seen = data.flows.filter((flow) => flow.to.at >= from && flow.from.at <= to);
  if (seen.length < 300) {
    paint.strokeStyle = ink;
    for (const { from: begin, to: end } of seen) {
      if (!top.has(begin.row.key) || !top.has(end.row.key)) continue;
      paint.beginPath();
      paint.moveTo(Math.max(LEFT_PX, x(begin.at)), top.get(begin.row.key) + ROW_PX / 2);
      paint.lineTo(Math.max(LEFT_PX, x(end.at)), top.get(end.row.key) + ROW_PX / 2);
      paint.stroke();
    }
  }
  if (brush) {
    paint.globalAlpha = 0.25;
    paint.fillStyle = ink;
    paint.fillRect(Math.min(...brush), 0, Math.abs(brush[1] - brush[0]), height);
  }
}

function Picture({ data }) {
  const canvas = useRef(null);
  const [window, setWindow] = useState(data.full);
  const [brush, setBrush] = useState(null);
  const [under, setUnder] = useState(null);
  const [width, setWidth] = useState(0);
  const colours = useColours();
  const [from, to] = window;
  const put = (begin, end) => {
    const length = Math.min(Math.max(end - begin, WINDOW_MIN_US), data.full[1] - data.full[0]);
    const start = Math.min(Math.max(begin, data.full[0]), data.full[1] - length);
    setWindow([start, start + length]);
  };
  const zoom = (factor) => {
    const [middle, half] = [(from + to) / 2, ((to - from) * factor) / 2];
    put(middle - half, middle + half);
  };
  const move = (part) => put(from + (to - from) * part, to + (to - from) * part);
  useEffect(() => {
    const sized = new ResizeObserver(() => setWidth(canvas.current.clientWidth));
    sized.observe(canvas.current);
    return () => sized.disconnect();
  }, []);
  useEffect(() => draw(canvas.current, data, window, brush), [data, window, brush, width, colours]);
  const xOf = (event) => event.clientX - canvas.current.getBoundingClientRect().left;
  const atOf = (x) => from + ((x - LEFT_PX) / (canvas.current.clientWidth - LEFT_PX)) * (to - from);
  const down = (event) => {
    canvas.current.setPointerCapture(event.pointerId);
    setBrush([Math.max(LEFT_PX, xOf(event)), Math.max(LEFT_PX, xOf(event))]);
  };
  const moved = (event) => {
    if (brush) return setBrush([brush[0], Math.max(LEFT_PX, xOf(event))]);
    const y = event.clientY - canvas.current.getBoundingClientRect().top;
    const row = data.rows[Math.floor((y - AXIS_PX) / ROW_PX)];
    const at = atOf(xOf(event));
    setUnder(row?.spans.findLast((span) => span.at <= at && at <= span.at + span.took) ?? null);
  };
  const up = () => {
    if (brush && Math.abs(brush[1] - brush[0]) > 3) put(...brush.map(atOf).sort((a, b) => a - b));
    setBrush(null);
  };
  const keys = {
    "+": () => zoom(0.5), "-": () => zoom(2), Escape: () => setWindow(data.full),
    ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25),
  };
  const pressed = (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  };
  return html`<canvas class="timeline" ref=${canvas} tabindex="0" role="img" height=${AXIS_PX + data.rows.length * ROW_PX}
      aria-label="polls of all workers; the keys + and - zoom, arrows move, escape shows all"
      onPointerDown=${down} onPointerMove=${moved} onPointerUp=${up} onKeyDown=${pressed} onDblClick=${keys.Escape}></canvas>
    <p class="soft" id="window">${time((from - data.full[0]) * 1000)} to ${time((to - data.full[0]) * 1000)}${under ? `: ${under.name}, ${time(under.took * 1000)}` : ""}</p>`;
}

export function Timeline() {
  const [ms, setMs] = useState("500");
  const [state, setState] = useState({});
  const abort = useRef(null);
  useEffect(() => () => abort.current?.abort(), []);
  const look = async (event) => {
    event.preventDefault();
    abort.current?.abort();
    abort.current = new AbortController();
    const { signal } = abort.current;
    setState({ isBusy: true });
    try {
      const text = await (await ask(`/v1/timeline?ms=${ms}`, signal)).text();
      setState({ text, data: read(JSON.parse(text)) });
    } catch (error) {
      if (!signal.aborted) setState({ error: error.message });
    }
  };
  const save = () => {
    const anchor = document.createElement("a");
    anchor.href = URL.createObjectURL(new Blob([state.text], { type: "application/json" }));
    anchor.download = "timeline.json";
    anchor.click();
    URL.revokeObjectURL(anchor.href);
  };
  const { data } = state;
  return html`<h2>Timeline</h2>
    <form onSubmit=${look}>
      <label>for <select id="ms" value=${ms} onChange=${(event) => setMs(event.target.value)}>
        ${["100", "500", "2000", "5000"].map((one) => html`<option value=${one}>${one} ms</option>`)}
      </select></label>
      <button id="look" disabled=${state.isBusy}>look</button>
      <button type="button" id="save" disabled=${!data} onClick=${save}>save for Perfetto</button>
    </form>
    <p role="status">${state.isBusy ? "looking" : (state.error ?? "")}</p>
    ${!data ? html`<p class="soft">A look shows each poll of each worker. Drag over a part to see more of it.</p>`
      : data.rows.length === 0 ? html`<p>nothing was recorded</p>`
      : html`${data.traced ? null : html`<p>The program does not allow to trace it (its class of actions INSPECT), so there is only what is rare: sleeps, steals, failures.</p>`}
      <${Picture} data=${data} key=${state.text}/>
      <${Table} caption=${`the longest of ${count(work(data).length)} spans of work`} rows=${work(data).sort((a, b) => b.took - a.took).slice(0, LONGEST)} columns=${[
        ["worker", (row) => row.row],
        ["what", (row) => row.name],
        ["begins", (row) => time((row.at - data.full[0]) * 1000), true],
        ["takes", (row) => time(row.took * 1000), true],
      ]}/>`}`;
}
