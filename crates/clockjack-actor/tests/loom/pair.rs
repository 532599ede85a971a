//! Cell and mailbox together: real actors on the real executor, whose workers are threads of the
//! model.
//!
//! A thread that leaves something for an actor then runs what is ready, as a worker does that has
//! just been woken: so two threads are two senders and two runners at once. The actor keeps what it
//! was told in a cell of loom's, which fails if two turns meet or one does not happen before the
//! next.
#![expect(unsafe_code, reason = "threads of a model stand in for workers")]

use alloc::{sync::Arc, task::Wake};
use core::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::atomic::{AtomicUsize as StdUsize, Ordering::SeqCst},
    task::{Context as Cx, Poll, Waker},
    time::Duration,
};
use std::{
    panic::{catch_unwind, resume_unwind},
    sync::Mutex,
};

use clockjack_actor::{
    Actor, ActorPath, ActorRef, ActorSystem, Ask, Context, EventKinds, Failure, Limits, Mailbox,
    Next, Overflow, Props, ReplyTo, RootContext, SystemEvent,
};
use clockjack_exec::{Handle, custom_task::run_next};
use clockjack_sync::{
    mpsc::Pop,
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicBool,
            Ordering::{AcqRel, Acquire},
        },
    },
    waker::AtomicWaker,
};
use clockjack_testing::toolbox::{ByHand, Panics};
use clockjack_time::{ManualClock, Resolution};
use loom::thread;

/// More polls than this at the end of a model mean that a task spins.
const TURNS_MAX: usize = 24;
/// How many polls it takes to stop a system without actors, and a few more.
const TURNS_TO_THE_END: usize = 6;
/// What comes after the wait for a gate.
const OPENED: u32 = 100;
/// The delay of a timer.
const TICK: Duration = Duration::from_millis(1);
/// What a request is written down as.
const ASKED: u32 = 200;

/// A future that is ready once it was opened.
#[derive(Clone)]
struct Gate(Arc<(AtomicBool, AtomicWaker)>);

impl Gate {
    fn new() -> Self {
        Self(Arc::new((AtomicBool::new(false), AtomicWaker::new())))
    }

    fn open(&self) {
        self.0.0.swap(true, AcqRel);
        self.0.1.wake();
    }

    fn is_open(&self) -> bool {
        self.0.0.load(Acquire)
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Cx<'_>) -> Poll<()> {
        let (is_open, waker) = &*self.0;
        waker.register(cx.waker());
        if is_open.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

enum Msg {
    Note(u32),
    WaitFor(Gate),
    Get(ReplyTo<u32>),
    Open(Gate),
    /// Sets a timer, whose message is this note.
    NoteInTime(u32),
}

/// What the actor has handled, for the end of a model.
type Log = Arc<Mutex<Vec<u32>>>;

/// Records the messages that it receives.
struct Clerk {
    /// Accessed in each poll, so that concurrent polls are detected.
    n_handled: UnsafeCell<usize>,
    log: Log,
}

impl Clerk {
    fn add(&self, n: u32) {
        // SAFETY: none is needed: loom checks whether another thread accesses it.
        self.n_handled.with_mut(|n| unsafe { *n += 1 });
        self.log.lock().unwrap().push(n);
    }
}

impl Actor for Clerk {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Note(n) => self.add(n),
            Msg::WaitFor(gate) => cx.wait(gate, |me, _, ()| {
                me.add(OPENED);
                Ok(Next::Stay)
            })?,
            Msg::Open(gate) => {
                self.add(OPENED);
                gate.open();
            }
            Msg::NoteInTime(n) => {
                cx.timers().single("note", TICK, Msg::Note(n)).map_err(|_| Failure::msg("full"))?;
            }
            Msg::Get(to) => {
                self.add(ASKED);
                to.reply(7);
            }
        }
        Ok(Next::Stay)
    }
}

/// One actor, which has started and is idle, and the threads that may run it.
struct Scene {
    root: RootContext,
    clock: Arc<ManualClock>,
    handle: Handle,
    log: Log,
    n_live: usize,
}

impl Scene {
    fn new(mailbox: Mailbox) -> (Self, ActorRef<Msg>) {
        let mut this = Self::empty();
        let of_clerk = Arc::clone(&this.log);
        let clerk = move || Clerk { n_handled: UnsafeCell::new(0), log: Arc::clone(&of_clerk) };
        let actor = this.root.spawn("a", Props::new(clerk).mailbox(mailbox)).unwrap();
        this.settle();
        (this, actor)
    }

    /// A system without actors.
    fn empty() -> Self {
        let (mut host, clock) = ByHand::new(Resolution::MILLI);
        host.panics = Panics::GoThrough;
        let builder = ActorSystem::builder("t").limits(Limits::SMALL.processes(8));
        let root = RootContext::new(host, builder).unwrap();
        let handle = root.executor();
        let n_live = handle.executor().live_len();
        Self { root, clock, handle, log: Log::default(), n_live }
    }

    /// Runs what is ready until nothing is. All threads have been joined.
    fn settle(&self) {
        for _ in 0..TURNS_MAX {
            // SAFETY: nobody else runs it.
            match unsafe { run_next(self.handle.executor()) } {
                Pop::Item(()) => {}
                Pop::Empty => return,
                Pop::Retry => panic!("all others were joined"),
            }
        }
        panic!("it goes on and on");
    }

    /// Waits for both, and runs what they have left.
    fn join<A, B>(&self, one: thread::JoinHandle<A>, other: thread::JoinHandle<B>) -> (A, B) {
        let ends = (one.join().unwrap(), other.join().unwrap());
        self.settle();
        ends
    }

    /// A thread does something and then runs the actor so many times, concurrently with a thread
    /// that polls it once.
    fn beside_a_turn<R: 'static>(&self, turns: usize, what: impl FnOnce() -> R + 'static) -> R {
        let somebody = act(self, turns, what);
        let runner = act(self, 1, || ());
        self.join(somebody, runner).0
    }

    fn seen(&self) -> Vec<u32> {
        self.log.lock().unwrap().clone()
    }

    fn seen_in_any_order(&self) -> Vec<u32> {
        let mut seen = self.seen();
        seen.sort_unstable();
        seen
    }

    /// How many messages are accounted for: handled, or dead letters.
    fn n_ends(&self) -> usize {
        self.seen().len() + self.root.system().metrics().dead_letters_total()
    }

    /// The actor is over, and nothing of it is left.
    fn assert_gone(&self) {
        assert_eq!(self.handle.executor().live_len(), self.n_live, "the cell is still there");
    }
}

/// Gives turns to what is ready.
fn run(handle: &Handle, turns: usize) {
    for _ in 0..turns {
        // SAFETY: the actor is `Send`; the thread that takes it from the queue is its only runner.
        let _ = unsafe { run_next(handle.executor()) };
    }
}

/// A thread that does something with the actor, and then runs it so many times.
fn act<R: 'static>(
    scene: &Scene,
    turns: usize,
    what: impl FnOnce() -> R + 'static,
) -> thread::JoinHandle<R> {
    let handle = scene.handle.clone();
    thread::spawn(move || {
        let result = what();
        run(&handle, turns);
        result
    })
}

/// A system is made and ended in each round, which takes more steps than loom expects.
fn builder() -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    builder().check(f);
}

/// With one preemption less than is asked for: a model of three threads.
fn model_of_three(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = builder();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound.saturating_sub(1));
    builder.check(f);
}

/// With at most two preemptions: a model in which a sender waits for room takes minutes with three.
fn model_with_waiting_sender(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = builder();
    builder.preemption_bound = Some(builder.preemption_bound.map_or(2, |bound| bound.min(2)));
    builder.check(f);
}

/// With at most one preemption, which is what an order between two loads of one thread needs: a
/// timer that fires takes many steps of the scheduler.
fn model_with_timer(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = builder();
    builder.preemption_bound = Some(builder.preemption_bound.map_or(1, |bound| bound.min(1)));
    builder.check(f);
}

#[derive(Default)]
struct Woken(StdUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn poll<F: Future + Unpin>(future: &mut F, woken: &Arc<Woken>) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Cx::from_waker(&Waker::from(Arc::clone(woken))))
}

#[test]
fn what_two_send_while_the_runner_goes_idle_is_handled() {
    model_of_three(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(4));
        actor.tell(Msg::Note(0)).unwrap();
        let tellers = [1, 2].map(|n| {
            let actor = actor.clone();
            act(&scene, 0, move || actor.tell(Msg::Note(n)).map(|()| actor))
        });
        let runner = act(&scene, 1, || ());
        let refs = tellers.map(|teller| teller.join().unwrap().unwrap());
        runner.join().unwrap();
        scene.settle();
        assert_eq!(scene.seen_in_any_order(), [0, 1, 2]);
        drop(refs);
    });
}

#[test]
fn a_cell_that_sleeps_and_is_woken_has_one_runner_at_a_time() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(4));
        actor.tell(Msg::Note(0)).unwrap();
        let of_teller = actor.clone();
        let told = scene.beside_a_turn(1, move || of_teller.tell(Msg::Note(1)).map(|()| of_teller));
        let _ref = told.unwrap();
        assert_eq!(scene.seen(), [0, 1]);
    });
}

/// Rule 4 of `cell/in_order.rs`. The runner is between two messages, or goes idle, while a thread
/// fires a timer and then sends a message: the runner takes the message only after the timer, and
/// the message that was sent before the timer fired only before it.
#[test]
fn what_is_sent_after_a_timer_has_fired_is_handled_after_it() {
    model_with_timer(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(4));
        actor.tell(Msg::NoteInTime(1)).unwrap();
        scene.settle();
        actor.tell(Msg::Note(0)).unwrap();
        scene.clock.advance(TICK);
        let jobs = scene.root.system().scheduler().jobs().clone();
        let _ref = scene.beside_a_turn(0, move || {
            assert_eq!(jobs.poll_shard(0, 0, 1).ran, 1, "the timer fires");
            actor.tell(Msg::Note(2)).unwrap();
            actor
        });
        assert_eq!(scene.seen(), [0, 1, 2]);
    });
}

#[test]
fn a_control_message_beside_a_turn_is_handled_and_the_runner_sleeps() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(4));
        actor.tell(Msg::Note(0)).unwrap();
        let of_teller = actor.clone();
        let told = scene
            .beside_a_turn(0, move || of_teller.tell_control(Msg::Note(1)).map(|()| of_teller));
        let _ref = told.unwrap();
        assert_eq!(scene.seen_in_any_order(), [0, 1]);
    });
}

/// A message that meets a stop is handled, is returned, or is a dead letter; the last reference is
/// dropped while the cell stops.
#[test]
fn a_message_that_meets_a_stop_has_one_end() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(4));
        let (of_teller, of_stopper) = (actor.clone(), actor);
        let teller = act(&scene, 0, move || of_teller.tell(Msg::Note(1)).is_err());
        let system = scene.root.system().clone();
        let stopper = act(&scene, 1, move || system.stop(&of_stopper).unwrap());
        let (came_back, ()) = scene.join(teller, stopper);
        assert_eq!(scene.n_ends() + usize::from(came_back), 1);
        scene.assert_gone();
    });
}

#[test]
fn an_actor_that_is_ended_by_force_in_its_turn_ends() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(4));
        actor.tell(Msg::Note(0)).unwrap();
        let (pid, handle) = (actor.pid(), scene.handle.clone());
        drop(actor);
        let runner = act(&scene, 1, || ());
        let killer = act(&scene, 0, move || assert!(handle.executor().terminate(pid)));
        scene.join(runner, killer);
        assert_eq!(scene.n_ends(), 1);
        scene.assert_gone();
    });
}

#[test]
fn a_message_that_meets_an_end_by_force_has_one_end() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(4));
        let (pid, handle) = (actor.pid(), scene.handle.clone());
        let teller = act(&scene, 0, move || actor.tell(Msg::Note(1)).is_err());
        let killer = act(&scene, 1, move || assert!(handle.executor().terminate(pid)));
        let (came_back, ()) = scene.join(teller, killer);
        assert_eq!(scene.n_ends() + usize::from(came_back), 1);
        scene.assert_gone();
    });
}

#[test]
fn who_waits_for_room_is_let_in_and_woken() {
    model_with_waiting_sender(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(1));
        actor.tell(Msg::Note(0)).unwrap();
        let of_sender = actor.clone();
        let (sending, woken, _ref) = scene.beside_a_turn(0, move || {
            let woken = Arc::new(Woken::default());
            let mut sending = of_sender.send(Msg::Note(1));
            let polled = poll(&mut sending, &woken);
            (polled.is_pending().then_some(sending), woken, of_sender)
        });
        assert_eq!(scene.seen(), [0, 1]);
        if let Some(mut sending) = sending {
            assert!(woken.0.load(SeqCst) > 0, "it sleeps for ever");
            assert!(matches!(poll(&mut sending, &woken), Poll::Ready(Ok(()))));
        }
    });
}

#[test]
fn who_waits_for_room_of_an_actor_that_stops_is_woken_and_has_its_message_or_not() {
    model_with_waiting_sender(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(1));
        actor.tell(Msg::Note(0)).unwrap();
        let of_sender = actor.clone();
        let sender = act(&scene, 0, move || {
            let woken = Arc::new(Woken::default());
            let mut sending = of_sender.send(Msg::Note(1));
            let polled = poll(&mut sending, &woken);
            (sending, polled, woken)
        });
        let system = scene.root.system().clone();
        let stopper = act(&scene, 1, move || system.stop(&actor).unwrap());
        let ((mut sending, mut polled, woken), ()) = scene.join(sender, stopper);
        if polled.is_pending() {
            assert!(woken.0.load(SeqCst) > 0, "it sleeps for ever");
            polled = poll(&mut sending, &woken);
        }
        let Poll::Ready(result) = polled else { panic!("neither sent nor refused") };
        assert_eq!(scene.n_ends() + usize::from(result.is_err()), 2);
        drop(sending);
        scene.assert_gone();
    });
}

/// What a mapped ref makes its message of, here: never.
struct Probe {
    to: ActorRef<Msg>,
}

/// Another sender takes the room, and then there is no message.
fn never(probe: Probe) -> Msg {
    let mut sending = probe.to.send(Msg::Note(1));
    let is_waiting = poll(&mut sending, &Arc::default()).is_pending();
    assert!(!is_waiting, "a function that runs takes no room");
    resume_unwind(Box::new("no message"));
}

#[test]
fn a_function_of_a_mapped_reference_that_panics_takes_no_room() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(1));
        let probe = Probe { to: actor.clone() };
        let of_teller = actor.clone();
        scene.beside_a_turn(0, move || {
            let tells = AssertUnwindSafe(|| of_teller.map(never).tell(probe));
            assert!(catch_unwind(tells).is_err());
        });
        assert_eq!(scene.seen(), [1]);
    });
}

/// Returns when the actor has opened the gate.
fn after_the_gate(gate: Gate) -> Msg {
    while !gate.is_open() {
        thread::yield_now();
    }
    Msg::Note(2)
}

#[test]
fn an_actor_is_woken_while_the_function_of_a_mapped_reference_runs() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(2));
        let gate = Gate::new();
        let (of_mapper, gate_of_mapper) = (actor.clone(), gate.clone());
        let mapper = act(&scene, 1, move || {
            of_mapper.map(after_the_gate).tell(gate_of_mapper).map_err(|_| "refused").unwrap();
        });
        let (handle, of_teller) = (scene.handle.clone(), actor.clone());
        let teller = thread::spawn(move || {
            of_teller.tell(Msg::Open(gate.clone())).map_err(|_| "refused").unwrap();
            // Nobody else runs the actor before the gate is open.
            while !gate.is_open() {
                run(&handle, 1);
                thread::yield_now();
            }
        });
        scene.join(mapper, teller);
        assert_eq!(scene.seen(), [OPENED, 2]);
    });
}

/// What a subscriber writes down for an event.
fn note_of(event: SystemEvent) -> Msg {
    Msg::Note(if matches!(event, SystemEvent::MailboxOverflow(_)) { 1 } else { 9 })
}

#[test]
fn an_event_that_found_no_room_is_received() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(1));
        let events = scene.root.system().events().clone();
        assert!(events.subscribe_bounded(EventKinds::MAILBOX_OVERFLOW, actor.map(note_of), 1));
        actor.tell(Msg::Note(0)).map_err(|_| "refused").unwrap();
        scene.beside_a_turn(0, move || {
            events.publish(&SystemEvent::MailboxOverflow(ActorPath::root()));
        });
        assert_eq!(scene.seen(), [0, 1], "no timer is needed");
    });
}

#[test]
fn an_actor_that_waits_takes_control_messages_and_then_the_others() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(4));
        let gate = Gate::new();
        actor.tell(Msg::WaitFor(gate.clone())).unwrap();
        scene.settle();
        let of_teller = actor.clone();
        let teller = act(&scene, 0, move || {
            of_teller.tell(Msg::Note(1)).unwrap();
            of_teller.tell_control(Msg::Note(2)).unwrap();
            of_teller
        });
        let opener = act(&scene, 1, move || gate.open());
        let (_ref, ()) = scene.join(teller, opener);
        let mut seen = scene.seen();
        let place = |n| seen.iter().position(|one| *one == n);
        assert!(place(OPENED) < place(1), "{seen:?}");
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, OPENED]);
    });
}

#[test]
fn a_future_that_is_ready_while_its_actor_goes_to_sleep_is_polled() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(4));
        let gate = Gate::new();
        actor.tell(Msg::WaitFor(gate.clone())).unwrap();
        actor.tell(Msg::Note(1)).unwrap();
        scene.beside_a_turn(0, move || gate.open());
        assert_eq!(scene.seen(), [OPENED, 1]);
    });
}

#[test]
fn what_is_evicted_is_not_handled_and_what_is_handled_not_evicted() {
    model(|| {
        let (scene, actor) = Scene::new(Mailbox::bounded(1).overflow(Overflow::DropOldest));
        actor.tell(Msg::Note(0)).unwrap();
        let of_teller = actor.clone();
        let (came_back, _ref) =
            scene.beside_a_turn(1, move || (of_teller.tell(Msg::Note(1)).is_err(), of_teller));
        assert_eq!(scene.n_ends() + usize::from(came_back), 2);
        let seen = scene.seen();
        assert!(seen.is_sorted() && (came_back || seen.contains(&1)), "{seen:?}");
    });
}

fn ask(actor: &ActorRef<Msg>) -> Ask<u32> {
    actor.ask(Msg::Get, Duration::from_secs(1))
}

#[test]
fn an_ask_that_meets_a_stop_is_settled() {
    for capacity in [1, 4] {
        model(move || {
            let (scene, actor) = Scene::new(Mailbox::bounded(capacity));
            actor.tell(Msg::Note(0)).unwrap();
            let of_asker = actor.clone();
            let asker = act(&scene, 0, move || ask(&of_asker));
            let system = scene.root.system().clone();
            let stopper = act(&scene, 1, move || system.stop(&actor).unwrap());
            let mut ask = asker.join().unwrap();
            stopper.join().unwrap();
            scene.settle();
            let Poll::Ready(answer) = poll(&mut ask, &Arc::default()) else {
                panic!("it waits for ever");
            };
            assert_eq!(answer.is_ok(), scene.seen().contains(&ASKED));
            assert_eq!(scene.n_ends(), 2);
            drop(ask);
            scene.assert_gone();
        });
    }
}

/// Does nothing.
struct Idle;

impl Actor for Idle {
    type Msg = ();

    fn receive(&mut self, _cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

/// The guardian has never had a child: the thread that starts the first child allocates the list,
/// while the guardian checks whether there is one. Each of the first polls of the shutdown meets it
/// once, so it does not matter which poll that is.
#[test]
fn a_first_child_that_meets_the_stop_of_its_parent_is_refused_or_stops_too() {
    for turns in 0..TURNS_TO_THE_END {
        model(move || {
            let scene = Scene::empty();
            let system = scene.root.system().clone();
            let end = system.shutdown();
            run(&scene.handle, turns);
            let started = scene.beside_a_turn(0, move || system.spawn("first", || Idle).ok());
            assert!(end.report().is_some_and(|report| report.is_clean()));
            assert!(started.is_none_or(|actor| actor.is_stopped()));
        });
    }
}
