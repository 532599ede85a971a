//! Actors, the tree, and one actor in full.

use clockjack_actor::inspect::ActorView;
use clockjack_exec::Handle;

use super::{messages::asks_of, page_of};
use crate::{
    Target,
    query::{ActorQuery, Filter, Query, ROWS_MAX, Sort, TreeQuery},
    state::{KEPT, Log, State, key, matches as shows, row_of, state_of},
    view::{
        ActorDetail, ActorRow, ActorState, Handling, MailboxDetail, Number, Page, SupervisionRow,
        TreeRow,
    },
};

/// Actors that a call without a watcher reads at most.
const UNWATCHED_MAX: usize = 20_000;
/// Slots that are read at a time.
const SLICE: u32 = 1_024;

pub(super) fn actors(target: &Target, query: &Query) -> Page<ActorRow> {
    let mut state = target.state();
    let now_ns = target.now_ns();
    let live = Number::size(target.system().metrics().live);
    let at = Sort::ALL.iter().position(|sort| *sort == query.sort).unwrap_or(0);
    if state.n_watchers > 0 {
        let sweep = state.sweeper.sweep(now_ns);
        let tag = state.sweeper.tag(now_ns);
        let ready = state.sweeper.rows(&query.filter, now_ns);
        if let Some(ready) = ready {
            let matches = Number::count(ready.matches).tagged(tag);
            let rows = ready.tops.get(at).cloned().unwrap_or_default();
            let (rows, has_more) = page_of(rows, query);
            let (page, sweep) = (query.page, Some(sweep));
            return Page { rows, page, matches, total: live, has_more, sweep };
        }
    }
    let (mut rows, matches, is_all) = read_all(target, &state, &query.filter, query.sort);
    rows.truncate(KEPT);
    let matches = if is_all { Number::size(matches) } else { Number::UNKNOWN };
    let (rows, has_more) = page_of(rows, query);
    Page { rows, page: query.page, matches, total: live, has_more, sweep: None }
}

/// The rows that match, of at most [`UNWATCHED_MAX`] actors; how many match, and whether all were
/// read.
fn read_all(
    target: &Target,
    state: &State,
    filter: &Filter,
    sort: Sort,
) -> (Vec<ActorRow>, usize, bool) {
    let (mut rows, mut matches, mut seen) = (Vec::new(), 0, 0);
    let names = *target.names();
    for (index, (_, handle)) in target.executors().iter().enumerate() {
        let mut next = Some(0);
        while let Some(from) = next {
            next = target.system().inspect_slots(handle, from, SLICE, |actor| {
                seen += 1;
                let share = state.samples.share_of((index, actor.pid().index()));
                let row = row_of(&actor, None, share, state.memory.stuck.contains(&actor.pid()));
                if shows(filter, &row, &actor, names) {
                    matches += 1;
                    rows.push(row);
                }
            });
            cut(&mut rows, sort, 2 * KEPT);
            if seen > UNWATCHED_MAX {
                cut(&mut rows, sort, 0);
                return (rows, matches, false);
            }
        }
    }
    cut(&mut rows, sort, 0);
    (rows, matches, true)
}

/// Sorts the rows and drops the last of them, if there are more than `limit`.
fn cut(rows: &mut Vec<ActorRow>, sort: Sort, limit: usize) {
    if rows.len() > limit {
        rows.sort_by(|a, b| {
            key(b, sort).total_cmp(&key(a, sort)).then_with(|| a.path.cmp(&b.path))
        });
        rows.truncate(KEPT);
    }
}

/// Where an actor runs, in the list of executors.
fn executor_of(executors: &[(String, Handle)], actor: &ActorView<'_>) -> Option<usize> {
    let node = actor.pid().node();
    executors.iter().position(|(_, handle)| handle.executor().node() == node)
}

fn full_row(
    state: &mut State,
    executors: &[(String, Handle)],
    actor: &ActorView<'_>,
    now_ns: u64,
) -> ActorRow {
    let pid = actor.pid();
    let path = actor.path().to_string();
    let generation = pid.generation().get();
    let rate = if state.n_watchers > 0 {
        state.follow.rate(&path, generation, actor.positions().1, now_ns)
    } else {
        None
    };
    let executor = executor_of(executors, actor);
    let share = executor.map_or(Number::UNKNOWN, |at| state.samples.share_of((at, pid.index())));
    row_of(actor, rate, share, state.memory.stuck.contains(&pid))
}

pub(super) fn tree(target: &Target, query: &TreeQuery) -> Option<Page<TreeRow>> {
    let executors = target.executors();
    let now_ns = target.now_ns();
    let mut guard = target.state();
    let state = &mut *guard;
    let tag = state.sweeper.tag(now_ns);
    let is_watched = state.n_watchers > 0;
    let sums = if is_watched { state.sweeper.tree(&query.at, now_ns).cloned() } else { None };
    let rows_max = ROWS_MAX as usize;
    let skip = (query.page as usize).saturating_mul(rows_max);
    let mut rows = Vec::new();
    let total = target.system().inspect_path(&query.at, |actor| actor.n_children())?;
    let has_more = target.system().inspect_children(&query.at, skip, rows_max, |actor| {
        let row = full_row(state, &executors, &actor, now_ns);
        let of = |number: Number| number.tagged(tag);
        let below = sums.as_ref().and_then(|all| all.of(actor.path().name()));
        let number = |of_sums: &dyn Fn(&crate::state::Sums) -> Number| {
            below.as_ref().map_or(Number::UNKNOWN, |sums| of(of_sums(sums)))
        };
        rows.push(TreeRow {
            actor: row,
            children: Number::size(actor.n_children()),
            below: number(&|sums| Number::count(sums.actors)),
            depth_below: number(&|sums| Number::count(sums.depth)),
            rate_below: number(&|sums| Number::exact(sums.rate)),
            restarts_below: number(&|sums| Number::count(sums.restarts)),
        });
    })?;
    let sweep = is_watched.then(|| state.sweeper.sweep(now_ns));
    let total = Number::size(total);
    Some(Page { rows, page: query.page, matches: total, total, has_more, sweep })
}

pub(super) fn actor(target: &Target, query: &ActorQuery) -> Option<ActorDetail> {
    let path = match query {
        ActorQuery::Path(path) => path.clone(),
        ActorQuery::Pid(pid) => match path_of(target, pid) {
            Some(path) => path,
            None => return ended(&target.log(), |one| one.pid == *pid),
        },
    };
    let executors = target.executors();
    let now_ns = target.now_ns();
    let mut guard = target.state();
    let state = &mut *guard;
    let read = target.system().inspect_path(&path, |actor| {
        let row = full_row(state, &executors, &actor, now_ns);
        (row, mailbox_of(&actor), actor.n_children(), actor.pid(), actor.message_type())
    });
    let Some((row, mailbox, n_children, pid, message_type)) = read else {
        drop(guard);
        return ended(&target.log(), |one| one.path == path);
    };
    let history = (state.n_watchers > 0).then(|| state.follow.history(&path, now_ns)).flatten();
    let (depth_history, rate_history) = history.map_or_else(Default::default, |history| {
        (history.depth.iter().copied().collect(), history.rate.iter().copied().collect())
    });
    let running = state.samples.workers().iter().find(|worker| {
        let executor = executors.get(worker.executor).map(|(_, one)| one.executor().node());
        executor == Some(pid.node()) && worker.running.is_some_and(|(task, ..)| task == pid.index())
    });
    let handling = running.filter(|_| row.state == ActorState::Stuck).map(|worker| Handling {
        message_type: message_type.to_owned(),
        worker: Number::size(worker.worker),
        for_ns: worker
            .running
            .map(|(.., since)| now_ns.saturating_sub(since))
            .map_or(Number::UNKNOWN, Number::count),
    });
    drop(guard);
    Some(ActorDetail {
        actor: row,
        handling,
        supervision: supervision(target, &path),
        mailbox,
        depth_history,
        rate_history,
        asks: asks_of(target, &path),
        failures: failures(&target.log(), &path),
        children: Number::size(n_children),
        ..ActorDetail::default()
    })
}

/// The path of the live actor with this pid.
fn path_of(target: &Target, pid: &str) -> Option<String> {
    // The text is `{node|index.generation}`; only the index is needed to find it.
    let (_, rest) = pid.trim_matches(['{', '}']).split_once('|')?;
    let (index, _) = rest.split_once('.')?;
    let index: u32 = index.parse().ok()?;
    let mut found = None;
    for (_, handle) in target.executors() {
        target.system().inspect_slots(&handle, index, 1, |actor| {
            if actor.pid().to_string() == pid {
                found = Some(actor.path().to_string());
            }
        });
    }
    found
}

fn ended(log: &Log, is_it: impl Fn(&crate::state::Ended) -> bool) -> Option<ActorDetail> {
    let ended = log.ended(is_it)?;
    let failures = failures(log, &ended.path);
    let actor = ActorRow {
        pid: ended.pid.clone(),
        path: ended.path.clone(),
        state: ActorState::Stopping,
        ..ActorRow::default()
    };
    // Whether the last failure is the reason of the stop is not told by any event.
    Some(ActorDetail { actor, has_ended: true, failures, ..ActorDetail::default() })
}

fn failures(log: &Log, path: &str) -> Vec<crate::view::FailureRow> {
    let failing = log.failing().get(path);
    failing.map_or_else(Vec::new, |one| one.failures.iter().cloned().collect())
}

fn mailbox_of(actor: &ActorView<'_>) -> MailboxDetail {
    let (depth, capacity) = actor.mailbox();
    let (claimed, freed) = actor.positions();
    MailboxDetail {
        depth: Number::size(depth),
        capacity: Number::size(capacity),
        claimed: Number::size(claimed),
        freed: Number::size(freed),
        refused: Number::size(actor.refused()),
        waiters: if actor.has_waiters() { Number::UNKNOWN } else { Number::count(0) },
    }
}

fn supervision(target: &Target, path: &str) -> Vec<SupervisionRow> {
    let chain = target.system().inspect_supervisors(path);
    let rows = chain.into_iter().map(|(path, stage, restarts)| SupervisionRow {
        path,
        state: state_of(stage),
        restarts: Number::size(restarts),
        ..SupervisionRow::default()
    });
    rows.collect()
}
