//! The state that all tables of a scheduler share: the quota, the event bus and the pauses between
//! repeated warnings.

use core::time::Duration;

use clockjack_observe::{backoff::WarningBackoff, bus::with_bounded_wait};
use clockjack_sync::{Arc, spin_lock::SpinLock};
use clockjack_time::{Tick, TickSpan};

use crate::{
    Bus, DiagnosticEvent, EventKinds, EventSink, ScheduleErrorKind, SchedulerConfig, Warning,
    diagnostics::recorder::EventRecorder, jobs::quota::Quota,
};

/// How long the refusal of a dispatcher counts as pressure, if no other refusal follows.
const REFUSAL_EXPIRY: Duration = Duration::from_secs(1);

/// What the tables of one scheduler share.
#[derive(Clone, Debug)]
pub(crate) struct TableShared {
    pub(crate) quota: Arc<Quota>,
    pub(crate) bus: Arc<Bus>,
    pub(crate) recorder: Arc<EventRecorder>,
    /// When the next drift is reported: one line for all shards, which have one clock.
    drift_backoff: Arc<SpinLock<WarningBackoff>>,
    /// How long the refusal of a dispatcher counts as pressure.
    refusal_expiry: TickSpan,
}

impl TableShared {
    pub(crate) fn new(config: &SchedulerConfig, sink: Option<EventSink>) -> Self {
        let quota = Quota::new(config.quota, config.pressed_quota());
        let refusal_expiry = config.resolution.ticks_ceil(REFUSAL_EXPIRY).unwrap_or(TickSpan::MAX);
        let (bus, recorder) = (Arc::new(Bus::new()), Arc::new(EventRecorder::new(sink)));
        let drift_backoff = Arc::new(SpinLock::new(WarningBackoff::new()));
        Self { quota: Arc::new(quota), bus, recorder, drift_backoff, refusal_expiry }
    }

    /// Whether a drift is to be reported at this time; if so, how many were not reported before it.
    ///
    /// Shards call this under their guards, maybe in an interrupt. So a shard does not wait for the
    /// lock: if another one holds the lock for long, that one reports the drift of this moment.
    pub(super) fn drift_to_report(&self, now_ns: u64) -> Option<u32> {
        with_bounded_wait(&self.drift_backoff, |backoff| backoff.note(now_ns)).flatten()
    }

    /// Called when no permit was available: tries again if the reason was a pressure that is over.
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

    /// Reports that the quota was reached, once each time.
    pub(crate) fn report_refusal(&self, kind: ScheduleErrorKind) {
        use ScheduleErrorKind::{Backpressured, QuotaExceeded};
        if matches!(kind, QuotaExceeded | Backpressured) && self.quota.should_report_refusal() {
            let adaptive = kind == Backpressured;
            let limit = self.quota.limit_if(adaptive);
            self.warn(Warning::QuotaReached { limit, adaptive });
        }
    }

    pub(super) fn warn(&self, warning: Warning) {
        self.recorder.warn(&warning);
        if self.bus.wants(EventKinds::WARNING) {
            self.bus.publish(DiagnosticEvent::Warned(warning));
        }
    }
}
