//! Either host, for workloads that run on both.

use clockjack_actor::{ActorSystem, StartError, SystemBuilder};

use crate::{
    context::SimContext,
    host::{multi_worker::MultiWorkerHost, single_thread::SingleThreadHost},
    invariant::Invariant,
};

/// How often the end of a shutdown is polled, and the time between two polls in ticks.
const SHUTDOWN_POLLS: u64 = 400;
const SHUTDOWN_POLL_TICKS: u64 = 25;

/// A host with one thread, or with several workers.
#[derive(Debug)]
pub(crate) enum AnyHost {
    One(Box<SingleThreadHost>),
    Many(MultiWorkerHost),
}

impl AnyHost {
    /// Starts a system with this many workers; zero selects the host with one thread.
    pub(crate) fn start(
        sim: &SimContext,
        builder: SystemBuilder,
        n_workers: usize,
    ) -> Result<Self, StartError> {
        if n_workers == 0 {
            SingleThreadHost::start(sim, builder).map(|host| Self::One(Box::new(host)))
        } else {
            MultiWorkerHost::start(sim, builder, n_workers).map(Self::Many)
        }
    }

    pub(crate) fn system(&self) -> &ActorSystem {
        match self {
            Self::One(host) => host.system(),
            Self::Many(host) => host.system(),
        }
    }

    pub(crate) fn advance(&mut self, ticks: u64) {
        match self {
            Self::One(host) => host.advance(ticks),
            Self::Many(host) => host.advance(ticks),
        }
    }

    /// Delivers the ticks that the driver has held back.
    pub(crate) fn deliver_ticks(&mut self) {
        if let Self::One(host) = self {
            host.deliver_ticks();
        }
    }

    pub(crate) fn run_until_idle(&mut self) -> bool {
        match self {
            Self::One(host) => host.run_until_idle(),
            Self::Many(host) => host.run_until_idle(),
        }
    }

    pub(crate) fn step_if_woken(&mut self) {
        match self {
            Self::One(host) => host.step_if_woken(),
            Self::Many(host) => host.step_if_woken(),
        }
    }

    pub(crate) fn check_idle_state(&self) {
        match self {
            Self::One(host) => host.check_idle_state(),
            Self::Many(host) => host.check_idle_state(),
        }
    }

    /// Shuts the system down and checks the result.
    pub(crate) fn shutdown(&mut self, sim: &SimContext) {
        let end = self.system().shutdown();
        sim.record("terminate", &[sim.now()]);
        for _ in 0..SHUTDOWN_POLLS {
            self.deliver_ticks();
            let is_idle = self.run_until_idle();
            if let Some(report) = end.report() {
                sim.check(Invariant::S2, report.is_clean(), || format!("{report:?}"));
                // Some objects are dropped after the report.
                for _ in 0..SHUTDOWN_POLLS {
                    self.deliver_ticks();
                    if self.run_until_idle() {
                        break;
                    }
                }
                let live = self.system().metrics().live as u64;
                return sim.check_equal(Invariant::S2, "live actors", live, 0);
            }
            // Time advances only if the system is idle, so that delayed wake-ups cannot cause a
            // timeout.
            if is_idle {
                self.advance(SHUTDOWN_POLL_TICKS);
            }
        }
        sim.check(Invariant::S2, false, || "the system does not shut down".into());
    }
}
