//! `events`: the log as text.

use core::time::Duration;
use std::collections::BTreeMap;

use clockjack_nats::tools::Logged;
use clockjack_net::{LogEntry, NodeId};
use serde_json::json;

use crate::{
    args::{EventsArgs, Format},
    failure::Failure,
    write_result,
};

/// How long one request for a new entry may wait.
const WAIT: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &EventsArgs) -> Result<(), Failure> {
    let (_, inspector) = args.connect.connect()?;
    let report = inspector.read()?;
    let mut printer = Printer { args, nodes: BTreeMap::new() };
    for one in &report.entries {
        printer.print(one, true)?;
    }
    let mut sequence = report.sequence;
    if !args.follow {
        return Ok(());
    }
    // Until the program is stopped, or the log cannot be read.
    loop {
        if let Some(one) = inspector.next(sequence, WAIT)? {
            sequence = one.event.sequence;
            printer.print(&one, false)?;
        }
    }
}

struct Printer<'a> {
    args: &'a EventsArgs,
    nodes: BTreeMap<u64, NodeId>,
}

impl Printer<'_> {
    fn node(&self, incarnation: u64) -> String {
        let unknown = || format!("?@{incarnation:016x}");
        self.nodes.get(&incarnation).map_or_else(unknown, NodeId::to_string)
    }

    /// The name of an event, the node, and what else there is to say; None for what is not printed.
    fn describe(&mut self, one: &Logged, is_old: bool) -> Option<(&'static str, String, String)> {
        match one.event.entry()? {
            LogEntry::Member(member) => {
                let is_known = self.nodes.contains_key(&member.node.incarnation());
                self.nodes.insert(member.node.incarnation(), member.node.clone());
                let (node, detail) = (member.node.to_string(), format!("since {}", member.since));
                match is_old || !is_known {
                    true => Some(("member", node, detail)),
                    false => self.args.renewals.then_some(("renewal", node, detail)),
                }
            }
            LogEntry::MemberEnded(incarnation) => {
                let node = self.node(incarnation);
                self.nodes.remove(&incarnation);
                Some(("end", node, String::new()))
            }
            LogEntry::Service { key, incarnation } => {
                Some(("service", self.node(incarnation), key))
            }
            LogEntry::ServiceEnded { key, incarnation } => {
                Some(("service-end", self.node(incarnation), key))
            }
            _ => None,
        }
    }

    fn print(&mut self, one: &Logged, is_old: bool) -> Result<(), Failure> {
        let Some((event, node, detail)) = self.describe(one, is_old) else { return Ok(()) };
        let sequence = one.event.sequence;
        let line = match self.args.format {
            Format::Human => format!("{sequence:>8}  {event:<11}  {node}  {detail}"),
            Format::Json => {
                let ms = u64::try_from(one.stored.as_millis()).unwrap_or(u64::MAX);
                json!({
                    "sequence": sequence, "stored_unix_ms": ms,
                    "event": event, "node": node, "detail": detail,
                })
                .to_string()
            }
        };
        write_result(&format!("{}\n", line.trim_end()))
    }
}
