//! What a payload promises: the value that went in comes out, and is dropped exactly once,
//! whichever way it is kept and whichever way it leaves.
#![cfg(not(loom))]

extern crate alloc;

use alloc::sync::Arc;
use core::{cell::Cell, fmt::Debug, panic::AssertUnwindSafe};
use std::panic;

use clockjack_exec::payload::{Payload, Payloads};
use clockjack_testing::allocation::Counting;

#[global_allocator]
static COUNTING: Counting = Counting::new();

/// What `work` gives, and how many blocks it got and gave back.
fn counted<R>(work: impl FnOnce() -> R) -> (R, u64, u64) {
    let (result, counts) = COUNTING.during(work);
    (result, counts.allocations, counts.frees)
}

/// LiveTask as long as the counter is shared; the extra makes it of any size and alignment.
#[derive(Clone, Debug, PartialEq)]
struct Tracked<X> {
    live: Arc<()>,
    extra: X,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
struct Aligned(u8);

/// Every way out for a value, with the number of its live copies after each.
fn check_dropped_once<X: Clone + Debug + PartialEq + Send + Sync + 'static>(extra: X) {
    let live = Arc::new(());
    let others = || Arc::strong_count(&live) - 1;
    let tracked = Tracked { live: Arc::clone(&live), extra };
    let made = || Payload::new(tracked.clone());
    assert_eq!(others(), 1, "the original");

    let payload = made();
    assert_eq!(others(), 2, "moved in, not dropped");
    assert!(payload.is::<Tracked<X>>());
    assert_eq!(payload.downcast_ref::<Tracked<X>>(), Some(&tracked));
    drop(payload);
    assert_eq!(others(), 1, "dropped with the payload");

    let payload = made().downcast::<String>().expect_err("it is no string");
    assert_eq!(others(), 2, "a wrong guess drops nothing");
    let moved = Box::new(payload);
    let value = moved.downcast::<Tracked<X>>().expect("it is this type");
    assert_eq!(others(), 2, "came out, not dropped");
    assert_eq!(value, tracked);
    drop(value);
    assert_eq!(others(), 1, "dropped by whom it came to");

    std::thread::scope(|scope| {
        let payload = made();
        scope.spawn(move || drop(payload));
    });
    assert_eq!(others(), 1, "dropped by another thread");
}

#[test]
fn a_value_is_dropped_exactly_once_inline_and_boxed() {
    check_dropped_once(());
    check_dropped_once(7_usize);
    check_dropped_once([7_usize; 2]);
    check_dropped_once([7_usize; 3]);
    check_dropped_once([7_u8; 1000]);
    check_dropped_once(Aligned(7));
    check_dropped_once(String::from("seven"));
}

#[test]
fn every_block_that_a_payload_gets_it_gives_back() {
    fn check<T: Send + 'static>(make: impl Fn() -> T) {
        let name = core::any::type_name::<T>();
        let ((), allocs, frees) = counted(|| drop(Payload::new(make())));
        assert_eq!(allocs, frees, "{name}, dropped");
        let ((), allocs, frees) = counted(|| drop(Payload::new(make()).downcast::<T>()));
        assert_eq!(allocs, frees, "{name}, taken out");
    }
    check(|| ());
    check(|| [0_usize; 3]);
    check(|| [0_usize; 4]);
    check(|| Aligned(0));
    check(|| String::from("seven"));
    check(|| vec![String::from("seven"); 3]);
}

#[test]
fn three_words_are_inline_and_more_or_stricter_are_boxed() {
    fn check<T: Send + 'static>(value: T, blocks: u64) {
        let name = core::any::type_name::<T>();
        let (payload, allocs, _) = counted(|| Payload::new(value));
        assert_eq!(allocs, blocks, "{name}");
        let at = core::ptr::from_ref(payload.downcast_ref::<T>().expect("it is this type"));
        assert!(at.is_aligned(), "{name}");
    }
    #[repr(align(64))]
    struct AlignedNothing;

    check((), 0);
    check([7_usize; 3], 0);
    check([7_u8; 3 * size_of::<usize>()], 0);
    check([7_u8; 3 * size_of::<usize>() + 1], 1);
    check([7_usize; 4], 1);
    check(Aligned(7), 1);
    // Boxed as well, though a box of nothing takes no memory.
    check(AlignedNothing, 0);
    check(7_u128, u64::from(align_of::<u128>() > align_of::<usize>()));
}

#[test]
fn a_value_without_size_is_dropped_too() {
    std::thread_local! {
        static N_DROPS: Cell<usize> = const { Cell::new(0) };
    }
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {
            N_DROPS.with(|n| n.set(n.get() + 1));
        }
    }
    #[repr(align(64))]
    struct Around(Nothing);

    drop(Payload::new(Nothing));
    assert_eq!(N_DROPS.get(), 1);
    drop(Payload::new(Around(Nothing)));
    assert_eq!(N_DROPS.get(), 2);
    let out = Payload::new(Around(Nothing)).downcast::<Around>();
    assert_eq!(N_DROPS.get(), 2);
    drop(out);
    assert_eq!(N_DROPS.get(), 3);
}

#[test]
fn a_value_that_panics_in_its_drop_gives_its_box_back() {
    struct Bad<X>(X);
    impl<X> Drop for Bad<X> {
        fn drop(&mut self) {
            panic::resume_unwind(Box::new("bad"));
        }
    }
    for payload in [|| Payload::new(Bad(0_u8)), || Payload::new(Bad([0_usize; 9]))] {
        let (end, allocs, frees) = counted(|| {
            let payload = payload();
            panic::catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(drop)
        });
        assert_eq!(end, Err(()));
        assert_eq!(allocs, frees);
    }
}

#[test]
fn types_of_the_same_shape_are_told_apart() {
    struct Metres(#[expect(dead_code, reason = "for the shape")] u64);
    let payload = Payload::new(Metres(7));
    assert!(!payload.is::<u64>());
    assert!(payload.downcast_ref::<u64>().is_none());
    assert!(payload.downcast::<u64>().is_err());
}

#[test]
fn a_payload_tells_the_name_of_its_type() {
    assert_eq!(Payload::new(7_u32).type_name(), "u32");
    assert_eq!(format!("{:?}", Payload::new(7_u32)), "Payload(u32)");
    assert!(Payload::unit().is::<()>());
}

/// Compiles only as long as [`Payload`] is not `Sync`: else two impls fit.
#[test]
fn a_payload_can_be_sent_but_not_shared() {
    const fn can_be_sent<T: Send>() {}
    trait Either<Which> {
        fn only(&self) -> &'static str {
            "one impl fits"
        }
    }
    struct IfSync;
    impl<T> Either<()> for T {}
    impl<T: Sync> Either<IfSync> for T {}
    const { can_be_sent::<Payload>() };
    const { can_be_sent::<Payloads>() };
    assert_eq!(Payload::unit().only(), "one impl fits");
}

/// A list of so many numbers, each equal to its position.
fn numbers(n_numbers: usize) -> Payloads {
    (0..n_numbers).fold(Payloads::new(), Payloads::with)
}

#[test]
fn arguments_are_taken_by_position_in_any_order() {
    for n_arguments in 0..6 {
        let mut input = numbers(n_arguments);
        for index in (0..n_arguments).rev() {
            assert_eq!(input.take::<usize>(index), Ok(index));
            assert!(input.take::<usize>(index).expect_err("it is taken").is_missing());
            assert!(input.get(index).is_none());
        }
        assert_eq!(input.len(), n_arguments, "positions stay");
        assert_eq!(input.is_empty(), n_arguments == 0);
        for index in [n_arguments, n_arguments + 1, usize::MAX] {
            assert!(input.take::<usize>(index).expect_err("never given").is_missing());
        }
    }
}

#[test]
fn an_argument_of_another_type_stays() {
    for index in 0..4 {
        let mut input = numbers(4);
        let error = input.take::<String>(index).expect_err("it is a number");
        assert!(error.is_wrong_type());
        assert_eq!(
            error.to_string(),
            format!("argument {index} is a usize, expected a alloc::string::String")
        );
        assert_eq!(input.take::<usize>(index), Ok(index));
    }
}

#[test]
fn what_was_not_taken_comes_in_its_order() {
    let mut input = numbers(5);
    input.take::<usize>(1).expect("it is there");
    input.take::<usize>(3).expect("it is there");
    let rest = input.into_iter().map(|payload| payload.downcast::<usize>());
    let rest: Result<Vec<_>, _> = rest.collect();
    assert_eq!(rest.expect("all are numbers"), [0, 2, 4]);
}

#[test]
fn a_unit_is_no_argument_and_a_payload_is_one() {
    assert_eq!(Payloads::from(()).len(), 0);
    assert_eq!(Payloads::from(Payload::unit()).len(), 1);
    assert_eq!(format!("{:?}", Payloads::from(Payload::unit())), "[Some(Payload(()))]");
}
