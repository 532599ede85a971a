//! A compiled graph, and a run of it.

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
    describe::{ConfigValue, GraphFile},
    diagnostic::Diagnostics,
    registry::{Factory, Registry, node::ErasedComponent},
    run::{
        Committing, LaneReport, LiveLane, Metrics, OverdueCall, Reconfigure, RunError, RunOptions,
        RunReport,
        flow::{feed::Feed, inbox},
        setup::{
            shared::{RunShared, split_setting},
            start::{Ended, Started, start},
            wiring::{Port, find_port},
        },
    },
};

/// A compiled graph that can run.
pub struct Graph {
    pub(crate) plan: Arc<Plan>,
    pub(crate) sources: Vec<ComponentSource>,
}

impl GraphFile {
    /// Checks the graph and computes the order in which its results are committed.
    ///
    /// # Errors
    ///
    /// All errors of the graph.
    pub fn compile(&self, registry: &Registry) -> Result<Graph, Diagnostics> {
        let (plan, diagnostics) = crate::compile::check(self.spec(), registry);
        let Some(plan) = plan else { return Err(diagnostics) };
        let sources = plan.components.iter().map(|one| {
            let entry = registry.entry(&one.spec.component_type);
            ComponentSource::Factory(Arc::clone(&entry.expect("an unknown type is an error").make))
        });
        let sources = sources.collect();
        Ok(Graph { plan: Arc::new(plan), sources })
    }
}

/// How the run obtains a component.
pub(crate) enum ComponentSource {
    /// An instance that the user created. There is no other.
    Instance(ErasedComponent),
    /// A factory that creates as many instances as needed.
    Factory(Factory),
}

impl ComponentSource {
    /// The component, and the factory for further instances.
    pub(crate) fn into_parts(self) -> (ErasedComponent, Option<Factory>) {
        match self {
            Self::Instance(body) => (body, None),
            Self::Factory(make) => (make(), Some(make)),
        }
    }
}

impl Graph {
    /// The plan: the regions in the order in which their results are committed.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs the graph on the executor of a system.
    ///
    /// # Errors
    ///
    /// [`RunError`], if a component refuses its settings or cannot be activated, or if a lane
    /// requires something that the host does not provide.
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

/// A run of a graph: a future of its report. Dropping it does not stop the run;
/// [`stop_on_drop`](Self::stop_on_drop) changes this.
pub struct GraphRun {
    shared: Arc<RunShared>,
    inboxes: Arc<[inbox::Inbox]>,
    ended: Ended,
}

impl GraphRun {
    /// Creates a feed for values of this type to an endpoint: an input of a component at the
    /// boundary, or an output, which then publishes the values.
    ///
    /// # Errors
    ///
    /// [`FeedError`], if the port does not exist, or if it has another type.
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
            let why = format!("its type is `{schema}`, not `{}`", T::SCHEMA);
            return Err(FeedError { is_of_type: true, ..refuse(why) });
        }
        let (domain, ..) = self.shared.nodes[component];
        Ok(Feed::new(self.inboxes[domain as usize].clone(), port))
    }

    /// Stops the run: the regions that are executing finish, and then all components are
    /// deactivated.
    pub fn stop(&self) {
        self.stopper().stop();
    }

    /// The plan of the graph that runs.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.shared.compiled()
    }

    /// A handle that can stop the run from anywhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { shared: Arc::clone(&self.shared), inboxes: Arc::clone(&self.inboxes) }
    }

    /// Requests one epoch in which the components of `manual_step` lanes are executed.
    pub fn step(&self) {
        // Relaxed: the lock of the inbox orders it.
        self.shared.n_steps_requested.fetch_add(1, Ordering::Relaxed);
        self.inboxes[0].wake();
    }

    /// Starts a change of settings, which is applied by [`commit`](Reconfigure::commit).
    #[must_use]
    pub fn reconfigure(&self) -> Reconfigure {
        self.stopper().reconfigure()
    }

    /// Changes one setting, written as `component.field`, as [`reconfigure`](Self::reconfigure)
    /// does. The change is in force from the beginning of an epoch on, and in the commit log.
    ///
    /// # Errors
    ///
    /// When the future is ready: [`ConfigRefused`](crate::run::ConfigRefused), as for
    /// [`Reconfigure::commit`]. The future need not be awaited.
    ///
    /// # Examples
    ///
    /// ```
    /// # use clockjack_graph::GraphRun;
    /// # async fn raise(run: &GraphRun) -> Result<(), clockjack_graph::run::ConfigRefused> {
    /// run.set("control.kp", 2.5).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set(&self, setting: &str, value: impl Into<ConfigValue>) -> Committing {
        self.stopper().set(setting, value)
    }

    /// The value of a setting that is in force, written as `component.field`: that of the last
    /// change, or that of the description. `None` if there is no such component, or if the setting
    /// has no value, so that the component uses its default.
    ///
    /// # Examples
    ///
    /// ```
    /// # use clockjack_graph::GraphRun;
    /// # async fn double(run: &GraphRun) -> Result<(), clockjack_graph::run::ConfigRefused> {
    /// use clockjack_graph::describe::ConfigValue;
    ///
    /// if let Some(ConfigValue::Float(kp)) = run.get("control.kp") {
    ///     run.set("control.kp", 2.0 * kp).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn get(&self, setting: &str) -> Option<ConfigValue> {
        self.shared.setting(setting)
    }

    /// The settings that are in effect for each lane, in the order of the plan.
    #[must_use]
    pub fn lanes(&self) -> &[LaneReport] {
        &self.shared.lanes
    }

    /// The state of the lanes after the epoch that followed the previous call; zeros at the first
    /// call. Requests the next update without waiting for it.
    #[must_use]
    pub fn live(&self) -> Vec<LiveLane> {
        self.stopper().live()
    }

    /// All counters, as of [`live`](Self::live).
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.stopper().metrics()
    }

    /// The calls that take longer than `max_callback_ms` of their lane and have not returned, as
    /// [`Stopper::overdue_calls`].
    #[must_use]
    pub fn overdue_calls(&self) -> Vec<OverdueCall> {
        self.shared.calls.check()
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

/// A handle that can stop a run from anywhere, shows its state and changes its settings.
#[derive(Clone)]
pub struct Stopper {
    shared: Arc<RunShared>,
    inboxes: Arc<[inbox::Inbox]>,
}

impl Stopper {
    /// Stops the run.
    pub fn stop(&self) {
        self.shared.stop_all(&self.inboxes);
    }

    /// The plan of the graph that runs.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.shared.compiled()
    }

    /// Whether the run has ended, in whatever way.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // The end closes all of them.
        self.inboxes[0].is_closed()
    }

    /// Changes one setting, as [`GraphRun::set`].
    ///
    /// # Errors
    ///
    /// When the future is ready: [`ConfigRefused`](crate::run::ConfigRefused), as for
    /// [`Reconfigure::commit`].
    pub fn set(&self, setting: &str, value: impl Into<ConfigValue>) -> Committing {
        let (component, field) = split_setting(setting);
        self.reconfigure().set(component, field, value).commit()
    }

    /// The value of a setting that is in force, as [`GraphRun::get`].
    #[must_use]
    pub fn get(&self, setting: &str) -> Option<ConfigValue> {
        self.shared.setting(setting)
    }

    fn reconfigure(&self) -> Reconfigure {
        let (shared, inboxes) = (Arc::clone(&self.shared), Arc::clone(&self.inboxes));
        Reconfigure { shared, inboxes, changes: Vec::new() }
    }

    /// The state of the lanes after the epoch that followed the previous call; zeros at the first
    /// call. Requests the next update without waiting for it.
    #[must_use]
    pub fn live(&self) -> Vec<LiveLane> {
        self.shared.live.lanes()
    }

    /// All counters, as of [`live`](Self::live). Messages that go from one domain to another and
    /// are refused there are counted only in the report.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.shared.live.metrics()
    }

    /// The calls that take longer than `max_callback_ms` of their lane and have not returned.
    ///
    /// Each of them is reported once, as a line of the component log and as a health event, which
    /// is in the trace at once. On a pool of several workers the run checks this itself. A host
    /// that wants to know it even if all workers hang calls this from a thread of its own.
    #[must_use]
    pub fn overdue_calls(&self) -> Vec<OverdueCall> {
        self.shared.calls.check()
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
    /// Whether the port exists, but has another type.
    #[must_use]
    pub fn is_of_other_type(&self) -> bool {
        self.is_of_type
    }
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot feed `{}`: {}", self.endpoint, self.why)
    }
}

impl core::error::Error for FeedError {}
