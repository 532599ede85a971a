//! A scheduler and a sorted list do the same.

use clockjack_sched::{JobState, ScheduleErrorKind};
use proptest::{collection::vec, prelude::*};

use crate::{
    model::{Deed, Kind, Model, State, Wish},
    subject::Subject,
};

/// There are at most so many live jobs that one poll handles all due ones at once: then the order
/// of runs that are behind is that of the model, too.
const LIVE_MAX: usize = 40;

#[derive(Clone, Copy, Debug)]
enum Step {
    Schedule(Wish),
    Cancel(prop::sample::Index),
    Stall(u64),
    Run(usize),
    Advance(u64),
}

fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0_u64),
        6 => 1..=20_u64,
        2 => 60..=70_u64,
        1 => 4090..=4100_u64,
        1 => ((1 << 20) - 2)..=((1 << 20) + 2_u64),
        1 => (1 << 29)..=(1_u64 << 31) - 1,
    ]
}

fn wish(shards: usize) -> impl Strategy<Value = Wish> {
    let kind = prop_oneof![
        3 => Just(Kind::Once),
        2 => (1..=12_u64).prop_map(Kind::Rate),
        2 => (1..=12_u64).prop_map(Kind::Delay),
    ];
    let deed = prop_oneof![
        6 => Just(Deed::Nothing),
        1 => (1..=3_u64).prop_map(Deed::Take),
        2 => (0..=3_usize).prop_map(Deed::Cancel),
        1 => (0..=5_u64).prop_map(Deed::Schedule),
        1 => Just(Deed::Fail),
    ];
    let wish = (0..shards, delay(), kind, deed);
    wish.prop_map(|(shard, delay, kind, deed)| {
        // Two jobs that take longer than it is until their next runs would keep each other due for
        // ever; and what makes others would do so without end.
        let kind = match deed {
            Deed::Take(_) | Deed::Schedule(_) => Kind::Once,
            Deed::Nothing | Deed::Cancel(_) | Deed::Fail => kind,
        };
        Wish { shard, delay, kind, deed }
    })
}

fn steps(shards: usize) -> impl Strategy<Value = Vec<Step>> {
    let time = || prop_oneof![8 => 0..=30_u64, 1 => 1000..=1100_u64];
    let step = prop_oneof![
        6 => wish(shards).prop_map(Step::Schedule),
        2 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        2 => time().prop_map(Step::Stall),
        2 => (0..shards).prop_map(Step::Run),
        2 => time().prop_map(Step::Advance),
    ];
    vec(step, 1..120)
}

fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0_u64),
        0..=5000_u64,
        Just((1 << 20) - 30),
        Just((1 << 32) - 30),
        Just((1 << 63) - 30)
    ]
}

/// Both take a step.
fn take(step: Step, shards: usize, model: &mut Model, subject: &Subject) {
    match step {
        Step::Schedule(_) if model.n_live() >= LIVE_MAX => {}
        Step::Schedule(wish) => {
            model.schedule(wish);
            subject.schedule(wish);
        }
        Step::Cancel(index) => {
            let n_jobs = subject.handles().len();
            if n_jobs > 0 {
                model.cancel(index.index(n_jobs));
                subject.cancel(index.index(n_jobs));
            }
        }
        Step::Stall(ticks) => {
            model.now += ticks;
            subject.stall(ticks);
        }
        Step::Run(shard) if shards == 1 => {
            let now = model.now;
            model.run(shard, |_| now);
            subject.run(shard);
        }
        Step::Run(shard) => {
            model.run(shard, |model| model.now);
            subject.run(shard);
        }
        Step::Advance(ticks) if shards == 1 => {
            model.advance(ticks);
            subject.advance(ticks);
        }
        Step::Advance(ticks) => {
            model.now += ticks;
            subject.stall(ticks);
            for shard in 0..shards {
                model.run(shard, |model| model.now);
                subject.run(shard);
            }
        }
    }
}

fn compare(model: &Model, subject: &Subject) -> Result<(), TestCaseError> {
    prop_assert_eq!(subject.now(), model.now);
    prop_assert_eq!(subject.calls(), model.calls.clone());
    prop_assert_eq!(subject.cancels(), model.cancels.clone());
    for (index, (handle, state)) in subject.handles().iter().zip(model.states()).enumerate() {
        let expected = match state {
            State::Waits => JobState::Scheduled,
            State::Queued => JobState::Queued,
            State::Runs => JobState::Executing,
            State::Completed => JobState::Completed,
            State::Cancelled => JobState::Cancelled,
        };
        prop_assert_eq!(handle.state(), expected, "job {}", index);
    }
    prop_assert_eq!(subject.scheduler().metrics().active_total, model.n_live());
    Ok(())
}

/// Closes both: what was accepted ran or was cancelled, exactly, and nothing is accepted any more.
fn close(model: &mut Model, subject: &Subject) -> Result<(), TestCaseError> {
    model.close();
    let report = subject.shutdown();
    compare(model, subject)?;
    let n = |state| model.states().filter(|is| *is == state).count() as u64;
    let counts = (report.accepted, report.executed, report.cancelled, report.still_running);
    let accepted = model.states().count() as u64;
    prop_assert_eq!(counts, (accepted, n(State::Completed), n(State::Cancelled), 0));
    let late = subject.scheduler().schedule_once_fn(
        core::time::Duration::ZERO,
        clockjack_sched::DispatcherId::DEFAULT,
        |_| (),
    );
    prop_assert_eq!(late.map_err(|e| e.kind()).err(), Some(ScheduleErrorKind::Closed));
    Ok(())
}

fn check(
    start: u64,
    shards: usize,
    is_folded: bool,
    steps: &[Step],
) -> Result<String, TestCaseError> {
    let mut model = Model::new(start, shards, is_folded);
    let subject = Subject::new(start, shards, is_folded);
    for (index, step) in steps.iter().enumerate() {
        take(*step, shards, &mut model, &subject);
        if index % 16 == 15 {
            compare(&model, &subject)?;
        }
    }
    compare(&model, &subject)?;
    close(&mut model, &subject)?;
    let trace = subject.scheduler().diagnostics().trace();
    Ok(trace.records().iter().map(|record| format!("{record:?}\n")).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_shard_does_what_a_sorted_list_does(
        start in start(),
        is_folded: bool,
        steps in steps(1),
    ) {
        check(start, 1, is_folded, &steps)?;
    }

    #[test]
    fn several_shards_do_what_sorted_lists_do(
        start in start(),
        is_folded: bool,
        steps in steps(3),
    ) {
        check(start, 3, is_folded, &steps)?;
    }

    #[test]
    fn the_same_steps_give_the_same_log_byte_for_byte(
        shards in 1..=3_usize,
        is_folded: bool,
        steps in steps(3),
    ) {
        let fit = |step: &Step| match *step {
            Step::Schedule(wish) => Step::Schedule(Wish { shard: wish.shard % shards, ..wish }),
            Step::Run(shard) => Step::Run(shard % shards),
            other => other,
        };
        let steps: Vec<_> = steps.iter().map(fit).collect();
        let first = check(0, shards, is_folded, &steps)?;
        let second = check(0, shards, is_folded, &steps)?;
        prop_assert_eq!(first.as_bytes(), second.as_bytes());
    }
}
