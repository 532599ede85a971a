//! The actors in virtual time, without sockets: the test is the device, the archive or both.

use std::{
    io,
    sync::{Arc, Mutex},
};

use clockjack::{
    actor::{EventKinds, SystemEvent},
    prelude::*,
    testkit::{ManualTime, TestProbe},
};
use clockjack_gateway::{
    archive::{self, Archive},
    device::{self, BURST, COMMAND_ATTEMPTS, COMMAND_TIMEOUT, CommandError, READING_EVERY},
    devices::{self, Devices},
    figures::Figures,
    protocol::parse,
    store::{self, ARCHIVE_TIMEOUT, FLUSH_EVERY, Reading, retry_delay},
    tcp::Out,
};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// A gateway without sockets, whose archive is what the test gives it.
struct Fixture<'t> {
    time: &'t ManualTime,
    figures: Arc<Figures>,
    devices: ActorRef<devices::Msg>,
}

impl<'t> Fixture<'t> {
    fn new(time: &'t ManualTime, archive: ActorRef<archive::Store>) -> Self {
        let figures = Arc::new(Figures::default());
        let store = time.spawn("store", store::router(archive, Arc::clone(&figures)));
        let counted = Arc::clone(&figures);
        let devices = move || Devices::new(2, store.clone(), Arc::clone(&counted));
        Self { time, figures, devices: time.spawn("devices", devices) }
    }

    /// Connects a device.
    fn join(&self, name: &str) -> Result<Connection, &'static str> {
        let (name, out) = (String::from(name), self.time.probe::<Out>());
        let writer = out.actor_ref();
        let join = |reply_to| devices::Msg::Join { name, writer, reply_to };
        let device = self.time.block_on(self.devices.ask(join, SECOND)).expect("an answer")?;
        assert_eq!(out.expect(), Out::Line("ok".into()));
        Ok(Connection { device, out })
    }

    fn count(&self) -> usize {
        self.time.block_on(self.devices.ask(devices::Msg::Count, SECOND)).expect("an answer")
    }

    fn find(&self, name: &str) -> Option<ActorRef<device::Msg>> {
        let find = |reply_to| devices::Msg::Find(name.into(), reply_to);
        self.time.block_on(self.devices.ask(find, SECOND)).expect("an answer")
    }

    /// A figure on the page of metrics.
    fn figure(&self, name: &str) -> u64 {
        let mut set = clockjack::observe::samples::SampleSet::new();
        self.figures.add_to(&mut set);
        let page = set.prometheus().expect("the names are valid");
        let line = page.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.trim().parse().expect("a number")
    }
}

/// A device, as the test plays it.
struct Connection {
    device: ActorRef<device::Msg>,
    out: TestProbe<Out>,
}

impl Connection {
    fn send(&self, line: &str) {
        let line = parse(line).expect("a line of the protocol");
        self.device.tell(device::Msg::Line(line)).expect("there is room");
    }

    #[track_caller]
    fn expect(&self, line: &str) {
        assert_eq!(self.out.expect(), Out::Line(line.into()));
    }
}

type Written = Arc<Mutex<Vec<Reading>>>;

/// An archive that fails as long as `n_failures` is not zero.
fn archive(time: &ManualTime, mut n_failures: u32) -> (ActorRef<archive::Store>, Written) {
    let written = Written::default();
    let to = Arc::clone(&written);
    let archive = Archive::new(move |readings: &[Reading]| {
        if n_failures > 0 {
            n_failures -= 1;
            return Err(io::Error::other("the disk is full"));
        }
        to.lock().expect("nobody panics").extend_from_slice(readings);
        Ok(())
    });
    (time.spawn("archive", Props::once(archive)), written)
}

fn numbers(written: &Written) -> Vec<u64> {
    written.lock().expect("nobody panics").iter().map(|reading| reading.number).collect()
}

#[test]
fn a_heartbeat_keeps_a_device_and_silence_disconnects_it() {
    let time = ManualTime::start();
    let fixture = Fixture::new(&time, archive(&time, 0).0);
    let pump = fixture.join("pump").expect("there is room");
    for _ in 0..10 {
        time.advance(device::SILENCE_MAX - MS);
        pump.send("ping");
        pump.expect("pong");
    }
    time.advance(device::SILENCE_MAX - MS);
    assert_eq!(fixture.count(), 1);
    time.advance(MS); // neither early nor late
    pump.expect("bye");
    assert_eq!(pump.out.expect(), Out::Close);
    assert_eq!(fixture.count(), 0);
    assert_eq!(fixture.figure("clockjack_gateway_devices_silent_total"), 1);
    time.expect_no_failures();
}

#[test]
fn a_device_that_sends_too_fast_is_refused_and_counted() {
    let time = ManualTime::start();
    let fixture = Fixture::new(&time, archive(&time, 0).0);
    let pump = fixture.join("pump").expect("there is room");
    for number in 1..=u64::from(BURST) {
        pump.send(&format!("data {number} 7"));
        time.settle();
        pump.expect(&format!("ack {number}"));
    }
    pump.send("data 51 7");
    pump.expect("busy 51");
    time.advance(READING_EVERY - MS);
    pump.send("data 52 7");
    pump.expect("busy 52");
    time.advance(MS);
    pump.send("data 53 7");
    pump.expect("ack 53");
    let refused = "clockjack_gateway_readings_refused_total{reason=\"rate\"}";
    assert_eq!(fixture.figure(refused), 2);
    assert_eq!(fixture.figure("clockjack_gateway_readings_accepted_total"), 51);
    let status = time.block_on(pump.device.ask(device::Msg::Status, SECOND)).expect("an answer");
    assert_eq!((status.n_accepted, status.n_refused), (51, 2));
}

#[test]
fn the_flush_job_archives_what_was_acknowledged() {
    let time = ManualTime::start();
    let (archive, written) = archive(&time, 0);
    let fixture = Fixture::new(&time, archive);
    let pump = fixture.join("pump").expect("there is room");
    (1..=3).for_each(|number| pump.send(&format!("data {number} -4")));
    time.advance(FLUSH_EVERY);
    assert_eq!(numbers(&written), [1, 2, 3]);
    assert_eq!(fixture.figure("clockjack_gateway_readings_archived_total"), 3);
    time.expect_no_failures();
}

#[test]
fn a_batch_is_sent_again_until_the_archive_has_it_once() {
    let time = ManualTime::start();
    let (archive, written) = archive(&time, 3);
    let fixture = Fixture::new(&time, archive);
    let pump = fixture.join("pump").expect("there is room");
    pump.send("data 1 0");
    time.advance(FLUSH_EVERY + retry_delay(1) + retry_delay(2));
    pump.send("data 2 0"); // accepted, although the archive does not work
    time.settle();
    pump.expect("ack 1");
    pump.expect("ack 2");
    assert!(numbers(&written).is_empty());
    time.advance(retry_delay(3) + 2 * FLUSH_EVERY);
    assert_eq!(numbers(&written), [1, 2]);
    assert_eq!(fixture.figure("clockjack_gateway_batches_resent_total"), 3);
}

#[test]
fn a_batch_whose_answer_is_lost_is_not_archived_twice() {
    let time = ManualTime::start();
    let (archive, written) = archive(&time, 0);
    let slow = time.probe::<archive::Store>();
    let fixture = Fixture::new(&time, slow.actor_ref());
    let pump = fixture.join("pump").expect("there is room");
    pump.send("data 1 0");
    time.advance(FLUSH_EVERY);
    // The first attempt is written, but its answer is lost. The second one is only answered.
    let first = slow.expect();
    let (shard, batch, readings) = (first.shard, first.batch, Arc::clone(&first.readings));
    let lost =
        archive.ask(move |reply_to| archive::Store { shard, batch, readings, reply_to }, SECOND);
    assert_eq!(time.block_on(lost), Ok(Ok(())));
    time.advance(ARCHIVE_TIMEOUT + retry_delay(1));
    let second = slow.expect();
    assert_eq!((second.shard, second.batch), (first.shard, first.batch));
    archive.tell(second).expect("there is room");
    time.settle();
    assert_eq!(numbers(&written), [1]);
    assert_eq!(fixture.figure("clockjack_gateway_readings_archived_total"), 1);
}

#[test]
fn a_full_shard_refuses_and_loses_nothing() {
    let time = ManualTime::start();
    let dead = time.probe::<archive::Store>(); // never answers
    let figures = Arc::new(Figures::default());
    let to = dead.actor_ref();
    let shard = time.spawn("shard", move || store::Shard::new(to.clone(), Arc::clone(&figures), 3));
    let put = |number| {
        let reading = Reading { device: "pump".into(), number, value: 0 };
        let put = |reply_to| store::Msg::Put(reading, reply_to);
        time.block_on(shard.ask(put, SECOND)).expect("an answer")
    };
    for number in 0..2 {
        assert_eq!(put(number), Ok(()), "{number}");
    }
    time.advance(FLUSH_EVERY);
    assert_eq!(dead.expect().readings.len(), 2);
    assert_eq!(put(2), Ok(()));
    assert_eq!(put(3), Err(store::Full), "the batch on its way counts, too");
}

#[test]
fn a_command_is_resent_until_the_device_answers_or_the_attempts_end() {
    let time = ManualTime::start();
    let fixture = Fixture::new(&time, archive(&time, 0).0);
    let pump = fixture.join("pump").expect("there is room");
    let command = |text: &str| {
        let command = |reply_to| device::Msg::Command(text.into(), reply_to);
        pump.device.ask(command, 60 * SECOND)
    };
    let answer = command("open");
    time.settle();
    pump.expect("cmd 1 open");
    time.advance(COMMAND_TIMEOUT);
    pump.expect("cmd 1 open");
    pump.send("done 1");
    pump.send("done 1"); // both attempts have arrived
    assert_eq!(time.block_on(answer), Ok(Ok(())));

    let answer = command("close");
    time.settle();
    for _ in 0..COMMAND_ATTEMPTS {
        pump.expect("cmd 2 close");
        time.advance(COMMAND_TIMEOUT);
    }
    assert_eq!(time.block_on(answer), Ok(Err(CommandError::NoAnswer)));
    pump.out.expect_none();
    assert_eq!(fixture.figure("clockjack_gateway_commands_resent_total"), 3);
    time.expect_no_failures();
}

#[test]
fn a_new_connection_replaces_the_old_one_and_devices_are_bounded() {
    let time = ManualTime::start();
    let fixture = Fixture::new(&time, archive(&time, 0).0);
    let old = fixture.join("pump").expect("there is room");
    let new = fixture.join("pump").expect("it replaces the old one");
    old.expect("bye");
    assert_eq!(old.out.expect(), Out::Close);
    assert_eq!(fixture.find("pump").map(|it| it.pid()), Some(new.device.pid()));
    fixture.join("valve").expect("there is room");
    assert_eq!(fixture.join("motor").err(), Some("too many devices"));
    assert_eq!(fixture.count(), 2);
}

#[test]
fn the_drain_answers_what_was_accepted_and_refuses_the_rest() {
    let time = ManualTime::start();
    let (archive, written) = archive(&time, 0);
    let fixture = Fixture::new(&time, archive);
    let pump = fixture.join("pump").expect("there is room");
    pump.send("data 1 5");
    time.settle();
    let drained = fixture.devices.ask(devices::Msg::Drain, SECOND);
    time.block_on(drained).expect("all devices stop");
    pump.expect("ack 1");
    pump.expect("bye");
    assert_eq!(fixture.join("valve").err(), Some("the gateway is stopping"));
    let shards = time.system().receptionist().find(&store::shards());
    assert_eq!(shards.services().len(), store::SHARDS);
    for shard in shards.services() {
        time.block_on(shard.ask(store::Msg::Drain, SECOND)).expect("everything is written");
    }
    assert_eq!(numbers(&written), [1]);
    assert!(time.elapsed() < FLUSH_EVERY, "the drain does not wait for the flush job");
}

#[test]
fn nothing_warns_in_an_idle_hour() {
    let time = ManualTime::start();
    let fixture = Fixture::new(&time, archive(&time, 0).0);
    let events = time.probe::<SystemEvent>();
    let kinds = EventKinds::ALL.without(EventKinds::LIFECYCLE | EventKinds::TICK_RATE);
    assert!(time.system().events().subscribe(kinds, events.actor_ref()));
    let pump = fixture.join("pump").expect("there is room");
    for _ in 0..3600 / 20 {
        time.advance(20 * SECOND);
        pump.send("ping");
        pump.expect("pong");
    }
    events.expect_none();
    time.expect_no_failures();
}
