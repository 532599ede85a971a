//! Shutdowns that must keep their deadlines, whatever the program under test does.

use core::time::Duration;

use clockjack_rt::{
    BlockingPool, BlockingReport, Runtime, RuntimeReport, ShutdownReport, WorkerPool,
};
use clockjack_testing::{InTime, keeps_deadline};

/// A shutdown with a deadline, which is asserted.
pub(crate) trait ShutdownInTime {
    type Report;

    /// As the method `shutdown`, but panics if the deadline is overrun.
    #[track_caller]
    fn shutdown_in_time(self, timeout: Duration) -> Self::Report;
}

impl ShutdownInTime for WorkerPool {
    type Report = ShutdownReport;

    #[track_caller]
    fn shutdown_in_time(self, timeout: Duration) -> ShutdownReport {
        keeps_deadline(timeout, || self.shutdown(timeout))
    }
}

impl<T: ShutdownInTime> ShutdownInTime for InTime<T> {
    type Report = T::Report;

    #[track_caller]
    fn shutdown_in_time(self, timeout: Duration) -> T::Report {
        self.into_inner().shutdown_in_time(timeout)
    }
}

impl ShutdownInTime for Runtime {
    type Report = RuntimeReport;

    #[track_caller]
    fn shutdown_in_time(self, timeout: Duration) -> RuntimeReport {
        keeps_deadline(timeout, || self.shutdown(timeout))
    }
}

impl ShutdownInTime for &BlockingPool {
    type Report = BlockingReport;

    #[track_caller]
    fn shutdown_in_time(self, timeout: Duration) -> BlockingReport {
        keeps_deadline(timeout, || self.shutdown(timeout))
    }
}
