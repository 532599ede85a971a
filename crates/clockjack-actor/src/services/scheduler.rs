//! The scheduler, with Pekko's interface: sends messages to actors at given times.
//!
//! # Roles and rules
//!
//! The **job** has the message and the address of the receiver. When it is due, it puts the message
//! into the receiver's mailbox, as `tell` does, with its [`PendingDelivery`] in the envelope. The
//! **receiver** accepts the delivery when it takes the message out.
//!
//! 1. The message is a user message and subject to the overflow policy of the mailbox; if it is
//!    refused, it is a dead letter. Messages of jobs that are due in the same tick arrive in the
//!    order in which the jobs were scheduled.
//! 2. A cancel is effective until the message is taken out. A message that was cancelled is
//!    dropped, and counted by the scheduler; it is no dead letter, no matter where it is dropped.
//! 3. The receiver keeps the delivery until the handler has returned, or the wait that it has begun
//!    is over; its drop completes the run. So at most one message of a job is in flight, a fixed
//!    delay counts from the end of the handler (an extension: Pekko counts from the send), and a
//!    message that is lost with its mailbox does not end the job.
//! 4. If the receiver has stopped, a one-shot message is a dead letter, and a periodic job ends
//!    silently. A receiver that is known to have stopped is refused at once.
//! 5. A restart of the receiver changes nothing: a scheduled message belongs to its sender.
//!
//! The dispatcher and the subsystem of the scheduler, together with the receiver's path and class,
//! select the policy; the actor runs on its own dispatcher.

use core::{fmt, mem, time::Duration};

use clockjack_exec::Pid;
use clockjack_sched::{
    Affinity, BatchMode, Cancellable, DeliverySink, DeliveryTask, DispatcherId, JobSpec,
    PendingDelivery, Policy, ScheduleError, ScheduleErrorKind, Scheduler as Jobs,
};
use clockjack_sync::spin_lock::SpinLock;

use crate::{
    Actor, ActorPath, ActorRef, Context,
    actor_ref::Refusal,
    carried_span::CarriedSpan,
    cell::{
        envelope::{Attached, Envelope},
        header::AnyActor,
        pool_box::{InSystem, PoolBox},
    },
    events::DeadLetterReason,
};

/// The scheduler of a system; cheap to clone.
///
/// Its methods send messages to actors, with the parameters in Pekko's order.
/// [`jobs`](Self::jobs) is the scheduler for closures and tasks, with delays, metrics and
/// diagnostics.
///
/// # Examples
///
/// ```no_run
/// # use clockjack_actor::{ActorRef, ActorSystem, DispatcherId, Failure};
/// # use core::time::Duration;
/// #[derive(Clone)]
/// struct Ping;
///
/// fn schedule(system: &ActorSystem, pong: &ActorRef<Ping>) -> Result<(), Failure> {
///     let (scheduler, ms) = (system.scheduler(), Duration::from_millis);
///     let once = scheduler.schedule_once(ms(300), pong, Ping)?;
///     scheduler
///         .with_sender(pong.pid())
///         .schedule_at_fixed_rate(Duration::ZERO, ms(50), pong, Ping)?;
///     let jobs = scheduler.jobs();
///     jobs.schedule_once_fn(ms(10), DispatcherId::DEFAULT, |fire| {
///         println!("{:?} late", fire.late());
///     })?;
///     assert!(once.cancel() && once.is_cancelled() && !once.cancel());
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Scheduler {
    jobs: Jobs,
    origin: Origin,
}

/// On whose behalf a job sends its message.
#[derive(Clone, Copy)]
struct Origin {
    dispatcher: DispatcherId,
    subsystem: Option<&'static str>,
    sender: Option<Pid>,
}

impl Scheduler {
    pub(crate) fn new(jobs: Jobs) -> Self {
        let dispatcher = DispatcherId::DEFAULT;
        Self { jobs, origin: Origin { dispatcher, subsystem: None, sender: None } }
    }

    /// The scheduler of jobs that are closures or tasks.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// A scheduler whose jobs have the policy of this dispatcher. The receiver of a message runs on
    /// its own dispatcher. Without this setting, jobs have the policy of the default dispatcher.
    #[must_use]
    pub fn with_dispatcher(&self, dispatcher: DispatcherId) -> Self {
        Self { jobs: self.jobs.clone(), origin: Origin { dispatcher, ..self.origin } }
    }

    /// A scheduler whose jobs have the policy of this [subsystem](Affinity::Subsystem). Without
    /// this setting, a job has the policy of the subsystem that its receiver belongs to: the name
    /// below `/user` or `/system` in its path.
    #[must_use]
    pub fn with_subsystem(&self, name: &'static str) -> Self {
        Self { jobs: self.jobs.clone(), origin: Origin { subsystem: Some(name), ..self.origin } }
    }

    /// A scheduler that sends messages on behalf of this actor: [`Context::sender_pid`] returns the
    /// pid to the receiver.
    #[must_use]
    pub fn with_sender(&self, sender: Pid) -> Self {
        Self { jobs: self.jobs.clone(), origin: Origin { sender: Some(sender), ..self.origin } }
    }

    /// Sends `message` once, after `delay`, or at once if the delay is zero.
    ///
    /// # Errors
    ///
    /// Returns the message: if the delay is invalid, if there is no room, after the shutdown, or if
    /// the receiver has stopped.
    pub fn schedule_once<M: Send + 'static>(
        &self,
        delay: Duration,
        receiver: &ActorRef<M>,
        message: M,
    ) -> Result<Cancellable, ScheduleError<M>> {
        self.send_once(delay, receiver, message, self.origin)
    }

    /// Sends clones of `message` at a fixed rate, the first one after `initial_delay`.
    ///
    /// # Errors
    ///
    /// As [`schedule_once`](Self::schedule_once); also for an interval of zero.
    pub fn schedule_at_fixed_rate<M: Clone + Send + 'static>(
        &self,
        initial_delay: Duration,
        interval: Duration,
        receiver: &ActorRef<M>,
        message: M,
    ) -> Result<Cancellable, ScheduleError<M>> {
        self.send_periodic(JobSpec::fixed_rate(initial_delay, interval), receiver, message)
    }

    /// Sends clones of `message`: the first one after `initial_delay`, and each further one `delay`
    /// after the receiver's handler has returned or the wait that it began is over.
    ///
    /// # Errors
    ///
    /// As [`schedule_once`](Self::schedule_once); also for a delay of zero.
    pub fn schedule_with_fixed_delay<M: Clone + Send + 'static>(
        &self,
        initial_delay: Duration,
        delay: Duration,
        receiver: &ActorRef<M>,
        message: M,
    ) -> Result<Cancellable, ScheduleError<M>> {
        self.send_periodic(JobSpec::fixed_delay(initial_delay, delay), receiver, message)
    }

    fn send_once<M: Send + 'static>(
        &self,
        delay: Duration,
        receiver: &ActorRef<M>,
        message: M,
        origin: Origin,
    ) -> Result<Cancellable, ScheduleError<M>> {
        let spec = match self.spec(JobSpec::once(delay), receiver, origin) {
            Ok(spec) => spec,
            Err(kind) => return Err(ScheduleError::new(kind, message)),
        };
        let (receiver, message) = (receiver.clone(), SpinLock::new(Some(message)));
        let task = SendOnce(PoolBox::new(SendData { receiver, message, sender: origin.sender }));
        self.jobs.schedule_delivery(spec, task).map_err(|refused| {
            refused.map(|task| task.0.message.with(mem::take).expect("it was not sent"))
        })
    }

    fn send_periodic<M: Clone + Send + 'static>(
        &self,
        spec: JobSpec,
        receiver: &ActorRef<M>,
        message: M,
    ) -> Result<Cancellable, ScheduleError<M>> {
        let spec = match self.spec(spec, receiver, self.origin) {
            Ok(spec) => spec,
            Err(kind) => return Err(ScheduleError::new(kind, message)),
        };
        let (receiver, sender) = (receiver.clone(), self.origin.sender);
        let task = SendPeriodic(PoolBox::new(SendData { receiver, message, sender }));
        self.jobs
            .schedule_delivery(spec, task)
            .map_err(|refused| refused.map(|task| task.0.into_inner().message))
    }

    fn spec<M: 'static>(
        &self,
        spec: JobSpec,
        receiver: &ActorRef<M>,
        origin: Origin,
    ) -> Result<JobSpec, ScheduleErrorKind> {
        let receiver = receiver.any();
        if receiver.is_stopped() {
            return Err(ScheduleErrorKind::ReceiverGone);
        }
        let Origin { dispatcher, subsystem, .. } = origin;
        let class = receiver.name();
        Ok(spec.policy(policy(&self.jobs, dispatcher, subsystem, &receiver.path, class)))
    }
}

/// The policy of a job that sends to an actor. Without a subsystem, that of the actor's path
/// applies.
pub(crate) fn policy(
    jobs: &Jobs,
    dispatcher: DispatcherId,
    subsystem: Option<&str>,
    path: &ActorPath,
    class: &'static str,
) -> Policy {
    if let Some(policy) = jobs.policies().uniform() {
        return policy;
    }
    let names = path.names();
    let subsystem = subsystem.or_else(|| names.get(1).copied());
    jobs.policies().resolve_by(|affinity| match affinity {
        Affinity::Dispatcher(one) => *one == dispatcher,
        Affinity::Guardian(guardian) => is_at_or_below(&names, guardian),
        Affinity::Subsystem(name) => subsystem == Some(name),
        Affinity::ActorClass(name) => name == class,
        _ => false,
    })
}

/// Whether the path with these names is `guardian`, or is below it.
fn is_at_or_below(names: &[&str], guardian: &str) -> bool {
    let Some(guardian) = guardian.strip_prefix('/') else { return false };
    let mut names = names.iter();
    guardian.split('/').all(|name| names.next() == Some(&name))
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.jobs, f)
    }
}

/// The data of a job: receiver, message, and sender.
struct SendData<M, T> {
    receiver: ActorRef<M>,
    message: T,
    sender: Option<Pid>,
}

impl<M: 'static, T> InSystem for SendData<M, T> {
    fn member(&self) -> &AnyActor {
        self.receiver.any()
    }
}

/// A message that is sent once. The sink takes the message out of the lock, because the scheduler
/// only lends the task to the code that creates the sink.
struct SendOnce<M: 'static>(PoolBox<SendData<M, SpinLock<Option<M>>>>);

impl<M: Send + 'static> DeliveryTask for SendOnce<M> {
    type Sink = MailboxSink<M>;

    const NOTIFY_CANCEL: bool = false;

    fn sink(&self) -> MailboxSink<M> {
        let SendData { receiver, message, sender } = &*self.0;
        let message = message.with(mem::take);
        MailboxSink { receiver: receiver.clone(), message, sender: *sender }
    }
}

/// A message of which clones are sent.
struct SendPeriodic<M: 'static>(PoolBox<SendData<M, M>>);

impl<M: Clone + Send + 'static> DeliveryTask for SendPeriodic<M> {
    type Sink = MailboxSink<M>;

    const NOTIFY_CANCEL: bool = false;

    fn sink(&self) -> MailboxSink<M> {
        let SendData { receiver, message, sender } = &*self.0;
        MailboxSink { receiver: receiver.clone(), message: Some(message.clone()), sender: *sender }
    }
}

/// Puts a message into a mailbox.
struct MailboxSink<M> {
    receiver: ActorRef<M>,
    message: Option<M>,
    sender: Option<Pid>,
}

impl<M: 'static> DeliverySink for MailboxSink<M> {
    fn deliver(self, delivery: PendingDelivery) {
        let Self { receiver, message, sender } = self;
        let is_once = delivery.mode() == BatchMode::OneShot;
        let actor = receiver.any().clone();
        let span = CarriedSpan::default();
        let attached =
            Attached { receiver: actor, delivery: Some(delivery), batch: None, sender, span };
        let Some(message) = message else { return };
        let mut load = Some((message, attached));
        let sent = receiver.push_with(&mut || {
            let (message, attached) = load.take().expect("it is asked for once");
            Envelope::with(message, attached)
        });
        let Err(refusal) = sent else { return };
        let reason = match refusal {
            Refusal::Full => DeadLetterReason::MailboxFull,
            Refusal::Stopped | Refusal::Overflowed => DeadLetterReason::Stopped,
        };
        if refusal != Refusal::Stopped || is_once {
            let actor = receiver.any();
            actor.system().dead_letter::<M>(&actor.path, reason);
        }
        if refusal != Refusal::Full
            && let Some((_, attached)) = load
            && let Some(delivery) = attached.delivery
        {
            delivery.complete_job();
        }
    }
}

impl<A: Actor> Context<'_, A> {
    /// Sends `message` to an actor once, after `delay`, on behalf of this actor. It is also sent if
    /// this actor restarts or stops in the meantime; timers that belong to the actor are in
    /// [`timers`](Self::timers).
    ///
    /// # Errors
    ///
    /// As [`Scheduler::schedule_once`].
    pub fn schedule_once<M: Send + 'static>(
        &mut self,
        delay: Duration,
        receiver: &ActorRef<M>,
        message: M,
    ) -> Result<Cancellable, ScheduleError<M>> {
        let (dispatcher, sender) = (self.state.dispatcher(), Some(self.pid()));
        let origin = Origin { dispatcher, subsystem: None, sender };
        let job = self.system().scheduler().send_once(delay, receiver, message, origin)?;
        self.state
            .record(|| crate::testing::Effect::Scheduled { delay, receiver: receiver.path() });
        Ok(job)
    }
}
