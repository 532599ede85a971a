//! The loads: the tasks of each case, the same code for every subject.
//!
//! Each load returns a sum that [`expected`] knows in advance, so that a lost task, wake or message
//! is detected.

use alloc::sync::Arc;
use core::future::{Future, poll_fn};
use core::hint::black_box;
use core::pin::{Pin, pin};
use core::task::Poll;
use core::time::Duration;

use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};

use super::subject::{Case, N_WORKERS, Subject};
use crate::wake_flag::WakeFlag;

/// Tasks of `yield`: more than workers, so that there is another task to yield to.
pub(crate) const N_YIELDERS: u32 = 4;
const _: () = assert!(N_YIELDERS as usize == 2 * N_WORKERS, "two a worker");

/// Pairs of `ping_pong`.
pub(crate) const N_PAIRS: u32 = 4;

/// A time-out that is longer than any run.
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// A leaf of `fork_join`: about one microsecond at 3 GHz, six dependent operations per step.
const LEAF_STEPS: u32 = 500;

/// A task of `steal`: about 500 ns.
const TASK_STEPS: u32 = 250;

/// The task yields after this many sleeps. tokio lets a task poll 128 of its futures in one poll
/// and then returns `Pending` without arming anything; without yielding the case would measure
/// that.
const N_ARMS_A_TURN: u32 = 64;

/// The number of operations of a pass over a load of size `n`.
pub(crate) fn n_ops(case: Case, n: u32) -> u64 {
    let n = u64::from(n);
    match case {
        Case::Yield => n * u64::from(N_YIELDERS),
        Case::Wake => n * 2,
        Case::PingPong => n * u64::from(N_PAIRS),
        Case::ForkJoin => 1 << depth(n),
        Case::Spawn | Case::Steal | Case::TimerArmDrop | Case::IdleCpu => n,
    }
}

/// The sum that the load of a case returns if nothing was lost.
pub(crate) fn expected(case: Case, n: u32) -> u64 {
    match case {
        Case::Spawn => sum_below(n),
        Case::Yield | Case::Wake | Case::TimerArmDrop | Case::IdleCpu => n_ops(case, n),
        Case::PingPong => sum_below(n) * u64::from(N_PAIRS),
        Case::ForkJoin => serial_leaves(n),
        Case::Steal => serial_tasks(n),
    }
}

/// `spawn`.
pub(crate) async fn spawn<S: Subject>(n: u32) -> u64 {
    let tasks = (0..u64::from(n)).map(|id| S::spawn(async move { id }));
    sum(tasks.collect()).await
}

/// `yield`.
pub(crate) async fn yields<S: Subject>(n: u32) -> u64 {
    let yielder = || async move {
        let mut n_yields = 0;
        for _ in 0..n {
            S::yield_now().await;
            n_yields += 1;
        }
        n_yields
    };
    sum((0..N_YIELDERS).map(|_| S::spawn(yielder())).collect()).await
}

/// `wake`.
pub(crate) async fn wake<S: Subject>(n: u32) -> u64 {
    let there = Arc::new(WakeFlag::default());
    let back = Arc::new(WakeFlag::default());
    let caller = {
        let (there, back) = (Arc::clone(&there), Arc::clone(&back));
        async move {
            let mut n_wakes = 0;
            for _ in 0..n {
                there.set();
                back.wait().await;
                n_wakes += 1;
            }
            n_wakes
        }
    };
    let answerer = async move {
        let mut n_wakes = 0;
        for _ in 0..n {
            there.wait().await;
            back.set();
            n_wakes += 1;
        }
        n_wakes
    };
    sum(vec![S::spawn(answerer), S::spawn(caller)]).await
}

/// `ping_pong`.
pub(crate) async fn ping_pong<S: Subject>(n: u32) -> u64 {
    let mut tasks = Vec::with_capacity(2 * N_PAIRS as usize);
    for _ in 0..N_PAIRS {
        let (to_echo, at_echo) = unbounded();
        let (to_caller, at_caller) = unbounded();
        tasks.push(S::spawn(echo(n, at_echo, to_caller)));
        tasks.push(S::spawn(call(n, at_caller, to_echo)));
    }
    sum(tasks).await
}

/// `fork_join`.
pub(crate) async fn fork_join<S: Subject>(n: u32) -> u64 {
    fork::<S>(0, depth(u64::from(n))).await
}

/// `steal`.
pub(crate) async fn steal<S: Subject>(n: u32) -> u64 {
    sum((0..n).map(|id| S::spawn(async move { task_work(id) })).collect()).await
}

/// `timer_arm_drop`.
pub(crate) async fn timer_arm_drop<S: Subject>(n: u32) -> u64 {
    let mut n_armed = 0;
    for turn in 1..=n {
        let mut sleep = pin!(S::sleep(HOUR));
        let is_pending = poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context).is_pending()));
        n_armed += u64::from(is_pending.await);
        if turn.is_multiple_of(N_ARMS_A_TURN) {
            S::yield_now().await;
        }
    }
    n_armed
}

/// The leaves of `fork_join` one after the other.
pub(crate) fn serial_leaves(n: u32) -> u64 {
    (0..1_u64 << depth(u64::from(n))).fold(0, |sum, leaf| sum.wrapping_add(leaf_work(leaf)))
}

/// The tasks of `steal` one after the other.
pub(crate) fn serial_tasks(n: u32) -> u64 {
    (0..n).fold(0, |sum, id| sum.wrapping_add(task_work(id)))
}

/// The height of the largest binary tree with at most `n` leaves.
pub(crate) const fn depth(n: u64) -> u32 {
    n.ilog2()
}

/// A leaf of `fork_join`.
#[inline(never)]
pub(crate) fn leaf_work(leaf: u64) -> u64 {
    work(leaf, LEAF_STEPS)
}

#[inline(never)]
fn task_work(id: u32) -> u64 {
    work(u64::from(id), TASK_STEPS)
}

/// Arithmetic in which each step needs the one before (Marsaglia, "Xorshift RNGs", 2003).
fn work(seed: u64, n_steps: u32) -> u64 {
    let mut state = black_box(seed) | 1 << 63;
    for _ in 0..n_steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

/// Spawns one half and computes the other. Boxed, because a future cannot contain itself.
fn fork<S: Subject>(first: u64, depth: u32) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        let Some(below) = depth.checked_sub(1) else { return leaf_work(first) };
        let other = S::spawn(fork::<S>(first + (1 << below), below));
        let own = fork::<S>(first, below).await;
        own.wrapping_add(other.await)
    })
}

async fn call(n: u32, mut from: UnboundedReceiver<u64>, to: UnboundedSender<u64>) -> u64 {
    let mut sum = 0;
    for message in 0..u64::from(n) {
        to.unbounded_send(message).expect("the echo lives until its last answer");
        sum += from.recv().await.expect("the echo answers before it ends");
    }
    sum
}

async fn echo(n: u32, mut from: UnboundedReceiver<u64>, to: UnboundedSender<u64>) -> u64 {
    for _ in 0..n {
        let message = from.recv().await.expect("the caller asks before it ends");
        to.unbounded_send(message).expect("the caller lives until the last answer");
    }
    0
}

async fn sum<J: Future<Output = u64>>(tasks: Vec<J>) -> u64 {
    let mut sum = 0_u64;
    for task in tasks {
        sum = sum.wrapping_add(task.await);
    }
    sum
}

const fn sum_below(n: u32) -> u64 {
    n as u64 * (n as u64 - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::{Case, depth, expected, leaf_work, n_ops, serial_leaves};

    #[test]
    fn a_tree_has_the_largest_power_of_two_of_leaves() {
        fn check(n: u32, leaves: u64) {
            assert_eq!(n_ops(Case::ForkJoin, n), leaves, "{n}");
            assert_eq!(1 << depth(u64::from(n)), leaves, "{n}");
        }
        check(1, 1);
        check(3, 2);
        check(1_024, 1_024);
        check(1_025, 1_024);
    }

    #[test]
    fn leaves_differ_so_that_a_sum_tells_which_were_done() {
        assert_ne!(leaf_work(0), leaf_work(1));
        assert_ne!(serial_leaves(4), serial_leaves(8));
    }

    #[test]
    fn expected_sums_of_small_loads() {
        assert_eq!(expected(Case::Spawn, 1), 0);
        assert_eq!(expected(Case::Spawn, 4), 6);
        assert_eq!(expected(Case::Yield, 3), 12);
        assert_eq!(expected(Case::Wake, 3), 6);
        assert_eq!(expected(Case::PingPong, 4), 24);
    }
}
