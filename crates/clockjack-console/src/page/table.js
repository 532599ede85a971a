// What views are made of: tables, facts, pages, and how one value is shown.

import { html } from "/preact-htm.js";
import { count, time, value } from "/format.js";
import { link } from "/place.js";

// A table. A column is [title, what a cell shows, whether it is a number].
export function Table({ caption, columns, rows, keyOf, onPoint }) {
  const cls = (isNumber) => (isNumber ? "n" : "");
  const point = (row) => (onPoint ? { onMouseEnter: () => onPoint(row), onMouseLeave: () => onPoint(null) } : {});
  return html`<div class="table" tabindex="0" role="region" aria-label=${caption}><table>
    <caption>${caption}</caption>
    <thead><tr>${columns.map(([title, , isNumber]) => html`<th scope="col" class=${cls(isNumber)}>${title}</th>`)}</tr></thead>
    <tbody>${rows.map((row, index) => html`<tr key=${keyOf ? keyOf(row) : index} ...${point(row)}>
      ${columns.map(([, cell, isNumber]) => html`<td class=${cls(isNumber)}>${cell(row)}</td>`)}
    </tr>`)}</tbody>
  </table></div>`;
}

// Where a list goes on.
export function Pages({ at, view }) {
  const to = (page) => link(at.name, [...[...at.params].filter(([name]) => name !== "page"), ...(page > 0 ? [["page", page]] : [])]);
  if (view.page === 0 && !view.has_more) return null;
  return html`<nav class="pages" aria-label="pages">
    ${view.page > 0 ? html`<a rel="prev" href=${to(view.page - 1)}>previous page</a>` : null}
    <span>page ${view.page + 1}</span>
    ${view.has_more ? html`<a rel="next" href=${to(view.page + 1)}>next page</a>` : null}
  </nav>`;
}

// Named values.
export const Facts = ({ of }) => html`<dl>${Object.entries(of).map(([name, one]) => html`<dt>${name}</dt><dd>${one}</dd>`)}</dl>`;

const BAD = ["stuck", "failed", "restarting"];
export const State = (name) => (BAD.includes(name) ? html`<span class="bad">${name.toUpperCase()}</span>` : name);
export const depth = (row) => (value(row.capacity) === null ? count(row.depth) : `${count(row.depth)}/${count(row.capacity)}`);
export const actorLink = (row) => html`<a href=${link("actor", { pid: row.pid })}>${row.path}</a>`;
export const pathLink = (path) => (path?.startsWith("/") ? html`<a href=${link("actor", { path })}>${path}</a>` : (path ?? ""));
export const swept = (sweep) => (sweep?.age_ms == null ? "" : `, swept ${(sweep.age_ms / 1000).toFixed(1)} s ago`);
export const seconds = (ns) => (ns / 1e9).toFixed(3);
export const since = (ms) => time(ms * 1e6);
