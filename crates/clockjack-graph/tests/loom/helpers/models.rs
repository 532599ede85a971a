//! What may happen between the workers of an epoch. The leader is the coordinator.

use super::harness::{Action, OWN_THREAD, Setup, job, lane, model_within};

#[test]
fn two_helpers_and_a_leader_do_each_job_once_and_in_order() {
    loom::model(|| {
        let script = vec![job(&[]), job(&[]), job(&[0, 1])];
        let mut harness = Setup::new(script, vec![lane(3)], 2).start();
        let outcome = harness.epoch();
        assert_eq!((outcome.n_called, outcome.fault), (3, None));
        assert_eq!(harness.done(), [0, 1, 2]);
        harness.end();
    });
}

#[test]
fn two_helpers_and_a_leader_share_three_jobs() {
    loom::model(|| {
        let script = vec![job(&[]), job(&[]), job(&[])];
        let mut harness = Setup::new(script, vec![lane(3)], 2).start();
        assert_eq!(harness.epoch().n_called, 3);
        assert_eq!(harness.done(), [0, 1, 2]);
        harness.end();
    });
}

#[test]
fn a_helper_that_ends_the_last_job_wakes_the_leader_that_goes_to_wait() {
    loom::model(|| {
        let mut harness = Setup::new(vec![job(&[]), job(&[])], vec![lane(2)], 1).start();
        assert_eq!(harness.epoch().n_called, 2);
        assert_eq!(harness.done(), [0, 1]);
        harness.end();
    });
}

#[test]
fn an_output_boundary_sees_all_before_it() {
    loom::model(|| {
        let script = vec![job(&[]), job(&[]), job(&[0]).waiting_for_all()];
        let mut harness = Setup::new(script, vec![lane(2)], 1).start();
        assert_eq!(harness.epoch().n_called, 3);
        assert_eq!(harness.done(), [0, 1, 2]);
        harness.end();
    });
}

#[test]
fn of_two_failures_at_once_the_first_is_told_and_nothing_that_waits_for_it_begins() {
    loom::model(|| {
        let script = vec![job(&[]).does(Action::Fail), job(&[]).does(Action::Fail), job(&[0])];
        let mut harness = Setup::new(script, vec![lane(3)], 2).start();
        assert_eq!(harness.epoch().fault, Some((0, 0)));
        let done = harness.done();
        assert!(done == [0] || done == [0, 1], "{done:?}");
        harness.end();
    });
}

#[test]
fn a_failure_while_others_take_jobs_leaves_those_before_it_to_be_done() {
    loom::model(|| {
        let script = vec![job(&[]), job(&[]).does(Action::Fail), job(&[]), job(&[0])];
        let mut harness = Setup::new(script, vec![lane(3)], 2).start();
        assert_eq!(harness.epoch().fault, Some((1, 1)));
        assert_eq!(harness.done()[..2], [0, 1]);
        harness.end();
    });
}

#[test]
fn a_leader_that_waits_is_told_of_jobs_that_do_not_count_any_more() {
    loom::model(|| {
        // One at a time: the leader may find no job that it may take.
        let script = vec![job(&[]).does(Action::Fail), job(&[])];
        let mut harness = Setup::new(script, vec![lane(1)], 1).start();
        assert_eq!(harness.epoch().fault, Some((0, 0)));
        assert_eq!(harness.done(), [0]);
        harness.end();
    });
}

/// Two epochs that follow each other, while a helper spins so often before it ends.
fn two_epochs(n_spins: u32) {
    loom::model(move || {
        let setup = Setup::new(vec![job(&[]), job(&[])], vec![lane(2)], 1);
        let mut harness = Setup { n_spins, ..setup }.start();
        for _ in 0..2 {
            assert_eq!(harness.epoch().n_called, 2);
            assert_eq!(harness.done(), [0, 1]);
        }
        harness.end();
    });
}

#[test]
fn a_helper_that_comes_after_the_epoch_is_at_home_for_the_next_or_in_it() {
    two_epochs(0);
}

#[test]
fn a_helper_that_looks_without_the_lock_sees_the_next_epoch_or_goes_home() {
    two_epochs(1);
}

#[test]
fn a_helper_of_a_lane_that_still_looks_does_not_sleep_on_the_next_epoch() {
    loom::model(|| {
        let script = vec![job(&[]), job(&[0]).in_lane(1)];
        let mut harness = Setup::new(script, vec![lane(1), OWN_THREAD], 0).start();
        for _ in 0..2 {
            assert_eq!(harness.epoch().n_called, 2);
            assert_eq!(harness.done(), [0, 1]);
        }
        harness.end();
    });
}

#[test]
fn a_helper_of_a_lane_and_a_helper_hand_jobs_to_each_other() {
    model_within(2, || {
        let script = vec![job(&[]).in_lane(1), job(&[0]), job(&[0]), job(&[1, 2]).in_lane(1)];
        let mut harness = Setup::new(script, vec![lane(2), OWN_THREAD], 1).start();
        assert_eq!(harness.epoch().n_called, 4);
        harness.end();
    });
}

#[test]
fn a_helper_that_the_executor_does_not_take_leaves_the_job_to_the_leader() {
    loom::model(|| {
        let script = vec![job(&[]).in_lane(1), job(&[0])];
        let setup = Setup::new(script, vec![lane(1), OWN_THREAD], 1);
        let mut harness = Setup { is_full: true, ..setup }.start();
        assert_eq!(harness.epoch().n_called, 2);
        harness.end();
    });
}

#[test]
fn after_a_stop_nothing_begins_and_the_epoch_ends() {
    loom::model(|| {
        let script = vec![job(&[]), job(&[]).does(Action::Stop), job(&[1])];
        let mut harness = Setup::new(script, vec![lane(2)], 1).start();
        let outcome = harness.epoch();
        assert_eq!(outcome.fault, None);
        assert!(!harness.done().contains(&2), "it began after the stop");
        harness.end();
    });
}

#[test]
fn a_job_that_panics_ends_and_the_leader_goes_on_with_its_panic() {
    loom::model(|| {
        let script = vec![job(&[]), job(&[]).does(Action::Panic), job(&[1])];
        let mut harness = Setup::new(script, vec![lane(2)], 1).start();
        assert_eq!(harness.epoch_that_panics(), 1);
        assert_eq!(harness.done(), [0, 1]);
        harness.end();
    });
}

#[test]
fn of_two_panics_and_a_failure_the_first_in_order_is_told() {
    loom::model(|| {
        let thrown = || job(&[]).does(Action::Panic);
        let script = vec![thrown(), thrown(), job(&[]).does(Action::Fail)];
        let mut harness = Setup::new(script, vec![lane(3)], 2).start();
        assert_eq!(harness.epoch_that_panics(), 0);
        harness.end();
    });
    loom::model(|| {
        let script = vec![job(&[]).does(Action::Fail), job(&[]).does(Action::Panic)];
        let mut harness = Setup::new(script, vec![lane(2)], 1).start();
        assert_eq!(harness.epoch().fault, Some((0, 0)));
        harness.end();
    });
}

#[test]
fn an_epoch_does_not_end_before_the_shares_of_a_batch_are_back() {
    loom::model(|| {
        let script = vec![job(&[]).does(Action::Batch(2))];
        let mut harness = Setup::new(script, vec![lane(1)], 1).start();
        assert_eq!(harness.epoch().n_called, 1);
        harness.end();
    });
}

#[test]
fn a_helper_of_a_lane_that_goes_to_sleep_is_sent_home() {
    loom::model(|| {
        let script = vec![job(&[]).in_lane(0)];
        Setup::new(script, vec![OWN_THREAD], 0).start().end();
    });
}
