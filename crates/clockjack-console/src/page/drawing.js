// The drawing of a graph, as `clockjack render` makes it, with the rates that are measured now.

import { html, useEffect, useRef, useState } from "/preact-htm.js";
import { rate } from "/format.js";
import { ask } from "/connection.js";

// What is taken from the drawing. Scripts, links, styles and references to other files are not:
// the style is that of this page.
const ELEMENTS = ["svg", "title", "desc", "defs", "marker", "g", "path", "rect", "text", "tspan"];
const ATTRIBUTES = [
  "viewBox", "role", "aria-labelledby", "id", "class", "transform", "d", "x", "y", "width", "height",
  "rx", "refX", "refY", "markerWidth", "markerHeight", "markerUnits", "orient", "marker-end",
];

function copy(from) {
  const to = document.createElementNS("http://www.w3.org/2000/svg", from.localName);
  for (const { name, value } of from.attributes) {
    if (ATTRIBUTES.includes(name)) to.setAttribute(name, value);
  }
  for (const child of from.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) to.append(child.data);
    else if (ELEMENTS.includes(child.localName)) to.append(copy(child));
  }
  return to;
}

// Parses a drawing as a document of its own, in which no script runs. Its style is left out before:
// the policy of the page would refuse it.
const RULES = { createHTML: (text) => text.replace(/<style>[^]*?<\/style>/g, "") };
const policy = globalThis.trustedTypes?.createPolicy("drawing", RULES) ?? RULES;
function parse(text) {
  const parsed = new DOMParser().parseFromString(policy.createHTML(text), "image/svg+xml");
  const root = parsed.documentElement;
  if (root.localName !== "svg") throw new Error("the drawing is no SVG");
  return copy(root);
}

async function load(name, signal) {
  const answer = await ask(`/v1/graph.svg?${new URLSearchParams({ name })}`, signal);
  return parse(await answer.text());
}

// The labels of the edges by the names of the edges, which are their first words.
function labels(svg) {
  const found = new Map();
  for (const text of svg.querySelectorAll("g[id] text.label")) {
    const [name] = text.textContent.split(" ");
    const tspan = document.createElementNS("http://www.w3.org/2000/svg", "tspan");
    tspan.setAttribute("class", "rate");
    // Below the name, where there is room between two rows of boxes.
    tspan.setAttribute("x", text.getAttribute("x"));
    tspan.setAttribute("dy", "12");
    text.append(tspan);
    found.set(name, { text, tspan });
  }
  return found;
}

export function Drawing({ name, edges, pointed }) {
  const place = useRef(null);
  const [drawing, setDrawing] = useState(null);
  useEffect(() => {
    setDrawing(null);
    const abort = new AbortController();
    load(name, abort.signal)
      .then((svg) => setDrawing({ svg, labels: labels(svg) }))
      .catch((error) => abort.signal.aborted || setDrawing({ error: `no drawing: ${error.message}` }));
    return () => abort.abort();
  }, [name]);
  useEffect(() => {
    if (drawing?.svg) place.current.replaceChildren(drawing.svg);
  }, [drawing]);
  useEffect(() => {
    for (const edge of edges) {
      const label = drawing?.labels?.get(edge.edge);
      if (!label) continue;
      label.tspan.textContent = rate(edge.rate);
      label.text.classList.toggle("pointed", edge.edge === pointed);
    }
  }, [drawing, edges, pointed]);
  if (drawing?.error) return html`<p class="soft">${drawing.error}</p>`;
  return html`<div class="drawing" ref=${place} tabindex="0" role="region" aria-label=${`drawing of ${name}`}></div>`;
}
