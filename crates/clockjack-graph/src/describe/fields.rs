//! The table of the file format: every section with its fields, their types and their descriptions.
//!
//! Both the loader and the JSON Schema use this table, so they cannot disagree about the fields.

use super::{
    limits::Limits,
    spec::{
        BoundaryRole, Condition, Convergence, CopyPolicy, Domain, EdgeKind, ErrorPolicy, GraphKind,
        LaneOverflow, LaneType, LoopMode, LoopType, Mode, OnPolicyError, Overflow, OverrunPolicy,
        Owner, PartialSuccess, Priority, Readers, SourceType, TriggerType,
    },
};
use crate::diagnostic::Code;

/// A map with known fields.
#[derive(Debug)]
pub(super) struct Section {
    /// Its name in the JSON Schema.
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
}

impl Section {
    pub(super) fn find(&self, name: &str) -> Option<(usize, &'static Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.name == name)
    }
}

/// A field of a section.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// Its key in [`FieldSpans`](super::spec::FieldSpans), including the path below the item.
    pub(super) span_key: &'static str,
    pub(super) kind: FieldKind,
    pub(super) is_required: bool,
    /// The default value as JSON text; empty if there is none.
    pub(super) default: &'static str,
    pub(super) description: &'static str,
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldKind {
    /// The version of the schema: 1.
    Version,
    /// An identifier.
    Id,
    /// A name that may contain any character.
    Label,
    /// Any text.
    Text,
    /// One of these names; otherwise an error with this code.
    Name(&'static [&'static str], Code),
    /// `true` or `false`.
    Bool,
    /// A whole number from `min` to `max`.
    Whole { min: i64, max: i64 },
    /// A number that is not negative.
    Number,
    /// A list of at least `min` distinct identifiers.
    Ids { min: usize },
    /// A list of whole numbers that are not negative.
    Wholes,
    /// `component.port`.
    Endpoint,
    /// A map with arbitrary keys.
    Config,
    /// A map from names to scalars.
    Arguments,
    /// A section.
    Map(&'static Section),
    /// A map from identifiers to sections, with at least one entry.
    MapOf(&'static Section, LimitFn),
    /// A list of at least `min` sections.
    ListOf { of: &'static Section, min: usize, max: LimitFn },
    /// One of these names, or a section that contains the name.
    NameOr(&'static [&'static str], Code, &'static Section),
}

/// Selects the limit of a list.
pub(super) type LimitFn = fn(&Limits) -> usize;

const NO_LIMIT: LimitFn = |limits| limits.text_bytes;

/// The names of an enum, in order.
macro_rules! names {
    ($enum:ty) => {{
        const NAMES: [&str; <$enum>::ALL.len()] = {
            let mut names = [""; <$enum>::ALL.len()];
            let mut at = 0;
            while at < names.len() {
                names[at] = <$enum>::ALL[at].name();
                at += 1;
            }
            names
        };
        &NAMES
    }};
}

macro_rules! section {
    (
        $(#[$meta:meta])*
        $section:ident $name:literal, below $prefix:literal;
        $(
            $field:literal: $kind:expr $(, = $default:literal)? $(, $required:ident)?;
            $description:literal;
        )+
    ) => {
        $(#[$meta])*
        pub(super) static $section: Section = Section {
            name: $name,
            fields: &[$( Field {
                name: $field,
                span_key: concat!($prefix, $field),
                kind: $kind,
                is_required: false $(|| section!(@$required))?,
                default: concat!("" $(, $default)?),
                description: $description,
            }, )+],
        };
    };
    (@required) => { true };
}

const MILLIS: FieldKind = FieldKind::Whole { min: 0, max: i64::MAX };
const COUNT: FieldKind = FieldKind::Whole { min: 0, max: u32::MAX as i64 };
const SIGNED: FieldKind = FieldKind::Whole { min: i64::MIN, max: i64::MAX };

macro_rules! one_of {
    ($enum:ty) => {
        FieldKind::Name(names!($enum), Code::InvalidValue)
    };
}

section! {
    /// The file.
    ROOT "root", below "";
    "schema_version": FieldKind::Version, required; "The version of this format.";
    "graph": FieldKind::Map(&GRAPH), required; "General properties of the graph.";
    "lanes": FieldKind::MapOf(&LANE, |limits| limits.lanes), required;
        "The lanes by id. A lane defines how its components are executed.";
    "components": COMPONENTS, required; "The components.";
    "edges": EDGES, required; "The edges between components.";
    "composite_loops": LOOPS; "Loops that own cycles of immediate edges.";
    "subgraphs": FieldKind::ListOf { of: &SUBGRAPH, min: 0, max: |limits| limits.groups };
        "Groups of components with their own namespace.";
    "templates": FieldKind::ListOf { of: &TEMPLATE, min: 0, max: |limits| limits.groups };
        "Groups with parameters, written as {{name}} in scalars.";
    "template_instances": FieldKind::ListOf { of: &INSTANCE, min: 0, max: |limits| limits.groups };
        "Instances of templates, with values for the parameters.";
}

const COMPONENTS: FieldKind =
    FieldKind::ListOf { of: &COMPONENT, min: 0, max: |limits| limits.components };
const SOME_COMPONENTS: FieldKind =
    FieldKind::ListOf { of: &COMPONENT, min: 1, max: |limits| limits.components };
const EDGES: FieldKind = FieldKind::ListOf { of: &EDGE, min: 0, max: |limits| limits.edges };
const LOOPS: FieldKind = FieldKind::ListOf { of: &LOOP, min: 0, max: |limits| limits.loops };

section! {
    /// `graph`.
    GRAPH "graph", below "graph.";
    "name": FieldKind::Label, required; "The name of the graph.";
    "kind": one_of!(GraphKind), = "\"runnable\"";
        "Whether the graph runs by itself or is part of a test.";
    "config": FieldKind::Config; "The settings of the graph.";
    "clock": FieldKind::Map(&CLOCK); "The clock domains of timestamps.";
}

section! {
    /// `graph.clock`.
    CLOCK "clock", below "graph.clock.";
    "runtime_domain": FieldKind::Name(&["steady"], Code::InvalidValue), = "\"steady\"";
        "The clock domain of the runtime.";
    "event_domain": one_of!(Domain), = "\"steady\""; "The clock domain of event timestamps.";
}

section! {
    /// `lanes.<id>`.
    LANE "lane", below "";
    "type": FieldKind::Name(names!(LaneType), Code::UnsupportedLaneType), required;
        "How the lane executes its components.";
    "hz": FieldKind::Number, = "0"; "Ticks per second, if period_ms is 0.";
    "period_ms": MILLIS, = "0"; "Milliseconds between ticks.";
    "tick_budget_ms": MILLIS, = "0"; "Time budget per tick; 0 means the period.";
    "wall_clock_enabled": FieldKind::Bool, = "false";
        "Use wall-clock ticks instead of simulated ones.";
    "overrun_policy": one_of!(OverrunPolicy), = "\"drop_tick\"";
        "What happens after a tick that took too long.";
    "max_threads": COUNT, = "0"; "Maximum number of concurrent invocations; 0 means one.";
    "queue_capacity": COUNT, = "0"; "Ready invocations that may wait.";
    "overflow": one_of!(LaneOverflow), = "\"reject\""; "What happens when the queue is full.";
    "aging_picks": COUNT, = "64"; "Picks of others before a region goes first; 0 means never.";
    "max_callback_ms": MILLIS, = "0"; "Longer invocations are reported; 0 means none.";
    "thread_name": FieldKind::Text; "The name of the lane's threads.";
    "priority": SIGNED, = "0"; "Advisory; it has no effect.";
    "cpu_affinity": FieldKind::Wholes, = "[]"; "CPUs that the lane's thread may use.";
    "nice_priority": SIGNED, = "0"; "The niceness of the lane's thread.";
    "rt_policy": FieldKind::Name(&["none", "fifo", "rr"], Code::InvalidValue), = "\"none\"";
        "The scheduling class of the lane's dedicated thread.";
    "rt_priority": SIGNED, = "0"; "The priority in the class of rt_policy.";
    "isolation_intent": FieldKind::Text, = "\"none\""; "Advisory; it has no effect.";
    "on_policy_error": one_of!(OnPolicyError), = "\"warn\"";
        "What happens if the operating system refuses a thread setting.";
}

section! {
    /// `components[]`.
    COMPONENT "component", below "";
    "id": FieldKind::Id, required; "The id of the component.";
    "type": FieldKind::Label, required; "The name of its type in the registry.";
    "event_sources": FieldKind::ListOf { of: &EVENT_SOURCE, min: 1, max: NO_LIMIT },
        = "[{\"type\":\"manual\"}]"; "The events that can make it ready.";
    "trigger_policy": FieldKind::Map(&TRIGGER), = "{\"type\":\"manual\"}";
        "When its events cause an invocation.";
    "execution": FieldKind::Map(&EXECUTION), required; "How it is executed.";
    "depends_on": FieldKind::Ids { min: 0 }, = "[]"; "Components that start before it.";
    "boundary": FieldKind::Map(&BOUNDARY), = "{\"role\":\"processing\"}";
        "Whether it is an input or output boundary of the graph.";
    "config": FieldKind::Config; "The settings of the component.";
}

section! {
    /// `components[].event_sources[]`.
    EVENT_SOURCE "event_source", below "";
    "id": FieldKind::Id; "The id of the event source.";
    "type": FieldKind::Name(names!(SourceType), Code::InvalidEventSource), = "\"manual\"";
        "The type of event.";
    "inputs": FieldKind::Ids { min: 0 }, = "[]"; "The inputs that it watches.";
    "input": FieldKind::Id; "Shorthand for one input.";
    "period_ms": MILLIS, = "0"; "Timer only: milliseconds between ticks.";
    "phase_ms": MILLIS, = "0"; "Timer only: milliseconds before the first tick.";
}

section! {
    /// `components[].trigger_policy`.
    TRIGGER "trigger_policy", below "trigger_policy.";
    "type": one_of!(TriggerType), = "\"manual\""; "The type of trigger.";
    "inputs": FieldKind::Ids { min: 0 }, = "[]";
        "The inputs that it waits for; by default those of the event sources.";
    "input": FieldKind::Id; "Shorthand for one input.";
    "batch_size": COUNT, = "0"; "Messages per batch.";
    "batch_window_ms": MILLIS, = "0"; "A batch ends when its oldest message is this old.";
    "sync_slop_ms": MILLIS, = "0"; "How far apart timestamps may be.";
    "min_interval_ms": MILLIS, = "0"; "The minimum time between invocations.";
    "max_latency_ms": MILLIS, = "0"; "Older messages are dropped.";
    "watermark_lateness_ms": MILLIS, = "0"; "How far a message may lag behind the newest.";
    "debounce_window_ms": MILLIS, = "0"; "Must be 0.";
    "condition": one_of!(Condition), = "\"all_inputs_ready\"";
        "Condition trigger only: the condition.";
    "coalesce": FieldKind::Bool, = "false"; "Use only the newest message of each input.";
}

section! {
    /// `components[].execution`.
    EXECUTION "execution", below "execution.";
    "lane": FieldKind::Id, required; "The lane that executes it.";
    "reentrant": FieldKind::Bool, = "false"; "Whether its invocations may overlap.";
    "priority": one_of!(Priority), = "\"normal\""; "Which ready component goes first.";
    "budget_ms": MILLIS, = "0"; "Longer invocations are reported; 0 means none.";
    "on_error": FieldKind::NameOr(names!(ErrorPolicy), Code::UnsupportedErrorPolicy, &ON_ERROR),
        = "\"fail_fast\""; "What a failure does.";
    "burst": COUNT, = "0"; "Most messages per invocation on a blocking edge; 0 means one.";
}

section! {
    /// `components[].execution.on_error`.
    ON_ERROR "on_error", below "execution.on_error.";
    "policy": FieldKind::Name(names!(ErrorPolicy), Code::UnsupportedErrorPolicy), required;
        "What a failure does.";
    "max_restarts": COUNT, = "10"; "Maximum number of restarts within within_ms.";
    "within_ms": MILLIS, = "0"; "The window of max_restarts; 0 means the whole run.";
    "backoff_ms": MILLIS, = "0"; "Delay before the first restart; it doubles each time.";
    "backoff_max_ms": MILLIS, = "60000"; "The maximum delay before a restart.";
}

section! {
    /// `components[].boundary`.
    BOUNDARY "boundary", below "boundary.";
    "role": one_of!(BoundaryRole), = "\"processing\""; "The role of the component.";
    "descriptor": FieldKind::Text, = "\"\""; "Free text.";
}

section! {
    /// `edges[]`.
    EDGE "edge", below "";
    "id": FieldKind::Id, required; "The id of the edge.";
    "kind": one_of!(EdgeKind), required; "When published values become visible.";
    "from": FieldKind::Endpoint, required; "The output: component.port.";
    "to": FieldKind::Endpoint, required; "The input: component.port.";
    "policy": FieldKind::Map(&POLICY), = "{}"; "The policy of its channel.";
}

section! {
    /// `edges[].policy`.
    POLICY "policy", below "policy.";
    "mode": one_of!(Mode), = "\"latest\""; "Which messages the channel keeps.";
    "capacity": FieldKind::Whole { min: 1, max: u32::MAX as i64 }, = "1";
        "How many messages it keeps.";
    "overflow": one_of!(Overflow), = "\"overwrite\""; "What a full channel does.";
    "lifespan_ms": MILLIS, = "0"; "Older messages are dropped; 0 means none.";
    "deadline_ms": MILLIS, = "0"; "Older messages are flagged; 0 means none.";
    "max_inflight": COUNT, = "0"; "Async only: messages in flight; 0 means any number.";
    "preserve_order": FieldKind::Bool, = "true"; "Whether the order of messages matters.";
    "allow_drop": FieldKind::Bool, = "true"; "Whether messages may be dropped.";
    "emit_health_events": FieldKind::Bool, = "true"; "Whether the channel emits health events.";
    "timestamp_domain": one_of!(Domain), = "\"steady\""; "The clock domain of timestamps.";
    "copy_policy": one_of!(CopyPolicy), = "\"copy\""; "How a payload reaches its readers.";
    "owner": one_of!(Owner), = "\"runtime\""; "Who owns a payload.";
    "readers": one_of!(Readers), = "\"single\""; "Whether there are several readers.";
}

section! {
    /// `composite_loops[]`.
    LOOP "composite_loop", below "";
    "id": FieldKind::Id, required; "The id of the loop.";
    "components": FieldKind::Ids { min: 1 }, required; "Its members: exactly those of one cycle.";
    "order": FieldKind::Ids { min: 0 }, = "[]"; "The order of its members; computed by default.";
    "loop_policy": FieldKind::Map(&LOOP_POLICY), required; "How the loop iterates.";
}

section! {
    /// `composite_loops[].loop_policy`.
    LOOP_POLICY "loop_policy", below "loop_policy.";
    "type": one_of!(LoopType), required;
        "`fixed_point`: iterate until nothing changes; `transaction`: all or nothing; \
         `solver_iteration`: iterate until the residual is small; `coalesced_event`: one \
         invocation for all pending messages; `async_task`: one iteration per epoch.";
    "max_iterations": COUNT, = "0"; "Maximum number of iterations; 0 means one.";
    "budget_ms": MILLIS, = "0"; "Time budget per epoch; 0 means no limit.";
    "convergence": one_of!(Convergence); "The convergence criterion.";
    "residual_threshold": FieldKind::Number;
        "The loop has converged when the residual is at most this.";
    "partial_success": one_of!(PartialSuccess); "What happens to the outputs without convergence.";
    "mode": one_of!(LoopMode), = "\"gauss_seidel\""; "Which values a member sees of the others.";
    "max_inflight": COUNT, = "0"; "Reserved.";
    "drop_policy": FieldKind::Text; "Reserved.";
    "min_interval_ms": MILLIS, = "0"; "Reserved.";
}

section! {
    /// `subgraphs[]`.
    SUBGRAPH "subgraph", below "";
    "id": FieldKind::Id, required; "The id, which is also the namespace.";
    "components": SOME_COMPONENTS, required; "The components.";
    "edges": EDGES, required; "The edges inside the group.";
    "composite_loops": LOOPS; "Loops that own cycles of immediate edges.";
}

section! {
    /// `templates[]`.
    TEMPLATE "template", below "";
    "id": FieldKind::Id, required; "The name of the template.";
    "parameters": FieldKind::Ids { min: 0 }, = "[]"; "The names of its parameters.";
    "components": SOME_COMPONENTS, required; "The components.";
    "edges": EDGES, required; "The edges inside the group.";
    "composite_loops": LOOPS; "Loops that own cycles of immediate edges.";
}

section! {
    /// `template_instances[]`.
    INSTANCE "template_instance", below "";
    "id": FieldKind::Id, required; "The id, which is also the namespace.";
    "template": FieldKind::Id, required; "The name of the template.";
    "parameters": FieldKind::Arguments, = "{}"; "One value per parameter.";
}
