//! The threads of a runtime's dispatchers, counted by name.

use core::time::Duration;
use std::sync::{Arc, Mutex, mpsc};

use clockjack_rt::{
    OsInstant, Parker, Runtime, RuntimeConfig,
    actor::{
        ActorSystem, EventKinds, Next, Props, SystemEvent,
        system::{PolicyAnswer, RealtimeClass, ThreadPolicy},
    },
};
use clockjack_testing::InTime;

use crate::in_time::ShutdownInTime as _;
use crate::{
    eventually::eventually,
    switches::{context_switches, n_threads},
};

/// Looks at pinned threads; nothing else in this file may start two runtimes with such at once.
const THREAD_WATCH: &str = "cj-thread-watch";

fn pause(time: Duration) {
    Parker::new().park(Some(OsInstant::now().saturating_add(time)));
}

#[test]
fn the_threads_of_dispatchers_end_with_the_runtime() {
    let runtime = InTime::new(Runtime::new("t").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let system = runtime.system();
    system.create_dispatcher("cjt-apart", 3).unwrap();
    let pinned = system.create_pinned("cjt-pin").unwrap();
    system.spawn_pinned(&pinned, "a", Props::from_fn(|_, (): ()| Ok(Next::Stay))).unwrap();
    let count = || (n_threads("cjt-apart").unwrap(), n_threads("cjt-pin").unwrap());
    assert_eq!(count(), (3, 1));
    assert!(runtime.shutdown_in_time(Duration::from_secs(60)).is_clean());
    assert_eq!(count(), (0, 0));
    who_looks_at_pinned_threads_sleeps_with_them_and_is_called_when_one_wakes();
    a_thread_for_one_task_ends_with_it_and_nobody_looks_at_it_any_more();
    what_a_thread_asks_for_is_answered_one_by_one();
    assert_eq!(n_threads(THREAD_WATCH).unwrap(), 0);
}

/// Not a test of its own: the threads that look have one name in all runtimes.
fn who_looks_at_pinned_threads_sleeps_with_them_and_is_called_when_one_wakes() {
    let stuck_after = Duration::from_millis(40);
    let config = RuntimeConfig { workers: Some(1), stuck_after, ..RuntimeConfig::DEFAULT };
    let runtime = InTime::new(
        Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let pinned = runtime.system().create_pinned("cjt-idle").unwrap();
    let (sender, receiver) = mpsc::channel();
    let listener = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::Stuck(stuck) = event {
            sender.send(stuck.path)?;
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
            let before = context_switches(THREAD_WATCH).unwrap();
            pause(quiet);
            context_switches(THREAD_WATCH).unwrap() == before
        });
        busy.tell(()).unwrap();
        assert_eq!(receiver.recv().unwrap(), busy.path());
        release.send(()).unwrap();
    }
    assert!(runtime.shutdown_in_time(Duration::from_secs(60)).is_clean());
}

/// Not a test of its own, as above.
fn a_thread_for_one_task_ends_with_it_and_nobody_looks_at_it_any_more() {
    const NAME: &str = "cjt-own";
    /// More than there can be at once.
    const MANY: usize = 1100;
    let runtime = InTime::new(Runtime::new("t").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let own_thread = || runtime.system().own_thread(NAME, &ThreadPolicy::default()).unwrap();
    let name = || async { std::thread::current().name().map(str::to_owned) };
    let own = own_thread();
    let task = own.executor().spawn_future(name());
    assert_eq!(runtime.block_on(task).unwrap().as_deref(), Some(NAME));
    // Dropped by a task of its own, it does not wait for itself.
    let thread = own.executor().clone();
    drop(thread.spawn_future(async move { drop(own) }));
    eventually("it ends", || n_threads(NAME).unwrap() == 0);
    for _ in 0..MANY {
        drop(own_thread());
    }
    eventually("all end", || n_threads(NAME).unwrap() == 0);
    eventually("nobody looks at those that are gone", || {
        let before = context_switches(THREAD_WATCH).unwrap();
        pause(Duration::from_millis(200));
        context_switches(THREAD_WATCH).unwrap() == before
    });
    let left = own_thread();
    assert_eq!(n_threads(NAME).unwrap(), 1);
    assert!(runtime.shutdown_in_time(Duration::from_secs(60)).is_clean());
    assert_eq!(n_threads(NAME).unwrap(), 0, "it ends with the runtime, too");
    drop(left);
}

/// Not a test of its own, as above.
fn what_a_thread_asks_for_is_answered_one_by_one() {
    let runtime = InTime::new(Runtime::new("t").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let own_thread = |policy: &ThreadPolicy| runtime.system().own_thread("cjt-asks", policy);
    let none = own_thread(&ThreadPolicy::default()).unwrap();
    let answers = none.answers();
    let answers = [&answers.cpus, &answers.niceness, &answers.realtime];
    assert!(answers.iter().all(|answer| **answer == PolicyAnswer::NotAsked));
    let policy = ThreadPolicy {
        cpus: vec![1023],
        niceness: Some(7),
        realtime: Some((RealtimeClass::Fifo, 100)),
    };
    let some = own_thread(&policy).unwrap();
    let answers = some.answers();
    assert_eq!(answers.cpus, PolicyAnswer::Refused("this process has no cpu 1023".into()));
    assert_eq!(answers.niceness, PolicyAnswer::Applied);
    let PolicyAnswer::Refused(says) = &answers.realtime else { panic!("{answers:?}") };
    assert!(says.starts_with("Invalid argument"), "{says}");
    let niceness = some.executor().spawn_future(async {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let behind_name = stat.rsplit_once(')').unwrap().1;
        behind_name.split_whitespace().nth(19 - 3).unwrap().to_owned()
    });
    assert_eq!(runtime.block_on(niceness).unwrap(), "7");
}
