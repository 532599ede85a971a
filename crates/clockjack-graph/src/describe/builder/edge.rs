//! Edges and loops, in code.

use core::time::Duration;

use super::{Added, millis};
use crate::describe::spec::{
    Convergence, CopyPolicy, Domain, EdgeKind, EdgePolicy, LoopMode, LoopSpec, LoopType, Mode,
    Overflow, Owner, PartialSuccess, Readers,
};

/// What an edge is, and what its channel keeps.
#[derive(Clone, Debug)]
pub struct Edge {
    pub(super) id: Option<String>,
    pub(super) kind: EdgeKind,
    pub(super) policy: EdgePolicy,
    pub(super) odd: Vec<(&'static str, Duration)>,
}

impl Edge {
    /// Visible in this epoch, when the region of the producer has ended.
    #[must_use]
    pub fn immediate() -> Self {
        Self::new(EdgeKind::Immediate)
    }

    /// Visible at the next epoch.
    #[must_use]
    pub fn delay() -> Self {
        Self::new(EdgeKind::Delay)
    }

    /// Visible at the next epoch; readers keep the old value until then.
    #[must_use]
    pub fn state() -> Self {
        Self::new(EdgeKind::State)
    }

    /// Visible at the next epoch, if so many are not under way already.
    #[must_use]
    pub fn asynchronous() -> Self {
        Self::new(EdgeKind::Async)
    }

    fn new(kind: EdgeKind) -> Self {
        Self { id: None, kind, policy: EdgePolicy::default(), odd: Vec::new() }
    }

    /// Its id; without one it is called after its ends.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.into());
        self
    }

    /// What its channel keeps, and how many.
    #[must_use]
    pub fn mode(mut self, mode: Mode, capacity: u32) -> Self {
        self.policy.mode = mode;
        self.policy.capacity = capacity;
        self
    }

    /// All messages, in order, up to so many.
    #[must_use]
    pub fn queue(self, capacity: u32) -> Self {
        self.mode(Mode::Queue, capacity)
    }

    /// What a full channel does.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.policy.overflow = overflow;
        self
    }

    /// Older messages are dropped before they are delivered.
    #[must_use]
    pub fn lifespan(mut self, time: Duration) -> Self {
        self.policy.lifespan_ms = millis("lifespan_ms", time, &mut self.odd);
        self
    }

    /// Older messages are delivered with a flag.
    #[must_use]
    pub fn deadline(mut self, time: Duration) -> Self {
        self.policy.deadline_ms = millis("deadline_ms", time, &mut self.odd);
        self
    }

    /// Messages of an asynchronous edge under way.
    #[must_use]
    pub fn max_inflight(mut self, n_messages: u32) -> Self {
        self.policy.max_inflight = n_messages;
        self
    }

    /// No message may be dropped.
    #[must_use]
    pub fn no_drop(mut self) -> Self {
        self.policy.allow_drop = false;
        self
    }

    /// The order of messages does not count.
    #[must_use]
    pub fn any_order(mut self) -> Self {
        self.policy.preserve_order = false;
        self
    }

    /// No health events are made.
    #[must_use]
    pub fn no_health_events(mut self) -> Self {
        self.policy.emit_health_events = false;
        self
    }

    /// Whose clock the timestamps are of.
    #[must_use]
    pub fn timestamp_domain(mut self, domain: Domain) -> Self {
        self.policy.timestamp_domain = domain;
        self
    }

    /// How a payload gets to several readers.
    #[must_use]
    pub fn copy_policy(mut self, policy: CopyPolicy) -> Self {
        self.policy.copy_policy = policy;
        self
    }

    /// Who owns a payload.
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.policy.owner = owner;
        self
    }

    /// How many read it.
    #[must_use]
    pub fn readers(mut self, readers: Readers) -> Self {
        self.policy.readers = readers;
        self
    }
}

/// What the owner of a cycle does with it.
#[derive(Clone, Debug)]
pub struct Loop {
    spec: LoopSpec,
    odd: Vec<(&'static str, Duration)>,
}

impl Loop {
    /// A loop of this kind.
    #[must_use]
    pub fn new(loop_type: LoopType) -> Self {
        Self { spec: LoopSpec::new("", loop_type), odd: Vec::new() }
    }

    /// Until nothing changes.
    #[must_use]
    pub fn fixed_point() -> Self {
        Self::new(LoopType::FixedPoint)
    }

    /// Until the residual is not greater than this.
    #[must_use]
    pub fn solver(residual_threshold: f64) -> Self {
        let mut one = Self::new(LoopType::SolverIteration);
        one.spec.residual_threshold = Some(residual_threshold);
        one
    }

    /// Iterations in an epoch.
    #[must_use]
    pub fn max_iterations(mut self, n_iterations: u32) -> Self {
        self.spec.max_iterations = n_iterations;
        self
    }

    /// Time in an epoch.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.spec.budget_ms = millis("budget_ms", budget, &mut self.odd);
        self
    }

    /// When it has converged.
    #[must_use]
    pub fn convergence(mut self, convergence: Convergence) -> Self {
        self.spec.convergence = Some(convergence);
        self
    }

    /// What if it has not.
    #[must_use]
    pub fn partial_success(mut self, then: PartialSuccess) -> Self {
        self.spec.partial_success = Some(then);
        self
    }

    /// The order of its members.
    #[must_use]
    pub fn order(mut self, members: &[&Added]) -> Self {
        self.spec.order = members.iter().map(|one| one.id().into()).collect();
        self
    }

    /// What a member sees of the others.
    #[must_use]
    pub fn mode(mut self, mode: LoopMode) -> Self {
        self.spec.mode = mode;
        self
    }

    pub(super) fn into_spec(mut self, id: &str) -> (LoopSpec, Vec<(&'static str, Duration)>) {
        self.spec.id = id.into();
        (self.spec, self.odd)
    }
}
