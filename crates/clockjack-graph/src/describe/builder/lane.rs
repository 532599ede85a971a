//! A lane, in code.

use core::time::Duration;

use super::millis;
use crate::describe::spec::{LaneOverflow, LaneSpec, LaneType, OnPolicyError, OverrunPolicy};

/// How the components of a lane are called.
#[derive(Clone, Debug)]
pub struct Lane {
    spec: LaneSpec,
    odd: Vec<(&'static str, Duration)>,
}

impl Lane {
    /// One component after the other, in compiled order.
    #[must_use]
    pub fn event_loop() -> Self {
        Self::new(LaneType::EventLoop)
    }

    /// One component after the other, at each tick of a period. One that is no whole number of
    /// milliseconds is a fault at build time; [`hz`](Self::hz) can be finer.
    #[must_use]
    pub fn fixed_rate(period: Duration) -> Self {
        let mut lane = Self::new(LaneType::FixedRate);
        lane.spec.period_ms = millis("period_ms", period, &mut lane.odd);
        lane
    }

    /// One component after the other, so many times a second.
    #[must_use]
    pub fn hz(hz: f64) -> Self {
        let mut lane = Self::new(LaneType::FixedRate);
        lane.spec.hz = hz;
        lane
    }

    /// Up to so many invocations at once, on the workers of the system.
    #[must_use]
    pub fn thread_pool(max_threads: u32) -> Self {
        let mut lane = Self::new(LaneType::ThreadPool);
        lane.spec.max_threads = max_threads;
        lane
    }

    /// One component after the other, on a thread of the lane's own.
    #[must_use]
    pub fn isolated_thread() -> Self {
        Self::new(LaneType::IsolatedThread)
    }

    /// One component after the other, in epochs for which the host calls.
    #[must_use]
    pub fn manual_step() -> Self {
        Self::new(LaneType::ManualStep)
    }

    fn new(lane_type: LaneType) -> Self {
        Self { spec: LaneSpec::new("", lane_type), odd: Vec::new() }
    }

    /// Ticks by the system's clock instead of simulated ones.
    #[must_use]
    pub fn wall_clock(mut self) -> Self {
        self.spec.wall_clock_enabled = true;
        self
    }

    /// After a tick that took too long.
    #[must_use]
    pub fn overrun(mut self, policy: OverrunPolicy) -> Self {
        self.spec.overrun_policy = policy;
        self
    }

    /// How long a tick may take.
    #[must_use]
    pub fn tick_budget(mut self, budget: Duration) -> Self {
        self.spec.tick_budget_ms = millis("tick_budget_ms", budget, &mut self.odd);
        self
    }

    /// Ready invocations beyond the active ones.
    #[must_use]
    pub fn queue_capacity(mut self, capacity: u32) -> Self {
        self.spec.queue_capacity = capacity;
        self
    }

    /// What becomes of more.
    #[must_use]
    pub fn overflow(mut self, overflow: LaneOverflow) -> Self {
        self.spec.overflow = overflow;
        self
    }

    /// After so many picks of others a waiting region goes first; zero: never.
    #[must_use]
    pub fn aging_picks(mut self, picks: u32) -> Self {
        self.spec.aging_picks = picks;
        self
    }

    /// A callback that takes longer is reported.
    #[must_use]
    pub fn max_callback(mut self, time: Duration) -> Self {
        self.spec.max_callback_ms = millis("max_callback_ms", time, &mut self.odd);
        self
    }

    /// Name of the lane's threads.
    #[must_use]
    pub fn thread_name(mut self, name: &str) -> Self {
        self.spec.thread_name = Some(name.into());
        self
    }

    /// Processors that the lane's own thread may use.
    #[must_use]
    pub fn cpu_affinity(mut self, processors: &[u32]) -> Self {
        self.spec.cpu_affinity = processors.into();
        self
    }

    /// Niceness of the lane's own thread.
    #[must_use]
    pub fn nice(mut self, niceness: i64) -> Self {
        self.spec.nice_priority = niceness;
        self
    }

    /// Scheduling class of the lane's own thread: `fifo` or `rr`, with its priority.
    #[must_use]
    pub fn realtime(mut self, policy: &str, priority: i64) -> Self {
        self.spec.rt_policy = policy.into();
        self.spec.rt_priority = priority;
        self
    }

    /// What if the operating system refuses any of these.
    #[must_use]
    pub fn on_policy_error(mut self, then: OnPolicyError) -> Self {
        self.spec.on_policy_error = then;
        self
    }

    pub(super) fn into_spec(mut self, id: &str) -> (LaneSpec, Vec<(&'static str, Duration)>) {
        self.spec.id = id.into();
        (self.spec, self.odd)
    }
}
