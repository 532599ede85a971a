//! Tasks without their types: what runs, what is dropped when, and what comes back.

extern crate alloc;

use alloc::sync::Arc;
use core::{
    fmt, mem,
    panic::AssertUnwindSafe,
    ptr,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::panic::catch_unwind;

use clockjack_sched::{
    BatchMode, ExecutionBatch, FireContext, HandlerError, JobNumber, Outcome, SchedulerTask, Task,
};
use clockjack_time::{Resolution, Tick, TimerInstant};

const JOB: JobNumber = JobNumber { shard: 2, number: 7 };

fn fire() -> FireContext {
    FireContext::new(
        JOB,
        ExecutionBatch::folded(3, BatchMode::FixedRate),
        Tick::new(40),
        TimerInstant::new(Tick::new(42), Resolution::MILLI),
        Duration::from_millis(2),
    )
}

/// Counts its drops, and panics in them if asked to.
struct Counted {
    drops: Arc<AtomicUsize>,
    panics: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
        assert!(!self.panics, "planted");
    }
}

fn counted() -> (Counted, Arc<AtomicUsize>) {
    let drops = Arc::new(AtomicUsize::new(0));
    (Counted { drops: Arc::clone(&drops), panics: false }, drops)
}

/// Room for tests of each form: in place, in a box for its size, in a box for its alignment.
#[derive(Clone, Copy)]
struct Small;
#[derive(Clone, Copy)]
struct Large([usize; 9]);
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Aligned(u8);

/// Calls a macro of the test for each form.
macro_rules! each_form {
    ($check:ident) => {
        $check(Small, true);
        $check(Large([5; 9]), false);
        $check(Aligned(5), false);
    };
}

trait Filler: Copy + Send + 'static {
    fn sum(&self) -> usize;
}

impl Filler for Small {
    fn sum(&self) -> usize {
        5
    }
}

impl Filler for Large {
    fn sum(&self) -> usize {
        self.0.iter().sum::<usize>() / 9
    }
}

impl Filler for Aligned {
    fn sum(&self) -> usize {
        assert!(ptr::from_ref(self).addr().is_multiple_of(64), "the value is not aligned");
        self.0.into()
    }
}

#[test]
fn a_fire_context_says_what_it_was_made_of() {
    let fire = fire();
    assert_eq!(fire.job(), JOB);
    assert_eq!(fire.batch().missed_runs, 3);
    assert_eq!(fire.due(), Tick::new(40));
    assert_eq!(fire.now().tick(), Tick::new(42));
    assert_eq!(fire.late(), Duration::from_millis(2));
}

#[test]
fn nothing_and_results_are_outcomes() {
    fn check(outcome: impl Outcome, expected: Result<(), &str>) {
        let outcome = outcome.into_outcome();
        assert_eq!(outcome.as_ref().copied().map_err(HandlerError::text), expected);
    }
    check((), Ok(()));
    check(Ok::<(), fmt::Error>(()), Ok(()));
    check(Err::<(), _>("no paper"), Err("no paper"));
    check(Err::<(), _>(HandlerError::new("no ink")), Err("no ink"));
}

#[test]
fn a_task_is_four_words_and_is_send() {
    const fn is_send<T: Send>() {}
    is_send::<Task>();
    assert_eq!(size_of::<Task>(), 4 * size_of::<usize>());
}

#[test]
fn three_words_are_in_place_and_four_are_not() {
    let three = [1_usize; 3];
    let four = [1_usize; 4];
    assert!(Task::once(move |_| assert_eq!(three.len(), 3)).is_inline());
    assert!(Task::every(move |_| assert_eq!(three.iter().sum::<usize>(), 3)).is_inline());
    assert!(!Task::once(move |_| assert_eq!(four.len(), 4)).is_inline());
    assert!(!Task::every(move |_| assert_eq!(four.iter().sum::<usize>(), 4)).is_inline());
}

#[test]
fn a_closure_for_once_runs_once_and_is_dropped_by_its_run() {
    fn check(filler: impl Filler, is_inline: bool) {
        let (counted, drops) = counted();
        let runs = Arc::new(AtomicUsize::new(0));
        let told = Arc::clone(&runs);
        let mut task = Task::once(move |fire: &FireContext| {
            let _kept = &counted;
            assert_eq!(fire.job(), JOB);
            told.fetch_add(filler.sum(), SeqCst);
        });
        assert_eq!(task.is_inline(), is_inline);
        assert!(!task.wants_cancel());
        assert_eq!(drops.load(SeqCst), 0);
        task.run(&fire()).unwrap();
        assert_eq!((runs.load(SeqCst), drops.load(SeqCst)), (5, 1));
        task.run(&fire()).unwrap();
        task.cancelled();
        drop(task);
        assert_eq!((runs.load(SeqCst), drops.load(SeqCst)), (5, 1));
    }
    each_form!(check);
}

#[test]
fn a_closure_that_never_ran_is_dropped_with_its_task() {
    fn check(filler: impl Filler, _is_inline: bool) {
        let (counted, drops) = counted();
        let task = Task::once(move |_| {
            let _kept = (&counted, &filler);
        });
        assert_eq!(drops.load(SeqCst), 0);
        drop(task);
        assert_eq!(drops.load(SeqCst), 1);
    }
    each_form!(check);
}

#[test]
fn a_closure_for_every_run_keeps_its_state_between_them() {
    fn check(filler: impl Filler, is_inline: bool) {
        let (counted, drops) = counted();
        let mut runs = 0_usize;
        let mut task = Task::every(move |_| {
            let _kept = &counted;
            runs += 1;
            if runs * filler.sum() == 15 { Err("three") } else { Ok(()) }
        });
        assert_eq!(task.is_inline(), is_inline);
        assert_eq!(task.run(&fire()), Ok(()));
        assert_eq!(task.run(&fire()), Ok(()));
        assert_eq!(task.run(&fire()), Err(HandlerError::new("three")));
        assert_eq!(task.run(&fire()), Ok(()));
        assert_eq!(drops.load(SeqCst), 0);
        drop(task);
        assert_eq!(drops.load(SeqCst), 1);
    }
    each_form!(check);
}

struct CountingTask<F> {
    filler: F,
    counted: Counted,
    cancels: Arc<AtomicUsize>,
}

impl<F: Filler> SchedulerTask for CountingTask<F> {
    fn run(&mut self, fire: &FireContext) -> Result<(), HandlerError> {
        assert_eq!(self.counted.drops.load(SeqCst), 0);
        Err(HandlerError::new(format!("{} in {}", self.filler.sum(), fire.batch())))
    }

    fn cancelled(&mut self) {
        self.cancels.fetch_add(self.filler.sum(), SeqCst);
    }
}

#[test]
fn a_task_is_told_of_its_cancellation_and_then_dropped() {
    fn check(filler: impl Filler, is_inline: bool) {
        let (counted, drops) = counted();
        let cancels = Arc::new(AtomicUsize::new(0));
        let mut task = Task::new(CountingTask { filler, counted, cancels: Arc::clone(&cancels) });
        assert_eq!(task.is_inline(), is_inline);
        assert!(task.wants_cancel());
        let error = task.run(&fire()).unwrap_err();
        assert_eq!(error.text(), "5 in fixed-rate x4 (3 missed)");
        task.cancelled();
        assert_eq!((cancels.load(SeqCst), drops.load(SeqCst)), (5, 0));
        drop(task);
        assert_eq!((cancels.load(SeqCst), drops.load(SeqCst)), (5, 1));
    }
    each_form!(check);
}

#[test]
fn what_has_no_size_runs_and_is_dropped() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPS.fetch_add(1, SeqCst);
        }
    }
    impl SchedulerTask for Nothing {
        fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
            Ok(())
        }
    }
    #[repr(align(128))]
    struct NothingAligned(Nothing);
    impl SchedulerTask for NothingAligned {
        fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
            assert!(ptr::from_ref(&self.0).addr().is_multiple_of(128));
            Ok(())
        }
    }
    let mut task = Task::new(Nothing);
    assert!(task.is_inline());
    task.run(&fire()).unwrap();
    drop(task);
    assert_eq!(DROPS.load(SeqCst), 1);
    let mut task = Task::new(NothingAligned(Nothing));
    assert!(!task.is_inline());
    task.run(&fire()).unwrap();
    drop(task);
    assert_eq!(DROPS.load(SeqCst), 2);
    assert!(Task::new(Nothing).take_back::<Nothing>().is_some());
    assert_eq!(DROPS.load(SeqCst), 3);
}

#[test]
fn a_refused_closure_comes_back_whole() {
    fn check(filler: impl Filler, _is_inline: bool) {
        fn back<F: FnOnce(&FireContext) + Send + 'static>(f: F) -> F {
            Task::once(f).take_back().expect("it was made from this type")
        }
        let (counted, drops) = counted();
        let runs = Arc::new(AtomicUsize::new(0));
        let told = Arc::clone(&runs);
        let f = back(move |_: &FireContext| {
            let _kept = &counted;
            told.fetch_add(filler.sum(), SeqCst);
        });
        assert_eq!(drops.load(SeqCst), 0);
        f(&fire());
        assert_eq!((runs.load(SeqCst), drops.load(SeqCst)), (5, 1));
    }
    each_form!(check);
}

#[test]
fn what_is_asked_back_as_another_type_is_dropped() {
    fn check(filler: impl Filler, _is_inline: bool) {
        let (counted, drops) = counted();
        let task = Task::every(move |_| {
            let _kept = (&counted, &filler);
        });
        assert!(task.take_back::<fn(&FireContext)>().is_none());
        assert_eq!(drops.load(SeqCst), 1);
    }
    each_form!(check);
}

#[test]
fn what_was_consumed_does_not_come_back() {
    fn back<F: FnOnce(&FireContext) + Send + 'static>(f: F) -> Option<F> {
        let mut task = Task::once(f);
        task.run(&fire()).unwrap();
        task.take_back()
    }
    let (counted, drops) = counted();
    assert!(back(move |_: &FireContext| drop(counted)).is_none());
    assert_eq!(drops.load(SeqCst), 1);
}

#[test]
fn swapped_and_moved_tasks_keep_their_values() {
    fn check(filler: impl Filler, _is_inline: bool) {
        let (small, small_drops) = counted();
        let (other, other_drops) = counted();
        let mut one = Task::every(move |_| {
            let _kept = &small;
            Err::<(), _>("one")
        });
        let mut two = Task::every(move |_| {
            let _kept = &other;
            Err::<(), _>(filler.sum())
        });
        mem::swap(&mut one, &mut two);
        let mut tasks = vec![one, two];
        tasks.reserve(1000);
        let texts = tasks.iter_mut().map(|task| task.run(&fire()).unwrap_err().to_string());
        assert_eq!(texts.collect::<Vec<_>>(), ["5", "one"]);
        tasks.remove(0);
        assert_eq!((small_drops.load(SeqCst), other_drops.load(SeqCst)), (0, 1));
        std::thread::scope(|scope| {
            scope.spawn(move || drop(tasks));
        });
        assert_eq!((small_drops.load(SeqCst), other_drops.load(SeqCst)), (1, 1));
    }
    each_form!(check);
}

#[test]
fn a_drop_that_panics_happens_once() {
    fn check(filler: impl Filler, _is_inline: bool) {
        let (mut counted, drops) = counted();
        counted.panics = true;
        let (beside, beside_drops) = self::counted();
        let task = Task::every(move |_| {
            let _kept = (&counted, &beside, &filler);
        });
        assert!(catch_unwind(AssertUnwindSafe(|| drop(task))).is_err());
        assert_eq!((drops.load(SeqCst), beside_drops.load(SeqCst)), (1, 1));
    }
    each_form!(check);
}

#[test]
fn a_run_that_panics_consumes_a_closure_for_once_and_no_other() {
    fn check(filler: impl Filler, _is_inline: bool) {
        let (in_once, once_drops) = counted();
        let mut once = Task::once(move |_| {
            let _kept = &in_once;
            assert_eq!(filler.sum(), 0, "planted");
        });
        assert!(catch_unwind(AssertUnwindSafe(|| once.run(&fire()))).is_err());
        assert_eq!(once_drops.load(SeqCst), 1);
        once.run(&fire()).unwrap();
        drop(once);
        assert_eq!(once_drops.load(SeqCst), 1);

        let (in_every, every_drops) = counted();
        let mut runs = 0;
        let mut every = Task::every(move |_| {
            let _kept = (&in_every, &filler);
            runs += 1;
            assert_ne!(runs, 1, "planted");
        });
        assert!(catch_unwind(AssertUnwindSafe(|| every.run(&fire()))).is_err());
        assert_eq!(every_drops.load(SeqCst), 0);
        every.run(&fire()).unwrap();
        drop(every);
        assert_eq!(every_drops.load(SeqCst), 1);
    }
    each_form!(check);
}
