//! Edges and loops for graphs built in code.

use core::time::Duration;

use super::{Added, InexactTimes};
use crate::{
    describe::spec::{
        ClockDomain, Convergence, CopyPolicy, EdgeKind, EdgeMode, EdgeOverflow, EdgePolicy,
        LoopMode, LoopSpec, LoopType, PartialSuccess,
    },
    setters::setters,
};

/// The kind and policy of an edge.
#[derive(Clone, Debug)]
pub struct Edge {
    pub(super) id: Option<String>,
    pub(super) kind: EdgeKind,
    pub(super) policy: EdgePolicy,
    pub(super) inexact: InexactTimes,
}

impl Edge {
    /// An immediate edge: a value becomes visible in this epoch, after the producer's region is
    /// finished.
    #[must_use]
    pub fn immediate() -> Self {
        Self::new(EdgeKind::Immediate)
    }

    /// A delay edge: a value becomes visible in the next epoch.
    #[must_use]
    pub fn delay() -> Self {
        Self::new(EdgeKind::Delay)
    }

    /// A state edge: a value becomes visible in the next epoch; until then readers see the old
    /// value.
    #[must_use]
    pub fn state() -> Self {
        Self::new(EdgeKind::State)
    }

    /// An async edge: a value becomes visible in the next epoch, if not too many are in flight.
    #[must_use]
    pub fn asynchronous() -> Self {
        Self::new(EdgeKind::Async)
    }

    fn new(kind: EdgeKind) -> Self {
        Self { id: None, kind, policy: EdgePolicy::default(), inexact: InexactTimes::default() }
    }

    setters! {
        /// Sets the id; by default an edge is named after its ends.
        id(id: &str): |edge| edge.id = Some(id.into());
    }

    /// Sets which messages the channel keeps, and its capacity.
    #[must_use]
    pub fn mode(mut self, mode: EdgeMode, capacity: u32) -> Self {
        self.policy.mode = mode;
        self.policy.capacity = capacity;
        self
    }

    /// Keeps all messages in order, up to `capacity`.
    #[must_use]
    pub fn queue(self, capacity: u32) -> Self {
        self.mode(EdgeMode::Queue, capacity)
    }

    setters! {
        /// Sets what a full channel does.
        overflow(overflow: EdgeOverflow): |edge| edge.policy.overflow = overflow;

        /// Drops older messages before they are delivered.
        lifespan(time: Duration): |edge|
            edge.policy.lifespan_ms = edge.inexact.millis("lifespan_ms", time);

        /// Flags older messages when they are delivered.
        deadline(time: Duration): |edge|
            edge.policy.deadline_ms = edge.inexact.millis("deadline_ms", time);

        /// Reports a longer time without a new message.
        max_silence(time: Duration): |edge|
            edge.policy.max_silence_ms = edge.inexact.millis("max_silence_ms", time);

        /// Limits the messages in flight on an async edge.
        max_inflight(n_messages: u32): |edge| edge.policy.max_inflight = n_messages;

        /// Forbids dropping messages.
        no_drop(): |edge| edge.policy.allow_drop = false;

        /// Declares that the order of messages does not matter.
        any_order(): |edge| edge.policy.preserve_order = false;

        /// Turns health events off.
        no_health_events(): |edge| edge.policy.emit_health_events = false;

        /// Sets the clock domain of the timestamps.
        timestamp_domain(domain: ClockDomain): |edge| edge.policy.timestamp_domain = domain;

        /// Sets how a payload reaches several readers.
        copy_policy(policy: CopyPolicy): |edge| edge.policy.copy_policy = policy;
    }
}

/// How a loop iterates its cycle.
#[derive(Clone, Debug)]
pub struct Loop {
    spec: LoopSpec,
    inexact: InexactTimes,
}

impl Loop {
    /// Creates a loop of this type.
    #[must_use]
    pub fn new(loop_type: LoopType) -> Self {
        Self { spec: LoopSpec::new("", loop_type), inexact: InexactTimes::default() }
    }

    /// Iterates until nothing changes.
    #[must_use]
    pub fn fixed_point() -> Self {
        Self::new(LoopType::FixedPoint)
    }

    /// Iterates until the residual is at most this.
    #[must_use]
    pub fn solver(residual_threshold: f64) -> Self {
        let mut one = Self::new(LoopType::SolverIteration);
        one.spec.residual_threshold = Some(residual_threshold);
        one
    }

    setters! {
        /// Sets the maximum number of iterations per epoch.
        max_iterations(n_iterations: u32): |edge| edge.spec.max_iterations = n_iterations;

        /// Sets the time budget per epoch.
        budget(budget: Duration): |edge|
            edge.spec.budget_ms = edge.inexact.millis("budget_ms", budget);

        /// Sets the convergence criterion.
        convergence(convergence: Convergence): |edge| edge.spec.convergence = Some(convergence);

        /// Sets what happens to the outputs if the loop does not converge.
        partial_success(then: PartialSuccess): |edge| edge.spec.partial_success = Some(then);

        /// Sets the order of the members.
        order(members: &[&Added]): |edge|
            edge.spec.order = members.iter().map(|one| one.id().into()).collect();

        /// Sets which values a member sees of the others.
        mode(mode: LoopMode): |edge| edge.spec.mode = mode;
    }

    pub(super) fn into_spec(mut self, id: &str) -> (LoopSpec, InexactTimes) {
        self.spec.id = id.into();
        (self.spec, self.inexact)
    }
}
