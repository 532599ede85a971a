//! The shape of actors, references and systems.

use alloc::rc::Rc;
use core::cell::Cell;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, EscalationStage, EventKinds, Failure, FailureInfo, Next,
    Props, Signal, SpawnError, Strategy, SystemEvent, SystemMessage, Terminated,
};
use core::{convert::Infallible, time::Duration};
use std::sync::Mutex;

use alloc::sync::Arc;

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, Plan, events, props, run},
};

/// Neither the actor nor its messages may leave their thread.
struct Local {
    sum: Rc<Cell<u32>>,
    has_child: bool,
}

impl Actor for Local {
    type Msg = Rc<u32>;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        if self.has_child {
            let sum = Rc::clone(&self.sum);
            let child = move || Self { sum: Rc::clone(&sum), has_child: false };
            cx.spawn_local_child("child", child).map_err(SpawnError::discard)?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, n: Rc<u32>) -> Result<Next, Failure> {
        self.sum.set(self.sum.get() + *n);
        if let Some(child) = cx.child::<Rc<u32>>("child") {
            let told = child.tell(n);
            assert!(told.is_ok(), "it has room");
        }
        Ok(Next::Stay)
    }
}

#[test]
fn actors_and_messages_of_one_thread_need_not_be_send() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let sum = Rc::new(Cell::new(0));
    let own = Rc::clone(&sum);
    let make = move || Local { sum: Rc::clone(&own), has_child: true };
    let actor = root.spawn("a", make).unwrap();
    root.run_until_idle();
    assert!(actor.tell(Rc::new(7)).is_ok());
    root.run_until_idle();
    assert_eq!(sum.get(), 14);
}

#[test]
fn a_closure_is_an_actor_and_a_restart_takes_a_fresh_one() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (to, mut sum) = (log.clone(), 0);
    let props = Props::from_fn(move |_, n: u32| {
        sum += n;
        to.add(sum.to_string());
        if n == 0 { Err(Failure::msg("nothing to add")) } else { Ok(Next::Stay) }
    });
    let actor = root.spawn("a", props.supervise(Strategy::restart())).unwrap();
    [1, 2, 0, 4].iter().for_each(|n| actor.tell(*n).unwrap());
    root.run_until_idle();
    assert_eq!(log.take(), ["1", "3", "3", "4"]);
}

/// Records its address in memory.
struct Placed(Log);

impl Actor for Placed {
    type Msg = ();

    fn started(&mut self, _: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let here: *const Self = self;
        self.0.add(format!("{here:p}"));
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Err(Failure::msg("again"))
    }
}

#[test]
fn a_restart_makes_the_new_value_where_the_old_one_was() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let props = Props::new(move || Placed(to.clone())).supervise(Strategy::restart());
    let actor = root.spawn("a", props).unwrap();
    (0..3).for_each(|_| actor.tell(()).unwrap());
    root.run_until_idle();
    let places = log.take();
    assert_eq!(places.len(), 4);
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
}

#[test]
fn what_is_unhandled_is_told_and_the_actor_goes_on() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::UNHANDLED, &told);
    let a = root.spawn("a", props(&log)).unwrap();
    run(&mut root, &a, |_, _| Ok(Next::Unhandled));
    a.tell(Msg::Say("goes on")).unwrap();
    root.run_until_idle();
    assert_eq!(told.take(), ["unhandled by /user/a"]);
    assert_eq!(log.take(), ["a started", "a goes on"]);
}

#[test]
fn an_address_is_one_word_that_threads_may_share() {
    fn is_shared<T: Clone + Send + Sync>() {}
    // A message that only moves between threads is enough.
    is_shared::<ActorRef<Cell<u32>>>();
    assert_eq!(size_of::<ActorRef<[u8; 100]>>(), size_of::<usize>());
    assert_eq!(size_of::<Option<ActorRef<u8>>>(), size_of::<usize>());
}

#[test]
fn a_mapped_address_is_of_the_same_actor() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log)).unwrap();
    let texts: ActorRef<&'static str> = a.map(Msg::Say);
    let lines: ActorRef<(u8, &'static str)> = texts.map(|(_, text)| text);
    assert_eq!((lines.pid(), lines.path()), (a.pid(), a.path()));
    a.tell(Msg::Say("one")).unwrap();
    lines.tell((0, "two")).unwrap();
    texts.tell("three").unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a started", "a one", "a two", "a three"]);
}

#[test]
fn an_actor_is_found_by_its_path_and_the_type_of_its_messages() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let a = root.spawn("a", props(&Log::default())).unwrap();
    let find = |path: &str| root.system().lookup::<Msg>(path);
    assert_eq!(find("/user/a").unwrap(), a);
    assert!(find("/user/b").unwrap_err().is_not_found());
    assert!(find("user/a").unwrap_err().is_not_a_path());
    let other = root.system().lookup::<u8>("/user/a").unwrap_err();
    assert!(other.is_other_messages(), "{other}");
    // By name and by pid; only the pid distinguishes two actors of one name.
    assert_eq!(a.path().to_string(), "/user/a");
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    let again = root.spawn("a", props(&Log::default())).unwrap();
    assert_eq!(again.path(), a.path());
    assert_ne!(again.pid(), a.pid());
}

#[test]
fn guardians_are_actors() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let paths: Vec<_> = root.system().tree().iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["/", "/system", "/user"]);
    let log = Log::default();
    let to = log.clone();
    let user = root.system().lookup::<Infallible>("/user").unwrap();
    struct Watcher(ActorRef<Infallible>, Log);
    impl Actor for Watcher {
        type Msg = ();
        fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
            cx.watch(&self.0)?;
            Ok(Next::Stay)
        }
        fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
            Ok(Next::Stay)
        }
        fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
            self.1.add(match signal {
                Signal::Terminated(end) => format!("{} has ended", end.path),
                other => format!("{other:?}"),
            });
            Ok(Next::Stay)
        }
    }
    let watched = user.clone();
    let watcher = move || Watcher(watched.clone(), to.clone());
    root.system().spawn_system("watcher", watcher).unwrap();
    root.run_until_idle();
    drop(root.system().shutdown());
    root.run_until_idle();
    assert!(user.is_stopped());
    // `/system` exists as long as there are actors under `/user`.
    assert_eq!(log.take(), ["/user has ended", "PostStop"]);
}

#[test]
fn a_failure_tells_who_failed_by_what_and_how_often_before() {
    let seen: Arc<Mutex<Vec<FailureInfo>>> = Arc::default();
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let to = Arc::clone(&seen);
    let listener = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::Failure(info) = event {
            to.lock().unwrap().push(info);
        }
        Ok(Next::Stay)
    });
    let listener = root.spawn("listener", listener).unwrap();
    root.system().events().subscribe(EventKinds::FAILURE, listener);
    let strategy = Strategy::restart().limit(2, Duration::from_secs(10));
    let a = root.spawn("a", props(&Log::default()).supervise(strategy)).unwrap();
    for _ in 0..3 {
        clock.advance(Duration::from_millis(1));
        a.tell(Msg::Fail).unwrap();
        root.run_until_idle();
    }
    let seen = seen.lock().unwrap();
    // A logger can choose its level by the count.
    let restarts: Vec<_> = seen.iter().map(|info| info.restart_stats.restarts).collect();
    assert_eq!(restarts, [0, 1, 2]);
    let last = seen.last().unwrap();
    assert_eq!((last.actor, last.path.to_string().as_str()), (a.pid(), "/user/a"));
    assert_eq!(last.reason.to_string(), "failed");
    assert_eq!(last.stage, EscalationStage::Initial);
    assert_eq!(last.restart_stats.last_restart_nanos, Some(2_000_000));
    assert_eq!(last.message_type, Some(core::any::type_name::<Msg>()));
    assert!(a.is_stopped());
}

#[test]
fn a_failure_names_the_message_by_which_it_came_and_none_if_it_came_without_one() {
    let seen: Arc<Mutex<Vec<Option<&'static str>>>> = Arc::default();
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let to = Arc::clone(&seen);
    let listener = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::Failure(info) = event {
            to.lock().unwrap().push(info.message_type);
        }
        Ok(Next::Stay)
    });
    let listener = root.spawn("listener", listener).unwrap();
    root.system().events().subscribe(EventKinds::FAILURE, listener);
    let plan = Plan::default().signal(|_, _, signal| match signal {
        Signal::ReceiveTimeout => panic!("in a signal"),
        _ => None,
    });
    let props = plan.props(&Log::default()).supervise(Strategy::resume());
    let a = root.spawn("a", props).unwrap();
    a.tell(Msg::Fail).unwrap();
    a.tell(Msg::Panic).unwrap();
    a.tell_control(Msg::Panic).unwrap();
    root.run_until_idle();
    let message = Some(core::any::type_name::<Msg>());
    assert_eq!(core::mem::take(&mut *seen.lock().unwrap()), [message; 3]);
    run(&mut root, &a, |_, cx| {
        cx.set_receive_timeout(Duration::from_millis(1));
        Ok(Next::Stay)
    });
    clock.advance(Duration::from_millis(1));
    root.run_until_idle();
    run(&mut root, &a, |_, cx| {
        cx.cancel_receive_timeout();
        cx.spawn_future(async { panic!("in a future") }, |_, _, ()| Ok(Next::Stay))?;
        cx.spawn_future(async {}, |_, _, ()| -> Next { panic!("behind a future") })?;
        Ok(Next::Stay)
    });
    assert_eq!(core::mem::take(&mut *seen.lock().unwrap()), [None; 3]);
}

#[test]
fn messages_of_the_system_become_typed_signals() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [w, a] = ["w", "a"].map(|name| root.spawn(name, props(&log)).unwrap());
    root.run_until_idle();
    log.take();
    let order = |order: SystemMessage| w.try_send_system(order).unwrap();
    let end = || SystemMessage::Terminated(Terminated::new(a.pid(), a.path(), None));
    // An actor that does not watch is not notified.
    order(end());
    root.run_until_idle();
    assert!(log.take().is_empty());
    let who = a.clone();
    run(&mut root, &w, move |_, cx| {
        cx.watch(&who)?;
        Ok(Next::Stay)
    });
    order(end());
    order(SystemMessage::Suspend);
    w.tell(Msg::Born).unwrap();
    root.run_until_idle();
    order(SystemMessage::Resume);
    root.run_until_idle();
    assert_eq!(log.take(), ["w sees a end", "w is 1"]);
    order(SystemMessage::Restart);
    root.run_until_idle();
    order(SystemMessage::Stop);
    root.run_until_idle();
    assert_eq!(log.take(), ["w PreRestart", "w started", "w PostStop"]);
}
