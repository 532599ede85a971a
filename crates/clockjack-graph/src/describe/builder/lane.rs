//! Lanes for graphs built in code.

use core::time::Duration;

use super::millis;
use crate::describe::spec::{LaneOverflow, LaneSpec, LaneType, OnPolicyError, OverrunPolicy};

/// How the components of a lane are executed.
#[derive(Clone, Debug)]
pub struct Lane {
    spec: LaneSpec,
    inexact: Vec<(&'static str, Duration)>,
}

impl Lane {
    /// Executes one component after the other, in compiled order.
    #[must_use]
    pub fn event_loop() -> Self {
        Self::new(LaneType::EventLoop)
    }

    /// Executes one component after the other, at each tick of a period. A period that is not a
    /// whole number of milliseconds is an error at build time; [`hz`](Self::hz) can be finer.
    #[must_use]
    pub fn fixed_rate(period: Duration) -> Self {
        let mut lane = Self::new(LaneType::FixedRate);
        lane.spec.period_ms = millis("period_ms", period, &mut lane.inexact);
        lane
    }

    /// Executes one component after the other, this many times per second.
    #[must_use]
    pub fn hz(hz: f64) -> Self {
        let mut lane = Self::new(LaneType::FixedRate);
        lane.spec.hz = hz;
        lane
    }

    /// Executes up to this many invocations concurrently, on the workers of the system.
    #[must_use]
    pub fn thread_pool(max_threads: u32) -> Self {
        let mut lane = Self::new(LaneType::ThreadPool);
        lane.spec.max_threads = max_threads;
        lane
    }

    /// Executes one component after the other, on a dedicated thread.
    #[must_use]
    pub fn isolated_thread() -> Self {
        Self::new(LaneType::IsolatedThread)
    }

    /// Executes one component after the other, in epochs that the host requests.
    #[must_use]
    pub fn manual_step() -> Self {
        Self::new(LaneType::ManualStep)
    }

    fn new(lane_type: LaneType) -> Self {
        Self { spec: LaneSpec::new("", lane_type), inexact: Vec::new() }
    }

    /// Uses wall-clock ticks instead of simulated ones.
    #[must_use]
    pub fn wall_clock(mut self) -> Self {
        self.spec.wall_clock_enabled = true;
        self
    }

    /// Sets what happens after a tick that took too long.
    #[must_use]
    pub fn overrun(mut self, policy: OverrunPolicy) -> Self {
        self.spec.overrun_policy = policy;
        self
    }

    /// Sets how long a tick may take.
    #[must_use]
    pub fn tick_budget(mut self, budget: Duration) -> Self {
        self.spec.tick_budget_ms = millis("tick_budget_ms", budget, &mut self.inexact);
        self
    }

    /// Sets how many ready invocations may wait, in addition to the active ones.
    #[must_use]
    pub fn queue_capacity(mut self, capacity: u32) -> Self {
        self.spec.queue_capacity = capacity;
        self
    }

    /// Sets what happens to further invocations.
    #[must_use]
    pub fn overflow(mut self, overflow: LaneOverflow) -> Self {
        self.spec.overflow = overflow;
        self
    }

    /// Sets after how many picks of other regions a waiting region goes first; zero means never.
    #[must_use]
    pub fn aging_picks(mut self, picks: u32) -> Self {
        self.spec.aging_picks = picks;
        self
    }

    /// Sets the duration from which a slow invocation is reported.
    #[must_use]
    pub fn max_callback(mut self, time: Duration) -> Self {
        self.spec.max_callback_ms = millis("max_callback_ms", time, &mut self.inexact);
        self
    }

    /// Sets the name of the lane's threads.
    #[must_use]
    pub fn thread_name(mut self, name: &str) -> Self {
        self.spec.thread_name = Some(name.into());
        self
    }

    /// Sets the CPUs that the lane's dedicated thread may use.
    #[must_use]
    pub fn cpu_affinity(mut self, processors: &[u32]) -> Self {
        self.spec.cpu_affinity = processors.into();
        self
    }

    /// Sets the niceness of the lane's dedicated thread.
    #[must_use]
    pub fn nice(mut self, niceness: i64) -> Self {
        self.spec.nice_priority = niceness;
        self
    }

    /// Sets the scheduling class (`fifo` or `rr`) and priority of the lane's dedicated thread.
    #[must_use]
    pub fn realtime(mut self, policy: &str, priority: i64) -> Self {
        self.spec.rt_policy = policy.into();
        self.spec.rt_priority = priority;
        self
    }

    /// Sets what happens if the operating system refuses one of these settings.
    #[must_use]
    pub fn on_policy_error(mut self, then: OnPolicyError) -> Self {
        self.spec.on_policy_error = then;
        self
    }

    pub(super) fn into_spec(mut self, id: &str) -> (LaneSpec, Vec<(&'static str, Duration)>) {
        self.spec.id = id.into();
        (self.spec, self.inexact)
    }
}
