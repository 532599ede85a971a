//! Asking, and what becomes of it.

#[path = "support/bench.rs"]
mod bench;
#[path = "support/losses.rs"]
mod losses;

extern crate alloc;

use alloc::{sync::Arc, task::Wake};
use core::{
    cell::Cell,
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    task::{Context as Cx, Poll, Waker},
    time::Duration,
};
use std::thread;

use bench::{Log, start};
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Ask, AskError, Backoff, Context, Failure, Mailbox, Next, Props,
    ReplyTo, RootContext, Strategy, SystemMessage,
};
use clockjack_testing::allocation::Counting;
use losses::listen;

#[global_allocator]
static COUNTING: Counting = Counting::new();

const SECOND: Duration = Duration::from_secs(1);

enum Msg {
    /// Answered at once.
    Double(u64, ReplyTo<u64>),
    /// Answered by an array that does not fit into a slot.
    Large(u8, ReplyTo<[u8; 200]>),
    /// Kept until `Answer`.
    Keep(ReplyTo<u64>),
    /// Answers all that was kept.
    Answer(u64),
    /// Dropped without an answer.
    Forget(ReplyTo<u64>),
    /// Answered by an error.
    Fail(ReplyTo<Result<u64, Failure>>),
    Stop,
    Panic(ReplyTo<u64>),
}

#[derive(Default)]
struct Server {
    kept: Vec<ReplyTo<u64>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Custom(u32);

impl core::fmt::Display for Custom {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "custom {}", self.0)
    }
}

impl core::error::Error for Custom {}

impl Actor for Server {
    type Msg = Msg;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Double(n, to) => to.reply(n * 2),
            Msg::Large(n, to) => to.reply([n; 200]),
            Msg::Keep(to) => self.kept.push(to),
            Msg::Answer(n) => self.kept.drain(..).for_each(|to| to.reply(n)),
            Msg::Forget(to) => drop(to),
            Msg::Fail(to) => to.reply(Err(Custom(7).into())),
            Msg::Stop => return Ok(Next::Stop),
            Msg::Panic(_to) => panic!("it was asked to"),
        }
        Ok(Next::Stay)
    }
}

fn server(root: &mut RootContext) -> ActorRef<Msg> {
    root.spawn("server", Server::default).unwrap()
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Cx::from_waker(Waker::noop()))
}

fn ready<F: Future + Unpin>(mut future: F) -> F::Output {
    match poll(&mut future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is pending"),
    }
}

#[test]
fn an_answer_comes_small_or_large() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let small = actor.ask(|to| Msg::Double(21, to), SECOND);
    assert_eq!(root.block_on(small), Ok(42));
    let large = actor.ask(|to| Msg::Large(9, to), SECOND);
    assert_eq!(root.block_on(large), Ok([9; 200]));
}

#[test]
fn a_request_is_sent_at_the_call_and_keeps_its_place() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let first = actor.ask(Msg::Keep, SECOND);
    actor.tell(Msg::Answer(1)).unwrap();
    let second = actor.ask(Msg::Keep, SECOND);
    actor.tell(Msg::Answer(2)).unwrap();
    root.run_until_idle();
    assert_eq!((ready(second), ready(first)), (Ok(2), Ok(1)));
    let asks: Vec<_> = (0..100).map(|n| actor.ask(|to| Msg::Double(n, to), SECOND)).collect();
    root.run_until_idle();
    let answers: Vec<_> = asks.into_iter().map(|ask| ready(ask).unwrap()).collect();
    assert_eq!(answers, (0..100).map(|n| n * 2).collect::<Vec<_>>());
}

#[test]
fn the_time_counts_from_the_call_and_a_late_answer_is_a_dead_letter() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = listen(&mut root);
    let actor = server(&mut root);
    let mut ask = actor.ask(Msg::Keep, SECOND);
    root.run_until_idle();
    clock.advance(Duration::from_millis(600));
    root.run_until_idle();
    assert!(poll(&mut ask).is_pending());
    clock.advance(Duration::from_millis(399));
    root.run_until_idle();
    assert!(poll(&mut ask).is_pending());
    clock.advance(Duration::from_millis(1));
    root.run_until_idle();
    let Poll::Ready(Err(error)) = poll(&mut ask) else { panic!("it waits on") };
    assert!(error.is_timed_out());
    assert_eq!(
        error.to_string(),
        "/user/server has not answered a message of type ask::Msg: timed out after 1s"
    );
    actor.tell(Msg::Answer(1)).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/temp/ask-0.0 u64 LateReply"]);
    // The slot is used again, and the next late answer has another recipient.
    drop(actor.ask(Msg::Keep, SECOND));
    actor.tell(Msg::Answer(1)).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/temp/ask-0.1 u64 LateReply"]);
}

#[test]
fn an_ask_is_woken_when_its_time_is_over() {
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut ask = actor.ask(Msg::Keep, SECOND);
    assert!(Pin::new(&mut ask).poll(&mut Cx::from_waker(&waker)).is_pending());
    root.run_until_idle();
    assert!(!woken.0.load(SeqCst));
    clock.advance(SECOND);
    root.run_until_idle();
    assert!(woken.0.load(SeqCst));
    assert!(ready(ask).unwrap_err().is_timed_out());
}

#[test]
fn an_answer_that_was_there_before_the_time_was_over_counts() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let mut ask = actor.ask(|to| Msg::Double(1, to), SECOND);
    assert!(poll(&mut ask).is_pending());
    root.run_until_idle();
    clock.advance(SECOND * 2);
    root.run_until_idle();
    assert_eq!(ready(ask), Ok(2));
}

#[test]
fn a_time_out_of_zero_is_refused_and_nothing_is_sent() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let ask: Ask<u64> = actor.ask(|_| panic!("no request is made"), Duration::ZERO);
    let error = ready(ask).unwrap_err();
    assert!(error.is_refused(), "{error}");
}

#[test]
fn a_stopped_actor_is_told_of_at_once() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = listen(&mut root);
    let actor = server(&mut root);
    actor.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    let error = ready(actor.ask(|to| Msg::Double(1, to), SECOND)).unwrap_err();
    assert!(error.is_stopped());
    assert_eq!(
        error.to_string(),
        "/user/server has not answered a message of type ask::Msg: already terminated \
         (timeout 1s)"
    );
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/server Msg Stopped"]);
}

#[test]
fn what_waits_in_the_mailbox_when_the_actor_stops_is_told_of_at_once() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = listen(&mut root);
    let actor = server(&mut root);
    actor.tell(Msg::Stop).unwrap();
    let ask = actor.ask(|to| Msg::Double(1, to), SECOND);
    actor.tell(Msg::Answer(1)).unwrap();
    root.run_until_idle();
    assert!(ready(ask).unwrap_err().is_stopped());
    assert_eq!(log.take(), ["/user/server Msg Stopped", "/user/server Msg Stopped"]);
}

#[test]
fn a_request_that_is_dropped_is_told_of_at_once() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let ask = actor.ask(Msg::Forget, SECOND);
    root.run_until_idle();
    let error = ready(ask).unwrap_err();
    assert!(error.is_dropped(), "{error}");
    let ask = actor.ask(Msg::Panic, SECOND);
    root.run_until_idle();
    assert!(ready(ask).is_err(), "a panic drops the request");
}

/// Stops when its only child has, which takes until it is told.
struct Parent {
    child: Log,
}

struct Slow(Log);

impl Actor for Slow {
    type Msg = ();

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

impl Actor for Parent {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let log = self.child.clone();
        cx.spawn_child("child", Props::new(move || Slow(log.clone())))?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        drop(msg);
        Ok(Next::Stop)
    }
}

/// Looks at an ask while it stops.
impl Drop for Slow {
    fn drop(&mut self) {
        let ask = ASKED.take();
        self.0.add(match ask.map(ready) {
            Some(Err(error)) if error.is_stopped() => "told",
            _ => "not told",
        });
    }
}

thread_local! {
    static ASKED: Cell<Option<Ask<u64>>> = const { Cell::new(None) };
}

#[test]
fn who_waits_for_a_stopping_actor_does_not_wait_for_its_children() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let parent = root.spawn("parent", move || Parent { child: to.clone() }).unwrap();
    root.run_until_idle();
    parent.tell(Msg::Stop).unwrap();
    ASKED.set(Some(parent.ask(|to| Msg::Double(1, to), SECOND)));
    root.run_until_idle();
    assert_eq!(log.take(), ["told"]);
}

#[test]
fn a_full_mailbox_is_waited_for_within_the_time_out() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let props = Props::new(Server::default).mailbox(Mailbox::bounded(1));
    let actor = root.spawn("server", props).unwrap();
    actor.tell(Msg::Answer(0)).unwrap();
    let ask = actor.ask(|to| Msg::Double(4, to), SECOND);
    assert_eq!(root.block_on(ask), Ok(8));
}

#[test]
fn a_request_that_waits_for_room_is_taken_back_when_its_time_is_over() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = listen(&mut root);
    let props = Props::new(Server::default).mailbox(Mailbox::bounded(1));
    let actor = root.spawn("server", props).unwrap();
    // Nothing is taken from its mailbox.
    actor.try_send_system(SystemMessage::Suspend).unwrap();
    root.run_until_idle();
    actor.tell(Msg::Answer(0)).unwrap();
    let mut late = actor.ask(Msg::Keep, SECOND);
    assert!(poll(&mut late).is_pending());
    drop(actor.ask(Msg::Keep, SECOND));
    clock.advance(SECOND);
    root.run_until_idle();
    assert!(ready(late).unwrap_err().is_timed_out());
    actor.try_send_system(SystemMessage::Resume).unwrap();
    root.run_until_idle();
    // Nobody waits for room any more: the box is open to all, and nothing was kept.
    actor.tell(Msg::Answer(5)).unwrap();
    root.run_until_idle();
    assert!(log.take().is_empty(), "a request was handled");
    let ask = actor.ask(|to| Msg::Double(1, to), SECOND);
    assert_eq!(root.block_on(ask), Ok(2));
}

#[test]
fn a_request_that_waits_for_room_gets_it_when_a_restart_that_waits_keeps_the_mail() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let pause = Backoff::new(SECOND * 10, SECOND * 10);
    let props = Props::new(Server::default).mailbox(Mailbox::bounded(1));
    let actor = root.spawn("server", props.supervise(Strategy::restart().backoff(pause))).unwrap();
    let failing = actor.ask(Msg::Panic, SECOND);
    root.run_until_idle();
    assert!(ready(failing).unwrap_err().is_dropped());
    actor.tell(Msg::Answer(0)).unwrap();
    let mut ask = actor.ask(|to| Msg::Double(4, to), SECOND * 20);
    assert!(poll(&mut ask).is_pending());
    root.run_until_idle();
    // Both were taken out and kept, so there is room for others meanwhile.
    actor.tell(Msg::Answer(1)).unwrap();
    clock.advance(SECOND * 10);
    assert_eq!(root.block_on(ask), Ok(8));
}

#[test]
fn what_waits_for_room_when_the_actor_stops_is_told_of_and_is_a_dead_letter() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = listen(&mut root);
    let props = Props::new(Server::default).mailbox(Mailbox::bounded(1));
    let actor = root.spawn("server", props).unwrap();
    actor.tell(Msg::Answer(0)).unwrap();
    let ask = actor.ask(Msg::Keep, SECOND);
    root.system().stop(&actor).unwrap();
    root.run_until_idle();
    assert!(ready(ask).unwrap_err().is_stopped());
    assert_eq!(log.take(), ["/user/server Msg Stopped", "/user/server Msg Stopped"]);
}

#[test]
fn a_status_is_unwrapped_and_keeps_its_error() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let failure = root.block_on(actor.ask_with_status(Msg::Fail, SECOND)).unwrap_err();
    assert_eq!(failure.downcast_ref::<Custom>(), Some(&Custom(7)));
    actor.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    let failure = root.block_on(actor.ask_with_status(Msg::Fail, SECOND)).unwrap_err();
    assert!(failure.downcast_ref::<AskError>().unwrap().is_stopped());
}

#[test]
fn a_replier_learns_that_nobody_waits() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let (to, from) = std::sync::mpsc::channel();
    let ask = actor.ask(
        |reply| {
            to.send(reply).unwrap();
            Msg::Answer(0)
        },
        SECOND,
    );
    let reply: ReplyTo<String> = from.recv().unwrap();
    assert!(reply.is_wanted());
    drop(ask);
    assert!(!reply.is_wanted());
    assert_eq!(reply.try_reply("late".into()), Err("late".into()));
}

#[test]
fn a_mapped_ref_asks_too() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let doubling: ActorRef<(u64, ReplyTo<u64>)> = actor.map(|(n, to)| Msg::Double(n, to));
    let ask = doubling.ask(|to| (5, to), SECOND);
    assert_eq!(root.block_on(ask), Ok(10));
}

#[test]
fn an_ask_allocates_nothing_in_the_long_run() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let mut round = |n| {
        let ask = actor.ask(|to| Msg::Double(n, to), SECOND);
        assert_eq!(root.block_on(ask), Ok(n * 2));
    };
    (0..100).for_each(&mut round);
    let before = COUNTING.allocations();
    (0..1000).for_each(&mut round);
    assert_eq!(COUNTING.allocations() - before, 0);
}

#[test]
fn a_sealed_system_asks_with_the_slots_that_it_has() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let ask = actor.ask(|to| Msg::Double(1, to), SECOND);
    assert_eq!(root.block_on(ask), Ok(2));
    root.seal();
    let first = actor.ask(|to| Msg::Double(2, to), SECOND);
    let second = actor.ask(|to| Msg::Double(3, to), SECOND);
    assert_eq!(root.block_on(first), Ok(4));
    assert!(ready(second).unwrap_err().is_refused());
}

#[test]
fn threads_that_ask_and_give_up_get_their_own_answers_or_none() {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    const EACH: u64 = if cfg!(miri) { 20 } else { 500 };
    let (mut root, _) = start(ActorSystem::builder("t"));
    let props = Props::new(Server::default).mailbox(Mailbox::bounded(2));
    let actor = root.spawn("server", props).unwrap();
    let answered = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        let askers: Vec<_> = (0..3)
            .map(|me| {
                let (actor, answered) = (actor.clone(), Arc::clone(&answered));
                scope.spawn(move || {
                    let waker = Waker::from(Arc::new(Unpark(thread::current())));
                    let mut cx = Cx::from_waker(&waker);
                    for n in 0..EACH {
                        let n = me * EACH + n;
                        let mut ask = actor.ask(|to| Msg::Double(n, to), SECOND);
                        // Some asks are cancelled before the answer, some at about that time.
                        loop {
                            match Pin::new(&mut ask).poll(&mut cx) {
                                Poll::Ready(answer) => {
                                    assert_eq!(answer, Ok(n * 2));
                                    answered.fetch_add(1, SeqCst);
                                    break;
                                }
                                Poll::Pending if n.is_multiple_of(4) => break,
                                Poll::Pending if n % 4 == 1 => thread::yield_now(),
                                Poll::Pending => thread::park(),
                            }
                        }
                    }
                })
            })
            .collect();
        while !askers.iter().all(thread::ScopedJoinHandle::is_finished) {
            root.run_until_idle();
            thread::yield_now();
        }
    });
    assert!(answered.load(SeqCst) >= usize::try_from(EACH * 9 / 4).unwrap());
    let last = actor.ask(|to| Msg::Double(1, to), SECOND);
    assert_eq!(root.block_on(last), Ok(2));
}

/// A waker of a task that is not ours.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics")
    }
}

#[test]
fn a_waker_of_the_asker_that_panics_does_not_fail_the_actor_that_answers() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = server(&mut root);
    let waker = Waker::from(Arc::new(Panics));
    let mut answered = actor.ask(|to| Msg::Double(4, to), SECOND);
    let mut dropped = actor.ask(Msg::Forget, SECOND);
    for _ in 0..2 {
        assert!(Pin::new(&mut answered).poll(&mut Cx::from_waker(&waker)).is_pending());
        assert!(Pin::new(&mut dropped).poll(&mut Cx::from_waker(&waker)).is_pending());
    }
    root.run_until_idle();
    assert_eq!(ready(answered), Ok(8));
    assert!(ready(dropped).unwrap_err().is_dropped());
    let metrics = root.system().metrics();
    assert_eq!((metrics.failures, metrics.restarts), (0, 0));
    assert!(!actor.is_stopped());
}
