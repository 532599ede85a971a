//! What all components of a domain see of an epoch.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use clockjack_exec::Handle;

use super::tasks::Tasks;

/// What all components of a domain see of an epoch.
pub(crate) struct Env {
    /// From one.
    pub(crate) epoch: u64,
    /// Nanoseconds since the run began, in the domain's time.
    pub(crate) now_ns: u64,
    /// The domain's time is its own: in it an epoch takes none.
    pub(crate) is_simulated: bool,
    /// Whether committed values are written down.
    pub(crate) logs: bool,
    /// Whether calls are measured in this epoch.
    pub(crate) measures: bool,
    /// Whether records are made.
    pub(crate) traces: bool,
    /// When the epoch began for a trace: nanoseconds since the run began, as it is measured.
    pub(crate) begun_ns: u64,
    pub(crate) tasks: Tasks,
    /// What components count for themselves.
    pub(crate) user: super::metrics::user::Registry,
    /// Where components write what they have to say, if anybody reads it.
    pub(crate) component_log: Option<super::component_log::ComponentLogWriter>,
    /// Whether anybody has counted something in a turn of this epoch.
    pub(crate) has_buffered_counts: AtomicBool,
    /// What components that draw numbers begin with.
    pub(crate) seed: u64,
    /// The name of the graph.
    pub(crate) graph: Arc<str>,
    /// The blackboard, as of the beginning of the epoch.
    pub(crate) blackboard: super::blackboard::Snapshot,
    /// Whether anybody has written to it since.
    pub(crate) is_written: AtomicBool,
    /// Looks at it.
    pub(crate) n_state_reads: AtomicU64,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) executor: Handle,
    /// Whether others work on this epoch too.
    pub(crate) is_parallel: bool,
    /// Where work is left for others, if there are any.
    pub(crate) helpers: Option<Arc<super::helpers::HelpersShared>>,
    /// Whether a region has a fault to tell of that does not end the run.
    pub(crate) has_faults: AtomicBool,
    /// The executor's time when the run began.
    pub(crate) began_ns: u64,
}

impl Env {
    pub(crate) fn is_stopping(&self) -> bool {
        // Pairs with nothing: a flag that says no more than itself, and is looked at again.
        self.stop.load(Ordering::Relaxed)
    }

    /// A region has a fault to tell of.
    pub(crate) fn note_fault(&self) {
        // Relaxed: the coordinator looks at it when all who work on the epoch are done.
        self.has_faults.store(true, Ordering::Relaxed);
    }

    /// Whether an epoch is one of nothing but calls: none is measured, and nothing written down.
    pub(crate) fn is_unobserved(&self) -> bool {
        !(self.measures || self.traces || self.logs)
    }

    /// How often somebody has looked at the blackboard.
    pub(crate) fn n_state_reads(&self) -> u64 {
        self.n_state_reads.load(Ordering::Relaxed)
    }

    pub(crate) fn count_state_read(&self) {
        // Relaxed: a count, which is read when nobody adds to it any more.
        self.n_state_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// The executor's time.
    pub(crate) fn nanos(&self) -> u64 {
        self.executor.nanos()
    }

    /// The executor's time since the run began: for measuring only, it decides nothing.
    pub(crate) fn since_start(&self) -> u64 {
        self.nanos().saturating_sub(self.began_ns)
    }
}
