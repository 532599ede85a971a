//! A handler that does not return is reported, while it runs.

use core::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};
use std::{sync::mpsc, thread};

use alloc::sync::Arc;

use clockjack_rt::{
    PoolConfig, Runtime,
    actor::{ActorSystem, EventKinds, Next, Props, Stuck, SystemEvent},
};

#[test]
fn a_handler_that_does_not_return_is_reported_once_with_its_actor() {
    let stuck_after = Duration::from_millis(50);
    let config = PoolConfig { workers: Some(2), stuck_after, ..PoolConfig::DEFAULT };
    let rt = Runtime::start_with(ActorSystem::builder("t"), config).unwrap();
    let (told, heard) = mpsc::channel::<Stuck>();
    let listener = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::Stuck(stuck) = event {
            told.send(stuck)?;
        }
        Ok(Next::Stay)
    });
    let listener = rt.spawn("listener", listener).unwrap();
    rt.system().events().subscribe(EventKinds::STUCK, listener);

    let is_released = Arc::new(AtomicBool::new(false));
    let released = Arc::clone(&is_released);
    let busy = Props::from_fn(move |_, _: u32| {
        while !released.load(SeqCst) {
            thread::yield_now();
        }
        Ok(Next::Stay)
    });
    let busy = rt.spawn("busy", busy).unwrap();
    busy.tell(7).unwrap();

    // It is told before the handler returns: nothing else lets that go on.
    let stuck = heard.recv().unwrap();
    assert_eq!((stuck.pid, stuck.path.to_string().as_str()), (busy.pid(), "/user/busy"));
    assert!(stuck.running_for >= stuck_after);
    assert_eq!(stuck.message_type, "u32");
    assert!(stuck.actor_type.contains("FnActor"), "{}", stuck.actor_type);
    is_released.store(true, SeqCst);
    assert!(rt.shutdown(Duration::from_secs(60)).is_clean());
    assert!(heard.try_recv().is_err(), "each step is told once");
}
