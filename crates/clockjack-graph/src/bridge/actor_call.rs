//! A component that asks an actor.

use core::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use std::sync::Arc;

use clockjack_actor::{ActorRef, AskError, ReplyTo};
use clockjack_exec::Failure;

use super::OnRefused;
use crate::{
    component::{
        Binder, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor, Execute,
        Input, InputPort, Need, Output, OutputPort,
    },
    data::{Data, Value},
    run::{
        GraphContext,
        flow::tasks::{ResultOrder, TaskStart, Work},
        observe::metrics::UserCounter,
    },
};

/// Forwards each value to an actor as a request, and publishes the reply when it arrives.
///
/// Requests are sent at the end of the epoch, in the order of components. Each request is a task:
/// the reply becomes visible at the start of a later epoch. If the mailbox is full, the request
/// waits for room within its timeout. A request without a reply is a failure of the component:
/// because of the timeout, because the actor has stopped, or because the actor has dropped the
/// request.
///
/// Settings: `timeout_ms` overrides the timeout of the constructor. `max_inflight` limits the
/// requests in flight; zero means as many as the run allows tasks. `on_refused` decides what
/// happens to further requests (`fail` or `drop`). `ordered` (default `true`) publishes the replies
/// in the order of the requests; otherwise each reply is published when it arrives.
///
/// Counters: `actor.asked_count`, `actor.answered_count`, `actor.refused_count` and
/// `actor.failed_count`.
pub struct ActorCall<M, Q, R> {
    to: ActorRef<M>,
    request: fn(Q, ReplyTo<R>) -> M,
    default_timeout: Duration,
    timeout: Duration,
    max_inflight: usize,
    on_refused: OnRefused,
    order: ResultOrder,
    n_in_flight: Arc<AtomicUsize>,
    counts: Option<Counts>,
    input: Input<Q>,
    output: Output<R>,
}

/// The outcomes of requests. Each request that is asked ends in exactly one of the other counters.
#[derive(Clone)]
struct Counts {
    asked: UserCounter,
    answered: UserCounter,
    refused: UserCounter,
    failed: UserCounter,
}

impl Counts {
    fn new(cx: &GraphContext<'_>) -> Result<Self, Failure> {
        Ok(Self {
            asked: cx.counter("actor.asked_count")?,
            answered: cx.counter("actor.answered_count")?,
            refused: cx.counter("actor.refused_count")?,
            failed: cx.counter("actor.failed_count")?,
        })
    }
}

impl<M: 'static, Q: Data + Clone, R: Data> ActorCall<M, Q, R> {
    /// The input: requests.
    pub const IN: InputPort<Q> = InputPort::new("in");
    /// The output: replies.
    pub const OUT: OutputPort<R> = OutputPort::new("out");

    /// Creates a component that asks this actor; `request` creates the message, usually as a
    /// variant of its type.
    #[must_use]
    pub fn new(to: &ActorRef<M>, request: fn(Q, ReplyTo<R>) -> M, timeout: Duration) -> Self {
        Self {
            to: to.clone(),
            request,
            default_timeout: timeout,
            timeout,
            max_inflight: 0,
            on_refused: OnRefused::default(),
            order: ResultOrder::BySubmission,
            n_in_flight: Arc::default(),
            counts: None,
            input: Input::default(),
            output: Output::default(),
        }
    }
}

impl<M: Send + 'static, Q: Data + Clone, R: Data> ActorCall<M, Q, R> {
    /// Hands over one request; `false` if too many are in flight.
    fn ask(&self, cx: &mut GraphContext<'_>, value: Q, counts: &Counts) -> bool {
        // Relaxed: in simulated time, all requests of earlier epochs have completed before this
        // epoch began. Otherwise the counter is only a bound and does not order anything.
        let n_in_flight = self.n_in_flight.load(Ordering::Relaxed);
        if self.max_inflight > 0 && n_in_flight >= self.max_inflight {
            return false;
        }
        let (to, request, timeout) = (self.to.clone(), self.request, self.timeout);
        let (on_refused, counts) = (self.on_refused, counts.clone());
        let in_flight = InFlight::new(&self.n_in_flight);
        let make = move || -> Work {
            let answer = to.ask(|reply_to| request(value, reply_to), timeout);
            Box::pin(async move {
                let answer = answer.await;
                drop(in_flight);
                finish_request(answer, on_refused, &counts)
            })
        };
        cx.begin_task(self.output, TaskStart::Deferred(Box::new(make), self.order)).is_ok()
    }
}

/// Converts the reply to the result of the task.
fn finish_request<R: Data>(
    answer: Result<R, AskError>,
    on_refused: OnRefused,
    counts: &Counts,
) -> Result<Option<Value>, Failure> {
    match answer {
        Ok(answer) => {
            counts.answered.add(1);
            Ok(Some(Value::owned(answer)))
        }
        Err(error) if error.is_refused() => {
            counts.refused.add(1);
            if on_refused == OnRefused::Drop { Ok(None) } else { Err(error.into()) }
        }
        Err(error) => {
            counts.failed.add(1);
            Err(error.into())
        }
    }
}

/// Counts a request as in flight while it exists.
struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    fn new(n_in_flight: &Arc<AtomicUsize>) -> Self {
        // Relaxed: see the load in `ask`.
        n_in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(n_in_flight))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // Relaxed: see the load in `ask`.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<M: Send + 'static, Q: Data + Clone, R: Data> Component for ActorCall<M, Q, R> {
    const TYPE: &'static str = "actor";

    fn describe() -> Descriptor {
        let on_refused: Vec<&str> = OnRefused::ALL.iter().map(|one| one.name()).collect();
        Descriptor::new(Self::TYPE)
            .inputs(Self::IN, Need::Required)
            .output(Self::OUT)
            .config(ConfigField::new("timeout_ms", ConfigKind::Int).between(1.0, 86_400_000.0))
            .config(ConfigField::new("max_inflight", ConfigKind::Int).between(0.0, 1e9))
            .config(ConfigField::new("on_refused", ConfigKind::Text).one_of(&on_refused))
            .config(ConfigField::new("ordered", ConfigKind::Bool))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.input = ports.input(Self::IN);
        self.output = ports.output(Self::OUT);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        let timeout_ms: Option<u64> = config.get("timeout_ms")?;
        self.timeout = timeout_ms.map_or(self.default_timeout, Duration::from_millis);
        self.max_inflight = config.get("max_inflight")?.unwrap_or(0);
        let is_ordered = config.get("ordered")?.unwrap_or(true);
        self.order = if is_ordered { ResultOrder::BySubmission } else { ResultOrder::ByCompletion };
        let on_refused: Option<String> = config.get("on_refused")?;
        self.on_refused =
            on_refused.and_then(|name| OnRefused::from_name(&name)).unwrap_or_default();
        Ok(())
    }
}

impl<M: Send + 'static, Q: Data + Clone, R: Data> Execute for ActorCall<M, Q, R> {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if self.counts.is_none() {
            self.counts = Some(Counts::new(cx)?);
        }
        let Some(counts) = self.counts.clone() else { return Ok(()) };
        let requests: Vec<Q> = cx.drain(self.input).cloned().collect();
        let mut n_refused = 0_u64;
        for value in requests {
            counts.asked.add(1);
            if !self.ask(cx, value, &counts) {
                counts.refused.add(1);
                n_refused += 1;
            }
        }
        if n_refused > 0 && self.on_refused == OnRefused::Fail {
            let text = format!(
                "{n_refused} requests to {} were refused: too many are in flight",
                self.to.path()
            );
            return Err(Failure::msg(text));
        }
        Ok(())
    }
}

impl<M, Q, R> fmt::Debug for ActorCall<M, Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorCall").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
