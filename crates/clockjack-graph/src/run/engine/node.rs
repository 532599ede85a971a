//! A component in a run: what it is called with, how it is called, and what happens when it fails.

use core::{ops::Range, panic::AssertUnwindSafe};
use std::{panic::catch_unwind, sync::Arc};

use clockjack_exec::Failure;

use super::{
    batch::{Batch, Job},
    chains::NodeChains,
    context::{
        Call, CallInfo, ConvergenceReport, GraphContext, LastSeen, LoopIteration, PORT, is_taken,
    },
    env::Env,
};
use crate::{
    component::{Binder, Config, Descriptor},
    describe::{ComponentPriority, EdgeKind, ErrorPolicy, ErrorPolicySpec},
    registry::{
        Factory,
        node::{ErasedComponent, ErasedNode},
    },
    run::{
        flow::{
            channel::Channel,
            message::Message,
            outbox::Outbox,
            trigger::{Invocations, Trigger},
        },
        observe::{
            call_watch::WatchedComponent,
            metrics::user::Samples,
            report::{Fault, RunPhase},
            trace::{Recorder, TraceName},
        },
    },
};

/// A component in a run.
pub(crate) struct NodeState {
    pub(crate) component: usize,
    pub(crate) id: Arc<str>,
    pub(crate) lane: Arc<str>,
    pub(crate) descriptor: Arc<Descriptor>,
    pub(crate) body: ErasedComponent,
    /// Creates a new instance for a restart, if that is possible.
    pub(crate) make: Option<Factory>,
    pub(crate) config: Config,
    pub(crate) trigger: Trigger,
    /// Its in-edges, as a range of the channels of its region.
    pub(crate) channels: Range<usize>,
    /// Inputs that are not part of the trigger: the port, and the channel in the region.
    pub(crate) untriggered: Vec<(u16, usize)>,
    /// The last message seen at each input, unless the channel keeps it.
    pub(crate) last: Vec<Message>,
    /// The messages of the next call, one per input. After the call they are swapped with `last`.
    pub(crate) fresh: Vec<Message>,
    pub(crate) outbox: Outbox,
    /// Reusable jobs for overlapping invocations.
    pub(crate) spare: Vec<Job>,
    /// The jobs of the step that runs now.
    pub(crate) jobs: Vec<Job>,
    /// Where workers take them from.
    pub(crate) batch: Option<Arc<Batch>>,
    /// The target of each edge of the outbox, in the same order.
    pub(crate) routes: Vec<Route>,
    /// All routes are immediate and lead to other regions.
    pub(crate) is_fast: bool,
    pub(crate) priority: ComponentPriority,
    /// The admission control of a pool lane; `None` on other lanes.
    pub(crate) admission: Option<Admission>,
    pub(crate) on_error: ErrorPolicySpec,
    pub(crate) budget_ns: u64,
    pub(crate) callback_max_ns: u64,
    /// Where its calls are visible while they run, if its lane limits them.
    pub(crate) watched: Option<Arc<WatchedComponent>>,
    pub(crate) burst: u32,
    pub(crate) status: Status,
    /// It was activated, and not deactivated since.
    pub(crate) is_activated: bool,
    /// At its last step, a blocking edge had no room for everything that was ready.
    pub(crate) is_blocked: bool,
    /// It has a blocking edge.
    pub(crate) waits_for_room: bool,
    /// Its invocations are taken from the channels one at a time: a failure may stop the component,
    /// and messages that it was not called with must not be lost.
    pub(crate) is_one_by_one: bool,
    /// `None`: it is on no chain.
    pub(crate) chains: Option<Box<NodeChains>>,
    /// How long its measured calls took, in nanoseconds, if the run keeps that.
    pub(crate) call_times: Option<Box<Samples>>,
    pub(crate) counts: NodeCounts,
}

/// The admission control of a pool lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    /// Invocations that may run at the same time.
    pub(crate) width: usize,
    /// The lane allows more than one at the same time, even if there are too few workers for it.
    pub(crate) overlaps: bool,
    /// Invocations that may run at the same time or wait in the queue.
    pub(crate) capacity: usize,
    pub(crate) overflow: crate::describe::LaneOverflow,
}

/// The route of an edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) edge: u32,
    pub(crate) kind: EdgeKind,
    pub(crate) to: Target,
    /// How many messages of an `async` edge may be in flight; zero: any number.
    pub(crate) max_inflight: u32,
    /// The reader gets a copy of its own.
    pub(crate) copies: bool,
}

impl Route {
    /// Whether another region sees the value itself in the same epoch.
    pub(crate) fn is_fast(&self) -> bool {
        self.kind == EdgeKind::Immediate && matches!(self.to, Target::Region(..)) && !self.copies
    }
}

/// The channel at the end of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A channel of the same region.
    SameRegion(u32),
    /// Another region of the domain, and its channel.
    Region(u32, u32),
    /// Another domain.
    Domain(u32),
}

/// Whether a component is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The component is called.
    Active,
    /// The component has failed and is never called again.
    Isolated,
    /// The component has failed. After this time it is recreated.
    Backoff { until_ns: u64 },
}

/// The counts of a component.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeCounts {
    pub(crate) executions: u64,
    pub(crate) errors: u64,
    pub(crate) last_ns: u64,
    /// How long all measured calls took.
    pub(crate) measured_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) budget_overruns: u64,
    pub(crate) callback_overruns: u64,
    pub(crate) cancel_requested: u64,
    pub(crate) cancel_observed: u64,
    pub(crate) restarts: u64,
    /// The most invocations that a pool lane has admitted to run at the same time.
    pub(crate) in_flight_max: u64,
    /// The most invocations that waited for these.
    pub(crate) queued_max: u64,
    /// The most invocations observed to run at the same time. It depends on threads.
    pub(crate) overlap_max: u64,
    pub(crate) rejected: u64,
    /// The value of `rejected` at the last report.
    rejected_seen: u64,
    pub(crate) blocked: u64,
    /// Calls whose cost in simulated time was added up.
    pub(crate) costed: u64,
    pub(crate) discarded: u64,
    /// Messages of invocations that the component was never called with.
    pub(crate) lost: LostMessages,
    /// How often the component was configured.
    pub(crate) config_reads: u64,
    /// Start of the window in which restarts are counted, and the number of restarts in it.
    window_ns: u64,
    window_restarts: u32,
}

/// Messages that a trigger has taken for a component which was not called with them, by cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LostMessages {
    /// Its lane had no room for the invocation.
    pub(crate) lane_full: u64,
    /// The component failed in an invocation before.
    pub(crate) after_failure: u64,
    /// The run ended with an invocation before.
    pub(crate) run_ended: u64,
}

/// The outcome of a call. A call that succeeded without anything to report has none.
pub(crate) struct CallOutcome {
    pub(crate) result: Result<(), Failure>,
    pub(crate) report: Option<ConvergenceReport>,
    pub(crate) saw_cancel: bool,
}

impl Default for CallOutcome {
    fn default() -> Self {
        Self { result: Ok(()), report: None, saw_cancel: false }
    }
}

impl NodeState {
    /// Calls the component with these messages.
    #[inline(always)]
    pub(crate) fn call(
        &mut self,
        env: &Env,
        messages: &mut [Message],
        info: &CallInfo,
    ) -> Option<CallOutcome> {
        let Self { body, outbox, component, id, last, .. } = self;
        let last_seen = LastSeen { first: 0, last };
        invoke(body, env, (*component, id), (messages, last_seen, outbox), info)
    }

    /// Calls the component with one message, when its channel keeps the last one.
    #[inline(always)]
    pub(crate) fn call_with(
        &mut self,
        env: &Env,
        message: &mut Message,
        last_seen: LastSeen<'_>,
    ) -> Option<CallOutcome> {
        let Self { body, outbox, component, id, .. } = self;
        let messages = core::slice::from_mut(message);
        invoke(body, env, (*component, id), (messages, last_seen, outbox), &CallInfo::DEFAULT)
    }

    /// Calls the component with the first `n_messages` of `fresh`.
    #[inline(always)]
    pub(crate) fn call_fresh(&mut self, env: &Env, n_messages: usize) -> Option<CallOutcome> {
        let Self { body, outbox, component, id, last, fresh, .. } = self;
        let (messages, last_seen) = (&mut fresh[..n_messages], LastSeen { first: 0, last });
        invoke(body, env, (*component, id), (messages, last_seen, outbox), &CallInfo::DEFAULT)
    }

    /// A call polled for cancellation and saw that the run is stopping.
    #[cold]
    pub(crate) fn saw_cancel(&mut self, env: &Env, recorder: &mut Recorder) {
        self.counts.cancel_requested += 1;
        self.counts.cancel_observed += 1;
        recorder.note(env, TraceName::ComponentCancellationRequested, self.component, 0);
        recorder.note(env, TraceName::ComponentCancellationObserved, self.component, 0);
    }

    /// How many invocations its lane has refused since the last call of this method.
    pub(crate) fn take_new_rejects(&mut self) -> u64 {
        let rejected = self.counts.rejected;
        rejected - core::mem::replace(&mut self.counts.rejected_seen, rejected)
    }

    /// Whether its invocations may overlap. This does not depend on the number of workers, because
    /// it decides what an invocation sees of the others.
    pub(crate) fn overlaps(&self) -> bool {
        self.admission.is_some_and(|admission| admission.overlaps)
            && matches!(self.body, ErasedComponent::Shared(_))
    }

    /// Begins a batch with a job for each invocation.
    pub(crate) fn begin_batch(&mut self, invocations: &mut Invocations) -> Arc<Batch> {
        let width = self.admission.map_or(1, |admission| admission.width);
        let batch = self.batch.get_or_insert_with(|| Arc::new(Batch::new(width)));
        let batch = Arc::clone(batch);
        let ErasedComponent::Shared(body) = &self.body else { return batch };
        let body = Arc::clone(body);
        invocations.take_each(|index, invocation, messages| {
            let spare = self.spare.pop();
            let mut job = spare.unwrap_or_else(|| new_job(self, self.outbox.empty_like()));
            job.index = index;
            job.body = ErasedComponent::Shared(Arc::clone(&body));
            job.messages.extend(messages);
            job.last.extend(self.last.iter().map(Message::shared));
            job.outbox.take_rooms(&self.outbox);
            job.missed_runs = u64::from(invocation.missed_runs);
            job.is_one_each = !invocation.is_batch;
            job.chain_call = self.chains.as_ref().map_or(0, |chains| chains.number(index));
            self.jobs.push(job);
        });
        batch.begin(&mut self.jobs);
        batch
    }

    /// Makes a job of the only invocation of a member of a loop, which takes the component with it
    /// until [`take_back`](Self::take_back).
    pub(crate) fn begin_member(
        &mut self,
        invocations: &mut Invocations,
        (index, iteration, chain_call): (usize, LoopIteration, u64),
    ) -> Job {
        let spare = self.spare.pop();
        let mut job = spare.unwrap_or_else(|| new_job(self, Outbox::new(&[])));
        job.index = index;
        job.body = core::mem::replace(&mut self.body, ErasedComponent::Removed);
        invocations.take_each(|_, invocation, messages| {
            job.messages.extend(messages);
            job.missed_runs = u64::from(invocation.missed_runs);
            job.is_one_each = !invocation.is_batch;
        });
        core::mem::swap(&mut job.last, &mut self.last);
        core::mem::swap(&mut job.outbox, &mut self.outbox);
        (job.iteration, job.chain_call) = (Some(iteration), chain_call);
        job
    }

    /// Takes the component back from the job of a member.
    pub(crate) fn take_back(&mut self, job: &mut Job) {
        self.body = core::mem::replace(&mut job.body, ErasedComponent::Removed);
        core::mem::swap(&mut job.last, &mut self.last);
        core::mem::swap(&mut job.outbox, &mut self.outbox);
    }

    /// Whether it may become ready by time alone.
    pub(crate) fn depends_on_time(&self) -> bool {
        self.trigger.depends_on_time()
            || self.waits_for_room
            || self.on_error.policy == ErrorPolicy::Restart
    }

    /// Whether a failure may stop the component.
    pub(crate) fn may_stop_on_error(on_error: ErrorPolicy) -> bool {
        matches!(on_error, ErrorPolicy::Isolate | ErrorPolicy::Restart)
    }

    /// Keeps the newest message of each input for later invocations.
    #[inline]
    pub(crate) fn keep(&mut self, messages: &mut [Message]) {
        for message in messages.iter_mut().filter(|one| !is_taken(one)) {
            core::mem::swap(&mut self.last[usize::from(message.meta.port & PORT)], message);
        }
    }

    /// Keeps the first `n_messages` of `fresh`, which belong to the first inputs, and drops the
    /// messages that they replace.
    #[inline(always)]
    pub(crate) fn keep_fresh(&mut self, n_messages: usize) {
        let Self { last, fresh, .. } = self;
        if fresh[..n_messages].iter().any(is_taken) {
            for (last, message) in last.iter_mut().zip(&mut fresh[..n_messages]) {
                if !is_taken(message) {
                    core::mem::swap(last, message);
                }
            }
        } else {
            core::mem::swap(last, fresh);
        }
        for old in &mut fresh[..n_messages] {
            old.value.clear();
        }
    }

    /// Counts the duration of a measured call.
    pub(crate) fn note_duration(&mut self, duration_ns: u64) {
        let counts = &mut self.counts;
        counts.last_ns = duration_ns;
        counts.measured_ns += duration_ns;
        counts.max_ns = counts.max_ns.max(duration_ns);
        if let Some(call_times) = &mut self.call_times {
            #[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
            call_times.put(duration_ns as f64);
        }
    }

    /// Whether each of its calls is measured.
    #[inline]
    pub(crate) fn is_measured(&self) -> bool {
        self.budget_ns | self.callback_max_ns != 0
    }

    /// Moves the messages of inputs that are not part of the trigger to the first invocation, after
    /// its own messages. The channels bound their number.
    pub(crate) fn take_untriggered(
        &mut self,
        now_ns: u64,
        channels: &mut [Channel],
        invocations: &mut Invocations,
    ) {
        let overlaps = self.overlaps();
        for (port, at) in &self.untriggered {
            let channel = &mut channels[*at];
            while let Some(message) = channel.pop(now_ns) {
                if overlaps && let Some(shared) = message.share() {
                    // Overlapping invocations do not wait for what the first one keeps.
                    self.last[usize::from(*port)] = shared;
                }
                invocations.add_to_first(*port, message);
            }
        }
    }

    /// Applies the error policy: what happens to the component, and whether the run ends.
    pub(crate) fn failed(&mut self, failure: &Failure, now_ns: u64, epoch: u64) -> Fault {
        self.counts.errors += 1;
        let mut message = format!("{failure}");
        let is_fatal = match self.on_error.policy {
            ErrorPolicy::FailFast => true,
            ErrorPolicy::Continue => false,
            ErrorPolicy::Isolate => {
                self.status = Status::Isolated;
                false
            }
            // Further failures before the restart belong to the same failure.
            ErrorPolicy::Restart if matches!(self.status, Status::Backoff { .. }) => false,
            ErrorPolicy::Restart => match self.next_backoff(now_ns) {
                Some(backoff_ns) => {
                    self.status = Status::Backoff { until_ns: now_ns.saturating_add(backoff_ns) };
                    false
                }
                None => {
                    let limit = self.on_error.max_restarts;
                    message = format!("{message} (after {limit} restarts)");
                    true
                }
            },
        };
        self.fault(RunPhase::Execute, message, epoch, is_fatal)
    }

    pub(crate) fn fault(
        &self,
        phase: RunPhase,
        message: impl Into<String>,
        epoch: u64,
        is_fatal: bool,
    ) -> Fault {
        Fault {
            phase,
            component: (&*self.id).into(),
            lane: (&*self.lane).into(),
            message: message.into(),
            epoch,
            is_fatal,
        }
    }

    /// The fault of an edge with `fail_fast` that refused a publication.
    pub(crate) fn full_edge(&self, epoch: u64) -> Fault {
        self.fault(RunPhase::Execute, "an edge with overflow `fail_fast` was full", epoch, true)
    }

    /// How long to wait before the next restart; `None` if there were too many.
    fn next_backoff(&mut self, now_ns: u64) -> Option<u64> {
        let counts = &mut self.counts;
        let window_ns = self.on_error.within_ms.saturating_mul(1_000_000);
        let is_over = window_ns > 0 && now_ns.saturating_sub(counts.window_ns) > window_ns;
        // The window begins with the first failure in it.
        if counts.window_restarts == 0 || is_over {
            (counts.window_ns, counts.window_restarts) = (now_ns, 0);
        }
        if counts.window_restarts >= self.on_error.max_restarts {
            return None;
        }
        let doublings = counts.window_restarts.min(32);
        counts.window_restarts += 1;
        let backoff_ms = self.on_error.backoff_ms.saturating_mul(1 << doublings);
        Some(backoff_ms.min(self.on_error.backoff_max_ms).saturating_mul(1_000_000))
    }

    /// Whether the component may be called now. Recreates it if its backoff is over.
    ///
    /// # Errors
    ///
    /// A failure of its hooks, as of any call.
    pub(crate) fn is_callable(&mut self, env: &Env) -> Result<bool, Fault> {
        match self.status {
            Status::Active => Ok(true),
            Status::Isolated => Ok(false),
            Status::Backoff { until_ns } if env.now_ns < until_ns => Ok(false),
            Status::Backoff { .. } => match self.recreate(env.now_ns) {
                Ok(()) => {
                    self.status = Status::Active;
                    self.counts.restarts += 1;
                    Ok(true)
                }
                Err(failure) => {
                    // The new instance has failed: it is not in backoff for the old failure any
                    // more.
                    self.status = Status::Active;
                    Err(self.failed(&failure, env.now_ns, env.epoch))
                }
            },
        }
    }

    fn recreate(&mut self, now_ns: u64) -> Result<(), Failure> {
        let made = self.make.as_ref().map(|make| catch_panic(|| Ok(make()))).transpose()?;
        let Some(fresh) = made else {
            return Err(Failure::msg("the component cannot be recreated"));
        };
        // The component has failed before; it still has to release its resources.
        let _ = self.deactivate();
        // A panic in the drop of the old instance does not matter.
        let _ = self.replace_body(fresh);
        self.last.fill_with(Message::none);
        self.trigger.start(now_ns);
        self.bind_and_configure()?;
        self.activate()
    }

    /// Replaces the instance and drops the old one.
    ///
    /// # Errors
    ///
    /// The drop of the old instance panicked.
    pub(crate) fn replace_body(&mut self, for_other: ErasedComponent) -> Result<(), Failure> {
        let old = core::mem::replace(&mut self.body, for_other);
        catch_panic(|| {
            drop(old);
            Ok(())
        })
    }

    /// Activates it.
    pub(crate) fn activate(&mut self) -> Result<(), Failure> {
        self.with_body(|node| node.activate())?;
        self.is_activated = true;
        Ok(())
    }

    /// Deactivates it, unless it is not active.
    pub(crate) fn deactivate(&mut self) -> Result<(), Failure> {
        if core::mem::take(&mut self.is_activated) {
            self.with_body(|node| node.deactivate())
        } else {
            Ok(())
        }
    }

    pub(crate) fn bind_and_configure(&mut self) -> Result<(), Failure> {
        self.counts.config_reads += 1;
        let (descriptor, config) = (Arc::clone(&self.descriptor), self.config.clone());
        self.with_body(move |node| {
            let mut binder = Binder::new(&descriptor);
            node.bind(&mut binder);
            if let Some(port) = binder.unknown() {
                return Err(Failure::msg(format!("port `{port}` is not in its descriptor")));
            }
            node.validate_config(&config)?;
            node.configure(&config).map_err(Failure::from)
        })
    }

    /// Whether it accepts these settings.
    pub(crate) fn check_config(&mut self, config: &Config) -> Result<(), Failure> {
        self.with_body(|node| node.validate_config(config).map_err(Failure::from))
    }

    /// Applies its settings.
    pub(crate) fn take_config(&mut self) -> Result<(), Failure> {
        self.counts.config_reads += 1;
        let config = self.config.clone();
        self.with_body(|node| node.configure(&config).map_err(Failure::from))
    }

    pub(crate) fn config_fault(&self, failure: &Failure, epoch: u64) -> Fault {
        self.fault(RunPhase::Configure, format!("{failure}"), epoch, true)
    }

    /// Calls `work` with the component, while no invocation runs.
    pub(crate) fn with_body<R>(
        &mut self,
        work: impl FnOnce(&mut dyn ErasedNode) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let node: &mut dyn ErasedNode = match &mut self.body {
            ErasedComponent::Exclusive(node) => &mut **node,
            ErasedComponent::Shared(node) => Arc::get_mut(node).expect("no invocation is running"),
            ErasedComponent::Removed => return Err(Failure::msg(GONE)),
        };
        catch_panic(|| work(node))
    }
}

/// A job for a node, which keeps it for later steps.
fn new_job(node: &NodeState, outbox: Outbox) -> Job {
    Job {
        index: 0,
        body: ErasedComponent::Removed,
        component: node.component,
        id: Arc::clone(&node.id),
        messages: Vec::new(),
        last: Vec::new(),
        outbox,
        missed_runs: 0,
        is_one_each: true,
        chain_call: 0,
        iteration: None,
        result: Ok(()),
        report: None,
        saw_cancel: false,
        worker: 0,
        is_timed: node.budget_ns > 0 || node.callback_max_ns > 0,
        watched: node.watched.clone(),
        span_ns: None,
    }
}

impl Drop for NodeState {
    fn drop(&mut self) {
        // The system was shut down during the run: the component still has to release its
        // resources.
        let _ = self.deactivate();
        // A panic in one drop must not affect the other components.
        let _ = self.replace_body(ErasedComponent::Removed);
    }
}

const GONE: &str = "the component was removed";

/// Calls a component.
#[inline(always)]
fn invoke(
    body: &mut ErasedComponent,
    env: &Env,
    (component, id): (usize, &Arc<str>),
    (messages, last_seen, outbox): (&mut [Message], LastSeen<'_>, &mut Outbox),
    info: &CallInfo,
) -> Option<CallOutcome> {
    let call = Call { env, component, id, info, report: None, saw_cancel: false };
    let mut cx = GraphContext { messages, last_seen, outbox, call };
    let result = match body {
        ErasedComponent::Exclusive(node) => catch_panic(|| node.execute(&mut cx)),
        ErasedComponent::Shared(node) => catch_panic(|| node.execute_shared(&mut cx)),
        ErasedComponent::Removed => Err(Failure::msg(GONE)),
    };
    let Call { report, saw_cancel, .. } = &cx.call;
    if result.is_ok() && report.is_none() && !saw_cancel {
        // Nothing to drop, which the optimizer does not see.
        core::mem::forget(result);
        return None;
    }
    Some(CallOutcome { result, report: *report, saw_cancel: *saw_cancel })
}

/// Turns a panic into a failure.
#[inline(always)]
pub(crate) fn catch_panic<R>(call: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(panic) => Err(panicked(&*panic)),
    }
}

#[cold]
fn panicked(panic: &(dyn core::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&'static str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::msg(format!("panicked: {}", text.unwrap_or("with a payload that is not text")))
}
