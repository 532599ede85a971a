//! Processes of the example `stress_node`, and what must be true of all of them after a fault.

use core::time::Duration;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    time::Instant,
};

use crate::process::{example, signal_process};

/// Longer than it takes until all nodes are members again after a fault: the leases of their
/// former incarnations, and the election of a leader.
const CONVERGE: Duration = Duration::from_secs(90);

/// A node in a process of its own.
pub(crate) struct StressNode {
    child: Child,
    commands: ChildStdin,
    lines: Arc<Mutex<Vec<String>>>,
    pub(crate) name: String,
}

/// What a node has counted.
#[derive(Debug, Default)]
pub(crate) struct Report {
    me: String,
    /// Messages, per sender and target.
    sent: BTreeMap<(String, String), u64>,
    /// Messages that have arrived or were reported as lost, per sender and target.
    known: BTreeMap<(String, String), u64>,
    asks_started: u64,
    asks_ended: u64,
    pub(crate) asks_answered: u64,
    pub(crate) lost: u64,
    /// The members, as the log says.
    members: BTreeSet<String>,
}

impl StressNode {
    pub(crate) fn start(urls: &[String], name: &str, lease: Duration) -> Self {
        let mut child = Command::new(example("stress_node"))
            .args([&urls.join(","), name, &lease.as_secs().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the node starts");
        let commands = child.stdin.take().expect("it is a pipe");
        let out = child.stdout.take().expect("it is a pipe");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let to = lines.clone();
        // It ends with the process.
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                to.lock().expect("no panic").push(line);
            }
        });
        Self { child, commands, lines, name: name.into() }
    }

    pub(crate) fn signal(&self, signal: &str) {
        signal_process(&self.child, signal);
    }

    /// Kills the node, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    fn command(&mut self, command: &str) {
        writeln!(self.commands, "{command}").expect("it runs");
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic").clone()
    }

    /// Asks for a report. None if the node did not answer in time.
    fn report(&mut self) -> Option<Report> {
        let before = self.lines.lock().expect("no panic").len();
        self.command("report");
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            let new = self.lines().split_off(before);
            if let Some(end) = new.iter().position(|line| line.starts_with("end ")) {
                return Some(parse(&new[..=end]));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for StressNode {
    fn drop(&mut self) {
        // It may have ended before, or be stopped.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn parse(lines: &[String]) -> Report {
    let mut report = Report::default();
    let number = |text: &str| text.parse::<u64>().expect("a number");
    for line in lines {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["sent", _, from, to, n] => {
                let pair = ((*from).to_owned(), (*to).to_owned());
                *report.sent.entry(pair).or_default() += number(n);
            }
            [what @ ("received" | "lost"), from, to, n] => {
                report.lost += if *what == "lost" { number(n) } else { 0 };
                let pair = ((*from).to_owned(), (*to).to_owned());
                *report.known.entry(pair).or_default() += number(n);
            }
            ["asks", started, ended, answered] => {
                report.asks_started = number(started);
                report.asks_ended = number(ended);
                report.asks_answered = number(answered);
            }
            ["members", _, all] => report.members = incarnations(all),
            ["end", me] => report.me = (*me).to_owned(),
            _ => {}
        }
    }
    report
}

/// The incarnations in a list of nodes.
fn incarnations(list: &str) -> BTreeSet<String> {
    list.split(',').filter_map(|node| Some(node.split_once('@')?.1.to_owned())).collect()
}

/// The watches of a node: the incarnations of the node and its target, and how often the end was
/// reported.
fn watches(node: &StressNode) -> BTreeMap<String, (String, String, u32)> {
    let mut watches = BTreeMap::new();
    for line in node.lines() {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["watch", id, from, to] => {
                watches.insert((*id).to_owned(), ((*from).to_owned(), (*to).to_owned(), 0));
            }
            ["terminated", id, _] => {
                watches.get_mut(*id).expect("it was watched").2 += 1;
            }
            _ => {}
        }
    }
    watches
}

/// What is not yet as it must be, or None.
fn complaint(nodes: &[StressNode], reports: &[Report]) -> Option<String> {
    let everybody: BTreeSet<String> = reports.iter().map(|one| one.me.clone()).collect();
    for (node, report) in nodes.iter().zip(reports) {
        let name = &node.name;
        if report.members != everybody {
            return Some(format!("{name} sees {:?}, not {everybody:?}", report.members));
        }
        if report.asks_started != report.asks_ended {
            let Report { asks_started, asks_ended, .. } = report;
            return Some(format!("{name}: {asks_started} asks started, {asks_ended} ended"));
        }
        let watches = watches(node);
        let live = watches.values().filter(|(from, to, _)| {
            *from == report.me && everybody.contains(to) && *to != report.me
        });
        if live.count() != nodes.len() - 1 {
            return Some(format!("{name} does not watch everybody: {watches:?}"));
        }
        for (from, to, n_ends) in watches.values() {
            let is_over = *from != report.me || !everybody.contains(to);
            if *n_ends != u32::from(is_over) {
                return Some(format!("{name}: the end of {from} -> {to} came {n_ends} times"));
            }
        }
        // Requests are not counted one by one.
        let sent = report.sent.iter().filter(|_| name.starts_with("tell"));
        for (pair @ (from, to), sent) in sent {
            let target = reports.iter().find(|one| one.me == *to);
            if let Some(target) = target.filter(|_| *from == report.me) {
                let known = target.known.get(pair).copied().unwrap_or(0);
                if known != *sent {
                    let what = "arrived or were reported as lost";
                    return Some(format!("{from} -> {to}: {sent} were sent, {known} {what}"));
                }
            }
        }
    }
    None
}

/// What the nodes have printed last, for whoever looks for the reason of a failure.
fn last_lines(nodes: &[StressNode]) -> String {
    let mut text = String::new();
    for node in nodes {
        let mut lines = node.lines();
        let is_told = |line: &String| {
            ["joined", "event", "terminated", "not joined"].iter().any(|at| line.starts_with(at))
        };
        let members = lines.iter().rfind(|line| line.starts_with("members")).cloned();
        lines.retain(is_told);
        let told = lines.split_off(lines.len().saturating_sub(12));
        text.push_str(&format!("{}: {told:#?} {members:?}\n", node.name));
    }
    text
}

/// All nodes become silent, and then everything must add up: all are members, each watch of a
/// lost node was answered by one end and no other, no request hangs, and each message between two
/// nodes that are still the same has arrived or was reported as lost.
#[track_caller]
pub(crate) fn check(what: &str, nodes: &mut [StressNode]) -> Vec<Report> {
    nodes.iter_mut().for_each(|node| node.command("pause"));
    let start = Instant::now();
    let reports = loop {
        let reports: Option<Vec<Report>> = nodes.iter_mut().map(StressNode::report).collect();
        let complaint = match &reports {
            Some(reports) => complaint(nodes, reports),
            None => Some("a node does not answer".into()),
        };
        match (complaint, reports) {
            (None, Some(reports)) => break reports,
            (complaint, _) => {
                let complaint = complaint.unwrap_or_default();
                let is_in_time = start.elapsed() < CONVERGE;
                assert!(is_in_time, "after {what}: {complaint}\n{}", last_lines(nodes));
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    nodes.iter_mut().for_each(|node| node.command("resume"));
    reports
}

/// At each place of the log all nodes have seen the same members, also those that have ended.
/// Returns how many places two nodes or more have seen.
pub(crate) fn check_agreement(outputs: &[Vec<String>]) -> usize {
    let mut places: BTreeMap<u64, (BTreeSet<String>, usize)> = BTreeMap::new();
    for lines in outputs {
        // A node reports a place more than once.
        let mut own: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for line in lines {
            let Some(("members", rest)) = line.split_once(' ') else { continue };
            let (place, list) = rest.split_once(' ').expect("a place and a list");
            own.insert(place.parse().expect("a number"), incarnations(list));
        }
        for (place, members) in own {
            let (first, n) = places.entry(place).or_insert_with(|| (members.clone(), 0));
            assert_eq!(*first, members, "at {place}");
            *n += 1;
        }
    }
    places.values().filter(|(_, n)| *n > 1).count()
}
