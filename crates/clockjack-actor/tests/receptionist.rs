//! The receptionist: services by keys, listings once and at every change.

#[path = "support/bench.rs"]
mod bench;

use core::time::Duration;
use std::thread;

use bench::{Log, start};
use clockjack_actor::{
    ActorRef, ActorSystem, Listing, Mailbox, Next, Props, RootContext, ServiceKey,
    receptionist::{ReceptionistError, Registered},
};

#[derive(Clone, Copy)]
enum Job {
    Stop,
}

fn key() -> ServiceKey<Job> {
    ServiceKey::new("workers")
}

fn worker(root: &mut RootContext, name: &str) -> ActorRef<Job> {
    root.spawn(name, Props::from_fn(|_, Job::Stop| Ok(Next::Stop))).unwrap()
}

/// An actor that records the names in each listing.
fn reader(root: &mut RootContext, name: &str, mailbox: Mailbox) -> (ActorRef<Listing<Job>>, Log) {
    let log = Log::default();
    let to = log.clone();
    let props = Props::from_fn(move |_, listing: Listing<Job>| {
        to.add(names(&listing));
        Ok(Next::Stay)
    });
    (root.spawn(name, props.mailbox(mailbox)).unwrap(), log)
}

fn names(listing: &Listing<Job>) -> String {
    let names: Vec<_> = listing.services().iter().map(|one| one.path().name().to_owned()).collect();
    format!("{}: {}", listing.key().name(), names.join(" "))
}

#[test]
fn find_gives_who_is_registered_now_in_order() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let desk = root.system().receptionist().clone();
    assert!(desk.find(&key()).services().is_empty());
    let (a, b) = (worker(&mut root, "a"), worker(&mut root, "b"));
    desk.register(&key(), &b).unwrap();
    desk.register(&key(), &a).unwrap();
    assert_eq!(names(&desk.find(&key())), "workers: b a");
    // Another type is another key.
    assert!(desk.find(&ServiceKey::<u8>::new("workers")).services().is_empty());
}

#[test]
fn each_registration_is_acknowledged_and_a_second_changes_nothing() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let desk = root.system().receptionist().clone();
    let a = worker(&mut root, "a");
    let (reader, log) = reader(&mut root, "r", Mailbox::DEFAULT);
    desk.subscribe(&key(), &reader).unwrap();
    let acks = Log::default();
    let to = acks.clone();
    let asker = Props::from_fn(move |_, ack: Registered<Job>| {
        to.add(format!("{} as {}", ack.service.path(), ack.key.name()));
        Ok(Next::Stay)
    });
    let asker = root.spawn("asker", asker).unwrap();
    for _ in 0..2 {
        assert_eq!(desk.register(&key(), &a).unwrap().service, a);
        desk.register_and_tell(&key(), &a, &asker).unwrap();
    }
    root.run_until_idle();
    assert_eq!(acks.take(), ["/user/a as workers", "/user/a as workers"]);
    assert_eq!(log.take(), ["workers: ", "workers: a"]);
}

#[test]
fn a_subscriber_is_told_at_once_and_then_once_for_each_change() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let desk = root.system().receptionist().clone();
    let (reader, log) = reader(&mut root, "r", Mailbox::DEFAULT);
    desk.subscribe(&key(), &reader).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["workers: "]);
    let (a, b) = (worker(&mut root, "a"), worker(&mut root, "b"));
    desk.register(&key(), &a).unwrap();
    desk.register(&key(), &b).unwrap();
    assert!(desk.deregister(&key(), &a));
    assert!(!desk.deregister(&key(), &a));
    root.run_until_idle();
    assert_eq!(log.take(), ["workers: a", "workers: a b", "workers: b"]);
    desk.subscribe(&key(), &reader).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["workers: b"], "answered again, and not twice from now on");
    desk.register(&key(), &a).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["workers: b a"]);
    assert!(desk.unsubscribe(&key(), &reader));
    assert!(!desk.unsubscribe(&key(), &reader));
    desk.deregister(&key(), &b);
    root.run_until_idle();
    assert!(log.take().is_empty());
}

#[test]
fn find_is_one_shot() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let desk = root.system().receptionist().clone();
    let (reader, log) = reader(&mut root, "r", Mailbox::DEFAULT);
    let a = worker(&mut root, "a");
    desk.find_and_tell(&key(), &reader).unwrap();
    desk.register(&key(), &a).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["workers: "]);
}

#[test]
fn the_end_of_a_service_removes_it_from_all_keys_and_is_told() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let desk = root.system().receptionist().clone();
    let other = ServiceKey::<Job>::new("others");
    let (a, b) = (worker(&mut root, "a"), worker(&mut root, "b"));
    let (reader, log) = reader(&mut root, "r", Mailbox::DEFAULT);
    for key in [&key(), &other] {
        desk.register(key, &a).unwrap();
        desk.register(key, &b).unwrap();
        // One subscriber, several keys.
        desk.subscribe(key, &reader).unwrap();
    }
    root.run_until_idle();
    assert_eq!(log.take(), ["workers: a b", "others: a b"]);
    a.tell(Job::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["workers: b", "others: b"]);
    assert_eq!(names(&desk.find(&other)), "others: b");
    // Deregistration is per key.
    desk.deregister(&other, &b);
    assert_eq!(names(&desk.find(&key())), "workers: b");
    assert_eq!(names(&desk.find(&other)), "others: ");
    desk.register(&other, &b).unwrap();
    assert_eq!(names(&desk.find(&other)), "others: b");
}

#[test]
fn one_that_has_ended_is_refused_and_leaves_nothing() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let desk = root.system().receptionist().clone();
    let a = worker(&mut root, "a");
    desk.register(&key(), &a).unwrap();
    a.tell(Job::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(desk.listed(), 0);
    assert_eq!(desk.register(&key(), &a).unwrap_err(), ReceptionistError::Stopped);
    // The name may be used again, by another actor.
    let again = worker(&mut root, "a");
    desk.register(&key(), &again).unwrap();
    assert_eq!(names(&desk.find(&key())), "workers: a");
    assert_eq!(desk.listed(), 1);
}

#[test]
fn a_subscriber_that_ends_is_forgotten() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let desk = root.system().receptionist().clone();
    let props = Props::from_fn(|_, _: Listing<Job>| Ok(Next::Stop));
    let reader = root.spawn("r", props).unwrap();
    desk.subscribe(&key(), &reader).unwrap();
    assert_eq!(desk.listed(), 1);
    root.run_until_idle();
    assert_eq!(desk.listed(), 0);
}

#[test]
fn a_slow_subscriber_gets_the_newest_listings_later() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let desk = root.system().receptionist().clone();
    let (reader, log) = reader(&mut root, "r", Mailbox::bounded(1));
    desk.subscribe(&key(), &reader).unwrap();
    let workers: Vec<_> = (0..40).map(|n| worker(&mut root, &format!("w{n}"))).collect();
    for worker in &workers {
        desk.register(&key(), worker).unwrap();
    }
    for _ in 0..40 {
        root.run_until_idle();
        clock.advance(Duration::from_millis(20));
    }
    root.run_until_idle();
    let told = log.take();
    assert_eq!(told.len(), 1 + 16);
    assert_eq!(told.last().unwrap(), &names(&desk.find(&key())));
}

#[test]
fn a_system_actor_of_the_users_may_be_called_receptionist() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let system = root.system().clone();
    let own = system.spawn_system("receptionist", Props::from_fn(|_, _: u8| Ok(Next::Stay)));
    let own = own.unwrap();
    root.run_until_idle();
    assert_eq!(own.path().to_string(), "/system/receptionist");
    let key = ServiceKey::<u8>::new("own");
    system.receptionist().register(&key, &own).unwrap();
    assert_eq!(system.receptionist().find(&key).services(), [own]);
}

#[test]
fn after_the_end_of_the_system_nothing_is_listed() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let system = root.system().clone();
    let a = worker(&mut root, "a");
    system.receptionist().register(&key(), &a).unwrap();
    drop(system.shutdown());
    root.run_until_idle();
    assert!(system.receptionist().find(&key()).services().is_empty());
    assert!(system.receptionist().register(&key(), &a).is_err());
}

#[test]
fn threads_may_register_while_services_end_and_none_stays() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let desk = root.system().receptionist().clone();
    let system = root.system().clone();
    thread::scope(|scope| {
        let registrar = scope.spawn(move || {
            let worker = || Props::from_fn(|_, Job::Stop| Ok(Next::Stop));
            for n in 0..200 {
                let worker = system.spawn(&format!("w{n}"), worker()).unwrap();
                worker.tell(Job::Stop).unwrap();
                // The actor stops before, during or after the registration.
                let _ = system.receptionist().register(&key(), &worker);
            }
        });
        while !registrar.is_finished() {
            root.run_until_idle();
        }
    });
    root.run_until_idle();
    assert_eq!(desk.listed(), 0);
}

#[test]
fn a_sealed_system_lists_nothing_more() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let a = worker(&mut root, "a");
    root.seal();
    let refused = root.system().receptionist().register(&key(), &a).unwrap_err();
    assert_eq!(refused, ReceptionistError::Sealed);
}

#[test]
fn services_that_threads_register_at_once_are_all_listed() {
    const N_EACH: usize = 100;
    let (mut root, _) = start(ActorSystem::builder("t"));
    let desk = root.system().receptionist().clone();
    let (reader, log) = reader(&mut root, "r", Mailbox::DEFAULT);
    desk.subscribe(&key(), &reader).unwrap();
    let spawn = |n: usize| root.spawn(&n.to_string(), Props::from_fn(|_, _: Job| Ok(Next::Stay)));
    let all: Vec<_> = (0..4 * N_EACH).map(spawn).map(Result::unwrap).collect();
    thread::scope(|scope| {
        for some in all.chunks(N_EACH) {
            let desk = &desk;
            scope
                .spawn(move || some.iter().for_each(|one| _ = desk.register(&key(), one).unwrap()));
        }
    });
    let listing = desk.find(&key());
    assert!(all.iter().all(|one| listing.services().contains(one)));
    assert_eq!((listing.services().len(), desk.listed()), (all.len(), all.len() + 1));
    thread::scope(|scope| {
        for some in all.chunks(N_EACH) {
            let desk = &desk;
            scope.spawn(move || some.iter().for_each(|one| assert!(desk.deregister(&key(), one))));
        }
    });
    assert_eq!((desk.find(&key()).services().len(), desk.listed()), (0, 1));
    root.run_until_idle();
    assert_eq!(log.take().last().map(String::as_str), Some("workers: "));
}
