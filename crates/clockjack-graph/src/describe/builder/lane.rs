//! Lanes for graphs built in code.

use core::time::Duration;

use super::InexactTimes;
use crate::{
    describe::spec::{LaneOverflow, LaneSpec, LaneType, OnPolicyError, OverrunPolicy},
    setters::setters,
};

/// How the components of a lane are executed.
#[derive(Clone, Debug)]
pub struct Lane {
    spec: LaneSpec,
    inexact: InexactTimes,
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
        lane.spec.period_ms = lane.inexact.millis("period_ms", period);
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
        Self { spec: LaneSpec::new("", lane_type), inexact: InexactTimes::default() }
    }

    setters! {
        /// Uses wall-clock ticks instead of simulated ones.
        wall_clock(): |lane| lane.spec.wall_clock_enabled = true;

        /// Sets what happens after a tick that took too long.
        overrun(policy: OverrunPolicy): |lane| lane.spec.overrun_policy = policy;

        /// Sets how long a tick may take.
        tick_budget(budget: Duration): |lane|
            lane.spec.tick_budget_ms = lane.inexact.millis("tick_budget_ms", budget);

        /// Sets how many ready invocations may wait, in addition to the active ones.
        queue_capacity(capacity: u32): |lane| lane.spec.queue_capacity = capacity;

        /// Sets what happens to further invocations.
        overflow(overflow: LaneOverflow): |lane| lane.spec.overflow = overflow;

        /// Sets after how many picks of other regions a waiting region goes first; zero means
        /// never.
        aging_picks(picks: u32): |lane| lane.spec.aging_picks = picks;

        /// Sets the duration from which a slow invocation is reported.
        max_callback(time: Duration): |lane|
            lane.spec.max_callback_ms = lane.inexact.millis("max_callback_ms", time);

        /// Sets the name of the lane's threads.
        thread_name(name: &str): |lane| lane.spec.thread_name = Some(name.into());

        /// Sets the CPUs that the lane's dedicated thread may use.
        cpu_affinity(processors: &[u32]): |lane| lane.spec.cpu_affinity = processors.into();

        /// Sets the niceness of the lane's dedicated thread.
        nice(niceness: i64): |lane| lane.spec.nice_priority = niceness;
    }

    /// Sets the scheduling class (`fifo` or `rr`) and priority of the lane's dedicated thread.
    #[must_use]
    pub fn realtime(mut self, policy: &str, priority: i64) -> Self {
        self.spec.rt_policy = policy.into();
        self.spec.rt_priority = priority;
        self
    }

    setters! {
        /// Sets what happens if the operating system refuses one of these settings.
        on_policy_error(then: OnPolicyError): |lane| lane.spec.on_policy_error = then;
    }

    pub(super) fn into_spec(mut self, id: &str) -> (LaneSpec, InexactTimes) {
        self.spec.id = id.into();
        (self.spec, self.inexact)
    }
}
