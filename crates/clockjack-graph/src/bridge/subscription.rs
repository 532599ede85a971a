//! Sends the inputs of an output boundary to an actor.
//!
//! A subscription wraps the component: it captures the inputs of an invocation, executes the
//! component, and sends the captured values to the actor if the invocation has succeeded. This does
//! not change the graph: no edge is added, and the commit log is the same with and without
//! subscriptions.

use core::fmt;
use std::sync::Arc;

use clockjack_actor::ActorRef;
use clockjack_exec::Failure;

use super::OnRefused;
use crate::{
    compile::Plan,
    component::{Binder, Config, ConfigError, Input, Snapshot},
    data::Data,
    describe::{BoundaryRole, EdgeSpec},
    graph::ComponentSource,
    registry::node::{ErasedComponent, ErasedNode},
    run::{GraphContext, RunError, observe::metrics::UserCounter},
};

/// A subscription, as given in the options of a run.
#[derive(Clone)]
pub(crate) struct Subscription {
    endpoint: String,
    schema: &'static str,
    /// Creates the tap for this input.
    make: Arc<dyn Fn(u32) -> Box<dyn Tap> + Send + Sync>,
}

impl Subscription {
    pub(crate) fn new<T: Data + Clone>(
        endpoint: &str,
        to: &ActorRef<T>,
        on_refused: OnRefused,
    ) -> Self {
        let to = to.clone();
        let make = move |input| -> Box<dyn Tap> {
            let (to, input) = (to.clone(), Input::<T>::at(input));
            Box::new(ActorTap { input, to, on_refused, seen: Vec::new(), counts: None })
        };
        Self { endpoint: endpoint.into(), schema: T::SCHEMA, make: Arc::new(make) }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Wraps the components that have subscriptions.
///
/// # Errors
///
/// [`RunError`], if an endpoint is not an input of an output boundary, has another type, or belongs
/// to a component whose invocations overlap.
pub(crate) fn subscribe(
    plan: &Plan,
    sources: Vec<ComponentSource>,
    wanted: &[Subscription],
) -> Result<Vec<ComponentSource>, RunError> {
    if wanted.is_empty() {
        return Ok(sources);
    }
    let mut taps: Vec<Vec<(Subscription, u32)>> = sources.iter().map(|_| Vec::new()).collect();
    for one in wanted {
        let refuse = |why: String| {
            RunError::refused(format!("`{}` cannot be subscribed to: {why}", one.endpoint))
        };
        let (component, input) = find(plan, one).map_err(refuse)?;
        taps[component].push((one.clone(), input));
    }
    let around = sources.into_iter().zip(taps).map(|(source, taps)| match source {
        source if taps.is_empty() => source,
        ComponentSource::Instance(body) => ComponentSource::Instance(wrap(body, &taps)),
        ComponentSource::Factory(make) => {
            ComponentSource::Factory(Arc::new(move || wrap(make(), &taps)))
        }
    });
    Ok(around.collect())
}

fn find(plan: &Plan, wanted: &Subscription) -> Result<(usize, u32), String> {
    let (id, port) = EdgeSpec::split(&wanted.endpoint);
    let component = plan.find(id).ok_or_else(|| format!("there is no component `{id}`"))?;
    let planned = &plan.components[component];
    if !matches!(planned.spec.boundary.role, BoundaryRole::Output | BoundaryRole::InputOutput) {
        return Err(format!("`{id}` is not an output boundary"));
    }
    let input = planned
        .inputs
        .iter()
        .position(|one| one.name == port)
        .ok_or_else(|| format!("`{id}` has no input `{port}`"))?;
    let schema = &planned.inputs[input].schema;
    if !schema.is_empty() && schema != wanted.schema {
        return Err(format!("its type is `{schema}`, not `{}`", wanted.schema));
    }
    if planned.descriptor.reentrant {
        return Err(String::from("invocations of its component may overlap"));
    }
    Ok((component, u32::try_from(input).expect("ports are few")))
}

fn wrap(body: ErasedComponent, taps: &[(Subscription, u32)]) -> ErasedComponent {
    match body {
        ErasedComponent::Exclusive(inner) => {
            let taps = taps.iter().map(|(one, input)| (one.make)(*input)).collect();
            ErasedComponent::Exclusive(Box::new(Tapped { inner, taps }))
        }
        // Refused earlier.
        other => other,
    }
}

/// Captures the inputs of an invocation and sends them.
trait Tap: Send {
    /// Captures the inputs of an invocation, and discards those left from an earlier one.
    fn capture(&mut self, cx: &GraphContext<'_>);

    /// Sends the captured values.
    fn send(&mut self, cx: &GraphContext<'_>) -> Result<(), Failure>;
}

struct ActorTap<T> {
    input: Input<T>,
    to: ActorRef<T>,
    on_refused: OnRefused,
    seen: Vec<T>,
    /// The counters of sent and of refused messages.
    counts: Option<(UserCounter, UserCounter)>,
}

impl<T: Data + Clone> Tap for ActorTap<T> {
    fn capture(&mut self, cx: &GraphContext<'_>) {
        self.seen.clear();
        self.seen.extend(cx.arrived(self.input).cloned());
    }

    fn send(&mut self, cx: &GraphContext<'_>) -> Result<(), Failure> {
        if self.counts.is_none() {
            let n_refused = cx.counter("actor.refused_count")?;
            self.counts = Some((cx.counter("actor.told_count")?, n_refused));
        }
        let Some((n_sent, n_refused)) = &self.counts else { return Ok(()) };
        let mut first = None;
        for value in self.seen.drain(..) {
            match self.to.tell(value) {
                Ok(()) => n_sent.add(1),
                Err(error) => {
                    n_refused.add(1);
                    first.get_or_insert(error.discard());
                }
            }
        }
        match first {
            Some(error) if self.on_refused == OnRefused::Fail => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// A component with subscriptions.
struct Tapped {
    inner: Box<dyn ErasedNode>,
    taps: Vec<Box<dyn Tap>>,
}

impl ErasedNode for Tapped {
    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.inner.bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.inner.configure(config)
    }

    fn validate_config(&self, config: &Config) -> Result<(), ConfigError> {
        self.inner.validate_config(config)
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.inner.activate()
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.inner.deactivate()
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.inner.reset()
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure> {
        self.inner.snapshot()
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        self.inner.restore(snapshot)
    }

    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        for tap in &mut self.taps {
            tap.capture(cx);
        }
        self.inner.execute(cx)?;
        self.taps.iter_mut().try_for_each(|tap| tap.send(cx))
    }
}
