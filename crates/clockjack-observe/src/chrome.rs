//! Writes a timeline in Chrome's trace event format: JSON for `chrome://tracing`, Perfetto and many
//! other viewers.
//!
//! The format is "Trace Event Format" of the Chromium project. The format is flat, so a
//! [`Timeline`] is mapped: a track without a parent is a process, every other track a thread of it,
//! named by its path (`lane / component`). Spans are `X`, instants `i`, counters `C`, a flow is a
//! pair of `s` and `f`, names and order are `M`. Times are microseconds with three decimals, so no
//! nanosecond is lost.
//!
//! Invariant: whatever the timeline contains, the output is ASCII JSON, events are sorted by time,
//! and each flow has one `s` and, not before it, one `f`. Both follow the event that they bind to.
//! Numbers that JSON does not have (NaN, infinities) are written as strings.

use alloc::vec::Vec;
use core::fmt::{self, Write};

use crate::timeline::{
    EventId, FlowEnd, Layout, Number, OutputTrack, Timeline, TraceStep, TraceStepKind, TrackId,
    Value,
};

/// The version of the output of [`write()`], as its `trace_schema_version`.
pub const SCHEMA_VERSION: &str = "1";

/// The separator of names in a path.
const PATH_SEPARATOR: &str = " / ";

/// Writes the whole timeline as one JSON object.
///
/// # Errors
///
/// The error of `out`.
///
/// # Examples
///
/// ```
/// use clockjack_observe::{chrome, timeline::Timeline};
///
/// let mut timeline = Timeline::new();
/// let worker = timeline.track("worker 0", None);
/// timeline.span(worker, "step", 1_234, 500, &[("process", 7_u64.into())]);
/// let mut json = String::new();
/// chrome::write(&mut json, &timeline)?;
/// assert!(json.contains(
///     r#"{"ph":"X","cat":"clockjack","name":"step","pid":1,"tid":1,"ts":1.234,"dur":0.500,"#
/// ));
/// # Ok::<(), core::fmt::Error>(())
/// ```
pub fn write(out: &mut dyn Write, timeline: &Timeline) -> fmt::Result {
    let layout = Layout::of(timeline);
    let processes = processes(timeline);
    let mut writer = Writer { out, timeline, layout: &layout, processes, comma: false };
    writer.document()
}

/// The process number of each track: 1 for the first track without a parent, and so on.
fn processes(timeline: &Timeline) -> Vec<usize> {
    let mut n_processes = 0;
    let mut processes: Vec<usize> = Vec::with_capacity(timeline.n_tracks());
    for track in timeline.tracks() {
        // Parents come before their children.
        let process = track.parent.map_or_else(
            || {
                n_processes += 1;
                n_processes
            },
            |parent| processes[parent.index()],
        );
        processes.push(process);
    }
    processes
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    timeline: &'a Timeline,
    layout: &'a Layout,
    /// By track.
    processes: Vec<usize>,
    /// Whether the next event is preceded by a comma.
    comma: bool,
}

impl Writer<'_> {
    fn document(&mut self) -> fmt::Result {
        write!(self.out, r#"{{"displayTimeUnit":"ns","trace_schema_version":"#)?;
        string(self.out, SCHEMA_VERSION)?;
        self.out.write_str(",\"traceEvents\":[")?;
        for index in 0..self.layout.output_tracks.len() {
            self.names(index)?;
        }
        for step in &self.layout.steps {
            match step.kind {
                TraceStepKind::Begin(id) | TraceStepKind::Instant(id) => self.event(step, id)?,
                TraceStepKind::Count(index) => self.reading(step, index)?,
                // The duration of the begin implies the end.
                TraceStepKind::End(_) => {}
            }
        }
        self.out.write_str("\n]}\n")
    }

    /// Writes the name and order of an output track, and of its process if it is the first of one.
    fn names(&mut self, index: usize) -> fmt::Result {
        let output_track = self.layout.output_tracks[index];
        let track = &self.timeline.tracks()[output_track.track.index()];
        if track.parent.is_none() && output_track.overflow == 0 {
            self.metadata("process_name", index)?;
            self.out.write_str("{\"name\":")?;
            string(self.out, self.timeline.text(track.name))?;
            self.out.write_str("}}")?;
            self.metadata("process_sort_index", index)?;
            write!(self.out, "{{\"sort_index\":{index}}}}}")?;
        }
        self.metadata("thread_name", index)?;
        self.out.write_str("{\"name\":")?;
        self.path(output_track)?;
        self.out.write_str("}}")?;
        self.metadata("thread_sort_index", index)?;
        write!(self.out, "{{\"sort_index\":{index}}}}}")
    }

    fn event(&mut self, step: &TraceStep, id: EventId) -> fmt::Result {
        let event = self.timeline.event(id);
        self.open(if event.duration_ns.is_some() { "X" } else { "i" })?;
        self.out.write_str(",\"cat\":\"clockjack\",\"name\":")?;
        string(self.out, self.timeline.text(event.name))?;
        self.position(step.output_track, step.at_ns)?;
        match event.duration_ns {
            Some(duration_ns) => write!(self.out, ",\"dur\":{}", Micros(duration_ns))?,
            None => self.out.write_str(",\"s\":\"t\"")?,
        }
        self.out.write_str(",\"args\":{")?;
        for (index, (name, value)) in self.timeline.args(event).enumerate() {
            if index > 0 {
                self.out.write_char(',')?;
            }
            string(self.out, self.timeline.text(name))?;
            self.out.write_char(':')?;
            argument(self.out, value)?;
        }
        self.out.write_str("}}")?;
        for end in self.layout.flow_ends(id) {
            let (phase, id, binding) = match end {
                FlowEnd::Source(id) => ("s", id, ""),
                FlowEnd::Sink(id) => ("f", id, ",\"bp\":\"e\""),
            };
            self.open(phase)?;
            // As a string, because readers store numbers as doubles.
            write!(self.out, ",\"cat\":\"clockjack\",\"name\":\"flow\",\"id\":\"{id:#x}\"")?;
            self.out.write_str(binding)?;
            self.position(step.output_track, step.at_ns)?;
            self.out.write_char('}')?;
        }
        Ok(())
    }

    fn reading(&mut self, step: &TraceStep, index: usize) -> fmt::Result {
        self.open("C")?;
        // Readers distinguish the counters of a process by name, so the name is the path.
        self.out.write_str(",\"cat\":\"clockjack\",\"name\":")?;
        self.path(self.layout.output_tracks[step.output_track])?;
        self.position(step.output_track, step.at_ns)?;
        self.out.write_str(",\"args\":{\"value\":")?;
        match self.timeline.reading(index).value {
            Number::Int(n) => write!(self.out, "{n}")?,
            Number::Float(x) => float(self.out, x)?,
        }
        self.out.write_str("}}")
    }

    /// Writes an `M` event up to its arguments.
    fn metadata(&mut self, name: &str, output_track: usize) -> fmt::Result {
        self.open("M")?;
        let track = self.layout.output_tracks[output_track].track;
        let (process, thread) = (self.processes[track.index()], output_track + 1);
        write!(self.out, ",\"name\":\"{name}\",\"pid\":{process},\"tid\":{thread},\"args\":")
    }

    /// Writes the start of any event.
    fn open(&mut self, phase: &str) -> fmt::Result {
        let separator = if core::mem::replace(&mut self.comma, true) { ",\n" } else { "\n" };
        write!(self.out, "{separator}{{\"ph\":\"{phase}\"")
    }

    /// Writes the track and the time.
    fn position(&mut self, output_track: usize, at_ns: u64) -> fmt::Result {
        let track = self.layout.output_tracks[output_track].track;
        let (process, thread) = (self.processes[track.index()], output_track + 1);
        write!(self.out, ",\"pid\":{process},\"tid\":{thread},\"ts\":{}", Micros(at_ns))
    }

    /// Writes the names from below the process down to an output track, or the process's own name.
    fn path(&mut self, output_track: OutputTrack) -> fmt::Result {
        self.out.write_char('"')?;
        self.path_to(output_track.track)?;
        if output_track.overflow > 0 {
            write!(self.out, " ({})", output_track.overflow + 1)?;
        }
        self.out.write_char('"')
    }

    fn path_to(&mut self, track: TrackId) -> fmt::Result {
        let mut path = Vec::new();
        let mut next = Some(track);
        while let Some(track) = next {
            let track = &self.timeline.tracks()[track.index()];
            next = track.parent;
            if next.is_some() || path.is_empty() {
                path.push(track.name);
            }
        }
        for (index, name) in path.into_iter().rev().enumerate() {
            if index > 0 {
                self.out.write_str(PATH_SEPARATOR)?;
            }
            escape(self.out, self.timeline.text(name))?;
        }
        Ok(())
    }
}

/// Nanoseconds, printed as microseconds.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

fn argument(out: &mut dyn Write, value: Value<'_>) -> fmt::Result {
    match value {
        Value::Text(text) => string(out, text),
        Value::Int(n) => write!(out, "{n}"),
        Value::Uint(n) => write!(out, "{n}"),
        Value::Float(x) => float(out, x),
        Value::Bool(yes) => write!(out, "{yes}"),
    }
}

fn float(out: &mut dyn Write, x: f64) -> fmt::Result {
    // `{:?}` is the shortest text that parses to the same number, with a point or an exponent.
    if x.is_finite() { write!(out, "{x:?}") } else { write!(out, "\"{x}\"") }
}

/// Writes a string with its quotes.
fn string(out: &mut dyn Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    escape(out, text)?;
    out.write_char('"')
}

/// Writes a string without its quotes. Everything except printable ASCII is written as UTF-16
/// escapes, so that the reader's choice of an encoding does not matter.
fn escape(out: &mut dyn Write, text: &str) -> fmt::Result {
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            '\n' => out.write_str("\\n")?,
            ' '..='~' => out.write_char(c)?,
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
    }
    Ok(())
}
