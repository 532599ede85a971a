//! Panics in everything that is the user's, on two workers: they end no more than the actor.

use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use clockjack_rt::{
    Runtime,
    actor::{
        Actor, ActorRef, Context, EventKinds, Failure, Next, Props, Signal, Strategy, SystemEvent,
    },
};

use crate::in_time::ShutdownInTime as _;
use crate::{LONG, eventually::eventually, start};

/// Where it panics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Factory,
    Started,
    Handler,
    Hook,
    Drop,
    Never,
}

struct Fragile {
    at: At,
    n_handled: Arc<AtomicUsize>,
}

impl Actor for Fragile {
    type Msg = ();

    fn started(&mut self, _: &mut Context<'_, Self>) -> Result<Next, Failure> {
        assert!(self.at != At::Started, "started");
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.n_handled.fetch_add(1, SeqCst);
        match self.at {
            At::Handler => panic!("handler"),
            At::Hook | At::Drop => Ok(Next::Stop),
            _ => Ok(Next::Stay),
        }
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, _: Signal) -> Result<Next, Failure> {
        assert!(self.at != At::Hook, "hook");
        Ok(Next::Stay)
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(self.at != At::Drop, "drop");
    }
}

fn make(at: At, n_handled: &Arc<AtomicUsize>) -> impl FnMut() -> Fragile + Send + 'static {
    let n_handled = Arc::clone(n_handled);
    move || {
        assert!(at != At::Factory, "factory");
        Fragile { at, n_handled: Arc::clone(&n_handled) }
    }
}

/// The runtime still does what it is asked to.
#[track_caller]
fn assert_well(runtime: &Runtime) {
    let n_handled = Arc::default();
    let well: Vec<ActorRef<()>> = (0..64)
        .map(|n| runtime.spawn(&format!("well-{n}"), make(At::Never, &n_handled)).unwrap())
        .collect();
    well.iter().for_each(|actor| actor.tell(()).unwrap());
    eventually("others are handled", || n_handled.load(SeqCst) == 64);
}

#[test]
fn a_panic_anywhere_in_an_actor_stops_that_actor_and_no_worker() {
    for at in [At::Factory, At::Started, At::Handler, At::Hook, At::Drop] {
        let runtime = start(2);
        let n_handled = Arc::default();
        let actors: Vec<_> = (0..100)
            .map(|n| runtime.spawn(&format!("fragile-{n}"), make(at, &n_handled)).unwrap())
            .collect();
        for actor in &actors {
            // It may have stopped before.
            drop(actor.tell(()));
        }
        eventually("all have stopped", || actors.iter().all(ActorRef::is_stopped));
        let handled = match at {
            At::Factory | At::Started => 0,
            _ => 100,
        };
        assert_eq!(n_handled.load(SeqCst), handled, "{at:?}");
        assert_well(&runtime);
        let report = runtime.shutdown_in_time(LONG);
        assert!(report.is_clean(), "{at:?}: {report:?}");
    }
}

#[test]
fn a_panic_in_a_handler_is_a_failure_that_a_strategy_settles() {
    let runtime = start(2);
    let (sender, receiver) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let listener = Props::from_fn({
        let sender = Arc::new(sender);
        move |_: &mut Context<'_, _>, event: SystemEvent| {
            if let SystemEvent::Failure(info) = event {
                drop(sender.lock().unwrap().send(info.reason.to_string()));
            }
            Ok(Next::Stay)
        }
    });
    let listener = runtime.spawn("listener", listener).unwrap();
    runtime.system().events().subscribe(EventKinds::FAILURE, listener);
    let n_handled = Arc::default();
    let props = Props::new(make(At::Handler, &n_handled)).supervise(Strategy::restart());
    let actor = runtime.spawn("fragile", props).unwrap();
    (0..10).for_each(|_| actor.tell(()).unwrap());
    for _ in 0..10 {
        let reason = receiver.recv_timeout(LONG).unwrap();
        assert!(reason.contains("handler"), "{reason}");
    }
    assert_eq!(n_handled.load(SeqCst), 10);
    assert!(!actor.is_stopped());
}
