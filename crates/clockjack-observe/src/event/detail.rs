//! Closed sets of reasons and outcomes that stand in events, one byte each.
//!
//! The order of the variants is the binary form: append, never reorder.

use super::field::coded;

coded! {
    /// Who cancelled a timer.
    CancelSide {
        /// The holder of the shard: unlinked at once.
        Local "local",
        /// Somebody else: the word changed, the holder frees the entry later.
        Remote "remote",
    }

    /// Why a timer or job was given up.
    TimerDropReason {
        /// The store was full and the entry's class gave no right to evict.
        Capacity "capacity",
        /// Evicted by an entry of a strictly higher class.
        Evicted "evicted",
        /// The scheduler closed.
        Closed "closed",
        /// Its receiver is gone.
        ReceiverGone "receiver_gone",
        /// Its backlog exceeded what its policy allows.
        Backlog "backlog",
    }

    /// Priority class of a timer or job.
    Priority {
        /// Dropped first.
        Low "low",
        /// The default.
        Normal "normal",
        /// Dropped last.
        High "high",
    }

    /// How a step of a process ended.
    StepStatus {
        /// It wants to be stepped again.
        Continue "continue",
        /// It waits for the completion of yields.
        Yield "yield",
        /// It waits for a message.
        Idle "idle",
        /// It is finished.
        Done "done",
        /// It asked to be replaced by new code.
        Upgrade "upgrade",
        /// It returned an error or panicked.
        Failed "failed",
    }

    /// How a process ended.
    ProcessOutcome {
        /// Its last step returned done.
        Done "done",
        /// It returned an error or panicked.
        Failed "failed",
        /// It ended because it was asked to.
        Cancelled "cancelled",
        /// It did not end in time and was terminated.
        Terminated "terminated",
    }

    /// Why a worker stopped being parked.
    UnparkCause {
        /// Another thread woke it.
        Notified "notified",
        /// Its deadline came.
        Deadline "deadline",
        /// Neither; the host's park may return early.
        Spurious "spurious",
    }

    /// State of the link between a driver and its consumer.
    PressureState {
        /// Keeping up.
        Open "open",
        /// Ticks are pending.
        Backpressured "backpressured",
        /// No ticks come.
        Suspended "suspended",
    }

    /// Why an actor stopped.
    StopReason {
        /// It returned stop.
        Normal "normal",
        /// Its parent or the system stopped it.
        Requested "requested",
        /// It failed and its supervisor said stop.
        Failed "failed",
        /// Its restart limit was reached.
        LimitReached "limit_reached",
    }

    /// What a supervisor decided about a failure.
    Directive {
        /// Keep the state, go on.
        Resume "resume",
        /// Make a new state.
        Restart "restart",
        /// End the actor.
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
        /// Nobody has that name or path.
        NoReceiver "no_receiver",
        /// It was cancelled or its deadline passed before delivery.
        Expired "expired",
        /// The system is shutting down.
        Closed "closed",
    }

    /// Why a graph dropped a value.
    ValueDropReason {
        /// The edge was full and drops the oldest.
        Oldest "oldest",
        /// The edge was full and drops the newest.
        Newest "newest",
        /// The edge refused it.
        Rejected "rejected",
        /// It was older than the edge allows.
        Stale "stale",
        /// It missed its deadline.
        Late "late",
        /// The component that made it failed before the commit.
        Discarded "discarded",
    }
}
