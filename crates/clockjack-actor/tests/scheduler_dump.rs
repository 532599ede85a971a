//! The service that dumps the scheduler, while another thread starts it.

extern crate alloc;

#[expect(dead_code, reason = "nothing is logged here")]
#[path = "support/bench.rs"]
mod bench;

use core::{
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};
use std::thread;

use bench::start;
use clockjack_actor::{
    Actor, ActorSystem, Context, Failure, IntoProps, Next, Props, SchedulerDumpRequest,
};
use clockjack_sync::backoff;

static IS_WAITING: AtomicBool = AtomicBool::new(false);
static IS_STARTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_SECOND: Cell<bool> = const { Cell::new(false) };
}

/// Lets the second thread wait until the first has started the service.
fn wait(_: u32) {
    if IS_SECOND.get() {
        IS_WAITING.store(true, SeqCst);
        while !IS_STARTED.load(SeqCst) {
            thread::yield_now();
        }
    }
}

/// Stands for the service.
struct Dumps;

impl Actor for Dumps {
    type Msg = SchedulerDumpRequest;

    fn receive(
        &mut self,
        _: &mut Context<'_, Self>,
        _: SchedulerDumpRequest,
    ) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

/// Props that are made by a closure, which finds the name of the actor taken.
struct Late<M>(M);

impl<F: FnMut() -> Dumps + 'static, M: FnOnce() -> Props<Dumps, F>> IntoProps for Late<M> {
    type Actor = Dumps;
    type Factory = F;

    fn into_props(self) -> Props<Dumps, F> {
        (self.0)()
    }
}

#[test]
fn a_call_next_to_the_one_that_starts_the_service_waits_for_it() {
    backoff::set_wait(wait);
    let (root, _clock) = start(ActorSystem::builder("t"));
    let system = root.system();
    thread::scope(|scope| {
        let mut second = None;
        let late = Late(|| {
            let second = second.insert(scope.spawn(|| {
                IS_SECOND.set(true);
                system.scheduler_dumps()
            }));
            while !IS_WAITING.load(SeqCst) && !second.is_finished() {
                thread::yield_now();
            }
            Props::new(|| Dumps)
        });
        let started = system.spawn_system("scheduler-dumps", late).ok();
        IS_STARTED.store(true, SeqCst);
        let found = second.expect("it was started").join().unwrap();
        assert_eq!(found.unwrap(), started.expect("it fits"));
    });
}
