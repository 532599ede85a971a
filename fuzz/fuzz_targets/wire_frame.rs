//! `wire_frame` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| clockjack_fuzz::wire_frame(bytes));
