//! Writes a timeline as Perfetto's protobuf trace, for ui.perfetto.dev and `trace_processor`.
//!
//! Encoded by hand, without a protobuf library: a trace is a sequence of `TracePacket`s with a few
//! fields. The names and numbers of messages and fields are those of the public definitions,
//! github.com/google/perfetto, `protos/perfetto/trace/` (`trace_packet.proto`,
//! `track_event/{track_event,track_descriptor,process_descriptor,counter_descriptor,`
//! `debug_annotation}.proto`, `interned_data/interned_data.proto`); see `field`.
//!
//! A track without a parent is a process, the others are custom tracks below it, in the order of
//! their creation. All packets belong to one sequence; names of events and arguments are interned
//! in the packet that first uses them.
//!
//! Invariant: packets are sorted by time, every `SLICE_END` closes the last open `SLICE_BEGIN` of
//! its track, every name is interned before it is used, and each flow's id is in `flow_ids` of one
//! event and, after it, in `terminating_flow_ids` of another.

mod field;
mod wire;

use alloc::{format, vec::Vec};
use core::convert::Infallible;

use self::{
    field::{
        counter_descriptor, debug_annotation, event_type, interned_data, interned_name,
        process_descriptor, sequence_flags, trace, trace_packet, track_descriptor, track_event,
    },
    wire::Message,
};
use crate::timeline::{
    EventId, FlowEnd, Layout, NameId, Number, Timeline, TraceStep, TraceStepKind, TrackKind, Value,
};

/// The id of the sequence of all packets; 0 means none.
const SEQUENCE_ID: u64 = 1;

/// The upper half of every track's id, a fixed random number: ids should not clash with those of
/// other traces that are opened together with this one.
const TRACK_UUID_BASE: u64 = 0x5c1d_97a4 << 32;

/// Encodes the whole trace in memory.
#[must_use]
pub fn encode(timeline: &Timeline) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(()) = write(timeline, |packet| {
        bytes.extend_from_slice(packet);
        Ok::<(), Infallible>(())
    });
    bytes
}

/// Passes the trace to `put`, packet by packet.
///
/// # Errors
///
/// The first error that `put` returns.
///
/// # Examples
///
/// ```
/// use clockjack_observe::{perfetto, timeline::Timeline};
/// use std::io::Write as _;
///
/// let mut timeline = Timeline::new();
/// let worker = timeline.track("worker 0", None);
/// timeline.span(worker, "step", 1_000, 500, &[]);
/// let mut file = Vec::new();
/// perfetto::write(&timeline, |packet| file.write_all(packet))?;
/// assert_eq!(file, perfetto::encode(&timeline));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write<E>(timeline: &Timeline, mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let layout = Layout::of(timeline);
    let mut encoder = Encoder {
        timeline,
        layout: &layout,
        event_names: Interned::default(),
        arg_names: Interned::default(),
    };
    put(&enclose(&first_packet()))?;
    for output_track in 0..layout.output_tracks.len() {
        put(&enclose(&encoder.descriptor(output_track)))?;
    }
    for step in &layout.steps {
        put(&enclose(&encoder.event(step)))?;
    }
    Ok(())
}

/// Encodes a packet as a field of the trace.
fn enclose(packet: &Message) -> Vec<u8> {
    let mut trace = Message::default();
    trace.message(trace::PACKET, packet);
    trace.into_bytes()
}

/// Declares that no packet refers to earlier state of its sequence.
fn first_packet() -> Message {
    let mut packet = Message::default();
    packet.varint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE_ID);
    packet.varint(trace_packet::SEQUENCE_FLAGS, sequence_flags::INCREMENTAL_STATE_CLEARED);
    packet.varint(trace_packet::FIRST_PACKET_ON_SEQUENCE, 1);
    packet
}

/// The id of an output track.
fn uuid(output_track: usize) -> u64 {
    TRACK_UUID_BASE + output_track as u64 + 1
}

struct Encoder<'a> {
    timeline: &'a Timeline,
    layout: &'a Layout,
    event_names: Interned,
    arg_names: Interned,
}

impl Encoder<'_> {
    /// The packet that describes an output track.
    fn descriptor(&self, index: usize) -> Message {
        let output_track = self.layout.output_tracks[index];
        let track = &self.timeline.tracks()[output_track.track.index()];
        let text = self.timeline.text(track.name);
        let mut descriptor = Message::default();
        descriptor.varint(track_descriptor::UUID, uuid(index));
        if output_track.overflow == 0 {
            descriptor.text(track_descriptor::NAME, text);
        } else {
            let name = format!("{text} ({})", output_track.overflow + 1);
            descriptor.text(track_descriptor::NAME, &name);
        }
        // An overflow track of a process is below the process, any other next to its track.
        let parent = track.parent.or((output_track.overflow > 0).then_some(output_track.track));
        if let Some(parent) = parent {
            let parent = self
                .layout
                .output_tracks
                .partition_point(|output_track| output_track.track < parent);
            descriptor.varint(track_descriptor::PARENT_UUID, uuid(parent));
        } else if track.kind == TrackKind::Events {
            let mut process = Message::default();
            process.varint(process_descriptor::PID, index as u64 + 1);
            process.text(process_descriptor::PROCESS_NAME, text);
            descriptor.message(track_descriptor::PROCESS, &process);
        }
        if track.kind == TrackKind::Counter {
            let mut counter = Message::default();
            counter.varint(counter_descriptor::UNIT, counter_descriptor::UNIT_COUNT);
            descriptor.message(track_descriptor::COUNTER, &counter);
        }
        descriptor.varint(track_descriptor::CHILD_ORDERING, track_descriptor::EXPLICIT);
        descriptor.varint(track_descriptor::SIBLING_ORDER_RANK, index as u64);
        let mut packet = Message::default();
        packet.varint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE_ID);
        packet.message(trace_packet::TRACK_DESCRIPTOR, &descriptor);
        packet
    }

    /// The packet of a step.
    fn event(&mut self, step: &TraceStep) -> Message {
        let mut event = Message::default();
        let mut interned = Message::default();
        event.varint(track_event::TRACK_UUID, uuid(step.output_track));
        match step.kind {
            TraceStepKind::Begin(id) => {
                event.varint(track_event::TYPE, event_type::SLICE_BEGIN);
                self.details(id, &mut event, &mut interned);
            }
            TraceStepKind::Instant(id) => {
                event.varint(track_event::TYPE, event_type::INSTANT);
                self.details(id, &mut event, &mut interned);
            }
            TraceStepKind::End(_) => event.varint(track_event::TYPE, event_type::SLICE_END),
            TraceStepKind::Count(index) => {
                event.varint(track_event::TYPE, event_type::COUNTER);
                match self.timeline.reading(index).value {
                    Number::Int(n) => event.int(track_event::COUNTER_VALUE, n),
                    Number::Float(x) => event.double(track_event::DOUBLE_COUNTER_VALUE, x),
                }
            }
        }
        let mut packet = Message::default();
        packet.varint(trace_packet::TIMESTAMP, step.at_ns);
        packet.varint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE_ID);
        packet.varint(trace_packet::SEQUENCE_FLAGS, sequence_flags::NEEDS_INCREMENTAL_STATE);
        if !interned.is_empty() {
            packet.message(trace_packet::INTERNED_DATA, &interned);
        }
        packet.message(trace_packet::TRACK_EVENT, &event);
        packet
    }

    /// Name, arguments and flows of an event; new names go to `interned`.
    fn details(&mut self, id: EventId, event: &mut Message, interned: &mut Message) {
        let timeline = self.timeline;
        let it = timeline.event(id);
        self.event_names.introduce(timeline, it.name, interned_data::EVENT_NAMES, interned);
        event.varint(track_event::NAME_IID, iid(it.name));
        for (name, value) in timeline.args(it) {
            let names = interned_data::DEBUG_ANNOTATION_NAMES;
            self.arg_names.introduce(timeline, name, names, interned);
            let mut annotation = Message::default();
            annotation.varint(debug_annotation::NAME_IID, iid(name));
            match value {
                Value::Text(text) => annotation.text(debug_annotation::STRING_VALUE, text),
                Value::Int(n) => annotation.int(debug_annotation::INT_VALUE, n),
                Value::Uint(n) => annotation.varint(debug_annotation::UINT_VALUE, n),
                Value::Float(x) => annotation.double(debug_annotation::DOUBLE_VALUE, x),
                Value::Bool(yes) => annotation.varint(debug_annotation::BOOL_VALUE, yes.into()),
            }
            event.message(track_event::DEBUG_ANNOTATIONS, &annotation);
        }
        for end in self.layout.flow_ends(id) {
            match end {
                FlowEnd::Source(id) => event.fixed64(track_event::FLOW_IDS, id),
                FlowEnd::Sink(id) => event.fixed64(track_event::TERMINATING_FLOW_IDS, id),
            }
        }
    }
}

/// The names that are already interned in a sequence.
#[derive(Default)]
struct Interned {
    /// By name id; a missing entry means false.
    is_known: Vec<bool>,
}

impl Interned {
    /// Adds a name to `data` at its first use.
    fn introduce(&mut self, timeline: &Timeline, name: NameId, field: u32, data: &mut Message) {
        let index = name.index();
        if self.is_known.len() <= index {
            self.is_known.resize(index + 1, false);
        }
        if core::mem::replace(&mut self.is_known[index], true) {
            return;
        }
        let mut entry = Message::default();
        entry.varint(interned_name::IID, iid(name));
        entry.text(interned_name::NAME, timeline.text(name));
        data.message(field, &entry);
    }
}

/// The id of an interned name; 0 means none.
fn iid(name: NameId) -> u64 {
    name.index() as u64 + 1
}
