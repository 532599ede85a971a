//! What has arrived for a node, until the node polls it.
//!
//! The thread of the connection adds, the actor of the node takes; a mutex protects the queues and
//! is held for a few instructions. What the log says and what happens to the connection is one
//! queue, in order. Nothing of it may be lost, so its writer waits for room. Packs are another
//! queue: beyond its bound a pack is dropped and counted, as the channels of the node allow.

use core::{mem, time::Duration};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use clockjack_net::engine::{EngineEvent, Notify};

/// The most entries of the log that wait for the node.
const LOG_WAITING_MAX: usize = 8_192;

/// The most bytes of packs that wait for the node.
const PACK_BYTES_MAX: usize = 64 << 20;

/// What a pack counts beyond its bytes: its place in the queue, and its memory. Otherwise packs
/// without bytes, which anyone with the permission may send, would have no bound.
const PACK_OVERHEAD: usize = 64;

/// The most refusals of the server that are reported in [`REFUSALS_KNOWN_FOR`].
const REFUSALS_MAX: usize = 16;

/// After how long they are reported again.
const REFUSALS_KNOWN_FOR: Duration = Duration::from_secs(60);

/// See the [module](self).
#[derive(Clone, Default)]
pub(crate) struct Inbox(Arc<InboxShared>);

#[derive(Default)]
struct InboxShared {
    state: Mutex<InboxState>,
    /// The node has taken the log.
    taken: tokio::sync::Notify,
    /// The server has refused something.
    has_refused: tokio::sync::Notify,
}

#[derive(Default)]
struct InboxState {
    log: VecDeque<EngineEvent>,
    packs: VecDeque<EngineEvent>,
    pack_bytes: usize,
    n_dropped: u64,
    /// What the server has refused, until the node takes it.
    refused: Vec<String>,
    /// What was reported since a time.
    known_refusals: (Vec<String>, Option<Instant>),
    /// None until the node has connected.
    notify: Option<Notify>,
    is_notified: bool,
}

impl InboxState {
    fn is_empty(&self) -> bool {
        let has_events = !self.log.is_empty() || !self.packs.is_empty();
        !has_events && self.n_dropped == 0 && self.refused.is_empty()
    }
}

impl Inbox {
    /// Changes the state, then notifies the node, if there is something new.
    fn change<R>(&self, change: impl FnOnce(&mut InboxState) -> R) -> R {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut state);
        let is_news = !state.is_notified && !state.is_empty();
        let notify = state.notify.clone().filter(|_| is_news);
        state.is_notified |= notify.is_some();
        drop(state);
        if let Some(notify) = notify {
            notify.notify();
        }
        result
    }

    /// The node has connected.
    pub(crate) fn set_notify(&self, notify: Notify) {
        self.change(|state| state.notify = Some(notify));
    }

    /// Adds an entry of the log, or what happened to the connection; waits while there is no room.
    pub(crate) async fn push_log(&self, event: EngineEvent) {
        let mut event = Some(event);
        loop {
            let taken = self.0.taken.notified();
            let is_added = self.change(|state| {
                if state.log.len() < LOG_WAITING_MAX {
                    state.log.extend(event.take());
                }
                event.is_none()
            });
            if is_added {
                return;
            }
            taken.await;
        }
    }

    pub(crate) fn push_pack(&self, pack: Vec<u8>) {
        self.change(|state| {
            let n_bytes = state.pack_bytes + pack.len() + PACK_OVERHEAD;
            if n_bytes > PACK_BYTES_MAX {
                state.n_dropped += 1;
            } else {
                state.pack_bytes = n_bytes;
                state.packs.push_back(EngineEvent::Pack(pack));
            }
        });
    }

    pub(crate) fn push_no_responders(&self, to: u64) {
        self.change(|state| {
            // One is as good as many.
            let is_known = state.packs.back() == Some(&EngineEvent::NoResponders(to));
            if !is_known {
                state.packs.push_back(EngineEvent::NoResponders(to));
            }
        });
    }

    pub(crate) fn dropped(&self, n: u64) {
        self.change(|state| state.n_dropped += n);
    }

    /// The server refuses something. It is reported once per minute, because the client tries what
    /// is refused again and again.
    pub(crate) fn refused(&self, what: String) {
        self.change(|state| {
            let (known, since) = &mut state.known_refusals;
            if since.is_none_or(|since| since.elapsed() >= REFUSALS_KNOWN_FOR) {
                (*known, *since) = (Vec::new(), Some(Instant::now()));
            }
            if known.len() < REFUSALS_MAX && !known.contains(&what) {
                known.push(what.clone());
                state.refused.push(what);
            }
        });
        self.0.has_refused.notify_one();
    }

    /// The first thing that the server refuses, which is not reported to the node then.
    pub(crate) async fn first_refused(&self) -> String {
        loop {
            let has_refused = self.0.has_refused.notified();
            if let Some(what) = self.change(|state| state.refused.pop()) {
                return what;
            }
            has_refused.await;
        }
    }

    /// Takes everything. What the log says comes first: a pack of a new member is from a member
    /// then.
    pub(crate) fn take(&self) -> Vec<EngineEvent> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_notified = false;
        state.pack_bytes = 0;
        let (log, packs) = (mem::take(&mut state.log), mem::take(&mut state.packs));
        let n_dropped = mem::take(&mut state.n_dropped);
        let refused = mem::take(&mut state.refused).into_iter().map(EngineEvent::Refused);
        drop(state);
        self.0.taken.notify_waiters();
        let dropped = (n_dropped > 0).then_some(EngineEvent::Dropped(n_dropped));
        log.into_iter().chain(packs).chain(refused).chain(dropped).collect()
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;

    #[test]
    fn the_node_is_notified_once_until_it_takes_and_the_log_comes_first() {
        let inbox = Inbox::default();
        inbox.push_pack(vec![1]);
        let n = Arc::new(AtomicU32::new(0));
        let count = n.clone();
        inbox.set_notify(Notify::new(move || {
            count.fetch_add(1, SeqCst);
        }));
        assert_eq!(n.load(SeqCst), 1, "a pack has arrived before");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it starts");
        runtime.block_on(inbox.push_log(EngineEvent::Disconnected));
        inbox.push_no_responders(7);
        inbox.push_no_responders(7);
        assert_eq!(n.load(SeqCst), 1);
        let expected =
            [EngineEvent::Disconnected, EngineEvent::Pack(vec![1]), EngineEvent::NoResponders(7)];
        assert_eq!(inbox.take(), expected);
        inbox.dropped(2);
        assert_eq!(n.load(SeqCst), 2);
        assert_eq!(inbox.take(), [EngineEvent::Dropped(2)]);
        assert_eq!(inbox.take(), []);
    }

    #[test]
    fn what_the_server_refuses_again_and_again_is_told_once_and_not_without_end() {
        let inbox = Inbox::default();
        for n in 0..100 {
            inbox.refused("publish to a".into());
            inbox.refused(format!("publish to {n}"));
        }
        let taken = inbox.take();
        assert_eq!(taken.len(), REFUSALS_MAX);
        assert_eq!(taken[0], EngineEvent::Refused("publish to a".into()));
        inbox.refused("publish to a".into());
        assert_eq!(inbox.take(), []);
    }

    #[test]
    fn packs_without_bytes_have_a_bound_too() {
        let inbox = Inbox::default();
        let n_max = PACK_BYTES_MAX / PACK_OVERHEAD;
        for _ in 0..n_max + 5 {
            inbox.push_pack(Vec::new());
        }
        let taken = inbox.take();
        assert_eq!((taken.len(), taken.last()), (n_max + 1, Some(&EngineEvent::Dropped(5))));
        inbox.push_pack(Vec::new());
        assert_eq!(inbox.take(), [EngineEvent::Pack(Vec::new())], "there is room again");
    }

    #[test]
    fn packs_beyond_the_bound_are_dropped_and_counted_and_the_log_waits() {
        let inbox = Inbox::default();
        for _ in 0..PACK_BYTES_MAX / (1 << 20) + 3 {
            inbox.push_pack(vec![0; (1 << 20) - PACK_OVERHEAD]);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it starts");
        let taken = runtime.block_on(async {
            for _ in 0..LOG_WAITING_MAX {
                inbox.push_log(EngineEvent::Reconnected).await;
            }
            let (beyond, taken) = tokio::join!(inbox.push_log(EngineEvent::Disconnected), async {
                tokio::task::yield_now().await;
                inbox.take()
            });
            let () = beyond;
            taken
        });
        assert_eq!(taken.last(), Some(&EngineEvent::Dropped(3)));
        assert_eq!(taken.len(), LOG_WAITING_MAX + PACK_BYTES_MAX / (1 << 20) + 1);
        assert_eq!(inbox.take(), [EngineEvent::Disconnected]);
    }
}
