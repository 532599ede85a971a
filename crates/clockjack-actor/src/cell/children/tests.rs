//! Walks and searches over the children of a guardian, and what they may not miss.

use alloc::{
    format,
    string::{String, ToString as _},
    vec::Vec,
};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use clockjack_exec::Toolbox;
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, TickDriver};

use super::*;
use crate::{
    ActorRef, ActorSystem, Next, Props, RootContext,
    cell::header::{STOP, SystemSend as _},
    room::KEPT_MAX,
};

struct Bench {
    clock: ManualClock,
    driver: ManualDriver,
}

impl Toolbox for Bench {
    fn clock(&self) -> &dyn MonotonicClock {
        &self.clock
    }

    fn driver(&self) -> &dyn TickDriver {
        &self.driver
    }
}

/// A system; what is tested are the children of its guardian.
struct Parent {
    root: RootContext,
    user: AnyActor,
}

impl Parent {
    fn new() -> Self {
        let resolution = Resolution::MILLI;
        let bench =
            Bench { clock: ManualClock::new(resolution), driver: ManualDriver::new(resolution) };
        let root = RootContext::new(bench, ActorSystem::builder("t")).expect("there is room");
        let first = spawn(root.system(), "first");
        let user = first.any().parent.clone().expect("it has a guardian");
        let mut parent = Self { root, user };
        parent.stop(&first);
        parent
    }

    fn children(&self) -> &SpinLock<Children> {
        self.user.children().expect("it has children")
    }

    /// Spawns children with the numbers as names.
    fn spawn(&mut self, numbers: core::ops::Range<usize>) -> Vec<(ActorRef<u8>, AnyActor)> {
        let spawned = numbers.map(|number| spawn(self.root.system(), &number.to_string()));
        let spawned = spawned.collect::<Vec<_>>();
        self.root.run_until_idle();
        spawned.into_iter().map(|actor| (actor.clone(), actor.any().clone())).collect()
    }

    fn stop(&mut self, actor: &ActorRef<u8>) {
        actor.any().wake_with(STOP);
        self.root.run_until_idle();
    }

    fn names(&self, order: Direction) -> Vec<String> {
        names(&read_all(self.children(), order))
    }
}

fn spawn(system: &ActorSystem, name: &str) -> ActorRef<u8> {
    system.spawn(name, Props::from_fn(|_cx, _: u8| Next::Stay)).expect("the name is free")
}

fn names(actors: &[AnyActor]) -> Vec<String> {
    actors.iter().map(|actor| actor.path.name().to_string()).collect()
}

fn numbers(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

#[test]
fn a_walk_of_many_pages_reads_all_children_in_both_orders() {
    let mut parent = Parent::new();
    let all = parent.spawn(0..100);
    assert_eq!(parent.names(Direction::OldestFirst), numbers(0..100));
    assert_eq!(parent.names(Direction::NewestFirst), numbers((0..100).rev()));
    let (_, from) = &all[40];
    let some = read_some(parent.children(), Direction::OldestFirst, Start::At(from), 50);
    assert_eq!(names(&some), numbers(40..90));
    let none = read_some(parent.children(), Direction::OldestFirst, Start::Begin, 0);
    assert!(none.is_empty());
}

#[test]
fn a_page_does_not_start_after_a_child_that_has_left_or_withdrawn() {
    let mut parent = Parent::new();
    let all = parent.spawn(0..40);
    let mut page: Page = [const { None }; PAGE_LEN];
    let mut read = |parent: &Parent, after: &AnyActor| {
        let order = Direction::OldestFirst;
        parent.children().with(|all| all.read_page(order, Start::After(after), &mut page))
    };
    assert!(matches!(read(&parent, &all[31].1), PageEnd::Ended));
    parent.stop(&all[31].0);
    assert!(matches!(read(&parent, &all[31].1), PageEnd::Gone));
    parent.children().with(|children| {
        let index = children.find_child(&all[30].1).expect("it is there");
        children.withdraw(index);
    });
    assert!(matches!(read(&parent, &all[30].1), PageEnd::Gone));
    assert!(matches!(read(&parent, &all[29].1), PageEnd::Ended));
}

#[test]
fn the_next_page_starts_after_the_last_child_that_has_not_left() {
    let mut parent = Parent::new();
    let all = parent.spawn(0..50);
    all[29..32].iter().for_each(|(actor, _)| parent.stop(actor));
    let read: Vec<_> = all[..32].iter().map(|(_, child)| child.clone()).collect();
    let next = |read: &[AnyActor]| {
        let mut page: Page = [const { None }; PAGE_LEN];
        let from = (Start::Begin, read);
        let continues = read_next(parent.children(), Direction::OldestFirst, from, &mut page);
        (names(&page.into_iter().flatten().collect::<Vec<_>>()), continues)
    };
    assert_eq!(next(&read), (numbers(32..50), false));
    // If all have left that were read, it starts from the beginning.
    assert_eq!(next(&read[29..32]), (numbers((0..29).chain(32..35)), true));
}

#[test]
fn a_walk_reads_those_that_stay_exactly_once_while_others_come_and_go() {
    let mut parent = Parent::new();
    let (n_staying, is_over) = (100, AtomicBool::new(false));
    // Every second one leaves, so pages often end with one that is gone.
    for number in 0..n_staying {
        spawn(parent.root.system(), &number.to_string());
        spawn(parent.root.system(), &format!("leaves-{number}"));
    }
    parent.root.run_until_idle();
    let user = parent.user.clone();
    let staying = numbers(0..n_staying);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let children = user.children().expect("it has children");
            while !is_over.load(Relaxed) {
                for order in [Direction::OldestFirst, Direction::NewestFirst] {
                    let mut read = names(&read_all(children, order));
                    read.retain(|name| !name.starts_with("leaves"));
                    if order == Direction::NewestFirst {
                        read.reverse();
                    }
                    assert_eq!(read, staying, "{order:?}");
                }
            }
        });
        for round in 0..50 {
            for number in 0..n_staying {
                let name = format!("leaves-{number}");
                let leaving = parent.children().with(|all| all.get(&name)?.child().cloned());
                leaving.expect("it is there").wake_with(STOP);
                if number % 7 == round % 7 {
                    parent.root.run_until_idle();
                }
            }
            parent.root.run_until_idle();
            for number in 0..n_staying {
                spawn(parent.root.system(), &format!("leaves-{number}"));
            }
            parent.root.run_until_idle();
        }
        is_over.store(true, Relaxed);
        reader.join().expect("each walk was right");
    });
}

#[test]
fn those_that_stop_before_their_turn_are_out_of_the_way_of_the_next() {
    let mut parent = Parent::new();
    let all = parent.spawn(0..100);
    let children = parent.children();
    let withdrawn = 1..99_usize;
    children.with(|children| {
        for (_, child) in &all {
            assert!(children.change_phase(child, ChildPhase::Single, ChildPhase::Unstarted));
        }
        let (oldest, youngest) = (&all[0].1, &all[99].1);
        assert!(children.may_start(oldest));
        assert!(!children.may_start(youngest), "it waits for the one before it");
        for number in withdrawn.clone() {
            let child = &all[number].1;
            assert!(children.made_attempt(child, true).is_none(), "nobody may start yet");
        }
        assert!(!children.may_start(youngest), "it waits for the oldest now");
        let next = children.made_attempt(oldest, false).expect("it waits");
        assert!(next.ptr_eq(youngest));
        assert!(children.may_start(youngest));
    });
    assert_eq!(parent.names(Direction::OldestFirst), numbers([0, 99].into_iter()));
    assert_eq!(parent.names(Direction::NewestFirst), numbers([99, 0].into_iter()));
    // A parent that stops waits for them, too, with its time limit for each.
    for number in [99, 0].into_iter().chain(withdrawn) {
        let next = search(parent.children(), Children::next_to_stop).expect("it is there");
        assert!(next.ptr_eq(&all[number].1), "{} instead of {number}", next.path.name());
    }
    all.iter().for_each(|(actor, _)| parent.stop(actor));
    assert!(parent.children().with(|children| children.is_empty()));
}

#[test]
fn one_that_was_faster_than_a_sibling_lets_those_after_it_wait_for_the_sibling() {
    let mut parent = Parent::new();
    let all = parent.spawn(0..3);
    let [(_, slow), (_, fast), (_, last)] = &all[..] else { panic!("there are three") };
    parent.children().with(|children| {
        for (_, child) in &all {
            children.change_phase(child, ChildPhase::Single, ChildPhase::Unstarted);
        }
        assert!(children.made_attempt(fast, false).is_none());
        assert_eq!(children.phase_of(fast), Some(ChildPhase::PassedOver));
        assert!(!children.may_start(last));
        // The stop of one that was passed over changes nothing for the others.
        assert!(children.made_attempt(fast, true).is_some_and(|next| next.ptr_eq(last)));
        assert!(!children.may_start(last), "the slow one has not made its attempt");
        let next = children.made_attempt(slow, false).expect("it waits");
        assert!(next.ptr_eq(last) && children.may_start(last));
        assert_eq!(children.phase_of(fast), Some(ChildPhase::Single));
    });
}

#[test]
fn each_child_is_stopped_once_also_one_that_comes_during_the_stop() {
    let mut parent = Parent::new();
    parent.spawn(0..50);
    let next = |parent: &Parent| search(parent.children(), Children::next_to_stop);
    let name = |found: Option<AnyActor>| found.map(|child| child.path.name().to_string());
    for number in (10..50).rev() {
        assert_eq!(name(next(&parent)), Some(number.to_string()));
    }
    parent.spawn(50..51);
    let rest = numbers([50].into_iter().chain((0..10).rev()));
    for number in rest {
        assert_eq!(name(next(&parent)), Some(number));
    }
    assert_eq!(name(next(&parent)), None);
}

#[test]
fn a_search_for_a_member_visits_a_page_at_a_time() {
    let mut parent = Parent::new();
    let all = parent.spawn(0..100);
    let children = parent.children();
    children.with(|children| children.join_group(&all[0].1, false));
    let n_pages = 100_usize.div_ceil(PAGE_LEN);
    for _ in 1..n_pages {
        assert!(matches!(children.with(Children::next_to_end), Search::Continue));
    }
    let Search::Found((found, stops)) = children.with(Children::next_to_end) else {
        panic!("it is on the last page")
    };
    assert!(found.ptr_eq(&all[0].1) && !stops);
    assert!(children.with(|children| children.has_ending()));
    children.with(|children| children.leave_group(&found));
    assert!(!children.with(|children| children.has_ending()));
}

#[test]
fn a_child_that_comes_while_its_siblings_join_a_group_is_ordered_to_end_if_it_joins() {
    let mut parent = Parent::new();
    let mut all = parent.spawn(0..2);
    parent.children().with(|children| children.join_group(&all[1].1, false));
    all.extend(parent.spawn(2..3));
    let children = parent.children();
    children.with(|children| children.join_group(&all[2].1, false));
    children.with(|children| children.join_group(&all[0].1, false));
    for (_, child) in all.iter().rev() {
        let (next, stops) = search(children, Children::next_to_end).expect("it is a member");
        assert!(next.ptr_eq(child) && !stops, "{} instead", next.path.name());
    }
    assert!(search(children, Children::next_to_end).is_none());
}

#[test]
fn the_memory_of_many_children_leaves_with_the_last_one() {
    let mut parent = Parent::new();
    let all = parent.spawn(0..KEPT_MAX + 1);
    let (first, rest) = all.split_first().expect("there are some");
    rest.iter().for_each(|(actor, _)| parent.stop(actor));
    let removed = parent.children().with(|children| children.remove(&first.1));
    assert!(removed.is_some_and(|removed| removed._unneeded._entries.is_some()));
    assert!(parent.children().with(|children| children.is_empty()));
    parent.spawn(0..3);
    assert_eq!(parent.names(Direction::OldestFirst), numbers(0..3));
}
