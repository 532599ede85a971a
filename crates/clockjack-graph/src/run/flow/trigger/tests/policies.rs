//! Which messages each policy takes, in which order, and what it throws away.

use super::{Bench, MS, queue, source, trigger};
use crate::{
    describe::{ClockDomain, Condition, EdgePolicy, SourceType, TriggerSpec, TriggerType},
    run::flow::{channel::Channel, trigger::EventKind},
};

const NOTHING: [&str; 0] = [];

#[test]
fn manual_makes_one_invocation_every_epoch_without_messages() {
    let manual = vec![source(SourceType::Manual, &[])];
    let mut bench = Bench::new(trigger(TriggerType::Manual), manual, &[]);
    for now_ns in [0, 0, 5] {
        assert!(bench.might_be_ready(now_ns));
        assert_eq!(bench.collect(now_ns), [""]);
        assert_eq!(bench.kinds(), [EventKind::Manual]);
    }
    assert!(bench.trigger.is_manual());
    assert_eq!(bench.trigger.next_due(), None);
    assert_eq!(bench.trigger.counters().ready_count, 3);
}

#[test]
fn inputs_without_a_source_for_messages_are_never_ready() {
    let manual = vec![source(SourceType::Manual, &[])];
    let mut bench = Bench::new(trigger(TriggerType::AnyInput), manual, &[("a", &[queue(1)])]);
    bench.put("a", 0, &[1]);
    assert!(!bench.might_be_ready(0));
    assert_eq!(bench.collect(0), NOTHING);
}

#[test]
fn any_input_makes_one_invocation_a_message_with_inputs_in_name_order() {
    let like_it = [
        TriggerType::AnyInput,
        TriggerType::OnEvent,
        TriggerType::Manual,
        TriggerType::Request,
        TriggerType::TaskReady,
    ];
    for trigger_type in like_it {
        let mut bench = Bench::messages(trigger(trigger_type), &["b", "c", "a"], 4);
        assert!(!bench.might_be_ready(0));
        bench.put("c", 0, &[1]);
        bench.put("b", 0, &[2, 3]);
        bench.put("a", 0, &[4, 5]);
        assert!(bench.might_be_ready(0));
        assert_eq!(bench.collect(0), ["a4", "a5", "b2", "b3", "c1"], "{trigger_type}");
        assert_eq!(bench.collect(0), NOTHING);
        assert_eq!(bench.trigger.counters().ready_count, 5);
    }
}

#[test]
fn any_input_leaves_what_is_beyond_the_limit_in_the_channels() {
    let mut bench = Bench::messages(trigger(TriggerType::AnyInput), &["a", "b"], 2);
    bench.put("a", 0, &[1, 2]);
    bench.put("b", 0, &[3]);
    assert_eq!(bench.collect_some(0, 0), NOTHING);
    assert_eq!(bench.collect_some(0, 1), ["a1"]);
    assert_eq!(bench.channels[0].room(), 1);
    bench.put("a", 0, &[4]);
    assert_eq!(bench.collect_some(0, 3), ["a2", "a4", "b3"]);
}

#[test]
fn the_edges_of_one_input_are_taken_in_the_order_of_the_description() {
    let sources = vec![source(SourceType::Message, &["a"])];
    let two = [queue(2), queue(2)];
    let mut bench = Bench::new(trigger(TriggerType::AnyInput), sources, &[("a", &two)]);
    for (channel, number) in [(1, 10), (0, 20), (1, 11), (0, 21)] {
        assert!(bench.put_in(channel, 0, number, None));
    }
    assert_eq!(bench.collect(0), ["a20", "a21", "a10", "a11"]);
}

#[test]
fn an_invocation_tells_what_kind_of_event_made_it() {
    use SourceType::{FutureReady, Message, Request, TaskReady};
    let sources = vec![
        source(Message, &["a"]),
        source(Request, &["b"]),
        source(TaskReady, &["c"]),
        source(FutureReady, &["d"]),
    ];
    let one = [queue(1)];
    let ports = [("a", &one[..]), ("b", &one[..]), ("c", &one[..]), ("d", &one[..])];
    let expected = [
        (TriggerType::AnyInput, [Message, Request, TaskReady, FutureReady]),
        (TriggerType::Request, [Request; 4]),
        (TriggerType::TaskReady, [TaskReady, TaskReady, TaskReady, FutureReady]),
    ];
    for (trigger_type, kinds) in expected {
        let mut bench = Bench::new(trigger(trigger_type), sources.clone(), &ports);
        for port in ["a", "b", "c", "d"] {
            bench.put(port, 0, &[1]);
        }
        bench.collect(0);
        assert_eq!(bench.kinds(), kinds, "{trigger_type}");
    }
}

#[test]
fn coalesce_and_debounce_carry_the_newest_of_each_input_that_has_one() {
    let coalesce = TriggerSpec { coalesce: true, ..trigger(TriggerType::AnyInput) };
    for spec in [coalesce, trigger(TriggerType::Debounce)] {
        let mut bench = Bench::messages(spec, &["b", "a", "c"], 4);
        bench.put("b", 0, &[1, 2, 3]);
        bench.put("a", 0, &[4, 5]);
        assert_eq!(bench.collect(0), ["a5 b3"]);
        assert_eq!(bench.collect(0), NOTHING);
        let counters = bench.trigger.counters();
        assert_eq!((counters.ready_count, counters.coalesced_count), (1, 3), "messages, not calls");
        assert_eq!(counters.pending_drop_count, 0, "each is counted once");
    }
}

#[test]
fn all_inputs_with_coalesce_waits_for_all_and_takes_the_newest() {
    let spec = TriggerSpec { coalesce: true, ..trigger(TriggerType::AllInputs) };
    let mut bench = Bench::messages(spec, &["b", "a"], 4);
    bench.put("b", 0, &[1, 2]);
    assert_eq!(bench.collect(0), NOTHING);
    bench.put("a", 0, &[3]);
    assert_eq!(bench.collect(0), ["b2 a3"]);
}

#[test]
fn all_inputs_takes_one_of_each_in_declared_order() {
    let conditional = trigger(TriggerType::Condition);
    for spec in [trigger(TriggerType::AllInputs), conditional] {
        let mut bench = Bench::messages(spec, &["b", "c", "a"], 4);
        bench.put("a", 0, &[1, 2, 3]);
        bench.put("b", 0, &[4]);
        assert_eq!(bench.collect(0), NOTHING);
        assert_eq!(bench.trigger.counters().suppressed_count, 1);
        assert_eq!(bench.trigger.next_due(), None, "without a message there is no set");
        bench.put("b", 0, &[5]);
        bench.put("c", 0, &[6, 7]);
        assert_eq!(bench.collect(0), ["b4 c6 a1"]);
        assert_eq!(bench.trigger.next_due(), Some(0), "a second set is there");
        assert_eq!(bench.collect(0), ["b5 c7 a2"], "one set a look");
        assert_eq!(bench.collect(0), NOTHING);
        assert_eq!(bench.trigger.n_pending(), 1);
    }
}

#[test]
fn all_inputs_that_come_together_are_taken_in_declared_order_and_the_rest_is_kept() {
    let mut bench = Bench::messages(trigger(TriggerType::AllInputs), &["b", "a"], 4);
    bench.put("a", 0, &[1, 2]);
    bench.put("b", 0, &[3, 4]);
    assert_eq!(bench.collect(0), ["b3 a1"]);
    assert_eq!(bench.trigger.n_pending(), 2);
    assert_eq!(bench.channels[0].room(), 4, "the channels are empty again");
    assert_eq!(bench.collect(0), ["b4 a2"]);
}

#[test]
fn a_set_is_not_torn_by_a_message_that_is_too_old() {
    let policy = [EdgePolicy { lifespan_ms: 5, ..queue(4) }];
    let sources = vec![source(SourceType::Message, &["a", "b"])];
    let ports = [("a", &policy[..]), ("b", &policy[..])];
    let mut bench = Bench::new(trigger(TriggerType::AllInputs), sources, &ports);
    bench.put("b", 0, &[1]);
    bench.put("a", 9 * MS, &[2]);
    assert_eq!(bench.collect(9 * MS), NOTHING);
    bench.put("b", 9 * MS, &[3]);
    assert_eq!(bench.collect(9 * MS), ["a2 b3"]);
}

#[test]
fn an_input_keeps_what_its_channels_hold_and_one() {
    let (small, wide) = ([queue(2)], [queue(2), queue(3)]);
    let batch = |batch_size| TriggerSpec { batch_size, ..trigger(TriggerType::Batch) };
    let coalesce = TriggerSpec { coalesce: true, ..batch(9) };
    let table = [
        (trigger(TriggerType::AllInputs), &small[..], 3),
        (trigger(TriggerType::AllInputs), &wide[..], 6),
        (trigger(TriggerType::Watermark), &small[..], 3),
        (batch(9), &small[..], 10),
        (batch(1), &wide[..], 6),
        (coalesce, &wide[..], 1),
        (trigger(TriggerType::Debounce), &wide[..], 1),
    ];
    for (spec, edges, bound) in table {
        let sources = vec![source(SourceType::Message, &["a"])];
        let spec = TriggerSpec { min_interval_ms: 1, ..spec };
        let mut bench = Bench::new(spec, sources, &[("a", edges)]);
        // As inside an interval: whatever comes, nothing is made of it.
        bench.trigger.not_before_ns = 1;
        for number in 0..20 {
            bench.put("a", 0, &[number]);
            assert_eq!(bench.collect(0), NOTHING);
        }
        assert_eq!(bench.trigger.n_pending(), bound);
        let counters = bench.trigger.counters();
        let n_dropped = counters.pending_drop_count + counters.coalesced_count;
        assert_eq!(n_dropped, 20 - bound as u64);
        assert!(counters.coalesced_count == 0 || counters.pending_drop_count == 0);
        assert!(!bench.channels.iter().any(Channel::has_update));
    }
}

#[test]
fn all_inputs_takes_the_newest_of_each_input_whose_edges_keep_only_that() {
    // Both names of the policy. The condition of the second is `all_inputs_ready` by default.
    for spec in [trigger(TriggerType::AllInputs), trigger(TriggerType::Condition)] {
        let (latest, kept) = ([EdgePolicy::default()], [queue(4)]);
        let sources = vec![source(SourceType::Message, &["a", "b"])];
        let ports: [(&str, &[EdgePolicy]); 2] = [("a", &latest), ("b", &kept)];
        let mut bench = Bench::new(spec, sources, &ports);
        for number in 1..=3 {
            bench.put("a", 0, &[number]);
            assert_eq!(bench.collect(0), NOTHING);
        }
        bench.put("b", 0, &[7, 8]);
        assert_eq!(bench.collect(0), ["a3 b7"]);
        bench.put("a", 0, &[4]);
        assert_eq!(bench.collect(0), ["a4 b8"], "a queue keeps each");
        assert_eq!(bench.trigger.counters().coalesced_count, 2);
    }
}

#[test]
fn time_sync_drops_the_oldest_until_the_timestamps_are_close() {
    let spec = TriggerSpec { sync_slop_ms: 2, ..trigger(TriggerType::TimeSync) };
    let mut bench = Bench::messages(spec, &["b", "a"], 8);
    let at = |ms: u64| Some((ClockDomain::Device, ms * MS));
    for (number, ms) in [(1, 0), (2, 3), (3, 10)] {
        bench.put_stamped("b", 0, number, at(ms));
    }
    for (number, ms) in [(4, 5), (5, 20)] {
        bench.put_stamped("a", 0, number, at(ms));
    }
    assert_eq!(bench.collect(0), ["b2 a4"], "exactly the slop apart is close");
    assert_eq!(bench.trigger.counters().time_sync_drop_count, 1);
    assert_eq!(bench.trigger.next_due(), Some(0));
    assert_eq!(bench.collect(0), NOTHING);
    assert_eq!(bench.trigger.counters().time_sync_drop_count, 2);
    bench.put_stamped("b", 0, 6, at(21));
    assert_eq!(bench.collect(0), ["b6 a5"]);
}

#[test]
fn time_sync_is_all_inputs_where_timestamps_cannot_be_compared() {
    let stamp = |domain, ms: u64| Some((domain, ms * MS));
    let table = [
        (2, None, stamp(ClockDomain::Steady, 50)),
        (2, stamp(ClockDomain::Device, 0), stamp(ClockDomain::Steady, 50)),
        (0, stamp(ClockDomain::Steady, 0), stamp(ClockDomain::Steady, 50)),
    ];
    for (sync_slop_ms, first, second) in table {
        let spec = TriggerSpec { sync_slop_ms, ..trigger(TriggerType::TimeSync) };
        let mut bench = Bench::messages(spec, &["a", "b"], 2);
        bench.put_stamped("a", 0, 1, first);
        bench.put_stamped("b", 0, 2, second);
        assert_eq!(bench.collect(0), ["a1 b2"]);
    }
}

#[test]
fn watermark_drops_what_is_too_far_behind_in_its_own_domain() {
    let spec = TriggerSpec { watermark_lateness_ms: 5, ..trigger(TriggerType::Watermark) };
    let mut bench = Bench::messages(spec, &["a"], 8);
    let stamped = [
        (1, Some((ClockDomain::Device, 100 * MS))),
        (2, Some((ClockDomain::Device, 95 * MS))),
        (3, Some((ClockDomain::Device, 94 * MS))),
        (4, None),
        (5, Some((ClockDomain::External, MS))),
        (6, Some((ClockDomain::Device, 103 * MS))),
        (7, Some((ClockDomain::Device, 97 * MS))),
    ];
    for (number, stamp) in stamped {
        bench.put_stamped("a", 0, number, stamp);
    }
    assert_eq!(bench.collect(0), ["a1", "a2", "a4", "a5", "a6"]);
    assert_eq!(bench.trigger.counters().late_drop_count, 2);
    bench.put_stamped("a", 0, 8, Some((ClockDomain::Device, 90 * MS)));
    assert_eq!(bench.collect(0), NOTHING, "the watermark stays");
}

#[test]
fn the_condition_any_input_ready_is_as_any_input() {
    let spec =
        TriggerSpec { condition: Condition::AnyInputReady, ..trigger(TriggerType::Condition) };
    let mut bench = Bench::messages(spec, &["b", "a"], 4);
    bench.put("b", 0, &[1]);
    assert_eq!(bench.collect(0), ["b1"]);
    bench.put("b", 0, &[2]);
    bench.put("a", 0, &[3]);
    assert_eq!(bench.collect(0), ["a3", "b2"]);
}

#[test]
fn the_condition_on_timestamps_drops_what_has_none_and_waits_for_all() {
    let condition = Condition::EventTimestampPresent;
    let spec = TriggerSpec { condition, ..trigger(TriggerType::Condition) };
    let mut bench = Bench::messages(spec, &["b", "a"], 4);
    let stamp = Some((ClockDomain::System, 1));
    for (port, number, stamp) in
        [("b", 1, None), ("b", 2, stamp), ("b", 3, None), ("a", 4, None), ("a", 5, None)]
    {
        bench.put_stamped(port, 0, number, stamp);
    }
    assert_eq!(bench.collect(0), NOTHING);
    assert_eq!(bench.trigger.counters().condition_suppressed_count, 3);
    bench.put_stamped("a", 0, 6, stamp);
    assert_eq!(bench.collect(0), ["b2 a6"]);
}

#[test]
fn messages_can_be_moved_out_of_several_invocations_at_once_and_either_end_be_cut_off() {
    let mut bench = Bench::messages(trigger(TriggerType::AnyInput), &["a"], 4);
    bench.put("a", 0, &[1, 2, 3]);
    assert_eq!(bench.collect(0), ["a1", "a2", "a3"]);
    let lent: Vec<_> = bench.out.iter_mut().collect();
    assert!(lent.iter().all(|(_, arrivals)| arrivals.len() == 1));
    let (_, last) = bench.out.get_mut(2);
    assert_eq!(last[0].value.get::<u64>(), Some(&3));
    bench.out.truncate(1);
    assert_eq!(bench.out.iter_mut().map(|(_, arrivals)| arrivals.len()).sum::<usize>(), 1);
    bench.put("a", 0, &[4, 5, 6]);
    assert_eq!(bench.collect(0), ["a4", "a5", "a6"]);
    bench.out.drop_front(2);
    let (_, only) = bench.out.get_mut(0);
    assert_eq!(only.len(), 1);
    assert_eq!(only[0].value.get::<u64>(), Some(&6));
    bench.out.truncate(0);
    assert!(bench.out.is_empty());
}
