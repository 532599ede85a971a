//! `log_record` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| clockjack_fuzz::log_record(bytes));
