//! A handler that does not return is reported, while it runs, wherever it runs.

use core::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};
use std::{
    rc::Rc,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Instant,
};

use crate::in_time::ShutdownInTime as _;
use clockjack_rt::{
    BLOCKING_DISPATCHER, Runtime, RuntimeConfig,
    actor::{
        Actor, ActorRef, ActorSystem, Context, EventKinds, Failure, Next, Props, Stuck, SystemEvent,
    },
};
use clockjack_testing::InTime;

const STUCK_AFTER: Duration = Duration::from_millis(50);

/// A runtime, and what it says about handlers that do not return.
fn start(stuck_after: Duration) -> (InTime<Runtime>, mpsc::Receiver<Stuck>) {
    let config = RuntimeConfig { workers: Some(2), stuck_after, ..RuntimeConfig::DEFAULT };
    let rt = InTime::new(
        Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let (sender, receiver) = mpsc::channel::<Stuck>();
    let listener = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::Stuck(stuck) = event {
            sender.send(stuck)?;
        }
        Ok(Next::Stay)
    });
    let listener = rt.spawn("listener", listener).unwrap();
    rt.system().events().subscribe(EventKinds::STUCK, listener);
    (rt, receiver)
}

/// A handler that does not return until it is let go.
#[derive(Clone, Default)]
struct Gate(Arc<AtomicBool>);

impl Gate {
    fn pass(&self) {
        while !self.0.load(SeqCst) {
            thread::yield_now();
        }
    }

    fn open(&self) {
        self.0.store(true, SeqCst);
    }
}

/// Not `Send`.
struct Local(Rc<Gate>);

impl Actor for Local {
    type Msg = u32;

    fn receive(&mut self, _: &mut Context<'_, Self>, _: u32) -> Result<Next, Failure> {
        self.0.pass();
        Ok(Next::Stay)
    }
}

/// Its handler is notified of while it runs: nothing else lets it go on.
fn is_told(busy: &ActorRef<u32>, gate: &Gate, receiver: &mpsc::Receiver<Stuck>) -> Stuck {
    busy.tell(7).unwrap();
    let stuck = receiver.recv().unwrap();
    assert_eq!((stuck.pid, &stuck.path), (busy.pid(), &busy.path()));
    assert!(stuck.running_for >= STUCK_AFTER);
    assert_eq!(stuck.message_type, "u32");
    gate.open();
    stuck
}

#[test]
fn a_handler_that_does_not_return_is_reported_once_with_its_actor() {
    let (rt, receiver) = start(STUCK_AFTER);
    let gate = Gate::default();
    let at = gate.clone();
    let busy = Props::from_fn(move |_, _: u32| {
        at.pass();
        Ok(Next::Stay)
    });
    let busy = rt.spawn("busy", busy).unwrap();
    let stuck = is_told(&busy, &gate, &receiver);
    assert_eq!(stuck.path.to_string(), "/user/busy");
    assert!(stuck.actor_type.contains("FnActor"), "{}", stuck.actor_type);
    assert!(rt.shutdown_in_time(Duration::from_secs(60)).is_clean());
    assert!(receiver.try_recv().is_err(), "each step is told once");
}

#[test]
fn a_handler_that_does_not_return_is_reported_on_every_kind_of_dispatcher() {
    let (rt, receiver) = start(STUCK_AFTER);
    let system = rt.system();
    let pinned = system.create_pinned("pinned").unwrap();
    let kinds = [system.create_dispatcher("apart", 2).unwrap(), BLOCKING_DISPATCHER, pinned.id()];
    // Twice: who looks has slept between the two.
    for round in 0..2 {
        for (n, dispatcher) in kinds.into_iter().enumerate() {
            let gate = Gate::default();
            let at = gate.clone();
            let busy = Props::from_fn(move |_, _: u32| {
                at.pass();
                Ok(Next::Stay)
            });
            let name = format!("busy-{round}-{n}");
            let busy = rt.spawn(&name, busy.dispatcher(dispatcher)).unwrap();
            is_told(&busy, &gate, &receiver);
        }
        let gate = Gate::default();
        let at = gate.clone();
        let make = move || Local(Rc::new(at.clone()));
        let local = system.spawn_pinned(&pinned, &format!("local-{round}"), make).unwrap();
        let stuck = is_told(&local, &gate, &receiver);
        assert!(stuck.actor_type.ends_with("Local"), "{}", stuck.actor_type);
    }
    assert!(rt.shutdown_in_time(Duration::from_secs(60)).is_clean());
    assert!(receiver.try_recv().is_err(), "each step is told once");
}

/// The longest time between a handler's begin and the next one's, on one thread.
#[derive(Clone)]
struct Pulse(Arc<Mutex<(Instant, Duration)>>);

impl Pulse {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((Instant::now(), Duration::ZERO))))
    }

    fn beat(&self) {
        let mut pulse = self.0.lock().unwrap();
        pulse.1 = pulse.1.max(pulse.0.elapsed());
        pulse.0 = Instant::now();
    }

    fn longest(&self) -> Duration {
        self.0.lock().unwrap().1
    }
}

#[test]
fn handlers_on_pinned_threads_that_return_are_not_reported_however_many_there_are() {
    let limit = 10 * STUCK_AFTER;
    let (rt, receiver) = start(limit);
    let pinned = rt.system().create_pinned("pinned").unwrap();
    let (sender, ended) = mpsc::channel();
    let pulse = Pulse::new();
    // One actor after another has its turn, for several times what one handler may take; each by
    // itself is done at once.
    for n in 0..8_u32 {
        let (sender, pulse, mut left) = (sender.clone(), pulse.clone(), 150);
        let props = Props::from_fn(move |cx: &mut Context<'_, _>, beat: u32| {
            pulse.beat();
            thread::sleep(Duration::from_millis(1));
            left -= 1;
            if left > 0 {
                cx.self_ref().tell(beat)?;
            } else {
                sender.send(beat)?;
            }
            Ok(Next::Stay)
        });
        rt.spawn(&format!("{n}"), props.dispatcher(pinned.id())).unwrap().tell(n).unwrap();
    }
    drop(sender);
    assert_eq!(ended.iter().take(8).count(), 8);
    pulse.beat();
    // A thread that the machine has held up for so long may well be reported.
    let is_told = receiver.try_recv().is_ok();
    assert!(!is_told || pulse.longest() > limit / 8, "none of them took long");
    assert!(rt.shutdown_in_time(Duration::from_secs(60)).is_clean());
}
