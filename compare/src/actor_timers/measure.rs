//! One subject under one load, freshly started. The suite repeats, rotates and takes medians.
//!
//! The driver is a task of the subject and reads the clocks: to start and stop the subject and its
//! actors is not measured. The first pass of each run is not measured either; it warms the subject
//! and the allocator, and its actors detect timers that fire early.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::thread;

use futures_channel::oneshot;

use super::load::{Load, Step};
use super::subject::{Mail, Subject};
use super::user::{PassShared, TimerUser};
use crate::actors::actor_counts::ActorCounts;
use crate::actors::subject::{Side, Threads};
use crate::entry::Run;
use crate::failure::Failure;
use crate::measure::{Begun, Cost, Mode, Spent};
use crate::receiver::{Ends, Receiver};

/// The time limit of a pass. After it, timers count as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long [`Step::Pause`] takes.
const PAUSE: Duration = Duration::from_millis(50);

/// The driver yields after this many messages, so that it does not keep a worker from the actors.
const N_BETWEEN_YIELDS: usize = 64;

/// The result of one pass.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    spent: Spent,
    ends: Ends,
    n_early: u32,
}

/// Starts a subject, runs it through one case and shuts it down.
///
/// # Errors
///
/// If the subject cannot be started, loses a timer, fires a timer early or fires a cancelled one.
pub(crate) fn run<S: Subject>(run: &Run<Load>) -> Result<Cost, Failure> {
    let name = S::FACTS.name;
    let Run { n_passes, mode, watch, .. } = *run;
    let load = Arc::clone(&run.load);
    let n_ops = f64::from(load.n) * f64::from(n_passes);
    let expected = load.expected();
    let outcomes = S::run(Threads::Two, move |subject| async move {
        let warm = || Begun::new(Mode::Timed, watch);
        let mut outcomes = vec![pass(&subject, &load, true, warm).await];
        for _ in 0..n_passes {
            outcomes.push(pass(&subject, &load, false, || Begun::new(mode, watch)).await);
        }
        outcomes
    });
    let outcomes = outcomes.map_err(|source| Failure::start(name, source))?;
    let mut total = Spent::default();
    for (index, Outcome { spent, ends, n_early }) in outcomes.into_iter().enumerate() {
        ends.check(name, expected)?;
        if n_early > 0 {
            let what = "the number of timers that fired early";
            return Err(Failure::miscount(name, what, u64::from(n_early), 0));
        }
        if index > 0 {
            total += spent;
        }
    }
    Ok(total.per(n_ops))
}

/// Runs the load once; `begin` starts the measurement.
async fn pass<S: Subject>(
    subject: &S,
    load: &Arc<Load>,
    detects_early: bool,
    begin: impl FnOnce() -> Begun,
) -> Outcome {
    let Ends { fired, dropped } = load.expected();
    let (receiver, ends) = Receiver::attended(fired + dropped, PATIENCE);
    let n_early = AtomicU32::new(0);
    let shared = Arc::new(PassShared { load: Arc::clone(load), receiver, detects_early, n_early });
    let n_actors = u64::from(load.n_actors);
    let counts = ActorCounts::new(n_actors, n_actors);
    let mut actors = Vec::new();
    for index in 0..load.n_actors {
        let user = TimerUser::new(&shared, &counts, index);
        actors.push(subject.start(user, Side::alternating(u64::from(index))).await);
    }
    counts.all_started().await;
    let begun = begin();
    for &step in &load.steps {
        match step {
            Step::Send(command) => {
                send_all::<S>(&actors, || Mail::Command(command)).await;
                counts.all_finished().await;
                // A subject whose timer is a task runs these tasks first.
                S::yield_now().await;
            }
            Step::Pause => pause().await,
        }
    }
    let ends = ends.await.expect("the thread of the receiver reports");
    let spent = begun.end();
    send_all::<S>(&actors, || Mail::Stop).await;
    drop(actors);
    counts.all_left().await;
    // Relaxed: the actor counts order this load after the last message of every actor.
    Outcome { spent, ends, n_early: shared.n_early.load(Ordering::Relaxed) }
}

async fn send_all<S: Subject>(actors: &[S::Ref], mail: impl Fn() -> Mail) {
    for some in actors.chunks(N_BETWEEN_YIELDS) {
        for actor in some {
            S::send(actor, mail()).await;
        }
        S::yield_now().await;
    }
}

/// Waits without a timer of the subject, because the subject's timers are measured.
async fn pause() {
    let (wake, woken) = oneshot::channel();
    let sleeper = thread::spawn(move || {
        thread::sleep(PAUSE);
        wake.send(())
    });
    woken.await.expect("the thread wakes the driver");
    let sent = sleeper.join().expect("the thread does not panic");
    sent.expect("the driver has waited");
}
