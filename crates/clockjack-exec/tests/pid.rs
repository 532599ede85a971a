//! What a pid promises: its text, and that every part distinguishes it.
#![cfg(not(loom))]

use core::num::NonZeroU64;

use clockjack_exec::pid::Pid;

fn pid(node: u32, index: u32, generation: u64) -> Pid {
    Pid::new(node, index, NonZeroU64::new(generation).expect("the test gives one"))
}

#[test]
fn a_pid_is_written_in_braces_with_bar_and_dot() {
    assert_eq!(pid(3, 17, 42).to_string(), "{3|17.42}");
    assert_eq!(format!("{:?}", pid(3, 17, 42)), "Pid{3|17.42}");
}

#[test]
fn every_part_tells_two_pids_apart() {
    let one = pid(1, 1, 1);
    for other in [pid(2, 1, 1), pid(1, 2, 1), pid(1, 1, 2)] {
        assert_ne!(one, other);
        assert!(one < other);
    }
}
