//! Findings about actors: S01 to S05, S11.

use std::collections::{BTreeMap, BTreeSet};

use clockjack_exec::{Handle, State as TaskState};

use super::{Check, MINUTE_NS, Memory, Minute, SECOND_NS, finding, time};
use crate::{
    state::{Hot, Log, State, float, float_of},
    view::{Finding, Number},
    watcher::at_place,
};

/// Asks that are looked at.
pub(crate) const ASKS_MAX: usize = 256;
/// What the walk over all actors has seen this long ago says nothing about now. A walk over a
/// million actors takes ten seconds.
const STALE_NS: u64 = 30 * SECOND_NS;

pub(super) fn check(check: &Check<'_>, state: &mut State, found: &mut Vec<Finding>) {
    // Before the log is locked: this reads up to 65,536 slots, and handlers write the log.
    ask_cycles(check, state, found);
    let mut log = check.target.log();
    stuck(check, state, &mut log, found);
    mailboxes(check, state, &log, found);
    restarts(check, &log, found);
    dead_letters(check, state, &log, found);
    drop(log);
    leak(check, state, found);
}

/// S01: a worker is in the same poll of an actor for too long, as the samples have seen, or as the
/// watchdog has reported.
fn stuck(check: &Check<'_>, state: &mut State, log: &mut Log, found: &mut Vec<Finding>) {
    state.memory.stuck.clear();
    let (mut seen, mut still_reported) = (Vec::new(), Vec::new());
    for worker in state.samples.workers() {
        let Some((task, _, since_ns)) = worker.running else { continue };
        let place = (worker.executor, task);
        let read = at_place(check.target, check.executors, place, |actor| {
            let path = actor.path().to_string();
            (actor.pid(), path, actor.message_type(), actor.type_name())
        });
        let Some((pid, path, message_type, _)) = read else { continue };
        // A report is about one poll: when the actor is in a later one, its handler has returned.
        let reported = log.stuck.iter().find(|one| one.pid == pid && one.is_of_poll(since_ns));
        let since_ns = reported.map_or(since_ns, |one| one.since_ns.min(since_ns));
        let for_ns = check.now_ns.saturating_sub(since_ns);
        if reported.is_none() && for_ns < check.thresholds.stuck_ns {
            continue;
        }
        seen.push(pid);
        still_reported.extend(reported.map(|one| one.pid));
        let text = format!(
            "{path} has been handling a {message_type} for {} on worker {}",
            time(for_ns),
            worker.worker
        );
        let one = finding("S01", path, text)
            .with("seconds", float(for_ns) / 1e9, float(check.thresholds.stuck_ns) / 1e9)
            .with("worker", worker.worker, Number::UNKNOWN);
        found.push(Finding { since_ms: for_ns / 1_000_000, ..one });
    }
    // A thread with an executor of its own has no samples: the state of the task tells.
    log.stuck.retain_mut(|one| {
        if still_reported.contains(&one.pid) {
            return true;
        }
        let is_pooled = |(_, handle): &(String, Handle)| !handle.is_local();
        let node = one.pid.node();
        let mut own = check.executors.iter().filter(|(_, one)| one.executor().node() == node);
        if own.any(is_pooled) {
            return false;
        }
        let state = check.executors.iter().find_map(|(_, handle)| handle.state(one.pid));
        if state != Some(TaskState::Running) {
            return false;
        }
        // It runs: still, or again. A handler that has returned has taken its message.
        let taken = check.target.system().inspect_path(&one.path, |actor| actor.positions().1);
        let first = *one.taken.get_or_insert(taken.unwrap_or(0));
        if taken != Some(first) {
            return false;
        }
        seen.push(one.pid);
        let for_ns = check.now_ns.saturating_sub(one.since_ns);
        let text =
            format!("{} has been handling a {} for {}", one.path, one.message_type, time(for_ns));
        let limit = float(check.thresholds.stuck_ns) / 1e9;
        let new = finding("S01", &one.path, text).with("seconds", float(for_ns) / 1e9, limit);
        found.push(Finding { since_ms: for_ns / 1_000_000, ..new });
        true
    });
    state.memory.stuck = seen;
}

/// S02: a cycle among the actors that wait for answers.
fn ask_cycles(check: &Check<'_>, state: &mut State, found: &mut Vec<Finding>) {
    let handles: Vec<Handle> = check.executors.iter().map(|(_, one)| one.clone()).collect();
    let asks = check.target.system().inspect_asks(&handles, ASKS_MAX);
    let n_unknown = asks.iter().filter(|ask| ask.from.is_none()).count();
    state.memory.unseen_asks = if asks.len() >= ASKS_MAX {
        Some(format!("there are more than {ASKS_MAX} asks, of which so many are looked at"))
    } else if n_unknown > 0 {
        // An actor that has just ended is one of them, too.
        Some(format!("{n_unknown} of {} asks are of actors that were not found", asks.len()))
    } else {
        None
    };
    let edges =
        asks.iter().filter_map(|ask| Some((ask.from.as_ref()?.to_string(), ask.to.to_string())));
    for cycle in cycles(&edges.collect::<Vec<_>>()) {
        let text = format!("{} actors wait for each other: {}", cycle.len(), ring(&cycle));
        let subject = cycle.first().cloned().unwrap_or_default();
        found.push(finding("S02", subject, text).with("actors", cycle.len(), 2_u64));
    }
}

fn ring(cycle: &[String]) -> String {
    let mut paths = cycle.to_vec();
    paths.extend(cycle.first().cloned());
    paths.join(" -> ")
}

/// The cycles of a graph, each once, beginning with its least name. Of cycles that share an edge,
/// one is found.
pub(crate) fn cycles(edges: &[(String, String)]) -> Vec<Vec<String>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().push(to);
    }
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut cycles = Vec::new();
    for start in next.keys().copied() {
        // The path that is being followed, and which successors of each were taken.
        let mut path = vec![(start, 0)];
        while let Some((at, taken)) = path.last_mut() {
            let after = next.get(*at).and_then(|all| all.get(*taken)).copied();
            *taken += 1;
            let Some(after) = after.filter(|_| !done.contains(*at)) else {
                done.extend(path.pop().map(|(at, _)| at));
                continue;
            };
            match path.iter().position(|(on, _)| *on == after) {
                Some(from) => {
                    let mut cycle: Vec<String> =
                        path[from..].iter().map(|(on, _)| (*on).to_owned()).collect();
                    let least = (0..cycle.len()).min_by_key(|at| &cycle[*at]).unwrap_or(0);
                    cycle.rotate_left(least);
                    if !cycles.contains(&cycle) {
                        cycles.push(cycle);
                    }
                }
                None if !done.contains(after) => path.push((after, 0)),
                None => {}
            }
        }
    }
    cycles
}

/// S03: a mailbox is nearly full for a while, or returns messages.
fn mailboxes(check: &Check<'_>, state: &mut State, log: &Log, found: &mut Vec<Finding>) {
    let limits = check.thresholds;
    let n_workers = check.executors.iter().map(|(_, one)| one.n_workers()).sum::<usize>();
    for hot in state.sweeper.hot() {
        if check.now_ns.saturating_sub(hot.last_ns) > STALE_NS {
            continue;
        }
        let fill = float_of(hot.depth) / float_of(hot.capacity.max(1));
        let is_above = fill > limits.mailbox_full;
        hot.above_since_ns = match hot.above_since_ns {
            _ if !is_above => None,
            Some(since) => Some(since),
            None => Some(check.now_ns),
        };
        let above_ns = hot.above_since_ns.map(|since| check.now_ns.saturating_sub(since));
        let is_long = above_ns.is_some_and(|ns| ns >= limits.mailbox_for_ns);
        // A full mailbox that has returned messages before anybody looked returns more of them.
        // One that has room again is no finding for long.
        let is_recent = |at_ns: u64| check.now_ns.saturating_sub(at_ns) < limits.keep_ns;
        let refuses = hot.refused_ns.is_some_and(is_recent) || (is_above && hot.refused > 0);
        if is_long || refuses {
            let one = of_mailbox(hot, (fill, limits.mailbox_full), n_workers);
            found.push(Finding { since_ms: above_ns.unwrap_or(0) / 1_000_000, ..one });
        }
    }
    for (at_ns, path, refused) in &log.refusals {
        let is_known = found.iter().any(|one| one.code == "S03" && one.subject == *path);
        if is_known || check.now_ns.saturating_sub(*at_ns) >= limits.keep_ns {
            continue;
        }
        let noun = if *refused == 1 { "message" } else { "messages" };
        let text = format!("{path}: the mailbox was full and has refused {refused} {noun}");
        found.push(finding("S03", path, text).with("refused", *refused, 1_u64));
    }
}

fn of_mailbox(hot: &Hot, (fill, limit): (f64, f64), n_workers: usize) -> Finding {
    let Hot { path, depth, capacity, .. } = hot;
    let seconds = float(hot.last_ns.saturating_sub(hot.first_ns)) / 1e9;
    let growth = (seconds > 0.0).then(|| (float_of(*depth) - float_of(hot.first_depth)) / seconds);
    let mut text = format!("{path}: {depth} of {capacity}");
    if let Some(growth) = growth.filter(|growth| *growth >= 1.0) {
        text.push_str(&format!(", growing by {growth:.0}/s"));
    }
    if hot.refused > 0 {
        let were = if hot.refused == 1 { "message was" } else { "messages were" };
        text.push_str(&format!(", {} {were} refused", hot.refused));
    }
    if let Some(share) = hot.share.value.filter(|share| *share >= 0.01) {
        let percent = share * 100.0;
        text.push_str(&format!(
            "; the actor runs {percent:.0} % of the time, of {n_workers} workers"
        ));
    }
    finding("S03", path, text)
        .with("fill", fill, limit)
        .with("growth per second", growth, Number::UNKNOWN)
        .with("refused", hot.refused, 1_u64)
        .with("share", hot.share, Number::UNKNOWN)
}

/// S04: an actor is restarted again and again.
fn restarts(check: &Check<'_>, log: &Log, found: &mut Vec<Finding>) {
    let limit = check.thresholds.restarts_per_minute;
    for (path, failing) in log.failing() {
        let is_recent = |at_ns: &&u64| check.now_ns.saturating_sub(**at_ns) < MINUTE_NS;
        let recent = failing.restarts_ns.iter().filter(is_recent);
        let n = recent.clone().count();
        if n <= limit as usize {
            continue;
        }
        let first_ns = recent.min().copied().unwrap_or(check.now_ns);
        let for_ns = check.now_ns.saturating_sub(first_ns);
        let last = failing.failures.front();
        let cause = last.map_or("its failures were not seen", |failure| &failure.text);
        let text = format!("{path} was restarted {n} times in {}: {cause}", time(for_ns.max(1)));
        let one = finding("S04", path, text).with("restarts per minute", n, u64::from(limit));
        found.push(Finding { since_ms: for_ns / 1_000_000, ..one });
    }
}

/// S05: too many dead letters.
fn dead_letters(check: &Check<'_>, state: &State, log: &Log, found: &mut Vec<Finding>) {
    let total = |counters: &crate::state::Counters| counters.system.dead_letters_total() as u64;
    let rate = state.rates.rate(total);
    let limit = check.thresholds.dead_letters_rate;
    // A few dead letters within a moment are many per second.
    let is_known = state.rates.seconds().is_some_and(|seconds| seconds >= 0.9);
    if rate.or_zero() <= limit || !is_known {
        return;
    }
    let groups = log.dead_letters();
    let most = groups.first().filter(|group| group.count.or_zero() > 0.0);
    let (subject, whom) = match most {
        Some(most) => {
            let text =
                format!("; most are {} for {}: {}", most.message_type, most.recipient, most.reason);
            (most.recipient.clone(), text)
        }
        None => ("dead letters".to_owned(), String::new()),
    };
    let text = format!("{:.0} dead letters per second{whom}", rate.or_zero());
    found.push(finding("S05", subject, text).with("dead letters per second", rate, limit));
}

/// S11: the number of actors grows, minute by minute.
fn leak(check: &Check<'_>, state: &mut State, found: &mut Vec<Finding>) {
    let limits = check.thresholds;
    let Some(last) = &state.rates.last else { return };
    let live = last.system.live;
    let parents = state.sweeper.parents();
    let Memory { minutes, .. } = &mut state.memory;
    let is_due = minutes
        .last()
        .is_none_or(|minute| check.now_ns.saturating_sub(minute.at_ns) >= limits.growth_minute_ns);
    if is_due {
        if minutes.len() > limits.growth_minutes as usize {
            minutes.remove(0);
        }
        minutes.push(Minute { at_ns: check.now_ns, live, parents: parents.clone() });
    }
    let grows = |pair: &[Minute]| {
        float_of(pair[1].live) > float_of(pair[0].live) * (1.0 + limits.growth_per_minute)
    };
    let is_long = minutes.len() > limits.growth_minutes as usize && minutes.len() > 1;
    if !is_long || !minutes.windows(2).all(grows) {
        return;
    }
    let (Some(first), Some(last)) = (minutes.first(), minutes.last()) else { return };
    let grown = last
        .parents
        .iter()
        .map(|(path, n)| (n.saturating_sub(first.parents.get(path).copied().unwrap_or(0)), path));
    let most = grown.max().filter(|(n, _)| *n > 0);
    let subject = most.map_or("/user", |(_, path)| path.as_str());
    let text = format!(
        "actors grow for {} minutes, from {} to {}; most of the new ones are under {subject}",
        limits.growth_minutes, first.live, last.live
    );
    let growth = float_of(last.live) / float_of(first.live.max(1)) - 1.0;
    let limit = limits.growth_per_minute * f64::from(limits.growth_minutes);
    found.push(finding("S11", subject, text).with("growth", growth, limit));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles_of(edges: &[(&str, &str)]) -> Vec<Vec<String>> {
        let edges: Vec<_> =
            edges.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
        cycles(&edges)
    }

    #[test]
    fn a_cycle_is_found_once_from_its_least_name() {
        assert_eq!(cycles_of(&[("c", "a"), ("a", "b"), ("b", "c")]), [["a", "b", "c"]]);
        assert_eq!(cycles_of(&[("a", "b"), ("b", "c")]), Vec::<Vec<String>>::new());
        assert_eq!(cycles_of(&[("x", "b"), ("b", "d"), ("d", "b"), ("d", "y")]), [["b", "d"]]);
    }

    #[test]
    fn two_cycles_are_two_findings() {
        let found = cycles_of(&[("a", "b"), ("b", "a"), ("d", "c"), ("c", "d")]);
        assert_eq!(found, [["a", "b"], ["c", "d"]]);
    }

    #[test]
    fn a_long_chain_is_followed_without_a_deep_stack() {
        let edges: Vec<_> =
            (0..2_000).map(|n| (format!("{n:05}"), format!("{:05}", n + 1))).collect();
        assert!(cycles(&edges).is_empty());
    }
}
