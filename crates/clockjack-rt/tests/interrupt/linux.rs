//! `tell` from an interrupt, for which a signal stands: it interrupts its thread anywhere, also
//! while that thread holds a lock or allocates.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "signals are an interface of C")]

use core::{
    cell::Cell,
    future::pending,
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{
    sync::{Arc, OnceLock},
    thread,
    time::Instant,
};

use clockjack_rt::actor::{
    Actor, ActorRef, ActorSystem, Context, EventKinds, Failure, Mailbox, Next, Overflow, Props,
    RootContext, SystemEvent,
};
use clockjack_testing::{allocation::Counting, toolbox::ByHand};
use clockjack_time::Resolution;

#[global_allocator]
static COUNTING: Counting = Counting::new();

/// Enough that every lock was interrupted.
const SIGNALS: u32 = 1_500;
/// Reached only if a signal handler hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// What the signals of one thread are about.
struct Scene {
    /// The actor that the signal handler sends to.
    full: OnceLock<ActorRef<u32>>,
    n_handled: AtomicU32,
    n_refused: AtomicU32,
    /// Allocations and frees in the signal handler.
    requests: AtomicU64,
}

impl Scene {
    const fn new() -> Self {
        Self {
            full: OnceLock::new(),
            n_handled: AtomicU32::new(0),
            n_refused: AtomicU32::new(0),
            requests: AtomicU64::new(0),
        }
    }

    fn is_over(&self) -> bool {
        self.n_handled.load(SeqCst) == SIGNALS
    }

    /// The handler of a signal.
    fn send(&self) {
        if self.is_over() {
            return;
        }
        if let Some(full) = self.full.get() {
            let (sent, counts) = COUNTING.during(|| full.tell(0));
            self.n_refused.fetch_add(u32::from(sent.is_err()), SeqCst);
            self.requests.fetch_add(counts.allocations + counts.frees, SeqCst);
        }
        self.n_handled.fetch_add(1, SeqCst);
    }
}

thread_local! {
    static SCENE: Cell<Option<&'static Scene>> = const { Cell::new(None) };
}

extern "C" fn on_signal(_: libc::c_int) {
    if let Some(scene) = SCENE.get() {
        scene.send();
    }
}

/// Takes one message, and then waits for ever, so that its mailbox stays full.
struct Deaf;

impl Actor for Deaf {
    type Msg = u32;

    fn receive(&mut self, cx: &mut Context<'_, Self>, _: u32) -> Result<Next, Failure> {
        cx.wait(pending(), |_, _, ()| Ok(Next::Stay))?;
        Ok(Next::Stay)
    }
}

/// Counts what it receives.
struct Sink(Arc<AtomicU32>);

impl Actor for Sink {
    type Msg = u32;

    fn receive(&mut self, _: &mut Context<'_, Self>, _: u32) -> Result<Next, Failure> {
        self.0.fetch_add(1, SeqCst);
        Ok(Next::Stay)
    }
}

/// Receives events; one that is deaf takes one and then waits for ever.
struct Listener {
    is_deaf: bool,
}

impl Actor for Listener {
    type Msg = SystemEvent;

    fn receive(&mut self, cx: &mut Context<'_, Self>, _: SystemEvent) -> Result<Next, Failure> {
        if self.is_deaf {
            cx.wait(pending(), |_, _, ()| Ok(Next::Stay))?;
        }
        Ok(Next::Stay)
    }
}

fn listener(root: &mut RootContext, name: &str, is_deaf: bool) -> ActorRef<SystemEvent> {
    let props = Props::new(move || Listener { is_deaf }).mailbox(Mailbox::bounded(2));
    root.spawn(name, props).unwrap()
}

/// A timer that sends signals to the calling thread until it is dropped.
struct Signals(libc::timer_t);

impl Signals {
    fn start(scene: &'static Scene) -> Self {
        SCENE.set(Some(scene));
        // SAFETY: the handler touches atomics, and sends a message, which is what the test is
        // about.
        let before = unsafe { libc::signal(libc::SIGUSR1, on_signal as *const () as usize) };
        assert_ne!(before, libc::SIG_ERR);
        // SAFETY: all of its fields may be zero.
        let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGUSR1;
        // SAFETY: no precondition.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = core::ptr::null_mut();
        // SAFETY: both pointers are to locals of the right type.
        let made = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) };
        assert_eq!(made, 0);
        // A prime number, so that no loop keeps step with it; longer than a handler that finds
        // every lock held, so that the interrupted code runs on.
        let apart = libc::timespec { tv_sec: 0, tv_nsec: 1_000_003 };
        let times = libc::itimerspec { it_interval: apart, it_value: apart };
        // SAFETY: the timer was made above, and the times are a local.
        assert_eq!(unsafe { libc::timer_settime(timer, 0, &times, core::ptr::null_mut()) }, 0);
        thread::spawn(|| abort_if_it_hangs(scene));
        Self(timer)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: made by `start`, and deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

#[expect(clippy::print_stderr, reason = "a hanging handler cannot fail its test")]
fn abort_if_it_hangs(scene: &Scene) {
    let (mut seen, mut since) = (0, Instant::now());
    while seen < SIGNALS {
        let now = scene.n_handled.load(SeqCst);
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
        if since.elapsed() > LIMIT {
            eprintln!("the handler of signal {now} hangs");
            std::process::abort();
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_tell_from_a_signal_handler_neither_hangs_nor_uses_the_heap() {
    static SCENE: Scene = Scene::new();
    let (host, _clock) = ByHand::new(Resolution::MILLI);
    let mut root = RootContext::new(host, ActorSystem::builder("t")).unwrap();
    let n_taken = Arc::<AtomicU32>::default();
    let of_sink = Arc::clone(&n_taken);
    let mailbox = Mailbox::bounded(1).overflow(Overflow::DropNewest);
    let sink = Props::new(move || Sink(Arc::clone(&of_sink))).mailbox(mailbox);
    let full = root.spawn("full", sink).unwrap();
    let [slow, deaf] = [("slow", false), ("deaf", true)].map(|(n, d)| listener(&mut root, n, d));
    let events = root.system().events().clone();
    for one in [&slow, &deaf] {
        events.subscribe_bounded(EventKinds::DEAD_LETTER, one.clone(), 4);
    }
    // Dead letters whose path nobody else refers to, for the signal handler to evict.
    let mut gone: Vec<ActorRef<u32>> = (0..256)
        .map(|n| {
            root.spawn(&format!("a-name-with-memory-{n}"), Props::new(|| Sink(Arc::default())))
        })
        .map(Result::unwrap)
        .collect();
    gone.iter().for_each(|one| root.system().stop(one).unwrap());
    root.run_until_idle();
    // The deaf one takes this one, and waits.
    gone.pop().unwrap().tell_or_dead_letter(0);
    root.run_until_idle();
    // From now on mailboxes have all their memory.
    root.seal();
    root.run_until_idle();
    assert!(SCENE.full.set(full.clone()).is_ok());
    let signals = Signals::start(&SCENE);
    let mut n_told = 1;
    while !SCENE.is_over() {
        if let Some(gone) = gone.pop() {
            gone.tell_or_dead_letter(0);
            n_told += 1;
        }
        for _ in 0..16 {
            full.tell(0).unwrap();
            n_told += 1;
        }
        // The locks of list and backlog.
        let _ = (events.dropped_by(&deaf), events.dropped_by(&slow), events.subscribers());
        root.run_until_idle();
    }
    drop(signals);
    root.run_until_idle();
    assert_eq!(SCENE.n_refused.load(SeqCst), 0, "it drops the newest");
    assert_eq!(SCENE.requests.load(SeqCst), 0, "requests to the allocator in a signal handler");
    let n_letters = root.system().metrics().dead_letters_total();
    let n_told = n_told + SCENE.n_handled.load(SeqCst) as usize;
    assert_eq!(n_taken.load(SeqCst) as usize + n_letters, n_told, "each message has one end");
}

/// In a system that allocates, whose refused messages are reported by jobs: as a runtime with its
/// log does.
#[test]
fn a_refused_tell_from_a_signal_handler_neither_hangs_nor_uses_the_heap() {
    static SCENE: Scene = Scene::new();
    let n_reported = Arc::<AtomicUsize>::default();
    let reported = Arc::clone(&n_reported);
    let builder = ActorSystem::builder("t").on_refusals(move |_, refusals| {
        reported.fetch_add(usize::try_from(refusals.total).unwrap(), SeqCst);
    });
    let (host, clock) = ByHand::new(Resolution::MILLI);
    let mut root = RootContext::new(host, builder).unwrap();
    let deaf = || Props::new(|| Deaf).mailbox(Mailbox::bounded(1));
    let full = root.spawn("full", deaf()).unwrap();
    // One is taken, another is in the mailbox.
    for n in 0..2 {
        full.tell(n).unwrap();
        root.run_until_idle();
    }
    assert!(SCENE.full.set(full.clone()).is_ok());
    let signals = Signals::start(&SCENE);
    let (mut n_refused, mut n) = (0, 0);
    while !SCENE.is_over() {
        // The lock of the window, and paths that only the window refers to.
        n += 1;
        let other = root.spawn(&format!("a-name-with-memory-{n}"), deaf()).unwrap();
        for actor in [&other, &full] {
            n_refused += (0..16).filter(|_| actor.tell(0).is_err()).count();
        }
        root.system().stop(&other).unwrap();
        drop(other);
        root.run_until_idle();
        // A report is scheduled, and later made.
        clock.advance(Duration::from_secs(3600));
        root.run_until_idle();
    }
    drop(signals);
    assert_eq!(SCENE.requests.load(SeqCst), 0, "requests to the allocator in a signal handler");
    let by_handler = SCENE.n_refused.load(SeqCst) as usize;
    assert_eq!(by_handler, SIGNALS as usize, "the mailbox is always full");
    assert_eq!(root.system().metrics().refused_full, n_refused + by_handler);
    let end = root.system().shutdown();
    root.run_until_idle();
    assert!(end.report().is_some());
    let n_reported = n_reported.load(SeqCst);
    // A handler that has interrupted the holder of the window's lock leaves the window as it is.
    assert!((n_refused..=n_refused + by_handler).contains(&n_reported), "{n_reported}");
}
