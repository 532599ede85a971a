//! What a failure promises: every error goes in, comes out again whole, and a code costs nothing.
#![cfg(not(loom))]

extern crate alloc;

use alloc::rc::Rc;
use core::{
    cell::{Cell, RefCell},
    error::Error,
    fmt,
    num::ParseIntError,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use clockjack_exec::failure::{Failure, Kind, StaticError};
use clockjack_testing::allocation::Counting;

static SILENT: StaticError = StaticError::new(7, "sensor silent");

#[global_allocator]
static COUNTING: Counting = Counting::new();

/// Not `Sync`, says how many of its kind there are, and has a source.
struct Lost {
    live: &'static AtomicUsize,
    cause: ParseIntError,
    _not_sync: Cell<u8>,
}

impl Lost {
    fn new(live: &'static AtomicUsize) -> Self {
        live.fetch_add(1, Relaxed);
        let cause = "x".parse::<u8>().expect_err("no number");
        Self { live, cause, _not_sync: Cell::new(0) }
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Relaxed);
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lost")
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the line is lost")
    }
}

impl Error for Lost {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

#[test]
fn a_failure_is_two_words_and_can_be_sent() {
    const fn can_be_sent<T: Send>() {}
    const { can_be_sent::<Failure>() };
    assert_eq!(size_of::<Failure>(), 2 * size_of::<usize>());
}

#[test]
fn any_error_becomes_a_failure_and_keeps_its_text_and_source() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    let fails = || -> Result<(), Failure> { Err(Lost::new(&LIVE))? };
    let failure = fails().expect_err("it always does");

    assert_eq!(failure.kind(), Kind::Error);
    assert_eq!(failure.code(), None);
    assert_eq!(failure.to_string(), "the line is lost");
    assert_eq!(format!("{failure:?}"), "Failure(Lost)");
    assert!(failure.as_error().source().expect("it has one").is::<ParseIntError>());
    assert!(failure.downcast_ref::<Lost>().is_some());
    assert!(failure.downcast_ref::<ParseIntError>().is_none());
}

#[test]
fn the_error_inside_is_dropped_exactly_once() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    drop(Failure::from(Lost::new(&LIVE)));
    assert_eq!(LIVE.load(Relaxed), 0, "dropped with the failure");

    let failure = Failure::from(Lost::new(&LIVE));
    let failure = failure.downcast::<ParseIntError>().expect_err("it is another error");
    assert_eq!(LIVE.load(Relaxed), 1, "it survives a wrong guess");
    let lost = failure.downcast::<Lost>().expect("it is this error");
    assert_eq!(LIVE.load(Relaxed), 1, "it came out");
    drop(lost);
    assert_eq!(LIVE.load(Relaxed), 0, "and was dropped by whom it came to");
}

#[test]
fn a_text_is_a_failure_too() {
    for failure in [Failure::msg("no worker left"), Failure::msg(String::from("no worker left"))] {
        assert_eq!(failure.kind(), Kind::Message);
        assert_eq!(failure.code(), None);
        assert_eq!(failure.to_string(), "no worker left");
        assert_eq!(format!("{failure:?}"), r#"Failure("no worker left")"#);
    }
}

#[test]
fn a_coded_failure_allocates_nothing() {
    let before = COUNTING.allocations();
    let failure = SILENT.failure();
    let code = failure.code();
    let failure = failure.downcast::<ParseIntError>().expect_err("it is a code");
    let out = failure.downcast::<StaticError>();
    let after = COUNTING.allocations();

    assert_eq!(after, before);
    assert_eq!(code, Some(7));
    assert_eq!(out.expect("it is a code"), SILENT);
    drop(Failure::msg("this one does"));
    assert!(COUNTING.allocations() > after, "the counter counts");
}

#[test]
fn a_code_is_found_by_either_way_in() {
    for failure in [SILENT.failure(), Failure::from(SILENT)] {
        assert_eq!(failure.kind(), Kind::StaticError(7));
        assert_eq!(failure.code(), Some(7));
        assert_eq!(failure.to_string(), "sensor silent (code 7)");
        assert_eq!(failure.downcast_ref(), Some(&SILENT));
        assert_eq!(failure.downcast::<StaticError>().expect("it is a code"), SILENT);
    }
}

#[test]
fn a_failure_leaves_by_question_mark_from_a_main_with_any_error() {
    fn main_like(failure: Failure) -> Result<(), Box<dyn Error>> {
        Err(failure)?
    }
    for failure in [SILENT.failure(), Failure::from(SILENT)] {
        assert!(main_like(failure).expect_err("it always does").is::<StaticError>());
    }
    let boxed: Box<dyn Error + Send> = Failure::msg("again").into();
    assert_eq!(Failure::from_boxed(boxed).kind(), Kind::Message);
}

/// Compiles only as long as [`Failure`] is neither `Sync` nor an `Error`: else two impls fit.
#[test]
fn a_failure_is_neither_shared_nor_an_error() {
    trait Either<Which> {
        fn only(&self) -> &'static str {
            "one impl fits"
        }
    }
    struct IfSync;
    struct IfError;
    impl<T> Either<()> for T {}
    impl<T: Sync> Either<IfSync> for T {}
    impl<T: Error> Either<IfError> for T {}
    assert_eq!(SILENT.failure().only(), "one impl fits");
    let not_sync = Rc::new(RefCell::new(0));
    assert_eq!(not_sync.only(), "one impl fits");
}
