//! The loads, the same for every subject. What each of them is, the suite says.
//!
//! A load sets its actors up, is measured from its first operation until the last effect of it,
//! takes down what is left and waits until the state of every actor is dropped. It returns a sum
//! to which each actor or message contributes.

use alloc::sync::Arc;

use super::measure::Pass;
use super::parts::{Ball, Chat, Chatter, Counter, Growth, Idler, N_BRANCHES, Node, Player};
use super::roll::Roll;
use super::subject::{Load, Mailbox, Side, Subject};
use crate::measure::Spent;

/// Actors in the ring.
const N_RING: u64 = 1_000;
/// Actors in the crowd of `big`.
const N_CROWD: u32 = 200;
/// Senders of `mpsc4`.
const N_SENDERS: u64 = 4;
/// A sender of `mpsc4` lets the others go first after so many messages, so that their messages are
/// mixed also on one thread.
const N_BETWEEN_YIELDS: u64 = 64;
/// Words of a long message: 64 bytes with the tag of an enum.
const LONG: usize = 7;
/// What a bounded mailbox holds.
const BOUND: usize = 1_000;

/// How often a bounded mailbox is filled before it is measured.
const N_WARM_UPS: u64 = 32;

/// How many leaves a tree has for a size of `n`: the power of ten at or below, and one level at
/// least.
pub(crate) fn n_leaves(n: u32) -> u64 {
    N_BRANCHES.pow(n.checked_ilog10().unwrap_or(0).max(1))
}

/// How many actors such a tree has: 1 + 10 + 100 and so on, up to the leaves.
fn n_nodes(n: u32) -> u64 {
    (n_leaves(n) * N_BRANCHES - 1) / (N_BRANCHES - 1)
}

/// Pings of one actor of the crowd.
fn n_pings(n: u32) -> u64 {
    u64::from(n) * u64::from(N_CROWD - 1)
}

/// How many operations a load of this size has: the figures are for one.
pub(crate) fn n_ops(load: Load, n: u32) -> u64 {
    match load {
        Load::PingPong => 2 * u64::from(n),
        Load::Ring => N_RING * u64::from(n),
        Load::Skynet => n_nodes(n),
        Load::Big => 2 * n_pings(n) * u64::from(N_CROWD),
        _ => u64::from(n),
    }
}

/// What the load's sum has to be.
pub(crate) fn expected(load: Load, n: u32) -> u64 {
    let up_to = |last: u64| last * (last + 1) / 2;
    match load {
        Load::Tell
        | Load::Tell64
        | Load::TellBounded
        | Load::Mpsc4
        | Load::AllocsTell
        | Load::AllocsTell64
        | Load::Ask => up_to(u64::from(n)),
        Load::Skynet => up_to(n_leaves(n) - 1),
        Load::PingPong | Load::Ring | Load::Big => n_ops(load, n),
        Load::Spawn | Load::Stop | Load::Memory => u64::from(n),
    }
}

/// Runs one pass over a load; with what it took comes its sum.
pub(crate) async fn pass<S: Subject>(subject: &S, load: Load, n: u32, pass: Pass) -> (Spent, u64) {
    let n_long = u64::from(n);
    match load {
        Load::PingPong => passes(subject, 2, 2 * n_long, pass).await,
        Load::Ring => passes(subject, N_RING, N_RING * n_long, pass).await,
        Load::Tell => tell::<S, 1>(subject, n_long, pass).await,
        Load::Tell64 => tell::<S, LONG>(subject, n_long, pass).await,
        Load::TellBounded | Load::AllocsTell => send::<S, 1>(subject, n_long, pass).await,
        Load::AllocsTell64 => send::<S, LONG>(subject, n_long, pass).await,
        Load::Mpsc4 => many_senders(subject, n_long, pass).await,
        Load::Ask => ask(subject, n_long, pass).await,
        Load::Spawn => spawn(subject, n, pass).await,
        Load::Stop => stop(subject, n, pass).await,
        Load::Skynet => skynet(subject, n, pass).await,
        Load::Big => big(subject, n, pass).await,
        Load::Memory => memory(subject, n, pass).await,
    }
}

/// A ball goes round until it was passed `goal` times.
async fn passes<S: Subject>(subject: &S, n_players: u64, goal: u64, pass: Pass) -> (Spent, u64) {
    let roll = Roll::new(n_players, 1);
    let mut players = Vec::new();
    for index in 0..n_players {
        // One half on each side: a ring crosses twice a round.
        let side = if index < n_players / 2 { Side::Here } else { Side::There };
        players.push(subject.spawn(Player::new(&roll, goal), Mailbox::Usual, side).await);
    }
    for (index, player) in players.iter().enumerate() {
        let neighbour = players[(index + 1) % players.len()].clone();
        S::ask::<Player<S>>(player, Some(neighbour)).await;
    }
    let begun = pass.begin();
    S::tell::<Player<S>>(&players[0], Ball::Pass(1)).await;
    roll.all_finished().await;
    let spent = begun.end();
    let mut n_seen = 0;
    for player in &players {
        n_seen += S::ask::<Player<S>>(player, None).await;
        S::tell::<Player<S>>(player, Ball::Quit).await;
    }
    drop(players);
    roll.all_left().await;
    (spent, n_seen)
}

/// One driver tells one actor.
async fn tell<S: Subject, const WORDS: usize>(subject: &S, n: u64, pass: Pass) -> (Spent, u64) {
    let roll = Roll::new(1, 1);
    let part = Counter::<WORDS>::new(&roll, n);
    let counter = subject.spawn(part, Mailbox::Unbounded, Side::There).await;
    roll.all_started().await;
    let begun = pass.begin();
    for number in 1..=n {
        S::tell::<Counter<WORDS>>(&counter, [number; WORDS]).await;
    }
    let sum = roll.all_finished().await;
    let spent = begun.end();
    subject.stop::<Counter<WORDS>>(vec![counter]).await;
    roll.all_left().await;
    (spent, sum)
}

/// The same with a bounded mailbox.
async fn send<S: Subject, const WORDS: usize>(subject: &S, n: u64, pass: Pass) -> (Spent, u64) {
    let roll = Roll::new(1, 1);
    // Some before that are not measured, so that the mailbox was full and has what it needs for it,
    // wherever in its memory it begins: each question moves that on by one place.
    let n_each = (n / 2 / N_WARM_UPS).max(4 * BOUND as u64);
    let part = Counter::<WORDS>::new(&roll, n_each * N_WARM_UPS + n);
    let counter = subject.spawn(part, Mailbox::Bounded(BOUND), Side::There).await;
    for _ in 0..N_WARM_UPS {
        for _ in 0..n_each {
            S::send::<Counter<WORDS>>(&counter, [0; WORDS]).await;
        }
        S::ask::<Counter<WORDS>>(&counter, ()).await;
    }
    let begun = pass.begin();
    for number in 1..=n {
        S::send::<Counter<WORDS>>(&counter, [number; WORDS]).await;
    }
    // Some of it is the questions'.
    let sum = roll.all_finished().await - N_WARM_UPS;
    let spent = begun.end();
    subject.stop::<Counter<WORDS>>(vec![counter]).await;
    roll.all_left().await;
    (spent, sum)
}

/// Four drivers tell one actor, each its share of the numbers.
async fn many_senders<S: Subject>(subject: &S, n: u64, pass: Pass) -> (Spent, u64) {
    let roll = Roll::new(1, 1);
    let part = Counter::<1>::new(&roll, n);
    let counter = subject.spawn(part, Mailbox::Unbounded, Side::There).await;
    roll.all_started().await;
    let begun = pass.begin();
    for sender in 0..N_SENDERS {
        let counter = counter.clone();
        let task = async move {
            let mut number = sender + 1;
            let mut n_told = 0;
            while number <= n {
                S::tell::<Counter<1>>(&counter, [number]).await;
                number += N_SENDERS;
                n_told += 1;
                if n_told % N_BETWEEN_YIELDS == 0 {
                    S::yield_now().await;
                }
            }
        };
        subject.spawn_task(task, Side::alternating(sender));
    }
    let sum = roll.all_finished().await;
    let spent = begun.end();
    subject.stop::<Counter<1>>(vec![counter]).await;
    roll.all_left().await;
    (spent, sum)
}

/// The driver asks one question after the other.
async fn ask<S: Subject>(subject: &S, n: u64, pass: Pass) -> (Spent, u64) {
    let roll = Roll::new(1, 1);
    let part = Counter::<1>::new(&roll, n);
    let counter = subject.spawn(part, Mailbox::Unbounded, Side::There).await;
    roll.all_started().await;
    let begun = pass.begin();
    let mut sum = 0;
    for _ in 0..n {
        sum += S::ask::<Counter<1>>(&counter, ()).await;
    }
    let spent = begun.end();
    subject.stop::<Counter<1>>(vec![counter]).await;
    roll.all_left().await;
    (spent, sum)
}

/// Starts `n` actors into `all` and waits until each has begun.
async fn populate<S: Subject>(subject: &S, n: u32, roll: &Arc<Roll>, all: &mut Vec<S::Ref<Idler>>) {
    for _ in 0..n {
        all.push(subject.spawn(Idler::new(roll), Mailbox::Usual, Side::There).await);
    }
    roll.all_started().await;
}

/// Asks all and adds up their answers: who answers is there and has nothing else to do.
async fn count<S: Subject>(all: &[S::Ref<Idler>]) -> u64 {
    let mut n_there = 0;
    for idler in all {
        n_there += S::ask::<Idler>(idler, ()).await;
    }
    n_there
}

async fn spawn<S: Subject>(subject: &S, n: u32, pass: Pass) -> (Spent, u64) {
    let roll = Roll::new(u64::from(n), 0);
    let mut all = Vec::with_capacity(n as usize);
    let begun = pass.begin();
    populate(subject, n, &roll, &mut all).await;
    let spent = begun.end();
    let n_there = count::<S>(&all).await;
    subject.stop::<Idler>(all).await;
    roll.all_left().await;
    (spent, n_there)
}

async fn stop<S: Subject>(subject: &S, n: u32, pass: Pass) -> (Spent, u64) {
    let roll = Roll::new(u64::from(n), 0);
    let mut all = Vec::with_capacity(n as usize);
    populate(subject, n, &roll, &mut all).await;
    let n_there = count::<S>(&all).await;
    let begun = pass.begin();
    subject.stop::<Idler>(all).await;
    roll.all_left().await;
    (begun.end(), n_there)
}

/// As `spawn`, and each has answered once and waits again when the bytes are counted.
async fn memory<S: Subject>(subject: &S, n: u32, pass: Pass) -> (Spent, u64) {
    let roll = Roll::new(u64::from(n), 0);
    let mut all = Vec::with_capacity(n as usize);
    let begun = pass.begin();
    populate(subject, n, &roll, &mut all).await;
    let n_there = count::<S>(&all).await;
    let spent = begun.end();
    subject.stop::<Idler>(all).await;
    roll.all_left().await;
    (spent, n_there)
}

async fn skynet<S: Subject>(subject: &S, n: u32, pass: Pass) -> (Spent, u64) {
    let roll = Roll::new(n_nodes(n), 1);
    let begun = pass.begin();
    let root = Node::root(&roll, n_leaves(n));
    let root = subject.spawn(root, Mailbox::Usual, Side::Here).await;
    let go = Growth::Go(root.clone());
    S::tell::<Node<S>>(&root, go).await;
    let sum = roll.all_finished().await;
    let spent = begun.end();
    drop(root);
    roll.all_left().await;
    (spent, sum)
}

async fn big<S: Subject>(subject: &S, n: u32, pass: Pass) -> (Spent, u64) {
    let roll = Roll::new(u64::from(N_CROWD), u64::from(N_CROWD));
    let mut crowd = Vec::new();
    for index in 0..N_CROWD {
        let part = Chatter::new(&roll, index, n_pings(n));
        let side = Side::alternating(u64::from(index));
        crowd.push(subject.spawn(part, Mailbox::Usual, side).await);
    }
    let crowd: Arc<[S::Ref<Chatter<S>>]> = crowd.into();
    for one in crowd.iter() {
        S::ask::<Chatter<S>>(one, Some(Arc::clone(&crowd))).await;
    }
    let begun = pass.begin();
    for one in crowd.iter() {
        S::tell::<Chatter<S>>(one, Chat::Start).await;
    }
    roll.all_finished().await;
    let spent = begun.end();
    let mut n_seen = 0;
    for one in crowd.iter() {
        n_seen += S::ask::<Chatter<S>>(one, None).await;
        S::tell::<Chatter<S>>(one, Chat::Quit).await;
    }
    drop(crowd);
    roll.all_left().await;
    (spent, n_seen)
}
