//! A hundred thousand actors that stop at once: each hears of it, each watcher hears of each, and
//! what they took is given back.
#![cfg(not(loom))]

#[path = "support/eventually.rs"]
mod eventually;
#[path = "support/in_time.rs"]
mod in_time;

use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::sync::Arc;

use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{Actor, ActorRef, ActorSystem, Context, Failure, Mailbox, Next, Props, Signal},
};
use clockjack_testing::allocation::Counting;
use eventually::eventually;
use in_time::ShutdownInTime as _;

#[global_allocator]
static COUNTING: Counting = Counting::new();

const ACTORS: usize = 100_000;
const WATCHERS: usize = 10;

/// Has some memory of its own, and counts that it was notified of its end.
struct Mortal {
    _load: Box<[u8; 128]>,
    n_started: Arc<AtomicUsize>,
    n_ended: Arc<AtomicUsize>,
}

impl Actor for Mortal {
    type Msg = ();

    fn started(&mut self, _: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.n_started.fetch_add(1, SeqCst);
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        self.n_ended.fetch_add(usize::from(matches!(signal, Signal::PostStop)), SeqCst);
        Ok(Next::Stay)
    }
}

/// Counts whom it watches, and who has ended.
struct Watcher {
    n_watched: Arc<AtomicUsize>,
    n_told: Arc<AtomicUsize>,
}

impl Actor for Watcher {
    type Msg = ActorRef<()>;

    fn receive(&mut self, cx: &mut Context<'_, Self>, who: ActorRef<()>) -> Result<Next, Failure> {
        cx.watch(&who)?;
        self.n_watched.fetch_add(1, SeqCst);
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        self.n_told.fetch_add(usize::from(matches!(signal, Signal::Terminated(_))), SeqCst);
        Ok(Next::Stay)
    }
}

/// Starts all, has each watched twice, and stops them; gives what they took.
fn round(runtime: &Runtime) -> usize {
    let before = COUNTING.used_bytes();
    let [n_started, n_ended, n_watched, n_told] = [(); 4].map(|()| Arc::new(AtomicUsize::new(0)));
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|n| {
            let (watched, told) = (Arc::clone(&n_watched), Arc::clone(&n_told));
            let make = move || Watcher { n_watched: Arc::clone(&watched), n_told: told.clone() };
            let props = Props::new(make).mailbox(Mailbox::unbounded());
            runtime.spawn(&format!("watcher-{n}"), props).unwrap()
        })
        .collect();
    let actors: Vec<_> = (0..ACTORS)
        .map(|n| {
            let (started, ended) = (Arc::clone(&n_started), Arc::clone(&n_ended));
            let make = move || Mortal {
                _load: Box::new([0; 128]),
                n_started: Arc::clone(&started),
                n_ended: Arc::clone(&ended),
            };
            let actor = runtime.spawn(&format!("{n}"), make).unwrap();
            for watcher in [n % WATCHERS, (n + 1) % WATCHERS] {
                watchers[watcher].tell(actor.clone()).unwrap();
            }
            actor
        })
        .collect();
    eventually("all are watched", || n_watched.load(SeqCst) == 2 * ACTORS);
    // One that has not would not hear of its end.
    eventually("all have started", || n_started.load(SeqCst) == ACTORS);
    let taken = COUNTING.used_bytes().saturating_sub(before);
    actors.iter().for_each(|actor| runtime.system().stop(actor).unwrap());
    eventually("all have ended", || actors.iter().all(ActorRef::is_stopped));
    eventually("each watcher was told of each", || n_told.load(SeqCst) == 2 * ACTORS);
    assert_eq!(n_ended.load(SeqCst), ACTORS, "each was told of its end, once");
    watchers.iter().for_each(|watcher| runtime.system().stop(watcher).unwrap());
    drop((watchers, actors));
    // The factories of all of them, too.
    eventually("nothing is kept", || Arc::strong_count(&n_ended) == 1);
    eventually("nor of the watchers", || Arc::strong_count(&n_told) == 1);
    taken
}

#[test]
fn a_hundred_thousand_actors_that_stop_at_once_give_back_what_they_took() {
    let config = RuntimeConfig { workers: Some(2), ..RuntimeConfig::DEFAULT };
    let runtime = Runtime::start_with(ActorSystem::builder("t"), config).unwrap();
    let before = COUNTING.used_bytes();
    let mut left = [0; 3];
    let mut taken = 0;
    for left in &mut left {
        taken = taken.max(round(&runtime));
        eventually("their names are free", || runtime.system().tree().len() == 3);
        *left = COUNTING.used_bytes().saturating_sub(before);
    }
    assert!(taken > ACTORS * 128, "{taken} bytes");
    // What stays are tables that have been as large as they had to be, once.
    assert!(left[0] < taken / 20, "{left:?} of {taken} bytes are left");
    assert!(left[2] < left[0] + taken / 100, "{left:?} of {taken} bytes are left");
    assert!(runtime.shutdown_in_time(Duration::from_secs(60)).is_clean());
}
