//! Runs every stored input, and some random ones, once: an error that the fuzzer has found stays
//! detected.

use std::{fs, path::Path};

use clockjack_fuzz::TARGETS;

#[test]
fn every_kept_input_of_every_target_breaks_no_promise() {
    for (name, run) in TARGETS {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let entries = fs::read_dir(&dir).expect("each target has a folder");
        let mut n = 0;
        for entry in entries {
            run(&fs::read(entry.expect("it can be listed").path()).expect("it can be read"));
            n += 1;
        }
        assert!(n > 0, "{name} has no kept input");
    }
}

#[test]
fn drawn_inputs_break_no_promise() {
    let mut state = 1_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    for (name, run) in TARGETS {
        for length in 0..300 {
            let bytes: Vec<u8> = (0..length).map(|_| draw()).collect();
            let outcome = std::panic::catch_unwind(|| run(&bytes));
            assert!(outcome.is_ok(), "{name}: {}", bytes.escape_ascii());
        }
    }
}
