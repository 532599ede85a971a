//! Mutants of the runtime: for each mutant, a seed with which the simulation detects it.
//!
//! Without a mutant, every run in this file is clean. `cargo xtask mutants` shows that each run
//! fails with its mutant of `mutants/sim.toml`; `cargo xtask sim --planted` repeats the search,
//! which visits each of these runs, except the one that [`is_clean_apart`] has.

use clockjack_sim::{campaign::Plan, context::Mode, run::run, workloads};

/// The number of seeds of the search.
const SEARCH: u64 = 2_000;

#[track_caller]
fn is_clean(name: &str, mode: Mode, seed: u64) {
    let search = Plan { workloads: workloads::ALL.to_vec(), mode: None, is_twice: false };
    let (workload, drawn) = search.at(seed);
    let visited = (workload.description().name, drawn);
    assert!(seed < SEARCH, "the search ends before seed {seed}");
    assert_eq!((name, mode), visited, "what the search runs with seed {seed}");
    is_clean_apart(name, mode, seed);
}

/// As [`is_clean`], for a run that the search does not visit.
#[track_caller]
fn is_clean_apart(name: &str, mode: Mode, seed: u64) {
    let workload = workloads::named(name).expect("the workload exists");
    let outcome = run(workload, seed, mode, None);
    assert!(outcome.is_clean(), "{outcome}");
}

#[test]
fn a_lost_wake_up_is_found() {
    is_clean("workers", Mode::Safety, 14);
}

#[test]
fn an_early_fire_is_found() {
    is_clean("actors", Mode::Liveness, 0);
}

#[test]
fn a_double_fire_is_found() {
    is_clean("actors", Mode::Safety, 6);
}

#[test]
fn a_lost_message_is_found() {
    is_clean("actors", Mode::Liveness, 0);
}

#[test]
fn a_lost_scheduled_message_is_found() {
    is_clean("actors", Mode::Liveness, 54);
}

/// An actor schedules a message during the shutdown, for a time after the end of the system.
#[test]
fn a_scheduler_that_outlives_its_system_is_found() {
    is_clean("actors", Mode::Liveness, 0);
}

#[test]
fn a_timer_that_overtakes_messages_is_found() {
    is_clean("actors", Mode::Liveness, 0);
}

#[test]
fn a_receive_timeout_that_overtakes_messages_is_found() {
    is_clean("actors", Mode::Liveness, 90);
}

#[test]
fn a_wrong_count_of_restarts_is_found() {
    is_clean("actors", Mode::Safety, 6);
}

#[test]
fn an_unordered_stop_is_found() {
    is_clean("actors", Mode::Liveness, 0);
}

#[test]
fn a_timer_that_is_lost_at_a_wrap_is_found() {
    is_clean("asks", Mode::Liveness, 4);
}

#[test]
fn a_timer_of_an_earlier_value_is_found() {
    is_clean("actors", Mode::Liveness, 0);
}

#[test]
fn a_child_that_is_forgotten_is_found() {
    is_clean("actors", Mode::Liveness, 0);
}

#[test]
fn an_ask_that_nobody_will_answer_is_found() {
    is_clean("asks", Mode::Liveness, 4);
}

#[test]
fn an_ask_whose_time_is_over_unnoticed_is_found() {
    is_clean("asks", Mode::Liveness, 4);
}

#[test]
fn a_wait_that_does_not_wait_is_found() {
    is_clean("asks", Mode::Liveness, 4);
}

#[test]
fn a_future_that_outlives_its_actor_is_found() {
    is_clean("asks", Mode::Liveness, 4);
}

#[test]
fn an_output_that_does_not_wait_is_found() {
    is_clean("graphs", Mode::Safety, 9);
}

#[test]
fn a_result_that_depends_on_who_comes_first_is_found() {
    is_clean("graphs", Mode::Liveness, 21);
}

#[test]
fn what_a_failed_call_leaves_behind_is_found() {
    is_clean("graphs", Mode::Safety, 1311);
}

#[test]
fn a_graph_that_runs_hot_is_found() {
    is_clean("graphs", Mode::Liveness, 3);
}

#[test]
fn a_shutdown_that_overruns_its_deadline_is_found() {
    is_clean("jobs", Mode::Safety, 67);
}

#[test]
fn runs_that_a_shutdown_leaves_unreported_are_found() {
    is_clean("jobs", Mode::Safety, 13);
}

#[test]
fn jobs_of_the_runtime_without_a_reserve_are_found() {
    is_clean("actors", Mode::Liveness, 198);
}

#[test]
fn a_restart_before_its_time_is_found() {
    is_clean("actors", Mode::Liveness, 90);
}

#[test]
fn a_receive_timeout_that_never_comes_is_found() {
    is_clean("actors", Mode::Liveness, 90);
}

#[test]
fn a_message_that_the_close_sends_early_is_found() {
    is_clean("actors", Mode::Liveness, 0);
}

#[test]
fn a_group_in_the_wrong_order_is_found() {
    is_clean("actors", Mode::Liveness, 36);
}

#[test]
fn a_timer_that_the_close_drops_is_found() {
    is_clean("actors", Mode::Liveness, 108);
}

#[test]
fn a_lease_that_revives_a_lost_node_is_found() {
    is_clean("cluster", Mode::Safety, 29);
}

#[test]
fn a_snapshot_that_leaves_lost_nodes_is_found() {
    is_clean("cluster", Mode::Safety, 11);
}

#[test]
fn a_grant_that_adds_is_found() {
    is_clean("cluster", Mode::Liveness, 5);
}

#[test]
fn a_loss_at_the_end_of_a_stream_is_found() {
    is_clean_apart("cluster", Mode::Liveness, 3);
}

#[test]
fn an_end_with_the_wrong_cause_is_found() {
    is_clean("cluster", Mode::Liveness, 5);
}

#[test]
fn an_incarnation_that_returns_is_found() {
    is_clean("cluster", Mode::Liveness, 5);
}

#[test]
fn a_link_that_holds_its_credit_is_found() {
    is_clean("cluster", Mode::Liveness, 59);
}

#[test]
fn a_channel_without_a_window_is_found() {
    is_clean("cluster", Mode::Liveness, 5);
}

#[test]
fn a_link_without_a_window_is_found() {
    is_clean("cluster", Mode::Safety, 29);
}
