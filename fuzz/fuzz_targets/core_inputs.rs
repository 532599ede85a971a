//! `core_inputs` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| clockjack_fuzz::core_inputs(bytes));
