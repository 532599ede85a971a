//! Closed sets of reasons and outcomes that events contain, one byte each.
//!
//! The order of the variants is the binary encoding: append, never reorder.

use super::field::byte_enum;

byte_enum! {
    /// How a task ended.
    TaskOutcome {
        /// It finished by itself.
        Done "done",
        /// It returned an error or panicked.
        Failed "failed",
        /// It stopped because it was asked to.
        Cancelled "cancelled",
        /// It did not stop in time and was stopped by force.
        Terminated "terminated",
    }

    /// The decision of a supervisor about a failure.
    Directive {
        /// Keep the state and continue.
        Resume "resume",
        /// Create a new state.
        Restart "restart",
        /// Stop the actor.
        Stop "stop",
        /// Fail the supervisor itself.
        Escalate "escalate",
    }

    /// Why a message went to dead letters.
    DeadLetterReason {
        /// The receiver has stopped.
        Stopped "stopped",
        /// The mailbox was full.
        MailboxFull "mailbox_full",
        /// A newer message took its place in a full mailbox.
        Evicted "evicted",
        /// There was no room to keep it during a restart.
        StashFull "stash_full",
        /// The answer came too late.
        LateReply "late_reply",
        /// It was sent to the dead letters.
        Addressed "addressed",
        /// No actor has that path.
        NoReceiver "no_receiver",
        /// The node of the receiver is lost, or does not export it.
        Unreachable "unreachable",
        /// It is too large for another node, or has no encoding.
        Unsendable "unsendable",
        /// It came from another node, and its receiver does not understand it.
        Undecodable "undecodable",
    }

    /// A warning of the scheduler, with the meaning of the event's `value`.
    SchedulerWarning {
        /// Many runs in succession were late. The least lateness among them, in nanoseconds.
        DriftExceeded "drift_exceeded",
        /// One advance caught up with many ticks at once. The number of ticks.
        DriverCatchUpExceeded "driver_catch_up_exceeded",
        /// The driver supplied no ticks although some were needed. For how many nanoseconds.
        DriverSilent "driver_silent",
        /// The number of live jobs is at its limit. The limit.
        QuotaReached "quota_reached",
        /// Pressure began (1) or ended (0).
        BackpressureState "backpressure_state",
        /// Many jobs are due beyond the range of the wheel. How many.
        OverflowNearCapacity "overflow_near_capacity",
        /// A job was evicted for a more important one. Its number.
        DroppedLowPriority "dropped_low_priority",
        /// A handler returned an error or panicked. The number of the job.
        HandlerFailed "handler_failed",
        /// A close task failed. Its number.
        TaskRunFailed "task_run_failed",
        /// The clock advanced by a large step. How far, in nanoseconds.
        ClockJump "clock_jump",
    }
}
