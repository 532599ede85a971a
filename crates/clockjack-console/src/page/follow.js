// Follows a view: connects, and connects again after the program has gone.

import { useEffect, useState } from "/preact-htm.js";
import { ask, subscribe } from "/connection.js";

// How long a page that is paused listens to a view that it has not shown before: rates need two
// looks of the program.
const GLANCE_MS = 1500;
// How long figures stay in the charts.
const HISTORY_MS = 60_000;
const RETRY_MS = 1000;
// How long the stream of a view goes on after another view was chosen. A program at which nobody
// looks forgets rates and events, so the next stream begins before the last one ends.
const OVERLAP_MS = 1500;

// The stream that ends soon; there is at most one.
let ending = null;
function endSoon(abort) {
  ending?.abort();
  ending = abort;
  setTimeout(() => abort.abort(), OVERLAP_MS);
}

const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));

// The figures of the charts, the oldest first. A figure that is unknown is a gap.
function remember(history, { messages_rate: messages, busy }) {
  const now = Date.now();
  const known = (number) => (number === null ? null : (number.v ?? number));
  const kept = history.filter((one) => now - one.at < HISTORY_MS);
  return [...kept, { at: now, messages: known(messages), busy: known(busy) }];
}

export function useFollow(at, isPaused) {
  const [shown, setShown] = useState({ state: "connecting", hello: {}, history: [] });
  const key = location.hash;
  useEffect(() => {
    const abort = new AbortController();
    let isOver = false;
    const change = (what) => isOver || setShown((old) => ({ ...old, ...(what instanceof Function ? what(old) : what) }));
    const take = (views) => change((old) => ({
      ...views,
      key,
      at: Date.now(),
      state: isPaused ? "paused" : "live",
      history: views.overview && views.overview !== old.overview
        ? remember(old.history, views.overview)
        : old.history,
    }));
    // Another program may be there now, so that who it is, is asked each time.
    const connect = async (each) => {
      const hello = await (await ask("/v1/hello", abort.signal)).json();
      change((old) => (hello.pid === old.hello.pid ? {} : { hello, history: [], overview: undefined }));
      await subscribe(at, abort.signal, each);
    };
    const follow = async () => {
      while (!isOver) {
        try {
          await connect(take);
          change({ state: "program ended" });
        } catch (error) {
          if (isOver || abort.signal.aborted) return;
          if (error.isRefused) return change({ state: error.message });
          change((old) => ({ state: old.overview ? "program ended" : "connecting" }));
        }
        await pause(RETRY_MS);
      }
    };
    // What was shown when the page was paused stays; another view is looked at once.
    const glance = async () => {
      change({ state: "paused" });
      if (shown.key === key) return;
      let isSeen = false;
      const each = (views) => {
        take(views);
        const isComplete = views.main || views.error || (views.overview && at.name === "timeline");
        if (isComplete && !isSeen) setTimeout(() => abort.abort(), GLANCE_MS);
        isSeen ||= isComplete;
      };
      await connect(each).catch((error) => {
        if (!abort.signal.aborted) change({ state: `paused: ${error.message}` });
      });
    };
    if (isPaused) glance();
    else follow();
    return () => {
      isOver = true;
      endSoon(abort);
    };
  }, [key, isPaused]);
  return shown.key === key ? shown : { ...shown, main: undefined, error: undefined };
}
