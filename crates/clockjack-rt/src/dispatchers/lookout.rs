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
//!    turn there.
//! 4. If no post is awake, the lookout says that it is asleep, looks at them once more, and sleeps
//!    until it is called. Who adds a post calls.
//!
//! *Why no step is overlooked*: between the write of its own word and the look at the other's, the
//! post of rule 1 and the lookout of rule 4 have a fence that is sequentially consistent. So one of
//! the two sees the other; a call that comes before the sleep ends it.
//!
//! *What it costs*: two stores a step. Nobody but the lookout reads the clock, and nobody wakes up
//! while all sleep.

use alloc::sync::Arc;
use core::{
    cell::Cell,
    panic::AssertUnwindSafe,
    ptr,
    sync::atomic::{
        AtomicBool, AtomicU32,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
    time::Duration,
};
use std::{
    panic::catch_unwind,
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    thread::JoinHandle,
};

use clockjack_exec::{Handle, Pid, StartError, State, StuckWorker};
use clockjack_sync::mutant;

use super::{LEAVES_IN, Told};
use crate::{
    OsInstant, Parker, PoolConfig, blocking,
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

/// What a pinned thread writes for the lookout.
#[derive(Debug)]
pub(super) struct Post {
    is_awake: AtomicBool,
    /// Odd while a step is under way.
    step: AtomicU32,
    bell: Arc<Bell>,
}

/// Where the lookout sleeps.
#[derive(Debug, Default)]
struct Bell {
    parker: Parker,
    is_asleep: AtomicBool,
    is_over: AtomicBool,
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

    fn count(&self) {
        // Relaxed: one writer. Release: who reads that a step is over sees what became of it.
        self.step.store(self.step.load(Relaxed).wrapping_add(1), Release);
    }

    /// Calls something that lets this thread sleep. Rule 1.
    pub(super) fn asleep_in(&self, sleep: impl FnOnce()) {
        // Relaxed: a lookout that has not heard of it looks once more.
        self.is_awake.store(false, Relaxed);
        sleep();
        // Relaxed: the fence orders it.
        self.is_awake.store(true, Relaxed);
        // SeqCst: pairs with that of `look`.
        fence(SeqCst);
        // Relaxed: as above.
        if self.bell.is_asleep.load(Relaxed) && !mutant!("lookout-uncalled") {
            self.bell.parker.unpark();
        }
    }

    fn is_awake(&self) -> bool {
        // Relaxed: the fences order it where that counts.
        self.is_awake.load(Relaxed)
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
        let (bell, posts) = (Arc::<Bell>::default(), Arc::<Posts>::default());
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
            // Acquire: pairs with `stop`.
            while !watch.bell.is_over.load(Acquire) {
                let until = watch.look();
                watch.bell.parker.park(until);
            }
        });
        let join = started.map_err(|refused| StartError::thread(&refused))?;
        Ok(Self { bell, posts, gone, join })
    }

    /// A post for a thread that is about to be started.
    pub(super) fn post(&self) -> Arc<Post> {
        let bell = Arc::clone(&self.bell);
        Arc::new(Post { is_awake: AtomicBool::new(true), step: AtomicU32::new(0), bell })
    }

    /// Looks at a post from now on.
    pub(super) fn add(&self, post: Arc<Post>, handle: Handle) {
        lock(&self.posts).push((post, handle));
        self.bell.parker.unpark();
    }

    /// Tells the lookout to end.
    pub(super) fn stop(&self) {
        // Release: pairs with its thread's look.
        self.bell.is_over.store(true, Release);
        self.bell.parker.unpark();
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
    /// By post.
    seen: Vec<Seen>,
    stuck_after: Duration,
    on_stuck: Option<fn(StuckWorker)>,
    told: Arc<Told>,
}

/// What was found at a post.
#[derive(Clone, Copy)]
struct Seen {
    step: u32,
    since: OsInstant,
    is_reported: bool,
}

impl Watch {
    /// Looks at all posts; gives the time of the next look, if there is to be one.
    fn look(&mut self) -> Option<OsInstant> {
        // Relaxed: who takes it for asleep calls once too often.
        self.bell.is_asleep.store(false, Relaxed);
        let now = OsInstant::now();
        let posts = lock(&self.posts).clone();
        self.seen.resize(posts.len(), Seen { step: 0, since: now, is_reported: false });
        for (index, (post, handle)) in posts.iter().enumerate() {
            self.look_at(index, post, handle, now);
        }
        let is_any_awake = || posts.iter().any(|(post, _)| post.is_awake());
        if !is_any_awake() {
            // Relaxed: the fence orders it.
            self.bell.is_asleep.store(true, Relaxed);
            // SeqCst: pairs with that of `asleep_in`.
            fence(SeqCst);
            if !is_any_awake() {
                return None;
            }
        }
        let every = (self.stuck_after / 4).clamp(LOOK_EVERY.0, LOOK_EVERY.1);
        Some(now.saturating_add(every))
    }

    /// Rule 3.
    fn look_at(&mut self, index: usize, post: &Post, handle: &Handle, now: OsInstant) {
        let step = post.step.load(Acquire);
        let seen = &mut self.seen[index];
        if step != seen.step {
            *seen = Seen { step, since: now, is_reported: false };
        }
        let running_for = now.saturating_since(seen.since);
        if step.is_multiple_of(2) || seen.is_reported || running_for < self.stuck_after {
            return;
        }
        seen.is_reported = true;
        let pid = in_turn(handle);
        if post.step.load(Acquire) != step {
            // It has come back, and what was found may be another.
            return;
        }
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
