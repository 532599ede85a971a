//! Edges and loops for graphs built in code.

use core::time::Duration;

use super::{Added, millis};
use crate::describe::spec::{
    ClockDomain, Convergence, CopyPolicy, EdgeKind, EdgeMode, EdgeOverflow, EdgePolicy, LoopMode,
    LoopSpec, LoopType, PartialSuccess, PayloadOwner, Readers,
};

/// The kind and policy of an edge.
#[derive(Clone, Debug)]
pub struct Edge {
    pub(super) id: Option<String>,
    pub(super) kind: EdgeKind,
    pub(super) policy: EdgePolicy,
    pub(super) inexact: Vec<(&'static str, Duration)>,
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
        Self { id: None, kind, policy: EdgePolicy::default(), inexact: Vec::new() }
    }

    /// Sets the id; by default an edge is named after its ends.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.into());
        self
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

    /// Sets what a full channel does.
    #[must_use]
    pub fn overflow(mut self, overflow: EdgeOverflow) -> Self {
        self.policy.overflow = overflow;
        self
    }

    /// Drops older messages before they are delivered.
    #[must_use]
    pub fn lifespan(mut self, time: Duration) -> Self {
        self.policy.lifespan_ms = millis("lifespan_ms", time, &mut self.inexact);
        self
    }

    /// Flags older messages when they are delivered.
    #[must_use]
    pub fn deadline(mut self, time: Duration) -> Self {
        self.policy.deadline_ms = millis("deadline_ms", time, &mut self.inexact);
        self
    }

    /// Limits the messages in flight on an async edge.
    #[must_use]
    pub fn max_inflight(mut self, n_messages: u32) -> Self {
        self.policy.max_inflight = n_messages;
        self
    }

    /// Forbids dropping messages.
    #[must_use]
    pub fn no_drop(mut self) -> Self {
        self.policy.allow_drop = false;
        self
    }

    /// Declares that the order of messages does not matter.
    #[must_use]
    pub fn any_order(mut self) -> Self {
        self.policy.preserve_order = false;
        self
    }

    /// Turns health events off.
    #[must_use]
    pub fn no_health_events(mut self) -> Self {
        self.policy.emit_health_events = false;
        self
    }

    /// Sets the clock domain of the timestamps.
    #[must_use]
    pub fn timestamp_domain(mut self, domain: ClockDomain) -> Self {
        self.policy.timestamp_domain = domain;
        self
    }

    /// Sets how a payload reaches several readers.
    #[must_use]
    pub fn copy_policy(mut self, policy: CopyPolicy) -> Self {
        self.policy.copy_policy = policy;
        self
    }

    /// Sets the owner of a payload.
    #[must_use]
    pub fn owner(mut self, owner: PayloadOwner) -> Self {
        self.policy.owner = owner;
        self
    }

    /// Declares that the channel has several readers.
    #[must_use]
    pub fn several_readers(mut self) -> Self {
        self.policy.readers = Readers::Multi;
        self
    }
}

/// How a loop iterates its cycle.
#[derive(Clone, Debug)]
pub struct Loop {
    spec: LoopSpec,
    inexact: Vec<(&'static str, Duration)>,
}

impl Loop {
    /// Creates a loop of this type.
    #[must_use]
    pub fn new(loop_type: LoopType) -> Self {
        Self { spec: LoopSpec::new("", loop_type), inexact: Vec::new() }
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

    /// Sets the maximum number of iterations per epoch.
    #[must_use]
    pub fn max_iterations(mut self, n_iterations: u32) -> Self {
        self.spec.max_iterations = n_iterations;
        self
    }

    /// Sets the time budget per epoch.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.spec.budget_ms = millis("budget_ms", budget, &mut self.inexact);
        self
    }

    /// Sets the convergence criterion.
    #[must_use]
    pub fn convergence(mut self, convergence: Convergence) -> Self {
        self.spec.convergence = Some(convergence);
        self
    }

    /// Sets what happens to the outputs if the loop does not converge.
    #[must_use]
    pub fn partial_success(mut self, then: PartialSuccess) -> Self {
        self.spec.partial_success = Some(then);
        self
    }

    /// Sets the order of the members.
    #[must_use]
    pub fn order(mut self, members: &[&Added]) -> Self {
        self.spec.order = members.iter().map(|one| one.id().into()).collect();
        self
    }

    /// Sets which values a member sees of the others.
    #[must_use]
    pub fn mode(mut self, mode: LoopMode) -> Self {
        self.spec.mode = mode;
        self
    }

    pub(super) fn into_spec(mut self, id: &str) -> (LoopSpec, Vec<(&'static str, Duration)>) {
        self.spec.id = id.into();
        (self.spec, self.inexact)
    }
}
