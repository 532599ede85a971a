//! What time does to a trigger: timers, intervals, windows, latency.

use super::{Bench, MS, queue, source, trigger};
use crate::{
    describe::{EventSourceSpec, SourceType, TriggerSpec, TriggerType},
    run::flow::trigger::{EventKind, invocations::Invocation},
};

const NOTHING: [&str; 0] = [];

fn timer(period_ms: u64, phase_ms: u64) -> EventSourceSpec {
    EventSourceSpec { period_ms, phase_ms, ..source(SourceType::Timer, &[]) }
}

fn timers(sources: &[EventSourceSpec]) -> Bench {
    Bench::new(trigger(TriggerType::Manual), sources.to_vec(), &[])
}

/// What was made: when it was due, for how many ticks, of which how many were missed.
fn fired(bench: &mut Bench, now_ns: u64) -> Vec<(u64, u32, u32)> {
    bench.collect(now_ns);
    let told = |invocation: Invocation| {
        assert_eq!(invocation.kind, EventKind::Timer);
        (invocation.scheduled_ns / MS, invocation.runs, invocation.missed_runs)
    };
    bench.out.iter_mut().map(|(invocation, _)| told(invocation)).collect()
}

#[test]
fn a_timer_fires_at_the_start_and_then_each_period() {
    let mut bench = timers(&[timer(10, 0)]);
    bench.trigger.start(100 * MS);
    assert_eq!(bench.trigger.next_due(), Some(100 * MS));
    assert_eq!(fired(&mut bench, 100 * MS), [(100, 1, 0)]);
    assert!(!bench.might_be_ready(110 * MS - 1));
    assert_eq!(fired(&mut bench, 110 * MS - 1), []);
    assert!(bench.might_be_ready(110 * MS));
    assert_eq!(fired(&mut bench, 110 * MS), [(110, 1, 0)]);
    assert_eq!(bench.trigger.next_due(), Some(120 * MS));
}

#[test]
fn a_timer_with_a_phase_fires_first_when_that_is_over() {
    let mut bench = timers(&[timer(10, 3)]);
    bench.trigger.start(0);
    assert_eq!(fired(&mut bench, 0), []);
    assert_eq!(fired(&mut bench, 3 * MS), [(3, 1, 0)]);
    assert_eq!(bench.trigger.next_due(), Some(13 * MS));
}

#[test]
fn ticks_that_were_missed_are_one_invocation_and_the_phase_stays() {
    let mut bench = timers(&[timer(10, 0)]);
    assert_eq!(fired(&mut bench, 0), [(0, 1, 0)]);
    assert_eq!(fired(&mut bench, 19 * MS), [(10, 1, 0)], "late, but none is missed");
    assert_eq!(fired(&mut bench, 45 * MS), [(40, 3, 2)]);
    assert_eq!(bench.trigger.next_due(), Some(50 * MS));
    assert_eq!(fired(&mut bench, 50 * MS), [(50, 1, 0)]);
}

#[test]
fn several_timers_fire_in_the_order_in_which_they_are_due() {
    let mut bench = timers(&[timer(10, 0), timer(4, 1), timer(10, 0)]);
    assert_eq!(fired(&mut bench, 2 * MS), [(0, 1, 0), (0, 1, 0), (1, 1, 0)]);
    assert_eq!(bench.trigger.next_due(), Some(5 * MS));
    assert_eq!(bench.collect_some(10 * MS, 1).len(), 1);
    assert_eq!(bench.trigger.next_due(), Some(10 * MS), "what is beyond the limit is still due");
    assert_eq!(fired(&mut bench, 10 * MS), [(10, 1, 0), (10, 1, 0)]);
}

#[test]
fn a_timer_inside_the_interval_waits_and_its_ticks_are_missed() {
    let spec = TriggerSpec { min_interval_ms: 25, ..TriggerSpec::default() };
    let mut bench = Bench::new(spec, vec![timer(10, 0)], &[]);
    assert_eq!(fired(&mut bench, 0), [(0, 1, 0)]);
    assert_eq!(bench.trigger.next_due(), Some(25 * MS));
    assert_eq!(fired(&mut bench, 10 * MS), []);
    assert_eq!(bench.trigger.counters().rate_limit_suppressed_count, 1);
    assert_eq!(fired(&mut bench, 25 * MS), [(20, 2, 1)]);
}

#[test]
fn a_timer_at_the_end_of_time_fires_no_more_than_once() {
    let mut bench = timers(&[timer(u64::MAX, 0)]);
    assert_eq!(fired(&mut bench, u64::MAX - 1).len(), 1);
    assert_eq!(fired(&mut bench, u64::MAX - 1).len(), 0);
}

#[test]
fn rate_limit_makes_one_invocation_an_interval_and_keeps_the_rest() {
    let limit = TriggerSpec { min_interval_ms: 10, ..trigger(TriggerType::RateLimit) };
    let any = TriggerSpec { trigger_type: TriggerType::AnyInput, ..limit.clone() };
    for spec in [limit, any] {
        let mut bench = Bench::messages(spec, &["b", "a"], 4);
        bench.put("b", 0, &[1]);
        bench.put("a", 0, &[2, 3]);
        assert_eq!(bench.collect(5 * MS), ["a2"]);
        assert_eq!(bench.trigger.next_due(), Some(15 * MS));
        assert_eq!(bench.collect(15 * MS - 1), NOTHING);
        let counters = *bench.trigger.counters();
        assert_eq!((counters.suppressed_count, counters.rate_limit_suppressed_count), (1, 1));
        assert_eq!(bench.collect(15 * MS), ["a3"]);
        assert_eq!(bench.collect(25 * MS), ["b1"]);
        assert_eq!(bench.trigger.next_due(), None);
    }
}

#[test]
fn an_interval_without_a_whole_set_names_no_time() {
    let spec = TriggerSpec { min_interval_ms: 10, ..trigger(TriggerType::AllInputs) };
    let mut bench = Bench::messages(spec, &["a", "b"], 4);
    bench.put("a", 0, &[1, 2, 3]);
    bench.put("b", 0, &[4]);
    assert_eq!(bench.collect(0), ["a1 b4"]);
    assert_eq!(bench.trigger.next_due(), None);
    bench.put("b", 0, &[5]);
    assert_eq!(bench.collect(MS), NOTHING);
    assert_eq!(bench.trigger.next_due(), Some(10 * MS));
    assert_eq!(bench.collect(10 * MS), ["a2 b5"]);
}

#[test]
fn manual_with_an_interval_is_ready_again_when_it_is_over() {
    let spec = TriggerSpec { min_interval_ms: 10, ..TriggerSpec::default() };
    let mut bench = Bench::new(spec, vec![source(SourceType::Manual, &[])], &[]);
    assert_eq!(bench.collect(0), [""]);
    assert!(!bench.might_be_ready(9 * MS));
    assert_eq!(bench.collect(9 * MS), NOTHING);
    assert_eq!(bench.trigger.next_due(), Some(10 * MS));
    assert_eq!(bench.collect(10 * MS), [""]);
}

#[test]
fn a_message_that_has_waited_longer_than_the_latency_is_dropped() {
    let spec = TriggerSpec { max_latency_ms: 5, ..trigger(TriggerType::AllInputs) };
    let mut bench = Bench::messages(spec, &["a", "b"], 4);
    bench.put("a", 0, &[1]);
    assert_eq!(bench.collect(0), NOTHING);
    bench.put("a", MS, &[2]);
    bench.put("b", 6 * MS, &[3]);
    assert_eq!(bench.collect(6 * MS), ["a2 b3"], "1 was pending too long, 2 just not");
    assert_eq!(bench.trigger.counters().timeout_drop_count, 1);
    bench.put("a", 6 * MS, &[4]);
    assert_eq!(bench.collect(12 * MS), NOTHING, "4 was too long in its channel");
    assert_eq!(bench.trigger.counters().timeout_drop_count, 2);
    assert_eq!(bench.trigger.n_pending(), 0);
}

#[test]
fn what_is_too_old_makes_room_before_anything_is_dropped_for_the_bound() {
    let spec = TriggerSpec { max_latency_ms: 5, ..trigger(TriggerType::AllInputs) };
    let mut bench = Bench::messages(spec, &["a", "b"], 2);
    bench.put("a", 0, &[1, 2]);
    bench.collect(0);
    bench.put("a", 6 * MS, &[3, 4]);
    bench.collect(6 * MS);
    let counters = bench.trigger.counters();
    assert_eq!((counters.timeout_drop_count, counters.pending_drop_count), (2, 0));
}

#[test]
fn a_batch_is_made_of_so_many_messages_input_by_input() {
    let spec = TriggerSpec { batch_size: 3, ..trigger(TriggerType::Batch) };
    let mut bench = Bench::messages(spec, &["b", "a"], 4);
    bench.put("a", 0, &[1, 2]);
    assert_eq!(bench.collect(0), NOTHING);
    assert_eq!(bench.trigger.next_due(), None);
    bench.put("b", 0, &[3, 4, 5, 6]);
    assert_eq!(bench.collect(0), ["b3 b4 b5"]);
    assert!(bench.out.iter_mut().all(|(invocation, _)| invocation.is_batch));
    assert_eq!(bench.trigger.next_due(), Some(0), "another three are there");
    assert_eq!(bench.collect(0), ["b6 a1 a2"]);
    assert_eq!(bench.trigger.counters().batch_flush_count, 2);
}

#[test]
fn a_batch_is_made_when_its_oldest_message_has_waited_for_the_window() {
    let both = TriggerSpec { batch_size: 3, batch_window_ms: 10, ..trigger(TriggerType::Batch) };
    let window = TriggerSpec { batch_size: 0, ..both.clone() };
    for spec in [both, window] {
        let mut bench = Bench::messages(spec, &["a", "b"], 4);
        bench.put("b", 2 * MS, &[1]);
        bench.put("a", 5 * MS, &[2]);
        assert_eq!(bench.collect(5 * MS), NOTHING);
        assert_eq!(bench.trigger.next_due(), Some(12 * MS));
        assert_eq!(bench.collect(12 * MS - 1), NOTHING);
        assert_eq!(bench.collect(12 * MS), ["a2 b1"]);
        assert_eq!(bench.trigger.next_due(), None);
    }
}

#[test]
fn a_batch_that_coalesces_does_not_wait_for_more_than_its_inputs_keep() {
    let spec = TriggerSpec { batch_size: 9, coalesce: true, ..trigger(TriggerType::Batch) };
    let mut bench = Bench::messages(spec, &["a", "b"], 4);
    bench.put("a", 0, &[1, 2]);
    assert_eq!(bench.collect(0), NOTHING);
    bench.put("b", 0, &[3]);
    assert_eq!(bench.collect(0), ["a2 b3"]);
}

#[test]
fn a_timer_component_leaves_its_inputs_alone() {
    let mut bench = Bench::new(TriggerSpec::default(), vec![timer(1, 0)], &[("a", &[queue(2)])]);
    bench.put("a", 0, &[1]);
    assert_eq!(bench.collect(0), [""]);
    assert!(bench.channels[0].has_update());
}
