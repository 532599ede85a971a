//! What the gateway counts. The runtime adds its own figures: see `Runtime::prometheus`.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use clockjack::observe::samples::{Sample, SampleSet};

/// The figures of a gateway. Relaxed everywhere: a count publishes nothing else.
#[derive(Debug, Default)]
pub struct Figures {
    /// Readings that were acknowledged.
    pub accepted: AtomicU64,
    /// Readings that were refused because the device sends too fast.
    pub refused_rate: AtomicU64,
    /// Readings that were refused because the shard or its buffer is full.
    pub refused_full: AtomicU64,
    /// Readings that were refused because the gateway is stopping.
    pub refused_stopping: AtomicU64,
    /// Readings whose answer took too long.
    pub unknown: AtomicU64,
    /// Readings that are in the archive.
    pub archived: AtomicU64,
    /// Batches that were sent to the archive again.
    pub batches_resent: AtomicU64,
    /// Commands that were sent to a device again.
    pub commands_resent: AtomicU64,
    /// Connections that were accepted.
    pub connections: AtomicU64,
    /// Connections that were closed because of a line that is not of the protocol, or of no line.
    pub connections_invalid: AtomicU64,
    /// Devices that were silent for too long.
    pub devices_silent: AtomicU64,
    /// Devices that do not read what the gateway sends.
    pub devices_slow: AtomicU64,
    /// Shards that were started: each has a number of its own.
    shards: AtomicU64,
}

impl Figures {
    /// A number that no other shard has.
    pub fn next_shard(&self) -> u64 {
        self.shards.fetch_add(1, Relaxed)
    }

    /// Adds the figures to a page of metrics.
    pub fn add_to(&self, set: &mut SampleSet) {
        let refused = "gateway.readings_refused";
        let help = "Readings that were answered with `busy`.";
        for (reason, figure) in [
            ("rate", &self.refused_rate),
            ("full", &self.refused_full),
            ("stopping", &self.refused_stopping),
        ] {
            let labels = [("reason", reason)];
            let sample = Sample::counter(refused, figure.load(Relaxed));
            set.push(&sample.help(help).labels(&labels));
        }
        for (name, figure, help) in [
            ("readings_accepted", &self.accepted, "Readings that were acknowledged."),
            ("readings_unknown", &self.unknown, "Readings whose answer took too long."),
            ("readings_archived", &self.archived, "Readings that are in the archive."),
            ("batches_resent", &self.batches_resent, "Batches that were sent again."),
            ("commands_resent", &self.commands_resent, "Commands that were sent again."),
            ("connections", &self.connections, "Connections that were accepted."),
            ("connections_invalid", &self.connections_invalid, "Connections without sense."),
            ("devices_silent", &self.devices_silent, "Devices that were silent for too long."),
            ("devices_slow", &self.devices_slow, "Devices that do not read."),
        ] {
            let name = format!("gateway.{name}");
            set.push(&Sample::counter(&name, figure.load(Relaxed)).help(help));
        }
    }
}

/// Counts one more.
pub(crate) fn count(figure: &AtomicU64) {
    figure.fetch_add(1, Relaxed);
}
