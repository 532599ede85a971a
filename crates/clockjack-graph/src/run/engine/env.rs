//! What all components of a domain see of an epoch.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use clockjack_exec::Handle;

use crate::{
    lock::lock,
    run::{
        flow::{blackboard, tasks::Tasks},
        observe::{component_log, losses::EdgeTally, metrics},
    },
};

/// What all components of a domain see of an epoch.
pub(crate) struct Env {
    /// The number of the epoch, from one.
    pub(crate) epoch: u64,
    /// Nanoseconds since the run began, in the domain's time.
    pub(crate) now_ns: u64,
    /// The domain runs in simulated time, in which an epoch takes no time.
    pub(crate) is_simulated: bool,
    /// Whether commits are written to a commit log.
    pub(crate) logs: bool,
    /// Whether calls are measured in this epoch.
    pub(crate) measures: bool,
    /// Whether trace records are made.
    pub(crate) traces: bool,
    /// When the epoch began, for the trace.
    pub(crate) begun_ns: u64,
    pub(crate) tasks: Tasks,
    /// The components' own counters and histograms.
    pub(crate) user: metrics::user::Registry,
    /// Where components write log lines, if the run has a component log.
    pub(crate) component_log: Option<component_log::ComponentLogWriter>,
    /// Whether a component has counted something in this parallel epoch that may have to be taken
    /// back.
    pub(crate) has_buffered_counts: AtomicBool,
    /// The seed for components that draw random numbers.
    pub(crate) seed: u64,
    /// The name of the graph.
    pub(crate) graph: Arc<str>,
    /// The blackboard at the beginning of the epoch.
    pub(crate) blackboard: blackboard::Snapshot,
    /// Whether a component has written to the blackboard since.
    pub(crate) is_written: AtomicBool,
    /// How often components have read the blackboard.
    pub(crate) n_state_reads: AtomicU64,
    /// How many payloads were copied, by edge.
    pub(crate) copied: Mutex<EdgeTally>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) executor: Handle,
    /// Whether several workers run this epoch.
    pub(crate) is_parallel: bool,
    /// Where batches are offered to other workers, if there are any.
    pub(crate) helpers: Option<Arc<super::helpers::HelpersShared>>,
    /// Whether a region has a fault to report that does not end the run.
    pub(crate) has_faults: AtomicBool,
    /// The executor's time when the run began.
    pub(crate) began_ns: u64,
}

impl Env {
    pub(crate) fn is_stopping(&self) -> bool {
        // Relaxed: the flag publishes no other data, and is polled again.
        self.stop.load(Ordering::Relaxed)
    }

    /// A region has a fault to report.
    pub(crate) fn note_fault(&self) {
        // Relaxed: the coordinator reads it after all workers of the epoch are done.
        self.has_faults.store(true, Ordering::Relaxed);
    }

    /// Whether calls are neither measured nor traced, and commits are not logged.
    pub(crate) fn is_unobserved(&self) -> bool {
        !(self.measures || self.traces || self.logs)
    }

    /// How often components have read the blackboard.
    pub(crate) fn n_state_reads(&self) -> u64 {
        self.n_state_reads.load(Ordering::Relaxed)
    }

    pub(crate) fn count_state_read(&self) {
        // Relaxed: a count that is read after all workers are done.
        self.n_state_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// A payload was copied for the reader of an edge.
    #[cold]
    pub(crate) fn note_copy(&self, edge: u32) {
        lock(&self.copied).add(edge);
    }

    /// The executor's time.
    pub(crate) fn nanos(&self) -> u64 {
        self.executor.nanos()
    }

    /// The time of trace records: that of the epoch in simulated time, else of this moment.
    pub(crate) fn trace_ns(&self) -> u64 {
        if self.is_simulated { self.now_ns } else { self.since_start() }
    }

    /// The executor's time since the run began. Only for measurements: no decision depends on it.
    pub(crate) fn since_start(&self) -> u64 {
        self.nanos().saturating_sub(self.began_ns)
    }
}
