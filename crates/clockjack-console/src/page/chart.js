// A line over the last minutes, by uPlot, which is a global of its own script.

import { html, useEffect, useRef, useState } from "/preact-htm.js";

const HEIGHT = 150;
const WINDOW_S = 60;
// How often a chart moves for people who want little motion.
const CALM_MS = 10_000;

const dark = matchMedia("(prefers-color-scheme: dark)");
const calm = matchMedia("(prefers-reduced-motion: reduce)");

const color = (node, name) => getComputedStyle(node).getPropertyValue(name);

function options(node, { title, show, max }) {
  const [ink, grid, line, fill] = ["--soft-ink", "--line-ink", "--chart", "--chart-fill"].map((name) => color(node, name));
  const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  return {
    width: Math.max(200, node.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: [-WINDOW_S, 0] }, y: { range: (_, low, high) => [0, max ?? Math.max(1, (high ?? 0) * 1.1)] } },
    axes: [{ ...axis, values: (_, numbers) => numbers.map((s) => `${s} s`) }, { ...axis, size: 70, values: (_, numbers) => numbers.map(show) }],
    series: [{}, { label: title, stroke: line, fill, width: 2, points: { show: false } }],
  };
}

// The colours that the page has: those of the system, or those that were chosen.
export function useColours() {
  const [n, setN] = useState(0);
  useEffect(() => {
    const changed = () => setN((old) => old + 1);
    const chosen = new MutationObserver(changed);
    chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    dark.addEventListener("change", changed);
    return () => {
      chosen.disconnect();
      dark.removeEventListener("change", changed);
    };
  }, []);
  return n;
}

export function Chart({ title, history, of, show, max }) {
  const node = useRef(null);
  const plot = useRef(null);
  const drawn = useRef(0);
  const colours = useColours();
  const end = history.at(-1)?.at ?? 0;
  const data = () => [history.map((one) => (one.at - end) / 1000), history.map(of)];
  useEffect(() => {
    plot.current = new uPlot(options(node.current, { title, show, max }), data(), node.current);
    const sized = new ResizeObserver(() => {
      plot.current.setSize({ width: Math.max(200, node.current.clientWidth), height: HEIGHT });
    });
    sized.observe(node.current);
    return () => {
      sized.disconnect();
      plot.current.destroy();
    };
  }, [colours]);
  useEffect(() => {
    if (calm.matches && Date.now() - drawn.current < CALM_MS) return;
    drawn.current = Date.now();
    plot.current.setData(data());
  }, [history]);
  const last = show(history.at(-1) ? of(history.at(-1)) : null);
  return html`<figure><figcaption>${title}: <b>${last}</b></figcaption>
    <div ref=${node} role="img" aria-label=${`${title}, now ${last}`}></div></figure>`;
}
