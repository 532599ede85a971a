//! What all shards of a scheduler have in common: how many jobs may live, and who is told.

use core::time::Duration;

use clockjack_sync::Counted;
use clockjack_time::{Tick, TickSpan};

use crate::{
    Bus, DiagnosticEvent, EventKinds, ScheduleErrorKind, SchedulerConfig, Warning, quota::Quota,
};

/// For how long the refusal of a dispatcher is pressure, if no other follows.
const REFUSAL_EXPIRY: Duration = Duration::from_secs(1);

/// What the tables of one scheduler share.
#[derive(Clone, Debug)]
pub(crate) struct TableShared {
    pub(crate) quota: Counted<Quota>,
    pub(crate) bus: Counted<Bus>,
    /// For how long the refusal of a dispatcher is pressure.
    refusal_expiry: TickSpan,
}

impl TableShared {
    pub(crate) fn new(config: &SchedulerConfig) -> Self {
        let quota = Quota::new(config.quota, config.pressed_quota());
        let refusal_expiry = config.resolution.ticks_ceil(REFUSAL_EXPIRY).unwrap_or(TickSpan::MAX);
        Self { quota: Counted::new(quota), bus: Counted::new(Bus::new()), refusal_expiry }
    }

    /// A request was not paid for. Asks again if that was for a pressure that is over.
    #[cold]
    pub(crate) fn retry_acquire(
        &self,
        kind: ScheduleErrorKind,
        now: Tick,
        acquire: impl FnOnce() -> Result<(), ScheduleErrorKind>,
    ) -> Result<(), ScheduleErrorKind> {
        if kind != ScheduleErrorKind::Backpressured {
            return Err(kind);
        }
        let Some(change) = self.quota.expire_refusal_pressure(now, self.refusal_expiry) else {
            return Err(kind);
        };
        self.warn(change.into());
        acquire()
    }

    /// Tells of the quota, once for each time that it is met.
    pub(crate) fn report_refusal(&self, kind: ScheduleErrorKind) {
        use ScheduleErrorKind::{Backpressured, QuotaExceeded};
        if matches!(kind, QuotaExceeded | Backpressured) && self.quota.should_report_refusal() {
            let adaptive = kind == Backpressured;
            let limit = self.quota.limit_if(adaptive);
            self.warn(Warning::QuotaReached { limit, adaptive });
        }
    }

    pub(super) fn warn(&self, warning: Warning) {
        if self.bus.wants(EventKinds::WARNING) {
            self.bus.publish(DiagnosticEvent::Warned(warning));
        }
    }
}
