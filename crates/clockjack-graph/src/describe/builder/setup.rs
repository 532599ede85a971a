//! When and how a component is executed, for graphs built in code.

use core::time::Duration;

use super::{Added, InexactTimes};
use crate::{
    component::InputPort,
    data::Data,
    describe::spec::{
        BoundaryRole, ComponentPriority, ComponentSpec, Condition, ConfigValue, ErrorPolicy,
        ErrorPolicySpec, EventSourceSpec, SourceType, Span, TriggerSpec, TriggerType,
    },
    setters::setters,
};

/// When and how a component is executed.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(super) spec: ComponentSpec,
    pub(super) role: Option<BoundaryRole>,
    pub(super) has_implied_inputs: bool,
    pub(super) inexact: InexactTimes,
}

/// When pending messages cause an invocation. A trigger that waits for inputs waits for all
/// connected inputs, unless [`Setup::input`] names them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trigger {
    /// Every epoch.
    Manual,
    /// One message at any input.
    OnEvent,
    /// One message at any input.
    AnyInput,
    /// One message at each input.
    AllInputs,
    /// One message at each input, with timestamps at most this far apart.
    TimeSync(Duration),
    /// This many messages; zero means any number.
    Batch(u32),
    /// This many messages, or the available ones once the oldest is this old.
    BatchWindow(u32, Duration),
    /// A request message.
    Request,
    /// A completed task.
    TaskReady,
    /// Messages that are at most this far behind the newest one.
    Watermark(Duration),
    /// A fixed predicate.
    Condition(Condition),
    /// The newest message of each input.
    Debounce,
    /// At most one message per interval.
    RateLimit(Duration),
}

impl Setup {
    /// On this lane, executed in every epoch.
    #[must_use]
    pub fn on(lane: &str) -> Self {
        let mut spec = ComponentSpec::default();
        spec.execution.lane = lane.into();
        spec.event_sources = vec![EventSourceSpec::default()];
        Self { spec, role: None, has_implied_inputs: false, inexact: InexactTimes::default() }
    }

    /// Sets the trigger. A trigger that waits for inputs implies a message source.
    #[must_use]
    pub fn trigger(mut self, trigger: Trigger) -> Self {
        let inexact = &mut self.inexact;
        let spec = &mut self.spec.trigger;
        *spec = TriggerSpec { spans: Default::default(), ..TriggerSpec::default() };
        let mut source = SourceType::Message;
        spec.trigger_type = match trigger {
            Trigger::Manual => {
                source = SourceType::Manual;
                TriggerType::Manual
            }
            Trigger::OnEvent => TriggerType::OnEvent,
            Trigger::AnyInput => TriggerType::AnyInput,
            Trigger::AllInputs => TriggerType::AllInputs,
            Trigger::TimeSync(slop) => {
                spec.sync_slop_ms = inexact.millis("trigger_policy.sync_slop_ms", slop);
                TriggerType::TimeSync
            }
            Trigger::Batch(size) => {
                spec.batch_size = size;
                TriggerType::Batch
            }
            Trigger::BatchWindow(size, window) => {
                spec.batch_size = size;
                spec.batch_window_ms = inexact.millis("trigger_policy.batch_window_ms", window);
                TriggerType::Batch
            }
            Trigger::Request => {
                source = SourceType::Request;
                TriggerType::Request
            }
            Trigger::TaskReady => {
                source = SourceType::TaskReady;
                TriggerType::TaskReady
            }
            Trigger::Watermark(lateness) => {
                spec.watermark_lateness_ms =
                    inexact.millis("trigger_policy.watermark_lateness_ms", lateness);
                TriggerType::Watermark
            }
            Trigger::Condition(condition) => {
                spec.condition = condition;
                TriggerType::Condition
            }
            Trigger::Debounce => TriggerType::Debounce,
            Trigger::RateLimit(interval) => {
                spec.min_interval_ms = inexact.millis("trigger_policy.min_interval_ms", interval);
                TriggerType::RateLimit
            }
        };
        self.has_implied_inputs = source != SourceType::Manual;
        self.spec.event_sources =
            vec![EventSourceSpec { source_type: source, ..EventSourceSpec::default() }];
        self
    }

    /// Adds an input that the trigger waits for. Inputs that are not named are then ignored.
    #[must_use]
    pub fn input<T: Data>(mut self, port: InputPort<T>) -> Self {
        self.has_implied_inputs = false;
        for source in &mut self.spec.event_sources {
            source.inputs.push(port.name().into());
        }
        self
    }

    /// Executes the component at each tick of a period.
    #[must_use]
    pub fn every(self, period: Duration) -> Self {
        self.every_from(period, Duration::ZERO)
    }

    /// Executes the component at each tick of a period, first after `phase`.
    #[must_use]
    pub fn every_from(mut self, period: Duration, phase: Duration) -> Self {
        let period_ms = self.inexact.millis("event_sources.period_ms", period);
        let phase_ms = self.inexact.millis("event_sources.phase_ms", phase);
        let source_type = SourceType::Timer;
        let timer =
            EventSourceSpec { source_type, period_ms, phase_ms, ..EventSourceSpec::default() };
        // A component is manual only as long as nothing else can make it ready.
        self.spec.event_sources.retain(|one| one.source_type != SourceType::Manual);
        self.spec.event_sources.push(timer);
        self
    }

    setters! {
        /// Sets the minimum time between invocations.
        min_interval(time: Duration): |setup|
            setup.spec.trigger.min_interval_ms =
                setup.inexact.millis("trigger_policy.min_interval_ms", time);

        /// Drops messages that are older than this.
        max_latency(time: Duration): |setup|
            setup.spec.trigger.max_latency_ms =
                setup.inexact.millis("trigger_policy.max_latency_ms", time);

        /// Uses only the newest message of each input.
        coalesce(): |setup| setup.spec.trigger.coalesce = true;

        /// Sets which ready component is executed first.
        priority(priority: ComponentPriority): |setup| setup.spec.execution.priority = priority;

        /// Allows overlapping invocations.
        reentrant(): |setup| setup.spec.execution.reentrant = true;

        /// Sets the duration from which a slow invocation is reported.
        budget(budget: Duration): |setup|
            setup.spec.execution.budget_ms = setup.inexact.millis("execution.budget_ms", budget);

        /// Sets how many messages an invocation may publish on a blocking edge.
        burst(burst: u32): |setup| setup.spec.execution.burst = burst;

        /// Sets what a failure does.
        on_error(policy: ErrorPolicy): |setup| setup.spec.execution.on_error.policy = policy;
    }

    /// Restarts the component after a failure: at most `max_restarts` times, after a delay that
    /// doubles each time.
    #[must_use]
    pub fn restart(mut self, max_restarts: u32, backoff: Duration) -> Self {
        let backoff_ms = self.inexact.millis("execution.on_error.backoff_ms", backoff);
        self.spec.execution.on_error = ErrorPolicySpec {
            policy: ErrorPolicy::Restart,
            max_restarts,
            backoff_ms,
            ..ErrorPolicySpec::default()
        };
        self
    }

    setters! {
        /// Starts this component after another one.
        after(other: &Added): |setup| setup.spec.depends_on.push(other.id().into());

        /// Sets the boundary role. By default, the component's type defines it.
        boundary(role: BoundaryRole): |setup| setup.role = Some(role);

        /// Adds a setting.
        config(key: &str, value: impl Into<ConfigValue>): |setup|
            setup.spec.config.entries.push((String::from(key), value.into(), Span::NONE));
    }
}
