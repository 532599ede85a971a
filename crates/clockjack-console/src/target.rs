//! [`Target`]: what is looked at.

use core::fmt;
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use clockjack_actor::{ActorPath, ActorSystem, system::UncountedSystem};
use clockjack_exec::Handle;
use clockjack_graph::{
    GraphRun, Stopper,
    picture::{Fold, Picture, svg},
};
use clockjack_rt::{BlockingStats, Runtime, RuntimeMetrics};

use crate::{
    findings::Thresholds,
    state::{Log, State},
};

/// A system that is looked at, with its runtime if it has one, and the graphs that the program
/// shows. Cheap to clone; all clones show the same. It does not keep the runtime running, and
/// [`Runtime::run`] ends in spite of it.
#[derive(Clone)]
pub struct Target(Arc<Inner>);

struct Inner {
    /// Uncounted: a program whose last actor has failed ends although it is looked at.
    system: UncountedSystem,
    runtime: Option<RuntimeMetrics>,
    graphs: Mutex<Vec<ShownGraph>>,
    thresholds: Mutex<Thresholds>,
    names: Mutex<Option<NamesFn>>,
    state: Mutex<State>,
    /// Apart from the state, because a handler writes it and must not wait for an inspection.
    log: Arc<Mutex<Log>>,
}

/// A graph that the program shows.
#[derive(Clone)]
struct ShownGraph {
    name: String,
    run: Stopper,
    /// The drawing of its plan, once somebody has asked for it.
    svg: Arc<OnceLock<String>>,
}

/// How the path of an actor is shown.
pub(crate) type NamesFn = fn(&ActorPath) -> Cow<'_, str>;

/// The most graphs that are shown.
const GRAPHS_MAX: usize = 64;

impl Target {
    /// The system of a runtime.
    #[must_use]
    pub fn of(runtime: &Runtime) -> Self {
        Self::new(runtime.system(), Some(runtime.metrics()))
    }

    /// A system on any host.
    #[must_use]
    pub fn of_system(system: &ActorSystem) -> Self {
        Self::new(system, None)
    }

    fn new(system: &ActorSystem, runtime: Option<RuntimeMetrics>) -> Self {
        Self(Arc::new(Inner {
            system: system.uncounted(),
            runtime,
            graphs: Mutex::default(),
            thresholds: Mutex::default(),
            names: Mutex::default(),
            state: Mutex::default(),
            log: Arc::default(),
        }))
    }

    /// The system.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        &self.0.system
    }

    /// The time of the system's clock, read now, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.0.system.executor().nanos()
    }

    /// Shows a graph under a name; one of the same name is shown no more. Of more than 64 graphs,
    /// those that were added last are shown.
    pub fn add_graph(&self, name: &str, run: &GraphRun) {
        let mut graphs = lock(&self.0.graphs);
        graphs.retain(|other| other.name != name);
        if graphs.len() == GRAPHS_MAX {
            graphs.remove(0);
        }
        graphs.push(ShownGraph { name: name.to_owned(), run: run.stopper(), svg: Arc::default() });
        graphs.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Shows the graph of this name no more.
    pub fn remove_graph(&self, name: &str) {
        lock(&self.0.graphs).retain(|other| other.name != name);
    }

    /// From which numbers on something is a finding.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        lock(&self.0.thresholds).clone()
    }

    /// Sets from which numbers on something is a finding.
    pub fn set_thresholds(&self, thresholds: Thresholds) {
        *lock(&self.0.thresholds) = thresholds;
    }

    /// How paths are shown, if a server hides some: filters look at what is shown.
    pub(crate) fn names(&self) -> MutexGuard<'_, Option<NamesFn>> {
        lock(&self.0.names)
    }

    /// The executors, with their names.
    pub(crate) fn executors(&self) -> Vec<(String, Handle)> {
        match &self.0.runtime {
            Some(runtime) => runtime.executors(),
            None => vec![("system".to_owned(), self.0.system.executor())],
        }
    }

    /// The runtime, if the system has one.
    pub(crate) fn runtime(&self) -> Option<&RuntimeMetrics> {
        self.0.runtime.as_ref()
    }

    /// The threads for blocking work, and how many there may be.
    pub(crate) fn blocking(&self) -> Option<(BlockingStats, usize)> {
        self.runtime().map(RuntimeMetrics::blocking)
    }

    pub(crate) fn graphs(&self) -> Vec<(String, Stopper)> {
        lock(&self.0.graphs).iter().map(|one| (one.name.clone(), one.run.clone())).collect()
    }

    /// The drawing of the graph of this name, as `clockjack render --format svg` draws it.
    pub(crate) fn graph_svg(&self, name: &str) -> Option<String> {
        let found = lock(&self.0.graphs).iter().find(|one| one.name == name).cloned()?;
        // Without the lock, because the layout of a large graph takes a while.
        let draw = || svg::draw(&Picture::of(found.run.plan()), Fold::Auto);
        Some(found.svg.get_or_init(draw).clone())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.0.log)
    }

    pub(crate) fn shared_log(&self) -> &Arc<Mutex<Log>> {
        &self.0.log
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks leaves the state inconsistent when it panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("system", &self.0.system.name()).finish_non_exhaustive()
    }
}
