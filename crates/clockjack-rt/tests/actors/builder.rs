//! What a builder sets up before there is a system: dispatchers, and who observes the root.

use core::time::Duration;
use std::{
    rc::Rc,
    sync::{Arc, Mutex, mpsc},
    thread,
};

use clockjack_rt::{
    Runtime,
    actor::{
        Actor, ActorSystem, Context, DispatcherConfig, Failure, Mailbox, Next, Props, RootContext,
        RootFailure, Scope, StartError, StaticError, Strategy, SystemBuilder,
        observe::{
            Event, Record,
            event::ActorId,
            recorder::{Ring, Writer},
        },
    },
    sched::DispatcherId,
};
use clockjack_testing::toolbox::ByHand;
use clockjack_time::{ManualClock, Resolution};

use crate::{LONG, Log, in_time::ShutdownInTime as _, start_with};

/// A system on one thread, and the hand of its clock.
fn on_one(builder: SystemBuilder) -> Result<(RootContext, Arc<ManualClock>), StartError> {
    let (host, clock) = ByHand::new(Resolution::MILLI);
    Ok((RootContext::new(host, builder)?, clock))
}

/// Reports the name of the thread that it runs on.
fn teller(sender: &mpsc::Sender<String>, on: DispatcherId) -> impl Fn() + Clone + use<> {
    let sender = sender.clone();
    move || {
        let name = thread::current().name().unwrap_or_default().to_owned();
        sender.send(format!("{} {name}", on.0)).unwrap();
    }
}

#[test]
fn dispatchers_of_a_builder_are_there_when_the_first_hook_of_the_start_runs() {
    let builder = ActorSystem::builder("t")
        .dispatcher(DispatcherConfig::pool("reports", 2))
        .dispatcher(DispatcherConfig::pinned("till"));
    let (reports, till) =
        (builder.dispatcher_id("reports").unwrap(), builder.dispatcher_id("till").unwrap());
    assert_eq!(builder.dispatcher_id("none"), None);
    let (sender, receiver) = mpsc::channel();
    let builder = builder.on_start(move |system| {
        for on in [reports, till] {
            let tell = teller(&sender, on);
            let props = Props::from_fn(move |_, (): ()| {
                tell();
                Ok(Next::Stay)
            });
            system.spawn(&format!("on-{}", on.0), props.dispatcher(on))?.tell(())?;
        }
        Ok(())
    });
    let runtime = start_with(builder, 1);
    let mut names: Vec<_> = (0..2).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
    names.sort_unstable();
    assert!(names[0].starts_with(&format!("{} reports", reports.0)), "{names:?}");
    assert!(names[1].starts_with(&format!("{} till", till.0)), "{names:?}");
    let system = runtime.system();
    assert_eq!(system.dispatcher_id("reports"), Some(reports));
    assert_eq!(system.dispatcher_id("till"), Some(till));
    // Those that are made later have other names and numbers.
    assert!(system.create_dispatcher("till", 1).unwrap_err().is_name_taken());
    let later = system.create_dispatcher("later", 1).unwrap();
    assert!(later != reports && later != till);
    assert_eq!(system.dispatcher_id("later"), Some(later));
}

struct Local(Rc<u32>, mpsc::Sender<u32>);

impl Actor for Local {
    type Msg = ();

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.1.send(*self.0)?;
        Ok(Next::Stay)
    }
}

#[test]
fn a_pinned_thread_of_a_builder_is_found_and_takes_what_is_not_send() {
    let builder = ActorSystem::builder("t")
        .dispatcher(DispatcherConfig::pool("reports", 1))
        .dispatcher(DispatcherConfig::pinned("till"));
    let runtime = start_with(builder, 1);
    let system = runtime.system();
    // Actors that are not `Send` would not stay on one thread of a pool.
    assert!(system.find_pinned("reports").is_none());
    assert!(system.find_pinned("none").is_none());
    let till = system.find_pinned("till").unwrap();
    let (sender, receiver) = mpsc::channel();
    let make = move || Local(Rc::new(7), sender.clone());
    system.spawn_pinned(&till, "local", make).unwrap().tell(()).unwrap();
    assert_eq!(receiver.recv_timeout(LONG).unwrap(), 7);
}

fn refusal(builder: SystemBuilder) -> StartError {
    Runtime::start(builder).unwrap_err()
}

#[test]
fn a_dispatcher_that_cannot_be_is_the_failure_of_the_start() {
    let builder = |second| {
        ActorSystem::builder("t")
            .dispatcher(DispatcherConfig::pool("twice", 1))
            .dispatcher(second)
            .on_start(|_| panic!("the dispatchers come first"))
    };
    for second in [DispatcherConfig::pool("twice", 1), DispatcherConfig::pinned("twice")] {
        let refused = refusal(builder(second));
        assert!(refused.is_name_taken(), "{refused}");
        assert!(refused.to_string().contains("twice"), "{refused}");
    }
    assert!(refusal(builder(DispatcherConfig::pool("none", 0))).is_zero_workers());
    assert!(refusal(builder(DispatcherConfig::pool("many", 5000))).is_too_many_workers());
}

#[test]
fn a_host_without_threads_refuses_the_dispatchers_of_a_builder() {
    for config in [DispatcherConfig::pool("reports", 1), DispatcherConfig::pinned("till")] {
        let refused = on_one(ActorSystem::builder("t").dispatcher(config));
        assert!(refused.unwrap_err().is_unsupported());
    }
    assert!(on_one(ActorSystem::builder("t")).is_ok());
}

static OUT_OF_PAPER: StaticError = StaticError::new(7, "out of paper");

/// Its users' failures come up to the root, and it goes on.
fn escalating() -> SystemBuilder {
    ActorSystem::builder("t")
        .supervise_users(Scope::OneForOne, Strategy::escalate())
        .shutdown_on_escalation(false)
}

#[test]
fn a_failure_at_the_root_is_an_event_for_recorders_with_its_numbers() {
    let flight = Arc::new(Ring::new(8));
    let mut writer = Writer::claim(Arc::clone(&flight)).expect("nobody else writes");
    let seen = Arc::new(Mutex::new(Vec::<RootFailure>::new()));
    let log = Arc::clone(&seen);
    let builder = escalating().observe_root(move |failure| {
        let record = failure.record();
        writer.write(record.at_ns, record.event);
        log.lock().unwrap().push(*failure);
    });
    let (mut root, clock) = on_one(builder).unwrap();
    let props = Props::from_fn(|_, (): ()| Err::<(), _>(OUT_OF_PAPER.failure()))
        .supervise(Strategy::restart().limit(1, Duration::from_secs(60)));
    let printer = root.spawn("printer", props).unwrap();
    printer.tell(()).unwrap();
    root.run_until_idle();
    assert!(seen.lock().unwrap().is_empty(), "it was restarted");
    clock.advance(Duration::from_millis(5));
    printer.tell(()).unwrap();
    root.run_until_idle();

    let seen = seen.lock().unwrap();
    let [failure] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(failure.actor, printer.pid());
    assert_eq!((failure.stage, failure.restarts, failure.code), (2, 1, Some(7)));
    assert_eq!(failure.at_ns, 5_000_000);
    let id = |index| ActorId::new(0, index);
    let (actor, to) = (id(printer.pid().index()), id(failure.root.index()));
    let event = Event::FailureEscalated { actor, to, stage: 2 };
    assert_eq!(flight.reader().read(), Some(Record::new(5_000_000, event)));
}

#[test]
fn an_observer_of_the_root_comes_first_and_may_panic() {
    let log = Log::default();
    let (observed, escalated) = (log.clone(), log.clone());
    let builder = escalating()
        .on_escalation(move |info| escalated.add(format!("told {}", info.reason.text())))
        .observe_root(move |failure| {
            observed.add(format!("observed {:?}", failure.code));
            panic!("no room on the disk");
        });
    let (mut root, _clock) = on_one(builder).unwrap();
    for name in ["a", "b"] {
        let props = Props::from_fn(|_, (): ()| Err::<(), _>(OUT_OF_PAPER.failure()));
        root.spawn(name, props).unwrap().tell(()).unwrap();
        root.run_until_idle();
    }
    let once = ["observed Some(7)", "told out of paper"];
    assert_eq!(log.lines(), [once, once].concat());
}

#[test]
fn a_listener_of_refusals_is_not_called_on_the_thread_of_the_sender() {
    let (sender, receiver) = mpsc::channel();
    let builder = ActorSystem::builder("t").on_refusals(move |_, refusals| {
        _ = sender.send((thread::current().id(), refusals.refused));
    });
    // One worker is blocked, and the other one can report.
    let rt = start_with(builder, 2);
    // No job can report.
    rt.system().scheduler().jobs().shutdown();
    let (gate, opened) = mpsc::channel::<()>();
    let opened = Arc::new(Mutex::new(opened));
    let props = Props::from_fn(move |_, (): ()| {
        _ = opened.lock().unwrap().recv();
        Ok(Next::Stay)
    });
    let busy = rt.spawn("busy", props.mailbox(Mailbox::bounded(1))).unwrap();
    while busy.tell(()).is_ok() {}
    let (thread, refused) = receiver.recv_timeout(LONG).unwrap();
    assert_ne!(thread, thread::current().id());
    assert_eq!(refused, 1);
    drop(gate);
    assert!(rt.shutdown_in_time(LONG).is_clean());
}
