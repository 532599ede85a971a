//! [`Live`]: the system of this program as a source of views.
//!
//! While somebody subscribes, one thread drives a [`Watcher`]: it samples what the workers run,
//! reads the counters twice per second, and walks over the actors within a hundredth of a core.
//! Without a subscriber there is neither thread nor watcher.

use core::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use clockjack_actor::ActorPath;
use clockjack_rt::FlightRecording;
use serde_json::Value;

use super::{
    Control, NamesFn, Source, ViewError,
    timeline::{Traced, Tracer},
};
use crate::{
    Target, Watcher, inspect,
    query::{ActorQuery, EventsQuery, GraphQuery, Params, Query, QueryParams, TreeQuery},
    view::{Hello, Number, SCHEMA, VIEWS},
};

/// How often the counters are read.
const ADVANCE_PERIOD: Duration = Duration::from_millis(250);

/// The system of this program.
pub(super) struct Live {
    target: Target,
    control: Control,
    names: Option<NamesFn>,
    tracer: Option<Arc<Tracer>>,
    started_ms: u64,
    n_clients: Arc<AtomicUsize>,
    watching: Mutex<Watching>,
    n_skipped: AtomicU64,
}

#[derive(Default)]
struct Watching {
    n_subscribers: usize,
    thread: Option<WatchThread>,
}

/// The thread that looks.
struct WatchThread {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl WatchThread {
    fn start(target: &Target) -> Option<Self> {
        let watcher = Watcher::new(target);
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = stop.clone();
        let builder = thread::Builder::new().name("clockjack-watch".into());
        // Without the thread all that needs more than one look is unknown, and shown so.
        let thread = builder.spawn(move || watch(&watcher, &is_stopped)).ok()?;
        Some(Self { stop, thread })
    }

    fn stop(self) {
        // Relaxed: the flag publishes nothing, and the unpark makes the thread look.
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        // A panic of the thread was reported when it happened.
        let _ended = self.thread.join();
    }
}

fn watch(watcher: &Watcher, is_stopped: &AtomicBool) {
    let target = watcher.target();
    let begin = Instant::now();
    let (mut next_sample, mut next_advance, mut next_slice) = (begin, begin, begin);
    while !is_stopped.load(Ordering::Relaxed) {
        let now = Instant::now();
        if now >= next_sample {
            watcher.sample(target.now_ns());
            // A sample that comes late is not made up for: it would be of the same moment.
            next_sample = (next_sample + Watcher::SAMPLE_PERIOD).max(now);
        }
        if now >= next_slice {
            watcher.sweep(target.now_ns());
            let end = Instant::now();
            next_slice = end + Watcher::rest(end - now);
        }
        if now >= next_advance {
            watcher.advance(target.now_ns());
            next_advance = now + ADVANCE_PERIOD;
        }
        let next = next_sample.min(next_slice).min(next_advance);
        thread::park_timeout(next.saturating_duration_since(Instant::now()));
    }
}

impl Live {
    pub(super) fn new(
        target: Target,
        control: Control,
        names: Option<NamesFn>,
        n_clients: Arc<AtomicUsize>,
    ) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_ms = u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX);
        let (watching, n_skipped) = (Mutex::default(), AtomicU64::new(0));
        *target.names() = names;
        let tracer = target.runtime().cloned().map(Tracer::new);
        Self { target, control, names, tracer, started_ms, n_clients, watching, n_skipped }
    }

    /// Refuses a path that clients do not see, so that none of them learns by guessing what exists.
    fn check_path(&self, path: &str) -> Result<(), ViewError> {
        let is_shown = self.names.is_none_or(|names| is_shown(path, names));
        is_shown.then_some(()).ok_or(ViewError::NotFound)
    }

    fn unredacted(&self, name: &str, params: &Params) -> Result<Value, ViewError> {
        let target = &self.target;
        match name {
            "hello" => json(&self.hello()),
            "overview" => {
                let mut overview = inspect::overview(target);
                let n_skipped = self.n_skipped.load(Ordering::Relaxed);
                overview.console.frames_skipped = Number::count(n_skipped);
                let n_clients = self.n_clients.load(Ordering::Relaxed);
                overview.console.clients = Number::size(n_clients);
                json(&overview)
            }
            "actors" => json(&inspect::actors(target, &parse::<Query>(params)?)),
            "tree" => {
                let query = parse::<TreeQuery>(params)?;
                self.check_path(&query.at)?;
                found(inspect::tree(target, &query))
            }
            "actor" => {
                let query = parse::<ActorQuery>(params)?;
                if let ActorQuery::Path(path) = &query {
                    self.check_path(path)?;
                }
                found(inspect::actor(target, &query))
            }
            "workers" => json(&inspect::workers(target)),
            "timers" => json(&inspect::timers(target)),
            "jobs" => json(&inspect::jobs(target, &parse::<Query>(params)?)),
            "asks" => json(&inspect::asks(target, &parse::<Query>(params)?)),
            "deadletters" => json(&inspect::deadletters(target)),
            "graphs" => json(&inspect::graphs(target)),
            "graph" => found(inspect::graph(target, &parse::<GraphQuery>(params)?.name)),
            "events" => json(&inspect::events(target, &parse::<EventsQuery>(params)?)),
            "findings" => json(&inspect::findings(target)),
            _ => Err(ViewError::NoView),
        }
    }
}

fn parse<Q: QueryParams>(params: &Params) -> Result<Q, ViewError> {
    Q::from_params(params).map_err(ViewError::Query)
}

fn json(view: &impl serde::Serialize) -> Result<Value, ViewError> {
    serde_json::to_value(view).map_err(|_| ViewError::NotFound)
}

fn found(view: Option<impl serde::Serialize>) -> Result<Value, ViewError> {
    json(&view.ok_or(ViewError::NotFound)?)
}

impl Source for Live {
    fn hello(&self) -> Hello {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(|path| path.file_name());
        Hello {
            schema: SCHEMA.to_owned(),
            program: program.map(|name| name.to_string_lossy().into_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            pid: Some(std::process::id()),
            system: Some(self.target.system().name().to_owned()),
            started: Some(self.started_ms),
            clock: Some(inspect::clock(&self.target)),
            control: self.control.names().into_iter().map(str::to_owned).collect(),
            views: VIEWS.iter().map(|name| (*name).to_owned()).collect(),
            ..Hello::default()
        }
    }

    fn view(&self, name: &str, params: &Params) -> Result<Value, ViewError> {
        let mut value = self.unredacted(name, params)?;
        if let Some(names) = self.names {
            redact(&mut value, names);
        }
        Ok(value)
    }

    fn graph_svg(&self, params: &Params) -> Result<String, ViewError> {
        let name = parse::<GraphQuery>(params)?.name;
        inspect::graph_svg(&self.target, &name).ok_or(ViewError::NotFound)
    }

    fn target(&self) -> &Target {
        &self.target
    }

    fn trace(&self) -> Option<Traced> {
        let is_allowed = self.control.allows(Control::INSPECT);
        self.tracer.as_ref().filter(|_| is_allowed).map(Tracer::trace)
    }

    fn flight_recording(&self, last: Duration) -> Option<FlightRecording> {
        let mut recording = self.target.runtime()?.flight_recording(last);
        if let Some(names) = self.names {
            recording.rename(|name| redacted(name, names).into_owned());
        }
        Some(recording)
    }

    fn subscribe(&self) {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        watching.n_subscribers += 1;
        // A thread that has panicked was reported when it did, and so was, as S14, that nobody
        // looks. The next client gets another one.
        if let Some(ended) = watching.thread.take_if(|one| one.thread.is_finished()) {
            ended.stop();
        }
        if watching.thread.is_none() {
            watching.thread = WatchThread::start(&self.target);
        }
    }

    fn unsubscribe(&self) {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        watching.n_subscribers -= 1;
        if watching.n_subscribers == 0
            && let Some(thread) = watching.thread.take()
        {
            thread.stop();
        }
    }

    fn count_skipped(&self, n: u64) {
        self.n_skipped.fetch_add(n, Ordering::Relaxed);
    }
}

/// The actors at the top, below the root.
const GUARDIANS: [&str; 2] = ["/user", "/system"];

/// Whether clients see a path as it is.
fn is_shown(path: &str, names: NamesFn) -> bool {
    redacted(path, names) == path
}

/// Replaces every path of an actor in every text.
fn redact(value: &mut Value, names: NamesFn) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = redacted(text, names) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, names)),
        Value::Object(members) => members.values_mut().for_each(|item| redact(item, names)),
        _ => {}
    }
}

/// The text with every path replaced.
///
/// A path begins with the name of a guardian. No name contains a space, so it ends before one; it
/// ends in no punctuation, because a text may go on with some. What else is in it is part of its
/// names, such as a colon, and is not shown.
fn redacted(text: &str, names: NamesFn) -> Cow<'_, str> {
    const AFTER: &[char] = &['`', '\'', '"', ',', ':', ';', '(', ')', '[', ']', '.'];
    let begin = |text: &str| GUARDIANS.iter().filter_map(|guardian| text.find(guardian)).min();
    if begin(text).is_none() {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(at) = begin(rest) {
        let (before, path) = rest.split_at(at);
        let (path, after) = path.split_at(path.find(char::is_whitespace).unwrap_or(path.len()));
        let end = path.trim_end_matches(AFTER).len();
        let path_of = path[..end].split('/').filter(|name| !name.is_empty());
        let path_of = path_of.fold(ActorPath::root(), |path, name| path.child(name));
        shown.push_str(before);
        shown.push_str(&names(&path_of));
        shown.push_str(&path[end..]);
        rest = after;
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_client_gets_a_thread_if_that_of_another_one_has_panicked() {
        let time = clockjack_testkit::ManualTime::start();
        let target = Target::of_system(time.system());
        let live = Live::new(target, Control::NONE, None, Arc::default());
        live.subscribe();
        let id =
            || live.watching.lock().unwrap().thread.as_ref().map(|one| one.thread.thread().id());
        let first = id();
        live.subscribe();
        assert_eq!(id(), first, "one thread looks for all");
        let broken = thread::spawn(|| panic!("a fault of the console, on purpose"));
        while !broken.is_finished() {
            thread::yield_now();
        }
        let broken = WatchThread { stop: Arc::default(), thread: broken };
        let old = live.watching.lock().unwrap().thread.replace(broken);
        old.unwrap().stop();
        live.subscribe();
        let is_running = |live: &Live| {
            !live.watching.lock().unwrap().thread.as_ref().unwrap().thread.is_finished()
        };
        assert!(is_running(&live));
        (0..3).for_each(|_| live.unsubscribe());
        assert!(live.watching.lock().unwrap().thread.is_none());
    }

    #[test]
    fn paths_are_replaced_in_texts_as_well() {
        fn names(path: &ActorPath) -> Cow<'_, str> {
            if path.depth() > 1 { "/user/*".into() } else { path.to_string().into() }
        }
        let shown = |text| redacted(text, names).into_owned();
        assert_eq!(shown("/user/anna"), "/user/*");
        assert_eq!(shown("/user/anna asks /user/bert/x, 3/s"), "/user/* asks /user/*, 3/s");
        assert_eq!(shown("`/user/anna`: failed"), "`/user/*`: failed");
        assert_eq!(shown("/user"), "/user");
        // Names may contain what also ends a path in a text.
        assert_eq!(shown("/user/anna:smith"), "/user/*");
        assert_eq!(shown("/user/(anna),smith: 9 of 10"), "/user/*: 9 of 10");
        assert_eq!(shown("/user/anna\"[smith]'s (38 %)."), "/user/* (38 %).");
        assert_eq!(shown("house:7117/user/anna asks"), "house:7117/user/* asks");
        assert_eq!(shown("12 / 3"), "12 / 3");
    }
}
