//! `GET /v1/stream`: frames of views, as server-sent events.
//!
//! A stream has room for one chunk that its client has not yet read. While that room is taken, the
//! views are not even computed: such frames are skipped and counted, and the next one is complete
//! (`frame.rs`).

use core::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use std::sync::Arc;

use axum::{
    Extension,
    body::Body,
    extract::{RawQuery, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use hyper::body::{Bytes, Frame as BodyFrame};
use serde_json::json;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    Source, ViewError,
    guard::Access,
    routes::{self, Shared, refusal},
};
use crate::{frame::Encoder, query::Params};

/// The most views of one stream.
const VIEWS_MAX: usize = 16;
/// Frames per second.
const HZ_USUAL: f64 = 2.0;
const HZ_MIN: f64 = 0.1;
/// The most frames per second.
pub(super) const HZ_MAX: f64 = 10.0;
/// A chunk that has so many bytes takes no further frame; those come with the next one.
const CHUNK_BYTES_MAX: usize = 256 * 1024;
/// After which silence a stream sends a comment, so that its client knows that it lives.
const COMMENT_TIME: Duration = Duration::from_secs(5);

/// What all streams share.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    stopped: watch::Receiver<()>,
}

impl Streams {
    pub(super) fn new(stopped: watch::Receiver<()>) -> Self {
        Self { stopped }
    }
}

/// A view that a client subscribes to.
struct Subscribed {
    name: String,
    params: Params,
    encoder: Encoder,
}

/// What a client has asked for.
struct Request {
    views: Vec<Subscribed>,
    /// The view that the next chunk begins with.
    next: usize,
    period: Duration,
}

impl Request {
    /// Reads `view=actors%3Fsort%3Ddepth&view=overview&hz=2`.
    fn parse(query: Option<&str>) -> Result<Self, String> {
        let mut views = Vec::new();
        let mut hz = HZ_USUAL;
        for (name, value) in routes::params(query) {
            match name.as_str() {
                "view" => {
                    let (name, params) = value.split_once('?').unwrap_or((&value, ""));
                    let params = routes::params(Some(params));
                    let encoder = Encoder::new(&value, name);
                    views.push(Subscribed { name: name.to_owned(), params, encoder });
                }
                "hz" => {
                    let parsed = value.parse().ok().filter(|hz| (HZ_MIN..=HZ_MAX).contains(hz));
                    hz = parsed.ok_or_else(|| format!("`hz` is from {HZ_MIN} to {HZ_MAX}"))?;
                }
                _ => {}
            }
        }
        match views.len() {
            0 => return Err("the parameter `view` is missing".into()),
            1..=VIEWS_MAX => {}
            _ => return Err(format!("a stream has at most {VIEWS_MAX} views")),
        }
        Ok(Self { views, next: 0, period: Duration::from_secs_f64(1.0 / hz) })
    }

    /// Adds the frames of the views that have changed, each view once at most, until the chunk is
    /// large enough. The next chunk goes on with the view after the last one, so that each view has
    /// its turn.
    fn add_frames(&mut self, source: &dyn Source, chunk: &mut String) {
        for _ in 0..self.views.len() {
            if chunk.len() >= CHUNK_BYTES_MAX {
                return;
            }
            let index = self.next;
            self.next = (index + 1) % self.views.len();
            let view = &mut self.views[index];
            let frame = match source.view(&view.name, &view.params) {
                Ok(value) => view.encoder.next(value),
                Err(error) => Some(view.encoder.error(error.to_string())),
            };
            let Some(frame) = frame else { continue };
            if let Ok(json) = serde_json::to_string(&frame) {
                push(chunk, "frame", &json);
            }
        }
    }
}

/// A subscription, which lasts as long as this lives.
struct Subscription(Arc<dyn Source>);

impl Subscription {
    fn new(source: Arc<dyn Source>) -> Self {
        source.subscribe();
        Self(source)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.unsubscribe();
    }
}

/// Answers with a stream.
pub(super) async fn open(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    routes::check_access(access)?;
    let request = Request::parse(query.as_deref());
    let request = request.map_err(|what| refusal(StatusCode::BAD_REQUEST, what))?;
    for view in &request.views {
        // A view that is invalid is refused; one that names what does not exist may come later.
        let refused = shared.source.view(&view.name, &view.params).err();
        let is_wrong = |error: &ViewError| matches!(error, ViewError::NoView | ViewError::Query(_));
        if let Some(error) = refused.filter(is_wrong) {
            return Err(routes::view_refusal(&error));
        }
    }
    let (chunks, body) = mpsc::channel(1);
    let subscription = Subscription::new(shared.source);
    tokio::spawn(produce(subscription, request, chunks, shared.streams.stopped));
    let body = Body::new(Chunks(body));
    Ok(([(CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// Makes frames until the client has gone or the console closes.
async fn produce(
    subscription: Subscription,
    mut request: Request,
    chunks: mpsc::Sender<Bytes>,
    mut stopped: watch::Receiver<()>,
) {
    let mut ticks = interval(request.period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut n_skipped = 0_u64;
    let mut last_sent = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = chunks.closed() => return,
            _ = stopped.changed() => {
                let bye = Bytes::from_static(b"event: bye\ndata: {}\n\n");
                let _sent = chunks.send(bye).await;
                return;
            }
            _ = ticks.tick() => {}
        }
        let Ok(permit) = chunks.try_reserve() else {
            n_skipped += 1;
            subscription.0.count_skipped(1);
            continue;
        };
        let mut text = String::new();
        if n_skipped > 0 {
            push(&mut text, "skipped", &json!({ "n": n_skipped }).to_string());
        }
        request.add_frames(&*subscription.0, &mut text);
        if text.is_empty() {
            if last_sent.elapsed() < COMMENT_TIME {
                continue;
            }
            text.push_str(":\n\n");
        }
        (n_skipped, last_sent) = (0, Instant::now());
        permit.send(Bytes::from(text));
    }
}

/// Adds an event. JSON on one line needs no further form.
fn push(text: &mut String, event: &str, data: &str) {
    text.push_str("event: ");
    text.push_str(event);
    text.push_str("\ndata: ");
    text.push_str(data);
    text.push_str("\n\n");
}

/// The body of a stream.
struct Chunks(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Chunks {
    type Data = Bytes;
    type Error = core::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(BodyFrame::data(chunk))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Views that are large, and new at each look.
    #[derive(Default)]
    struct Large(core::sync::atomic::AtomicU64);

    impl Source for Large {
        fn hello(&self) -> crate::view::Hello {
            crate::view::Hello::default()
        }

        fn view(&self, _: &str, _: &Params) -> Result<serde_json::Value, ViewError> {
            let n = self.0.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
            Ok(json!({ "n": n, "text": "x".repeat(100 * 1024) }))
        }

        fn graph_svg(&self, _: &Params) -> Result<String, ViewError> {
            Err(ViewError::NotFound)
        }

        fn target(&self) -> &crate::Target {
            unreachable!("a stream asks for no action")
        }

        fn trace(&self) -> Option<crate::server::timeline::Traced> {
            None
        }

        fn flight_recording(&self, _: Duration) -> Option<clockjack_rt::FlightRecording> {
            None
        }

        fn subscribe(&self) {}
        fn unsubscribe(&self) {}
        fn count_skipped(&self, _: u64) {}
    }

    #[test]
    fn a_chunk_is_bounded_and_each_view_has_its_turn() {
        let views: Vec<String> = (0..VIEWS_MAX).map(|n| format!("view=v{n}")).collect();
        let mut request = Request::parse(Some(&views.join("&"))).unwrap();
        let source = Large::default();
        let mut seen = vec![0; VIEWS_MAX];
        for _ in 0..2 * VIEWS_MAX {
            let mut chunk = String::new();
            request.add_frames(&source, &mut chunk);
            assert!(chunk.len() < CHUNK_BYTES_MAX + 110 * 1024, "{}", chunk.len());
            let frames = chunk.lines().filter_map(|line| line.strip_prefix("data: {\"view\":\"v"));
            for frame in frames {
                let n: usize = frame.split('"').next().unwrap().parse().unwrap();
                seen[n] += 1;
            }
        }
        assert_eq!(seen, [6; VIEWS_MAX]);
    }

    #[test]
    fn a_stream_has_views_with_parameters_and_a_bounded_rate() {
        let query = "view=actors%3Fsort%3Ddepth%26filter%3Da%2520b&view=overview&hz=4";
        let request = Request::parse(Some(query)).unwrap();
        assert_eq!(request.period, Duration::from_millis(250));
        let [actors, overview] = &request.views[..] else { panic!("two views") };
        assert_eq!(actors.name, "actors");
        let pairs = [("sort", "depth"), ("filter", "a b")];
        assert_eq!(actors.params, pairs.map(|(name, value)| (name.into(), value.into())));
        assert_eq!((overview.name.as_str(), overview.params.len()), ("overview", 0));
        for wrong in ["", "hz=2", "view=a&hz=11", "view=a&hz=0", "view=a&hz=NaN", "view=a&hz=x"] {
            assert!(Request::parse(Some(wrong)).is_err(), "{wrong}");
        }
        let many = vec!["view=a"; VIEWS_MAX + 1].join("&");
        assert!(Request::parse(Some(&many)).is_err());
    }
}
