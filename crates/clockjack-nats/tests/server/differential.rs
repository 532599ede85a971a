//! The server in memory against a real one: the same random writes, and the same log.
//!
//! One engine on each, driven by the same operations: writes and ends of a few keys, with and
//! without conditions. At each comparison the last entries of all keys must be equal, and what the
//! real server has delivered must be a part of the other log, in its order: a real server keeps the
//! last entry of a key only, so a reader that is behind does not see those before. Sequence numbers
//! may differ, so conditions name an entry by what it is. Times to live are compared in a second
//! test, with real seconds.

use core::time::Duration;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use clockjack_nats::{NatsConfig, connect};
use clockjack_net::{
    LogEvent, MemoryServer,
    engine::{Connect, Engine, EngineEvent, Expected, LogWrite, Moment, Notify},
};
use clockjack_rt::Runtime;

use crate::{process::Server, until};

/// `cargo xtask nats --operations` says how many.
fn operations() -> u32 {
    let operations = std::env::var("CLOCKJACK_NATS_OPERATIONS").ok();
    operations.map_or(2_000, |n| n.parse().expect("CLOCKJACK_NATS_OPERATIONS is a number"))
}

const BATCH: u32 = 50;

/// One server, and what was read from its log.
struct Side {
    engine: Box<dyn Engine>,
    start: Instant,
    /// What was read since the last comparison, after the last entry of each key before.
    log: Vec<LogEvent>,
    n_read: usize,
    has_snapshot: bool,
}

impl Side {
    fn new(connect: impl Connect + 'static) -> Self {
        let mut engine = Box::new(connect).connect(Notify::new(|| {}));
        engine.subscribe(1);
        Self { engine, start: Instant::now(), log: Vec::new(), n_read: 0, has_snapshot: false }
    }

    fn now(&self) -> Moment {
        let nanos = self.start.elapsed().as_nanos();
        Moment::from_nanos(u64::try_from(nanos).expect("the test is short"))
    }

    fn write(&mut self, key: &str, value: Option<&str>, expected: Expected, ttl: Option<Duration>) {
        let value = value.map(|value| value.as_bytes().to_vec());
        let now = self.now();
        self.engine.write(now, LogWrite { key: key.into(), value, expected, ttl });
    }

    fn read(&mut self) {
        for event in self.engine.poll(self.now()) {
            match event {
                EngineEvent::Log(event) => {
                    self.log.push(event);
                    self.n_read += 1;
                }
                EngineEvent::Snapshot { entries, .. } => {
                    assert!(entries.is_empty() && self.log.is_empty(), "it is the first");
                    self.has_snapshot = true;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Reads until a write to a key of its own arrives.
    fn sync(&mut self, number: u32) {
        let key = format!("sync.{number}");
        self.write(&key, Some("x"), Expected::Any, None);
        until("the last write arrives", || {
            self.read();
            self.log.last().filter(|event| event.key == key).map(drop)
        });
    }

    /// The keys and values, without sequence numbers.
    fn entries(&self) -> Vec<(&str, Option<&[u8]>)> {
        self.log.iter().map(|event| (event.key.as_str(), event.value.as_deref())).collect()
    }

    /// The sequence number of the last entry of a key, if the entry is a value.
    fn last(&self, key: &str) -> Option<u64> {
        let last = self.log.iter().rev().find(|event| event.key == key);
        last.filter(|event| event.value.is_some()).map(|event| event.sequence)
    }

    /// The sequence number of an entry of another key.
    fn other(&self) -> Option<u64> {
        let mut others = self.log.iter().rev().filter(|event| event.key.starts_with("sync."));
        others.next().map(|event| event.sequence)
    }

    /// Keeps the last entry of each key, so that a long test does not become slower. Of the keys
    /// that say that everything has arrived, one is enough.
    fn forget(&mut self) {
        let mut keys = BTreeSet::new();
        let mut kept: Vec<LogEvent> = Vec::new();
        for event in core::mem::take(&mut self.log).into_iter().rev() {
            let key = if event.key.starts_with("sync.") { "sync" } else { &event.key };
            if keys.insert(key.to_owned()) {
                kept.push(event);
            }
        }
        kept.reverse();
        self.log = kept;
    }

    /// The last entry of each key.
    fn state(&self) -> BTreeMap<&str, Option<&[u8]>> {
        self.entries().into_iter().collect()
    }
}

fn sides(server: &Server) -> [Side; 2] {
    let rt = Runtime::new("test").expect("it starts");
    let config = NatsConfig::new(&server.url(), "diff", "reader");
    let nats = rt.block_on(connect(config)).expect("the server runs");
    let mut nats = Side::new(nats);
    // The log of the real server begins with a snapshot, which is empty.
    until("the snapshot arrives", || {
        nats.read();
        nats.has_snapshot.then_some(())
    });
    [Side::new(MemoryServer::new()), nats]
}

/// Numbers that look random.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

#[test]
fn the_server_in_memory_agrees_with_a_real_one_on_random_writes() {
    let server = Server::start();
    let mut sides = sides(&server);
    let mut seed = 7;
    let operations = operations();
    for number in 0..operations {
        // Within a batch nothing is read, so conditions name entries of before the batch: some of
        // them are not the last ones any more when the write arrives.
        let key = format!("k.{}", random(&mut seed, 6));
        let value = format!("{number}");
        let value = (random(&mut seed, 4) > 0).then_some(value.as_str());
        let condition = random(&mut seed, 4);
        for side in &mut sides {
            let expected = match condition {
                0 => Expected::Absent,
                1 => side.last(&key).map_or(Expected::Absent, Expected::Sequence),
                2 => side.other().map_or(Expected::Any, Expected::Sequence),
                _ => Expected::Any,
            };
            side.write(&key, value, expected, None);
        }
        if random(&mut seed, u64::from(BATCH)) == 0 || number + 1 == operations {
            sides.iter_mut().for_each(|side| side.sync(number));
            let [memory, nats] = &sides;
            assert_eq!(memory.state(), nats.state(), "up to operation {number}");
            let mut all = memory.entries().into_iter();
            let is_part = nats.entries().into_iter().all(|entry| all.any(|one| one == entry));
            assert!(is_part, "the order differs, up to operation {number}");
            sides.iter_mut().for_each(Side::forget);
        }
    }
    let n_read = sides[0].n_read;
    assert!(n_read > operations as usize / 4, "most conditions are true: {n_read}");
}

#[test]
fn keys_end_when_their_time_is_over_unless_they_are_renewed() {
    let server = Server::start();
    let mut sides = sides(&server);
    let second = Some(Duration::from_secs(1));
    for side in &mut sides {
        side.write("a", Some("1"), Expected::Absent, second);
        side.write("b", Some("1"), Expected::Absent, Some(Duration::from_secs(600)));
        side.sync(0);
        let first = side.last("a").expect("it was written");
        side.write("a", Some("2"), Expected::Sequence(first), second);
        until("its time is over", || {
            side.read();
            side.last("a").is_none().then_some(())
        });
        // An entry that has ended is not renewed.
        side.write("a", Some("3"), Expected::Sequence(first), second);
        side.sync(1);
        side.write("a", Some("4"), Expected::Absent, None);
        side.sync(2);
    }
    let [memory, nats] = &sides;
    assert_eq!(memory.entries(), nats.entries());
    assert!(nats.last("b").is_some());
}
