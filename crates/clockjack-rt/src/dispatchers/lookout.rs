//! Looks at pinned threads from outside: which of them is in one step for long.
//!
//! A pool has its metronome for that. All pinned threads of a runtime share one thread, the
//! *lookout*, which is started with the first of them.
//!
//! Roles: the *lookout*; the *posts*, one for each pinned thread, which that thread alone writes.
//!
//! 1. A post is awake but while its thread is parked. When its thread wakes, the post says so, and
//!    then looks whether the lookout is asleep: if so, it calls.
//! 2. A post counts up where a step begins, and where it ends: the count is odd in between. Guards
//!    within a step do not count, nor do those of other threads.
//! 3. The lookout looks at all posts time and again, as long as one is awake. If it finds the same
//!    odd count for as long as `stuck_after`, it reports that, once, with the process that is in a
//!    turn there. It finds that first and looks at the count again: if that is another by now, the
//!    step is over, and nothing is reported.
//! 4. If no post is awake, the lookout says that it is asleep, looks at them once more, and sleeps
//!    until it is called. Who adds a post calls.
//!
//! *Why no step is overlooked*: between the write of its own word and the look at the other's, the
//! post of rule 1 and the lookout of rule 4 have a fence that is sequentially consistent. So one of
//! the two sees the other; a call that comes before the sleep ends it.
//!
//! *Why no other process is named*: what a thread writes after a count comes behind a fence that
//! releases, and the second look at the count comes behind one that acquires. So who has found a
//! process of a later turn finds a later count, too.
//!
//! *What it costs*: two stores a step. Nobody but the lookout reads the clock, and nobody wakes up
//! while all sleep.

mod post;

use alloc::sync::Arc;
use core::{cell::Cell, panic::AssertUnwindSafe, ptr, time::Duration};
use std::{
    panic::catch_unwind,
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    thread::JoinHandle,
};

use clockjack_exec::{Handle, Pid, StartError, State, StuckWorker};
use clockjack_sync::mutant;

use self::post::Bell;
pub(super) use self::post::Post;
use super::{LEAVES_IN, Told};
use crate::{
    OsInstant, PoolConfig, blocking,
    thread::{self, ThreadConfig},
};

/// How often the lookout looks, at most and at least, as long as there is something to see.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));

thread_local! {
    /// The post of this thread; compared, and never followed.
    static MINE: Cell<*const Post> = const { Cell::new(ptr::null()) };
}

thread_local! {
    /// Whether this thread is in a step that counts.
    static IS_STEPPING: Cell<bool> = const { Cell::new(false) };
}

impl Post {
    /// This thread is the one whose post this is.
    pub(super) fn take(&self) {
        MINE.set(self);
    }

    /// Rule 2.
    pub(super) fn in_step<T>(&self, step: impl FnOnce() -> T) -> T {
        if !ptr::eq(MINE.get(), self) || IS_STEPPING.replace(true) {
            return step();
        }
        let counted = Counted(self);
        self.count();
        let made = step();
        drop(counted);
        made
    }
}

/// A step that is under way; ended by the drop, also where it panics.
struct Counted<'p>(&'p Post);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.count();
        IS_STEPPING.set(false);
    }
}

/// All posts, each with the executor of its thread.
type Posts = Mutex<Vec<(Arc<Post>, Handle)>>;

/// The lookout and its thread.
#[derive(Debug)]
pub(super) struct Lookout {
    bell: Arc<Bell>,
    posts: Arc<Posts>,
    gone: mpsc::Receiver<()>,
    join: JoinHandle<()>,
}

impl Lookout {
    pub(super) fn start(config: &PoolConfig, told: Arc<Told>) -> Result<Self, StartError> {
        let (bell, posts) = (Arc::new(Bell::new()), Arc::<Posts>::default());
        let (running, gone) = mpsc::channel::<()>();
        let mut watch = Watch {
            bell: Arc::clone(&bell),
            posts: Arc::clone(&posts),
            seen: Vec::new(),
            stuck_after: config.stuck_after,
            on_stuck: config.on_stuck,
            told,
        };
        let thread_config = ThreadConfig { name: "cj-lookout".into(), ..ThreadConfig::DEFAULT };
        let started = thread::start(&thread_config, move || {
            let _running = running;
            while !watch.bell.is_over() {
                let until = watch.look();
                watch.bell.parker().park(until);
            }
        });
        let join = started.map_err(|refused| StartError::thread(&refused))?;
        Ok(Self { bell, posts, gone, join })
    }

    /// A post for a thread that is about to be started.
    pub(super) fn post(&self) -> Arc<Post> {
        Arc::new(Post::new(Arc::clone(&self.bell)))
    }

    /// Looks at a post from now on.
    pub(super) fn add(&self, post: Arc<Post>, handle: Handle) {
        lock(&self.posts).push((post, handle));
        self.bell.parker().unpark();
    }

    /// Looks at it no more: its thread has ended.
    pub(super) fn remove(&self, post: &Arc<Post>) {
        lock(&self.posts).retain(|(other, _)| !Arc::ptr_eq(other, post));
    }

    /// Tells the lookout to end.
    pub(super) fn stop(&self) {
        self.bell.end();
        lock(&self.posts).clear();
    }

    /// Waits for its end, unless what it tells of does not come back.
    pub(super) fn join(self) {
        let left = self.gone.recv_timeout(LEAVES_IN);
        if left == Err(mpsc::RecvTimeoutError::Disconnected) {
            // What it runs is guarded.
            drop(self.join.join());
        }
    }
}

fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done by a panic under this lock.
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the lookout's thread has.
struct Watch {
    bell: Arc<Bell>,
    posts: Arc<Posts>,
    /// One for each post that was looked at and is there.
    seen: Vec<Seen>,
    stuck_after: Duration,
    on_stuck: Option<fn(StuckWorker)>,
    told: Arc<Told>,
}

/// What was found at a post.
struct Seen {
    post: Arc<Post>,
    step: u32,
    since: OsInstant,
    is_reported: bool,
}

impl Watch {
    /// Looks at all posts; gives the time of the next look, if there is to be one.
    fn look(&mut self) -> Option<OsInstant> {
        self.bell.looks();
        let now = OsInstant::now();
        let posts = lock(&self.posts).clone();
        let is_there = |one: &Seen| posts.iter().any(|(post, _)| Arc::ptr_eq(post, &one.post));
        self.seen.retain(is_there);
        for (index, (post, handle)) in posts.iter().enumerate() {
            self.look_at(index, post, handle, now);
        }
        if self.bell.rests(|| posts.iter().any(|(post, _)| post.is_awake())) {
            return None;
        }
        let every = (self.stuck_after / 4).clamp(LOOK_EVERY.0, LOOK_EVERY.1);
        Some(now.saturating_add(every))
    }

    /// Rule 3.
    fn look_at(&mut self, index: usize, post: &Arc<Post>, handle: &Handle, now: OsInstant) {
        let step = post.step();
        let is_between = step.is_multiple_of(2);
        let known = self.seen.iter().position(|one| Arc::ptr_eq(&one.post, post));
        let known = known.unwrap_or_else(|| {
            let post = Arc::clone(post);
            self.seen.push(Seen { post, step: 0, since: now, is_reported: false });
            self.seen.len() - 1
        });
        let seen = &mut self.seen[known];
        if step != seen.step && (is_between || !mutant!("lookout-steps-as-one")) {
            (seen.step, seen.since, seen.is_reported) = (step, now, false);
        }
        let running_for = now.saturating_since(seen.since);
        if is_between || seen.is_reported || running_for < self.stuck_after {
            return;
        }
        seen.is_reported = true;
        let Some(pid) = post.find(step, || in_turn(handle)) else { return };
        let for_nanos = u64::try_from(running_for.as_nanos()).unwrap_or(u64::MAX);
        let stuck = StuckWorker { worker: index, pid, for_nanos };
        let (told, on_stuck) = (&self.told, self.on_stuck);
        let reported = catch_unwind(AssertUnwindSafe(|| {
            told.report(stuck);
            if let Some(report) = on_stuck {
                report(stuck);
            }
        }));
        if let Err(payload) = reported {
            // A report of the user's; the next look goes on behind it.
            blocking::discard(payload);
        }
    }
}

/// The process that an executor on one thread has in a turn.
fn in_turn(handle: &Handle) -> Option<Pid> {
    let mut found = None;
    handle.engine().alive(|alive| {
        if alive.state == State::Running {
            found = Some(alive.pid);
        }
    });
    found
}
