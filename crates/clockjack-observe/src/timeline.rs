//! A trace in memory, independent of the file format: tracks, spans, instants, counters and flows.
//!
//! The executor, the scheduler, actors and graphs convert their records into a [`Timeline`];
//! [`chrome`](crate::chrome) and [`perfetto`](crate::perfetto) write it to a file. It has no clock
//! and draws nothing. Events may be added in any order, so a span can be added when it ends.
//!
//! Invariants, whatever is added:
//!
//! * **Spans nest.** On every written track, two spans either nest or do not overlap. A span that
//!   would cross an earlier one of its track is not refused, since a trace without overlapping
//!   spans would hide the interesting cases: the span moves to an overflow track next to its
//!   track, named `track (2)`, `track (3)` and so on. Only the times and the order of adding
//!   decide which one. Of two spans with equal times, the one that was added first is the outer
//!   one.
//! * **Flows point forward.** A flow connects one source to one sink that does not begin before the
//!   source, and no two flows share an id.
//! * **The output is deterministic.** Ids, names and orders follow from the order of adding.
//!
//! ```
//! use clockjack_observe::timeline::Timeline;
//!
//! let mut timeline = Timeline::new();
//! let cell = timeline.track("robot-cell", None);
//! let sensors = timeline.track("sensors", Some(cell));
//! let control = timeline.track("control", Some(cell));
//! let sent = timeline.span(sensors, "imu", 1_000, 400, &[("epoch", 7_u64.into())]);
//! let received = timeline.span(control, "estimator", 1_500, 900, &[]);
//! timeline.flow(1, sent, received)?;
//!
//! let mut json = String::new();
//! clockjack_observe::chrome::write(&mut json, &timeline)?;
//! assert!(json.contains(r#""name":"imu""#));
//! assert!(!clockjack_observe::perfetto::encode(&timeline).is_empty());
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod layout;
mod names;
mod record;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::{error::Error, fmt, ops::Range};

pub(crate) use layout::{Flow, FlowEnd, Layout, OutputTrack, TraceStep, TraceStepKind};
use names::Names;
pub use names::{Name, NameId};

/// The latest time that a trace can hold: the formats use signed 64-bit nanoseconds. Later times
/// are clamped to it; it is 292 years after the start.
pub const AT_NS_MAX: u64 = u64::MAX >> 1;

/// Tracks with events and flows. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    names: Names,
    tracks: Vec<Track>,
    track_ids: BTreeMap<(Option<TrackId>, NameId, TrackKind), TrackId>,
    events: Vec<Event>,
    readings: Vec<Reading>,
    args: Vec<Arg>,
    flows: Vec<Flow>,
    flow_ids: BTreeSet<u64>,
    /// Where [`join`](Self::join) starts its search for a free id.
    next_flow_id: u64,
}

/// A track for spans and instants, of the [`Timeline`] that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackId(usize);

/// A track for the values of one counter, of the [`Timeline`] that created it.
///
/// A separate type, because no format lets spans and counters share a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId(TrackId);

/// A span or an instant, of the [`Timeline`] that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(usize);

/// The value of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A string.
    Text(&'a str),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer, such as an id.
    Uint(u64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
}

/// The value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

/// A flow was refused; the timeline is unchanged. Permanent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowError {
    /// Another flow has this id.
    IdTaken {
        /// The id.
        id: u64,
    },
    /// Source and sink are the same event.
    SameEvent {
        /// The flow's id.
        id: u64,
    },
    /// The sink begins before the source.
    Backward {
        /// The flow's id.
        id: u64,
        /// When the source begins.
        from_ns: u64,
        /// When the sink begins.
        to_ns: u64,
    },
}

/// One track as it was created.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    pub(crate) name: NameId,
    pub(crate) parent: Option<TrackId>,
    pub(crate) kind: TrackKind,
}

/// What a track holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TrackKind {
    /// Spans and instants.
    Events,
    /// Values.
    Counter,
}

/// A span, or an instant if it has no duration.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) track: TrackId,
    pub(crate) name: NameId,
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: Option<u64>,
    args: Range<usize>,
}

/// A counter's value at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) track: TrackId,
    pub(crate) at_ns: u64,
    pub(crate) value: Number,
}

/// An argument with its text interned.
#[derive(Clone, Copy, Debug)]
struct Arg {
    name: NameId,
    value: ArgValue,
}

#[derive(Clone, Copy, Debug)]
enum ArgValue {
    Text(NameId),
    Int(i64),
    Uint(u64),
    Float(f64),
    Bool(bool),
}

impl Timeline {
    /// Creates an empty timeline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Interns a string, for names that are used often.
    pub fn intern(&mut self, text: &str) -> NameId {
        self.names.intern(text)
    }

    /// The track with this name below `parent`; the first call creates it.
    ///
    /// A track without a parent is shown as a process, the tracks below it as its threads. Tracks
    /// are shown in the order of their creation.
    pub fn track<'a>(&mut self, name: impl Into<Name<'a>>, parent: Option<TrackId>) -> TrackId {
        let name = self.names.resolve(name.into());
        self.find_or_add(name, parent, TrackKind::Events)
    }

    /// The counter with this name below `parent`; the first call creates it.
    pub fn counter_track<'a>(
        &mut self,
        name: impl Into<Name<'a>>,
        parent: Option<TrackId>,
    ) -> CounterId {
        let name = self.names.resolve(name.into());
        CounterId(self.find_or_add(name, parent, TrackKind::Counter))
    }

    /// Adds a span that starts at `start_ns` and lasts for `duration_ns`, which may be 0.
    ///
    /// # Panics
    ///
    /// If the track belongs to another timeline.
    pub fn span<'a>(
        &mut self,
        track: TrackId,
        name: impl Into<Name<'a>>,
        start_ns: u64,
        duration_ns: u64,
        args: &[(&str, Value<'_>)],
    ) -> EventId {
        let name = self.names.resolve(name.into());
        let start_ns = start_ns.min(AT_NS_MAX);
        let duration_ns = duration_ns.min(AT_NS_MAX - start_ns);
        self.add(track, name, start_ns, Some(duration_ns), args)
    }

    /// Adds an instant: an event without a duration.
    ///
    /// # Panics
    ///
    /// If the track belongs to another timeline.
    pub fn instant<'a>(
        &mut self,
        track: TrackId,
        name: impl Into<Name<'a>>,
        at_ns: u64,
        args: &[(&str, Value<'_>)],
    ) -> EventId {
        let name = self.names.resolve(name.into());
        self.add(track, name, at_ns.min(AT_NS_MAX), None, args)
    }

    /// Adds a value of a counter, valid from `at_ns` on.
    ///
    /// # Panics
    ///
    /// If the counter belongs to another timeline.
    pub fn counter(&mut self, counter: CounterId, at_ns: u64, value: impl Into<Number>) {
        let track = counter.0;
        assert!(track.0 < self.tracks.len(), "counter {} is of another timeline", track.0);
        let at_ns = at_ns.min(AT_NS_MAX);
        self.readings.push(Reading { track, at_ns, value: value.into() });
    }

    /// Adds a flow, an arrow from the start of `from` to the start of `to`: a message and its
    /// receiver, a wake-up and the step that followed.
    ///
    /// Both may begin at the same time, as happens in virtual time; the source is then written
    /// first. If flows of one instant contradict each other or the order of a track, one of them is
    /// left out of the trace, never a span.
    ///
    /// # Errors
    ///
    /// If the id is taken, if the two are the same event, or if the sink begins before the source.
    ///
    /// # Panics
    ///
    /// If an event belongs to another timeline.
    pub fn flow(&mut self, id: u64, from: EventId, to: EventId) -> Result<(), FlowError> {
        if from == to {
            return Err(FlowError::SameEvent { id });
        }
        let (from_ns, to_ns) = (self.events[from.0].start_ns, self.events[to.0].start_ns);
        if to_ns < from_ns {
            return Err(FlowError::Backward { id, from_ns, to_ns });
        }
        if !self.flow_ids.insert(id) {
            return Err(FlowError::IdTaken { id });
        }
        self.flows.push(Flow { id, from, to });
        Ok(())
    }

    /// Adds a [`flow`](Self::flow) with the lowest free id, starting at 1.
    ///
    /// # Errors
    ///
    /// If the two are the same event, or if the sink begins before the source.
    ///
    /// # Panics
    ///
    /// If an event belongs to another timeline.
    pub fn join(&mut self, from: EventId, to: EventId) -> Result<u64, FlowError> {
        self.next_flow_id = self.next_flow_id.max(1);
        while self.flow_ids.contains(&self.next_flow_id) {
            self.next_flow_id += 1;
        }
        let id = self.next_flow_id;
        self.flow(id, from, to).map(|()| id)
    }

    /// The number of tracks, including counters, without overflow tracks.
    #[must_use]
    pub fn n_tracks(&self) -> usize {
        self.tracks.len()
    }

    /// The number of spans, instants and counter values.
    #[must_use]
    pub fn n_events(&self) -> usize {
        self.events.len() + self.readings.len()
    }

    /// The number of flows.
    #[must_use]
    pub fn n_flows(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_events() == 0
    }

    pub(crate) fn text(&self, name: NameId) -> &str {
        self.names.text(name)
    }

    pub(crate) fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    pub(crate) fn event(&self, id: EventId) -> &Event {
        &self.events[id.0]
    }

    pub(crate) fn reading(&self, index: usize) -> Reading {
        self.readings[index]
    }

    /// The names and values of an event's arguments.
    pub(crate) fn args(&self, event: &Event) -> impl Iterator<Item = (NameId, Value<'_>)> {
        self.args[event.args.clone()].iter().map(|arg| {
            let value = match arg.value {
                ArgValue::Text(text) => Value::Text(self.names.text(text)),
                ArgValue::Int(n) => Value::Int(n),
                ArgValue::Uint(n) => Value::Uint(n),
                ArgValue::Float(x) => Value::Float(x),
                ArgValue::Bool(yes) => Value::Bool(yes),
            };
            (arg.name, value)
        })
    }

    fn find_or_add(&mut self, name: NameId, parent: Option<TrackId>, kind: TrackKind) -> TrackId {
        if let Some(parent) = parent {
            // Parents come before their children, so the path to the root has no cycle.
            assert!(parent.0 < self.tracks.len(), "track {} is of another timeline", parent.0);
        }
        let next = TrackId(self.tracks.len());
        let id = *self.track_ids.entry((parent, name, kind)).or_insert(next);
        if id == next {
            self.tracks.push(Track { name, parent, kind });
        }
        id
    }

    fn add(
        &mut self,
        track: TrackId,
        name: NameId,
        start_ns: u64,
        duration_ns: Option<u64>,
        args: &[(&str, Value<'_>)],
    ) -> EventId {
        assert!(track.0 < self.tracks.len(), "track {} is of another timeline", track.0);
        let first = self.args.len();
        for (name, value) in args {
            let value = match *value {
                Value::Text(text) => ArgValue::Text(self.names.intern(text)),
                Value::Int(n) => ArgValue::Int(n),
                Value::Uint(n) => ArgValue::Uint(n),
                Value::Float(x) => ArgValue::Float(x),
                Value::Bool(yes) => ArgValue::Bool(yes),
            };
            let name = self.names.intern(name);
            self.args.push(Arg { name, value });
        }
        let id = EventId(self.events.len());
        let args = first..self.args.len();
        self.events.push(Event { track, name, start_ns, duration_ns, args });
        id
    }
}

impl TrackId {
    /// The index among all tracks.
    pub(crate) const fn index(self) -> usize {
        self.0
    }
}

impl Event {
    /// The end of the event.
    pub(crate) fn end_ns(&self) -> u64 {
        self.start_ns + self.duration_ns.unwrap_or(0)
    }
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IdTaken { id } => write!(f, "another flow has the id {id}"),
            Self::SameEvent { id } => write!(f, "flow {id} joins an event to itself"),
            Self::Backward { id, from_ns, to_ns } => {
                write!(f, "flow {id} would go back in time, from {from_ns} ns to {to_ns} ns")
            }
        }
    }
}

impl Error for FlowError {}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value<'_> {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl From<u64> for Value<'_> {
    fn from(n: u64) -> Self {
        Self::Uint(n)
    }
}

impl From<u32> for Value<'_> {
    fn from(n: u32) -> Self {
        Self::Uint(n.into())
    }
}

impl From<f64> for Value<'_> {
    fn from(x: f64) -> Self {
        Self::Float(x)
    }
}

impl From<bool> for Value<'_> {
    fn from(yes: bool) -> Self {
        Self::Bool(yes)
    }
}

impl From<i64> for Number {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

/// Saturates at `i64::MAX`: the formats have no larger counter.
impl From<u64> for Number {
    fn from(n: u64) -> Self {
        Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Number {
    fn from(n: u32) -> Self {
        Self::Int(n.into())
    }
}

impl From<f64> for Number {
    fn from(x: f64) -> Self {
        Self::Float(x)
    }
}
