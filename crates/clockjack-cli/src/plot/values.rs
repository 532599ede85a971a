//! Collects the values of a run from its commit log: the curves of a plot, and the last value on
//! each edge.

use std::{
    fs::File,
    io::{self, Read as _, Write},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use clockjack_graph::compile::Plan;

use super::{
    Axis, Curve, Plot,
    log::{LogEntry, LogReader, NotALog},
    number::Shape,
    series::Series,
    signal::{Signal, schema},
};
use crate::failure::Failure;

/// How many bytes of the last value of an edge are kept.
const LAST_HEAD: usize = 64;

/// How many bytes of a file are read at once.
const PIECE: usize = 1 << 16;

/// The values of a run. Clones are the same values.
#[derive(Clone, Debug)]
pub(crate) struct RunValues(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    signals: Vec<Recorded>,
    /// The signals of each edge.
    by_edge: Vec<Vec<usize>>,
    /// The last value of each edge.
    last: Vec<LastValue>,
    /// The time of the latest epoch, and its number.
    end: Moment,
}

/// A signal and its values, over time and over epochs.
#[derive(Debug)]
struct Recorded {
    signal: Signal,
    by_time: Series,
    by_epoch: Series,
}

/// When a value became visible.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    epoch: u64,
    at_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct LastValue {
    /// The first bytes; empty if there was no value.
    head: Vec<u8>,
    len: Option<u64>,
}

impl RunValues {
    /// No values yet of a run of this plan.
    pub(crate) fn new(plan: &Plan, signals: Vec<Signal>) -> Self {
        let mut by_edge = vec![Vec::new(); plan.edges.len()];
        for (index, signal) in signals.iter().enumerate() {
            by_edge[signal.edge].push(index);
        }
        let recorded =
            |signal| Recorded { signal, by_time: Series::default(), by_epoch: Series::default() };
        let signals = signals.into_iter().map(recorded).collect();
        let last = vec![LastValue::default(); plan.edges.len()];
        Self(Arc::new(Mutex::new(State { signals, by_edge, last, end: Moment::default() })))
    }

    /// A writer for the commit log of a domain of the run, which passes the log on to `to`.
    pub(crate) fn writer<W: Write>(&self, to: Option<W>) -> LogWriter<W> {
        let (reader, now) = (LogReader::default(), Moment::default());
        LogWriter { values: self.clone(), reader, now, to, failed: None }
    }

    /// The last value on the first of these edges that had one, as a short text.
    pub(crate) fn last_of(&self, plan: &Plan, edges: &[usize]) -> Option<String> {
        let state = self.lock();
        edges.iter().find_map(|edge| {
            let LastValue { head, len } = state.last.get(*edge)?;
            let schema = schema(plan, *edge);
            len.map(|len| Shape::of(schema).text(schema, head, len))
        })
    }

    /// The plot of a run that ended at this time. If no time passed, it is a plot over epochs.
    pub(crate) fn plot(&self, graph: &str, end_ns: u64) -> Plot {
        let state = self.lock();
        let end_ns = end_ns.max(state.end.at_ns);
        let (axis, end) =
            if end_ns > 0 { (Axis::Time, end_ns) } else { (Axis::Epoch, state.end.epoch) };
        let curve = |one: &Recorded| Curve {
            name: one.signal.name.clone(),
            port: one.signal.port.clone(),
            series: if axis == Axis::Time { &one.by_time } else { &one.by_epoch }.clone(),
        };
        Plot { graph: graph.into(), curves: state.signals.iter().map(curve).collect(), axis, end }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that could be half-done panics under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes an entry of a log in which it is `now`.
    fn take(&mut self, entry: LogEntry<'_>, now: &mut Moment) {
        match entry {
            LogEntry::Graph(_) => {}
            LogEntry::Epoch { number, at_ns } => {
                *now = Moment { epoch: number, at_ns };
                let Moment { epoch, at_ns } = &mut self.end;
                (*epoch, *at_ns) = ((*epoch).max(now.epoch), (*at_ns).max(now.at_ns));
            }
            LogEntry::Value { edge, head, len } => self.put(*now, edge, head, len),
        }
    }

    fn put(&mut self, now: Moment, edge: u64, head: &[u8], len: u64) {
        // A program may feed a graph from outside, on edges that the graph file does not have.
        let Some(edge) = usize::try_from(edge).ok().filter(|edge| *edge < self.last.len()) else {
            return;
        };
        let last = &mut self.last[edge];
        last.head.clear();
        last.head.extend_from_slice(&head[..head.len().min(LAST_HEAD)]);
        last.len = Some(len);
        for index in &self.by_edge[edge] {
            let Recorded { signal, by_time, by_epoch } = &mut self.signals[*index];
            if let Some(value) = signal.decode(head) {
                by_time.push(now.at_ns, value);
                by_epoch.push(now.epoch, value);
            } else {
                by_time.skip();
                by_epoch.skip();
            }
        }
    }
}

/// Reads a commit log while it is written. If it can no longer be written, it is still read: the
/// values of the run do not depend on a disk. The flush reports the error.
#[derive(Debug)]
pub(crate) struct LogWriter<W> {
    values: RunValues,
    reader: LogReader,
    now: Moment,
    to: Option<W>,
    /// The first error of `to`, after which nothing is written to it.
    failed: Option<io::Error>,
}

impl<W> LogWriter<W> {
    fn read(&mut self, bytes: &[u8]) -> Result<(), NotALog> {
        let mut state = self.values.lock();
        let now = &mut self.now;
        self.reader.push(bytes, &mut |entry| state.take(entry, now))
    }
}

impl<W: Write> Write for LogWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.read(bytes)
            .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why.to_string()))?;
        if let (Some(to), None) = (&mut self.to, &self.failed) {
            self.failed = to.write_all(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            // What was not written is missing from now on, so nothing more is written.
            self.to = None;
            return Err(error);
        }
        self.to.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// A commit log that was read from a file.
#[derive(Debug)]
pub(crate) struct ReadLog {
    pub(crate) plot: Plot,
    /// Whether the file ends with a whole entry.
    pub(crate) is_complete: bool,
}

/// Reads the commit log of a run of this graph.
pub(crate) fn read_log(path: &Path, plan: &Plan, signals: Vec<Signal>) -> Result<ReadLog, Failure> {
    let unreadable = |error| Failure::log_input(path, error);
    let values = RunValues::new(plan, signals);
    let (mut reader, mut now) = (LogReader::default(), Moment::default());
    let mut other_graph = None;
    let mut file = File::open(path).map_err(unreadable)?;
    let mut piece = vec![0; PIECE];
    loop {
        let n = file.read(&mut piece).map_err(unreadable)?;
        if n == 0 {
            break;
        }
        let mut state = values.lock();
        let read = reader.push(&piece[..n], &mut |entry| match entry {
            LogEntry::Graph(name) if name != plan.name => other_graph = Some(name.to_owned()),
            entry => state.take(entry, &mut now),
        });
        drop(state);
        read.map_err(|why| Failure::not_a_log(path, &why.to_string()))?;
        if let Some(name) = other_graph {
            let why = format!("it is a log of the graph `{name}`, not of `{}`", plan.name);
            return Err(Failure::not_a_log(path, &why));
        }
    }
    Ok(ReadLog { plot: values.plot(&plan.name, 0), is_complete: reader.is_complete() })
}

/// Whether a file begins as a commit log does.
pub(crate) fn is_log(path: &Path) -> bool {
    let magic = clockjack_graph::run::commit_log::MAGIC;
    let mut first = vec![0; magic.len()];
    // A pipe must not be read twice, and a file that cannot be read is reported later.
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
        && first == magic
}
