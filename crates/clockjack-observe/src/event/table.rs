//! The table of all events: the only place where an event is added.
//!
//! An entry has a code, a variant, a printed name, when it is recorded, documentation and fields;
//! the enum, kinds, encoding, decoding, names and field lists are generated from it, so none can be
//! forgotten. An entry that needs more than sixteen bytes, reuses a code or has code 0 does not
//! compile. A released code keeps its meaning for ever, and fields are never reordered.
//!
//! Each kind has a producer in the product and a test that provokes it: the test
//! `every_kind_of_event_is_recorded` of `clockjack-rt` fails if a kind is added without one.

use core::fmt;

use super::{
    detail::{DeadLetterReason, Directive, SchedulerWarning, TaskOutcome},
    encoding::{DecodeError, Encoded},
    field::{Field, KIND_BITS, Packer, Unpacker},
    id::{ActorId, ShardId, TaskId, WorkerId},
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

/// Whether a kind is recorded only while a trace is on.
macro_rules! when {
    (always) => {
        false
    };
    (traced) => {
        true
    };
}

macro_rules! events {
    ($(
        $code:literal $variant:ident $name:literal $when:ident $doc:literal
            { $($field:ident: $ty:ty = $field_doc:literal),+ $(,)? }
    )*) => {
        /// Something that happened. The [module](crate::event) has the guarantees.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Event {$(
            #[doc = $doc]
            $variant { $(#[doc = $field_doc] $field: $ty),+ },
        )*}

        /// The kind of an event, without its fields. The number is the code of the encoding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {$(
            #[doc = $doc]
            $variant = $code,
        )*}

        $(
            const _: () = {
                assert!($code != 0, "code 0 marks a slot of a ring that was never written");
                assert!(
                    KIND_BITS $(+ <$ty as Field>::BITS)+ <= u128::BITS,
                    "an event has at most sixteen bytes"
                );
            };
        )*

        impl Kind {
            /// Every kind, in ascending order of the codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The kind with this code, if there is one.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The printed name: lower case with underscores.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Whether it is recorded only while a trace is on: it happens too often to be
            /// recorded always.
            #[must_use]
            pub const fn is_traced_only(self) -> bool {
                match self { $(Self::$variant => when!($when),)* }
            }

            /// The fields in the order of the encoded form.
            #[must_use]
            pub const fn fields(self) -> &'static [FieldInfo] {
                match self {$(
                    Self::$variant => const { &[$(FieldInfo {
                        name: stringify!($field),
                        bits: <$ty as Field>::BITS,
                        max: <$ty as Field>::MAX,
                    }),+] },
                )*}
            }
        }

        impl Event {
            /// The kind of this event.
            #[inline]
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$variant { .. } => Kind::$variant,)* }
            }

            /// Encodes this event in sixteen bytes.
            #[inline(always)]
            #[must_use]
            pub fn encode(&self) -> Encoded {
                let word = match *self {$(
                    Self::$variant { $($field),+ } => {
                        Packer::new($code)$(.put($field))+.finish()
                    }
                )*};
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
                    $($code => Self::$variant {
                        $($field: fields
                            .take::<$ty>()
                            .ok_or(DecodeError::field(code, stringify!($field)))?),+
                    },)*
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
                match self {$(
                    Self::$variant { $($field),+ } => { $(visit(stringify!($field), $field)?;)+ }
                )*}
                Ok(())
            }
        }
    };
}

events! {
    // Timers and their wheels.
    0x11 TimersFired "timers_fired" traced
        "A worker fired due timers of a shard, in one batch." {
        shard: ShardId = "the shard",
        worker: WorkerId = "the worker",
        timers: u32 = "timers fired",
        late_ticks: u32 = "ticks by which the latest of them was late",
    }
    0x12 TimersLate "timers_late" always
        "Timers fired later than the executor tolerates." {
        shard: ShardId = "the shard",
        worker: WorkerId = "the worker that fired them",
        timers: u32 = "timers fired in the batch",
        late_ticks: u32 = "ticks by which the latest of them was late",
    }
    0x15 ShardReassigned "shard_reassigned" always
        "A shard of a worker that stopped was assigned to another worker." {
        shard: ShardId = "the shard",
        worker: WorkerId = "its new worker",
    }
    0x16 TimersTakenOver "timers_taken_over" always
        "Another worker fired overdue timers of a busy worker." {
        shard: ShardId = "the overdue shard",
        worker: WorkerId = "the worker that polled it instead",
        timers: u32 = "timers fired for it",
    }

    // Tasks: whatever the executor polls.
    0x20 TaskSpawned "task_spawned" traced "A task was accepted." {
        task: TaskId = "the new task",
    }
    0x22 TaskPolled "task_polled" traced "A poll of a task ended." {
        task: TaskId = "the task",
        messages: u16 = "messages that an actor took out of its mailbox; saturates",
        ran_ns: u64 = "duration of the poll",
    }
    0x23 TaskWoken "task_woken" traced "A worker made a waiting task ready." {
        task: TaskId = "the task",
    }
    0x24 TaskFinished "task_finished" traced "A task ended." {
        task: TaskId = "the task", outcome: TaskOutcome = "how it ended",
    }

    // The executor and its workers.
    0x30 WorkerStarted "worker_started" always "A worker started." {
        worker: WorkerId = "the worker",
    }
    0x31 WorkerStopped "worker_stopped" always "A worker stopped." {
        worker: WorkerId = "the worker",
    }
    0x32 WorkerParked "worker_parked" always
        "A worker found nothing to do, slept, and woke." {
        worker: WorkerId = "the worker", parked_ns: u64 = "how long it slept",
    }
    0x35 WorkStolen "work_stolen" always "Ready tasks moved to another worker." {
        thief: WorkerId = "the worker that stole",
        victim: WorkerId = "the worker that lost them",
        n: u32 = "how many",
    }
    0x36 WorkerStuck "worker_stuck" always "A poll runs longer than the threshold." {
        worker: WorkerId = "the worker",
        task: TaskId = "the task that it polls",
        ran_ns: u64 = "the duration so far",
    }
    0x37 ShutdownStarted "shutdown_started" always
        "The actor system began to stop its actors, or the executor to stop its tasks." {
        tasks: u32 = "tasks alive on the executor",
    }

    // The scheduler.
    0x41 JobFired "job_fired" traced "A job was handed over for execution." {
        shard: ShardId = "its shard",
        job: u64 = "its number in the shard",
        runs: u32 = "runs that the execution represents",
    }
    0x45 JobLate "job_late" always
        "A job missed more runs than its policy allows without a warning." {
        shard: ShardId = "its shard",
        job: u64 = "its number in the shard",
        missed: u32 = "runs missed",
    }
    0x48 SchedulerWarned "scheduler_warned" always "The scheduler reported a warning." {
        warning: SchedulerWarning = "which", value: u64 = "a number that depends on the warning",
    }

    // Actors and supervision.
    0x60 ActorStarted "actor_started" always "An actor started." {
        actor: ActorId = "the actor", parent: ActorId = "its parent",
    }
    0x61 ActorStopped "actor_stopped" always "An actor stopped." {
        actor: ActorId = "the actor",
    }
    0x62 ActorFailed "actor_failed" always "A handler returned a failure or panicked." {
        actor: ActorId = "the actor", directive: Directive = "what its supervisor decided",
    }
    0x63 ActorRestarted "actor_restarted" always "An actor got a new state." {
        actor: ActorId = "the actor",
    }
    0x64 FailureEscalated "failure_escalated" always
        "A failure reached the root, and no supervisor handled it." {
        actor: ActorId = "the actor that failed",
        to: ActorId = "the root actor",
        stage: u8 = "supervisors passed so far",
    }
    0x65 DeadLettered "dead_lettered" always "A message went to dead letters." {
        reason: DeadLetterReason = "why",
    }
}
