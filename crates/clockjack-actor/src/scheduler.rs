//! The scheduler as Pekko has it: messages for actors, by the clock.
//!
//! # Roles and rules
//!
//! The **job** has the message and the address of the receiver. When it is due it puts the message
//! into the receiver's mailbox, as `tell` does, with its [`Parcel`] in the header. The **receiver**
//! opens the parcel when it takes the message out.
//!
//! 1. A message goes through the user lane, by the overflow policy of the mailbox; one that does
//!    not get in is a dead letter. Order among the messages of jobs that are due in one tick is
//!    that in which they were scheduled.
//! 2. A cancel wins until the message is taken out. What does not open then is dropped, and counted
//!    by the scheduler; it is no dead letter, wherever it ends.
//! 3. The parcel is kept until the handler has returned, or the wait that it has begun is over; its
//!    drop completes the run. So one message of a job is under way at the most, a fixed delay
//!    counts from the end of the handler (an extension: Pekko counts from the send), and a message
//!    that is lost with the mailbox it was in does not end the job.
//! 4. If the receiver has stopped, a message that was to come once is a dead letter, and a periodic
//!    job ends quietly. One that is known to have stopped is refused at once.
//! 5. A restart of the receiver changes nothing: what is scheduled belongs to whoever scheduled it.
//!
//! The dispatcher that is named picks the policy, together with the receiver's guardian; the actor
//! runs where it runs.

use alloc::borrow::Cow;
use core::{fmt, mem, ops::Deref, time::Duration};

use clockjack_exec::Pid;
use clockjack_sched::{
    Affinity, BatchMode, Cancellable, Courier, DispatcherId, JobSpec, Parcel, ParcelTask, Policy,
    ScheduleError, ScheduleErrorKind, Scheduler as Jobs,
};
use clockjack_sync::lock::Lock;

use crate::{
    Actor, ActorPath, ActorRef, Context,
    actor_ref::Refusal,
    envelope::{Attached, Envelope},
    events::DeadLetterReason,
    header::AnyActor,
    pool_box::{InSystem, PoolBox},
};

/// The scheduler of a system, to be cloned and given away.
///
/// Here are the calls that send messages to actors, with the parameters in Pekko's order. Those for
/// closures and tasks, and all others, are the ones of [`clockjack_sched::Scheduler`], which it
/// leads to.
///
/// # Examples
///
/// ```no_run
/// # use clockjack_actor::{ActorRef, ActorSystem, DispatcherId, Failure};
/// # use core::time::Duration;
/// #[derive(Clone)]
/// struct Ping;
///
/// fn jobs(system: &ActorSystem, pong: &ActorRef<Ping>) -> Result<(), Failure> {
///     let (jobs, ms, any) = (system.scheduler(), Duration::from_millis, DispatcherId::DEFAULT);
///     let once = jobs.schedule_once(ms(300), pong, Ping, any, None)?;
///     jobs.schedule_at_fixed_rate(Duration::ZERO, ms(50), pong, Ping, any, Some(pong.pid()))?;
///     jobs.schedule_once_fn(ms(10), any, |fire| println!("{:?} late", fire.late()))?;
///     assert!(once.cancel() && once.is_cancelled() && !once.cancel());
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Scheduler(Jobs);

impl Scheduler {
    pub(crate) fn new(jobs: Jobs) -> Self {
        Self(jobs)
    }

    /// Sends `message` once, after `delay`, at once if that is zero. `sender` is what the receiver
    /// is told by [`Context::sender_pid`].
    ///
    /// # Errors
    ///
    /// The message comes back: for a delay that cannot be, for want of room, after the shutdown, or
    /// if the receiver has stopped.
    pub fn schedule_once<M: Send + 'static>(
        &self,
        delay: Duration,
        receiver: &ActorRef<M>,
        message: M,
        dispatcher: DispatcherId,
        sender: Option<Pid>,
    ) -> Result<Cancellable, ScheduleError<M>> {
        let spec = match self.spec(JobSpec::once(delay), receiver, dispatcher) {
            Ok(spec) => spec,
            Err(kind) => return Err(ScheduleError::new(kind, message)),
        };
        let message = Lock::new(Some(message));
        let task = SendOnce(PoolBox::new(SendData { receiver: receiver.clone(), message, sender }));
        self.0.schedule_parcel(spec, task).map_err(|refused| {
            refused.map(|task| task.0.message.with(mem::take).expect("it was not sent"))
        })
    }

    /// Sends clones of `message` at a fixed rate, for the first time after `initial_delay`.
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
        dispatcher: DispatcherId,
        sender: Option<Pid>,
    ) -> Result<Cancellable, ScheduleError<M>> {
        let spec = JobSpec::fixed_rate(initial_delay, interval);
        self.schedule_every(spec, receiver, message, dispatcher, sender)
    }

    /// Sends clones of `message`, for the first time after `initial_delay`, and then each time
    /// `delay` after the receiver's handler has returned, or the wait that it began is over.
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
        dispatcher: DispatcherId,
        sender: Option<Pid>,
    ) -> Result<Cancellable, ScheduleError<M>> {
        let spec = JobSpec::fixed_delay(initial_delay, delay);
        self.schedule_every(spec, receiver, message, dispatcher, sender)
    }

    fn schedule_every<M: Clone + Send + 'static>(
        &self,
        spec: JobSpec,
        receiver: &ActorRef<M>,
        message: M,
        dispatcher: DispatcherId,
        sender: Option<Pid>,
    ) -> Result<Cancellable, ScheduleError<M>> {
        let spec = match self.spec(spec, receiver, dispatcher) {
            Ok(spec) => spec,
            Err(kind) => return Err(ScheduleError::new(kind, message)),
        };
        let task =
            SendPeriodic(PoolBox::new(SendData { receiver: receiver.clone(), message, sender }));
        self.0
            .schedule_parcel(spec, task)
            .map_err(|refused| refused.map(|task| task.0.into_inner().message))
    }

    fn spec<M: 'static>(
        &self,
        spec: JobSpec,
        receiver: &ActorRef<M>,
        dispatcher: DispatcherId,
    ) -> Result<JobSpec, ScheduleErrorKind> {
        let receiver = receiver.any();
        if receiver.is_stopped() {
            return Err(ScheduleErrorKind::ReceiverGone);
        }
        Ok(spec.policy(policy(&self.0, dispatcher, &receiver.path, receiver.name())))
    }
}

/// By which policy a job for an actor is run.
pub(crate) fn policy(
    jobs: &Jobs,
    dispatcher: DispatcherId,
    path: &ActorPath,
    class: &'static str,
) -> Policy {
    // The last on the way up is the root.
    let (mut top, mut guardian) = ("", "");
    for above in path.ancestors() {
        (guardian, top) = (top, above.name());
    }
    let guardian = if guardian == "system" { "/system" } else { "/user" };
    jobs.policies().resolve(&[
        Affinity::Dispatcher(dispatcher),
        Affinity::Guardian(Cow::Borrowed(guardian)),
        Affinity::ActorClass(Cow::Borrowed(class)),
    ])
}

impl Deref for Scheduler {
    type Target = Jobs;

    fn deref(&self) -> &Jobs {
        &self.0
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What a job has: a message, or what is left of it, and for whom it is.
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

/// A message that is sent once: taken by the courier, and a task is lent to whoever makes that.
struct SendOnce<M: 'static>(PoolBox<SendData<M, Lock<Option<M>>>>);

impl<M: Send + 'static> ParcelTask for SendOnce<M> {
    type Courier = MailboxSink<M>;

    const TELLS_CANCEL: bool = false;

    fn courier(&self) -> MailboxSink<M> {
        let SendData { receiver, message, sender } = &*self.0;
        let message = message.with(mem::take);
        MailboxSink { receiver: receiver.clone(), message, sender: *sender }
    }
}

/// A message of which clones are sent.
struct SendPeriodic<M: 'static>(PoolBox<SendData<M, M>>);

impl<M: Clone + Send + 'static> ParcelTask for SendPeriodic<M> {
    type Courier = MailboxSink<M>;

    const TELLS_CANCEL: bool = false;

    fn courier(&self) -> MailboxSink<M> {
        let SendData { receiver, message, sender } = &*self.0;
        MailboxSink { receiver: receiver.clone(), message: Some(message.clone()), sender: *sender }
    }
}

/// A message on its way to a mailbox.
struct MailboxSink<M> {
    receiver: ActorRef<M>,
    message: Option<M>,
    sender: Option<Pid>,
}

impl<M: 'static> Courier for MailboxSink<M> {
    fn carry(self, parcel: Parcel) {
        let Self { receiver, message, sender } = self;
        let is_once = parcel.mode() == BatchMode::OneShot;
        let actor = receiver.any().clone();
        let attached = Attached { receiver: actor, parcel: Some(parcel), batch: None, sender };
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
            && let Some(parcel) = attached.parcel
        {
            parcel.end_job();
        }
    }
}

impl<A: Actor> Context<'_, A> {
    /// Sends `message` to an actor once, after `delay`, in the name of this one. It comes also if
    /// this actor is restarted or stops meanwhile: for what belongs to it there are
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
        let jobs = self.system().scheduler();
        let job = jobs.schedule_once(delay, receiver, message, dispatcher, sender)?;
        self.state
            .record(|| crate::testing::Effect::Scheduled { delay, receiver: receiver.path() });
        Ok(job)
    }
}
