//! The dump as people and programs see it, character by character.
//!
//! After a change that is meant, `CLOCKJACK_BLESS=1 cargo test -p clockjack-sched --test dump`
//! writes the files again; read the difference before it is committed.
#![cfg(not(loom))]

use core::fmt;
use std::{env, fs, path::Path};

use clockjack_sched::{
    BatchMode, JobNumber, TimerPriority,
    dump::{DumpFormat, JobDump, SchedulerDump, ShardDump},
};
use clockjack_time::{ClockKind, Resolution, Tick};

/// Compares a text with a file in `tests/golden`.
#[track_caller]
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("CLOCKJACK_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == expected,
        "{name} differs; if that is meant, run with CLOCKJACK_BLESS=1\n\
         expected:\n{expected}\nfound:\n{text}"
    );
}

fn text(dump: &SchedulerDump, format: DumpFormat) -> String {
    let mut text = String::new();
    dump.write(format, &mut text).expect("writing to a string cannot fail");
    text
}

fn job(shard: u32, number: u64, mode: BatchMode, due: u64) -> JobDump {
    JobDump {
        job: JobNumber { shard, number },
        state: "scheduled",
        mode,
        due: Tick::new(due),
        period_ticks: 0,
        backlog: 0,
        last_fire: None,
        priority: TimerPriority::Normal,
    }
}

fn empty() -> SchedulerDump {
    SchedulerDump {
        mode: "manual",
        clock: ClockKind::Deterministic,
        resolution: Resolution::TEN_MILLIS,
        now: Tick::ZERO,
        is_closed: true,
        quota_limit: 10,
        active: 0,
        shards: Vec::new(),
    }
}

fn busy() -> SchedulerDump {
    let rate = JobDump {
        period_ticks: 100,
        backlog: 12,
        last_fire: Some(Tick::new(123_400)),
        priority: TimerPriority::High,
        ..job(0, 1, BatchMode::FixedRate, 123_500)
    };
    let delay = JobDump {
        period_ticks: 7,
        state: "executing",
        ..job(1, 41, BatchMode::FixedDelay, 123_457)
    };
    let far = JobDump {
        priority: TimerPriority::Low,
        state: "in overflow",
        ..job(1, 1_000_042, BatchMode::OneShot, 99_999_999)
    };
    let shard = ShardDump {
        shard: 0,
        wheel_offset: Tick::new(123_456),
        occupied_slots: 2,
        pending: 2,
        overflow: 0,
        overflow_capacity: 1_000,
        pending_commands: 0,
        queued: 0,
        jobs: vec![rate, job(0, 2, BatchMode::OneShot, 123_460)],
        jobs_left_out: 0,
    };
    let other = ShardDump {
        shard: 1,
        wheel_offset: Tick::new(123_455),
        occupied_slots: 170,
        pending: 5_000,
        overflow: 750,
        pending_commands: 3,
        queued: 1,
        jobs: vec![delay, far],
        jobs_left_out: 4_998,
        ..shard.clone()
    };
    SchedulerDump {
        mode: "worker pool",
        clock: ClockKind::RealtimeHost,
        resolution: Resolution::MILLI,
        now: Tick::new(123_456),
        is_closed: false,
        quota_limit: 1 << 20,
        active: 5_002,
        shards: vec![shard, other],
    }
}

#[test]
fn a_busy_scheduler_stands_in_aligned_tables() {
    golden("dump_busy.txt", &text(&busy(), DumpFormat::Text));
    assert_eq!(busy().to_string(), text(&busy(), DumpFormat::default()));
}

#[test]
fn a_busy_scheduler_is_one_record_a_line() {
    golden("dump_busy.lines", &text(&busy(), DumpFormat::Lines));
}

#[test]
fn an_empty_scheduler_says_so() {
    golden("dump_empty.txt", &text(&empty(), DumpFormat::Text));
    golden("dump_empty.lines", &text(&empty(), DumpFormat::Lines));
}

#[test]
fn no_line_ends_in_a_blank_and_each_pair_of_the_lines_has_one_key() {
    for dump in [busy(), empty()] {
        let text_form = text(&dump, DumpFormat::Text);
        assert!(text_form.lines().all(|line| line == line.trim_end()), "{text_form}");
        for line in text(&dump, DumpFormat::Lines).lines() {
            let pairs: Vec<_> = line.split(' ').skip(1).map(|pair| pair.split_once('=')).collect();
            assert!(pairs.iter().all(|pair| pair.is_some_and(|(_, value)| !value.is_empty())));
        }
    }
}

#[test]
fn the_error_of_the_writer_comes_back() {
    /// Has room for so many writes.
    struct Small(usize);
    impl fmt::Write for Small {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            self.0 = self.0.checked_sub(1).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    for format in [DumpFormat::Text, DumpFormat::Lines] {
        for room in 0..10 {
            assert_eq!(busy().write(format, &mut Small(room)), Err(fmt::Error));
        }
    }
}
