//! The regions of a domain, and one epoch of them on one thread.
//!
//! Between epochs the coordinator has all of this alone. During an epoch that several work on, each
//! region is behind its lock: who runs it holds it, and who has run a region before it in compiled
//! order takes it for a moment to deliver something. A region is not run before all that deliver to
//! it have ended, so nobody ever waits long.

use std::sync::{Mutex, MutexGuard, PoisonError};

use clockjack_sync::mutant;

use super::{
    env::Env,
    message::Meta,
    region::{Downstream, Region},
    report::Fault,
    trace::{Glance, Lines},
    turn::Turn,
};
use crate::data::Value;

/// The regions of a domain, in compiled order, and what they see of an epoch.
pub(crate) struct Core {
    pub(crate) regions: Vec<Mutex<Region>>,
    pub(crate) env: Env,
    /// For each lane of the plan, whether its components are called in this epoch.
    pub(crate) is_due: Vec<bool>,
    /// What regions have to tell that one worker has run, in an epoch with a trace.
    pub(crate) lines: Box<Lines>,
}

/// What came of an epoch.
pub(crate) type Outcome = super::crew::Outcome<Fault>;

impl Core {
    /// Runs all regions, one after the other.
    pub(crate) fn run_in_order(&mut self) -> Outcome {
        if self.env.is_plain() { self.run_each::<true>() } else { self.run_each::<false>() }
    }

    /// The same, of an epoch that is [plain](Env::is_plain) or not: one in which nothing is written
    /// down does not ask for each call whether it is to be.
    fn run_each<const IS_PLAIN: bool>(&mut self) -> Outcome {
        let (mut n_called, mut first_fault) = (0, None);
        let mut glance = Glance::default();
        let env = &self.env;
        if is_over(env) {
            return Outcome { overlap: 1, ..Outcome::default() };
        }
        let is_all_due = self.is_due.iter().all(|is_due| *is_due);
        let (mut first, mut rest) = (0, self.regions.as_mut_slice());
        while let Some((region, after)) = rest.split_first_mut() {
            first += 1;
            let region = own(region);
            if is_all_due || self.is_due[region.lane] {
                let regions = &mut *after;
                let downstream = InOrder::<'_, IS_PLAIN> { first, regions, glance: &mut glance };
                if !IS_PLAIN {
                    lend(&mut self.lines, region);
                }
                let stepped = region.step(env, downstream);
                if !IS_PLAIN {
                    core::mem::swap(&mut self.lines, &mut region.recorder.lines);
                }
                match stepped {
                    Ok(0) => {}
                    Ok(in_this) => {
                        n_called += u64::from(in_this);
                        if is_over(env) {
                            lend(&mut self.lines, region);
                            region.was_asked_to_stop(env);
                            core::mem::swap(&mut self.lines, &mut region.recorder.lines);
                            break;
                        }
                    }
                    Err(fault) => {
                        first_fault = Some((first - 1, fault));
                        break;
                    }
                }
            }
            rest = after;
        }
        let n_faults = usize::from(core::mem::take(self.env.has_faults.get_mut()));
        Outcome { n_called, fault: first_fault, overlap: 1, n_faults }
    }

    /// Lays together what regions have to tell that several have run, in compiled order.
    pub(crate) fn gather_lines(&mut self) {
        for region in &mut self.regions {
            self.lines.append(&mut own(region).recorder.lines);
        }
    }

    /// Runs one region, while others may run others.
    pub(crate) fn run_one(&self, position: usize, worker: u16) -> Result<u32, Fault> {
        let turn = Turn::of(super::wiring::count(position));
        let _turn = turn.begin(&self.env.has_counted);
        let mut region = lock(&self.regions[position]);
        region.recorder.worker = worker;
        let downstream = Beside { regions: &self.regions, glance: Glance::default() };
        let result = region.step(&self.env, downstream);
        if self.env.is_stopping() && result.as_ref().is_ok_and(|n_called| *n_called > 0) {
            region.was_asked_to_stop(&self.env);
        }
        result
    }
}

/// Lets a region write where others have written before it.
#[inline]
fn lend(lines: &mut Box<Lines>, region: &mut Region) {
    lines.begin();
    core::mem::swap(lines, &mut region.recorder.lines);
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
struct InOrder<'a, const IS_PLAIN: bool> {
    first: usize,
    regions: &'a mut [Mutex<Region>],
    glance: &'a mut Glance,
}

impl<const IS_PLAIN: bool> Downstream for InOrder<'_, IS_PLAIN> {
    const IS_PLAIN: bool = IS_PLAIN;

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
    const IS_PLAIN: bool = false;

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
