// What the page asks of the program: the token, single answers and the stream of views.

import { Mirror, readEvents } from "/mirror.js";

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

// One answer, or an error with the reason that the program gives. A refusal is final, unless the
// program has no room at this moment.
export async function ask(address, signal) {
  const answer = await fetch(address, { headers, signal, cache: "no-store" });
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({ error: `refused with ${answer.status}` }));
  throw Object.assign(new Error(error), { isRefused: answer.status !== 503 });
}

// Subscribes to the overview and the view of a place; calls `each` with all views by name.
export async function subscribe({ name, params }, signal, each) {
  const query = params.toString();
  const main = query ? `${name}?${query}` : name;
  const wanted = new URLSearchParams([["view", "overview"], ["hz", "2"]]);
  // The timeline is no view that changes: it is asked for by a button.
  if (!["overview", "timeline"].includes(name)) wanted.append("view", main);
  const answer = await ask(`/v1/stream?${wanted}`, signal);
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
