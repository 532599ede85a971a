//! A `tracing` span for each handled message: parents, fields, ends. Most tests run on one thread,
//! in virtual time; what threads change is tested on a runtime.
//!
//! The subscriber is that of the whole program, and checks what a registry of `tracing-subscriber`
//! relies on: nobody refers to a span that is closed. Each test has a system of its own name.
#![cfg(not(loom))]

#[path = "support/in_time.rs"]
mod in_time;

use core::{cell::RefCell, fmt, time::Duration};
use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc},
    time::Instant,
};

use clockjack_rt::{
    Runtime, RuntimeConfig, TracingSpans,
    actor::{
        Actor, ActorRef, ActorSystem, AskError, Context, Failure, HandledMessage, Mailbox,
        MessageSpans, Next, ParentSpan, Props, ReplyTo, RootContext, Strategy, SystemBuilder,
    },
};
use clockjack_testing::{InTime, toolbox::ByHand};
use clockjack_time::{ManualClock, Resolution};
use in_time::ShutdownInTime as _;
use tracing::{
    Event, Level, Metadata, Span, Subscriber,
    field::{Field, Visit},
    info_span, span,
};
use tracing_core::span::Current;

/// Far beyond what a loaded machine needs; what takes longer hangs.
const LONG: Duration = Duration::from_secs(60);

const MS: Duration = Duration::from_millis(1);

/// A span as the subscriber has seen it.
#[derive(Clone, Debug)]
struct SeenSpan {
    id: u64,
    parent: Option<u64>,
    name: &'static str,
    level: Level,
    fields: BTreeMap<&'static str, String>,
    handles: usize,
    entered: usize,
    exited: usize,
}

impl SeenSpan {
    fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }

    fn is_closed(&self) -> bool {
        self.handles == 0
    }
}

impl Visit for SeenSpan {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// All spans, by id, from one on.
#[derive(Default)]
struct Spans {
    all: Mutex<Vec<(SeenSpan, &'static Metadata<'static>)>>,
    changed: Condvar,
}

thread_local! {
    /// The spans that this thread has entered.
    static STACK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

struct Keeper(&'static Spans);

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        ["clockjack::message", "user"].contains(&metadata.target())
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut all = self.0.lock();
        let parent = match attributes.parent() {
            Some(id) => Some(id.into_u64()),
            None if attributes.is_contextual() => STACK.with_borrow(|stack| stack.last().copied()),
            None => None,
        };
        if let Some(parent) = parent {
            assert!(!all[index(parent)].0.is_closed(), "the parent is closed");
        }
        let metadata = attributes.metadata();
        let (id, level) = (all.len() as u64 + 1, *metadata.level());
        let (fields, name) = (BTreeMap::new(), metadata.name());
        let mut seen =
            SeenSpan { id, parent, name, level, fields, handles: 1, entered: 0, exited: 0 };
        attributes.record(&mut seen);
        all.push((seen, metadata));
        self.0.changed.notify_all();
        span::Id::from_u64(id)
    }

    fn clone_span(&self, id: &span::Id) -> span::Id {
        self.0.with(id.into_u64(), |span| {
            assert!(!span.is_closed(), "the span is closed");
            span.handles += 1;
        });
        id.clone()
    }

    fn try_close(&self, id: span::Id) -> bool {
        self.0.with(id.into_u64(), |span| {
            span.handles -= 1;
            span.is_closed()
        })
    }

    fn record(&self, id: &span::Id, values: &span::Record<'_>) {
        self.0.with(id.into_u64(), |span| values.record(span));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &span::Id) {
        STACK.with_borrow_mut(|stack| stack.push(id.into_u64()));
        self.0.with(id.into_u64(), |span| span.entered += 1);
    }

    fn exit(&self, id: &span::Id) {
        let last = STACK.with_borrow_mut(Vec::pop);
        assert_eq!(last, Some(id.into_u64()), "spans are nested");
        self.0.with(id.into_u64(), |span| span.exited += 1);
    }

    fn current_span(&self) -> Current {
        let Some(id) = STACK.with_borrow(|stack| stack.last().copied()) else {
            return Current::none();
        };
        Current::new(span::Id::from_u64(id), self.0.lock()[index(id)].1)
    }
}

fn index(id: u64) -> usize {
    usize::try_from(id).expect("there are not that many") - 1
}

impl Spans {
    fn open() -> &'static Self {
        static SPANS: OnceLock<&'static Spans> = OnceLock::new();
        SPANS.get_or_init(|| {
            let spans: &'static Self = Box::leak(Box::default());
            tracing::subscriber::set_global_default(Keeper(spans)).expect("there is none");
            spans
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(SeenSpan, &'static Metadata<'static>)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, id: u64, f: impl FnOnce(&mut SeenSpan) -> R) -> R {
        let result = f(&mut self.lock()[index(id)].0);
        self.changed.notify_all();
        result
    }

    /// The spans of a system's messages, in the order in which they began.
    fn of(&self, system: &str) -> Vec<SeenSpan> {
        let all = self.lock();
        all.iter()
            .map(|(span, _)| span)
            .filter(|span| span.get("system") == system)
            .cloned()
            .collect()
    }

    fn get(&self, span: &Span) -> SeenSpan {
        self.lock()[index(span.id().expect("it is enabled").into_u64())].0.clone()
    }

    /// Waits until so many messages of a system were handled and their spans are closed.
    #[track_caller]
    fn wait_closed(&self, system: &str, n: usize) -> Vec<SeenSpan> {
        let until = Instant::now() + LONG;
        loop {
            let spans = self.of(system);
            if spans.len() >= n && spans.iter().all(SeenSpan::is_closed) {
                return spans;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{spans:#?}");
            // The predicate is checked again after at most this time: nothing is missed.
            let step = left.min(Duration::from_millis(10));
            drop(self.changed.wait_timeout(self.lock(), step));
        }
    }
}

/// A span of the user, outside of all actors.
fn user_span() -> Span {
    info_span!(target: "user", parent: None, "outside")
}

fn traced(name: &str) -> SystemBuilder {
    ActorSystem::builder(name).message_spans(TracingSpans)
}

/// A system in virtual time, on this thread.
fn by_hand(builder: SystemBuilder) -> (RootContext, std::sync::Arc<ManualClock>) {
    let (host, clock) = ByHand::new(Resolution::MILLI);
    (RootContext::new(host, builder).expect("it fits"), clock)
}

/// The paths, and the parents by their positions in the list.
fn tree(spans: &[SeenSpan]) -> Vec<(&str, Option<usize>)> {
    let position = |id| spans.iter().position(|span| Some(span.id) == id);
    spans.iter().map(|span| (span.get("path"), position(span.parent))).collect()
}

struct First(ActorRef<ToSecond>);

#[derive(Clone)]
struct ToFirst;

impl Actor for First {
    type Msg = ToFirst;

    fn receive(&mut self, _: &mut Context<'_, Self>, _: ToFirst) -> Result<Next, Failure> {
        self.0.tell(ToSecond::Begin)?;
        Ok(Next::Stay)
    }
}

struct Second(ActorRef<ToThird>, mpsc::Sender<u32>);

enum ToSecond {
    Begin,
    Answered(Result<u32, AskError>),
}

impl Actor for Second {
    type Msg = ToSecond;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: ToSecond) -> Result<Next, Failure> {
        match msg {
            ToSecond::Begin => {
                cx.ask(&self.0, ToThird, LONG, |_, answer| Ok(ToSecond::Answered(answer)))?;
            }
            ToSecond::Answered(answer) => self.1.send(answer?)?,
        }
        Ok(Next::Stay)
    }
}

struct Third;

struct ToThird(ReplyTo<u32>);

impl Actor for Third {
    type Msg = ToThird;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: ToThird) -> Result<Next, Failure> {
        msg.0.reply(3);
        Ok(Next::Stay)
    }
}

/// Spawns the three, sends the first a message inside `outside`, and checks the spans.
fn check_three(system: &str, outside: &Span, first: &ActorRef<ToFirst>, run: impl FnOnce()) {
    outside.in_scope(|| first.tell(ToFirst)).unwrap();
    run();
    let spans = Spans::open().wait_closed(system, 4);
    let outside = Spans::open().get(outside);
    assert_eq!((outside.entered, outside.exited), (1, 1));
    assert_eq!(spans[0].parent, Some(outside.id), "{spans:#?}");
    let paths = [
        ("/user/first", None),
        ("/user/second", Some(0)),
        ("/user/third", Some(1)),
        // The answer arrives as a message, which the future of the ask has sent.
        ("/user/second", Some(1)),
    ];
    assert_eq!(tree(&spans), paths, "{spans:#?}");
    let types = [ToFirst::NAME, ToSecond::NAME, ToThird::NAME, ToSecond::NAME];
    for (span, of) in spans.iter().zip(types) {
        assert_eq!(span.get("message_type"), of());
        assert_eq!(span.get("otel.name"), of());
        assert_eq!((span.name, span.level), ("message", Level::INFO));
        assert_eq!(span.get("error"), "");
        assert_eq!(span.entered, span.exited);
    }
    assert_eq!(spans[0].get("pid"), first.pid().to_string());
}

/// The name of a type.
trait Named {
    const NAME: fn() -> &'static str = core::any::type_name::<Self>;
}
impl<T> Named for T {}

#[test]
fn a_trace_goes_through_tell_and_ask_on_several_threads() {
    Spans::open();
    let (sender, receiver) = mpsc::channel();
    let runtime = InTime::new(
        Runtime::start(traced("threads")).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let third = runtime.spawn("third", || Third).unwrap();
    let second = runtime.spawn("second", move || Second(third.clone(), sender.clone())).unwrap();
    let first = runtime.spawn("first", move || First(second.clone())).unwrap();
    let outside = user_span();
    check_three("threads", &outside, &first, || assert_eq!(receiver.recv_timeout(LONG), Ok(3)));
    drop(runtime.shutdown_in_time(LONG));
}

#[test]
fn a_trace_goes_through_tell_and_ask_on_one_thread() {
    Spans::open();
    let (sender, receiver) = mpsc::channel();
    let (mut root, _) = by_hand(traced("one thread"));
    let third = root.spawn("third", || Third).unwrap();
    let second = root.spawn("second", move || Second(third.clone(), sender.clone())).unwrap();
    let first = root.spawn("first", move || First(second.clone())).unwrap();
    let outside = user_span();
    check_three("one thread", &outside, &first, || {
        // The span of who drives the system is not that of the messages.
        user_span().in_scope(|| root.run_until_idle());
        assert_eq!(receiver.try_recv(), Ok(3));
    });
}

#[test]
fn messages_have_no_spans_unless_the_builder_asks_for_them() {
    let spans = Spans::open();
    let (mut root, _) = by_hand(ActorSystem::builder("off"));
    let (sender, receiver) = mpsc::channel();
    let props = Props::from_fn(move |_, n: u8| {
        sender.send((n, Span::current().is_none()))?;
        Ok(Next::Stay)
    });
    let actor = root.spawn("actor", props).unwrap();
    let outside = user_span();
    outside.in_scope(|| actor.tell(1)).unwrap();
    // The mailbox does not refer to the span.
    assert_eq!(spans.get(&outside).handles, 1);
    root.run_until_idle();
    assert_eq!(receiver.try_recv(), Ok((1, true)));
    assert!(spans.of("off").is_empty());
}

#[test]
fn a_message_that_is_sent_outside_of_spans_is_a_root() {
    let spans = Spans::open();
    let (mut root, _) = by_hand(traced("root"));
    let actor = root.spawn("actor", Props::from_fn(|_, (): ()| Ok(Next::Stay))).unwrap();
    actor.tell(()).unwrap();
    let ambient = user_span();
    ambient.in_scope(|| root.run_until_idle());
    let spans = spans.of("root");
    assert_eq!(tree(&spans), [("/user/actor", None)]);
    assert_eq!(spans[0].parent, None);
}

#[test]
fn a_handler_that_fails_or_panics_closes_its_span_with_the_reason() {
    let spans = Spans::open();
    let (mut root, _) = by_hand(traced("failures"));
    let props = Props::from_fn(|_, how: u8| match how {
        0 => Err(Failure::msg("out of paper")),
        1 => panic!("on fire"),
        _ => Ok(Next::Stay),
    })
    .supervise(Strategy::resume());
    let actor = root.spawn("printer", props).unwrap();
    let outside = user_span();
    outside.in_scope(|| (0..3).for_each(|how| actor.tell(how).unwrap()));
    root.run_until_idle();
    assert!(Span::current().is_none(), "a panic has left a span behind");
    let seen = spans.of("failures");
    let of = |field: &str| seen.iter().map(|span| span.get(field).to_owned()).collect::<Vec<_>>();
    assert_eq!(of("error"), ["out of paper", "panicked", ""]);
    assert_eq!(of("otel.status_code"), ["ERROR", "ERROR", ""]);
    let outside_id = spans.get(&outside).id;
    assert!(seen.iter().all(|span| span.is_closed() && span.parent == Some(outside_id)));
    drop(outside);
    assert!(spans.lock()[index(outside_id)].0.is_closed());
}

/// Sets a timer, and notes what its messages are.
struct Clocked;

impl Actor for Clocked {
    type Msg = &'static str;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: &'static str) -> Result<Next, Failure> {
        if msg == "arm" {
            cx.timers().single("one", MS, "timer")?;
            let me = cx.self_ref();
            drop(cx.schedule_once(2 * MS, &me, "scheduled")?);
        }
        Ok(Next::Stay)
    }
}

#[test]
fn messages_of_timers_and_of_the_scheduler_are_roots_and_hold_no_span_open() {
    let spans = Spans::open();
    let (mut root, clock) = by_hand(traced("timers"));
    let actor = root.spawn("clocked", || Clocked).unwrap();
    let outside = user_span();
    outside.in_scope(|| {
        actor.tell("arm").unwrap();
        drop(root.system().scheduler().schedule_once(3 * MS, &actor, "by hand").unwrap());
    });
    root.run_until_idle();
    assert!(spans.of("timers")[0].is_closed(), "a timer holds it open");
    let ambient = user_span();
    for _ in 0..4 {
        clock.advance(MS);
        ambient.in_scope(|| root.run_until_idle());
    }
    let seen = spans.of("timers");
    let parents: Vec<_> = seen.iter().map(|span| span.parent).collect();
    assert_eq!(parents, [Some(spans.get(&outside).id), None, None, None], "{seen:#?}");
}

#[test]
fn control_messages_and_mapped_references_carry_the_span() {
    let spans = Spans::open();
    let (mut root, _) = by_hand(traced("ways"));
    let actor = root.spawn("actor", Props::from_fn(|_, _: u32| Ok(Next::Stay))).unwrap();
    let outside = user_span();
    outside.in_scope(|| {
        actor.tell_control(1).unwrap();
        let mapped = actor.map(|text: String| u32::from(text.is_empty()));
        mapped.map(|()| String::new()).tell(()).unwrap();
        mapped.tell_control(String::new()).unwrap();
        let found: ActorRef<u32> = root.system().lookup("/user/actor").unwrap();
        assert_eq!(found, actor);
        found.tell(2).unwrap();
    });
    root.run_until_idle();
    let seen = spans.of("ways");
    let id = spans.get(&outside).id;
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|span| span.parent == Some(id)), "{seen:#?}");
}

#[test]
fn a_refused_message_is_returned_and_one_that_waits_for_room_carries_its_span() {
    let spans = Spans::open();
    let (mut root, _) = by_hand(traced("full"));
    let props = Props::from_fn(|_, _: String| Ok(Next::Stay)).mailbox(Mailbox::bounded(1));
    let actor = root.spawn("small", props).unwrap();
    actor.tell("first".into()).unwrap();
    let refused = user_span();
    let error = refused.in_scope(|| actor.tell("second".into())).unwrap_err();
    assert!(error.is_full());
    assert_eq!(error.into_inner(), "second");
    assert_eq!(spans.get(&refused).handles, 1, "a refused message holds no span");
    assert_eq!(actor.refused(), 1);

    let waits = user_span();
    let sending = waits.in_scope(|| actor.send("third".into()));
    let cancelled = user_span();
    let dropped = cancelled.in_scope(|| actor.map(|()| String::new()).send(()));
    assert_eq!(spans.get(&cancelled).handles, 2);
    drop(dropped);
    root.block_on(sending).unwrap();
    root.run_until_idle();
    assert_eq!(spans.get(&cancelled).handles, 1);
    let parents: Vec<_> = spans.of("full").iter().map(|span| span.parent).collect();
    assert_eq!(parents, [None, Some(spans.get(&waits).id)]);

    root.system().stop(&actor).unwrap();
    root.run_until_idle();
    let late = user_span();
    let error = late.in_scope(|| actor.tell("late".into())).unwrap_err();
    assert_eq!((error.is_full(), error.into_inner().as_str()), (false, "late"));
    assert_eq!(spans.get(&late).handles, 1);
}

/// Stashes the first message, and handles it after the second.
struct Stasher(bool);

impl Actor for Stasher {
    type Msg = &'static str;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: &'static str) -> Result<Next, Failure> {
        match msg {
            "first" if !self.0 => cx.stash(msg)?,
            "second" => {
                self.0 = true;
                cx.unstash_all();
            }
            _ => {}
        }
        Ok(Next::Stay)
    }
}

#[test]
fn a_stashed_message_is_handled_again_below_the_span_in_which_it_was_stashed() {
    let spans = Spans::open();
    let (mut root, _) = by_hand(traced("stash"));
    let actor = root.spawn("stasher", Props::new(|| Stasher(false)).stash(1)).unwrap();
    actor.tell("first").unwrap();
    actor.tell("second").unwrap();
    root.run_until_idle();
    let seen = spans.of("stash");
    let path = "/user/stasher";
    assert_eq!(tree(&seen), [(path, None), (path, None), (path, Some(0))]);
    assert!(seen.iter().all(SeenSpan::is_closed), "{seen:#?}");
}

#[test]
fn a_future_runs_inside_the_span_in_which_it_was_started() {
    let spans = Spans::open();
    let (mut root, _) = by_hand(traced("futures"));
    let (sender, receiver) = mpsc::channel();
    let props = Props::from_fn(move |cx: &mut Context<'_, _>, (): ()| {
        let (mine, sender) = (Span::current().id(), sender.clone());
        let future = async move {
            let before = Span::current().id();
            clockjack_rt::yield_now().await;
            (before, Span::current().id())
        };
        cx.spawn_future(future, move |_, _, (before, after)| {
            sender.send([mine, before, after, Span::current().id()])?;
            Ok(Next::Stay)
        })?;
        Ok(Next::Stay)
    });
    let actor = root.spawn("actor", props).unwrap();
    actor.tell(()).unwrap();
    root.run_until_idle();
    let ids = receiver.try_recv().unwrap();
    let seen = spans.of("futures");
    let [span] = &seen[..] else { panic!("{seen:#?}") };
    assert!(ids.iter().all(|id| id.as_ref().map(span::Id::into_u64) == Some(span.id)), "{ids:?}");
    assert!(span.is_closed() && span.entered == span.exited, "{span:?}");
}

#[test]
fn an_actor_that_stops_lets_go_of_the_spans_of_its_messages_and_futures() {
    let spans = Spans::open();
    let (mut root, _) = by_hand(traced("stop"));
    let props = Props::from_fn(|cx: &mut Context<'_, _>, is_last: bool| {
        cx.spawn_future(core::future::pending::<()>(), |_, _, ()| Ok(Next::Stay))?;
        Ok(if is_last { Next::Stop } else { Next::Stay })
    });
    let actor = root.spawn("actor", props).unwrap();
    let outside = user_span();
    outside.in_scope(|| {
        actor.tell(false).unwrap();
        actor.tell(true).unwrap();
        actor.tell(false).unwrap();
    });
    root.run_until_idle();
    let seen = spans.of("stop");
    assert_eq!(seen.len(), 2, "the third is a dead letter");
    assert!(seen.iter().all(SeenSpan::is_closed), "{seen:#?}");
    assert_eq!(spans.get(&outside).handles, 1);
}

/// Fails for a message without a parent.
struct WithParent;

impl MessageSpans for WithParent {
    fn current(&self) -> Option<ParentSpan> {
        TracingSpans.current()
    }

    fn handle(
        &self,
        _: &HandledMessage<'_>,
        parent: Option<ParentSpan>,
        handler: &mut dyn FnMut() -> Result<Next, Failure>,
    ) -> Result<Next, Failure> {
        assert!(parent.is_some());
        handler()
    }

    fn enter(&self, span: &ParentSpan, poll: &mut dyn FnMut()) {
        TracingSpans.enter(span, poll);
    }
}

#[test]
fn actors_of_the_system_have_no_spans_and_a_sealed_system_carries_none() {
    let spans = Spans::open();
    let runtime =
        InTime::new(Runtime::start(traced("system")).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let (sender, receiver) = mpsc::channel();
    let props = Props::from_fn(move |_, (): ()| {
        sender.send(Span::current().is_none())?;
        Ok(Next::Stay)
    });
    let helper = runtime.system().spawn_system("helper", props).unwrap();
    user_span().in_scope(|| helper.tell(())).unwrap();
    assert_eq!(receiver.recv_timeout(LONG), Ok(true));
    drop(runtime.shutdown_in_time(LONG));
    assert!(spans.of("system").is_empty());

    let (mut root, _) = by_hand(ActorSystem::builder("own").message_spans(WithParent));
    let actor = root.spawn("actor", Props::from_fn(|_, _: u8| Ok(Next::Stay))).unwrap();
    user_span().in_scope(|| actor.tell(1)).unwrap();
    root.run_until_idle();
    assert_eq!(root.system().metrics().failures, 0, "the handler was called with a parent");
    root.seal();
    let outside = user_span();
    outside.in_scope(|| actor.tell(2)).unwrap();
    assert_eq!(spans.get(&outside).handles, 1, "a sealed system has no memory for it");
}
