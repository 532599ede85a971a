//! Events of the system: the last ones with numbers, dead letters in groups, failures by actor,
//! actors that have ended.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use clockjack_actor::{
    ActorPath, ActorRef, ActorSystem, DeadLetterReason, EventKinds, FailureInfo, LifecycleStep,
    Next, Pid, Props, Stuck, SystemEvent,
};
use clockjack_exec::Handle;
use clockjack_sched::Warning;

use crate::{
    target::lock,
    view::{DeadLetterRow, EventRow, FailureRow, Number},
};

/// Events that are kept.
const EVENTS_MAX: usize = 1_024;
/// Groups of dead letters.
const GROUPS_MAX: usize = 256;
/// A group without a dead letter for so long makes room for a new one.
const GROUP_AGE_NS: u64 = 60_000_000_000;
/// Actors that have ended.
const ENDED_MAX: usize = 1_024;
/// Actors whose failures are kept, and how many of each.
const FAILING_MAX: usize = 256;
const FAILURES_EACH: usize = 5;
/// Restarts of an actor whose times are kept.
const RESTARTS_EACH: usize = 64;
/// Other entries.
const FEW: usize = 64;
/// The kind of an event about an action, which is recorded whether anybody looks or not.
pub(crate) const ACTION: &str = "action";
/// The longest text of an event, in bytes.
const TEXT_MAX: usize = 512;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Log {
    events: VecDeque<EventRow>,
    /// The number of the next event.
    pub(crate) next: u64,
    /// Events that were dropped before they came here.
    pub(crate) lost: u64,
    groups: Vec<DeadGroup>,
    pub(crate) ungrouped: u64,
    failing: BTreeMap<String, Failing>,
    ended: VecDeque<Ended>,
    pub(crate) stuck: Vec<StuckActor>,
    pub(crate) refusals: VecDeque<(u64, String, u64)>,
    /// Warnings about the clock.
    pub(crate) clock: VecDeque<(u64, String)>,
}

struct DeadGroup {
    row: DeadLetterRow,
    count: u64,
    /// The counts at the begin of the window of rates, and of the next one.
    before: u64,
    middle: u64,
}

/// The failures of an actor.
#[derive(Default)]
pub(crate) struct Failing {
    pub(crate) failures: VecDeque<FailureRow>,
    /// When it was restarted.
    pub(crate) restarts_ns: VecDeque<u64>,
    last_ns: u64,
}

/// An actor that has stopped.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) path: String,
    pub(crate) pid: String,
}

/// A handler that the watchdog has reported.
#[derive(Clone, Debug)]
pub(crate) struct StuckActor {
    pub(crate) pid: Pid,
    pub(crate) path: String,
    pub(crate) message_type: String,
    /// When its handler has begun, at the latest.
    pub(crate) since_ns: u64,
    /// When the report came.
    pub(crate) reported_ns: u64,
    /// Messages that it had taken at the first look after the report.
    pub(crate) taken: Option<usize>,
}

impl StuckActor {
    /// Whether a poll that was first seen at this time can be the one that was reported.
    pub(crate) fn is_of_poll(&self, seen_ns: u64) -> bool {
        seen_ns <= self.reported_ns
    }
}

/// Two actors that receive the events; they live as long as somebody looks.
pub(crate) struct Subscription {
    actors: Vec<ActorRef<SystemEvent>>,
    is_over: Arc<Mutex<bool>>,
}

impl Subscription {
    /// Subscribes to the events of a system; to none if it is stopping, or sealed.
    pub(crate) fn new(system: &ActorSystem, log: &Arc<Mutex<Log>>) -> Self {
        let is_over = Arc::new(Mutex::new(false));
        // Starts and stops have a subscriber of their own, so that a flood of them drops no
        // failure.
        let others = EventKinds::ALL.without(EventKinds::LIFECYCLE | EventKinds::TICK_RATE);
        let kinds = [others, EventKinds::LIFECYCLE];
        let names = ["console", "console-lifecycle"];
        let mut actors = Vec::new();
        for (kinds, name) in kinds.into_iter().zip(names) {
            let subscriber = (1..100).find_map(|n| {
                let name = if n == 1 { name.to_owned() } else { format!("{name}-{n}") };
                let (log, is_over) = (Arc::clone(log), Arc::clone(&is_over));
                let clock = system.executor();
                let props = Props::from_fn(move |_cx, event: SystemEvent| {
                    if *lock(&is_over) {
                        return Next::Stop;
                    }
                    record(&mut lock(&log), &event, &clock);
                    Next::Stay
                });
                system.spawn_system(&name, props).ok()
            });
            let Some(subscriber) = subscriber else { continue };
            system.events().subscribe(kinds, subscriber.clone());
            actors.push(subscriber);
        }
        Self { actors, is_over }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        *lock(&self.is_over) = true;
        for actor in &self.actors {
            // It only makes the actor look; one with a full mailbox looks anyway.
            let _ = actor.tell(SystemEvent::EventsDropped(0));
        }
    }
}

fn record(log: &mut Log, event: &SystemEvent, clock: &Handle) {
    log.record(event, clock.nanos());
}

impl Log {
    pub(crate) fn record(&mut self, event: &SystemEvent, at_ns: u64) {
        match event {
            SystemEvent::Lifecycle(step) => {
                let path = step.path.to_string();
                match step.step {
                    LifecycleStep::Restarted => {
                        let failing = self.failing_mut(&path, at_ns);
                        push(&mut failing.restarts_ns, at_ns, RESTARTS_EACH);
                        self.push("restarted", Some(path), "it was restarted", at_ns);
                    }
                    LifecycleStep::Stopped => {
                        let (pid, path) = (step.pid.to_string(), path);
                        push(&mut self.ended, Ended { path, pid }, ENDED_MAX);
                    }
                    _ => {}
                }
            }
            SystemEvent::Failure(info) => self.failure(info, at_ns),
            SystemEvent::DeadLetter(dead) | SystemEvent::SuppressedDeadLetter(dead) => {
                self.dead_letter(&dead.recipient, dead.message_type, dead.reason, at_ns);
            }
            SystemEvent::Stuck(stuck) => self.stuck(stuck, at_ns),
            SystemEvent::EventsDropped(n) => self.lost += n,
            other => self.other(other, at_ns),
        }
    }

    fn other(&mut self, event: &SystemEvent, at_ns: u64) {
        let (kind, path, text) = match event {
            SystemEvent::Unhandled(one) => {
                let text = format!("did not handle a message of type {}", one.message_type);
                ("unhandled", Some(one.path.to_string()), text)
            }
            SystemEvent::Scheduler(warning) => {
                let is_clock = matches!(
                    warning,
                    Warning::ClockJump { .. }
                        | Warning::DriverSilent { .. }
                        | Warning::DriverCatchUpExceeded { .. }
                );
                if is_clock {
                    push(&mut self.clock, (at_ns, warning.to_string()), FEW);
                }
                ("scheduler", None, warning.to_string())
            }
            SystemEvent::SchedulerClosed => {
                ("scheduler", None, "the scheduler is closed: no timer fires any more".to_owned())
            }
            SystemEvent::MailboxOverflow(path) => {
                let text = "the mailbox was full, and its rule stops the actor".to_owned();
                ("mailbox-overflow", Some(path.to_string()), text)
            }
            SystemEvent::MailboxRefusals(refusals) => {
                let path = refusals.path.to_string();
                push(&mut self.refusals, (at_ns, path.clone(), refusals.refused), FEW);
                ("mailbox-refusals", Some(path), refusals.to_string())
            }
            SystemEvent::Straggler(path) => {
                let text = "takes longer to stop than its parent waits".to_owned();
                ("straggler", Some(path.to_string()), text)
            }
            SystemEvent::AskCycle(cycle) => {
                let paths: Vec<String> = cycle.paths.iter().map(ToString::to_string).collect();
                let text = format!("actors wait for each other: {}", paths.join(", "));
                ("ask-cycle", paths.first().cloned(), text)
            }
            _ => return,
        };
        self.push(kind, path, &text, at_ns);
    }

    /// Records an event.
    pub(crate) fn push(&mut self, kind: &str, path: Option<String>, text: &str, at_ns: u64) {
        let number = self.next;
        self.next += 1;
        let text = shortened(text);
        let row = EventRow { number, at_ns, kind: kind.to_owned(), path, text };
        push(&mut self.events, row, EVENTS_MAX);
    }

    fn failure(&mut self, info: &FailureInfo, at_ns: u64) {
        let path = info.origin().1.to_string();
        let decision = info.directive.map_or_else(String::new, |one| one.to_string());
        let row = FailureRow {
            event: self.next,
            at_ns,
            text: shortened(&info.reason.to_string()),
            message_type: info.message_type.map(str::to_owned),
            decision: decision.clone(),
        };
        let text = if decision.is_empty() {
            row.text.clone()
        } else {
            format!("{} (decision: {decision})", row.text)
        };
        let failures = &mut self.failing_mut(&path, at_ns).failures;
        failures.push_front(row);
        failures.truncate(FAILURES_EACH);
        self.push("failure", Some(path), &text, at_ns);
    }

    fn failing_mut(&mut self, path: &str, at_ns: u64) -> &mut Failing {
        if self.failing.len() >= FAILING_MAX && !self.failing.contains_key(path) {
            let oldest = self.failing.iter().min_by_key(|(_, one)| one.last_ns);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                self.failing.remove(&oldest);
            }
        }
        let failing = self.failing.entry(path.to_owned()).or_default();
        failing.last_ns = at_ns;
        failing
    }

    fn dead_letter(
        &mut self,
        recipient: &ActorPath,
        message_type: &str,
        why: DeadLetterReason,
        at_ns: u64,
    ) {
        let (recipient, reason) = (recipient.to_string(), why.name());
        let is_it = |group: &DeadGroup| {
            let row = &group.row;
            row.recipient == recipient && row.message_type == message_type && row.reason == reason
        };
        if let Some(at) = self.groups.iter().position(is_it) {
            self.groups[at].count += 1;
            self.groups[at].row.last_ns = at_ns;
            return;
        }
        if self.groups.len() == GROUPS_MAX && !self.drop_old_group(at_ns) {
            self.ungrouped += 1;
            return;
        }
        let text = format!("{message_type} for it: {why}");
        self.push("dead-letter", Some(recipient.clone()), &text, at_ns);
        let row = DeadLetterRow {
            recipient,
            message_type: message_type.to_owned(),
            reason: reason.to_owned(),
            last_ns: at_ns,
            ..DeadLetterRow::default()
        };
        self.groups.push(DeadGroup { row, count: 1, before: 0, middle: 0 });
    }

    /// Drops the group whose last dead letter is the oldest, if it came a while ago.
    fn drop_old_group(&mut self, now_ns: u64) -> bool {
        let last = |group: &DeadGroup| group.row.last_ns;
        let oldest = self.groups.iter().enumerate().min_by_key(|(_, group)| last(group));
        let Some((at, group)) = oldest else { return false };
        if now_ns.saturating_sub(last(group)) < GROUP_AGE_NS {
            return false;
        }
        self.groups.remove(at);
        true
    }

    fn stuck(&mut self, stuck: &Stuck, at_ns: u64) {
        let running_ns = u64::try_from(stuck.running_for.as_nanos()).unwrap_or(u64::MAX);
        let one = StuckActor {
            pid: stuck.pid,
            path: stuck.path.to_string(),
            message_type: stuck.message_type.to_owned(),
            since_ns: at_ns.saturating_sub(running_ns),
            reported_ns: at_ns,
            taken: None,
        };
        let text = format!("handles a {} for {:.1?}", one.message_type, stuck.running_for);
        self.push("stuck", Some(one.path.clone()), &text, at_ns);
        self.stuck.retain(|other| other.pid != one.pid);
        if self.stuck.len() < FEW {
            self.stuck.push(one);
        }
    }

    /// Computes the rates of dead letters over so many seconds; `is_next` if a window has begun at
    /// this time, as that of [`Rates`](super::Rates) does.
    pub(crate) fn advance(&mut self, seconds: Option<f64>, is_next: bool) {
        for group in &mut self.groups {
            group.row.count = Number::count(group.count);
            if is_next {
                (group.before, group.middle) = (group.middle, group.count);
            }
            let new = super::float(group.count - group.before);
            group.row.rate = seconds.map(|seconds| new / seconds).into();
        }
    }

    /// The groups of dead letters, the largest rate first.
    pub(crate) fn dead_letters(&self) -> Vec<DeadLetterRow> {
        let mut rows: Vec<_> = self.groups.iter().map(|group| group.row.clone()).collect();
        rows.sort_by(|a, b| {
            let by_rate = b.rate.or_zero().total_cmp(&a.rate.or_zero());
            by_rate.then(b.count.or_zero().total_cmp(&a.count.or_zero()))
        });
        rows
    }

    pub(crate) fn events(&self) -> &VecDeque<EventRow> {
        &self.events
    }

    pub(crate) fn failing(&self) -> &BTreeMap<String, Failing> {
        &self.failing
    }

    /// The actor that has ended last, of those with this path or pid.
    pub(crate) fn ended(&self, is_it: impl Fn(&Ended) -> bool) -> Option<&Ended> {
        self.ended.iter().rev().find(|one| is_it(one))
    }

    /// About how many bytes this holds.
    pub(crate) fn bytes(&self) -> usize {
        let rows = self.events.len() + self.groups.len() + self.ended.len();
        (rows + self.failing.len() * FAILURES_EACH) * 160
    }

    pub(crate) fn clear(&mut self) {
        // The numbers go on, so that no client takes a new event for an old one. Actions stay: who
        // asks for one need not look, and who wants to know of it may come later.
        let mut events = core::mem::take(&mut self.events);
        events.retain(|row| row.kind == ACTION);
        *self = Self { events, next: self.next, ..Self::default() };
    }
}

fn push<T>(all: &mut VecDeque<T>, new: T, max: usize) {
    if all.len() == max {
        all.pop_front();
    }
    all.push_back(new);
}

fn shortened(text: &str) -> String {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overflow(n: usize) -> SystemEvent {
        SystemEvent::MailboxOverflow(ActorPath::root().child(&format!("a{n}")))
    }

    #[test]
    fn the_log_is_bounded_and_its_numbers_go_on() {
        let mut log = Log::default();
        for n in 0..3_000 {
            log.record(&overflow(n), n as u64);
        }
        assert_eq!((log.events.len(), log.next), (EVENTS_MAX, 3_000));
        assert_eq!(log.events.front().map(|row| row.number), Some(3_000 - EVENTS_MAX as u64));
        log.clear();
        log.record(&overflow(1), 1);
        assert_eq!(log.events.front().map(|row| row.number), Some(3_000));
    }

    #[test]
    fn a_report_of_a_stuck_handler_is_about_no_later_poll() {
        let mut log = Log::default();
        let stuck = StuckActor {
            pid: Pid::new(0, 1, core::num::NonZeroU64::MIN),
            path: "/user/till".into(),
            message_type: "u32".into(),
            since_ns: 10,
            reported_ns: 30,
            taken: None,
        };
        log.stuck.push(stuck);
        let of_poll = |seen_ns| log.stuck[0].is_of_poll(seen_ns);
        assert!(of_poll(5) && of_poll(20) && of_poll(30), "samples may begin within the poll");
        assert!(!of_poll(31));
    }

    #[test]
    fn a_group_of_dead_letters_that_is_over_makes_room_for_a_new_one() {
        let mut log = Log::default();
        let dead = |log: &mut Log, n: usize, at_ns: u64| {
            let to = ActorPath::root().child(&format!("a{n}"));
            log.dead_letter(&to, "u32", DeadLetterReason::Stopped, at_ns);
        };
        for n in 0..GROUPS_MAX {
            dead(&mut log, n, n as u64);
        }
        dead(&mut log, GROUPS_MAX, GROUP_AGE_NS - 1);
        assert_eq!((log.groups.len(), log.ungrouped), (GROUPS_MAX, 1), "all of them are young");
        dead(&mut log, 0, GROUP_AGE_NS);
        dead(&mut log, GROUPS_MAX, GROUP_AGE_NS + 1);
        assert_eq!((log.groups.len(), log.ungrouped), (GROUPS_MAX, 1));
        let has = |n: usize| log.groups.iter().any(|one| one.row.recipient == format!("/a{n}"));
        assert!(has(0) && !has(1) && has(2) && has(GROUPS_MAX));
    }

    #[test]
    fn actions_stay_when_nobody_looks_any_more() {
        let mut log = Log::default();
        log.push(ACTION, None, "somebody: set twice.k = 3: done", 1);
        log.record(&overflow(1), 2);
        log.clear();
        let left: Vec<_> = log.events.iter().map(|row| (row.number, row.kind.as_str())).collect();
        assert_eq!((left, log.next), (vec![(0, "action")], 2));
    }

    #[test]
    fn long_texts_are_cut_between_two_letters() {
        let text = "é".repeat(TEXT_MAX);
        let short = shortened(&text);
        assert!(short.len() <= TEXT_MAX && text.starts_with(&short));
    }

    #[test]
    fn events_that_were_dropped_are_counted() {
        let mut log = Log::default();
        log.record(&SystemEvent::EventsDropped(7), 1);
        assert_eq!((log.lost, log.next), (7, 0));
    }
}
