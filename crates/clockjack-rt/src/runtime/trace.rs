//! The flight recorder of a runtime: what its workers did in the last seconds, and traces.

use core::{fmt, time::Duration};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
};

use clockjack_actor::ActorSystem;
use clockjack_exec::{Pid, executor_ref::ExecutorRef};
use clockjack_observe::{
    Record,
    event::{ActorId, WorkerId},
    perfetto,
    timeline::Timeline,
};

use super::Runtime;
use crate::pool::host::Threads;

/// A pool whose recorder or counters are read.
#[derive(Clone)]
pub(crate) struct TraceSource {
    pub(crate) name: String,
    pub(crate) executor: ExecutorRef,
    pub(crate) threads: Arc<Threads>,
}

/// What the workers of a runtime have recorded; created by [`Runtime::flight_recording`].
pub struct FlightRecording {
    pools: Vec<RecordedPool>,
    /// The names of actors, and the types of other tasks, that were alive.
    names: BTreeMap<ActorId, String>,
}

struct RecordedPool {
    name: String,
    node: u16,
    rings: Vec<(WorkerId, Vec<Record>)>,
}

impl Runtime {
    /// Switches tracing on or off, on the pool and on the pools of all dispatchers that exist.
    ///
    /// The flight recorder always records what is rare: sleeps and steals of workers, late timers
    /// and jobs, stuck handlers, starts, stops, failures and restarts of actors, dead letters.
    /// While tracing is on, it also records every poll, every wake-up by a worker, every fire of
    /// timers and jobs, and the start and end of every task. That costs about 100 ns per poll;
    /// while tracing is off, it costs nothing.
    pub fn set_tracing(&self, is_on: bool) {
        self.metrics().set_tracing(is_on);
    }

    /// What the flight recorder has recorded within the last `last`, as far as the rings reach
    /// back: [`RuntimeConfig::flight_records`](crate::RuntimeConfig::flight_records) sets their
    /// size.
    #[must_use]
    pub fn flight_recording(&self, last: Duration) -> FlightRecording {
        self.metrics().flight_recording(last)
    }

    /// Writes what happened within the last `last` as a trace for <https://ui.perfetto.dev>, with
    /// one track per worker. It can be called at any time, also while the workers run.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::{Runtime, actor::{Next, Props}};
    /// use core::time::Duration;
    /// use std::sync::mpsc;
    ///
    /// let rt = Runtime::new("traced")?;
    /// rt.set_tracing(true);
    /// let (sender, receiver) = mpsc::channel();
    /// let doubler = rt.spawn("doubler", Props::from_fn(move |_cx, n: u32| {
    ///     sender.send(2 * n)?;
    ///     Ok(Next::Stay)
    /// }))?;
    /// doubler.tell(21)?;
    /// assert_eq!(receiver.recv()?, 42);
    /// rt.set_tracing(false);
    ///
    /// let mut trace = Vec::new(); // or a file: `File::create("last.pftrace")?`
    /// rt.write_trace(Duration::from_secs(10), &mut trace)?;
    /// assert!(!trace.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_trace(&self, last: Duration, mut out: impl io::Write) -> io::Result<()> {
        let mut timeline = Timeline::new();
        self.flight_recording(last).add_to(&mut timeline, 0);
        out.write_all(&perfetto::encode(&timeline))
    }
}

impl FlightRecording {
    /// What these pools have recorded within the last `last`.
    pub(super) fn of(sources: &[TraceSource], system: &ActorSystem, last: Duration) -> Self {
        let last = u64::try_from(last.as_nanos()).unwrap_or(u64::MAX);
        let pools = sources.iter().map(|source| {
            let since = source.threads.clock.nanos_now().saturating_sub(last);
            let recorder = source.threads.recorder.as_ref();
            RecordedPool {
                name: source.name.clone(),
                node: u16::try_from(source.executor.node()).unwrap_or(u16::MAX),
                rings: recorder.map_or_else(Vec::new, |recorder| recorder.records_since(since)),
            }
        });
        let mut recording = Self { pools: pools.collect(), names: BTreeMap::new() };
        let wanted = recording.subjects();
        for source in sources {
            source.executor.live_tasks(|task| {
                let id = id_of(task.pid);
                if wanted.contains(&id) {
                    recording.names.insert(
                        id,
                        task.name.map_or_else(|| task.type_name.to_owned(), Cow::into_owned),
                    );
                }
            });
        }
        for (pid, path) in system.actors() {
            let id = id_of(pid);
            if wanted.contains(&id) {
                recording.names.insert(id, path.to_string());
            }
        }
        recording
    }

    /// Replaces the names of actors and tasks.
    #[doc(hidden)]
    pub fn rename(&mut self, new: impl Fn(&str) -> String) {
        for name in self.names.values_mut() {
            *name = new(name);
        }
    }

    /// All records, with the worker that wrote each, in the order of their times.
    /// [`WorkerId::OUTSIDE`] stands for all threads that are not workers.
    #[must_use]
    pub fn records(&self) -> Vec<(WorkerId, Record)> {
        let rings = self.pools.iter().flat_map(|pool| &pool.rings);
        let mut all: Vec<_> = rings
            .flat_map(|(worker, records)| records.iter().map(|record| (*worker, *record)))
            .collect();
        all.sort_by_key(|(_, record)| record.at_ns);
        all
    }

    /// Adds one track per pool to a timeline, and below it one per worker. Times are counted from
    /// `origin_ns`, in nanoseconds since the start of the runtime; earlier records are left out.
    pub fn add_to(&self, timeline: &mut Timeline, origin_ns: u64) {
        for pool in &self.pools {
            let parent = timeline.track(pool.name.as_str(), None);
            let names: Vec<_> = pool.rings.iter().map(|(worker, _)| track_name(*worker)).collect();
            let rings = names.iter().zip(&pool.rings).map(|(name, (_, records))| {
                let shifted = records.iter().filter_map(move |Record { at_ns, event }| {
                    let began_ns = at_ns.saturating_sub(event.duration_ns());
                    (began_ns >= origin_ns).then(|| Record::new(at_ns - origin_ns, *event))
                });
                (name.as_str(), shifted)
            });
            let name_of = |id: ActorId| self.names.get(&id).cloned();
            timeline.add_records(Some(parent), pool.node, rings, &name_of);
        }
    }

    /// The actors and other tasks that the records are about, whose names are looked up.
    fn subjects(&self) -> BTreeSet<ActorId> {
        let pools = self.pools.iter().flat_map(|pool| {
            let records = pool.rings.iter().flat_map(|(_, records)| records);
            records.filter_map(|record| record.event.subject(pool.node))
        });
        pools.collect()
    }
}

impl fmt::Debug for FlightRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlightRecording")
            .field("records", &self.records().len())
            .finish_non_exhaustive()
    }
}

fn id_of(pid: Pid) -> ActorId {
    ActorId::new(u16::try_from(pid.node()).unwrap_or(u16::MAX), pid.index())
}

fn track_name(worker: WorkerId) -> String {
    match worker {
        WorkerId::OUTSIDE => "other threads".to_owned(),
        WorkerId(index) => format!("worker {index}"),
    }
}
