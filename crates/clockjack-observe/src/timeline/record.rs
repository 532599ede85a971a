//! Converts records of flight recorders into a timeline: records with a duration become spans,
//! others instants, and flows connect wake-ups to the polls that followed.

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::convert::Infallible;

use super::{EventId, Timeline, TrackId, Value};
use crate::event::{ActorId, Event, Record, TaskId};

impl Timeline {
    /// Adds the records of some rings, each with a name: one track per ring, below `parent`, with
    /// one span per poll of a task and per sleep of a worker, and an instant for everything else.
    /// The rings are those of the executor `node`. `name_of` returns the name of an actor or of
    /// another task, if it is known; otherwise its number is shown.
    ///
    /// Flows connect the spawn or wake-up of a task to the poll that follows, also between rings.
    /// If a ring has lost one end, there is no flow.
    ///
    /// ```
    /// use clockjack_observe::event::{Event, Record, TaskId};
    /// use clockjack_observe::timeline::Timeline;
    ///
    /// let task = TaskId(7);
    /// let ring = [
    ///     Record::new(10, Event::TaskWoken { task }),
    ///     Record::new(40, Event::TaskPolled { task, messages: 1, ran_ns: 25 }),
    /// ];
    /// let mut timeline = Timeline::new();
    /// timeline.add_records(None, 0, [("worker 0", ring)], &|_| Some("/user/printer".into()));
    /// assert_eq!((timeline.n_events(), timeline.n_flows()), (2, 1));
    /// ```
    pub fn add_records<'a, R>(
        &mut self,
        parent: Option<TrackId>,
        node: u16,
        rings: impl IntoIterator<Item = (&'a str, R)>,
        name_of: &dyn Fn(ActorId) -> Option<String>,
    ) where
        R: IntoIterator<Item = Record>,
    {
        let mut links = Vec::new();
        for (name, records) in rings {
            let track = self.track(name, parent);
            for record in records {
                let task_name = record.event.subject(node).and_then(name_of);
                let (start_ns, event) = self.draw(track, record, task_name.as_deref());
                if let Some((task, role)) = causal_role(record.event) {
                    links.push((start_ns, role, task, event));
                }
            }
        }
        // Of equal times, causes come first: between rings, the order is not known.
        links.sort_by_key(|(start_ns, role, ..)| (*start_ns, *role));
        let mut causes: BTreeMap<TaskId, EventId> = BTreeMap::new();
        for (_, role, task, event) in links {
            match role {
                Role::Origin => _ = causes.insert(task, event),
                Role::Wake => _ = causes.entry(task).or_insert(event),
                Role::Effect => {
                    if let Some(cause) = causes.remove(&task) {
                        self.join(cause, event).expect("links are sorted by time and differ");
                    }
                }
            }
        }
    }

    /// Draws a record of a task with this name; returns when it began.
    fn draw(
        &mut self,
        track: TrackId,
        Record { at_ns, event }: Record,
        task_name: Option<&str>,
    ) -> (u64, EventId) {
        let mut fields: Vec<(&'static str, String)> = Vec::new();
        let Ok(()) = event.visit_fields(|name, value| {
            fields.push((name, value.to_string()));
            Ok::<(), Infallible>(())
        });
        let value = |text| str::parse(text).map_or(Value::Text(text), Value::Uint);
        let mut args: Vec<_> = fields.iter().map(|(name, text)| (*name, value(text))).collect();
        args.extend(task_name.map(|name| ("name", Value::Text(name))));
        let start_ns = at_ns.saturating_sub(event.duration_ns());
        let number;
        let drawn = match event.facts().span_ns {
            None => self.instant(track, event.name(), start_ns, &args),
            Some(span_ns) => {
                let name = match event {
                    Event::TaskPolled { task, .. } => {
                        number = format!("task {task}");
                        task_name.unwrap_or(&number)
                    }
                    Event::WorkerParked { .. } => "parked",
                    event => event.name(),
                };
                self.span(track, name, start_ns, span_ns, &args)
            }
        };
        (start_ns, drawn)
    }
}

/// The role of an event in a causal chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// It starts a new chain: earlier causes belong to a previous user of the id.
    Origin,
    /// It causes the next effect, unless an earlier event does.
    Wake,
    /// It is an effect.
    Effect,
}

/// Whether an event is a cause or an effect, and of which task.
const fn causal_role(event: Event) -> Option<(TaskId, Role)> {
    match event {
        Event::TaskSpawned { task } => Some((task, Role::Origin)),
        Event::TaskWoken { task } => Some((task, Role::Wake)),
        Event::TaskPolled { task, .. } => Some((task, Role::Effect)),
        Event::TaskFinished { .. }
        | Event::TimersFired { .. }
        | Event::TimersLate { .. }
        | Event::ShardReassigned { .. }
        | Event::TimersTakenOver { .. }
        | Event::WorkerStarted { .. }
        | Event::WorkerStopped { .. }
        | Event::WorkerParked { .. }
        | Event::WorkStolen { .. }
        | Event::WorkerStuck { .. }
        | Event::ShutdownStarted { .. }
        | Event::JobFired { .. }
        | Event::JobLate { .. }
        | Event::SchedulerWarned { .. }
        | Event::ActorStarted { .. }
        | Event::ActorStopped { .. }
        | Event::ActorFailed { .. }
        | Event::ActorRestarted { .. }
        | Event::FailureEscalated { .. }
        | Event::DeadLettered { .. } => None,
    }
}
