//! Closed sets of reasons and outcomes that events contain, one byte each.
//!
//! The order of the variants is the binary encoding: append, never reorder.

use super::field::byte_enum;

byte_enum! {
    /// Who cancelled a timer.
    CancelSide {
        /// The holder of the shard's guard: removed at once.
        Local "local",
        /// Another thread: it changed the state word, and the holder frees the entry later.
        Remote "remote",
    }

    /// Why a timer or job was dropped.
    TimerDropReason {
        /// The store was full and the priority of the entry was too low to evict another.
        Capacity "capacity",
        /// Evicted by an entry of a strictly higher priority.
        Evicted "evicted",
        /// The scheduler was shut down.
        Closed "closed",
        /// Its receiver does not exist any more.
        ReceiverGone "receiver_gone",
        /// Its backlog exceeded what its policy allows.
        Backlog "backlog",
    }

    /// The priority of a timer or job.
    Priority {
        /// Dropped first.
        Low "low",
        /// The default.
        Normal "normal",
        /// Dropped last.
        High "high",
    }

    /// The result of a step of a process.
    StepStatus {
        /// It wants to run again.
        Continue "continue",
        /// It waits for the completion of its commands.
        Yield "yield",
        /// It waits for a message.
        Idle "idle",
        /// It has finished.
        Done "done",
        /// It asked to be replaced by new code.
        Upgrade "upgrade",
        /// It returned an error or panicked.
        Failed "failed",
    }

    /// How a process stopped.
    ProcessOutcome {
        /// Its last step returned done.
        Done "done",
        /// It returned an error or panicked.
        Failed "failed",
        /// It stopped because it was asked to.
        Cancelled "cancelled",
        /// It did not stop in time and was stopped by force.
        Terminated "terminated",
    }

    /// Why a worker stopped being parked.
    UnparkCause {
        /// Another thread woke it.
        Notified "notified",
        /// Its deadline passed.
        Deadline "deadline",
        /// Neither: the host's park may return spuriously.
        Spurious "spurious",
    }

    /// The state of the link between a driver and its consumer.
    PressureState {
        /// The consumer keeps up.
        Open "open",
        /// Ticks are pending.
        Backpressured "backpressured",
        /// No ticks arrive.
        Suspended "suspended",
    }

    /// Why an actor stopped.
    StopReason {
        /// It returned "stop".
        Normal "normal",
        /// Its parent or the system stopped it.
        Requested "requested",
        /// It failed and its supervisor decided to stop it.
        Failed "failed",
        /// Its restart limit was reached.
        LimitReached "limit_reached",
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
        /// The mailbox was full and its policy drops.
        MailboxFull "mailbox_full",
        /// No actor has that name or path.
        NoReceiver "no_receiver",
        /// It was cancelled or its deadline passed before delivery.
        Expired "expired",
        /// The system is shutting down.
        Closed "closed",
    }

    /// Why a graph dropped a value.
    ValueDropReason {
        /// The edge was full and drops the oldest value.
        Oldest "oldest",
        /// The edge was full and drops the newest value.
        Newest "newest",
        /// The edge rejected it.
        Rejected "rejected",
        /// It was older than the edge allows.
        Stale "stale",
        /// It missed its deadline.
        Late "late",
        /// The component that made it failed before the commit.
        Discarded "discarded",
    }
}
