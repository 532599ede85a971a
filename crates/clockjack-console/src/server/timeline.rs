//! `GET /v1/timeline`: what the workers did within a time, for people who look at one poll after
//! the other.
//!
//! Where the program allows [`Control::INSPECT`], the runtime is traced for that time, else the
//! answer has what the flight recorder records anyway. Tracing has an owner per request,
//! [`Traced`], which ends with the request: after its time, when its client has gone, or when the
//! console is closed. The last owner switches tracing off. A program that traces itself is left
//! alone.

use core::{fmt, time::Duration};
use std::sync::{Arc, Mutex, PoisonError};

use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{
        StatusCode,
        header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
};
use clockjack_actor::observe::{chrome, perfetto, timeline::Timeline};
use clockjack_rt::{FlightRecording, RuntimeMetrics};

use super::{
    ViewError,
    guard::Access,
    routes::{Shared, check_access, params, refusal, view_refusal},
};
use crate::query::{Params, QueryError};

/// How long is looked at, in milliseconds, and the most.
const MS: u64 = 500;
const MS_MAX: u64 = 5_000;
/// The most bytes of an answer.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Chrome's, with how it was made.
    Json,
    /// Chrome's, as a file.
    Chrome,
    /// Perfetto's, as a file.
    Perfetto,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimelineQuery {
    ms: u64,
    format: Format,
}

impl TimelineQuery {
    fn from_params(params: &Params) -> Result<Self, QueryError> {
        let get = |name: &str| params.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let ms = get("ms").map_or(Ok(MS), |text| {
            let ms = text.parse().ok().filter(|ms| (1..=MS_MAX).contains(ms));
            ms.ok_or_else(|| QueryError::Invalid("ms", text.clone()))
        })?;
        let format = match get("format").map(String::as_str) {
            None | Some("json") => Format::Json,
            Some("chrome") => Format::Chrome,
            Some("perfetto") => Format::Perfetto,
            Some(other) => return Err(QueryError::Invalid("format", other.to_owned())),
        };
        Ok(Self { ms, format })
    }
}

/// What is traced: a runtime, or a stand-in for one.
trait Tracing: Send + Sync {
    fn is_tracing(&self) -> bool;
    fn set_tracing(&self, is_on: bool);
}

impl Tracing for RuntimeMetrics {
    fn is_tracing(&self) -> bool {
        self.is_tracing()
    }

    fn set_tracing(&self, is_on: bool) {
        self.set_tracing(is_on);
    }
}

/// Who wants a runtime to be traced.
pub(crate) struct Tracer {
    runtime: Arc<dyn Tracing>,
    n_owners: Mutex<usize>,
}

/// An owner. While there is one, the runtime is traced.
pub(crate) struct Traced(Option<Arc<Tracer>>);

impl Tracer {
    pub(super) fn new(runtime: RuntimeMetrics) -> Arc<Self> {
        Self::of(Arc::new(runtime))
    }

    fn of(runtime: Arc<dyn Tracing>) -> Arc<Self> {
        Arc::new(Self { runtime, n_owners: Mutex::new(0) })
    }

    /// Traces until the owner is dropped.
    pub(super) fn trace(self: &Arc<Self>) -> Traced {
        let mut n_owners = self.n_owners.lock().unwrap_or_else(PoisonError::into_inner);
        if *n_owners == 0 {
            if self.runtime.is_tracing() {
                return Traced(None);
            }
            self.runtime.set_tracing(true);
        }
        *n_owners += 1;
        Traced(Some(self.clone()))
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let Some(tracer) = &self.0 else { return };
        let mut n_owners = tracer.n_owners.lock().unwrap_or_else(PoisonError::into_inner);
        *n_owners -= 1;
        if *n_owners == 0 {
            tracer.runtime.set_tracing(false);
        }
    }
}

/// A text that ends where it would become too long.
#[derive(Default)]
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The recording in a format; `None` if it is too long.
fn encoded(recording: &FlightRecording, format: Format, was_traced: bool) -> Option<Vec<u8>> {
    let mut timeline = Timeline::new();
    recording.add_to(&mut timeline, 0);
    if format == Format::Perfetto {
        return Some(perfetto::encode(&timeline)).filter(|bytes| bytes.len() <= BYTES_MAX);
    }
    let mut text = Bounded::default();
    chrome::write(&mut text, &timeline).ok()?;
    if format == Format::Json {
        // The text is an object; this is its first member.
        text.0.insert_str(1, &format!("\"traced\":{was_traced},"));
    }
    Some(text.0.into_bytes())
}

pub(super) async fn open(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    check_access(access)?;
    let query = TimelineQuery::from_params(&params(query.as_deref()));
    let query = query.map_err(|error| view_refusal(&ViewError::Query(error)))?;
    let last = Duration::from_millis(query.ms);
    let traced = shared.source.trace();
    let was_traced = traced.is_some();
    if was_traced {
        tokio::time::sleep(last).await;
    }
    let recording = shared.source.flight_recording(last);
    drop(traced);
    let recording = recording
        .ok_or_else(|| refusal(StatusCode::NOT_FOUND, "this system has no runtime that records"))?;
    // On a thread of its own, so that other clients need not wait.
    let encode = move || encoded(&recording, query.format, was_traced);
    let bytes = tokio::task::spawn_blocking(encode).await;
    let bytes =
        bytes.map_err(|error| refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let bytes = bytes.ok_or_else(|| {
        refusal(StatusCode::PAYLOAD_TOO_LARGE, "the timeline is too long: ask for fewer `ms`")
    })?;
    let (kind, file) = match query.format {
        Format::Json => return Ok(([(CONTENT_TYPE, "application/json")], bytes).into_response()),
        Format::Chrome => ("application/json", "attachment; filename=\"timeline.json\""),
        Format::Perfetto => {
            ("application/octet-stream", "attachment; filename=\"timeline.pftrace\"")
        }
    };
    Ok(([(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, file)], bytes).into_response())
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use super::*;

    #[derive(Default)]
    struct Runtime(AtomicBool);

    impl Tracing for Runtime {
        fn is_tracing(&self) -> bool {
            self.0.load(SeqCst)
        }

        fn set_tracing(&self, is_on: bool) {
            self.0.store(is_on, SeqCst);
        }
    }

    #[test]
    fn the_last_owner_ends_tracing_and_a_program_that_traces_itself_is_left_alone() {
        let runtime = Arc::new(Runtime::default());
        let tracer = Tracer::of(runtime.clone());
        let (first, second) = (tracer.trace(), tracer.trace());
        assert!(runtime.is_tracing());
        drop(first);
        assert!(runtime.is_tracing());
        drop(second);
        assert!(!runtime.is_tracing());
        runtime.set_tracing(true);
        drop(tracer.trace());
        assert!(runtime.is_tracing());
    }

    #[test]
    fn queries_have_bounds() {
        let query = |name: &str, value: &str| {
            TimelineQuery::from_params(&vec![(name.to_owned(), value.to_owned())])
        };
        let usual = TimelineQuery { ms: MS, format: Format::Json };
        assert_eq!(TimelineQuery::from_params(&Vec::new()), Ok(usual));
        assert_eq!(query("ms", "5000"), Ok(TimelineQuery { ms: 5_000, ..usual }));
        let perfetto = TimelineQuery { format: Format::Perfetto, ..usual };
        assert_eq!(query("format", "perfetto"), Ok(perfetto));
        for (name, value) in [("ms", "0"), ("ms", "5001"), ("ms", "-1"), ("format", "gif")] {
            assert!(query(name, value).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn a_text_is_not_longer_than_its_bound() {
        use fmt::Write as _;
        let mut text = Bounded::default();
        let part = "x".repeat(BYTES_MAX / 2);
        assert_eq!((text.write_str(&part), text.write_str(&part)), (Ok(()), Ok(())));
        assert_eq!(text.write_str("x"), Err(fmt::Error));
        assert_eq!(text.0.len(), BYTES_MAX);
    }
}
