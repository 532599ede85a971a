//! Every trace name is emitted, and every emitted record is valid.

use std::collections::BTreeSet;

use clockjack_graph::run::{
    TraceName, TraceRecord,
    trace::{NONE, expand},
};

use crate::{doer::Done, scenes};

fn names(records: &[TraceRecord]) -> BTreeSet<&'static str> {
    records.iter().map(|record| record.name.name()).collect()
}

fn count(records: &[TraceRecord], name: TraceName) -> usize {
    records.iter().filter(|record| record.name == name).count()
}

#[test]
fn every_trace_name_is_emitted_in_some_run_and_no_other() {
    let table: BTreeSet<&str> = TraceName::ALL.iter().map(|name| name.name()).collect();
    assert_eq!(table.len(), TraceName::ALL.len(), "no name is there twice");
    let mut seen = BTreeSet::new();
    for (scene, done) in scenes::all() {
        let found = names(&expand(&done.plan, &done.records));
        assert!(found.is_subset(&table), "{scene}: {found:?}");
        seen.extend(found);
    }
    let missing: Vec<_> = table.difference(&seen).collect();
    assert!(missing.is_empty(), "never emitted: {missing:?}");
}

#[test]
fn durations_are_legal_and_records_come_by_their_beginning() {
    for (scene, done) in scenes::all() {
        let all = expand(&done.plan, &done.records);
        assert!(all.is_sorted_by_key(|record| record.start_ns), "{scene}");
        let run = all.iter().filter(|record| record.name == TraceName::SchedulerIteration);
        let end_ns = |record: &TraceRecord| record.start_ns + record.duration_ns;
        let run_ends_ns = run.map(end_ns).max().expect("an epoch");
        for record in &all {
            // Events that are known only at the end of the last epoch are recorded after it.
            let is_inside = end_ns(record) <= run_ends_ns || record.duration_ns == 0;
            assert!(is_inside, "{scene}: {record:?}");
        }
        check_pairs(scene, &done, &all);
    }
}

/// Each span begins before it ends, and both are where the span says.
fn check_pairs(scene: &str, done: &Done, all: &[TraceRecord]) {
    use TraceName as Name;
    for (span, begin, end) in [
        (Name::SchedulerIteration, Name::SchedulerIterationBegin, Name::SchedulerIterationEnd),
        (Name::ComponentExecute, Name::ComponentExecuteBegin, Name::ComponentExecuteEnd),
        (Name::FixedRateTick, Name::FixedRateTickBegin, Name::FixedRateTickEnd),
        (Name::LoopIteration, Name::LoopIterationBegin, Name::LoopIterationEnd),
    ] {
        let n = count(&done.records, span);
        for name in [span, begin, end] {
            assert_eq!(count(all, name), n, "{scene}: {name}");
        }
        for record in all.iter().filter(|record| record.name == span) {
            let is_same = |other: &TraceRecord, name, at_ns| {
                let whose = |one: &TraceRecord| (one.component, one.lane, one.epoch, one.worker);
                (other.name, other.start_ns) == (name, at_ns) && whose(other) == whose(record)
            };
            let position = |name, at_ns| all.iter().position(|one| is_same(one, name, at_ns));
            let begins = position(begin, record.start_ns).expect("it begins");
            let ends = position(end, record.start_ns + record.duration_ns).expect("it ends");
            assert!(begins < ends, "{scene}: {record:?}");
        }
    }
}

#[test]
fn in_time_that_stands_still_an_epoch_is_around_all_that_is_in_it() {
    let done = scenes::cell(1);
    let all = expand(&done.plan, &done.records);
    let mut epoch = None;
    for record in &all {
        match record.name {
            TraceName::SchedulerIterationBegin => assert_eq!(epoch.replace(record.epoch), None),
            TraceName::SchedulerIterationEnd => assert_eq!(epoch.take(), Some(record.epoch)),
            TraceName::HealthEvent => {}
            _ => assert_eq!(epoch, Some(record.epoch), "{record:?}"),
        }
    }
    let mut inside = None;
    for record in all {
        match record.name {
            TraceName::LoopIterationBegin => assert_eq!(inside.replace(record.component), None),
            TraceName::LoopIterationEnd => assert_eq!(inside.take(), Some(record.component)),
            TraceName::ComponentExecute => {
                let region = |at: u32| done.plan.components[at as usize].region;
                let is_member = done.plan.regions[region(record.component)].loop_policy.is_some();
                assert_eq!(inside.map(region), is_member.then(|| region(record.component)));
            }
            _ => {}
        }
    }
}

#[test]
fn in_virtual_time_records_carry_virtual_time_on_any_number_of_workers() {
    const PERIOD_NS: u64 = 2_000_000;
    for workers in [1, 4] {
        let done = scenes::cell(workers);
        let is_tick = |record: &&TraceRecord| record.name == TraceName::FixedRateTick;
        let ticks = done.records.iter().filter(is_tick);
        let ticks: Vec<(u64, u64)> = ticks.map(|one| (one.epoch, one.start_ns)).collect();
        assert!(ticks.len() > 5, "{ticks:?}");
        // Each epoch is at the tick after that of the epoch before.
        let expected = ticks.iter().map(|(epoch, _)| (*epoch, (epoch - 1) * PERIOD_NS));
        assert_eq!(ticks, expected.collect::<Vec<_>>(), "on {workers}");
        for record in &done.records {
            let at_ns = (record.epoch - 1) * PERIOD_NS;
            assert_eq!((record.start_ns, record.duration_ns), (at_ns, 0), "{record:?}");
        }
    }
}

#[test]
fn a_record_names_only_what_the_plan_has() {
    for (scene, done) in scenes::all() {
        let plan = &done.plan;
        let is_of = |index: u32, n: usize| index == NONE || (index as usize) < n;
        for record in expand(plan, &done.records) {
            assert!(is_of(record.component, plan.components.len()), "{scene}: {record:?}");
            assert!(is_of(record.edge, plan.edges.len()), "{scene}: {record:?}");
            assert!(is_of(record.lane, plan.lanes.len()), "{scene}: {record:?}");
            let must_have_component = matches!(record.name.phase(), "component" | "loop");
            assert!(!must_have_component || record.component != NONE, "{scene}: {record:?}");
            let must_have_edge = record.name.phase() == "channel";
            assert!(!must_have_edge || record.edge != NONE, "{scene}: {record:?}");
        }
        assert_eq!(done.n_dropped, 0, "{scene}");
    }
}

#[test]
fn what_is_recorded_is_what_was_counted() {
    for (scene, done) in scenes::all() {
        let all = expand(&done.plan, &done.records);
        let total = |name: &str| done.report().metrics.total(name);
        let n = |name| u32::try_from(count(&all, name)).expect("few");
        let values = |name| -> u64 {
            all.iter().filter(|record| record.name == name).map(|record| record.value).sum()
        };
        let values = |name| u32::try_from(values(name)).expect("few");
        use TraceName as Name;
        for (name, recorded) in [
            ("runtime.scheduler.tick_count", n(Name::FixedRateTick)),
            ("runtime.scheduler.tick_overrun_count", n(Name::FixedRateOverrun)),
            ("runtime.scheduler.skipped_tick_count", values(Name::FixedRateSkippedTick)),
            ("runtime.loop.iterations", n(Name::LoopIteration)),
            ("runtime.loop.converged", n(Name::LoopConverged)),
            ("runtime.loop.max_iterations_hit", n(Name::LoopMaxIterationsHit)),
            ("runtime.loop.budget_overrun", n(Name::LoopBudgetOverrun)),
            ("runtime.loop.output_discarded", values(Name::LoopOutputDiscarded)),
            ("runtime.loop.cancellation_requested", n(Name::LoopCancellationRequested)),
            ("runtime.loop.cancellation_observed", n(Name::LoopCancellationObserved)),
            (
                "runtime.component.cancellation_requested_count",
                n(Name::ComponentCancellationRequested),
            ),
            (
                "runtime.component.cancellation_observed_count",
                n(Name::ComponentCancellationObserved),
            ),
            ("runtime.config.rolled_back_update_count", n(Name::ConfigTransactionRollback)),
            ("runtime.health.event_count", values(Name::HealthEvent)),
            ("runtime.trace.event_count", u32::try_from(done.records.len()).expect("few")),
        ] {
            // A failed loop has not counted its last iteration, which was recorded.
            let is_known = scene == "failing loop" && name == "runtime.loop.iterations";
            let recorded = recorded - u32::from(is_known);
            assert_eq!(total(name), f64::from(recorded), "{scene}: {name}");
        }
        let calls =
            total("runtime.component.execution_count") + total("runtime.component.error_count");
        assert_eq!(calls, f64::from(n(Name::ComponentExecute)), "{scene}");
    }
}

#[test]
fn a_batch_tells_who_took_part_in_it() {
    let done = scenes::pool();
    let batches = done.records.iter().filter(|one| one.name == TraceName::ThreadPoolBatch);
    let batches: Vec<&TraceRecord> = batches.collect();
    assert_eq!(batches.len(), 4, "one in each epoch");
    for batch in batches {
        let is_of_it = |one: &&TraceRecord| {
            (one.name, one.component, one.epoch)
                == (TraceName::ComponentExecute, batch.component, batch.epoch)
        };
        let jobs: Vec<&TraceRecord> = done.records.iter().filter(is_of_it).collect();
        assert_eq!(jobs.len(), 5, "three at once and two that wait, of eight");
        let workers: BTreeSet<u16> = jobs.iter().map(|job| job.worker).collect();
        assert_eq!(batch.worker_ids().collect::<BTreeSet<_>>(), workers);
        let end_ns = batch.start_ns + batch.duration_ns;
        for job in jobs {
            let job = (job.start_ns, job.start_ns + job.duration_ns);
            assert!(batch.start_ns <= job.0 && job.1 <= end_ns, "{batch:?} {job:?}");
        }
    }
}
