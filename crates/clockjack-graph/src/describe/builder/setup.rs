//! When and how a component is called, in code.

use core::time::Duration;

use super::{Added, millis};
use crate::{
    component::InputPort,
    data::Data,
    describe::spec::{
        BoundaryRole, ComponentSpec, Condition, ConfigValue, ErrorPolicy, ErrorPolicySpec,
        EventSourceSpec, Priority, SourceType, Span, TriggerSpec, TriggerType,
    },
};

/// When and how a component is called.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(super) spec: ComponentSpec,
    pub(super) role: Option<BoundaryRole>,
    pub(super) has_implied_inputs: bool,
    pub(super) odd: Vec<(&'static str, Duration)>,
}

/// When what is pending makes an invocation. Those that look at inputs look at all that are
/// connected, unless [`Setup::input`] names them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trigger {
    /// Every epoch.
    Manual,
    /// One message is enough.
    OnEvent,
    /// One message is enough.
    AnyInput,
    /// One message at each input.
    AllInputs,
    /// One message at each input, with timestamps no further apart than this.
    TimeSync(Duration),
    /// So many messages; zero: any number.
    Batch(u32),
    /// So many messages, or as many as there are when the oldest is this old.
    BatchWindow(u32, Duration),
    /// A message that asks for something.
    Request,
    /// A task that has ended.
    TaskReady,
    /// Messages that are no further behind the newest than this.
    Watermark(Duration),
    /// A fixed predicate.
    Condition(Condition),
    /// The newest message of each input.
    Debounce,
    /// One message each interval.
    RateLimit(Duration),
}

impl Setup {
    /// On this lane, called in every epoch.
    #[must_use]
    pub fn on(lane: &str) -> Self {
        let mut spec = ComponentSpec::default();
        spec.execution.lane = lane.into();
        spec.event_sources = vec![EventSourceSpec::default()];
        Self { spec, role: None, has_implied_inputs: false, odd: Vec::new() }
    }

    /// When it is called. A trigger that looks at inputs implies the source of its messages.
    #[must_use]
    pub fn trigger(mut self, trigger: Trigger) -> Self {
        let odd = &mut self.odd;
        let spec = &mut self.spec.trigger;
        *spec = TriggerSpec { marks: Default::default(), ..TriggerSpec::default() };
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
                spec.sync_slop_ms = millis("trigger_policy.sync_slop_ms", slop, odd);
                TriggerType::TimeSync
            }
            Trigger::Batch(size) => {
                spec.batch_size = size;
                TriggerType::Batch
            }
            Trigger::BatchWindow(size, window) => {
                spec.batch_size = size;
                spec.batch_window_ms = millis("trigger_policy.batch_window_ms", window, odd);
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
                    millis("trigger_policy.watermark_lateness_ms", lateness, odd);
                TriggerType::Watermark
            }
            Trigger::Condition(condition) => {
                spec.condition = condition;
                TriggerType::Condition
            }
            Trigger::Debounce => TriggerType::Debounce,
            Trigger::RateLimit(interval) => {
                spec.min_interval_ms = millis("trigger_policy.min_interval_ms", interval, odd);
                TriggerType::RateLimit
            }
        };
        self.has_implied_inputs = source != SourceType::Manual;
        self.spec.event_sources =
            vec![EventSourceSpec { source_type: source, ..EventSourceSpec::default() }];
        self
    }

    /// The trigger looks at this input, and at others only if they are named too.
    #[must_use]
    pub fn input<T: Data>(mut self, port: InputPort<T>) -> Self {
        self.has_implied_inputs = false;
        for source in &mut self.spec.event_sources {
            source.inputs.push(port.name().into());
        }
        self
    }

    /// Called at each tick of a period.
    #[must_use]
    pub fn every(self, period: Duration) -> Self {
        self.every_from(period, Duration::ZERO)
    }

    /// Called at each tick of a period, first after `phase`.
    #[must_use]
    pub fn every_from(mut self, period: Duration, phase: Duration) -> Self {
        let period_ms = millis("event_sources.period_ms", period, &mut self.odd);
        let phase_ms = millis("event_sources.phase_ms", phase, &mut self.odd);
        let source_type = SourceType::Timer;
        let timer =
            EventSourceSpec { source_type, period_ms, phase_ms, ..EventSourceSpec::default() };
        // A component is manual only as long as nothing else can make it ready.
        self.spec.event_sources.retain(|one| one.source_type != SourceType::Manual);
        self.spec.event_sources.push(timer);
        self
    }

    /// The least time between invocations.
    #[must_use]
    pub fn min_interval(mut self, time: Duration) -> Self {
        self.spec.trigger.min_interval_ms =
            millis("trigger_policy.min_interval_ms", time, &mut self.odd);
        self
    }

    /// Messages that are older are dropped.
    #[must_use]
    pub fn max_latency(mut self, time: Duration) -> Self {
        self.spec.trigger.max_latency_ms =
            millis("trigger_policy.max_latency_ms", time, &mut self.odd);
        self
    }

    /// The newest message of each input instead of all of them.
    #[must_use]
    pub fn coalesce(mut self) -> Self {
        self.spec.trigger.coalesce = true;
        self
    }

    /// Which ready component goes first.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.spec.execution.priority = priority;
        self
    }

    /// Invocations of it may overlap.
    #[must_use]
    pub fn reentrant(mut self) -> Self {
        self.spec.execution.reentrant = true;
        self
    }

    /// A longer call is reported.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.spec.execution.budget_ms = millis("execution.budget_ms", budget, &mut self.odd);
        self
    }

    /// How many messages an invocation publishes on a blocking edge at most.
    #[must_use]
    pub fn burst(mut self, burst: u32) -> Self {
        self.spec.execution.burst = burst;
        self
    }

    /// What a failure does.
    #[must_use]
    pub fn on_error(mut self, policy: ErrorPolicy) -> Self {
        self.spec.execution.on_error.policy = policy;
        self
    }

    /// A failure makes the component anew: so many times, after a pause that doubles.
    #[must_use]
    pub fn restart(mut self, max_restarts: u32, backoff: Duration) -> Self {
        let backoff_ms = millis("execution.on_error.backoff_ms", backoff, &mut self.odd);
        self.spec.execution.on_error = ErrorPolicySpec {
            policy: ErrorPolicy::Restart,
            max_restarts,
            backoff_ms,
            ..ErrorPolicySpec::default()
        };
        self
    }

    /// It is started after this one.
    #[must_use]
    pub fn after(mut self, other: &Added) -> Self {
        self.spec.depends_on.push(other.id().into());
        self
    }

    /// It stands at the border of the graph. By default, where its type says.
    #[must_use]
    pub fn boundary(mut self, role: BoundaryRole) -> Self {
        self.role = Some(role);
        self
    }

    /// A setting.
    #[must_use]
    pub fn config(mut self, key: &str, value: impl Into<ConfigValue>) -> Self {
        self.spec.config.entries.push((String::from(key), value.into(), Span::NONE));
        self
    }
}
