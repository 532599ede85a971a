//! Derives the policy of a trigger from the event sources and fields of its description.
//!
//! | sources | `trigger_policy.type` | policy |
//! |---|---|---|
//! | a timer | any | timers |
//! | no timer, nothing like a message | `manual`, or no inputs | every epoch |
//! | no timer, nothing like a message | any other, with inputs | never (the compiler warns) |
//! | a message, a request, a task, a future | `manual` | as `any_input` |
//! | a message, a request, a task, a future | any other | that one |
//!
//! `coalesce` replaces policies with one invocation per message by one invocation with the newest
//! messages. Other policies keep their condition, and see only the newest message of each input.
//! `all_inputs`, also as the condition `all_inputs_ready`, does so by itself at inputs whose edges
//! all keep only the newest message (`latest`, `latched`, `previous_tick`).

use super::{EventKind, Timer, Trigger, TriggerCounters, TriggerInput};
use crate::{
    compile::plan::{PlanComponent, PlanEdge},
    describe::{ClockDomain, Condition, EventSourceSpec, SourceType, TriggerSpec, TriggerType},
    run::flow::pending::{self, Pending},
};

const NS_PER_MS: u64 = 1_000_000;

/// When a trigger makes an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Never,
    /// Every epoch.
    Always,
    /// When a timer is due.
    Timers,
    /// One message is enough.
    Any,
    /// One message is enough; the newest message of each input.
    Newest,
    /// A message at each input.
    All,
    /// A message with a timestamp at each input.
    Stamped,
    /// Messages with timestamps close to each other.
    TimeSync {
        slop_ns: u64,
    },
    /// This number of messages (zero: any number), or this time window.
    Batch {
        size: usize,
        window_ns: Option<u64>,
    },
}

const fn is_like_a_message(source: &EventSourceSpec) -> bool {
    match source.source_type {
        SourceType::Manual | SourceType::Timer => false,
        SourceType::Message
        | SourceType::Request
        | SourceType::TaskReady
        | SourceType::FutureReady => true,
    }
}

impl Policy {
    fn of(component: &PlanComponent) -> Self {
        let sources = &component.spec.event_sources;
        let spec = &component.spec.trigger;
        let n_inputs = component.trigger_inputs.len();
        if sources.iter().any(|source| source.source_type == SourceType::Timer) {
            return Self::Timers;
        }
        if !sources.iter().any(is_like_a_message) {
            let is_manual = spec.trigger_type == TriggerType::Manual || n_inputs == 0;
            return if is_manual { Self::Always } else { Self::Never };
        }
        let any = if spec.coalesce { Self::Newest } else { Self::Any };
        match spec.trigger_type {
            TriggerType::Manual
            | TriggerType::OnEvent
            | TriggerType::AnyInput
            | TriggerType::Request
            | TriggerType::TaskReady
            | TriggerType::Watermark
            | TriggerType::RateLimit => any,
            TriggerType::Debounce => Self::Newest,
            TriggerType::AllInputs => Self::All,
            TriggerType::TimeSync => {
                Self::TimeSync { slop_ns: spec.sync_slop_ms.saturating_mul(NS_PER_MS) }
            }
            TriggerType::Batch => Self::batch(spec, n_inputs),
            TriggerType::Condition => match spec.condition {
                Condition::AllInputsReady => Self::All,
                Condition::AnyInputReady => any,
                Condition::EventTimestampPresent => Self::Stamped,
            },
        }
    }

    fn batch(spec: &TriggerSpec, n_inputs: usize) -> Self {
        let size = spec.batch_size as usize;
        // Only one message per input is kept then, so there will never be more.
        let size = if spec.coalesce { size.min(n_inputs) } else { size };
        let has_window = spec.batch_window_ms > 0 || size == 0;
        let window_ns = spec.batch_window_ms.saturating_mul(NS_PER_MS);
        Self::Batch { size, window_ns: has_window.then_some(window_ns) }
    }
}

impl Trigger {
    /// The edges that end at a component, in the order in which its trigger expects their channels:
    /// input by input, and for each input in the order of the description.
    #[cfg(test)]
    pub(crate) fn in_edges(component: &PlanComponent) -> impl Iterator<Item = usize> {
        component.inputs.iter().flat_map(|input| input.edges.iter().copied())
    }

    /// The trigger of a component. All its memory is allocated here.
    pub(crate) fn new(component: &PlanComponent, edges: &[PlanEdge]) -> Self {
        let spec = &component.spec.trigger;
        let policy = Policy::of(component);
        let is_watermark = spec.trigger_type == TriggerType::Watermark;
        let is_plain = spec.min_interval_ms == 0 && spec.max_latency_ms == 0;
        let is_direct = policy == Policy::Any && is_plain && !is_watermark;
        let inputs: Vec<_> = component
            .trigger_inputs
            .iter()
            .map(|port| trigger_input(component, edges, *port, is_direct))
            .collect();
        let mut by_name: Vec<_> = (0..inputs.len()).collect();
        by_name.sort_by_key(|index| &component.inputs[component.trigger_inputs[*index]].name);
        let is_ageless = |input: &TriggerInput| {
            let port = &component.inputs[usize::from(input.port)];
            port.edges.len() == 1 && edges[port.edges[0]].policy.lifespan_ms == 0
        };
        let timers = component.spec.event_sources.iter();
        let timers = timers.filter(|source| source.source_type == SourceType::Timer);
        Self {
            policy,
            is_direct,
            may_skip_pending: policy == Policy::All
                && is_plain
                && !spec.coalesce
                && !inputs.is_empty()
                && inputs.iter().all(is_ageless),
            n_pending: 0,
            not_before_ns: 0,
            min_interval_ns: spec.min_interval_ms.saturating_mul(NS_PER_MS),
            max_latency_ns: spec.max_latency_ms.saturating_mul(NS_PER_MS),
            lateness_ns: is_watermark
                .then_some(spec.watermark_lateness_ms.saturating_mul(NS_PER_MS)),
            watermarks: [0; ClockDomain::ALL.len()],
            seen_ns: 0,
            inputs,
            by_name,
            timers: timers.map(Timer::new).collect(),
            counters: TriggerCounters::default(),
        }
    }
}

/// Whether an input with these edges keeps only its newest message. If the edges keep only the
/// newest one, an input that waits for the others does so, too: `all_inputs` takes the newest
/// message of each, and so does its other name, `condition: all_inputs_ready`.
fn newest_only<'e>(spec: &TriggerSpec, mut edges: impl Iterator<Item = &'e PlanEdge>) -> bool {
    let is_slot = |edge: &PlanEdge| edge.policy.mode.is_slot();
    let waits_for_all = spec.trigger_type == TriggerType::AllInputs
        || spec.trigger_type == TriggerType::Condition
            && spec.condition == Condition::AllInputsReady;
    spec.coalesce
        || spec.trigger_type == TriggerType::Debounce
        || waits_for_all && edges.all(is_slot)
}

fn trigger_input(
    component: &PlanComponent,
    edges: &[PlanEdge],
    port: usize,
    is_direct: bool,
) -> TriggerInput {
    let start: usize = component.inputs[..port].iter().map(|input| input.edges.len()).sum();
    let input = &component.inputs[port];
    let spec = &component.spec.trigger;
    let n_places = input.edges.iter().map(|edge| u64::from(edges[*edge].policy.capacity)).sum();
    let newest_only = newest_only(spec, input.edges.iter().map(|edge| &edges[*edge]));
    let pending = if is_direct {
        Pending::unused()
    } else {
        Pending::new(pending::bound(n_places, spec.batch_size, newest_only))
    };
    TriggerInput {
        port: u16::try_from(port).expect("the compiler allows fewer inputs"),
        kind: kind_of(component, &input.name),
        channels: start..start + input.edges.len(),
        newest_only,
        pending,
    }
}

/// The kind of a message at an input: as the type of the trigger says, otherwise that of the first
/// source that names the input.
fn kind_of(component: &PlanComponent, port: &str) -> EventKind {
    let mut sources = component.spec.event_sources.iter().filter(|it| is_like_a_message(it));
    let named = sources.find(|source| source.inputs.iter().any(|input| input == port));
    let by_source = named.map(|source| source.source_type);
    match component.spec.trigger.trigger_type {
        TriggerType::Request => EventKind::Request,
        TriggerType::TaskReady if by_source == Some(EventKind::FutureReady) => {
            EventKind::FutureReady
        }
        TriggerType::TaskReady => EventKind::TaskReady,
        _ => by_source.unwrap_or(EventKind::Message),
    }
}
