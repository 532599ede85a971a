//! A graph that can run, and a run of it.

use core::{
    fmt,
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll},
};
use std::sync::Arc;

use clockjack_actor::ActorSystem;

use crate::{
    compile::Plan,
    data::Data,
    describe::GraphFile,
    diagnostic::Diagnostics,
    registry::{Factory, Registry, node::Body},
    run::{
        LaneReport, LiveLane, Metrics, Reconfigure, RunError, RunOptions, RunReport,
        feed::Feed,
        shared::RunShared,
        start::{Ended, Started, start},
        wiring::{Port, find_port},
    },
};

/// A graph that can run.
pub struct Graph {
    pub(crate) plan: Arc<Plan>,
    pub(crate) made: Vec<Made>,
}

impl GraphFile {
    /// Checks the graph, and fixes the order in which its results are committed.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, at once.
    pub fn compile(&self, registry: &Registry) -> Result<Graph, Diagnostics> {
        let (plan, findings) = crate::compile::check(self.spec(), registry);
        let Some(plan) = plan else { return Err(findings) };
        let made = plan.components.iter().map(|one| {
            let entry = registry.entry(&one.spec.component_type);
            Made::Factory(Arc::clone(&entry.expect("an unknown type is an error").make))
        });
        let made = made.collect();
        Ok(Graph { plan: Arc::new(plan), made })
    }
}

/// A component of a graph that does not run yet.
pub(crate) enum Made {
    /// It was made by the user, who has no other.
    Once(Body),
    /// As many as are needed.
    Factory(Factory),
}

impl Made {
    /// The component, and what makes another one.
    pub(crate) fn into_parts(self) -> (Body, Option<Factory>) {
        match self {
            Self::Once(body) => (body, None),
            Self::Factory(make) => (make(), Some(make)),
        }
    }
}

impl Graph {
    /// Its regions, in the order in which their results are committed.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs it on the executor of a system.
    ///
    /// # Errors
    ///
    /// [`RunError`], if a component refuses its settings or cannot be activated, or if a lane
    /// insists on something that the host does not give.
    pub fn start(self, system: &ActorSystem, options: RunOptions) -> Result<GraphRun, RunError> {
        let Started { shared, inboxes, ended } = start(self, system, options)?;
        Ok(GraphRun { shared, inboxes, ended })
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("name", &self.plan.name).finish_non_exhaustive()
    }
}

/// A run of a graph: a future that gives its report. Dropped, it lets the run go on;
/// [`stop_on_drop`](Self::stop_on_drop) changes that.
pub struct GraphRun {
    shared: Arc<RunShared>,
    inboxes: Arc<[crate::run::inbox::Inbox]>,
    ended: Ended,
}

impl GraphRun {
    /// A way to feed values of this type to an endpoint: an input of a component at the border, or
    /// an output of one, which then publishes them.
    ///
    /// # Errors
    ///
    /// [`FeedError`], if there is no such port, or if it carries another type.
    pub fn feed<T: Data>(&self, endpoint: &str) -> Result<Feed<T>, FeedError> {
        let refuse = |why: String| FeedError { endpoint: endpoint.into(), why, is_of_type: false };
        let plan = &self.shared.plan;
        let port = find_port(plan, endpoint).map_err(refuse)?;
        let (component, schema) = match port {
            Port::Input { component, index, .. } => {
                (component, &plan.components[component].inputs[index].schema)
            }
            Port::Output { component, index } => {
                (component, &plan.components[component].outputs[index].schema)
            }
        };
        if !schema.is_empty() && schema != T::SCHEMA {
            let why = format!("it carries `{schema}`, not `{}`", T::SCHEMA);
            return Err(FeedError { is_of_type: true, ..refuse(why) });
        }
        let (domain, ..) = self.shared.nodes[component];
        Ok(Feed::new(self.inboxes[domain as usize].clone(), port))
    }

    /// Lets the run end: after the regions that are at work, and with everything deactivated.
    pub fn stop(&self) {
        self.stopper().stop();
    }

    /// What can end the run from anywhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { shared: Arc::clone(&self.shared), inboxes: Arc::clone(&self.inboxes) }
    }

    /// Calls for one epoch in which the components of `manual_step` lanes are called.
    pub fn step(&self) {
        // Relaxed: the lock of the inbox orders it.
        self.shared.n_steps_called.fetch_add(1, Ordering::Relaxed);
        self.inboxes[0].call();
    }

    /// A change of settings, to be filled and [committed](Reconfigure::commit).
    #[must_use]
    pub fn reconfigure(&self) -> Reconfigure {
        Reconfigure {
            shared: Arc::clone(&self.shared),
            inboxes: Arc::clone(&self.inboxes),
            changes: Vec::new(),
        }
    }

    /// What is in force of each lane, in the order of the plan.
    #[must_use]
    pub fn lanes(&self) -> &[LaneReport] {
        &self.shared.lanes
    }

    /// Where the lanes stood after the epoch that followed the last call; zeros in the first. It
    /// asks for the next, and does not wait.
    #[must_use]
    pub fn live(&self) -> Vec<LiveLane> {
        self.stopper().live()
    }

    /// All counts, as [`live`](Self::live) has them.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.stopper().metrics()
    }
}

impl Future for GraphRun {
    type Output = Result<RunReport, RunError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.ended).poll(cx)
    }
}

impl fmt::Debug for GraphRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphRun").field("graph", &self.shared.plan.name).finish_non_exhaustive()
    }
}

/// What can end a run from anywhere, and shows where it stands.
#[derive(Clone)]
pub struct Stopper {
    shared: Arc<RunShared>,
    inboxes: Arc<[crate::run::inbox::Inbox]>,
}

impl Stopper {
    /// Lets the run end.
    pub fn stop(&self) {
        self.shared.stop_all(&self.inboxes);
    }

    /// Where the lanes stood after the epoch that followed the last call; zeros in the first. It
    /// asks for the next, and does not wait.
    #[must_use]
    pub fn live(&self) -> Vec<LiveLane> {
        self.shared.live.lanes()
    }

    /// All counts, as [`live`](Self::live) has them. Those of messages that go from one domain to
    /// another, and are refused there, are only in the report.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.shared.live.metrics()
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopper").field("graph", &self.shared.plan.name).finish_non_exhaustive()
    }
}

/// An endpoint that cannot be fed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedError {
    endpoint: String,
    why: String,
    is_of_type: bool,
}

impl FeedError {
    /// Whether the port is there and carries another type.
    #[must_use]
    pub fn is_of_other_type(&self) -> bool {
        self.is_of_type
    }
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot be fed: {}", self.endpoint, self.why)
    }
}

impl core::error::Error for FeedError {}
