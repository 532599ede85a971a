//! Runs a test in many orders of delivery.

use core::{any::Any, ops::Range, panic::AssertUnwindSafe};
use std::{env, panic::catch_unwind, thread};

use crate::ManualTime;

/// The environment variable that selects a single seed.
pub const SEED_VARIABLE: &str = "CLOCKJACK_SEED";

/// Runs a test once per seed, each time in a new system: [`ManualTime::with_seed`].
///
/// If [`SEED_VARIABLE`] is set, only that seed runs, whether it is in the range or not.
///
/// # Panics
///
/// If a seed fails. The message contains the seed, the text of the panic, and how to run that seed
/// alone.
///
/// # Examples
///
/// ```
/// use clockjack_testkit::for_each_seed;
///
/// for_each_seed(0..10, |time| {
///     let out = time.probe::<u32>();
///     out.actor_ref().tell(1).expect("it is there");
///     out.expect_eq(1);
/// });
/// ```
pub fn for_each_seed(seeds: Range<u64>, test: impl Fn(&ManualTime)) {
    run(seeds, env::var(SEED_VARIABLE).ok().as_deref(), test);
}

fn run(seeds: Range<u64>, only: Option<&str>, test: impl Fn(&ManualTime)) {
    let (seeds, only) = match only.map(str::parse::<u64>) {
        None => (seeds, None),
        Some(Ok(seed)) => (0..0, Some(seed)),
        Some(Err(error)) => panic!("{SEED_VARIABLE} is not a number: {error}"),
    };
    for seed in seeds.chain(only) {
        let once = || test(&ManualTime::with_seed(seed));
        if let Err(payload) = catch_unwind(AssertUnwindSafe(once)) {
            let thread = thread::current();
            let name = thread.name().unwrap_or_default();
            panic!(
                "seed {seed} failed: {}\nto repeat it: {SEED_VARIABLE}={seed} cargo test {name}",
                text_of(&*payload)
            );
        }
    }
}

/// The text of a panic.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use core::cell::RefCell;

    use super::*;

    #[test]
    fn each_seed_is_run_once_and_in_order() {
        let seen = RefCell::new(Vec::new());
        run(3..6, None, |time| seen.borrow_mut().push(time.seed()));
        assert_eq!(*seen.borrow(), [3, 4, 5]);
    }

    #[test]
    fn a_seed_that_is_named_is_run_alone() {
        let seen = RefCell::new(Vec::new());
        run(0..100, Some("123"), |time| seen.borrow_mut().push(time.seed()));
        assert_eq!(*seen.borrow(), [123]);
    }

    #[test]
    fn the_last_seed_of_all_is_run_too() {
        let seen = RefCell::new(Vec::new());
        run(0..1, Some("18446744073709551615"), |time| seen.borrow_mut().push(time.seed()));
        assert_eq!(*seen.borrow(), [u64::MAX]);
    }

    #[test]
    fn a_failure_names_its_seed_and_how_to_repeat_it() {
        let failing = || run(0..9, None, |time| assert!(time.seed() < 4, "too large"));
        let payload = catch_unwind(failing).expect_err("one fails");
        assert_eq!(
            text_of(&*payload),
            "seed 4 failed: too large\nto repeat it: CLOCKJACK_SEED=4 cargo test \
             seeds::tests::a_failure_names_its_seed_and_how_to_repeat_it"
        );
    }

    #[test]
    fn a_variable_that_is_no_number_is_told() {
        let payload = catch_unwind(|| run(0..1, Some("x"), |_| {})).expect_err("it is none");
        assert!(text_of(&*payload).starts_with("CLOCKJACK_SEED is not a number"));
    }
}
