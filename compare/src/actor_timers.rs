//! Suite `actor-timers`: timers that actors arm, replace and cancel in their handlers, and whose
//! messages they handle.
//!
//! Figures are CPU time of the whole process per timer, from the first command to the moment when
//! every timer has fired and its message is handled, or its message is dropped: a subject that does
//! its work later on another thread has still to do that work. Wall time and allocations are
//! reported next to it; the wall time of timers that fire is mostly their delay. Every subject has
//! two worker threads and a resolution of 1 ms. Subjects are started again for each run and take
//! turns as in the suite `actors`: each round starts at another one, every second goes backwards,
//! round 0 counts allocations and is not timed.
//!
//! What the actors do is written once (`user.rs`). The driver is a task of the subject. It sends
//! each command to all actors and waits until all have carried it out.
//!
//! * `arm-cancel`: one actor arms 64 timers for 30 to 90 s, each with a key of its own, and with
//!   the next message cancels all of them, until n (100,000) were armed and cancelled; ns per
//!   timer. Between the two messages the driver yields, so that a subject whose timer is a task can
//!   arm it.
//! * `arm-fire`: each of 1,000 actors arms a timer for 1 to 4 ms, handles its message and arms the
//!   next, until n (100,000) have fired in all; ns per timer.
//! * `keyed-100k`: each of 1,000 actors arms 100 timers with keys, n (100,000) in all: those that
//!   are replaced or cancelled for 30 to 90 s, those that fire for 150 to 250 ms. After a pause of
//!   50 ms, so that every subject has armed all of them, each actor replaces half of its timers by
//!   arming the same keys again, for 150 to 250 ms, and cancels a quarter. The other three quarters
//!   fire. ns per key, which is 1.5 calls that arm, 0.25 that cancel and 0.75 messages.
//!
//! Every pass is checked: each call that arms creates a token that counts itself once, as fired
//! when the actor handles the message or as dropped. So a pass is over when fired and dropped
//! timers are as many as armed ones, and both counts must be exact: the timers that fire, and those
//! that were cancelled or replaced. In the pass that warms a subject, the actors also read the
//! clock and detect messages that arrive before their delay has passed.
//!
//! How the subjects do it:
//!
//! * clockjack: `cx.timers().single(key, delay, message)`, which replaces the timer of the key, and
//!   `cx.timers().cancel(key)`, on a `Runtime`. It looks up its keys in a map. What was cancelled
//!   or replaced never arrives, even if it was due.
//! * actix: `Context::notify_later`, a future in the actor's context, and `cancel_future`. The
//!   actor keeps the `SpawnHandle` of each key. Its two threads are the driver's and one arbiter,
//!   which share the actors; the actor of `arm-cancel` is on the driver's thread.
//! * ractor: `ActorRef::send_after`, and `JoinHandle::abort`. The actor keeps the `JoinHandle` of
//!   each key.
//! * kameo: `ActorRef::tell(message).send_after(delay)`; else as ractor.
//! * tokio-mpsc: no actor crate. An actor is a task with an unbounded channel; a timer is a task
//!   that awaits `sleep` and sends; else as ractor. It is a rival here, unlike in the suite
//!   `actors`: an actor crate with timers by tasks adds to it and takes nothing away.
//!
//! Rivals keep their handles in a `Vec`, since the keys are small numbers, and need no test for
//! messages that were sent before their timer was cancelled, since none is cancelled near its time.
//! Both spare them work that a user of other keys and delays has.

mod actix;
mod clockjack;
mod kameo;
mod load;
mod measure;
mod ractor;
mod subject;
mod tasks;
mod tokio;
mod user;

use load::Load;
pub(crate) use subject::Case;
use subject::Subject;

use crate::actors;
use crate::clock::{Scope, Watch};
use crate::entry::{Entry, Plan};
use crate::failure::Failure;
use crate::measure::Cost;
use crate::report::{Column, Reporter, Row};
use crate::selection::{Effort, Selection};

/// The name of this suite in JSON.
pub(crate) const NAME: &str = "actor-timers";

/// The meaning of its figures.
pub(crate) const CAPTION: &str = "medians of CPU time of all threads per timer, two workers each";

/// The maximum size: a million concurrent tasks need a few hundred megabytes.
pub(crate) const N_MAX: u32 = 1_000_000;

/// Every subject, in the order of the table. To add one, add its file and its line here; the others
/// are compared with the one that has [`Standing::Ours`](crate::report::Standing::Ours).
const SUBJECTS: &[Entry<Load, Cost>] = &[
    entry::<actors::clockjack::Clockjack>(),
    entry::<actors::actix::Actix>(),
    entry::<actors::ractor::Ractor>(),
    entry::<actors::kameo::Kameo>(),
    entry::<actors::tokio::TokioMpsc>(),
];

const fn entry<S: Subject>() -> Entry<Load, Cost> {
    Entry { facts: S::FACTS, run: measure::run::<S> }
}

/// The default number of timers.
const fn size(effort: Effort, case: Case) -> u32 {
    match (case, effort) {
        (Case::ArmCancel | Case::ArmFire, Effort::Quick) => 10_000,
        // The name of the case contains the size.
        (Case::Keyed, _) | (_, Effort::Full) => 100_000,
    }
}

/// Timed rounds. An odd number, so that the median is a measured value.
const fn n_rounds(effort: Effort) -> u32 {
    match effort {
        Effort::Quick => 3,
        Effort::Full => 15,
    }
}

/// The properties of the subjects, for the head of the table and for `--list`.
pub(crate) fn columns(selection: &Selection<Case>) -> Result<Vec<Column>, Failure> {
    selection.columns(SUBJECTS)
}

/// Runs the selected cases and reports each as soon as it is finished.
///
/// # Errors
///
/// If a subject is unknown, cannot be started or loses a timer, or the report cannot be written.
pub(crate) fn run(selection: &Selection<Case>, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
    let watch = Watch::calibrated(Scope::Process);
    let effort = selection.effort;
    let n_rounds = selection.n_rounds.unwrap_or_else(|| n_rounds(effort));
    let can = |_: &Entry<Load, Cost>, _| true;
    selection.report(&Case::ALL, SUBJECTS, can, reporter, |case, subjects, reporter| {
        let n = selection.n.unwrap_or_else(|| size(effort, case));
        let what = format!("{} n={n}", case.name());
        let plan = Plan { effort, n_rounds, watch };
        let all = plan.run(&what, Load::new(case, n), subjects, reporter)?;
        Ok(Row {
            case: case.name(),
            n,
            unit: "ns",
            figures: all.medians(Cost::cpu),
            n_rounds: n_rounds as usize,
            target: None,
            least: 0.0,
            versus: &[],
            extras: Cost::extras(&all),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{Case, Effort, Load, SUBJECTS, n_rounds};
    use crate::entry::for_each_run;

    #[test]
    fn every_subject_does_every_case_also_at_odd_sizes() {
        for_each_run(SUBJECTS, &Case::ALL, &[1, 65, 1_030], Load::new, |name, case, n, cost| {
            assert!(cost.cpu_ns > 0.0, "{name} {case:?} {n}: {cost:?}");
        });
    }

    #[test]
    fn the_number_of_rounds_is_odd() {
        for effort in [Effort::Quick, Effort::Full] {
            assert_eq!(n_rounds(effort) % 2, 1, "{effort:?}");
        }
    }
}
