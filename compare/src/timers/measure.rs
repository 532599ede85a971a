//! One subject under one load, once, in fresh state. What repeats, rotates and takes medians is
//! the suite.

use core::hint::black_box;

use super::load::{ALL_DUE_MS, CHURN_OPS_PER_MS, CHURN_TIMEOUT_MS, Load, check_fired};
use super::subject::{Cancel, Case, Facts, Fired, Subject};
use crate::clock::Watch;
use crate::failure::Failure;
use crate::measure::{Cost, Mode, Spent};
use crate::selection::Named;
use crate::tally::{Counting, Tally};

/// Cases that are measured in one run, because one prepares the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    InsertCancel,
    Fire,
    Fire1ms,
    Churn,
}

impl Group {
    pub(crate) const ALL: [Self; 4] = [Self::InsertCancel, Self::Fire, Self::Fire1ms, Self::Churn];

    pub(crate) const fn cases(self) -> &'static [Case] {
        match self {
            Self::InsertCancel => &[Case::Insert, Case::Cancel],
            Self::Fire => &[Case::Fire],
            Self::Fire1ms => &[Case::Fire1ms],
            Self::Churn => &[Case::Churn],
        }
    }
}

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) group: Group,
    pub(crate) load: &'a Load,
    /// How often the operations of the load are done within the run.
    pub(crate) n_repeats: u32,
    pub(crate) n_churn_ops: u64,
    pub(crate) mode: Mode,
    pub(crate) watch: Watch,
}

/// The figures of a run for a case, per operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    pub(crate) case: Case,
    pub(crate) cost: Cost,
    /// Of an insert: CPU time while the store grows.
    pub(crate) first_ns: Option<f64>,
    /// Of an insert: CPU time into a store that was emptied in random order.
    pub(crate) scattered_ns: Option<f64>,
}

/// The memory of a subject, in bytes per timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint {
    /// With all timers armed.
    pub(crate) live: f64,
    /// With all of them cancelled.
    pub(crate) after_cancel: f64,
    /// With all of them armed once more, without advancing the clock.
    pub(crate) refilled: f64,
    /// The size of the key that the user holds; not part of the memory of the store.
    pub(crate) key_len: usize,
}

/// Runs a subject through one group of cases.
///
/// # Errors
///
/// If it fired the wrong timers.
pub(crate) fn run<S: Subject>(run: &Run<'_>) -> Result<Vec<Figure>, Failure> {
    match run.group {
        Group::InsertCancel => insert_cancel::<S>(run),
        Group::Fire => fire::<S>(run, Case::Fire, S::jump),
        Group::Fire1ms => fire::<S>(run, Case::Fire1ms, S::steps),
        Group::Churn => churn::<S>(run),
    }
}

/// Measures the memory of a subject and checks the property of its cancel.
///
/// # Errors
///
/// If a cancel that should free does not, or the other way round.
pub(crate) fn footprint<S: Subject>(load: &Load) -> Result<Footprint, Failure> {
    /// A store that reuses freed memory needs at most this factor for the second filling; one that
    /// does not needs about twice the memory of the first.
    const REUSED: f64 = 1.25;
    /// With fewer timers the fixed part of a store hides the memory per timer.
    const N_TELLING: u32 = 1_000;

    let mut keys = Vec::with_capacity(load.n as usize);
    let counting = Counting::begin();
    let bytes = || counting.tally().live_bytes as f64 / f64::from(load.n);
    let mut subject = S::new();
    let live = {
        insert_all(&mut subject, load, 0, &mut keys);
        bytes()
    };
    cancel_all(&mut subject, load.cancels.iter().copied(), &mut keys);
    let after_cancel = bytes();
    let refilled = {
        insert_all(&mut subject, load, 0, &mut keys);
        bytes()
    };
    drop(counting);
    cancel_all(&mut subject, load.cancels.iter().copied(), &mut keys);
    check_fired(&S::FACTS, subject.jump(ALL_DUE_MS), Fired::default())?;

    let claim = match S::FACTS.cancel {
        _ if load.n < N_TELLING => None,
        Cancel::Frees if refilled > live * REUSED => Some("a cancel that frees its entry"),
        Cancel::Lazy if refilled <= live * REUSED => Some("a cancel that frees nothing"),
        _ => None,
    };
    match claim {
        Some(claim) => Err(Failure::false_claim(S::FACTS.name, claim, live, refilled)),
        None => Ok(Footprint { live, after_cancel, refilled, key_len: size_of::<S::Key>() }),
    }
}

/// Inserts into, and cancels from, a store that was filled and emptied once.
///
/// The position of an entry in memory matters as much as the operation: a store that was emptied in
/// random order reuses its memory in random order. So three fillings are measured. The first grows
/// the store. It is emptied last in, first out, so that the second, which is `insert`, finds warm
/// memory in order and shows the operation itself. Then everything is cancelled in random order,
/// which is `cancel`, and the third filling reuses memory in that order.
fn insert_cancel<S: Subject>(run: &Run<'_>) -> Result<Vec<Figure>, Failure> {
    let Run { load, .. } = *run;
    let mut keys = Vec::with_capacity(load.n as usize);
    let mut firsts = Meter::new(run);
    let mut inserts = Meter::new(run);
    let mut cancels = Meter::new(run);
    let mut scattered = Meter::new(run);
    for _ in 0..run.n_repeats {
        let mut subject = S::new();
        let mut now_ms = 0;
        // A store that keeps cancelled entries removes them before the next filling, unmeasured:
        // otherwise its store would not be empty like the others.
        let settle = |subject: &mut S, now_ms| match S::FACTS.cancel {
            Cancel::Lazy => silence(subject, now_ms),
            Cancel::Frees => Ok(now_ms),
        };
        firsts.time(|| insert_all(&mut subject, load, now_ms, &mut keys));
        cancel_all(&mut subject, (0..load.n).rev(), &mut keys);
        now_ms = settle(&mut subject, now_ms)?;
        inserts.time(|| insert_all(&mut subject, load, now_ms, &mut keys));
        cancels.time(|| cancel_all(&mut subject, load.cancels.iter().copied(), &mut keys));
        now_ms = settle(&mut subject, now_ms)?;
        scattered.time(|| insert_all(&mut subject, load, now_ms, &mut keys));
        let fired = subject.jump(now_ms + ALL_DUE_MS);
        check_fired(&S::FACTS, fired, Load::fires(0..load.n))?;
        retire_all(&mut subject, &mut keys);
    }
    let n_ops = f64::from(load.n) * f64::from(run.n_repeats);
    Ok(vec![
        Figure {
            first_ns: Some(firsts.cpu_ns(n_ops)),
            scattered_ns: Some(scattered.cpu_ns(n_ops)),
            ..inserts.figure(Case::Insert, n_ops)
        },
        cancels.figure(Case::Cancel, n_ops),
    ])
}

/// Moves a store without live timers beyond all deadlines and checks that nothing fires.
fn silence<S: Subject>(subject: &mut S, now_ms: u64) -> Result<u64, Failure> {
    let later_ms = now_ms + ALL_DUE_MS;
    check_fired(&S::FACTS, subject.jump(later_ms), Fired::default())?;
    Ok(later_ms)
}

/// Fires all timers of a new store by `move_clock`.
fn fire<S: Subject>(
    run: &Run<'_>,
    case: Case,
    move_clock: fn(&mut S, u64) -> Fired,
) -> Result<Vec<Figure>, Failure> {
    let Run { load, .. } = *run;
    let mut keys = Vec::with_capacity(load.n as usize);
    let mut fires = Meter::new(run);
    for _ in 0..run.n_repeats {
        let mut subject = S::new();
        insert_all(&mut subject, load, 0, &mut keys);
        let fired = fires.time(|| black_box(move_clock(&mut subject, ALL_DUE_MS)));
        check_fired(&S::FACTS, fired, Load::fires(0..load.n))?;
        retire_all(&mut subject, &mut keys);
    }
    let n_ops = f64::from(load.n) * f64::from(run.n_repeats);
    Ok(vec![fires.figure(case, n_ops)])
}

/// Resident time-outs that are postponed again and again and never fire, like those of connections.
fn churn<S: Subject>(run: &Run<'_>) -> Result<Vec<Figure>, Failure> {
    let Run { load, n_churn_ops, .. } = *run;
    let end_ms = n_churn_ops / CHURN_OPS_PER_MS;
    assert!(end_ms < CHURN_TIMEOUT_MS, "{end_ms} ms of churn would let timers fire");
    let n_ids = u32::try_from(u64::from(load.n) + n_churn_ops).expect("ids are 32 bits wide");

    let mut subject = S::new();
    let mut keys: Vec<Option<S::Key>> = subject.within(|subject| {
        (0..load.n).map(|id| Some(subject.insert(CHURN_TIMEOUT_MS, id))).collect()
    });
    let mut owners: Vec<u32> = (0..load.n).collect();
    let mut turns = Meter::new(run);
    let early = turns.time(|| churn_all(&mut subject, load, n_ids, &mut keys));
    check_fired(&S::FACTS, early, Fired::default())?;

    // Which timers are armed is computed separately, so that the last jump can be checked.
    let mut victims = load.victims();
    for id in load.n..n_ids {
        owners[victims.below(load.n) as usize] = id;
    }
    let fired = subject.jump(end_ms + CHURN_TIMEOUT_MS + 1);
    check_fired(&S::FACTS, fired, Load::fires(owners.into_iter()))?;
    retire_all(&mut subject, &mut keys);
    Ok(vec![turns.figure(Case::Churn, n_churn_ops as f64)])
}

#[inline(never)]
fn insert_all<S: Subject>(
    subject: &mut S,
    load: &Load,
    now_ms: u64,
    keys: &mut Vec<Option<S::Key>>,
) {
    keys.clear();
    subject.within(|subject| {
        for (id, &deadline_ms) in (0..load.n).zip(&load.deadlines_ms) {
            keys.push(Some(subject.insert(now_ms + u64::from(deadline_ms), id)));
        }
    });
}

#[inline(never)]
fn cancel_all<S: Subject>(
    subject: &mut S,
    ids: impl Iterator<Item = u32>,
    keys: &mut [Option<S::Key>],
) {
    subject.within(|subject| {
        for id in ids {
            let key = keys[id as usize].take().expect("each timer is cancelled once");
            subject.cancel(key);
        }
    });
}

#[inline(never)]
fn churn_all<S: Subject>(
    subject: &mut S,
    load: &Load,
    n_ids: u32,
    keys: &mut [Option<S::Key>],
) -> Fired {
    subject.within(|subject| {
        let mut victims = load.victims();
        let mut fired = Fired::default();
        let mut now_ms = 0;
        let mut n_ops = 0;
        for id in load.n..n_ids {
            let victim = &mut keys[victims.below(load.n) as usize];
            subject.cancel(victim.take().expect("every place holds a timer"));
            *victim = Some(subject.insert(now_ms + CHURN_TIMEOUT_MS, id));
            n_ops += 1;
            if n_ops == CHURN_OPS_PER_MS {
                n_ops = 0;
                now_ms += 1;
                fired += subject.jump(now_ms);
            }
        }
        fired
    })
}

fn retire_all<S: Subject>(subject: &mut S, keys: &mut Vec<Option<S::Key>>) {
    for key in keys.drain(..).flatten() {
        subject.retire(key);
    }
}

/// Sums the timed parts of a run.
struct Meter {
    watch: Watch,
    mode: Mode,
    total: Spent,
}

impl Meter {
    fn new(run: &Run<'_>) -> Self {
        Self { watch: run.watch, mode: run.mode, total: Spent::default() }
    }

    fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let counting = (self.mode == Mode::Counted).then(Counting::begin);
        let (result, elapsed) = self.watch.time(work);
        let tally = counting.map_or(Tally::default(), |counting| counting.tally());
        self.total += Spent { elapsed, tally };
        result
    }

    fn figure(&self, case: Case, n_ops: f64) -> Figure {
        Figure { case, cost: self.total.per(n_ops), first_ns: None, scattered_ns: None }
    }

    fn cpu_ns(&self, n_ops: f64) -> f64 {
        self.total.per(n_ops).cpu_ns
    }
}

/// A subject without its type, so that all subjects are in one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) facts: Facts,
    pub(crate) run: fn(&Run<'_>) -> Result<Vec<Figure>, Failure>,
    pub(crate) footprint: fn(&Load) -> Result<Footprint, Failure>,
}

impl Entry {
    pub(crate) const fn of<S: Subject>() -> Self {
        Self { facts: S::FACTS, run: run::<S>, footprint: footprint::<S> }
    }

    /// The same, with the memory of another form of the store: one that can do more and needs more.
    pub(crate) const fn with_footprint_of<S: Subject>(self) -> Self {
        Self { footprint: footprint::<S>, ..self }
    }
}

impl Named for Entry {
    fn name(&self) -> &'static str {
        self.facts.name
    }
}
