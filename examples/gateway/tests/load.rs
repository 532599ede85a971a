//! The program under load, over sockets of the loopback interface: 1,000 devices for five seconds.
//! Nothing is lost, every refusal is counted, an idle gateway warns of nothing, and a signal in the
//! middle of the load loses nothing that was acknowledged.
//!
//! A gateway is idle for a minute of an ordinary clock next to the load; `actors.rs` has an idle
//! hour of virtual time. The number of devices follows the limit of open files, and the test says
//! so; under `CI` a limit that is too low is a failure.
#![cfg(unix)]
#![expect(clippy::print_stderr, reason = "a test says what it could not do")]

use core::{net::SocketAddr, time::Duration};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use clockjack_gateway::open_files;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    runtime::Runtime,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

/// The devices of the load.
const DEVICES: usize = 1_000;
/// How long the load lasts.
const LOAD: Duration = Duration::from_secs(5);
/// How long the gateway is idle before the load.
const IDLE: Duration = Duration::from_secs(2);
/// The pause of a device between two readings.
const PAUSE: Duration = Duration::from_millis(100);
/// Each such device sends bursts that are too large.
const GREEDY_EVERY: usize = 50;
/// How many readings a greedy device sends at once: twice what the gateway takes.
const GREEDY_BURST: u64 = 100;
/// How long each step may take: far longer than any of them takes on a busy machine.
const STEP_MAX: Duration = Duration::from_secs(60);
/// How often a state that nobody reports is polled.
const POLL: Duration = Duration::from_millis(20);

/// A running gateway. Dropping it kills it.
struct Gateway {
    child: Child,
    dir: PathBuf,
    tcp: SocketAddr,
    http: SocketAddr,
}

impl Gateway {
    async fn start(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).expect("the directory can be emptied");
        }
        fs::create_dir_all(&dir).expect("the directory can be created");
        let log = File::create(dir.join("log")).expect("the log can be created");
        let mut command = Command::new(env!("CARGO_BIN_EXE_gateway"));
        command.args(["127.0.0.1:0", "127.0.0.1:0"]).arg(dir.join("archive"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().expect("the gateway can be started");
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut gateway = Self { child, dir, tcp: nowhere, http: nowhere };
        let started = gateway.wait_for_line("devices at ");
        let line = timeout(STEP_MAX, started).await.expect("the gateway says where it listens");
        let (_, addresses) = line.split_once("devices at ").expect("this was waited for");
        let (tcp, http) = addresses.split_once(", pages at http://").expect("two addresses");
        gateway.tcp = tcp.parse().expect("an address");
        gateway.http = http.trim().parse().expect("an address");
        gateway
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).expect("there is a log")
    }

    async fn wait_for_line(&self, text: &str) -> String {
        loop {
            let log = self.log();
            let mut lines = log.lines().filter(|_| log.ends_with('\n'));
            if let Some(line) = lines.find(|line| line.contains(text)) {
                return line.to_owned();
            }
            sleep(POLL).await;
        }
    }

    /// The lines of the log that somebody would have to act on.
    fn warnings(&self) -> Vec<String> {
        let log = self.log();
        // A test may be started with SIGINT ignored, about which the gateway warns rightly.
        let is_about_us = |line: &&str| !line.contains("SIGINT was ignored");
        let lines = log.lines().filter(|line| line.contains(" WARN ") || line.contains("ERROR "));
        lines.filter(is_about_us).map(str::to_owned).collect()
    }

    async fn page(&self, path: &str) -> String {
        let mut client = TcpStream::connect(self.http).await.expect("the pages are served");
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.expect("a request is read");
        let mut response = String::new();
        client.read_to_string(&mut response).await.expect("a response is written");
        assert!(response.starts_with("HTTP/1.1 200 "), "{path}: {response}");
        response
    }

    /// Sends SIGTERM, and waits until the gateway has exited.
    async fn terminate(&mut self) -> ExitStatus {
        self.signal();
        let exited = async {
            loop {
                if let Some(status) = self.child.try_wait().expect("it is our child") {
                    return status;
                }
                sleep(POLL).await;
            }
        };
        timeout(STEP_MAX, exited).await.expect("the gateway drains")
    }

    fn signal(&self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a pid"), Signal::TERM).expect("the gateway runs");
    }

    /// All archived readings, as `DEVICE NUMBER`. None is there twice.
    fn archived(&self) -> BTreeSet<String> {
        let text = fs::read_to_string(self.dir.join("archive")).expect("there is an archive");
        let readings = text.lines().map(|line| {
            let (reading, _value) = line.rsplit_once(' ').expect("device, number and value");
            reading.to_owned()
        });
        let archived: BTreeSet<String> = readings.collect();
        assert_eq!(archived.len(), text.lines().count(), "a reading is archived twice");
        archived
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Both fail only if the gateway has exited and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a device has sent, and what it was answered.
#[derive(Default)]
struct Tally {
    n_sent: u64,
    acknowledged: BTreeSet<String>,
    n_busy: u64,
    n_unknown: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.n_sent += other.n_sent;
        self.acknowledged.extend(other.acknowledged);
        self.n_busy += other.n_busy;
        self.n_unknown += other.n_unknown;
    }
}

/// A device.
struct Device {
    name: String,
    lines: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
    tally: Tally,
}

impl Device {
    async fn connect(to: SocketAddr, name: String) -> Self {
        let socket = TcpStream::connect(to).await.expect("a connection is accepted");
        let (read, mut write) = socket.into_split();
        write.write_all(format!("hello {name}\n").as_bytes()).await.expect("a line is read");
        let mut lines = BufReader::new(read);
        let mut answer = String::new();
        lines.read_line(&mut answer).await.expect("a line is written");
        assert_eq!(answer, "ok\n", "{name}");
        Self { name, lines, write, tally: Tally::default() }
    }

    /// Sends readings and reads an answer to each. False if the gateway has closed the connection.
    async fn exchange(&mut self, n: u64) -> bool {
        let first = self.tally.n_sent + 1;
        let lines = (first..first + n).map(|number| format!("data {number} {number}\n"));
        let lines: String = lines.collect();
        if self.write.write_all(lines.as_bytes()).await.is_err() {
            return false;
        }
        self.tally.n_sent += n;
        for _ in 0..n {
            let mut answer = String::new();
            let read = self.lines.read_line(&mut answer).await;
            match answer.trim_end().split_once(' ') {
                Some(("ack", number)) => {
                    let is_new = self.tally.acknowledged.insert(format!("{} {number}", self.name));
                    assert!(is_new, "{}: {number} is acknowledged twice", self.name);
                }
                Some(("busy", _)) => self.tally.n_busy += 1,
                Some(("unknown", _)) => self.tally.n_unknown += 1,
                _ => {
                    let is_end = answer.is_empty() || answer == "bye\n";
                    assert!(is_end, "{}: {read:?} {answer:?}", self.name);
                    return false;
                }
            }
        }
        true
    }

    /// Sends readings until `until`, or until the gateway closes the connection.
    async fn run(mut self, until: Instant, burst: u64) -> Tally {
        while Instant::now() < until && self.exchange(burst).await {
            sleep(PAUSE).await;
        }
        self.tally
    }
}

/// How many devices the limit of open files allows. The gateway inherits the limit.
fn n_devices() -> usize {
    let limit = open_files::raise(DEVICES as u64 + 200);
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let (n, note) = devices_within(limit, is_ci).unwrap_or_else(|why| panic!("{why}"));
    if let Some(note) = note {
        eprintln!("{note}");
    }
    n
}

/// How many devices this limit of open files allows, with a note if they are fewer than wanted.
fn devices_within(limit: u64, is_ci: bool) -> Result<(usize, Option<String>), String> {
    let room = usize::try_from(limit.saturating_sub(200)).unwrap_or(DEVICES);
    if room >= DEVICES {
        return Ok((DEVICES, None));
    }
    if is_ci || room <= GREEDY_EVERY {
        return Err(format!("a limit of {limit} open files is too low for {DEVICES} devices"));
    }
    let note = format!("only {room} devices instead of {DEVICES}: the limit is {limit} open files");
    Ok((room, Some(note)))
}

#[test]
fn a_load_with_fewer_devices_says_so_and_is_no_load_for_ci() {
    for is_ci in [false, true] {
        for limit in [1_200, 1_000_000, u64::MAX] {
            assert_eq!(devices_within(limit, is_ci), Ok((DEVICES, None)));
        }
        assert!(devices_within(250, is_ci).is_err(), "not one greedy device");
    }
    let (n, note) = devices_within(1_024, false).expect("there is some room");
    assert_eq!(n, 824);
    assert!(note.expect("it is worth a note").contains("only 824 devices instead of 1000"));
    assert!(devices_within(1_024, true).is_err());
}

/// Connects devices. They start together when all are connected.
async fn connect(gateway: &Gateway, n: usize) -> Vec<Device> {
    let mut devices = Vec::new();
    for number in 0..n {
        let device = Device::connect(gateway.tcp, format!("d{number}"));
        devices.push(timeout(STEP_MAX, device).await.expect("a device is served"));
    }
    devices
}

async fn load(devices: Vec<Device>, until: Instant) -> Tally {
    let mut running = JoinSet::new();
    for (number, device) in devices.into_iter().enumerate() {
        let burst = if number % GREEDY_EVERY == 0 { GREEDY_BURST } else { 1 };
        running.spawn(device.run(until, burst));
    }
    let mut all = Tally::default();
    let done = async {
        while let Some(tally) = running.join_next().await {
            all.add(tally.expect("no device panics"));
        }
    };
    timeout(LOAD + STEP_MAX, done).await.expect("every reading is answered");
    all
}

/// The sum of a metric over its labels.
fn metric(page: &str, name: &str) -> u64 {
    let values = page.lines().filter_map(|line| {
        let (full_name, value) = line.rsplit_once(' ')?;
        (full_name.split('{').next() == Some(name)).then(|| value.parse::<u64>())
    });
    values.map(|value| value.expect("a count")).sum()
}

#[test]
fn under_load_nothing_is_lost_and_refusals_are_counted() {
    Runtime::new().expect("there are threads").block_on(async {
        let n = n_devices();
        let mut gateway = Gateway::start("load").await;
        sleep_until(Instant::now() + IDLE).await;
        assert_eq!(gateway.warnings(), [""; 0], "an idle gateway warns");
        let devices = connect(&gateway, n).await;
        assert!(gateway.page("/health").await.contains(&format!("ok, {n} devices\n")));

        let all = load(devices, Instant::now() + LOAD).await;
        let n_accepted = all.acknowledged.len() as u64;
        eprintln!("{} sent, {n_accepted} accepted, {} refused", all.n_sent, all.n_busy);
        assert_eq!(all.n_sent, n_accepted + all.n_busy + all.n_unknown, "an answer is missing");
        assert!(all.n_busy > 0, "greedy devices are not refused");
        assert!(all.n_sent >= n as u64, "a device has sent nothing");
        let page = gateway.page("/metrics").await;
        assert_eq!(metric(&page, "clockjack_gateway_readings_accepted_total"), n_accepted);
        assert_eq!(metric(&page, "clockjack_gateway_readings_refused_total"), all.n_busy);
        assert_eq!(metric(&page, "clockjack_gateway_readings_unknown_total"), all.n_unknown);
        assert_eq!(metric(&page, "clockjack_gateway_connections_total"), n as u64);

        let status = gateway.terminate().await;
        assert!(status.success(), "{status}: {}", gateway.log());
        assert!(gateway.log().contains("runtime shut down (SIGTERM): clean"));
        let archived = gateway.archived();
        assert!(archived.is_superset(&all.acknowledged), "an acknowledged reading is lost");
        let n_more = (archived.len() as u64) - n_accepted;
        assert!(n_more <= all.n_unknown, "{n_more} readings are archived, but were refused");
    });
}

/// Runs a gateway without devices for a number of seconds, as a script in the background does.
fn idle(seconds: &str, archive: &str) -> (ExitStatus, String) {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' INT; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_gateway")]);
    command.args(["--idle", seconds, "127.0.0.1:0", "127.0.0.1:0", archive]);
    let done = command.output().expect("the gateway can be started");
    (done.status, String::from_utf8(done.stderr).expect("a log is text"))
}

#[test]
fn an_idle_minute_warns_of_nothing() {
    let (status, log) = idle("60", "/dev/null");
    assert!(log.contains("0 warnings in 60s"), "{log}");
    assert!(status.success() && log.contains(": clean"), "{log}");
}

#[test]
fn a_gateway_that_is_idle_for_a_given_time_drains_and_counts_its_warnings() {
    let (status, log) = idle("1", "/dev/null");
    assert!(log.contains("SIGINT was ignored"), "it is worth a warning: {log}");
    assert!(log.contains("0 warnings in 1s"), "and is not counted: {log}");
    assert!(status.success() && log.contains(": clean"), "{log}");
    // What goes wrong before it can be idle fails, too.
    assert!(!idle("1", "/nowhere/at/all").0.success());
}

#[test]
fn a_signal_under_load_loses_nothing_that_was_acknowledged() {
    Runtime::new().expect("there are threads").block_on(async {
        let mut gateway = Gateway::start("signal").await;
        let devices = connect(&gateway, n_devices().min(200)).await;
        let running = tokio::spawn(load(devices, Instant::now() + LOAD));
        sleep(Duration::from_secs(1)).await;
        let status = gateway.terminate().await;
        let all = running.await.expect("no device panics");
        assert!(status.success(), "{status}: {}", gateway.log());
        assert!(gateway.log().contains("runtime shut down (SIGTERM): clean"));
        assert!(!all.acknowledged.is_empty(), "the signal came before the load");
        assert!(gateway.archived().is_superset(&all.acknowledged), "a reading is lost");
    });
}
