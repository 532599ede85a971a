//! The walk over all actors, in slices: the best rows for each order, and sums.

use std::collections::BTreeMap;

use clockjack_actor::inspect::{ActorStage, ActorView};
use clockjack_exec::Pid;

use super::{Place, Samples, float, float_of, seconds_between};
use crate::{
    Target,
    query::{Filter, Sort},
    target::NamesFn,
    view::{ActorRow, ActorState, Number, Sweep, Tag},
};

/// Rows that are kept for each order.
pub(crate) const KEPT: usize = 256;
/// Filters that are walked for at the same time.
const SELECTIONS_MAX: usize = 8;
/// Actors for whose children sums are made at the same time.
const TREES_MAX: usize = 8;
/// A filter or a tree is forgotten if nobody has asked for it for so long. The slowest stream asks
/// every ten seconds.
const UNASKED_MAX_NS: u64 = 15_000_000_000;
/// One that nobody has asked for during this time makes room for a new one.
const UNASKED_MIN_NS: u64 = 2_000_000_000;
/// The time between the begins of two walks, at least: rates need some time between two readings.
const PASS_PERIOD_NS: u64 = 500_000_000;
/// Children of an actor for which sums are kept; parents for which actors are counted; mailboxes
/// that are watched because they are rather full.
const SUMS_MAX: usize = 4_096;
const PARENTS_MAX: usize = 256;
const HOT_MAX: usize = 256;
/// A mailbox that is fuller than this is watched.
const HOT_FROM: f64 = 0.5;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Sweeper {
    /// Where the walk is: the executor, and the slot in its registry.
    at: Place,
    began_ns: Option<u64>,
    done: Option<Done>,
    seen: u64,
    /// For each executor, what was seen at each slot at the last visit.
    slots: Vec<Vec<Slot>>,
    /// For each executor, when each slice was visited.
    visited_ns: Vec<Vec<u64>>,
    selections: Vec<Selection>,
    trees: Vec<Tree>,
    new_parents: BTreeMap<String, u64>,
    parents: BTreeMap<String, u64>,
    hot: BTreeMap<Pid, Hot>,
    /// Messages that were taken since the last walk, and over how long.
    taken: u64,
    pub(crate) taken_rate: Option<f64>,
}

/// Eight bytes for each slot of a registry.
#[derive(Clone, Copy, Default)]
struct Slot {
    taken: u32,
    /// The low half of the generation; zero if the slot was vacant, which no generation is at
    /// first.
    generation: u32,
}

#[derive(Clone, Copy)]
struct Done {
    at_ns: u64,
    took_ns: u64,
    seen: u64,
}

/// What is collected for one filter.
///
/// One that is asked for while a walk is under way waits for the next walk: if it made that walk
/// start again, two clients that change their filters in turn would let no walk end.
struct Selection {
    filter: Filter,
    asked_ns: u64,
    /// Whether the walk that is under way has collected for it from its begin on.
    is_walked: bool,
    matches: u64,
    tops: Vec<Top>,
    ready: Option<Ready>,
}

/// The result of a walk for one filter.
#[derive(Clone)]
pub(crate) struct Ready {
    pub(crate) tops: Vec<Vec<ActorRow>>,
    pub(crate) matches: u64,
}

/// The rows with the largest keys.
#[derive(Default)]
struct Top {
    rows: Vec<(f64, ActorRow)>,
    /// No smaller key gets in.
    least: Option<f64>,
}

/// Sums over the descendants of one actor. It waits for the next walk as a [`Selection`] does.
struct Tree {
    at: String,
    /// The names in `at`.
    above: Vec<String>,
    asked_ns: u64,
    is_walked: bool,
    below: Below,
    ready: Option<Below>,
}

/// Sums over the descendants of an actor, by the names of its children.
#[derive(Clone, Debug, Default)]
pub(crate) struct Below {
    sums: BTreeMap<String, Sums>,
    /// Whether there were more children than are kept.
    is_cut: bool,
}

impl Below {
    /// The sums of a child; zeros if nothing is below it, `None` if they are not known.
    pub(crate) fn of(&self, child: &str) -> Option<Sums> {
        let sums = self.sums.get(child).copied();
        sums.or_else(|| (!self.is_cut).then(Sums::default))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    pub(crate) actors: u64,
    pub(crate) depth: u64,
    pub(crate) rate: f64,
    pub(crate) restarts: u64,
}

/// A mailbox that is rather full.
#[derive(Clone, Debug)]
pub(crate) struct Hot {
    pub(crate) path: String,
    pub(crate) depth: usize,
    pub(crate) capacity: usize,
    /// The first sight, and how full it was.
    pub(crate) first_ns: u64,
    pub(crate) first_depth: usize,
    /// Since when it is above the threshold of a finding.
    pub(crate) above_since_ns: Option<u64>,
    pub(crate) refused: usize,
    /// When it was last seen to have returned more messages than at the sight before.
    pub(crate) refused_ns: Option<u64>,
    pub(crate) share: Number,
    pub(crate) last_ns: u64,
}

/// Whether a filter matches a row, of which clients see the path as `names` shows it.
pub(crate) fn matches(
    filter: &Filter,
    row: &ActorRow,
    actor: &ActorView<'_>,
    names: Option<NamesFn>,
) -> bool {
    let Some(names) = names else { return filter.matches(row) };
    filter.matches(&ActorRow { path: names(actor.path()).into_owned(), ..row.clone() })
}

pub(crate) fn state_of(stage: ActorStage) -> ActorState {
    match stage {
        ActorStage::Idle => ActorState::Idle,
        ActorStage::Queued => ActorState::Queued,
        ActorStage::Running => ActorState::Running,
        ActorStage::Waiting => ActorState::Waiting,
        ActorStage::Suspended => ActorState::Suspended,
        ActorStage::Failed => ActorState::Failed,
        ActorStage::Restarting => ActorState::Restarting,
        ActorStage::Stopping => ActorState::Stopping,
        _ => ActorState::Unknown,
    }
}

/// The row of an actor. `rate` is what two readings have shown.
pub(crate) fn row_of(
    actor: &ActorView<'_>,
    rate: Option<f64>,
    share: Number,
    is_stuck: bool,
) -> ActorRow {
    let (depth, capacity) = actor.mailbox();
    let state = if is_stuck { ActorState::Stuck } else { state_of(actor.stage()) };
    ActorRow {
        pid: actor.pid().to_string(),
        path: actor.path().to_string(),
        type_name: actor.type_name().to_owned(),
        state,
        depth: Number::size(depth),
        capacity: Number::size(capacity),
        rate: rate.into(),
        handled: Number::size(actor.positions().1),
        wait_ns: wait_of(depth, rate),
        share,
        restarts: Number::size(actor.restarts()),
        refused: Number::size(actor.refused()),
    }
}

/// Little's law: how long a message waits, if `depth` of them wait and so many leave per second.
fn wait_of(depth: usize, rate: Option<f64>) -> Number {
    match rate {
        Some(rate) if rate > 0.0 => Number::exact((float_of(depth) / rate * 1e9).round()),
        _ => Number::UNKNOWN,
    }
}

/// The key of a row in an order.
pub(crate) fn key(row: &ActorRow, sort: Sort) -> f64 {
    match sort {
        Sort::Rate => row.rate.or_zero(),
        Sort::Depth => row.depth.or_zero(),
        Sort::Share => row.share.or_zero(),
        Sort::Wait => row.wait_ns.or_zero(),
        Sort::Restarts => row.restarts.or_zero(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "differences of the low halves are what counts"
)]
fn low(n: usize) -> u32 {
    n as u32
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is enough to tell two apart")]
fn low_generation(pid: Pid) -> u32 {
    pid.generation().get() as u32
}

impl Sweeper {
    /// Walks over one more slice. Returns whether the walk has ended, or rests.
    pub(crate) fn slice(
        &mut self,
        target: &Target,
        samples: &Samples,
        is_stuck: &dyn Fn(Pid) -> bool,
        (now_ns, n): (u64, u32),
    ) -> bool {
        match self.began_ns {
            None => self.begin(now_ns),
            Some(began) if self.at == (0, 0) => {
                if now_ns.saturating_sub(began) < PASS_PERIOD_NS {
                    return true;
                }
                self.begin(now_ns);
            }
            Some(_) => {}
        }
        let executors = target.executors();
        let (index, from) = self.at;
        let Some((_, handle)) = executors.get(index) else {
            self.end(now_ns);
            return true;
        };
        self.slots.resize_with(executors.len().max(self.slots.len()), Vec::new);
        self.visited_ns.resize_with(self.slots.len(), Vec::new);
        let slice = (from / n.max(1)) as usize;
        let last_ns = self.visited_ns[index].get(slice).copied();
        let names = *target.names();
        let next = target.system().inspect_slots(handle, from, n, |actor| {
            self.visit(&actor, index, samples, is_stuck, (last_ns, now_ns, names));
        });
        let visited = &mut self.visited_ns[index];
        visited.resize(visited.len().max(slice + 1), now_ns);
        visited[slice] = now_ns;
        self.at = next.map_or((index + 1, 0), |next| (index, next));
        if self.at.0 == executors.len() {
            self.end(now_ns);
        }
        self.at == (0, 0)
    }

    fn begin(&mut self, now_ns: u64) {
        self.began_ns = Some(now_ns);
        self.seen = 0;
        self.taken = 0;
        self.new_parents.clear();
        if !self.selections.iter().any(|one| one.filter.is_empty()) {
            self.selections.insert(0, Selection::new(Filter::default(), now_ns));
        }
        let is_asked = |asked_ns: u64| now_ns.saturating_sub(asked_ns) < UNASKED_MAX_NS;
        self.selections.retain(|one| one.filter.is_empty() || is_asked(one.asked_ns));
        for selection in &mut self.selections {
            selection.is_walked = true;
            selection.matches = 0;
            selection.tops = Sort::ALL.iter().map(|_| Top::default()).collect();
        }
        self.trees.retain(|one| is_asked(one.asked_ns));
        for tree in &mut self.trees {
            tree.is_walked = true;
            tree.below = Below::default();
        }
    }

    fn end(&mut self, now_ns: u64) {
        let began = self.began_ns.unwrap_or(now_ns);
        let between = self.done.and_then(|done| seconds_between(done.at_ns, now_ns));
        self.taken_rate = between.map(|seconds| float(self.taken) / seconds);
        let took_ns = now_ns.saturating_sub(began);
        self.done = Some(Done { at_ns: now_ns, took_ns, seen: self.seen });
        self.at = (0, 0);
        for selection in self.selections.iter_mut().filter(|one| one.is_walked) {
            let tops = core::mem::take(&mut selection.tops);
            let tops = tops.into_iter().map(Top::into_rows).collect();
            selection.ready = Some(Ready { tops, matches: selection.matches });
        }
        for tree in self.trees.iter_mut().filter(|one| one.is_walked) {
            tree.ready = Some(core::mem::take(&mut tree.below));
        }
        self.parents = core::mem::take(&mut self.new_parents);
        // Those that were not visited have stopped, or have room again.
        self.hot.retain(|_, hot| hot.last_ns >= began);
    }

    fn visit(
        &mut self,
        actor: &ActorView<'_>,
        executor: usize,
        samples: &Samples,
        is_stuck: &dyn Fn(Pid) -> bool,
        (last_ns, now_ns, names): (Option<u64>, u64, Option<NamesFn>),
    ) {
        self.seen += 1;
        let pid = actor.pid();
        let rate = self.rate(actor, executor, (last_ns, now_ns));
        let share = samples.share_of((executor, pid.index()));
        self.visit_mailbox(actor, share, now_ns);
        self.visit_parents(actor, rate);
        let stuck = is_stuck(pid);
        for selection in self.selections.iter_mut().filter(|one| one.is_walked) {
            selection.visit(actor, names, (rate, share, stuck));
        }
    }

    /// How many messages per second it has taken since the last visit; `None` at the first visit.
    fn rate(
        &mut self,
        actor: &ActorView<'_>,
        executor: usize,
        (last_ns, now_ns): (Option<u64>, u64),
    ) -> Option<f64> {
        let pid = actor.pid();
        let slots = self.slots.get_mut(executor)?;
        let at = pid.index() as usize;
        if slots.len() <= at {
            slots.resize(at + 1, Slot::default());
        }
        let new = Slot { taken: low(actor.positions().1), generation: low_generation(pid) };
        let old = core::mem::replace(&mut slots[at], new);
        if old.generation != new.generation {
            return None;
        }
        let taken = new.taken.wrapping_sub(old.taken);
        self.taken += u64::from(taken);
        let seconds = seconds_between(last_ns?, now_ns)?;
        Some(f64::from(taken) / seconds)
    }

    fn visit_mailbox(&mut self, actor: &ActorView<'_>, share: Number, now_ns: u64) {
        let (depth, capacity) = actor.mailbox();
        if float_of(depth) < HOT_FROM * float_of(capacity) || capacity == 0 {
            return;
        }
        let refused = actor.refused();
        let is_full = self.hot.len() >= HOT_MAX;
        let pid = actor.pid();
        if is_full && !self.hot.contains_key(&pid) {
            return;
        }
        let hot = self.hot.entry(pid).or_insert_with(|| Hot {
            path: actor.path().to_string(),
            depth,
            capacity,
            first_ns: now_ns,
            first_depth: depth,
            above_since_ns: None,
            refused,
            refused_ns: None,
            share,
            last_ns: now_ns,
        });
        if refused > hot.refused {
            hot.refused_ns = Some(now_ns);
        }
        (hot.depth, hot.refused, hot.share, hot.last_ns) = (depth, refused, share, now_ns);
    }

    /// Counts for the actors above.
    fn visit_parents(&mut self, actor: &ActorView<'_>, rate: Option<f64>) {
        let path = actor.path();
        let names = path.names();
        if names.len() > 2 {
            // The names of `/user/shop/till` are `user`, `shop`, `till`: counted under
            // `/user/shop`.
            let parent = format!("/{}/{}", names[0], names[1]);
            if self.new_parents.len() < PARENTS_MAX || self.new_parents.contains_key(&parent) {
                *self.new_parents.entry(parent).or_default() += 1;
            }
        } else if names.len() == 2 && self.new_parents.len() < PARENTS_MAX {
            *self.new_parents.entry(format!("/{}", names[0])).or_default() += 1;
        }
        for tree in self.trees.iter_mut().filter(|one| one.is_walked) {
            tree.visit(actor, &names, rate);
        }
    }

    /// The rows for a filter, if there was a complete walk for it. Otherwise the next walk is for
    /// it, too, if there is room for another filter.
    pub(crate) fn rows(&mut self, filter: &Filter, now_ns: u64) -> Option<&Ready> {
        let known = self.selections.iter().position(|one| one.filter == *filter);
        let at = match known {
            Some(at) => at,
            None => {
                let is_kept = |one: &Selection| one.filter.is_empty();
                make_room(&mut self.selections, SELECTIONS_MAX, now_ns, |one| {
                    (is_kept(one), one.asked_ns)
                })?;
                self.selections.push(Selection::new(filter.clone(), now_ns));
                self.selections.len() - 1
            }
        };
        let selection = &mut self.selections[at];
        selection.asked_ns = now_ns;
        selection.ready.as_ref()
    }

    /// The sums over the descendants of each child of this actor, if there was a complete walk for
    /// it. Otherwise the next walk is for it, too, if there is room for another one.
    pub(crate) fn tree(&mut self, at: &str, now_ns: u64) -> Option<&Below> {
        let known = self.trees.iter().position(|one| one.at == at);
        let index = match known {
            Some(index) => index,
            None => {
                make_room(&mut self.trees, TREES_MAX, now_ns, |one| (false, one.asked_ns))?;
                self.trees.push(Tree::new(at, now_ns));
                self.trees.len() - 1
            }
        };
        let tree = &mut self.trees[index];
        tree.asked_ns = now_ns;
        tree.ready.as_ref()
    }

    pub(crate) fn hot(&mut self) -> impl Iterator<Item = &mut Hot> {
        self.hot.values_mut()
    }

    /// How many actors are below each parent, as of the last complete walk.
    pub(crate) fn parents(&self) -> &BTreeMap<String, u64> {
        &self.parents
    }

    pub(crate) fn sweep(&self, now_ns: u64) -> Sweep {
        let Some(done) = self.done else { return Sweep::default() };
        let ms = |nanos: u64| nanos / 1_000_000;
        Sweep {
            age_ms: Some(ms(now_ns.saturating_sub(done.at_ns))),
            took_ms: Some(ms(done.took_ns)),
            seen: done.seen,
        }
    }

    /// The tag of a number that the last complete walk has read.
    pub(crate) fn tag(&self, now_ns: u64) -> Tag {
        self.sweep(now_ns).age_ms.map_or(Tag::Exact, Tag::Swept)
    }

    pub(crate) fn bytes(&self) -> usize {
        let slots: usize =
            self.slots.iter().map(|slots| slots.capacity() * size_of::<Slot>()).sum();
        let rows = self.selections.len() * Sort::ALL.len() * KEPT * (size_of::<ActorRow>() + 96);
        let sums = |one: &Tree| {
            one.below.sums.len() + one.ready.as_ref().map_or(0, |ready| ready.sums.len())
        };
        let sums: usize = self.trees.iter().map(sums).sum();
        slots + rows + (self.hot.len() + self.new_parents.len() + sums) * 128
    }
}

/// Makes room for another entry; `None` if every other one was asked for a moment ago. `key` says
/// whether an entry is kept in any case, and when it was asked for.
fn make_room<T>(
    all: &mut Vec<T>,
    max: usize,
    now_ns: u64,
    key: impl Fn(&T) -> (bool, u64),
) -> Option<()> {
    if all.len() < max {
        return Some(());
    }
    let entries = all.iter().map(&key).enumerate().filter(|(_, (is_kept, _))| !is_kept);
    let (at, (_, asked_ns)) = entries.min_by_key(|(_, (_, asked_ns))| *asked_ns)?;
    if now_ns.saturating_sub(asked_ns) < UNASKED_MIN_NS {
        return None;
    }
    all.remove(at);
    Some(())
}

impl Tree {
    fn new(at: &str, asked_ns: u64) -> Self {
        let above = at.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let below = Below::default();
        Self { at: at.to_owned(), above, asked_ns, is_walked: false, below, ready: None }
    }

    fn visit(&mut self, actor: &ActorView<'_>, names: &[&str], rate: Option<f64>) {
        let depth = self.above.len();
        if names.len() < depth + 2 || names[..depth] != self.above[..] {
            return;
        }
        let child = names[depth];
        let Below { sums, is_cut } = &mut self.below;
        if sums.len() >= SUMS_MAX && !sums.contains_key(child) {
            *is_cut = true;
            return;
        }
        let sums = sums.entry(child.to_owned()).or_default();
        sums.actors += 1;
        sums.depth += actor.mailbox().0 as u64;
        sums.rate += rate.unwrap_or(0.0);
        sums.restarts += actor.restarts() as u64;
    }
}

impl Selection {
    fn new(filter: Filter, asked_ns: u64) -> Self {
        let tops = Sort::ALL.iter().map(|_| Top::default()).collect();
        Self { filter, asked_ns, is_walked: false, matches: 0, tops, ready: None }
    }

    fn visit(
        &mut self,
        actor: &ActorView<'_>,
        names: Option<NamesFn>,
        (rate, share, is_stuck): (Option<f64>, Number, bool),
    ) {
        let mut row = None;
        if self.filter.is_empty() {
            self.matches += 1;
            // Most actors get into no list, and need no row.
            let depth = actor.mailbox().0;
            let wait = wait_of(depth, rate).or_zero();
            let keys = [
                rate.unwrap_or(0.0),
                float_of(depth),
                share.or_zero(),
                wait,
                float_of(actor.restarts()),
            ];
            if !self.tops.iter().zip(keys).any(|(top, key)| top.takes(key)) {
                return;
            }
        } else {
            let new = row_of(actor, rate, share, is_stuck);
            if !matches(&self.filter, &new, actor, names) {
                return;
            }
            self.matches += 1;
            row = Some(new);
        }
        let row = row.unwrap_or_else(|| row_of(actor, rate, share, is_stuck));
        for (top, sort) in self.tops.iter_mut().zip(Sort::ALL) {
            top.offer(key(&row, *sort), &row);
        }
    }
}

impl Top {
    fn takes(&self, key: f64) -> bool {
        self.least.is_none_or(|least| key > least)
    }

    fn offer(&mut self, key: f64, row: &ActorRow) {
        if !self.takes(key) {
            return;
        }
        self.rows.push((key, row.clone()));
        if self.rows.len() >= 2 * KEPT {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.rows.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.path.cmp(&b.1.path)));
        self.rows.truncate(KEPT);
        if self.rows.len() == KEPT {
            self.least = self.rows.last().map(|(key, _)| *key);
        }
    }

    fn into_rows(mut self) -> Vec<ActorRow> {
        self.cut();
        self.rows.into_iter().map(|(_, row)| row).collect()
    }
}
