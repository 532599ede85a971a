//! What a runtime's system tells, read by a subscriber of `tracing`.
//!
//! The subscriber is that of the whole program, since events come from the threads of a runtime;
//! each test has a system of its own name, and looks at the events of that.
#![cfg(not(loom))]

#[path = "support/in_time.rs"]
mod in_time;

use core::{fmt, time::Duration};
use std::{
    collections::BTreeMap,
    sync::{Arc, Barrier, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

use clockjack_rt::{
    Runtime, RuntimeConfig, TracingBridge,
    actor::{
        Actor, ActorRef, ActorSystem, Context, EventKinds, Failure, Mailbox, Next, Props, ReplyTo,
        RootContext, Scope, Signal, StaticError, Strategy, SystemBuilder, SystemEvent,
    },
    sched::{PressureReason, Warning},
};
use clockjack_testing::{InTime, toolbox::ByHand};
use clockjack_time::Resolution;
use in_time::ShutdownInTime as _;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Far beyond what a loaded machine needs; what takes longer hangs.
const LONG: Duration = Duration::from_secs(60);

static OUT_OF_PAPER: StaticError = StaticError::new(7, "out of paper");

/// An event as it was written.
#[derive(Clone, Debug)]
struct Seen {
    level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl Seen {
    fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }

    fn is(&self, level: Level, message: &str, path: &str) -> bool {
        self.level == level && self.get("message") == message && self.get("path") == path
    }
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// Keeps what is written, and panics at what it is told to.
#[derive(Default)]
struct Book {
    lines: Mutex<Vec<Seen>>,
    more: Condvar,
    /// By id, from one on.
    spans: Mutex<Vec<TaskSpan>>,
}

/// The span of a task.
#[derive(Clone, Debug)]
struct TaskSpan {
    seen: Seen,
    entered: u32,
    exited: u32,
    is_closed: bool,
}

static BOOK: OnceLock<&'static Book> = OnceLock::new();

struct Keeper(&'static Book);

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        ["clockjack", "clockjack::task"].contains(&metadata.target())
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut seen = Seen { level: *attributes.metadata().level(), fields: BTreeMap::new() };
        attributes.record(&mut seen);
        let mut spans = self.0.spans();
        spans.push(TaskSpan { seen, entered: 0, exited: 0, is_closed: false });
        span::Id::from_u64(spans.len() as u64)
    }

    fn try_close(&self, id: span::Id) -> bool {
        self.0.with_span(&id, |span| span.is_closed = true);
        true
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut seen = Seen { level: *event.metadata().level(), fields: BTreeMap::new() };
        event.record(&mut seen);
        let is_bomb = seen.get("path") == "/user/bomb";
        if seen.get("system").starts_with("slow") {
            // What the tests of these systems are about.
            std::thread::sleep(Duration::from_millis(20));
        }
        self.0.lines().push(seen);
        self.0.more.notify_all();
        assert!(!is_bomb, "no room on the disk");
    }

    fn enter(&self, id: &span::Id) {
        self.0.with_span(id, |span| span.entered += 1);
    }

    fn exit(&self, id: &span::Id) {
        self.0.with_span(id, |span| span.exited += 1);
    }
}

impl Book {
    fn open() -> &'static Self {
        BOOK.get_or_init(|| {
            let book: &'static Self = Box::leak(Box::default());
            tracing::subscriber::set_global_default(Keeper(book)).expect("there is none");
            book
        })
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spans(&self) -> MutexGuard<'_, Vec<TaskSpan>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_span(&self, id: &span::Id, change: impl FnOnce(&mut TaskSpan)) {
        let index = usize::try_from(id.into_u64()).expect("there are not that many") - 1;
        change(&mut self.spans()[index]);
    }

    /// What was written of a system.
    fn of(&self, system: &str) -> Vec<Seen> {
        self.lines().iter().filter(|seen| seen.get("system") == system).cloned().collect()
    }

    /// Waits until something was written of a system.
    #[track_caller]
    fn wait(&self, system: &str, is_it: impl Fn(&Seen) -> bool) -> Seen {
        let until = Instant::now() + LONG;
        let mut lines = self.lines();
        loop {
            let found = lines.iter().find(|seen| seen.get("system") == system && is_it(seen));
            if let Some(found) = found {
                return found.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not written: {lines:#?}");
            lines = self.more.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn builder(name: &str) -> SystemBuilder {
    ActorSystem::builder(name).on_start(|system| {
        TracingBridge::install(system)?;
        Ok(())
    })
}

#[test]
fn a_failure_at_the_root_is_an_error_with_all_that_is_known() {
    let book = Book::open();
    let builder = builder("root").supervise_users(Scope::OneForOne, Strategy::escalate());
    let runtime =
        InTime::new(Runtime::start(builder).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let props = Props::from_fn(|_, (): ()| Err::<(), _>(OUT_OF_PAPER.failure()))
        .supervise(Strategy::restart().limit(1, LONG));
    let printer = runtime.spawn("printer", props).unwrap();
    let pid = printer.pid().to_string();
    printer.tell(()).unwrap();
    printer.tell(()).unwrap();
    // The system ends on its account; by then it was written.
    let end = runtime.block_on(runtime.system().when_terminated());
    assert!(end.reason.contains("out of paper"), "{end:?}");
    let all = book.of("root");
    let errors: Vec<_> = all.iter().filter(|seen| seen.level == Level::ERROR).collect();
    let [error] = errors[..] else { panic!("{all:#?}") };
    assert!(error.is(Level::ERROR, "a failure was escalated to the root", "/user/printer"));
    assert_eq!(error.get("pid"), pid);
    assert_eq!(error.get("reason"), OUT_OF_PAPER.to_string());
    let numbers = ["stage", "restarts", "code"].map(|field| error.get(field));
    assert_eq!(numbers, ["2", "1", "7"]);
}

#[test]
fn a_failure_at_the_root_is_not_written_once_more_as_a_warning() {
    let book = Book::open();
    let builder = builder("once")
        .supervise_users(Scope::OneForOne, Strategy::escalate())
        .shutdown_on_escalation(false);
    let runtime =
        InTime::new(Runtime::start(builder).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let props = Props::from_fn(|_, (): ()| Err::<(), _>(OUT_OF_PAPER.failure()));
    runtime.spawn("printer", props).unwrap().tell(()).unwrap();
    book.wait("once", |seen| seen.level == Level::ERROR);
    // The one that failed ends behind all that is notified of its failure.
    book.wait("once", |seen| seen.get("path") == "/user/printer" && seen.get("step") == "stopped");
    let all = book.of("once");
    assert!(
        all.iter().all(|seen| seen.level != Level::WARN || seen.get("path") != "/"),
        "{all:#?}"
    );
    assert_eq!(all.iter().filter(|seen| seen.level == Level::ERROR).count(), 1);
}

#[test]
fn a_failure_that_was_settled_is_a_warning_and_lifecycles_are_for_who_debugs() {
    let book = Book::open();
    let runtime = InTime::new(
        Runtime::start(builder("settled")).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let props =
        Props::from_fn(
            |_, is_last: bool| {
                if is_last { Ok(Next::Stop) } else { Err(Failure::msg("out of paper")) }
            },
        )
        .supervise(Strategy::restart());
    let printer = runtime.spawn("printer", props).unwrap();
    printer.tell(false).unwrap();
    printer.tell(true).unwrap();
    let path = "/user/printer";
    let step = |step| {
        let is_it =
            |seen: &Seen| seen.is(Level::DEBUG, "lifecycle", path) && seen.get("step") == step;
        assert_eq!(book.wait("settled", is_it).get("pid"), printer.pid().to_string());
    };
    ["started", "restarted", "stopped"].into_iter().for_each(step);
    let failure = book.wait("settled", |seen| seen.is(Level::WARN, "failure", path));
    assert_eq!(failure.get("pid"), printer.pid().to_string());
    let words = ["reason", "restarts", "directive"].map(|field| failure.get(field));
    assert_eq!(words, ["out of paper", "0", "restart"]);
}

#[test]
fn a_failure_is_one_event_with_and_without_a_bridge() {
    let book = Book::open();
    for builder in [builder("bridged"), ActorSystem::builder("bare")] {
        let name = builder.name().to_owned();
        let runtime =
            InTime::new(Runtime::start(builder).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
        let props = Props::from_fn(|_, (): ()| Err::<(), _>(Failure::msg("out of paper")));
        runtime.spawn("printer", props).unwrap().tell(()).unwrap();
        let is_failure = |seen: &Seen| seen.is(Level::WARN, "failure", "/user/printer");
        let failure = book.wait(&name, is_failure);
        let words = ["reason", "message_type", "directive"].map(|field| failure.get(field));
        assert_eq!(words, ["out of paper", "()", "stop"]);
        drop(runtime.shutdown_in_time(LONG));
        let all = book.of(&name);
        assert_eq!(all.iter().filter(|seen| is_failure(seen)).count(), 1, "{all:#?}");
    }
}

#[test]
fn a_bridge_writes_every_failure_and_none_is_reported_as_missing() {
    // More than the log writes in a second.
    const FAILURES: usize = 10;
    let book = Book::open();
    let runtime =
        InTime::new(Runtime::start(builder("many")).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let props = Props::from_fn(|_, (): ()| Err::<(), _>(Failure::msg("out of paper")));
    let printer = runtime.spawn("printer", props.supervise(Strategy::restart())).unwrap();
    for _ in 0..FAILURES {
        runtime.block_on(printer.send(())).unwrap();
    }
    let is_failure = |seen: &&Seen| seen.is(Level::WARN, "failure", "/user/printer");
    let until = Instant::now() + LONG;
    while book.of("many").iter().filter(is_failure).count() < FAILURES {
        assert!(Instant::now() < until, "not all were written");
        std::thread::yield_now();
    }
    drop(runtime.shutdown_in_time(LONG));
    let all = book.of("many");
    assert!(!all.iter().any(|seen| format!("{seen:?}").contains("not written")), "{all:#?}");
}

/// Cannot save what it has when it stops.
struct Unsaved;

impl Actor for Unsaved {
    type Msg = ReplyTo<()>;

    fn receive(
        &mut self,
        _: &mut Context<'_, Self>,
        reply_to: ReplyTo<()>,
    ) -> Result<Next, Failure> {
        reply_to.reply(());
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::PostStop => Err(Failure::msg("the disk is full")),
            _ => Ok(Next::Unhandled),
        }
    }
}

#[test]
fn what_fails_while_a_system_stops_is_written_and_counted_however_slow_the_subscriber_is() {
    const ACTORS: usize = 20;
    let book = Book::open();
    let runtime =
        InTime::new(Runtime::start(builder("slow")).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    for n in 0..ACTORS {
        let actor = runtime.spawn(&format!("{n}"), || Unsaved).unwrap();
        // One that has not started yet is not told that it stops.
        runtime.block_on(actor.ask(|reply_to| reply_to, LONG)).unwrap();
    }
    let metrics = runtime.metrics();
    drop(runtime.shutdown_in_time(LONG));
    let all = book.of("slow");
    let is_failure = |seen: &&Seen| {
        seen.level == Level::WARN
            && seen.get("message") == "failure"
            && seen.get("reason") == "the disk is full"
    };
    assert_eq!(all.iter().filter(is_failure).count(), ACTORS, "{all:#?}");
    let text = metrics.prometheus().unwrap();
    assert!(text.contains(&format!("\nclockjack_actors_failures_total {ACTORS}\n")), "{text}");
}

#[test]
fn a_bridge_for_other_events_leaves_failures_and_refusals_to_the_log() {
    let book = Book::open();
    let builder = ActorSystem::builder("partial").on_start(|system| {
        TracingBridge::install_kinds(system, EventKinds::DEAD_LETTER)?;
        Ok(())
    });
    let runtime =
        InTime::new(Runtime::start(builder).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let slow = spawn_blocked(&runtime);
    assert!((0..11).filter(|_| slow.actor.tell(None).is_err()).count() == 10);
    slow.gate.wait();
    let props = Props::from_fn(|_, (): ()| Err::<(), _>(Failure::msg("out of paper")));
    runtime.spawn("printer", props).unwrap().tell(()).unwrap();
    book.wait("partial", |seen| seen.is(Level::WARN, "failure", "/user/printer"));
    drop(runtime.shutdown_in_time(LONG));
    let all = book.of("partial");
    for (message, path) in [("failure", "/user/printer"), ("warning", "/user/slow")] {
        let n = all.iter().filter(|seen| seen.is(Level::WARN, message, path)).count();
        assert_eq!(n, 1, "{message} {path}: {all:#?}");
    }
}

#[test]
fn lost_messages_and_what_somebody_should_look_into_are_warnings() {
    let book = Book::open();
    let runtime =
        InTime::new(Runtime::start(builder("lost")).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let system = runtime.system();
    let props = Props::from_fn(|_, (): ()| Ok(Next::Unhandled));
    let idle = runtime.spawn("idle", props).unwrap();
    let (pid, path) = (idle.pid().to_string(), "/user/idle");

    system.dead_letters::<u32>().tell(1).unwrap();
    let letter = |seen: &Seen| seen.level == Level::WARN && seen.get("message") == "dead letter";
    let letter = book.wait("lost", letter);
    assert_eq!(letter.get("reason"), "sent to the dead letters");
    assert_eq!(letter.get("message_type"), "u32");

    idle.tell(()).unwrap();
    let unhandled = book.wait("lost", |seen| seen.is(Level::DEBUG, "unhandled", path));
    assert_eq!(unhandled.get("pid"), pid);

    system.report_stuck(idle.pid(), Duration::from_secs(3));
    let stuck = book.wait("lost", |seen| seen.is(Level::WARN, "stuck", path));
    assert_eq!(stuck.get("pid"), pid);
    assert_eq!(stuck.get("reason"), "the handler has been running for 3s");

    system.events().publish(&SystemEvent::MailboxOverflow(idle.path()));
    let full = book.wait("lost", |seen| seen.is(Level::WARN, "warning", path));
    assert!(full.get("reason").contains("mailbox"), "{full:?}");

    let warning = Warning::DriverCatchUpExceeded { shard: 0, ticks: 9, limit: 3 };
    let text = warning.to_string();
    system.events().publish(&SystemEvent::Scheduler(warning));
    let late = book.wait("lost", |seen| seen.get("reason") == text);
    assert!(late.is(Level::WARN, "warning", ""));
}

#[test]
fn pressure_that_comes_again_and_again_is_one_warning_with_its_sum() {
    let book = Book::open();
    let (host, clock) = ByHand::new(Resolution::MILLI);
    let mut root = RootContext::new(host, builder("pressed")).unwrap();
    let system = root.system().clone();
    let set = |percent| system.scheduler().jobs().set_pressure(PressureReason::Host, percent);
    let mut wait = |ms| {
        root.run_until_idle();
        clock.advance(Duration::from_millis(ms));
        root.run_until_idle();
    };
    let mut n_seen = 0;
    // The warnings that are new, and the number of changes.
    let mut news = || {
        let all = book.of("pressed").split_off(n_seen);
        n_seen += all.len();
        let is = |seen: &&Seen, level, text| seen.level == level && seen.get("message") == text;
        let warnings = all.iter().filter(|seen| is(seen, Level::WARN, "warning"));
        let reasons = warnings.map(|seen| seen.get("reason").to_owned());
        // The clock moves in large steps, of which the scheduler warns.
        let warnings: Vec<_> = reasons.filter(|reason| reason.contains("pressure")).collect();
        let changes = all.iter().filter(|seen| is(seen, Level::DEBUG, "pressure"));
        (warnings, changes.count())
    };
    let mut pass = |on_ms, off_ms| {
        set(100);
        wait(on_ms);
        set(0);
        wait(off_ms);
    };
    // Too short for anybody to notice.
    pass(50, 10_000);
    assert_eq!(news(), (vec![], 2));
    (0..18).for_each(|_| pass(125, 125));
    let line = "under pressure for 500ms of 1s, 4 times: the host reports pressure";
    assert_eq!(news(), (vec![line.to_owned()], 36));
    // Nothing else happens, but the sum of the others is written when the pause is over.
    wait(56_500);
    let line = "under pressure for 1.75s of 60s, 14 times: the host reports pressure";
    assert_eq!(news(), (vec![line.to_owned()], 0));
    wait(3_600_000);
    assert_eq!(news(), (vec![], 0));
    // What is collected when the system stops is not lost.
    set(100);
    wait(500);
    let end = system.shutdown();
    wait(0);
    assert!(end.report().is_some());
    let line = "under pressure for 500ms of 500ms, and still is: the host reports pressure";
    assert_eq!(news(), (vec![line.to_owned()], 1));
}

/// An actor with room for one message, whose handler waits for the gate.
struct Blocked {
    actor: ActorRef<Option<Arc<Barrier>>>,
    gate: Arc<Barrier>,
}

fn spawn_blocked(runtime: &Runtime) -> Blocked {
    let props = Props::from_fn(|_, gate: Option<Arc<Barrier>>| {
        for _ in 0..2 {
            gate.iter().for_each(|gate| _ = gate.wait());
        }
        Ok(Next::Stay)
    });
    let actor = runtime.spawn("slow", props.mailbox(Mailbox::bounded(1))).unwrap();
    let gate = Arc::new(Barrier::new(2));
    actor.tell(Some(Arc::clone(&gate))).unwrap();
    gate.wait();
    Blocked { actor, gate }
}

#[test]
fn pressure_whose_end_was_lost_is_one_warning_and_not_one_after_every_pause() {
    let book = Book::open();
    let (host, clock) = ByHand::new(Resolution::MILLI);
    let mut root = RootContext::new(host, builder("relieved")).unwrap();
    // Another subscriber of the scheduler would have got the end, which the bridge has lost.
    let begins = Warning::BackpressureState { engaged: true, reason: PressureReason::Host };
    root.system().events().publish(&SystemEvent::Scheduler(begins));
    for _ in 0..6 * 60 {
        root.run_until_idle();
        clock.advance(Duration::from_secs(60));
    }
    root.run_until_idle();
    let is_pressure = |seen: &&Seen| seen.get("reason").starts_with("under pressure");
    let all = book.of("relieved");
    let warnings: Vec<_> = all.iter().filter(is_pressure).map(|seen| seen.get("reason")).collect();
    assert_eq!(warnings, ["under pressure for at most 60s of 60s: the host reports pressure"]);
}

#[test]
fn refused_messages_are_one_event_with_and_without_a_bridge() {
    let book = Book::open();
    for builder in [builder("full"), ActorSystem::builder("full without a bridge")] {
        let name = builder.name().to_owned();
        let runtime =
            InTime::new(Runtime::start(builder).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
        let Blocked { actor: slow, gate } = spawn_blocked(&runtime);
        assert_eq!((0..11).filter(|_| slow.tell(None).is_err()).count(), 10);
        gate.wait();
        drop(runtime.shutdown_in_time(LONG));
        let all = book.of(&name);
        let mut refusals = all.iter().filter(|seen| seen.is(Level::WARN, "warning", "/user/slow"));
        let reason = refusals.next().map(|seen| seen.get("reason"));
        assert_eq!(reason, Some("the mailbox was full and has refused 10 messages"), "{all:#?}");
        assert_eq!(refusals.count(), 0, "{all:#?}");
    }
}

#[test]
fn a_system_has_one_bridge_until_that_is_taken_away() {
    let book = Book::open();
    let runtime = InTime::new(Runtime::new("one").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let system = runtime.system();
    let first = TracingBridge::install(system).unwrap();
    let refused = TracingBridge::install(system).unwrap_err();
    assert!(refused.is_name_taken(), "{refused}");
    // The one that was refused has left nothing behind.
    assert_eq!(system.failure_hub().n_subscribers(), 1);
    first.uninstall();
    assert_eq!(system.events().subscribers(), 0);
    // Its end is seen before its name is free.
    let until = Instant::now() + LONG;
    let kinds = EventKinds::DEAD_LETTER;
    while let Err(refused) = TracingBridge::install_kinds(system, kinds) {
        assert!(Instant::now() < until, "{refused}");
        std::thread::yield_now();
    }
    let props = Props::from_fn(|_, (): ()| Ok(Next::Stay));
    let quiet = runtime.spawn("quiet", props).unwrap();
    system.stop(&quiet).unwrap();
    while !quiet.is_stopped() {
        assert!(Instant::now() < until);
        std::thread::yield_now();
    }
    system.dead_letters::<u64>().tell(1).unwrap();
    book.wait("one", |seen| seen.get("message_type") == "u64");
    // Nobody has asked for lifecycles.
    assert!(book.of("one").iter().all(|seen| seen.get("path") != "/user/quiet"));
}

#[test]
fn a_subscriber_that_panics_costs_the_event_that_it_panicked_at() {
    let book = Book::open();
    let runtime =
        InTime::new(Runtime::start(builder("bomb")).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let props = || Props::from_fn(|_, (): ()| Ok(Next::Stay));
    drop(runtime.spawn("bomb", props()).unwrap());
    drop(runtime.spawn("after", props()).unwrap());
    book.wait("bomb", |seen| seen.is(Level::DEBUG, "lifecycle", "/user/bomb"));
    book.wait("bomb", |seen| seen.is(Level::DEBUG, "lifecycle", "/user/after"));
    // The writer is not told of itself, or that would go on for ever.
    runtime.system().dead_letters::<u8>().tell(1).unwrap();
    book.wait("bomb", |seen| seen.get("message_type") == "u8");
    let all = book.of("bomb");
    assert!(all.iter().all(|seen| seen.get("message") != "failure"), "{all:#?}");
}

#[test]
fn a_task_has_a_span_that_is_entered_for_each_poll_and_closed_at_its_end() {
    let book = Book::open();
    let runtime = InTime::new(Runtime::new("spans").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let is_named = |span: &&TaskSpan| span.seen.get("name") == "a traced task";
    let line = line!() + 1;
    let task = runtime.spawn_named("a traced task", async move {
        clockjack_rt::yield_now().await;
        book.spans().iter().find(is_named).map(|span| span.entered - span.exited)
    });
    assert_eq!(runtime.block_on(task).unwrap(), Some(1), "it runs inside of its span");
    let unnamed = runtime.spawn_future(async {});
    runtime.block_on(unnamed).unwrap();
    // The last reference to a task may be dropped after it was joined, and the span with it.
    assert!(runtime.shutdown_in_time(LONG).is_clean());
    let spans = book.spans().clone();
    let [span] = spans.iter().filter(is_named).collect::<Vec<_>>()[..] else { panic!("{spans:?}") };
    assert_eq!(span.seen.level, Level::DEBUG);
    assert_eq!(span.seen.get("file"), file!());
    assert_eq!(span.seen.get("line"), line.to_string());
    // Two polls, and the drop of the future.
    assert_eq!((span.entered, span.exited, span.is_closed), (3, 3, true));
    let is_unnamed = |span: &TaskSpan| {
        span.seen.get("file") == file!() && !span.seen.fields.contains_key("name")
    };
    assert!(spans.iter().any(is_unnamed), "{spans:?}");
}
