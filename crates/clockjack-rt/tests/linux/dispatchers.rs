//! The threads of a runtime's dispatchers, counted by name.

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::{Mutex, mpsc};

use clockjack_rt::{
    OsInstant, Parker, PoolConfig, Runtime,
    actor::{ActorSystem, EventKinds, Next, Props, SystemEvent},
};

use crate::{
    eventually::eventually,
    switches::{context_switches, n_threads},
};

/// Looks at pinned threads; nothing else in this file may start two runtimes with such at once.
const LOOKOUT: &str = "cj-lookout";

fn pause(time: Duration) {
    Parker::new().park(Some(OsInstant::now().saturating_add(time)));
}

#[test]
fn the_threads_of_dispatchers_end_with_the_runtime() {
    let runtime = Runtime::new("t").unwrap();
    let system = runtime.system();
    system.dispatcher("cjt-apart", 3).unwrap();
    let pinned = system.pinned("cjt-pin").unwrap();
    system.spawn_pinned(&pinned, "a", Props::from_fn(|_, (): ()| Ok(Next::Stay))).unwrap();
    let count = || (n_threads("cjt-apart").unwrap(), n_threads("cjt-pin").unwrap());
    assert_eq!(count(), (3, 1));
    assert!(runtime.shutdown(Duration::from_secs(60)).is_clean());
    assert_eq!(count(), (0, 0));
    who_looks_at_pinned_threads_sleeps_with_them_and_is_called_when_one_wakes();
    assert_eq!(n_threads(LOOKOUT).unwrap(), 0);
}

/// Not a test of its own: the threads that look have one name in all runtimes.
fn who_looks_at_pinned_threads_sleeps_with_them_and_is_called_when_one_wakes() {
    let stuck_after = Duration::from_millis(40);
    let config = PoolConfig { workers: Some(1), stuck_after, ..PoolConfig::DEFAULT };
    let runtime = Runtime::start_with(ActorSystem::builder("t"), config).unwrap();
    let pinned = runtime.system().pinned("cjt-idle").unwrap();
    let (told, heard) = mpsc::channel();
    let listener = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::Stuck(stuck) = event {
            told.send(stuck.path)?;
        }
        Ok(Next::Stay)
    });
    let listener = runtime.spawn("listener", listener).unwrap();
    runtime.system().events().subscribe(EventKinds::STUCK, listener);
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let props = Props::from_fn(move |_, (): ()| {
        released.lock().unwrap().recv()?;
        Ok(Next::Stay)
    });
    let busy = runtime.spawn("busy", props.dispatcher(pinned.id())).unwrap();
    // More than ten of its looks, if it looked.
    let quiet = Duration::from_millis(200);
    for _ in 0..3 {
        eventually("nobody looks while there is nothing to see", || {
            let before = context_switches(LOOKOUT).unwrap();
            pause(quiet);
            context_switches(LOOKOUT).unwrap() == before
        });
        busy.tell(()).unwrap();
        assert_eq!(heard.recv().unwrap(), busy.path());
        release.send(()).unwrap();
    }
    assert!(runtime.shutdown(Duration::from_secs(60)).is_clean());
}
