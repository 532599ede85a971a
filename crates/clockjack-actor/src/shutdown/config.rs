//! Which phases there are, which wait for which, and how long each may take.
//!
//! The order is one of the orders that the dependencies allow, always the same one: of the phases
//! that could come next the one defined first comes next. Only `actor-system-terminate` stands
//! back for any other, because after it there is no system to run anything on.

use alloc::{vec, vec::Vec};
use core::{fmt, time::Duration};

/// How long a phase may take if nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The same for phases that wait for others to leave or to stop.
const TIMEOUT_LONG: Duration = Duration::from_secs(10);

/// The name of a step of the shutdown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phase(&'static str);

impl Phase {
    /// The first of the defaults: tasks of the application that come before all others.
    pub const BEFORE_SERVICE_UNBIND: Self = Self("before-service-unbind");
    /// Stop accepting new connections.
    pub const SERVICE_UNBIND: Self = Self("service-unbind");
    /// Wait for requests in progress.
    pub const SERVICE_REQUESTS_DONE: Self = Self("service-requests-done");
    /// Close what is left of the service.
    pub const SERVICE_STOP: Self = Self("service-stop");
    /// Tasks of the application before the cluster is left.
    pub const BEFORE_CLUSTER_SHUTDOWN: Self = Self("before-cluster-shutdown");
    /// Hand shards over.
    pub const CLUSTER_SHARDING_SHUTDOWN_REGION: Self = Self("cluster-sharding-shutdown-region");
    /// Announce the leave.
    pub const CLUSTER_LEAVE: Self = Self("cluster-leave");
    /// Wait until the others know.
    pub const CLUSTER_EXITING: Self = Self("cluster-exiting");
    /// Say that the exit is complete.
    pub const CLUSTER_EXITING_DONE: Self = Self("cluster-exiting-done");
    /// Stop the cluster's own parts.
    pub const CLUSTER_SHUTDOWN: Self = Self("cluster-shutdown");
    /// Tasks of the application before the system ends.
    pub const BEFORE_ACTOR_SYSTEM_TERMINATE: Self = Self("before-actor-system-terminate");
    /// The last one: the system itself ends.
    pub const ACTOR_SYSTEM_TERMINATE: Self = Self("actor-system-terminate");

    /// The twelve phases that there are by default, in their order.
    pub const DEFAULTS: [Self; 12] = [
        Self::BEFORE_SERVICE_UNBIND,
        Self::SERVICE_UNBIND,
        Self::SERVICE_REQUESTS_DONE,
        Self::SERVICE_STOP,
        Self::BEFORE_CLUSTER_SHUTDOWN,
        Self::CLUSTER_SHARDING_SHUTDOWN_REGION,
        Self::CLUSTER_LEAVE,
        Self::CLUSTER_EXITING,
        Self::CLUSTER_EXITING_DONE,
        Self::CLUSTER_SHUTDOWN,
        Self::BEFORE_ACTOR_SYSTEM_TERMINATE,
        Self::ACTOR_SYSTEM_TERMINATE,
    ];

    /// A phase of one's own. It exists once a [`ShutdownConfig`] defines or mentions it.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// Its name.
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

/// One phase: what it waits for and what happens if it goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseConfig {
    /// Which phase.
    pub phase: Phase,
    /// The phases that must be over before this one begins.
    pub depends_on: Vec<Phase>,
    /// How long its tasks have, all together. [`Duration::MAX`] is for ever.
    pub timeout: Duration,
    /// Whether the shutdown goes on after a failure or a time-out here.
    pub recover: bool,
    /// Whether its tasks run at all.
    pub enabled: bool,
}

impl PhaseConfig {
    /// A phase that waits for nothing, has 5 s, recovers and is enabled.
    #[must_use]
    pub const fn new(phase: Phase) -> Self {
        Self { phase, depends_on: Vec::new(), timeout: TIMEOUT, recover: true, enabled: true }
    }

    /// The same, beginning after these.
    #[must_use]
    pub fn after(mut self, phases: &[Phase]) -> Self {
        self.depends_on.extend_from_slice(phases);
        self
    }
}

/// The phases of a shutdown and its relation to the end of the system.
///
/// # Examples
///
/// A phase of one's own between two of the defaults:
///
/// ```
/// use clockjack_actor::shutdown::{Phase, PhaseConfig, ShutdownConfig};
///
/// const DRAIN: Phase = Phase::named("drain");
/// let mut config = ShutdownConfig::default();
/// config.phases.push(PhaseConfig::new(DRAIN).after(&[Phase::SERVICE_UNBIND]));
/// config.phase_mut(Phase::SERVICE_STOP).expect("a default").depends_on.push(DRAIN);
/// config.validate()?;
/// # Ok::<(), clockjack_actor::shutdown::ShutdownConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownConfig {
    /// The phases, in any order. One that is only mentioned in `depends_on` counts as well, as
    /// [`PhaseConfig::new`] makes it.
    pub phases: Vec<PhaseConfig>,
    /// Whether `actor-system-terminate` ends the system.
    pub terminate_actor_system: bool,
    /// Whether ending the system runs the phases first.
    pub run_by_actor_system_terminate: bool,
}

impl ShutdownConfig {
    /// The definition of a phase, to be changed; none if it is not defined here.
    #[must_use]
    pub fn phase_mut(&mut self, phase: Phase) -> Option<&mut PhaseConfig> {
        self.phases.iter_mut().find(|config| config.phase == phase)
    }

    /// Whether this can be carried out.
    ///
    /// # Errors
    ///
    /// If phases wait for each other in a circle, if a phase is defined twice or has no name, or if
    /// ending the system would run phases of which none ends it: that would never come to an end.
    pub fn validate(&self) -> Result<(), ShutdownConfigError> {
        self.in_order().map(drop)
    }

    /// The phases in the order in which they run.
    ///
    /// # Errors
    ///
    /// As [`validate`](Self::validate).
    pub fn in_order(&self) -> Result<Vec<PhaseConfig>, ShutdownConfigError> {
        if self.run_by_actor_system_terminate && !self.terminate_actor_system {
            return Err(ShutdownConfigError(Fault::NeverTerminates));
        }
        let mut known = self.known()?;
        let last = known.iter().find(|config| config.phase == Phase::ACTOR_SYSTEM_TERMINATE);
        if self.terminate_actor_system && !last.is_some_and(|config| config.enabled) {
            return Err(ShutdownConfigError(Fault::NoLastPhase));
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
                return Err(ShutdownConfigError(Fault::Cycle(cycle(&known))));
            };
            order.push(known.remove(index));
        }
        Ok(order)
    }

    /// All phases, defined or mentioned; one that is mentioned stands before who mentions it first.
    fn known(&self) -> Result<Vec<PhaseConfig>, ShutdownConfigError> {
        let mut known: Vec<PhaseConfig> = Vec::with_capacity(self.phases.len());
        for config in &self.phases {
            for &phase in &config.depends_on {
                let is_known = self.phases.iter().chain(&known).any(|other| other.phase == phase);
                if !is_known {
                    known.push(PhaseConfig::new(phase));
                }
            }
            if known.iter().any(|other| other.phase == config.phase) {
                return Err(ShutdownConfigError(Fault::Twice(config.phase)));
            }
            known.push(config.clone());
        }
        if known.iter().any(|config| config.phase.name().is_empty()) {
            return Err(ShutdownConfigError(Fault::Unnamed));
        }
        Ok(known)
    }
}

impl Default for ShutdownConfig {
    /// The twelve phases, one after the other. Ending the system runs them, the last one ends it.
    fn default() -> Self {
        let mut phases: Vec<_> = Phase::DEFAULTS.into_iter().map(PhaseConfig::new).collect();
        let befores = Phase::DEFAULTS.into_iter();
        for (config, before) in phases.iter_mut().skip(1).zip(befores) {
            config.depends_on = vec![before];
        }
        let longs = [
            Phase::CLUSTER_SHARDING_SHUTDOWN_REGION,
            Phase::CLUSTER_EXITING,
            Phase::ACTOR_SYSTEM_TERMINATE,
        ];
        for config in phases.iter_mut().filter(|config| longs.contains(&config.phase)) {
            config.timeout = TIMEOUT_LONG;
        }
        Self { phases, terminate_actor_system: true, run_by_actor_system_terminate: true }
    }
}

/// A [`ShutdownConfig`] that cannot be carried out. Trying again does not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownConfigError(Fault);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    Cycle(Vec<Phase>),
    Twice(Phase),
    Unnamed,
    NeverTerminates,
    NoLastPhase,
}

impl ShutdownConfigError {
    /// The phases that wait for each other, each for the next and the last for the first; empty if
    /// the fault is another one.
    #[must_use]
    pub fn cycle(&self) -> &[Phase] {
        if let Fault::Cycle(phases) = &self.0 { phases } else { &[] }
    }

    /// Whether the end of the system was to run phases of which none ends it.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        matches!(self.0, Fault::NeverTerminates | Fault::NoLastPhase)
    }
}

impl fmt::Display for ShutdownConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Fault::Cycle(phases) => {
                f.write_str("phases wait for each other: ")?;
                phases.iter().try_for_each(|phase| write!(f, "`{phase}` after "))?;
                phases.first().map_or(Ok(()), |first| write!(f, "`{first}`"))
            }
            Fault::Twice(phase) => write!(f, "phase `{phase}` is defined twice"),
            Fault::Unnamed => f.write_str("a phase has an empty name"),
            Fault::NeverTerminates => f.write_str(
                "`run_by_actor_system_terminate` is on and `terminate_actor_system` is off: \
                 the system would never end",
            ),
            Fault::NoLastPhase => write!(
                f,
                "`terminate_actor_system` is on, but phase `{}` is missing or disabled",
                Phase::ACTOR_SYSTEM_TERMINATE
            ),
        }
    }
}

impl core::error::Error for ShutdownConfigError {}

/// A circle among phases each of which waits for another one of them.
fn cycle(stuck: &[PhaseConfig]) -> Vec<Phase> {
    let mut walk: Vec<Phase> = Vec::new();
    let mut at = stuck.first();
    // Each step goes to a phase that is stuck too, so it ends where it has been before.
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
