//! Golden trace hashes: equal seeds give equal traces on every machine.
//!
//! `golden.txt` is the output of `cargo xtask sim --hashes --seeds 12`. A change of the runtime
//! that affects these runs also changes the hashes; after a review of the change, update the file.

use clockjack_sim::{campaign::Plan, run::run, workloads};

#[test]
fn the_first_seeds_give_the_hashes_that_were_written_down() {
    let plan = Plan { workloads: workloads::ALL.to_vec(), mode: None, is_twice: false };
    let found: String = (0..12)
        .map(|seed| {
            let (workload, mode) = plan.at(seed);
            let outcome = run(workload, seed, mode, None);
            assert!(outcome.is_clean(), "{outcome}");
            format!("{seed} {} {mode} {:016x}\n", outcome.workload, outcome.hash)
        })
        .collect();
    assert_eq!(found, include_str!("golden.txt"));
}
