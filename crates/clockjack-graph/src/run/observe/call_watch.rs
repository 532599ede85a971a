//! Calls that take longer than their lane allows (`max_callback_ms`), reported while they run.
//!
//! The count of such calls and their trace records are made when a call returns; a call that never
//! returns would be seen by nobody. So each component of a lane with a limit has *slots*, one for
//! each of its calls that may run at the same time, and threads other than that of the call look at
//! them.
//!
//! # Protocol
//!
//! A slot is one word: [`FREE`], or when the call began, with a bit that says whether it was
//! reported.
//!
//! 1. The worker that begins a call exchanges a free slot for the time, and frees the slot when the
//!    call returns or panics.
//! 2. Any thread may *check*: a timer of the run does it on a pool, and a host may do it on a
//!    thread of its own ([`Stopper::overdue_calls`](crate::Stopper::overdue_calls)), which also
//!    works when all workers hang. For a call over its limit, the checker sets the bit by a
//!    compare-exchange from the word that it has read. Exactly one checker succeeds and reports the
//!    call. If the call has returned since, the exchange fails, and nothing is reported.
//!
//! Nobody waits for anybody, so nothing can hang. The words publish no other data, so all accesses
//! are relaxed.

use core::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use std::sync::{Arc, Mutex};

use clockjack_exec::Handle;

use super::{
    component_log::{ComponentLog, LogLevel},
    health::{self, Health, HealthKey, HealthKind},
    sinks::TraceLog,
    trace::{EpochStart, TraceRecord},
};
use crate::lock::lock;

/// No call is in the slot.
const FREE: u64 = 0;
/// The call was reported.
const REPORTED: u64 = 1;

/// The shortest and the longest time between two checks.
const CHECK_INTERVAL: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_millis(250));

/// A call that takes longer than its lane allows, and has not returned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverdueCall {
    /// The component.
    pub component: String,
    /// Its lane.
    pub lane: String,
    /// The epoch of the call.
    pub epoch: u64,
    /// For how long it has run.
    pub running_for: Duration,
    /// How long it may take: `max_callback_ms` of the lane.
    pub limit: Duration,
}

impl fmt::Display for OverdueCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { component, lane, running_for, limit, .. } = self;
        write!(
            f,
            "component `{component}` has not returned from its call for {} ms; lane `{lane}` \
             allows {} ms",
            running_for.as_millis(),
            limit.as_millis()
        )
    }
}

/// The calls of one component that run now.
pub(crate) struct WatchedComponent {
    /// Its index and its id.
    component: (usize, Arc<str>),
    /// The index and the id of its lane.
    lane: (u32, Arc<str>),
    limit_ns: u64,
    /// The epoch of the last call that began.
    epoch: AtomicU64,
    slots: Box<[AtomicU64]>,
}

impl WatchedComponent {
    /// A component of which `n_calls` may run at the same time.
    pub(crate) fn new(
        component: (usize, Arc<str>),
        lane: (u32, Arc<str>),
        limit_ns: u64,
        n_calls: usize,
    ) -> Self {
        let slots = (0..n_calls.max(1)).map(|_| AtomicU64::new(FREE)).collect();
        Self { component, lane, limit_ns, epoch: AtomicU64::new(0), slots }
    }

    /// A call begins (rule 1). The result is dropped when the call has returned.
    pub(crate) fn begin(self: &Arc<Self>, epoch: u64, now_ns: u64) -> Option<CallInProgress> {
        self.epoch.store(epoch, Relaxed);
        let word = began_at(now_ns);
        let claim = |slot: &AtomicU64| slot.compare_exchange(FREE, word, Relaxed, Relaxed).is_ok();
        let slot = self.slots.iter().position(claim)?;
        Some(CallInProgress { watched: Arc::clone(self), slot })
    }

    fn overdue(&self, ran_ns: u64) -> OverdueCall {
        OverdueCall {
            component: (&*self.component.1).into(),
            lane: (&*self.lane.1).into(),
            epoch: self.epoch.load(Relaxed),
            running_for: Duration::from_nanos(ran_ns),
            limit: Duration::from_nanos(self.limit_ns),
        }
    }
}

/// The word of a call that begins now. Never [`FREE`].
fn began_at(now_ns: u64) -> u64 {
    now_ns.saturating_add(1) << 1
}

/// A call that runs; frees its slot.
pub(crate) struct CallInProgress {
    watched: Arc<WatchedComponent>,
    slot: usize,
}

impl Drop for CallInProgress {
    fn drop(&mut self) {
        self.watched.slots[self.slot].store(FREE, Relaxed);
    }
}

/// The watched calls of a run, and where it reports them.
pub(crate) struct CallWatch {
    components: Vec<Arc<WatchedComponent>>,
    executor: Handle,
    /// The executor's time when the run began.
    began_ns: u64,
    graph: Arc<str>,
    log: Option<ComponentLog>,
    trace: Option<TraceLog>,
    /// Health events for the report of the run.
    events: Mutex<Vec<Health>>,
}

impl CallWatch {
    pub(crate) fn new(
        components: Vec<Arc<WatchedComponent>>,
        (executor, began_ns): (Handle, u64),
        graph: Arc<str>,
        log: Option<ComponentLog>,
        trace: Option<TraceLog>,
    ) -> Self {
        let events = Mutex::default();
        Self { components, executor, began_ns, graph, log, trace, events }
    }

    /// How long a timer waits between two checks; `None` if there is nothing to check, or no other
    /// thread that could.
    pub(crate) fn interval(&self) -> Option<Duration> {
        let limit_ns = self.components.iter().map(|one| one.limit_ns).min()?;
        let (least, most) = CHECK_INTERVAL;
        let interval = Duration::from_nanos(limit_ns / 4).clamp(least, most);
        (!self.executor.is_local()).then_some(interval)
    }

    /// Checks all calls (rule 2): reports those that are over their limit for the first time, and
    /// returns all that are.
    pub(crate) fn check(&self) -> Vec<OverdueCall> {
        let mut overdue = Vec::new();
        for watched in &self.components {
            for slot in &watched.slots {
                let word = slot.load(Relaxed);
                if word == FREE {
                    continue;
                }
                let ran_ns = self.executor.nanos().saturating_sub((word >> 1) - 1);
                if ran_ns <= watched.limit_ns {
                    continue;
                }
                let call = watched.overdue(ran_ns);
                if word & REPORTED == 0 {
                    // Under the lock: a domain that takes the events after the call has returned
                    // gets the event of a call that was reported before.
                    let mut events = lock(&self.events);
                    if slot.compare_exchange(word, word | REPORTED, Relaxed, Relaxed).is_ok() {
                        events.push(self.report(watched, &call));
                    }
                }
                overdue.push(call);
            }
        }
        overdue
    }

    /// Reports a call in the log, and in the trace by a health event, which it returns.
    #[cold]
    fn report(&self, watched: &WatchedComponent, call: &OverdueCall) -> Health {
        let now_ns = self.executor.nanos().saturating_sub(self.began_ns);
        if let Some(log) = &self.log {
            let (number, id) = &watched.component;
            let line = format_args!(
                "has not returned from its call for {} ms; its lane allows {} ms",
                call.running_for.as_millis(),
                call.limit.as_millis()
            );
            log.report(LogLevel::Error, (call.epoch, now_ns), (*number, id), &self.graph, &line);
        }
        let component = u32::try_from(watched.component.0).unwrap_or(health::NONE);
        let (kind, lane) = (HealthKind::CallbackOverdue, watched.lane.0);
        let event = Health {
            key: HealthKey::new(kind, component, lane, "report"),
            occurrence_count: 1,
            sequence: 0,
            depth: 0,
            capacity: 0,
            observed_ns: now_ns,
        };
        if let Some(trace) = &self.trace {
            let start = EpochStart { epoch: call.epoch, start_ns: now_ns };
            trace.open(start).take_records(&mut vec![TraceRecord::health_at(&event, start)]);
        }
        event
    }

    /// Takes the health events since the last call, for the report.
    pub(crate) fn take_events(&self) -> Vec<Health> {
        core::mem::take(&mut *lock(&self.events))
    }
}

#[cfg(test)]
mod tests {
    use clockjack_testkit::ManualTime;

    use super::*;

    fn watch(time: &ManualTime, n_calls: usize) -> (Arc<WatchedComponent>, CallWatch) {
        let ids = ((3, Arc::from("c")), (1, Arc::from("l")));
        let watched = Arc::new(WatchedComponent::new(ids.0, ids.1, 5_000_000, n_calls));
        let executor = time.system().executor();
        let began_ns = executor.nanos();
        let components = vec![Arc::clone(&watched)];
        let log = ComponentLog::new(8);
        let watch =
            CallWatch::new(components, (executor, began_ns), Arc::from("g"), Some(log), None);
        (watched, watch)
    }

    #[test]
    fn a_call_over_its_limit_is_reported_once_and_listed_until_it_returns() {
        let time = ManualTime::start();
        let (watched, watch) = watch(&time, 1);
        let now_ns = || watch.executor.nanos();
        let call = watched.begin(7, now_ns()).expect("a slot is free");
        time.advance(Duration::from_millis(5));
        assert_eq!(watch.check(), []);
        time.advance(Duration::from_millis(1));
        for _ in 0..2 {
            let found = watch.check();
            assert_eq!(found.len(), 1);
            assert_eq!((found[0].component.as_str(), found[0].lane.as_str()), ("c", "l"));
            assert_eq!((found[0].epoch, found[0].running_for.as_millis()), (7, 6));
        }
        let lines = watch.log.as_ref().map(ComponentLog::take).unwrap_or_default();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].epoch, 7);
        assert_eq!(watch.take_events().len(), 1);
        drop(call);
        assert_eq!(watch.check(), []);
        drop(watched.begin(8, now_ns()).expect("the slot is free again"));
    }

    #[test]
    fn calls_that_overlap_have_a_slot_each_and_there_are_no_more() {
        let time = ManualTime::start();
        let (watched, watch) = watch(&time, 2);
        let now_ns = watch.executor.nanos();
        let first = watched.begin(1, now_ns);
        let second = watched.begin(1, now_ns);
        assert!(first.is_some() && second.is_some());
        assert!(watched.begin(1, now_ns).is_none());
        time.advance(Duration::from_millis(6));
        assert_eq!(watch.check().len(), 2);
        drop(first);
        assert_eq!(watch.check().len(), 1);
        assert_eq!(watch.take_events().len(), 2);
    }
}
