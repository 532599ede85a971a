//! The regions of a domain, and one epoch of them on one thread.
//!
//! Between epochs the coordinator has all of this alone. During an epoch that several work on, each
//! region is behind its lock: who runs it holds it, and who has run a region before it in compiled
//! order takes it for a moment to deliver something. A region is not run before all that deliver to
//! it have ended, so nobody ever waits long.

use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clockjack_sync::mutant;

use super::env::Env;
use super::message::Meta;
use super::region::{Downstream, Region};
use super::report::Fault;
use super::trace::Glance;
use super::turn::Turn;
use crate::data::Value;

/// The regions of a domain, in compiled order, and what they see of an epoch.
pub(crate) struct Core {
    pub(crate) regions: Vec<Mutex<Region>>,
    pub(crate) env: Env,
    /// For each lane of the plan, whether its components are called in this epoch.
    pub(crate) is_due: Vec<bool>,
}

/// What came of an epoch.
pub(crate) type Outcome = super::crew::Outcome<Fault>;

impl Core {
    /// Runs all regions, one after the other.
    pub(crate) fn run_in_order(&mut self) -> Outcome {
        let (mut n_called, mut n_faults, mut first_fault) = (0, 0, None);
        let mut glance = Glance::default();
        let (env, regions) = (&self.env, self.regions.as_mut_slice());
        if is_over(env) {
            return Outcome { overlap: 1, ..Outcome::default() };
        }
        for position in 0..regions.len() {
            let (before, after) = regions.split_at_mut(position + 1);
            let region = own(&mut before[position]);
            if !self.is_due[region.lane] {
                continue;
            }
            let first = position + 1;
            let mut downstream = InOrder { first, regions: after, glance: &mut glance };
            match region.step(env, &mut downstream) {
                Ok(in_this) => {
                    n_called += u64::from(in_this);
                    n_faults += region.faults.len();
                    if in_this > 0 && is_over(env) {
                        region.was_asked_to_stop(env);
                        break;
                    }
                }
                Err(fault) => {
                    n_faults += region.faults.len();
                    first_fault = Some((position, fault));
                    break;
                }
            }
        }
        Outcome { n_called, fault: first_fault, overlap: 1, n_faults }
    }

    /// Runs one region, while others may run others.
    pub(crate) fn run_one(&self, position: usize, worker: u16) -> Result<u32, Fault> {
        let turn = Turn::of(super::wiring::count(position));
        let _turn = turn.begin(&self.env.has_counted);
        let mut region = lock(&self.regions[position]);
        region.recorder.worker = worker;
        let mut downstream = Beside { regions: &self.regions, glance: Glance::default() };
        let result = region.step(&self.env, &mut downstream);
        if self.env.is_stopping() && result.as_ref().is_ok_and(|n_called| *n_called > 0) {
            region.was_asked_to_stop(&self.env);
        }
        result
    }
}

/// Whether an epoch is not to go on. It is asked after each region that had something to do: what
/// nobody was called for takes no time.
#[inline]
fn is_over(env: &Env) -> bool {
    env.is_stopping() && !mutant!("epoch-goes-on-when-stopped")
}

/// A region that nobody else has.
pub(crate) fn own(region: &mut Mutex<Region>) -> &mut Region {
    region.get_mut().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn lock(region: &Mutex<Region>) -> MutexGuard<'_, Region> {
    region.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The regions after the one that runs.
struct InOrder<'a> {
    first: usize,
    regions: &'a mut [Mutex<Region>],
    glance: &'a mut Glance,
}

impl Downstream for InOrder<'_> {
    #[inline(always)]
    fn deliver(
        &mut self,
        (region, channel): (u32, u32),
        now_ns: u64,
        value: Value,
        meta: &Meta,
    ) -> u64 {
        let to = own(&mut self.regions[region as usize - self.first]);
        put(to, channel, now_ns, value, meta)
    }

    fn room(&mut self, region: u32, channel: u32) -> u32 {
        own(&mut self.regions[region as usize - self.first]).channels[channel as usize].room()
    }

    fn glance(&mut self) -> &mut Glance {
        self.glance
    }
}

/// The regions, when others are at work on some of them.
struct Beside<'a> {
    regions: &'a [Mutex<Region>],
    glance: Glance,
}

impl Downstream for Beside<'_> {
    fn deliver(
        &mut self,
        (region, channel): (u32, u32),
        now_ns: u64,
        value: Value,
        meta: &Meta,
    ) -> u64 {
        put(&mut lock(&self.regions[region as usize]), channel, now_ns, value, meta)
    }

    fn room(&mut self, region: u32, channel: u32) -> u32 {
        lock(&self.regions[region as usize]).channels[channel as usize].room()
    }

    fn glance(&mut self) -> &mut Glance {
        &mut self.glance
    }
}

#[inline(always)]
fn put(region: &mut Region, channel: u32, now_ns: u64, value: Value, meta: &Meta) -> u64 {
    let channel = &mut region.channels[channel as usize];
    if !channel.put(now_ns, value, meta) {
        region.n_published.failed_commit += 1;
    }
    channel.counters().publish_count
}
