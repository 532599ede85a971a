//! When and how a component is executed, for graphs built in code.

use core::time::Duration;

use super::{Added, millis};
use crate::{
    component::InputPort,
    data::Data,
    describe::spec::{
        BoundaryRole, ComponentPriority, ComponentSpec, Condition, ConfigValue, ErrorPolicy,
        ErrorPolicySpec, EventSourceSpec, SourceType, Span, TriggerSpec, TriggerType,
    },
};

/// When and how a component is executed.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(super) spec: ComponentSpec,
    pub(super) role: Option<BoundaryRole>,
    pub(super) has_implied_inputs: bool,
    pub(super) inexact: Vec<(&'static str, Duration)>,
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
        Self { spec, role: None, has_implied_inputs: false, inexact: Vec::new() }
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
                spec.sync_slop_ms = millis("trigger_policy.sync_slop_ms", slop, inexact);
                TriggerType::TimeSync
            }
            Trigger::Batch(size) => {
                spec.batch_size = size;
                TriggerType::Batch
            }
            Trigger::BatchWindow(size, window) => {
                spec.batch_size = size;
                spec.batch_window_ms = millis("trigger_policy.batch_window_ms", window, inexact);
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
                    millis("trigger_policy.watermark_lateness_ms", lateness, inexact);
                TriggerType::Watermark
            }
            Trigger::Condition(condition) => {
                spec.condition = condition;
                TriggerType::Condition
            }
            Trigger::Debounce => TriggerType::Debounce,
            Trigger::RateLimit(interval) => {
                spec.min_interval_ms = millis("trigger_policy.min_interval_ms", interval, inexact);
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
        let period_ms = millis("event_sources.period_ms", period, &mut self.inexact);
        let phase_ms = millis("event_sources.phase_ms", phase, &mut self.inexact);
        let source_type = SourceType::Timer;
        let timer =
            EventSourceSpec { source_type, period_ms, phase_ms, ..EventSourceSpec::default() };
        // A component is manual only as long as nothing else can make it ready.
        self.spec.event_sources.retain(|one| one.source_type != SourceType::Manual);
        self.spec.event_sources.push(timer);
        self
    }

    /// Sets the minimum time between invocations.
    #[must_use]
    pub fn min_interval(mut self, time: Duration) -> Self {
        self.spec.trigger.min_interval_ms =
            millis("trigger_policy.min_interval_ms", time, &mut self.inexact);
        self
    }

    /// Drops messages that are older than this.
    #[must_use]
    pub fn max_latency(mut self, time: Duration) -> Self {
        self.spec.trigger.max_latency_ms =
            millis("trigger_policy.max_latency_ms", time, &mut self.inexact);
        self
    }

    /// Uses only the newest message of each input.
    #[must_use]
    pub fn coalesce(mut self) -> Self {
        self.spec.trigger.coalesce = true;
        self
    }

    /// Sets which ready component is executed first.
    #[must_use]
    pub fn priority(mut self, priority: ComponentPriority) -> Self {
        self.spec.execution.priority = priority;
        self
    }

    /// Allows overlapping invocations.
    #[must_use]
    pub fn reentrant(mut self) -> Self {
        self.spec.execution.reentrant = true;
        self
    }

    /// Sets the duration from which a slow invocation is reported.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.spec.execution.budget_ms = millis("execution.budget_ms", budget, &mut self.inexact);
        self
    }

    /// Sets how many messages an invocation may publish on a blocking edge.
    #[must_use]
    pub fn burst(mut self, burst: u32) -> Self {
        self.spec.execution.burst = burst;
        self
    }

    /// Sets what a failure does.
    #[must_use]
    pub fn on_error(mut self, policy: ErrorPolicy) -> Self {
        self.spec.execution.on_error.policy = policy;
        self
    }

    /// Restarts the component after a failure: at most `max_restarts` times, after a delay that
    /// doubles each time.
    #[must_use]
    pub fn restart(mut self, max_restarts: u32, backoff: Duration) -> Self {
        let backoff_ms = millis("execution.on_error.backoff_ms", backoff, &mut self.inexact);
        self.spec.execution.on_error = ErrorPolicySpec {
            policy: ErrorPolicy::Restart,
            max_restarts,
            backoff_ms,
            ..ErrorPolicySpec::default()
        };
        self
    }

    /// Starts this component after another one.
    #[must_use]
    pub fn after(mut self, other: &Added) -> Self {
        self.spec.depends_on.push(other.id().into());
        self
    }

    /// Sets the boundary role. By default, the component's type defines it.
    #[must_use]
    pub fn boundary(mut self, role: BoundaryRole) -> Self {
        self.role = Some(role);
        self
    }

    /// Adds a setting.
    #[must_use]
    pub fn config(mut self, key: &str, value: impl Into<ConfigValue>) -> Self {
        self.spec.config.entries.push((String::from(key), value.into(), Span::NONE));
        self
    }
}
