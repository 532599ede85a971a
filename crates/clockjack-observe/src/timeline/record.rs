//! Converts records of flight recorders into a timeline: pairs of begin and end become spans, other
//! records instants, and flows connect causes to their effects.
//!
//! A ring overwrites old records and may be read at any time, so one half of a pair can be missing;
//! see [`pair`] for the result. Every record is drawn, alone or as half of a span.

mod pair;

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::convert::Infallible;

use self::pair::{Drawn, Extent};
use super::{EventId, Timeline, TrackId, Value};
use crate::event::{Event, ProcessId, Record, SlotId};

impl Timeline {
    /// Adds the records of some rings, each with a name and sorted by time: one track per ring,
    /// below `parent`, with one span per step of a process, park of a worker, run of a component
    /// and epoch, and an instant for everything else.
    ///
    /// Flows connect the spawn or wake-up of a process to the step that follows, and the arming of
    /// a timer or job to its firing, also between rings. If a ring has lost one end, there is no
    /// flow. Between rings, events with equal times are ordered with the cause first.
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
                if let Some((key, role)) = causal_role(drawn.first) {
                    links.push(Link { at_ns: drawn.start_ns, position, key, role, event });
                }
            }
            n_rings += 1;
        }
        // Within a single ring, the order of records with equal times is known.
        let is_late = |link: &Link| n_rings > 1 && link.role == Role::Effect;
        links.sort_by_key(|link| (link.at_ns, is_late(link), link.position));
        let mut causes: BTreeMap<Key, EventId> = BTreeMap::new();
        for Link { key, role, event, .. } in links {
            match role {
                Role::Origin => _ = causes.insert(key, event),
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

/// What a cause and an effect are about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Process(ProcessId),
    Timer(SlotId),
    Job(SlotId),
}

/// The role of an event in a causal chain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It starts a new chain: earlier causes belong to a previous user of the id.
    Origin,
    /// It causes the next effect, unless an earlier event does.
    Wake,
    /// It is an effect.
    Effect,
}

/// A drawn cause or effect.
struct Link {
    at_ns: u64,
    /// The position in its ring.
    position: usize,
    key: Key,
    role: Role,
    event: EventId,
}

/// Whether an event is a cause or an effect, and of what.
const fn causal_role(event: Event) -> Option<(Key, Role)> {
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

/// The name of a span, from its begin or, if that is lost, from its end.
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

/// The fields of a drawn event, each name once.
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
