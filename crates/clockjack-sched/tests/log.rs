//! The deterministic log, and the trace that it comes to.
#![cfg(not(loom))]

use clockjack_sched::{
    JobNumber,
    log::{Divergence, LogKind, LogRecord, ReplayTrace, SchedulerLog},
};
use clockjack_time::{Resolution, Tick};
use proptest::prelude::*;

fn record(shard: u32, number: u64, at: u64) -> LogRecord {
    let job = JobNumber { shard, number };
    LogRecord { job, at: Tick::new(at), ..LogRecord::EMPTY }
}

fn numbers<'r>(records: impl IntoIterator<Item = &'r LogRecord>) -> Vec<u64> {
    records.into_iter().map(|record| record.job.number).collect()
}

#[test]
fn a_ring_keeps_the_newest_and_counts_the_lost() {
    for capacity in 1..=5 {
        let mut log = SchedulerLog::with_capacity(capacity);
        let buffer = vec![LogRecord::EMPTY; capacity].leak();
        let mut lent = SchedulerLog::in_buffer(buffer);
        for n in 1..=12_u64 {
            for log in [&mut log, &mut lent] {
                log.push(record(0, n, n));
                let kept = n.min(capacity as u64);
                assert_eq!(numbers(log.iter()), (n - kept + 1..=n).collect::<Vec<_>>());
                assert_eq!((log.len() as u64, log.lost()), (kept, n - kept));
                assert!(!log.is_empty());
            }
        }
        log.clear();
        assert_eq!((log.iter().count(), log.lost(), log.capacity()), (0, 0, capacity));
        log.push(record(0, 99, 0));
        assert_eq!(numbers(log.iter()), [99]);
    }
}

#[test]
fn a_log_without_room_is_off() {
    for mut log in [SchedulerLog::with_capacity(0), SchedulerLog::in_buffer(&mut [])] {
        log.push(LogRecord::EMPTY);
        assert_eq!((log.len(), log.lost(), log.capacity()), (0, 0, 0));
        assert!(log.is_empty());
        assert_eq!(log.iter().count(), 0);
    }
}

#[test]
fn the_logs_of_shards_are_merged_by_tick_then_shard_then_order() {
    let mut logs = [1, 0].map(|_| SchedulerLog::with_capacity(4));
    // The second shard's log comes first: the order of the arguments says nothing.
    for (n, at) in [(1, 5), (2, 5), (3, 9)] {
        logs[0].push(record(1, n, at));
    }
    for (n, at) in [(11, 5), (12, 7), (13, 7), (14, 9), (15, 9)] {
        logs[1].push(record(0, n, at));
    }
    let trace = ReplayTrace::merged(Resolution::MILLI, &logs);
    assert_eq!(numbers(trace.records()), [1, 2, 12, 13, 14, 15, 3]);
    assert_eq!(trace.lost(), 1);
    assert_eq!(trace, ReplayTrace::merged(Resolution::MILLI, logs.iter().rev()));
}

const TEXT: &str = "clockjack-replay 1
resolution_ns 1000000
lost 3
records 2
schedule shard=0 job=1 scheduled_at=0 deadline=5 at=0 runs=0 executor=0
fire shard=0 job=1 scheduled_at=0 deadline=5 at=6 runs=1 executor=2
";

#[test]
fn the_format_is_as_documented() {
    let mut log = SchedulerLog::with_capacity(2);
    (0..3).for_each(|_| log.push(LogRecord::EMPTY));
    let scheduled = LogRecord { deadline: Tick::new(5), ..record(0, 1, 0) };
    log.push(scheduled);
    let fire = LogKind::Fire;
    log.push(LogRecord { kind: fire, at: Tick::new(6), runs: 1, executor: 2, ..scheduled });
    let trace = ReplayTrace::from_log(Resolution::MILLI, &log);
    assert_eq!(trace.to_string(), TEXT);
    assert_eq!(ReplayTrace::parse(TEXT), Ok(trace));
}

#[test]
fn each_fault_of_a_text_is_found_in_its_line() {
    #[track_caller]
    fn check(text: &str, line: usize, words: &str) {
        let error = ReplayTrace::parse(text).unwrap_err();
        assert_eq!(error.line(), line);
        assert_eq!(error.to_string(), format!("line {line}: {words}"));
    }
    let with = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        TEXT.replacen(from, to, 1)
    };
    let cut = &TEXT[..TEXT.len() - 1];
    check(cut, TEXT.lines().count(), "the last line is incomplete");
    let magic = "not a trace: it does not begin with `clockjack-replay`";
    check("", 1, magic);
    check("hello\n", 1, magic);
    check(&with("replay 1", "replay2"), 1, magic);
    let number = |name| format!("`{name}` is not a valid number");
    let name = "clockjack-replay";
    check(&with("replay 1", "replay one"), 1, &number(name));
    let unknown = "version 2 is unknown, 1 is known";
    check(&with("replay 1", "replay 2"), 1, unknown);
    for (line, name) in [(2, "resolution_ns"), (3, "lost"), (4, "records")] {
        let missing = format!("`{name}` is missing in the header");
        check(&with(&format!("\n{name} "), "\nx "), line, &missing);
        let until = &TEXT[..TEXT.find(name).unwrap()];
        check(until, line, &missing);
        for bad in ["-1", "+1", "", "1 ", "99999999999999999999"] {
            let text = with(&format!("\n{name} "), &format!("\n{name} {bad}\n"));
            check(&text, line, &number(name));
        }
    }
    for bad in ["0", "4294967296"] {
        let text = with("1000000", bad);
        check(&text, 2, &number("resolution_ns"));
    }
    check(&with("fire", "fired"), 6, "unknown kind of record");
    check(&with("fire ", "\nfire "), 6, "unknown kind of record");
    let fields = ["shard", "job", "scheduled_at", "deadline", "at", "runs", "executor"];
    for name in fields {
        let missing = format!("`{name}=` is missing");
        check(&with(&format!(" {name}="), " x="), 5, &missing);
        let text = with(&format!(" {name}="), &format!(" {name}=x"));
        check(&text, 5, &number(name));
    }
    for (from, to, name) in [
        ("shard=0", "shard=4294967296", "shard"),
        ("runs=0", "runs=4294967296", "runs"),
        ("executor=0", "executor=65536", "executor"),
        ("at=0", "at=18446744073709551616", "scheduled_at"),
    ] {
        check(&with(from, to), 5, &number(name));
    }
    let cut = &TEXT[..TEXT.find(" executor=0").unwrap()];
    check(cut, 5, "`executor=` is missing");
    let behind = "text after the last field";
    check(&with("executor=2", "executor=2 more=1"), 6, behind);
    let short = "there are fewer records than the header says";
    check(&with("records 2", "records 3"), 7, short);
    check(&with("records 2", "records 18446744073709551615"), 7, short);
    let long = "there are more lines than the header says";
    check(&with("records 2", "records 1"), 6, long);
}

#[test]
fn a_divergence_says_where_and_in_what() {
    let trace = ReplayTrace::parse(TEXT).unwrap();
    let of = |text: &str| ReplayTrace::parse(text).unwrap();
    assert_eq!(trace.first_divergence(&trace.clone()), None);

    let late = of(&TEXT.replace("at=6 runs=1", "at=7 runs=2"));
    let found = trace.first_divergence(&late).unwrap();
    let (left, right) = (Some(trace.records()[1]), Some(late.records()[1]));
    assert_eq!(found, Divergence::Record { index: 1, left, right });
    let text = "the traces differ at record 1
  left   fire shard=0 job=1 scheduled_at=0 deadline=5 at=6 runs=1 executor=2
  right  fire shard=0 job=1 scheduled_at=0 deadline=5 at=7 runs=2 executor=2
  differs in at, runs";
    assert_eq!(found.to_string(), text);

    let cut = TEXT.replace("records 2", "records 1");
    let short = of(&cut[..cut.find("fire").unwrap()]);
    let text = "the traces differ at record 1
  left   has ended
  right  fire shard=0 job=1 scheduled_at=0 deadline=5 at=6 runs=1 executor=2
  differs in length";
    assert_eq!(short.first_divergence(&trace).unwrap().to_string(), text);

    let coarse = of(&TEXT.replace("ns 1000000", "ns 10000000"));
    let text = "a tick is 1ms on the left and 10ms on the right";
    assert_eq!(trace.first_divergence(&coarse).unwrap().to_string(), text);
    let whole = of(&TEXT.replace("lost 3", "lost 0"));
    let text = "the first 3 records are lost on the left, 0 on the right: \
                they do not begin at the same one";
    assert_eq!(trace.first_divergence(&whole).unwrap().to_string(), text);
}

fn any_record() -> impl Strategy<Value = LogRecord> {
    let kind = proptest::sample::select(&LogKind::ALL[..]);
    let ticks = (any::<u64>(), any::<u64>(), any::<u64>());
    (kind, any::<u32>(), any::<u64>(), ticks, any::<u32>(), any::<u16>()).prop_map(
        |(kind, shard, number, (scheduled_at, deadline, at), runs, executor)| LogRecord {
            kind,
            job: JobNumber { shard, number },
            scheduled_at: Tick::new(scheduled_at),
            deadline: Tick::new(deadline),
            at: Tick::new(at),
            runs,
            executor,
        },
    )
}

proptest! {
    #[test]
    fn a_trace_survives_its_text(
        records in proptest::collection::vec(any_record(), 0..20),
        nanos in 1_u32..,
        capacity in 0_usize..20,
    ) {
        let mut log = SchedulerLog::with_capacity(capacity);
        records.iter().for_each(|record| log.push(*record));
        let trace = ReplayTrace::from_log(Resolution::from_nanos(nanos).unwrap(), &log);
        let again = ReplayTrace::parse(&trace.to_string()).unwrap();
        prop_assert_eq!(trace.first_divergence(&again), None);
        prop_assert_eq!(&again, &trace);
        if capacity > 0 {
            prop_assert_eq!(trace.records().len() as u64 + trace.lost(), records.len() as u64);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z0-9= \n]{0,80}", cut in 0..TEXT.len()) {
        let _ = ReplayTrace::parse(&text);
        let mangled = format!("{}{text}{}", &TEXT[..cut], &TEXT[cut..]);
        let _ = ReplayTrace::parse(&mangled);
    }

    #[test]
    fn the_first_differing_record_is_found(
        records in proptest::collection::vec(any_record(), 1..10),
        other in any_record(),
        at in any::<proptest::sample::Index>(),
    ) {
        let at = at.index(records.len());
        prop_assume!(records[at] != other);
        let trace = |records: &[LogRecord]| {
            let mut log = SchedulerLog::with_capacity(16);
            records.iter().for_each(|record| log.push(*record));
            ReplayTrace::from_log(Resolution::MILLI, &log)
        };
        let mut changed = records.clone();
        changed[at] = other;
        let (left, right) = (Some(records[at]), Some(other));
        let expected = Divergence::Record { index: at, left, right };
        let found = trace(&records).first_divergence(&trace(&changed));
        prop_assert_eq!(found, Some(expected));
    }
}
