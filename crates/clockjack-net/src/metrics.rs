//! The counters of a node.

use alloc::vec::Vec;
use core::time::Duration;

use clockjack_actor::observe::samples::{Sample, Value};

/// What a node has counted since it was started: [`Net::metrics`](crate::Net::metrics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetMetrics {
    /// Packs that were sent.
    pub packs_out: u64,
    /// The bytes of these.
    pub bytes_out: u64,
    /// Packs of members that have arrived.
    pub packs_in: u64,
    /// The bytes of these.
    pub bytes_in: u64,
    /// Messages that were sent.
    pub messages_out: u64,
    /// Messages that have arrived.
    pub messages_in: u64,
    /// Messages that were lost on their way to this node: the sum of all
    /// [`Gap`](crate::NetEvent::Gap)s.
    pub lost: u64,
    /// Messages that a remote proxy had accepted and that were not sent, because the node of its
    /// target, or this one, was lost meanwhile.
    pub unsent: u64,
    /// Packs that were dropped: not for this incarnation, not from a member, from a muted one, or
    /// no packs at all.
    pub packs_refused: u64,
    /// Requests of other nodes to open a channel that were ignored, because they had opened too
    /// many in a short time. A node that keeps to the protocol does not.
    pub opens_refused: u64,
    /// How often a remote proxy had to wait because its target had not taken enough messages.
    /// Meanwhile its mailbox fills, and `tell` is refused as full.
    pub channel_full: u64,
    /// How often a remote proxy had to wait because the targets of a node together had not taken
    /// [`LINK_WINDOW`](crate::LINK_WINDOW) bytes.
    pub link_full: u64,
    /// Requests to other nodes that were not sent, because the ask was over before there was
    /// credit.
    pub asks_over: u64,
    /// Requests of other nodes that were dropped before the actor handled them, because the ask
    /// was over.
    pub asks_forgotten: u64,
    /// The nodes with a link to this one.
    pub links: u64,
    /// The remote proxies that are open.
    pub remote_proxies: u64,
    /// The members that this node has read from the log, with itself.
    pub members: u64,
    /// The other members whose end this node has read, also those that have left.
    pub members_lost: u64,
    /// How often this node has read its own end, and has joined again.
    pub rejoins: u64,
    /// How long ago this node has read the last renewal of its own lease. A node that is a member
    /// renews it every [`renew_every`](crate::NetConfig::renew_every).
    pub lease_age: Duration,
    /// The sequence number up to which this node has read the log.
    pub log_sequence: u64,
}

impl NetMetrics {
    /// The metrics for an exporter, with their names and what they mean. A runtime exports them
    /// with its own ones when a source of its metrics adds them to the set.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample<'static>> {
        const IN: &[(&str, &str)] = &[("dir", "in")];
        const OUT: &[(&str, &str)] = &[("dir", "out")];
        const CHANNEL: &[(&str, &str)] = &[("window", "channel")];
        const LINK: &[(&str, &str)] = &[("window", "link")];
        let counter = |name, n, help| Sample::counter(name, n).help(help);
        let gauge = |name, n: u64, help| {
            Sample::gauge(name, i64::try_from(n).unwrap_or(i64::MAX)).help(help)
        };
        let (frames, bytes, packs) = ("Messages.", "Bytes of packs.", "Packs of frames.");
        let waits = "How often a remote proxy had to wait for credit.";
        let lease_age = Value::GaugeFloat(self.lease_age.as_secs_f64());
        Vec::from([
            counter("net.frames_total", self.messages_in, frames).labels(IN),
            counter("net.frames_total", self.messages_out, frames).labels(OUT),
            counter("net.bytes_total", self.bytes_in, bytes).labels(IN),
            counter("net.bytes_total", self.bytes_out, bytes).labels(OUT),
            counter("net.packs_total", self.packs_in, packs).labels(IN),
            counter("net.packs_total", self.packs_out, packs).labels(OUT),
            counter("net.lost_total", self.lost, "Messages that were lost on their way here."),
            counter("net.unsent_total", self.unsent, "Messages for nodes that were lost."),
            counter("net.packs_refused_total", self.packs_refused, "Packs that were dropped."),
            counter("net.opens_refused_total", self.opens_refused, "Channels that were refused."),
            counter("net.window_full_total", self.channel_full, waits).labels(CHANNEL),
            counter("net.window_full_total", self.link_full, waits).labels(LINK),
            counter("net.asks_over_total", self.asks_over, "Requests that were not sent."),
            counter("net.asks_forgotten_total", self.asks_forgotten, "Requests not handled."),
            gauge("net.links", self.links, "Nodes with a link to this one."),
            gauge("net.remote_proxies", self.remote_proxies, "Remote proxies that are open."),
            gauge("cluster.members", self.members, "Members, with this node."),
            counter("cluster.lost_total", self.members_lost, "Ends of other members."),
            counter("cluster.rejoins_total", self.rejoins, "Ends of this node's membership."),
            Sample::new("cluster.lease_age_seconds", lease_age)
                .help("Time since the last renewal of the lease was read."),
            gauge("cluster.log_sequence", self.log_sequence, "The place that was read."),
        ])
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use clockjack_actor::observe::prometheus;

    use super::*;

    #[test]
    fn the_samples_are_what_a_remote_reader_takes() {
        let lease_age = Duration::from_millis(1_500);
        let metrics = NetMetrics { bytes_out: 7, members: 3, lease_age, ..NetMetrics::default() };
        let mut text = String::new();
        prometheus::write(&mut text, &metrics.samples()).expect("the names and labels are valid");
        for line in [
            "clockjack_net_bytes_total{dir=\"out\"} 7",
            "clockjack_net_bytes_total{dir=\"in\"} 0",
            "clockjack_cluster_members 3",
            "clockjack_cluster_lease_age_seconds 1.5",
            "# TYPE clockjack_net_frames_total counter",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
