//! The loads, the same for every subject. The documentation of the suite defines them.
//!
//! A load sets up its actors, is measured from its first operation until its last effect, stops the
//! remaining actors and waits until the state of every actor is dropped. It returns a sum to which
//! each actor or message contributes.

use alloc::sync::Arc;

use super::actor_counts::ActorCounts;
use super::measure::Pass;
use super::parts::{Ball, Chat, Chatter, Counter, Growth, Idler, N_BRANCHES, Node, Player};
use super::subject::{Load, Mailbox, Side, Subject};
use crate::measure::Spent;

/// Actors in the ring.
const N_RING: u64 = 1_000;
/// Actors of `big`.
const N_BIG: u32 = 200;
/// Senders of `mpsc4`.
const N_SENDERS: u64 = 4;
/// A sender of `mpsc4` yields after this many messages, so that messages of different senders are
/// interleaved even on one thread.
const N_BETWEEN_YIELDS: u64 = 64;
/// Words of a long message: 64 bytes with the tag of an enum.
const LONG: usize = 7;
/// The bound of a bounded mailbox.
const BOUND: usize = 1_000;

/// How often a bounded mailbox is filled before it is measured.
const N_WARM_UPS: u64 = 32;

/// How many leaves a tree of size `n` has: the largest power of ten that is at most `n`, and at
/// least one level.
pub(crate) fn n_leaves(n: u32) -> u64 {
    N_BRANCHES.pow(n.checked_ilog10().unwrap_or(0).max(1))
}

/// How many actors such a tree has: 1 + 10 + 100 and so on, up to the leaves.
fn n_nodes(n: u32) -> u64 {
    (n_leaves(n) * N_BRANCHES - 1) / (N_BRANCHES - 1)
}

/// Pings of one actor of `big`.
fn n_pings(n: u32) -> u64 {
    u64::from(n) * u64::from(N_BIG - 1)
}

/// The number of operations of a load of this size; figures are per operation.
pub(crate) fn n_ops(load: Load, n: u32) -> u64 {
    match load {
        Load::PingPong => 2 * u64::from(n),
        Load::Ring => N_RING * u64::from(n),
        Load::Skynet => n_nodes(n),
        Load::Big => 2 * n_pings(n) * u64::from(N_BIG),
        _ => u64::from(n),
    }
}

/// The expected sum of the load.
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

/// Runs one pass over a load; returns its cost and its sum.
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
    let counts = ActorCounts::new(n_players, 1);
    let mut players = Vec::new();
    for index in 0..n_players {
        // One half on each side: the ball crosses between the threads twice per round.
        let side = if index < n_players / 2 { Side::Here } else { Side::There };
        players.push(subject.spawn(Player::new(&counts, goal), Mailbox::Usual, side).await);
    }
    for (index, player) in players.iter().enumerate() {
        let neighbour = players[(index + 1) % players.len()].clone();
        S::ask::<Player<S>>(player, Some(neighbour)).await;
    }
    let begun = pass.begin();
    S::tell::<Player<S>>(&players[0], Ball::Pass(1)).await;
    counts.all_finished().await;
    let spent = begun.end();
    let mut n_seen = 0;
    for player in &players {
        n_seen += S::ask::<Player<S>>(player, None).await;
        S::tell::<Player<S>>(player, Ball::Quit).await;
    }
    drop(players);
    counts.all_left().await;
    (spent, n_seen)
}

/// One driver sends to one actor.
async fn tell<S: Subject, const WORDS: usize>(subject: &S, n: u64, pass: Pass) -> (Spent, u64) {
    let counts = ActorCounts::new(1, 1);
    let part = Counter::<WORDS>::new(&counts, n);
    let counter = subject.spawn(part, Mailbox::Unbounded, Side::There).await;
    counts.all_started().await;
    let begun = pass.begin();
    for number in 1..=n {
        S::tell::<Counter<WORDS>>(&counter, [number; WORDS]).await;
    }
    let sum = counts.all_finished().await;
    let spent = begun.end();
    subject.stop::<Counter<WORDS>>(vec![counter]).await;
    counts.all_left().await;
    (spent, sum)
}

/// The same with a bounded mailbox.
async fn send<S: Subject, const WORDS: usize>(subject: &S, n: u64, pass: Pass) -> (Spent, u64) {
    let counts = ActorCounts::new(1, 1);
    // Unmeasured messages come first, so that the mailbox was full once and has allocated its
    // memory, at every start position: each question moves the position by one.
    let n_each = (n / 2 / N_WARM_UPS).max(4 * BOUND as u64);
    let part = Counter::<WORDS>::new(&counts, n_each * N_WARM_UPS + n);
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
    // The questions contribute to the sum.
    let sum = counts.all_finished().await - N_WARM_UPS;
    let spent = begun.end();
    subject.stop::<Counter<WORDS>>(vec![counter]).await;
    counts.all_left().await;
    (spent, sum)
}

/// Four drivers send to one actor, each its share of the numbers.
async fn many_senders<S: Subject>(subject: &S, n: u64, pass: Pass) -> (Spent, u64) {
    let counts = ActorCounts::new(1, 1);
    let part = Counter::<1>::new(&counts, n);
    let counter = subject.spawn(part, Mailbox::Unbounded, Side::There).await;
    counts.all_started().await;
    let begun = pass.begin();
    for sender in 0..N_SENDERS {
        let counter = counter.clone();
        let task = async move {
            let mut number = sender + 1;
            let mut n_sent = 0;
            while number <= n {
                S::tell::<Counter<1>>(&counter, [number]).await;
                number += N_SENDERS;
                n_sent += 1;
                if n_sent % N_BETWEEN_YIELDS == 0 {
                    S::yield_now().await;
                }
            }
        };
        subject.spawn_task(task, Side::alternating(sender));
    }
    let sum = counts.all_finished().await;
    let spent = begun.end();
    subject.stop::<Counter<1>>(vec![counter]).await;
    counts.all_left().await;
    (spent, sum)
}

/// The driver asks one question after the other.
async fn ask<S: Subject>(subject: &S, n: u64, pass: Pass) -> (Spent, u64) {
    let counts = ActorCounts::new(1, 1);
    let part = Counter::<1>::new(&counts, n);
    let counter = subject.spawn(part, Mailbox::Unbounded, Side::There).await;
    counts.all_started().await;
    let begun = pass.begin();
    let mut sum = 0;
    for _ in 0..n {
        sum += S::ask::<Counter<1>>(&counter, ()).await;
    }
    let spent = begun.end();
    subject.stop::<Counter<1>>(vec![counter]).await;
    counts.all_left().await;
    (spent, sum)
}

/// Starts `n` actors into `all` and waits until each has started.
async fn populate<S: Subject>(
    subject: &S,
    n: u32,
    counts: &Arc<ActorCounts>,
    all: &mut Vec<S::Ref<Idler>>,
) {
    for _ in 0..n {
        all.push(subject.spawn(Idler::new(counts), Mailbox::Usual, Side::There).await);
    }
    counts.all_started().await;
}

/// Asks all actors and sums their answers: an actor that has answered is started and idle.
async fn count<S: Subject>(all: &[S::Ref<Idler>]) -> u64 {
    let mut n_there = 0;
    for idler in all {
        n_there += S::ask::<Idler>(idler, ()).await;
    }
    n_there
}

async fn spawn<S: Subject>(subject: &S, n: u32, pass: Pass) -> (Spent, u64) {
    let counts = ActorCounts::new(u64::from(n), 0);
    let mut all = Vec::with_capacity(n as usize);
    let begun = pass.begin();
    populate(subject, n, &counts, &mut all).await;
    let spent = begun.end();
    let n_there = count::<S>(&all).await;
    subject.stop::<Idler>(all).await;
    counts.all_left().await;
    (spent, n_there)
}

async fn stop<S: Subject>(subject: &S, n: u32, pass: Pass) -> (Spent, u64) {
    let counts = ActorCounts::new(u64::from(n), 0);
    let mut all = Vec::with_capacity(n as usize);
    populate(subject, n, &counts, &mut all).await;
    let n_there = count::<S>(&all).await;
    let begun = pass.begin();
    subject.stop::<Idler>(all).await;
    counts.all_left().await;
    (begun.end(), n_there)
}

/// As `spawn`; the bytes are counted after each actor has answered once and is idle again.
async fn memory<S: Subject>(subject: &S, n: u32, pass: Pass) -> (Spent, u64) {
    let counts = ActorCounts::new(u64::from(n), 0);
    let mut all = Vec::with_capacity(n as usize);
    let begun = pass.begin();
    populate(subject, n, &counts, &mut all).await;
    let n_there = count::<S>(&all).await;
    let spent = begun.end();
    subject.stop::<Idler>(all).await;
    counts.all_left().await;
    (spent, n_there)
}

async fn skynet<S: Subject>(subject: &S, n: u32, pass: Pass) -> (Spent, u64) {
    let counts = ActorCounts::new(n_nodes(n), 1);
    let begun = pass.begin();
    let root = Node::root(&counts, n_leaves(n));
    let root = subject.spawn(root, Mailbox::Usual, Side::Here).await;
    let go = Growth::Go(root.clone());
    S::tell::<Node<S>>(&root, go).await;
    let sum = counts.all_finished().await;
    let spent = begun.end();
    drop(root);
    counts.all_left().await;
    (spent, sum)
}

async fn big<S: Subject>(subject: &S, n: u32, pass: Pass) -> (Spent, u64) {
    let counts = ActorCounts::new(u64::from(N_BIG), u64::from(N_BIG));
    let mut crowd = Vec::new();
    for index in 0..N_BIG {
        let part = Chatter::new(&counts, index, n_pings(n));
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
    counts.all_finished().await;
    let spent = begun.end();
    let mut n_seen = 0;
    for one in crowd.iter() {
        n_seen += S::ask::<Chatter<S>>(one, None).await;
        S::tell::<Chatter<S>>(one, Chat::Quit).await;
    }
    drop(crowd);
    counts.all_left().await;
    (spent, n_seen)
}
