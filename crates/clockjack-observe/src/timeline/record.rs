//! Records of the flight recorders as a timeline: what begins and ends becomes a span, the rest
//! instants, and causes point to what they caused.
//!
//! A ring forgets and may be read in the middle of anything, so half of a pair can be missing; see
//! [`pair`] for what is drawn then. Every record is drawn, alone or as half of a span.

mod pair;

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::convert::Infallible;

use clockjack_sync::mutant;

use self::pair::{Drawn, Extent};
use super::{EventId, Timeline, TrackId, Value};
use crate::event::{Event, ProcessId, Record, SlotId};

impl Timeline {
    /// Adds the records of some rings, each with a name and by rising time: a track for each, below
    /// `parent`, with one span for each step of a process, rest of a worker, run of a component and
    /// epoch, and an instant for everything else.
    ///
    /// Flows join the spawning or waking of a process to the step that follows, and the arming of a
    /// timer or job to its firing, also from ring to ring. Where a ring has forgotten one end there
    /// is no flow. Between rings, what happened at the same time counts as cause first.
    ///
    /// ```
    /// use clockjack_observe::event::{Event, ProcessId, Record, StepStatus, WorkerId};
    /// use clockjack_observe::timeline::Timeline;
    ///
    /// let (process, worker) = (ProcessId(7), WorkerId(0));
    /// let ring = [
    ///     Record::new(10, Event::ProcessWoken { process, worker }),
    ///     Record::new(15, Event::StepStarted { process, worker }),
    ///     Record::new(40, Event::StepEnded { process, status: StepStatus::Idle, ran_ns: 25 }),
    /// ];
    /// let mut timeline = Timeline::new();
    /// timeline.add_records(None, [("worker 0", ring)]);
    /// assert_eq!((timeline.n_events(), timeline.n_flows()), (2, 1));
    /// ```
    pub fn add_records<'a, R>(
        &mut self,
        parent: Option<TrackId>,
        rings: impl IntoIterator<Item = (&'a str, R)>,
    ) where
        R: IntoIterator<Item = Record>,
    {
        let mut links = Vec::new();
        let mut n_rings = 0;
        for (name, records) in rings {
            let track = self.track(name, parent);
            for (position, drawn) in pair::draw(records).into_iter().enumerate() {
                let event = self.draw(track, &drawn);
                if let Some((key, role)) = meaning(drawn.first) {
                    links.push(Link { at_ns: drawn.start_ns, position, key, role, event });
                }
            }
            n_rings += 1;
        }
        // Alone, a ring knows the order of what happened at one time.
        let is_late = |link: &Link| n_rings > 1 && link.role == Role::Effect;
        links.sort_by_key(|link| (link.at_ns, is_late(link), link.position));
        let mut causes: BTreeMap<Key, EventId> = BTreeMap::new();
        for Link { key, role, event, .. } in links {
            match role {
                Role::Origin => _ = causes.insert(key, event),
                Role::Wake if mutant!("records-last-wake") => _ = causes.insert(key, event),
                Role::Wake => _ = causes.entry(key).or_insert(event),
                Role::Effect => {
                    if let Some(cause) = causes.remove(&key) {
                        self.join(cause, event).expect("links are sorted by time and differ");
                    }
                }
            }
        }
    }

    fn draw(&mut self, track: TrackId, drawn: &Drawn) -> EventId {
        let fields = fields(drawn);
        let value = |text| str::parse(text).map_or(Value::Text(text), Value::Uint);
        let mut args: Vec<_> = fields.iter().map(|(name, text)| (*name, value(text))).collect();
        if drawn.extent == Extent::Unfinished {
            args.push(("unfinished", true.into()));
        }
        match drawn.extent {
            Extent::Instant => self.instant(track, drawn.first.name(), drawn.start_ns, &args),
            Extent::Whole | Extent::Unfinished => {
                let duration_ns = drawn.end_ns.saturating_sub(drawn.start_ns);
                self.span(track, &*span_name(drawn.first), drawn.start_ns, duration_ns, &args)
            }
        }
    }
}

/// Whom a cause and an effect are about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Process(ProcessId),
    Timer(SlotId),
    Job(SlotId),
}

/// What an event means to the one that it is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It begins anew; what was before is of somebody else.
    Origin,
    /// It causes the next effect, unless something did before.
    Wake,
    /// It was caused.
    Effect,
}

/// A cause or an effect, drawn.
struct Link {
    at_ns: u64,
    /// Its position in its ring.
    position: usize,
    key: Key,
    role: Role,
    event: EventId,
}

/// Whether an event is a cause or an effect.
const fn meaning(event: Event) -> Option<(Key, Role)> {
    Some(match event {
        Event::ProcessSpawned { process, .. } => (Key::Process(process), Role::Origin),
        Event::ProcessWoken { process, .. } => (Key::Process(process), Role::Wake),
        Event::StepStarted { process, .. } | Event::StepEnded { process, .. } => {
            (Key::Process(process), Role::Effect)
        }
        Event::TimerArmed { timer, .. } | Event::TimerRescheduled { timer, .. } => {
            (Key::Timer(timer), Role::Origin)
        }
        Event::TimerFired { timer, .. } => (Key::Timer(timer), Role::Effect),
        Event::JobScheduled { job, .. } => (Key::Job(job), Role::Origin),
        Event::JobFired { job, .. } => (Key::Job(job), Role::Effect),
        _ => return None,
    })
}

/// What a span is called, by its begin or, if that is lost, by its end.
fn span_name(event: Event) -> String {
    match event {
        Event::StepStarted { process, .. } | Event::StepEnded { process, .. } => {
            format!("process {process}")
        }
        Event::WorkerParked { .. } | Event::WorkerUnparked { .. } => "parked".into(),
        Event::EpochStarted { .. } | Event::EpochCommitted { .. } => "epoch".into(),
        Event::ComponentRan { component, .. } => format!("component {component}"),
        other => other.name().into(),
    }
}

/// The fields of what is drawn, each name once.
fn fields(drawn: &Drawn) -> Vec<(&'static str, String)> {
    let mut fields: Vec<(&'static str, String)> = Vec::new();
    for event in core::iter::once(drawn.first).chain(drawn.second) {
        let Ok(()) = event.visit_fields(|name, value| {
            if fields.iter().all(|(known, _)| *known != name) {
                fields.push((name, value.to_string()));
            }
            Ok::<(), Infallible>(())
        });
    }
    fields
}
