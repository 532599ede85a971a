//! `status` and `members`.

use core::{fmt::Write as _, time::Duration};
use std::collections::BTreeMap;

use clockjack_nats::tools::{Inspector, LogReport, ServerReport};
use clockjack_net::{LogEntry, Member};
use serde_json::{Value, json};

use crate::{
    args::{Format, StatusArgs},
    failure::Failure,
    write_result,
};

/// A member, as the log says.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) member: Member,
    pub(crate) lease_age: Duration,
    /// The keys of its services, in their order.
    pub(crate) services: Vec<String>,
}

/// The members, in the order in which they joined.
pub(crate) fn rows(report: &LogReport) -> Vec<Row> {
    let mut services: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut rows = Vec::new();
    for one in &report.entries {
        match one.event.entry() {
            Some(LogEntry::Member(member)) => {
                rows.push(Row { member, lease_age: one.age(), services: Vec::new() });
            }
            Some(LogEntry::Service { key, incarnation }) => {
                services.entry(incarnation).or_default().push(key);
            }
            _ => {}
        }
    }
    for row in &mut rows {
        row.services = services.remove(&row.member.node.incarnation()).unwrap_or_default();
        row.services.sort();
    }
    rows.sort_by_key(|row| row.member.since);
    rows
}

pub(crate) fn run(args: &StatusArgs, is_whole: bool) -> Result<(), Failure> {
    let (cluster, inspector) = args.connect.connect()?;
    let report = inspector.read()?;
    let rows = rows(&report);
    let text = match args.format {
        Format::Human if is_whole => {
            format!("{}\n{}", summary(&cluster, &inspector, &report, &rows), table(&rows))
        }
        Format::Human => table(&rows),
        Format::Json if is_whole => {
            format!("{}\n", whole_json(&cluster, &inspector.server(), &report, &rows))
        }
        Format::Json => rows.iter().map(|row| format!("{}\n", row_json(row))).collect(),
    };
    write_result(&text)
}

fn summary(cluster: &str, inspector: &Inspector, report: &LogReport, rows: &[Row]) -> String {
    let server = inspector.server();
    let n_services: usize = rows.iter().map(|row| row.services.len()).sum();
    let stored = match report.servers.as_slice() {
        [] => "1 server".to_owned(),
        all => {
            let name = |one: &clockjack_nats::tools::Replica| match (one.is_leader, one.is_current)
            {
                (true, _) => format!("{} (leader)", one.name),
                (false, true) => one.name.clone(),
                (false, false) => format!("{} (behind or offline)", one.name),
            };
            all.iter().map(name).collect::<Vec<_>>().join(", ")
        }
    };
    format!(
        "cluster  {cluster}: {} members, {n_services} services\n\
         server   {}, version {}\n\
         log      up to {}, {} bytes, on {stored}\n",
        rows.len(),
        server.name,
        server.version,
        report.sequence,
        report.bytes,
    )
}

fn table(rows: &[Row]) -> String {
    let mut out = String::new();
    let width = rows.iter().map(|row| row.member.node.to_string().len()).max().unwrap_or(0).max(4);
    // Writing to a text does not fail.
    let _ = writeln!(out, "{:width$}  {:>8}  {:>7}  ROLES, SERVICES", "NODE", "SINCE", "LEASE");
    for row in rows {
        let (node, since) = (row.member.node.to_string(), row.member.since);
        let lease = format!("{:.1} s", row.lease_age.as_secs_f64());
        let roles =
            if row.member.roles.is_empty() { "-".into() } else { row.member.roles.join(" ") };
        let services = if row.services.is_empty() { "-".into() } else { row.services.join(" ") };
        let _ = writeln!(out, "{node:width$}  {since:>8}  {lease:>7}  {roles}, {services}");
    }
    out
}

pub(crate) fn row_json(row: &Row) -> Value {
    json!({
        "name": row.member.node.name(),
        "node": row.member.node.to_string(),
        "roles": row.member.roles,
        "since": row.member.since,
        "lease_age_ms": u64::try_from(row.lease_age.as_millis()).unwrap_or(u64::MAX),
        "services": row.services,
    })
}

fn whole_json(cluster: &str, server: &ServerReport, report: &LogReport, rows: &[Row]) -> Value {
    let servers: Vec<Value> = report
        .servers
        .iter()
        .map(|one| {
            json!({"name": one.name, "is_leader": one.is_leader, "is_current": one.is_current})
        })
        .collect();
    json!({
        "cluster": cluster,
        "server": {"name": server.name, "version": server.version},
        "log": {
            "sequence": report.sequence,
            "bytes": report.bytes,
            "replicas": report.replicas,
            "servers": servers,
        },
        "members": rows.iter().map(row_json).collect::<Vec<Value>>(),
    })
}
