//! The messages of a run that no component saw, by cause and place.
//!
//! Every message that a component publishes on an edge is counted once: a component was called with
//! it, or it is in this list. The list is made after the run from counters that the parts of the
//! run have anyway, so it costs nothing while messages flow.
//!
//! ```text
//! published on all edges = messages that components were called with + all counts of the list
//! ```

mod hint;

use core::fmt;
use std::collections::BTreeMap;

use crate::{
    compile::plan::Plan,
    named::named,
    run::engine::{
        domain::Domain,
        epoch::RegionCell,
        node::{NodeState, Status},
        region::Region,
    },
};

named! {
    /// Why a component did not see a message.
    #[non_exhaustive]
    pub enum LossCause {
        /// A newer message replaced it before it was read.
        Overwritten = "overwritten",
        /// A full edge dropped it.
        EdgeFull = "edge_full",
        /// A full edge refused it, and the publisher got an error.
        Refused = "refused",
        /// Another edge of the same output refused it, so no edge got it.
        RefusedElsewhere = "refused_elsewhere",
        /// It was older than `lifespan_ms` when it was read.
        Stale = "stale",
        /// More messages than `max_inflight` were in flight.
        MaxInflight = "max_inflight",
        /// The call that published it failed.
        PublisherFailed = "publisher_failed",
        /// The loop that published it discarded its outputs.
        LoopDiscarded = "loop_discarded",
        /// The component that should have read it had failed, and was isolated or restarted.
        ReaderFailed = "reader_failed",
        /// The lane of the component had no room for its invocation.
        LaneFull = "lane_full",
        /// A newer message at the same input replaced it (`coalesce`, `debounce`).
        Coalesced = "coalesced",
        /// More messages waited at the input than the trigger keeps.
        PendingFull = "pending_full",
        /// It waited longer than `max_latency_ms`.
        MaxLatency = "max_latency",
        /// `time_sync` found no message close enough in time.
        NoMatch = "no_match",
        /// It was too far behind the watermark.
        BehindWatermark = "behind_watermark",
        /// It had no timestamp, and the condition of the trigger requires one.
        NoTimestamp = "no_timestamp",
        /// The run ended before it was read.
        RunEnded = "run_ended",
    }
}

impl LossCause {
    /// What happened, as the end of a sentence about the messages.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Overwritten => "replaced by a newer one before they were read",
            Self::EdgeFull => "dropped because the edge was full",
            Self::Refused => "refused because the edge was full",
            Self::RefusedElsewhere => "not sent because another edge of the same output was full",
            Self::Stale => "older than `lifespan_ms` when they were read",
            Self::MaxInflight => "beyond `max_inflight`",
            Self::PublisherFailed => "discarded because the call that published them failed",
            Self::LoopDiscarded => "discarded with the outputs of the loop",
            Self::ReaderFailed => "not read because the component had failed",
            Self::LaneFull => "rejected because the lane was full",
            Self::Coalesced => "replaced by a newer one at the same input",
            Self::PendingFull => "dropped because more waited than the trigger keeps",
            Self::MaxLatency => "dropped because they waited longer than `max_latency_ms`",
            Self::NoMatch => "dropped because no other input had one close enough in time",
            Self::BehindWatermark => "dropped because they were too far behind the watermark",
            Self::NoTimestamp => "dropped because they had no timestamp",
            Self::RunEnded => "not read when the run ended",
        }
    }

    /// As [`description`](Self::description), about one message.
    const fn description_of_one(self) -> &'static str {
        match self {
            Self::Overwritten => "replaced by a newer one before it was read",
            Self::Stale => "older than `lifespan_ms` when it was read",
            Self::PublisherFailed => "discarded because the call that published it failed",
            Self::MaxLatency => "dropped because it waited longer than `max_latency_ms`",
            Self::BehindWatermark => "dropped because it was too far behind the watermark",
            Self::NoTimestamp => "dropped because it had no timestamp",
            same => same.description(),
        }
    }
}

/// Where a message was lost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LossPlace {
    /// On the edge of this id.
    Edge(String),
    /// At the component of this id: its trigger, its lane or its failure.
    Component(String),
    /// In the composite loop of this id.
    Loop(String),
}

impl LossPlace {
    /// `edge`, `component` or `loop`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Edge(_) => "edge",
            Self::Component(_) => "component",
            Self::Loop(_) => "loop",
        }
    }

    /// The id of the edge, the component or the loop.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Edge(id) | Self::Component(id) | Self::Loop(id) => id,
        }
    }
}

/// Messages that no component saw, for one cause at one place.
///
/// Its text names the place, the number, the cause and how to change it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Where they were lost.
    pub place: LossPlace,
    /// Why.
    pub cause: LossCause,
    /// How many. A message to two readers counts twice.
    pub count: u64,
    hint: &'static str,
}

impl Loss {
    /// Whether the messages were only on their way when the run ended. Such messages are no fault
    /// of the graph.
    #[must_use]
    pub fn is_run_ended(&self) -> bool {
        self.cause == LossCause::RunEnded
    }

    /// How to lose fewer messages there.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        self.hint
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, cause, count, hint } = self;
        let (noun, what) = if *count == 1 {
            ("message", cause.description_of_one())
        } else {
            ("messages", cause.description())
        };
        write!(f, "{} {}: {count} {noun} {what}; {hint}", place.kind(), place.id())
    }
}

/// Counts of messages per edge; for rare events.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeTally(BTreeMap<u32, u64>);

impl EdgeTally {
    /// Counts one more message on an edge.
    pub(crate) fn add(&mut self, edge: u32) {
        *self.0.entry(edge).or_default() += 1;
    }

    /// The messages on an edge.
    pub(crate) fn of(&self, edge: u32) -> u64 {
        self.0.get(&edge).copied().unwrap_or(0)
    }

    /// The messages on all edges.
    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// All losses of a run that has ended: those of edges, of components and of loops, in the order of
/// the plan.
pub(crate) fn collect(plan: &Plan, domains: &[Domain]) -> Vec<Loss> {
    let mut losses = Losses { plan, counts: BTreeMap::new() };
    for domain in domains {
        losses.of_boundary(domain);
        for region in domain.state.regions.iter().map(RegionCell::lock) {
            losses.of_region(&region);
        }
    }
    losses.list()
}

/// The position of a place in the plan: edges come first, then components, then loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Edge(usize),
    Component(usize),
    /// The loop of this member.
    Loop(usize),
}

struct Losses<'p> {
    plan: &'p Plan,
    counts: BTreeMap<(At, LossCause), u64>,
}

impl Losses<'_> {
    fn add(&mut self, at: At, cause: LossCause, count: u64) {
        if count > 0 {
            *self.counts.entry((at, cause)).or_default() += count;
        }
    }

    fn add_edge(&mut self, edge: u32, cause: LossCause, count: u64) {
        self.add(At::Edge(edge as usize), cause, count);
    }

    /// What did not get through the beginning of an epoch.
    fn of_boundary(&mut self, domain: &Domain) {
        for (edge, count) in &domain.progress.async_evicted.0 {
            self.add_edge(*edge, LossCause::MaxInflight, *count);
        }
        for (edge, count) in &domain.progress.undelivered.0 {
            self.add_edge(*edge, LossCause::RunEnded, *count);
        }
    }

    fn of_region(&mut self, region: &Region) {
        for deferred in &region.deferred {
            self.add_edge(deferred.message.meta.edge, LossCause::RunEnded, 1);
        }
        for channel in &region.channels {
            let (edge, counts) = (channel.edge(), channel.counters());
            self.add_edge(edge, LossCause::Overwritten, counts.overwrite_count);
            self.add_edge(edge, LossCause::EdgeFull, counts.drop_count - counts.abandoned_count);
            self.add_edge(edge, LossCause::ReaderFailed, counts.abandoned_count);
            self.add_edge(edge, LossCause::Stale, counts.stale_drop_count);
            self.add_edge(edge, LossCause::Refused, counts.reject_count);
            self.add_edge(edge, LossCause::RunEnded, channel.depth().into());
        }
        for node in &region.nodes {
            self.of_outbox(node);
            self.of_trigger(node);
        }
        let discarded = region.n_published.composite_discarded;
        let held = region.looping.as_ref().map_or(0, |state| state.n_held_all());
        let at = At::Loop(region.nodes[0].component);
        self.add(at, LossCause::LoopDiscarded, discarded);
        self.add(at, LossCause::RunEnded, held);
    }

    /// What a component published and no channel got.
    fn of_outbox(&mut self, node: &NodeState) {
        let edges = node.outbox.edges();
        for edge in edges {
            let refused = if edge.overflow == crate::describe::EdgeOverflow::DropNewest {
                LossCause::EdgeFull
            } else {
                LossCause::Refused
            };
            self.add_edge(edge.edge, refused, edge.n_refused);
            self.add_edge(edge.edge, LossCause::RefusedElsewhere, edge.n_withheld);
            self.add_edge(edge.edge, LossCause::PublisherFailed, edge.n_discarded);
        }
        // The run ended in the middle of a step.
        for staged in node.outbox.staged.as_slice() {
            for edge in &edges[staged.first as usize..staged.end as usize] {
                self.add_edge(edge.edge, LossCause::RunEnded, 1);
            }
        }
    }

    /// What a trigger took from the channels and the component did not see.
    fn of_trigger(&mut self, node: &NodeState) {
        let at = At::Component(node.component);
        let (counts, lost) = (node.trigger.counters(), &node.counts.lost);
        let pending = match node.status {
            Status::Isolated => LossCause::ReaderFailed,
            Status::Active | Status::Backoff { .. } => LossCause::RunEnded,
        };
        for (cause, count) in [
            (LossCause::LaneFull, lost.lane_full),
            (LossCause::ReaderFailed, lost.after_failure),
            (LossCause::RunEnded, lost.run_ended),
            (LossCause::Coalesced, counts.coalesced_count),
            (LossCause::PendingFull, counts.pending_drop_count),
            (LossCause::MaxLatency, counts.timeout_drop_count),
            (LossCause::NoMatch, counts.time_sync_drop_count),
            (LossCause::BehindWatermark, counts.late_drop_count),
            (LossCause::NoTimestamp, counts.condition_suppressed_count),
            (pending, node.trigger.n_pending() as u64),
        ] {
            self.add(at, cause, count);
        }
    }

    fn list(self) -> Vec<Loss> {
        let Self { plan, counts } = self;
        let place = |at| match at {
            At::Edge(edge) => LossPlace::Edge(plan.edges[edge].id.clone()),
            At::Component(component) => {
                LossPlace::Component(plan.components[component].spec.id.clone())
            }
            At::Loop(member) => {
                let region = plan.components[member].region;
                LossPlace::Loop(plan.regions[region].id.clone())
            }
        };
        let loss = |((at, cause), count)| Loss {
            place: place(at),
            cause,
            count,
            hint: hint::of(plan, at, cause),
        };
        counts.into_iter().map(loss).collect()
    }
}
