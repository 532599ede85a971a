//! `doctor`: checks of the servers, the log and the members.

use core::{fmt, time::Duration};
use std::collections::BTreeMap;

use clockjack_nats::{
    SERVER_MIN,
    tools::{LogReport, ServerReport},
};
use serde_json::json;

use crate::{
    args::{DoctorArgs, Format},
    failure::Failure,
    monitor,
    status::{self, Row},
    write_result,
};

/// A lease is renewed every two seconds; one that is older than this is late.
const LEASE_LATE: Duration = Duration::from_secs(6);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Ok,
    Warn,
    Fail,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        })
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    level: Level,
    check: &'static str,
    text: String,
}

const fn finding(level: Level, check: &'static str, text: String) -> Finding {
    Finding { level, check, text }
}

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let (_, inspector) = args.connect.connect()?;
    let report = inspector.read()?;
    let mut findings = vec![of_server(&inspector.server())];
    let sync = match args.monitor.map(monitor::sync) {
        Some(Ok(sync)) => sync,
        Some(Err(error)) => {
            let text = format!("the monitoring port does not answer: {error}");
            findings.push(finding(Level::Warn, "monitor", text));
            None
        }
        None => None,
    };
    findings.push(of_durability(report.replicas, sync.as_deref()));
    findings.extend(of_log(&report));
    findings.extend(of_members(&status::rows(&report)));
    let text: String = findings
        .iter()
        .map(|one| match args.format {
            Format::Human => format!("{:<5} {:<11} {}\n", one.level, one.check, one.text),
            Format::Json => {
                let level = one.level.to_string();
                let line = json!({"level": level, "check": one.check, "text": one.text});
                format!("{line}\n")
            }
        })
        .collect();
    write_result(&text)?;
    let has_failed = findings.iter().any(|one| one.level == Level::Fail);
    if has_failed { Err(Failure::already_reported()) } else { Ok(()) }
}

fn of_server(server: &ServerReport) -> Finding {
    let (major, minor) = SERVER_MIN;
    let ServerReport { version, max_payload, .. } = server;
    let what =
        format!("version {version}, at least {major}.{minor}; {max_payload} bytes a message");
    if server.needs_credentials {
        return finding(Level::Ok, "server", what);
    }
    let advice = "anybody who reaches it is a member: see `clockjack cluster permissions`";
    finding(Level::Warn, "server", format!("{what}; {advice}"))
}

/// What is left after which failure: assumption S of the contract.
fn of_durability(replicas: usize, sync: Option<&str>) -> Finding {
    let (level, text) = match (replicas, sync) {
        (3.., Some("always")) => (
            Level::Ok,
            "what was confirmed survives the loss of servers and of their power".to_owned(),
        ),
        (3.., Some(interval)) => (
            Level::Warn,
            format!(
                "written to disks every {interval}: what was confirmed survives the crash of a \
                 server, but not a power failure of several; set `sync_interval: always`"
            ),
        ),
        (_, Some("always")) => (
            Level::Warn,
            format!(
                "stored by {replicas} server: what was confirmed survives its crash and its power \
                 failure, but nothing works while it is away; use three servers"
            ),
        ),
        (_, Some(interval)) => (
            Level::Warn,
            format!(
                "stored by {replicas} server, and written to its disk every {interval}: what was \
                 confirmed survives a crash of the process, but not a power failure"
            ),
        ),
        (_, None) => (
            Level::Warn,
            format!(
                "stored by {replicas} server(s); not known when data is written to the disk: name \
                 the monitoring port with --monitor"
            ),
        ),
    };
    finding(level, "durability", text)
}

fn of_log(report: &LogReport) -> Vec<Finding> {
    let mut findings = Vec::new();
    for difference in &report.differences {
        findings.push(finding(Level::Fail, "log", difference.clone()));
    }
    let behind = report.servers.iter().filter(|one| !one.is_current);
    for one in behind {
        let text = format!("the server {} is behind or offline", one.name);
        findings.push(finding(Level::Fail, "log", text));
    }
    let has_leader = report.servers.iter().any(|one| one.is_leader);
    if !has_leader && report.replicas > 1 {
        let text = "no server leads: fewer than half of the servers are there".to_owned();
        findings.push(finding(Level::Fail, "log", text));
    }
    let foreign = report.entries.iter().filter(|one| one.event.entry().is_none()).count();
    if foreign > 0 {
        let text = format!("{foreign} entries that no node has written; nodes ignore them");
        findings.push(finding(Level::Warn, "log", text));
    }
    if findings.is_empty() {
        let text = format!("up to {}, {} keys", report.sequence, report.entries.len());
        findings.push(finding(Level::Ok, "log", text));
    }
    findings
}

fn of_members(rows: &[Row]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut names: BTreeMap<&str, u32> = BTreeMap::new();
    for row in rows {
        *names.entry(row.member.node.name()).or_default() += 1;
        if row.lease_age > LEASE_LATE {
            let (node, age) = (&row.member.node, row.lease_age.as_secs_f64());
            let text = format!("{node} has not renewed its lease for {age:.1} s");
            findings.push(finding(Level::Warn, "members", text));
        }
    }
    for (name, n) in names.into_iter().filter(|(_, n)| *n > 1) {
        let text =
            format!("{n} members are called {name}: one was lost just now, or two are wrong");
        findings.push(finding(Level::Warn, "members", text));
    }
    if findings.is_empty() {
        findings.push(finding(Level::Ok, "members", format!("{} members", rows.len())));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_durability_depends_on_servers_and_disks() {
        let check = |replicas, sync, level, part: &str| {
            let found = of_durability(replicas, sync);
            assert_eq!(found.level, level, "{found:?}");
            assert!(found.text.contains(part), "{found:?}");
        };
        check(3, Some("always"), Level::Ok, "their power");
        check(3, Some("120 s"), Level::Warn, "not a power failure of several");
        check(1, Some("always"), Level::Warn, "nothing works while it is away");
        check(1, Some("120 s"), Level::Warn, "crash of the process");
        check(1, None, Level::Warn, "--monitor");
    }
}
