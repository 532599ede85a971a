//! What a pid promises: its text round-trips, and an error says what is wrong with a text.
#![cfg(not(loom))]

use core::num::NonZeroU64;

use clockjack_exec::pid::{ParsePidError, Pid};
use proptest::prelude::*;

fn pid(node: u32, index: u32, generation: u64) -> Pid {
    Pid::new(node, index, NonZeroU64::new(generation).expect("the test gives one"))
}

fn refusal(text: &str) -> ParsePidError {
    text.parse::<Pid>().expect_err(text)
}

#[test]
fn a_pid_is_written_in_braces_with_bar_and_dot() {
    assert_eq!(pid(3, 17, 42).to_string(), "{3|17.42}");
    assert_eq!(format!("{:?}", pid(3, 17, 42)), "Pid{3|17.42}");
}

#[test]
fn a_host_is_read_and_forgotten() {
    for host in ["sparrow", "sparrow.example", "10.0.0.1:4000", "[::1]"] {
        assert_eq!(format!("{{3@{host}|17.42}}").parse(), Ok(pid(3, 17, 42)), "{host}");
    }
}

#[test]
fn a_text_of_another_form_is_refused() {
    for (text, says) in [
        ("", "not in braces"),
        ("{", "not in braces"),
        ("3|17.42", "not in braces"),
        ("{3|17.42", "not in braces"),
        (" {3|17.42}", "not in braces"),
        ("{}", "no '|'"),
        ("{3.42}", "no '|'"),
        ("{3@|17.42}", "the host"),
        ("{3@a@b|17.42}", "the host"),
        ("{3@{a|17.42}", "the host"),
        ("{3|1742}", "no '.'"),
    ] {
        let error = refusal(text);
        assert!(error.is_form(), "{text}: {error}");
        assert!(error.to_string().contains(says), "{text}: {error}");
    }
}

#[test]
fn a_part_that_is_no_number_is_named() {
    for (text, says) in [
        ("{|17.42}", "the node is not"),
        ("{@sparrow|17.42}", "the node is not"),
        ("{+3|17.42}", "the node is not"),
        ("{3|.42}", "the index is not"),
        ("{3|-1.42}", "the index is not"),
        ("{3|17.}", "the generation is not"),
        ("{3|17.4.2}", "the generation is not"),
        ("{3|17.0x2a}", "the generation is not"),
        ("{3|17.٤٢}", "the generation is not"),
    ] {
        let error = refusal(text);
        assert!(error.is_no_number(), "{text}: {error}");
        assert!(error.to_string().contains(says), "{text}: {error}");
    }
}

#[test]
fn a_number_out_of_range_is_named() {
    for (text, says) in [
        ("{4294967296|17.42}", "the node is too large"),
        ("{3|4294967296.42}", "the index is too large"),
        ("{3|17.18446744073709551616}", "the generation is too large"),
    ] {
        let error = refusal(text);
        assert!(error.is_too_large(), "{text}: {error}");
        assert!(error.to_string().contains(says), "{text}: {error}");
    }
    assert!(refusal("{3|17.0}").is_zero_generation());
    assert_eq!("{4294967295|4294967295.18446744073709551615}".parse(), {
        Ok(pid(u32::MAX, u32::MAX, u64::MAX))
    });
}

#[test]
fn every_part_tells_two_pids_apart() {
    let one = pid(1, 1, 1);
    for other in [pid(2, 1, 1), pid(1, 2, 1), pid(1, 1, 2)] {
        assert_ne!(one, other);
        assert!(one < other);
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(node: u32, index: u32, generation in 1..=u64::MAX) {
        let pid = pid(node, index, generation);
        prop_assert_eq!(pid.to_string().parse(), Ok(pid));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in r"\{?[0-9@a.|{}+]{0,12}\}?") {
        if let Ok(pid) = text.parse::<Pid>() {
            prop_assert_eq!(pid.to_string().parse(), Ok(pid));
        }
    }
}
