//! Asks, dead letters and events.

use clockjack_actor::{ActorPath, DeadLetterReason};
use clockjack_exec::Handle;

use super::page_of;
use crate::{
    Target,
    findings::{ASKS_MAX, cycles},
    query::{EventsQuery, Query},
    view::{AskRow, DeadLetters, EventRow, Events, Number, Page, Tag},
};

/// Events that one call returns at most.
const EVENTS_MAX: usize = 1_024;

fn all_asks(target: &Target) -> Vec<AskRow> {
    let handles: Vec<Handle> = target.executors().into_iter().map(|(_, one)| one).collect();
    let asks = target.system().inspect_asks(&handles, ASKS_MAX);
    let rows: Vec<AskRow> = asks
        .into_iter()
        .map(|ask| AskRow {
            from: ask.from.map_or_else(String::new, |path| path.to_string()),
            to: ask.to.to_string(),
            ..AskRow::default()
        })
        .collect();
    let known = rows.iter().filter(|row| !row.from.is_empty());
    let edges: Vec<_> = known.map(|row| (row.from.clone(), row.to.clone())).collect();
    let cycles = cycles(&edges);
    let is_in = |row: &AskRow| {
        let is_it = |cycle: &Vec<String>| cycle.contains(&row.from) && cycle.contains(&row.to);
        cycles.iter().any(is_it)
    };
    rows.into_iter().map(|row| AskRow { is_in_cycle: is_in(&row), ..row }).collect()
}

/// The ask with the paths that clients see.
fn shown(target: &Target, row: &AskRow) -> AskRow {
    let path_of = |text: &str| {
        let names = text.split('/').filter(|name| !name.is_empty());
        names.fold(ActorPath::root(), |path, name| path.child(name))
    };
    let Some(names) = *target.names() else { return row.clone() };
    let shown = |text: &str| names(&path_of(text)).into_owned();
    AskRow { from: shown(&row.from), to: shown(&row.to), ..row.clone() }
}

/// The asks in which an actor waits, or is waited for.
pub(super) fn asks_of(target: &Target, path: &str) -> Vec<AskRow> {
    let mut asks = all_asks(target);
    asks.retain(|ask| ask.from == path || ask.to == path);
    asks
}

pub(super) fn asks(target: &Target, query: &Query) -> Page<AskRow> {
    let mut rows = all_asks(target);
    let is_cut = rows.len() == ASKS_MAX;
    let total = Number::size(rows.len());
    let total = if is_cut { total.tagged(Tag::Lost(0)) } else { total };
    if target.names().is_none() || query.filter.is_empty() {
        rows.retain(|row| query.filter.matches(row));
    } else {
        // Nobody learns by a filter what the names are that are not shown.
        rows.retain(|row| query.filter.matches(&shown(target, row)));
    }
    rows.sort_by(|a, b| (!a.is_in_cycle, &a.from, &a.to).cmp(&(!b.is_in_cycle, &b.from, &b.to)));
    let matches = Number::size(rows.len());
    let (rows, has_more) = page_of(rows, query);
    Page { rows, page: query.page, matches, total, has_more, sweep: None }
}

pub(super) fn deadletters(target: &Target) -> DeadLetters {
    let metrics = target.system().metrics();
    let of = |reason: &DeadLetterReason| {
        (reason.name().to_owned(), Number::size(metrics.dead_letters(*reason)))
    };
    let log = target.log();
    DeadLetters {
        rows: log.dead_letters(),
        by_reason: DeadLetterReason::ALL.iter().map(of).collect(),
        ungrouped: Number::count(log.ungrouped),
    }
}

pub(super) fn events(target: &Target, query: &EventsQuery) -> Events {
    let log = target.log();
    let is_new = |row: &&EventRow| row.number >= query.since;
    let n_left = log.events().iter().filter(is_new).count() as u64;
    let is_wanted = |kind: &String| query.kinds.is_empty() || query.kinds.contains(kind);
    let rows = log.events().iter().filter(is_new).filter(|row| is_wanted(&row.kind));
    Events {
        rows: rows.take(EVENTS_MAX).cloned().collect(),
        next: log.next,
        gap: log.next.saturating_sub(query.since).saturating_sub(n_left),
        lost: Number::count(log.lost),
    }
}
