// Which view is shown, as the fragment of the address says: `#/actors?filter=..`.

export const VIEWS = [
  "overview", "actors", "tree", "timers", "jobs", "graphs", "events", "workers", "deadletters",
  "asks", "timeline",
];

// The names that people read, where they differ, and the key of each view.
const NAMES = { deadletters: "dead letters" };
export const nameOf = (view) => NAMES[view] ?? view;
export const keyOf = (view) => ({ asks: "a", timeline: "t" })[view] ?? `${VIEWS.indexOf(view) + 1}`;

// The entry of the list of views under which a view is found.
export const parentOf = (view) => ({ actor: "actors", graph: "graphs" })[view] ?? view;

export function place() {
  const [name, query] = location.hash.replace(/^#\//, "").split("?");
  return { name: name || "overview", params: new URLSearchParams(query ?? "") };
}

export function link(name, params) {
  const query = new URLSearchParams(params).toString();
  return query ? `#/${name}?${query}` : `#/${name}`;
}
