//! The table of all events: the only place where an event is added.
//!
//! An entry has a code, a variant, a printed name, documentation and fields; the enum, kinds,
//! encoding, decoding, names and field lists are generated from it, so none can be forgotten. An
//! entry that needs more than sixteen bytes, reuses a code or has code 0 does not compile. A
//! released code keeps its meaning for ever, and fields are never reordered.

use core::fmt;

use super::{
    detail::{
        CancelSide, DeadLetterReason, Directive, PressureState, Priority, ProcessOutcome,
        StepStatus, StopReason, TimerDropReason, UnparkCause, ValueDropReason,
    },
    encoding::{DecodeError, Encoded},
    field::{Field, KIND_BITS, Packer, Unpacker},
    id::{ActorId, ComponentId, EdgeId, GraphId, LaneId, ProcessId, ShardId, SlotId, WorkerId},
};

/// The name, width and range of one field in the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// The name, as in [`Event`] and in printed form.
    pub name: &'static str,
    /// The width in bits; fields follow one another from bit 8 upwards.
    pub bits: u32,
    /// The largest valid number; a larger one does not decode.
    pub max: u64,
}

macro_rules! events {
    ($(
        $(#[$family_doc:meta])*
        $family:ident $family_name:literal {$(
            $code:literal $variant:ident $name:literal $doc:literal
                { $($field:ident: $ty:ty = $field_doc:literal),+ $(,)? }
        )*}
    )*) => {
        /// Something that happened. The [module](crate::event) has the guarantees.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Event {$($(
            #[doc = $doc]
            $variant { $(#[doc = $field_doc] $field: $ty),+ },
        )*)*}

        /// The kind of an event, without its fields. The number is the code of the encoding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {$($(
            #[doc = $doc]
            $variant = $code,
        )*)*}

        /// The part of the runtime that an event comes from.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Family {$(
            $(#[$family_doc])*
            $family,
        )*}

        $($(
            const _: () = {
                assert!($code != 0, "code 0 marks a slot of a ring that was never written");
                assert!(
                    KIND_BITS $(+ <$ty as Field>::BITS)+ <= u128::BITS,
                    "an event has at most sixteen bytes"
                );
            };
        )*)*

        impl Kind {
            /// Every kind, in ascending order of the codes.
            pub const ALL: &'static [Self] = &[$($(Self::$variant),*),*];

            /// The kind with this code, if there is one.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($($code => Some(Self::$variant),)*)*
                    _ => None,
                }
            }

            /// The printed name: lower case with underscores.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($(Self::$variant => $name,)*)* }
            }

            /// The family it belongs to.
            #[must_use]
            pub const fn family(self) -> Family {
                match self { $($(Self::$variant => Family::$family,)*)* }
            }

            /// The fields in the order of the encoded form.
            #[must_use]
            pub const fn fields(self) -> &'static [FieldInfo] {
                match self {$($(
                    Self::$variant => const { &[$(FieldInfo {
                        name: stringify!($field),
                        bits: <$ty as Field>::BITS,
                        max: <$ty as Field>::MAX,
                    }),+] },
                )*)*}
            }
        }

        impl Family {
            /// Every family.
            pub const ALL: &'static [Self] = &[$(Self::$family),*];

            /// The printed name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$family => $family_name,)* }
            }
        }

        impl Event {
            /// The kind of this event.
            #[inline]
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self { $($(Self::$variant { .. } => Kind::$variant,)*)* }
            }

            /// Encodes this event in sixteen bytes.
            #[inline(always)]
            #[must_use]
            pub fn encode(&self) -> Encoded {
                let word = match *self {$($(
                    Self::$variant { $($field),+ } => {
                        Packer::new($code)$(.put($field))+.finish()
                    }
                )*)*};
                Encoded::from_word(word)
            }

            /// Decodes an event.
            ///
            /// # Errors
            ///
            /// If the kind is unknown, a field is not a value of its type, or a bit beyond the last
            /// field is set. All are permanent: the bytes are damaged or from a newer version.
            pub fn decode(encoded: Encoded) -> Result<Self, DecodeError> {
                let code = encoded.kind_code();
                let mut fields = Unpacker::new(encoded.word());
                let event = match code {
                    $($($code => Self::$variant {
                        $($field: fields
                            .take::<$ty>()
                            .ok_or(DecodeError::field(code, stringify!($field)))?),+
                    },)*)*
                    _ => return Err(DecodeError::kind(code)),
                };
                if fields.is_exhausted() { Ok(event) } else { Err(DecodeError::padding(code)) }
            }

            /// Calls `visit` with name and value of each field, in the order of the encoded form.
            ///
            /// # Errors
            ///
            /// The first error that `visit` returns.
            pub fn visit_fields<E>(
                &self,
                mut visit: impl FnMut(&'static str, &dyn fmt::Display) -> Result<(), E>,
            ) -> Result<(), E> {
                match self {$($(
                    Self::$variant { $($field),+ } => { $(visit(stringify!($field), $field)?;)+ }
                )*)*}
                Ok(())
            }
        }
    };
}

events! {
    /// Timers and their wheels.
    Timer "timer" {
        0x10 TimerArmed "timer_armed" "A timer was armed." {
            timer: SlotId = "the timer", delay_ticks: u64 = "ticks until it is due",
        }
        0x11 TimerFired "timer_fired" "A timer fired, never before its deadline." {
            timer: SlotId = "the timer", late_ticks: u64 = "ticks past its deadline",
        }
        0x12 TimerCancelled "timer_cancelled" "A timer was cancelled and will not fire." {
            timer: SlotId = "the timer", side: CancelSide = "who cancelled",
        }
        0x13 TimerDropped "timer_dropped" "The runtime dropped a timer." {
            timer: SlotId = "the timer",
            priority: Priority = "its priority",
            reason: TimerDropReason = "why",
        }
        0x14 TimerRescheduled "timer_rescheduled" "A timer got a new deadline." {
            timer: SlotId = "the timer", delay_ticks: u64 = "ticks until it is now due",
        }
        0x15 ShardAdopted "shard_adopted" "The shard of a worker that left was reassigned." {
            shard: ShardId = "the unassigned shard",
            worker: WorkerId = "its new worker",
            timers: u32 = "timers in it",
        }
        0x16 TimersTakenOver "timers_taken_over"
            "Another worker fired overdue timers of a busy worker." {
            shard: ShardId = "the overdue shard",
            worker: WorkerId = "the worker that polled it instead",
            timers: u32 = "timers fired for it",
        }
        0x17 ShardSwept "shard_swept"
            "Remotely cancelled entries were freed by compaction." {
            shard: ShardId = "the shard",
            stale: u32 = "cancelled entries freed",
            live: u32 = "entries that remain",
        }
    }
    /// Processes, the units that the executor runs step by step.
    Process "process" {
        0x20 ProcessSpawned "process_spawned" "A process was accepted." {
            process: ProcessId = "the new process", worker: WorkerId = "where it was spawned",
        }
        0x21 StepStarted "step_started" "A step began." {
            process: ProcessId = "the process", worker: WorkerId = "the worker that runs it",
        }
        0x22 StepEnded "step_ended" "A step ended." {
            process: ProcessId = "the process",
            status: StepStatus = "what it returned",
            ran_ns: u64 = "duration of the step",
        }
        0x23 ProcessWoken "process_woken" "A waiting process was made ready." {
            process: ProcessId = "the process", worker: WorkerId = "the worker that woke it",
        }
        0x24 ProcessFinished "process_finished" "A process stopped." {
            process: ProcessId = "the process", outcome: ProcessOutcome = "how it stopped",
        }
    }
    /// Workers of the executor.
    Worker "worker" {
        0x30 WorkerStarted "worker_started" "A worker started." {
            worker: WorkerId = "the worker",
        }
        0x31 WorkerStopped "worker_stopped" "A worker stopped." {
            worker: WorkerId = "the worker",
        }
        0x32 WorkerParked "worker_parked" "A worker found nothing to do and sleeps." {
            worker: WorkerId = "the worker",
            until_ns: u64 = "when it wakes by itself; `u64::MAX` if never",
        }
        0x33 WorkerUnparked "worker_unparked" "A worker woke." {
            worker: WorkerId = "the worker", cause: UnparkCause = "why",
        }
        0x34 WorkerSearching "worker_searching" "A worker searches for work to steal." {
            worker: WorkerId = "the worker",
            searching: u16 = "workers that search now, including this one",
        }
        0x35 WorkStolen "work_stolen" "Ready processes moved to another worker." {
            thief: WorkerId = "the worker that stole",
            victim: WorkerId = "the worker that lost them",
            n: u32 = "how many",
        }
        0x36 WorkerStuck "worker_stuck" "A step runs longer than the threshold." {
            worker: WorkerId = "the worker",
            process: ProcessId = "the process that it runs",
            ran_ns: u64 = "the duration so far",
        }
    }
    /// The scheduler, its policies and its driver.
    Scheduler "scheduler" {
        0x40 JobScheduled "job_scheduled" "A job was accepted." {
            job: SlotId = "the job", delay_ticks: u64 = "ticks until its first run",
        }
        0x41 JobFired "job_fired" "A job was handed over for delivery." {
            job: SlotId = "the job",
            runs: u32 = "runs in this batch",
            missed_runs: u32 = "runs folded away",
        }
        0x42 JobCancelled "job_cancelled" "A job was cancelled." {
            job: SlotId = "the job",
        }
        0x43 JobFailed "job_failed" "The handler of a job failed." {
            job: SlotId = "the job",
        }
        0x44 CloseTaskFailed "close_task_failed" "A task that runs at close failed." {
            task: u32 = "its index",
        }
        0x45 BurstFired "burst_fired" "Many runs of one job were due at once after a stall." {
            job: SlotId = "the job",
            runs: u32 = "runs at once",
            threshold: u32 = "the largest number that is not reported",
        }
        0x46 BacklogExceeded "backlog_exceeded" "A job is further behind than its policy allows." {
            job: SlotId = "the job",
            backlog: u32 = "runs outstanding",
            limit: u32 = "its policy's limit",
        }
        0x47 QuotaReached "quota_reached" "No further job is accepted." {
            used: u32 = "jobs active", limit: u32 = "jobs allowed",
        }
        0x48 PressureChanged "pressure_changed"
            "Backpressure between driver and scheduler changed." {
            shard: ShardId = "the shard",
            state: PressureState = "the state now",
            pending_ticks: u64 = "ticks not yet processed",
        }
        0x49 OverflowNearCapacity "overflow_near_capacity"
            "The store beyond the wheel's range is nearly full." {
            shard: ShardId = "the shard",
            len: u32 = "entries in it",
            capacity: u32 = "entries it may hold",
        }
        0x4a LowPriorityDropped "low_priority_dropped"
            "Entries were dropped to make room, lowest priority first." {
            shard: ShardId = "the shard", priority: Priority = "the priority", n: u32 = "how many",
        }
        0x4b DriverCatchUpExceeded "driver_catch_up_exceeded"
            "The driver was late by more ticks than allowed." {
            shard: ShardId = "the shard", ticks: u64 = "ticks made up at once",
        }
        0x4c DriftExceeded "drift_exceeded"
            "Every fire of a window was late by more than allowed." {
            shard: ShardId = "the shard",
            drift_ns: u64 = "least lateness in the window",
            fires: u32 = "fires in the window",
        }
        0x4d ClockJumped "clock_jumped" "The clock jumped forward." {
            by_ns: u64 = "how far",
        }
    }
    /// Actors, supervision and mailboxes.
    Actor "actor" {
        0x60 ActorStarted "actor_started" "An actor started." {
            actor: ActorId = "the actor", parent: ActorId = "its parent",
        }
        0x61 ActorStopped "actor_stopped" "An actor stopped." {
            actor: ActorId = "the actor", reason: StopReason = "why",
        }
        0x62 ActorFailed "actor_failed" "A handler returned a failure or panicked." {
            actor: ActorId = "the actor", directive: Directive = "what its supervisor decided",
        }
        0x63 ActorRestarted "actor_restarted" "An actor got a new state." {
            actor: ActorId = "the actor", restarts: u32 = "restarts within the limit's window",
        }
        0x64 FailureEscalated "failure_escalated" "A failure was escalated to a supervisor." {
            actor: ActorId = "the actor that failed",
            to: ActorId = "the supervisor that must decide",
            stage: u8 = "supervisors passed so far",
        }
        0x65 DeadLettered "dead_lettered" "A message went to dead letters." {
            actor: ActorId = "the receiver that did not get it", reason: DeadLetterReason = "why",
        }
        0x66 MailboxOverflowed "mailbox_overflowed" "A mailbox reached its capacity." {
            actor: ActorId = "the receiver", capacity: u32 = "its capacity",
        }
    }
    /// Dataflow graphs.
    Graph "graph" {
        0x80 EpochStarted "epoch_started" "An epoch began." {
            graph: GraphId = "the graph", epoch: u64 = "its number",
        }
        0x81 EpochCommitted "epoch_committed" "The results of an epoch became visible." {
            graph: GraphId = "the graph",
            epoch: u64 = "its number",
            values: u32 = "values committed",
        }
        0x82 ComponentRan "component_ran" "A component was executed." {
            graph: GraphId = "the graph",
            component: ComponentId = "the component",
            ran_ns: u64 = "the duration",
        }
        0x83 BudgetOverrun "budget_overrun" "A component took longer than its budget." {
            graph: GraphId = "the graph",
            component: ComponentId = "the component",
            over_ns: u64 = "time beyond its budget",
        }
        0x84 LaneTicksSkipped "lane_ticks_skipped" "A fixed-rate lane could not keep its rate." {
            graph: GraphId = "the graph", lane: LaneId = "the lane", ticks: u32 = "ticks skipped",
        }
        0x85 ValueDropped "value_dropped" "An edge dropped values." {
            graph: GraphId = "the graph",
            edge: EdgeId = "the edge",
            reason: ValueDropReason = "why",
            n: u32 = "how many",
        }
    }
    /// The recording itself, and marks that the application sets.
    Meta "meta" {
        0xf0 EventsDropped "events_dropped" "Records were overwritten before they were read." {
            n: u64 = "how many",
        }
        0xf1 Mark "mark" "The application marked a point in the recording." {
            code: u32 = "chosen by the application", value: u64 = "chosen by the application",
        }
    }
}
