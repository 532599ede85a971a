//! Properties of any trigger with any messages at any times: each message is counted once, pending
//! queues stay bounded, and the two guarantees about time hold.

use proptest::prelude::*;

use super::{Bench, MS, queue, source};
use crate::{
    describe::{
        ClockDomain, Condition, EdgeMode, EdgeOverflow, EdgePolicy, EventSourceSpec, SourceType,
        TriggerSpec, TriggerType,
    },
    run::flow::channel::Channel,
};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Into this channel, with this timestamp, if any, in milliseconds.
    Put(usize, Option<u64>),
    Collect(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0_usize..3, prop::option::of(0_u64..12)).prop_map(|(to, ms)| Step::Put(to, ms)),
        3 => prop_oneof![4 => Just(usize::MAX), 1 => 0_usize..3].prop_map(Step::Collect),
        2 => (0_u64..4).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..80)
}

fn specs() -> impl Strategy<Value = TriggerSpec> {
    let types = prop::sample::select(TriggerType::ALL);
    let conditions = prop::sample::select(Condition::ALL);
    let ms = || prop_oneof![Just(0_u64), 1_u64..6];
    let sizes = (0_u32..5, ms(), ms(), ms(), ms());
    (types, conditions, sizes, prop::bool::weighted(0.2)).prop_map(
        |(trigger_type, condition, (batch_size, window, slop, interval, latency), coalesce)| {
            TriggerSpec {
                trigger_type,
                condition,
                batch_size,
                batch_window_ms: window,
                sync_slop_ms: slop,
                watermark_lateness_ms: slop,
                min_interval_ms: interval,
                max_latency_ms: latency,
                coalesce,
                ..TriggerSpec::default()
            }
        },
    )
}

fn policies() -> impl Strategy<Value = Vec<EdgePolicy>> {
    let modes = prop_oneof![
        3 => Just(EdgeMode::Queue),
        1 => Just(EdgeMode::Latest),
        1 => Just(EdgeMode::Barrier),
    ];
    let policy = (modes, 1_u32..4, 0_u64..4).prop_map(|(mode, capacity, lifespan_ms)| EdgePolicy {
        mode,
        lifespan_ms,
        overflow: EdgeOverflow::Reject,
        ..queue(capacity)
    });
    prop::collection::vec(policy, 3)
}

/// Two inputs of which the first has two edges, declared against the order of their names.
fn bench(spec: TriggerSpec, policies: &[EdgePolicy]) -> Bench {
    let sources = vec![source(SourceType::Message, &["b", "a"])];
    Bench::new(spec, sources, &[("b", &policies[..2]), ("a", &policies[2..])])
}

fn n_delivered(bench: &Bench) -> u64 {
    bench.channels.iter().map(|channel| channel.counters().delivery_count).sum()
}

/// Messages that the trigger has dropped.
fn n_lost(bench: &Bench) -> u64 {
    let counters = bench.trigger.counters();
    counters.coalesced_count
        + counters.timeout_drop_count
        + counters.pending_drop_count
        + counters.time_sync_drop_count
        + counters.late_drop_count
        + counters.condition_suppressed_count
}

fn check(spec: TriggerSpec, policies: &[EdgePolicy], steps: &[Step]) -> Result<(), TestCaseError> {
    let mut bench = bench(spec.clone(), policies);
    let (mut now_ns, mut n_handed, mut n_made, mut number) = (0, 0, 0, 0);
    for step in steps {
        match *step {
            Step::Put(channel, ms) => {
                let stamp = ms.map(|ms| (ClockDomain::Device, ms * MS));
                bench.put_in(channel, now_ns, number, stamp);
                number += 1;
            }
            Step::Wait(ms) => now_ns += ms * MS,
            Step::Collect(limit) => {
                let might = bench.might_be_ready(now_ns);
                let is_due = bench.trigger.next_due().is_some_and(|due_ns| due_ns <= now_ns);
                let has_update = bench.channels.iter().any(Channel::has_update);
                let before = (*bench.trigger.counters(), n_lost(&bench), n_delivered(&bench));
                let told = bench.collect_some(now_ns, limit);
                prop_assert!(told.len() <= limit);
                n_made += told.len() as u64;
                n_handed += bench.out.iter_mut().map(|(_, all)| all.len() as u64).sum::<u64>();
                let after = (*bench.trigger.counters(), n_lost(&bench), n_delivered(&bench));
                if !might {
                    prop_assert_eq!(before, after, "it was said that nothing is to be done");
                }
                if is_due && !has_update && limit > 0 {
                    let is_moving = !told.is_empty() || after.1 > before.1;
                    prop_assert!(is_moving, "it was due, and is as before");
                }
            }
        }
        let n_pending = bench.trigger.n_pending() as u64;
        prop_assert_eq!(n_delivered(&bench), n_handed + n_lost(&bench) + n_pending);
        prop_assert_eq!(bench.trigger.counters().ready_count, n_made);
        let of_inputs = bench.trigger.inputs.iter().map(|input| input.pending.len() as u64);
        prop_assert_eq!(n_pending, of_inputs.sum::<u64>());
        let newest_only = spec.coalesce || spec.trigger_type == TriggerType::Debounce;
        let n_most = if newest_only { 2 } else { (6 + 1) + (4 + 1) };
        prop_assert!(n_pending <= n_most);
    }
    Ok(())
}

/// A naive trigger of one kind: `all_inputs` over lists that never drop, for what fits the bounds.
fn sets(puts: &[(bool, u64)]) -> Vec<String> {
    let all = |wanted: bool| puts.iter().filter(move |(is_b, _)| *is_b == wanted);
    all(true).zip(all(false)).map(|((_, b), (_, a))| format!("b{b} a{a}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_message_is_handed_on_counted_as_lost_or_pending(
        spec in specs(),
        policies in policies(),
        steps in steps(),
    ) {
        check(spec, &policies, &steps)?;
    }

    #[test]
    fn all_inputs_pairs_messages_in_order_whenever_it_is_asked(
        puts in prop::collection::vec((any::<bool>(), any::<bool>()), 0..20),
    ) {
        let spec =
            TriggerSpec { trigger_type: TriggerType::AllInputs, ..TriggerSpec::default() };
        let mut bench = Bench::messages(spec, &["b", "a"], 20);
        let (mut made, mut sent) = (Vec::new(), Vec::new());
        for (number, (is_b, is_asked)) in puts.into_iter().enumerate() {
            let number = number as u64;
            bench.put(if is_b { "b" } else { "a" }, 0, &[number]);
            sent.push((is_b, number));
            if is_asked {
                made.extend(bench.collect(0));
            }
        }
        loop {
            let more = bench.collect(0);
            if more.is_empty() {
                break;
            }
            made.extend(more);
        }
        prop_assert_eq!(made, sets(&sent));
    }

    #[test]
    fn a_timer_counts_each_tick_once_however_late_it_is_asked(
        period_ms in 1_u64..6,
        phase_ms in 0_u64..6,
        waits in prop::collection::vec(0_u64..20, 1..20),
    ) {
        let timer = EventSourceSpec { period_ms, phase_ms, ..source(SourceType::Timer, &[]) };
        let mut bench = Bench::new(TriggerSpec::default(), vec![timer], &[]);
        let (mut now_ms, mut n_runs) = (0, 0);
        for wait_ms in waits {
            now_ms += wait_ms;
            bench.collect(now_ms * MS);
            for (invocation, _) in bench.out.iter_mut() {
                prop_assert_eq!(invocation.runs, invocation.missed_runs + 1);
                n_runs += u64::from(invocation.runs);
            }
            let expected = if now_ms < phase_ms { 0 } else { (now_ms - phase_ms) / period_ms + 1 };
            prop_assert_eq!(n_runs, expected);
            prop_assert_eq!(bench.trigger.next_due(), Some((phase_ms + expected * period_ms) * MS));
        }
    }
}
