//! The configuration of a shutdown: phases, their dependencies and their time-outs.
//!
//! The sort repeatedly takes a phase without pending dependencies (Kahn, "Topological sorting of
//! large networks", 1962).
//!
//! The order is a topological order of the dependencies, and always the same one: of the phases
//! that could run next, the one that was defined first runs next. Only `actor-system-terminate`
//! runs after all other phases that could run, because there is no system left after it.

use alloc::{vec, vec::Vec};
use core::{fmt, time::Duration};

/// The default time-out of a phase.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The default time-out of the last phase, which waits for all actors to stop.
const TIMEOUT_TERMINATE: Duration = Duration::from_secs(10);

/// A phase of the shutdown, identified by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phase(&'static str);

impl Phase {
    /// The first default phase: tasks of the application that come before all others.
    pub const BEFORE_SERVICE_UNBIND: Self = Self("before-service-unbind");
    /// Stop accepting new connections.
    pub const SERVICE_UNBIND: Self = Self("service-unbind");
    /// Wait for requests in progress.
    pub const SERVICE_REQUESTS_DONE: Self = Self("service-requests-done");
    /// Close the remaining connections of the service.
    pub const SERVICE_STOP: Self = Self("service-stop");
    /// Tasks of the application before the system terminates.
    pub const BEFORE_ACTOR_SYSTEM_TERMINATE: Self = Self("before-actor-system-terminate");
    /// The last default phase: the actor system terminates.
    pub const ACTOR_SYSTEM_TERMINATE: Self = Self("actor-system-terminate");

    /// The six default phases, in order.
    pub const DEFAULTS: [Self; 6] = [
        Self::BEFORE_SERVICE_UNBIND,
        Self::SERVICE_UNBIND,
        Self::SERVICE_REQUESTS_DONE,
        Self::SERVICE_STOP,
        Self::BEFORE_ACTOR_SYSTEM_TERMINATE,
        Self::ACTOR_SYSTEM_TERMINATE,
    ];

    /// A custom phase. It exists if a [`ShutdownConfig`] defines or mentions it.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// The name of the phase.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The configuration of one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseConfig {
    /// Which phase.
    pub phase: Phase,
    /// The phases that must be over before this one begins.
    pub depends_on: Vec<Phase>,
    /// The time-out for all tasks of the phase together. [`Duration::MAX`] means no time-out.
    pub timeout: Duration,
    /// Whether the shutdown continues after a failure or a time-out in this phase.
    pub recover: bool,
    /// Whether the tasks of this phase run at all.
    pub enabled: bool,
}

impl PhaseConfig {
    /// A phase without dependencies, with a time-out of 5 s, that recovers and is enabled.
    #[must_use]
    pub const fn new(phase: Phase) -> Self {
        Self { phase, depends_on: Vec::new(), timeout: TIMEOUT, recover: true, enabled: true }
    }

    /// Adds dependencies: the phase begins after these phases.
    #[must_use]
    pub fn after(mut self, phases: &[Phase]) -> Self {
        self.depends_on.extend_from_slice(phases);
        self
    }
}

/// The phases of a shutdown, and whether it terminates the system.
///
/// # Examples
///
/// A custom phase between two of the defaults:
///
/// ```
/// use clockjack_actor::shutdown::{Phase, PhaseConfig, ShutdownConfig};
///
/// const DRAIN: Phase = Phase::named("drain");
/// let mut config = ShutdownConfig::default();
/// config.phases.push(PhaseConfig::new(DRAIN).after(&[Phase::SERVICE_UNBIND]));
/// config.phase_mut(Phase::SERVICE_STOP).expect("a default").depends_on.push(DRAIN);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownConfig {
    /// The phases, in any order. A phase that is only mentioned in a `depends_on` counts as well,
    /// with the settings of [`PhaseConfig::new`].
    pub phases: Vec<PhaseConfig>,
    /// Whether the phase `actor-system-terminate` terminates the system.
    pub terminate_actor_system: bool,
    /// Whether terminating the system runs the phases first.
    pub run_by_actor_system_terminate: bool,
}

impl ShutdownConfig {
    /// The configuration of a phase, for changes; `None` if the phase is not defined here.
    #[must_use]
    pub fn phase_mut(&mut self, phase: Phase) -> Option<&mut PhaseConfig> {
        self.phases.iter_mut().find(|config| config.phase == phase)
    }

    /// The phases in the order in which they run. Fails if the dependencies have a cycle, if a
    /// phase is defined twice or has an empty name, or if a shutdown would run phases none of which
    /// stops the actors: the shutdown would never complete.
    pub(crate) fn in_order(&self) -> Result<Vec<PhaseConfig>, InvalidConfig> {
        if self.run_by_actor_system_terminate && !self.terminate_actor_system {
            return Err(InvalidConfig::NeverTerminates);
        }
        let mut known = self.known()?;
        let last = known.iter().find(|config| config.phase == Phase::ACTOR_SYSTEM_TERMINATE);
        if self.terminate_actor_system && !last.is_some_and(|config| config.enabled) {
            return Err(InvalidConfig::NoLastPhase);
        }
        let mut order: Vec<PhaseConfig> = Vec::with_capacity(known.len());
        while !known.is_empty() {
            let is_ready = |config: &PhaseConfig| {
                !config.depends_on.iter().any(|on| known.iter().any(|left| left.phase == *on))
            };
            let ready = known.iter().enumerate().filter(|(_, config)| is_ready(config));
            let next =
                ready.min_by_key(|(_, config)| config.phase == Phase::ACTOR_SYSTEM_TERMINATE);
            let Some((index, _)) = next else {
                return Err(InvalidConfig::Cycle(cycle(&known)));
            };
            order.push(known.remove(index));
        }
        Ok(order)
    }

    /// All phases, defined or mentioned. A mentioned phase comes directly before the phase that
    /// mentions it first.
    fn known(&self) -> Result<Vec<PhaseConfig>, InvalidConfig> {
        let mut known: Vec<PhaseConfig> = Vec::with_capacity(self.phases.len());
        for config in &self.phases {
            for &phase in &config.depends_on {
                let is_known = self.phases.iter().chain(&known).any(|other| other.phase == phase);
                if !is_known {
                    known.push(PhaseConfig::new(phase));
                }
            }
            if known.iter().any(|other| other.phase == config.phase) {
                return Err(InvalidConfig::Twice(config.phase));
            }
            known.push(config.clone());
        }
        if known.iter().any(|config| config.phase.name().is_empty()) {
            return Err(InvalidConfig::Unnamed);
        }
        Ok(known)
    }
}

impl Default for ShutdownConfig {
    /// The six default phases, one after the other. Terminating the system runs them, and the
    /// last one terminates it.
    fn default() -> Self {
        let mut phases: Vec<_> = Phase::DEFAULTS.into_iter().map(PhaseConfig::new).collect();
        let befores = Phase::DEFAULTS.into_iter();
        for (config, before) in phases.iter_mut().skip(1).zip(befores) {
            config.depends_on = vec![before];
        }
        if let Some(last) = phases.last_mut() {
            last.timeout = TIMEOUT_TERMINATE;
        }
        Self { phases, terminate_actor_system: true, run_by_actor_system_terminate: true }
    }
}

/// Why a [`ShutdownConfig`] is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InvalidConfig {
    /// Each phase depends on the next, and the last one on the first.
    Cycle(Vec<Phase>),
    Twice(Phase),
    Unnamed,
    NeverTerminates,
    NoLastPhase,
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle(phases) => {
                f.write_str("phases depend on each other: ")?;
                phases.iter().try_for_each(|phase| write!(f, "`{phase}` after "))?;
                phases.first().map_or(Ok(()), |first| write!(f, "`{first}`"))
            }
            Self::Twice(phase) => write!(f, "phase `{phase}` is defined twice"),
            Self::Unnamed => f.write_str("a phase has an empty name"),
            Self::NeverTerminates => f.write_str(
                "`run_by_actor_system_terminate` is on and `terminate_actor_system` is off: \
                 the system would never terminate",
            ),
            Self::NoLastPhase => write!(
                f,
                "`terminate_actor_system` is on, but phase `{}` is missing or disabled",
                Phase::ACTOR_SYSTEM_TERMINATE
            ),
        }
    }
}

/// Finds a dependency cycle among phases each of which depends on another one of them.
fn cycle(stuck: &[PhaseConfig]) -> Vec<Phase> {
    let mut walk: Vec<Phase> = Vec::new();
    let mut at = stuck.first();
    // Each step goes to another blocked phase, so the walk reaches a phase that it has visited
    // before.
    while let Some(config) = at {
        if let Some(begin) = walk.iter().position(|phase| *phase == config.phase) {
            return walk.split_off(begin);
        }
        walk.push(config.phase);
        let is_awaited = |other: &&PhaseConfig| config.depends_on.contains(&other.phase);
        at = stuck.iter().find(is_awaited);
    }
    walk
}
