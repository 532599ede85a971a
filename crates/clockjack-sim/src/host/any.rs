//! Either host, for workloads that are played on both.

use alloc::format;

use clockjack_actor::{ActorSystem, StartError, SystemBuilder};

use crate::{
    context::SimContext, host::multi_worker::MultiWorkerHost,
    host::single_thread::SingleThreadHost, invariant::Invariant,
};

/// How often the end of a system is looked for, and how long that is each time, in ticks.
const END_LOOKS: u64 = 400;
const END_TICKS: u64 = 25;

/// A host with one thread, or with several workers.
#[derive(Debug)]
pub(crate) enum AnyHost {
    One(SingleThreadHost),
    Many(MultiWorkerHost),
}

impl AnyHost {
    /// A system on so many workers; none: on one thread without any.
    pub(crate) fn start(
        sim: &SimContext,
        builder: SystemBuilder,
        seats: usize,
    ) -> Result<Self, StartError> {
        if seats == 0 {
            SingleThreadHost::start(sim, builder).map(Self::One)
        } else {
            MultiWorkerHost::start(sim, builder, seats).map(Self::Many)
        }
    }

    pub(crate) fn system(&self) -> &ActorSystem {
        match self {
            Self::One(host) => host.system(),
            Self::Many(host) => host.system(),
        }
    }

    pub(crate) fn pass(&mut self, ticks: u64) {
        match self {
            Self::One(host) => host.pass(ticks),
            Self::Many(host) => host.pass(ticks),
        }
    }

    /// What a driver has kept back comes.
    pub(crate) fn feed(&mut self) {
        if let Self::One(host) = self {
            host.feed();
        }
    }

    pub(crate) fn settle(&mut self) -> bool {
        match self {
            Self::One(host) => host.settle(),
            Self::Many(host) => host.settle(),
        }
    }

    pub(crate) fn turn_if_woken(&mut self) {
        match self {
            Self::One(host) => host.turn_if_woken(),
            Self::Many(host) => host.turn_if_woken(),
        }
    }

    pub(crate) fn check_quiet(&self) {
        match self {
            Self::One(host) => host.check_quiet(),
            Self::Many(host) => host.check_quiet(),
        }
    }

    /// Ends the system, and looks whether it has ended well.
    pub(crate) fn end(&mut self, sim: &SimContext) {
        let end = self.system().terminate();
        sim.note("terminate", &[sim.now()]);
        for _ in 0..END_LOOKS {
            self.feed();
            let is_quiet = self.settle();
            if let Some(report) = end.report() {
                sim.check(Invariant::S2, report.is_clean(), || format!("{report:?}"));
                // What has ended is let go of behind the report.
                for _ in 0..END_LOOKS {
                    self.feed();
                    if self.settle() {
                        break;
                    }
                }
                let live = self.system().metrics().live as u64;
                return sim.check_equal(Invariant::S2, "actors that are alive", live, 0);
            }
            // Time is up for those who could have ended, and not for those who are held back.
            if is_quiet {
                self.pass(END_TICKS);
            }
        }
        sim.check(Invariant::S2, false, || "the system does not end".into());
    }
}
