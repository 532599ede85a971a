//! What all shards of a scheduler have in common: how many jobs may live, and who is told.

use core::time::Duration;

use clockjack_sync::Counted;
use clockjack_time::{Tick, TickSpan};

use crate::{
    DiagnosticEvent, EventKinds, Hub, ScheduleErrorKind, SchedulerConfig, Warning, quota::Quota,
};

/// For how long the refusal of a dispatcher is pressure, if no other follows.
const REFUSAL_LASTS: Duration = Duration::from_secs(1);

/// What the tables of one scheduler share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) quota: Counted<Quota>,
    pub(crate) hub: Counted<Hub>,
    /// For how long the refusal of a dispatcher is pressure.
    refusal_lasts: TickSpan,
}

impl Shared {
    pub(crate) fn new(config: &SchedulerConfig) -> Self {
        let quota = Quota::new(config.quota, config.pressed_quota());
        let refusal_lasts = config.resolution.ticks_ceil(REFUSAL_LASTS).unwrap_or(TickSpan::MAX);
        Self { quota: Counted::new(quota), hub: Counted::new(Hub::new()), refusal_lasts }
    }

    /// A request was not paid for. Asks again if that was for a pressure that is over.
    #[cold]
    pub(crate) fn pay_again(
        &self,
        kind: ScheduleErrorKind,
        now: Tick,
        pay: impl FnOnce() -> Result<(), ScheduleErrorKind>,
    ) -> Result<(), ScheduleErrorKind> {
        if kind != ScheduleErrorKind::Backpressured {
            return Err(kind);
        }
        let Some(change) = self.quota.relieve(now, self.refusal_lasts) else { return Err(kind) };
        self.warn(change.into());
        pay()
    }

    /// Tells of the quota, once for each time that it is met.
    pub(crate) fn note_refusal(&self, kind: ScheduleErrorKind) {
        use ScheduleErrorKind::{Backpressured, QuotaExceeded};
        if matches!(kind, QuotaExceeded | Backpressured) && self.quota.refusal_is_news() {
            let adaptive = kind == Backpressured;
            let limit = self.quota.limit_if(adaptive);
            self.warn(Warning::QuotaReached { limit, adaptive });
        }
    }

    pub(super) fn warn(&self, warning: Warning) {
        if self.hub.wants(EventKinds::WARNING) {
            self.hub.publish(DiagnosticEvent::Warned(warning));
        }
    }
}
