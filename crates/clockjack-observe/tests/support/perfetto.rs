//! Opens a Perfetto trace as its readers do, and reports what is wrong with it.
//!
//! The messages are declared for `prost` from the public definitions (github.com/google/perfetto,
//! `protos/perfetto/trace/`), not from the exporter's table, so a wrong number in either is
//! detected. [`open`] follows the rules of `trace_processor`: interned names by sequence, slices as
//! a stack per track, flows from `flow_ids` to `terminating_flow_ids`. To check the traces of
//! another crate, copy this file and the `prost` line of the manifest.

use alloc::collections::{BTreeMap, BTreeSet};

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(crate) packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    pub(crate) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(crate) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(crate) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(crate) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(crate) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub(crate) track_descriptor: Option<TrackDescriptor>,
    #[prost(bool, optional, tag = "87")]
    pub(crate) first_packet_on_sequence: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(crate) process: Option<ProcessDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(crate) counter: Option<CounterDescriptor>,
    #[prost(int32, optional, tag = "11")]
    pub(crate) child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub(crate) sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(crate) process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CounterDescriptor {
    #[prost(int32, optional, tag = "3")]
    pub(crate) unit: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(crate) debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub(crate) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub(crate) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(crate) track_uuid: Option<u64>,
    #[prost(int64, optional, tag = "30")]
    pub(crate) counter_value: Option<i64>,
    #[prost(double, optional, tag = "44")]
    pub(crate) double_counter_value: Option<f64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(crate) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(crate) terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) name_iid: Option<u64>,
    #[prost(bool, optional, tag = "2")]
    pub(crate) bool_value: Option<bool>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) uint_value: Option<u64>,
    #[prost(int64, optional, tag = "4")]
    pub(crate) int_value: Option<i64>,
    #[prost(double, optional, tag = "5")]
    pub(crate) double_value: Option<f64>,
    #[prost(string, optional, tag = "6")]
    pub(crate) string_value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InternedData {
    #[prost(message, repeated, tag = "2")]
    pub(crate) event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) debug_annotation_names: Vec<InternedName>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InternedName {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
}

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;
const STATE_CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;

/// A trace after import.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// Path of names of each track, by rank among all.
    pub(crate) tracks: Vec<Vec<String>>,
    /// Spans and instants in the order of their beginning.
    pub(crate) slices: Vec<Slice>,
    /// Track path, time and value.
    pub(crate) readings: Vec<(Vec<String>, u64, f64)>,
    /// Id, and the positions of source and sink among the slices.
    pub(crate) flows: Vec<(u64, usize, usize)>,
}

/// A span or an instant after import.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slice {
    pub(crate) track: Vec<String>,
    pub(crate) name: String,
    pub(crate) start_ns: u64,
    /// `None` for an instant.
    pub(crate) duration_ns: Option<u64>,
    /// The position of the slice around it.
    pub(crate) parent: Option<usize>,
    /// Names and values, as texts.
    pub(crate) args: Vec<(String, String)>,
}

/// Decodes and imports a trace.
pub(crate) fn open(bytes: &[u8]) -> Result<Opened, String> {
    let trace = Trace::decode(bytes).map_err(|error| error.to_string())?;
    // Undeclared fields are skipped in decoding, so the encoded length would be shorter.
    if trace.encoded_len() != bytes.len() {
        return Err("the trace has fields that the definitions do not have".into());
    }
    let mut import = Import::default();
    for (index, packet) in trace.packet.iter().enumerate() {
        import.packet(packet, index == 0).map_err(|fault| format!("packet {index}: {fault}"))?;
    }
    import.finish()
}

#[derive(Default)]
struct Import {
    opened: Opened,
    /// By uuid: path, and whether it is a counter.
    tracks: BTreeMap<u64, (Vec<String>, bool)>,
    event_names: BTreeMap<u64, String>,
    arg_names: BTreeMap<u64, String>,
    /// Open slices by track.
    stacks: BTreeMap<u64, Vec<usize>>,
    flow_sources: BTreeMap<u64, usize>,
    flows_ended: BTreeSet<u64>,
    last_ns: u64,
}

impl Import {
    fn packet(&mut self, packet: &TracePacket, is_first: bool) -> Result<(), String> {
        if packet.trusted_packet_sequence_id != Some(1) {
            return Err("of no sequence, or of another".into());
        }
        let flags = packet.sequence_flags.unwrap_or(0);
        if is_first != (flags & STATE_CLEARED != 0) {
            return Err("the first packet, and no other, clears the state".into());
        }
        if let Some(data) = &packet.interned_data {
            intern(&mut self.event_names, &data.event_names)?;
            intern(&mut self.arg_names, &data.debug_annotation_names)?;
        }
        if let Some(descriptor) = &packet.track_descriptor {
            self.descriptor(descriptor)?;
        }
        if let Some(event) = &packet.track_event {
            if flags & NEEDS_STATE == 0 {
                return Err("it uses interned names and does not say so".into());
            }
            let at_ns = packet.timestamp.ok_or("an event without a time")?;
            if at_ns < self.last_ns || i64::try_from(at_ns).is_err() {
                return Err(format!("{at_ns} ns after {} ns", self.last_ns));
            }
            self.last_ns = at_ns;
            self.event(event, at_ns)?;
        }
        Ok(())
    }

    fn descriptor(&mut self, descriptor: &TrackDescriptor) -> Result<(), String> {
        let uuid = descriptor.uuid.filter(|uuid| *uuid != 0).ok_or("a track without uuid")?;
        let name = descriptor.name.clone().ok_or("a track without name")?;
        let mut path = match descriptor.parent_uuid {
            Some(parent) => self.tracks.get(&parent).ok_or("a parent that is unknown")?.0.clone(),
            None => Vec::new(),
        };
        if let Some(process) = &descriptor.process {
            let named = process.process_name.as_ref() == Some(&name);
            if !path.is_empty() || !named || process.pid.is_none_or(|pid| pid <= 0) {
                return Err(format!("{name:?} is a malformed process"));
            }
        }
        if descriptor.child_ordering != Some(3) || descriptor.sibling_order_rank.is_none() {
            return Err(format!("{name:?} leaves the order to the reader"));
        }
        path.push(name);
        self.opened.tracks.push(path.clone());
        match self.tracks.insert(uuid, (path, descriptor.counter.is_some())) {
            None => Ok(()),
            Some((path, _)) => Err(format!("uuid {uuid} is also that of {path:?}")),
        }
    }

    fn event(&mut self, event: &TrackEvent, at_ns: u64) -> Result<(), String> {
        let uuid = event.track_uuid.ok_or("an event without track")?;
        let (track, is_counter) = self.tracks.get(&uuid).ok_or("a track that is unknown")?;
        let kind = event.r#type.ok_or("an event without type")?;
        if *is_counter != (kind == COUNTER) {
            return Err(format!("type {kind} on {track:?}, counter: {is_counter}"));
        }
        let stack = self.stacks.entry(uuid).or_default();
        match kind {
            COUNTER => {
                #[expect(clippy::cast_precision_loss, reason = "tests use small numbers")]
                let whole = event.counter_value.map(|n| n as f64);
                let value = whole.or(event.double_counter_value).ok_or("no value")?;
                self.opened.readings.push((track.clone(), at_ns, value));
                return Ok(());
            }
            SLICE_END => {
                let slice = stack.pop().ok_or("an end without begin")?;
                let slice = &mut self.opened.slices[slice];
                slice.duration_ns = Some(at_ns - slice.start_ns);
                return Ok(());
            }
            SLICE_BEGIN | INSTANT => {}
            _ => return Err(format!("unknown type {kind}")),
        }
        let index = self.opened.slices.len();
        let name = event.name_iid.and_then(|iid| self.event_names.get(&iid));
        let slice = Slice {
            track: track.clone(),
            name: name.ok_or("a name that is not interned")?.clone(),
            start_ns: at_ns,
            duration_ns: None,
            parent: stack.last().copied(),
            args: self.args(event)?,
        };
        if kind == SLICE_BEGIN {
            self.stacks.entry(uuid).or_default().push(index);
        }
        self.opened.slices.push(slice);
        self.flows(event, index)
    }

    fn args(&self, event: &TrackEvent) -> Result<Vec<(String, String)>, String> {
        let resolve = |annotation: &DebugAnnotation| {
            let name = annotation.name_iid.and_then(|iid| self.arg_names.get(&iid));
            let values = [
                annotation.bool_value.map(|value| value.to_string()),
                annotation.uint_value.map(|value| value.to_string()),
                annotation.int_value.map(|value| value.to_string()),
                annotation.double_value.map(|value| format!("{value:?}")),
                annotation.string_value.clone(),
            ];
            let mut values = values.into_iter().flatten();
            let (Some(value), None) = (values.next(), values.next()) else {
                return Err("an argument without one value".to_owned());
            };
            Ok((name.ok_or("an argument whose name is not interned")?.clone(), value))
        };
        event.debug_annotations.iter().map(resolve).collect()
    }

    fn flows(&mut self, event: &TrackEvent, slice: usize) -> Result<(), String> {
        for id in &event.flow_ids {
            if self.flow_sources.insert(*id, slice).is_some() {
                return Err(format!("flow {id} has two sources"));
            }
        }
        for id in &event.terminating_flow_ids {
            let source = self.flow_sources.get(id).ok_or(format!("flow {id} has no source yet"))?;
            if !self.flows_ended.insert(*id) {
                return Err(format!("flow {id} has two sinks"));
            }
            self.opened.flows.push((*id, *source, slice));
        }
        Ok(())
    }

    fn finish(self) -> Result<Opened, String> {
        if let Some(slice) = self.stacks.values().flatten().next() {
            return Err(format!("{:?} has no end", self.opened.slices[*slice]));
        }
        if let Some(id) = self.flow_sources.keys().find(|id| !self.flows_ended.contains(id)) {
            return Err(format!("flow {id} has no sink"));
        }
        Ok(self.opened)
    }
}

fn intern(names: &mut BTreeMap<u64, String>, entries: &[InternedName]) -> Result<(), String> {
    for entry in entries {
        let iid = entry.iid.filter(|iid| *iid != 0).ok_or("an interned name without iid")?;
        let name = entry.name.clone().ok_or("an interned name without name")?;
        if names.insert(iid, name).is_some() {
            return Err(format!("iid {iid} is there twice"));
        }
    }
    Ok(())
}
