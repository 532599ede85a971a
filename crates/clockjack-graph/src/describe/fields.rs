//! The one table of the file format: every section, its fields, what each may be and what it means.
//!
//! The loader knows fields only from here, and the JSON Schema is written from here, so neither can
//! have a field that the other has not.

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
    /// What it is called in the JSON Schema.
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
}

impl Section {
    pub(super) fn find(&self, name: &str) -> Option<(usize, &'static Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.name == name)
    }
}

/// A field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// Its name in [`Marks`](super::spec::Marks): with what it is below.
    pub(super) mark: &'static str,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
    /// JSON text of what it is if it is not there; empty if that is nothing.
    pub(super) default: &'static str,
    pub(super) about: &'static str,
}

/// What a field may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The version of the schema: 1.
    Version,
    /// An identifier.
    Id,
    /// An identifier in which any character may stand.
    Label,
    /// Any text.
    Text,
    /// One of these names, or a fault with this code.
    Name(&'static [&'static str], Code),
    /// `true` or `false`.
    Bool,
    /// A whole number from `min` to `max`.
    Whole { min: i64, max: i64 },
    /// A number that is not negative.
    Number,
    /// A list of identifiers, none twice, `min` at least.
    Ids { min: usize },
    /// A list of whole numbers that are not negative.
    Wholes,
    /// `component.port`.
    Endpoint,
    /// A free map.
    Config,
    /// A map of names to scalars.
    Arguments,
    /// A section.
    Map(&'static Section),
    /// Identifiers, each with a section; one at least.
    MapOf(&'static Section, Count),
    /// A list of sections, `min` at least.
    ListOf { of: &'static Section, min: usize, max: Count },
    /// One of these names, or a section that begins with one.
    NameOr(&'static [&'static str], Code, &'static Section),
}

/// Which limit a list has.
pub(super) type Count = fn(&Limits) -> usize;

const NO_LIMIT: Count = |limits| limits.text_bytes;

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
            $about:literal;
        )+
    ) => {
        $(#[$meta])*
        pub(super) static $section: Section = Section {
            name: $name,
            fields: &[$( Field {
                name: $field,
                mark: concat!($prefix, $field),
                kind: $kind,
                is_required: false $(|| section!(@$required))?,
                default: concat!("" $(, $default)?),
                about: $about,
            }, )+],
        };
    };
    (@required) => { true };
}

const MILLIS: Kind = Kind::Whole { min: 0, max: i64::MAX };
const COUNT: Kind = Kind::Whole { min: 0, max: u32::MAX as i64 };
const SIGNED: Kind = Kind::Whole { min: i64::MIN, max: i64::MAX };

macro_rules! one_of {
    ($enum:ty) => {
        Kind::Name(names!($enum), Code::InvalidValue)
    };
}

section! {
    /// The file.
    ROOT "root", below "";
    "schema_version": Kind::Version, required; "The version of this format.";
    "graph": Kind::Map(&GRAPH), required; "What the graph is.";
    "lanes": Kind::MapOf(&LANE, |limits| limits.lanes), required;
        "How components are called, by id.";
    "components": COMPONENTS, required; "What computes.";
    "edges": EDGES, required; "What flows from where to where.";
    "composite_loops": LOOPS; "Owners of cycles of immediate edges.";
    "subgraphs": Kind::ListOf { of: &SUBGRAPH, min: 0, max: |limits| limits.groups };
        "Parts with a namespace of their own.";
    "templates": Kind::ListOf { of: &TEMPLATE, min: 0, max: |limits| limits.groups };
        "Parts with parameters, written as {{name}} in scalars.";
    "template_instances": Kind::ListOf { of: &INSTANCE, min: 0, max: |limits| limits.groups };
        "Templates with values for their parameters.";
}

const COMPONENTS: Kind = Kind::ListOf { of: &COMPONENT, min: 0, max: |limits| limits.components };
const SOME_COMPONENTS: Kind =
    Kind::ListOf { of: &COMPONENT, min: 1, max: |limits| limits.components };
const EDGES: Kind = Kind::ListOf { of: &EDGE, min: 0, max: |limits| limits.edges };
const LOOPS: Kind = Kind::ListOf { of: &LOOP, min: 0, max: |limits| limits.loops };

section! {
    /// `graph`.
    GRAPH "graph", below "graph.";
    "name": Kind::Label, required; "The name of the graph.";
    "kind": one_of!(GraphKind), = "\"runnable\""; "What it is for.";
    "config": Kind::Config; "Its settings.";
    "clock": Kind::Map(&CLOCK); "Which clocks timestamps are of.";
}

section! {
    /// `graph.clock`.
    CLOCK "clock", below "graph.clock.";
    "runtime_domain": Kind::Name(&["steady"], Code::InvalidValue), = "\"steady\"";
        "The clock of the runtime.";
    "event_domain": one_of!(Domain), = "\"steady\""; "The clock of the timestamps of events.";
}

section! {
    /// `lanes.<id>`.
    LANE "lane", below "";
    "type": Kind::Name(names!(LaneType), Code::UnsupportedLaneType), required;
        "How its components are called.";
    "hz": Kind::Number, = "0"; "Ticks a second, if period_ms is 0.";
    "period_ms": MILLIS, = "0"; "Milliseconds between ticks.";
    "tick_budget_ms": MILLIS, = "0"; "How long a tick may take; 0: the period.";
    "wall_clock_enabled": Kind::Bool, = "false"; "Ticks by the system's clock.";
    "overrun_policy": one_of!(OverrunPolicy), = "\"drop_tick\"";
        "After a tick that took too long.";
    "max_threads": COUNT, = "0"; "Invocations at once; 0: one.";
    "queue_capacity": COUNT, = "0"; "Ready invocations beyond the active ones.";
    "overflow": one_of!(LaneOverflow), = "\"reject\""; "What becomes of more.";
    "aging_picks": COUNT, = "64"; "After so many picks of others one goes first; 0: never.";
    "max_callback_ms": MILLIS, = "0"; "A longer call is reported; 0: none is.";
    "thread_name": Kind::Text; "Name of the lane's threads.";
    "priority": SIGNED, = "0"; "Advisory.";
    "cpu_affinity": Kind::Wholes, = "[]"; "Processors of the lane's own thread.";
    "nice_priority": SIGNED, = "0"; "Niceness of the lane's own thread.";
    "rt_policy": Kind::Name(&["none", "fifo", "rr"], Code::InvalidValue), = "\"none\"";
        "Scheduling class of the lane's own thread.";
    "rt_priority": SIGNED, = "0"; "Priority in that class.";
    "isolation_intent": Kind::Text, = "\"none\""; "Advisory.";
    "on_policy_error": one_of!(OnPolicyError), = "\"warn\"";
        "If the operating system refuses any of these.";
}

section! {
    /// `components[]`.
    COMPONENT "component", below "";
    "id": Kind::Id, required; "Its id.";
    "type": Kind::Label, required; "The key of its type in the registry.";
    "event_sources": Kind::ListOf { of: &EVENT_SOURCE, min: 1, max: NO_LIMIT },
        = "[{\"type\":\"manual\"}]"; "What can make it ready.";
    "trigger_policy": Kind::Map(&TRIGGER), = "{\"type\":\"manual\"}";
        "When that makes an invocation.";
    "execution": Kind::Map(&EXECUTION), required; "How it is called.";
    "depends_on": Kind::Ids { min: 0 }, = "[]"; "Components that are started before it.";
    "boundary": Kind::Map(&BOUNDARY), = "{\"role\":\"processing\"}";
        "Whether it stands at the border of the graph.";
    "config": Kind::Config; "Its settings.";
}

section! {
    /// `components[].event_sources[]`.
    EVENT_SOURCE "event_source", below "";
    "id": Kind::Id; "Its id.";
    "type": Kind::Name(names!(SourceType), Code::InvalidEventSource), = "\"manual\"";
        "What it is.";
    "inputs": Kind::Ids { min: 0 }, = "[]"; "The inputs that it looks at.";
    "input": Kind::Id; "One of them.";
    "period_ms": MILLIS, = "0"; "Of a timer: milliseconds between ticks.";
    "phase_ms": MILLIS, = "0"; "Of a timer: milliseconds before the first tick.";
}

section! {
    /// `components[].trigger_policy`.
    TRIGGER "trigger_policy", below "trigger_policy.";
    "type": one_of!(TriggerType), = "\"manual\""; "Which policy.";
    "inputs": Kind::Ids { min: 0 }, = "[]";
        "The inputs that it looks at; none: those of the event sources.";
    "input": Kind::Id; "One of them.";
    "batch_size": COUNT, = "0"; "Messages in a batch.";
    "batch_window_ms": MILLIS, = "0"; "Age of the oldest message that makes a batch.";
    "sync_slop_ms": MILLIS, = "0"; "How far timestamps may be apart.";
    "min_interval_ms": MILLIS, = "0"; "The least time between invocations.";
    "max_latency_ms": MILLIS, = "0"; "Older messages are dropped.";
    "watermark_lateness_ms": MILLIS, = "0"; "How far behind the newest a message may be.";
    "debounce_window_ms": MILLIS, = "0"; "Must be 0.";
    "condition": one_of!(Condition), = "\"all_inputs_ready\""; "Of the condition trigger.";
    "coalesce": Kind::Bool, = "false"; "The newest message of each input instead of all.";
}

section! {
    /// `components[].execution`.
    EXECUTION "execution", below "execution.";
    "lane": Kind::Id, required; "Its lane.";
    "reentrant": Kind::Bool, = "false"; "Invocations of it may overlap.";
    "priority": one_of!(Priority), = "\"normal\""; "Who goes first.";
    "budget_ms": MILLIS, = "0"; "A longer call is reported; 0: none is.";
    "on_error": Kind::NameOr(names!(ErrorPolicy), Code::UnsupportedErrorPolicy, &ON_ERROR),
        = "\"fail_fast\""; "What a failure does.";
    "burst": COUNT, = "0"; "Messages that a call publishes on a blocking edge at most; 0: one.";
}

section! {
    /// `components[].execution.on_error`.
    ON_ERROR "on_error", below "execution.on_error.";
    "policy": Kind::Name(names!(ErrorPolicy), Code::UnsupportedErrorPolicy), required;
        "What a failure does.";
    "max_restarts": COUNT, = "10"; "Restarts in the window.";
    "within_ms": MILLIS, = "0"; "The window; 0: the whole run.";
    "backoff_ms": MILLIS, = "0"; "Before the first restart; it doubles with each.";
    "backoff_max_ms": MILLIS, = "60000"; "The longest.";
}

section! {
    /// `components[].boundary`.
    BOUNDARY "boundary", below "boundary.";
    "role": one_of!(BoundaryRole), = "\"processing\""; "Its role.";
    "descriptor": Kind::Text, = "\"\""; "Free text.";
}

section! {
    /// `edges[]`.
    EDGE "edge", below "";
    "id": Kind::Id, required; "Its id.";
    "kind": one_of!(EdgeKind), required; "When what is published becomes visible.";
    "from": Kind::Endpoint, required; "The output: component.port.";
    "to": Kind::Endpoint, required; "The input: component.port.";
    "policy": Kind::Map(&POLICY), = "{}"; "What its channel keeps.";
}

section! {
    /// `edges[].policy`.
    POLICY "policy", below "policy.";
    "mode": one_of!(Mode), = "\"latest\""; "What it keeps.";
    "capacity": Kind::Whole { min: 1, max: u32::MAX as i64 }, = "1"; "How many.";
    "overflow": one_of!(Overflow), = "\"overwrite\""; "What if it is full.";
    "lifespan_ms": MILLIS, = "0"; "Older messages are dropped; 0: none is.";
    "deadline_ms": MILLIS, = "0"; "Older messages are flagged; 0: none is.";
    "max_inflight": COUNT, = "0"; "Of an async edge: messages under way; 0: any number.";
    "preserve_order": Kind::Bool, = "true"; "Whether the order of messages counts.";
    "allow_drop": Kind::Bool, = "true"; "Whether messages may be dropped.";
    "emit_health_events": Kind::Bool, = "true"; "Whether health events are made.";
    "timestamp_domain": one_of!(Domain), = "\"steady\""; "The clock of the timestamps.";
    "copy_policy": one_of!(CopyPolicy), = "\"copy\""; "How a payload gets to several readers.";
    "owner": one_of!(Owner), = "\"runtime\""; "Who owns a payload.";
    "readers": one_of!(Readers), = "\"single\""; "How many read it.";
}

section! {
    /// `composite_loops[]`.
    LOOP "composite_loop", below "";
    "id": Kind::Id, required; "Its id.";
    "components": Kind::Ids { min: 1 }, required; "Its members: exactly those of one cycle.";
    "order": Kind::Ids { min: 0 }, = "[]"; "The order of its members; none: one that is found.";
    "loop_policy": Kind::Map(&LOOP_POLICY), required; "How it runs.";
}

section! {
    /// `composite_loops[].loop_policy`.
    LOOP_POLICY "loop_policy", below "loop_policy.";
    "type": one_of!(LoopType), required;
        "`fixed_point`: until nothing changes; `transaction`: all or nothing; \
         `solver_iteration`: until the residual is small; `coalesced_event`: one call for all \
         that has come; `async_task`: an iteration an epoch.";
    "max_iterations": COUNT, = "0"; "Iterations in an epoch, or of an `async_task`; 0: one.";
    "budget_ms": MILLIS, = "0"; "Time in an epoch; 0: any.";
    "convergence": one_of!(Convergence); "When it has converged.";
    "residual_threshold": Kind::Number; "It has converged when the residual is not greater.";
    "partial_success": one_of!(PartialSuccess); "What if it has not.";
    "mode": one_of!(LoopMode), = "\"gauss_seidel\""; "What a member sees of the others.";
    "max_inflight": COUNT, = "0"; "Reserved.";
    "drop_policy": Kind::Text; "Reserved.";
    "min_interval_ms": MILLIS, = "0"; "Reserved.";
}

section! {
    /// `subgraphs[]`.
    SUBGRAPH "subgraph", below "";
    "id": Kind::Id, required; "Its namespace.";
    "components": SOME_COMPONENTS, required; "What computes.";
    "edges": EDGES, required; "What flows inside.";
    "composite_loops": LOOPS; "Owners of cycles.";
}

section! {
    /// `templates[]`.
    TEMPLATE "template", below "";
    "id": Kind::Id, required; "Its name.";
    "parameters": Kind::Ids { min: 0 }, = "[]"; "Names of its parameters.";
    "components": SOME_COMPONENTS, required; "What computes.";
    "edges": EDGES, required; "What flows inside.";
    "composite_loops": LOOPS; "Owners of cycles.";
}

section! {
    /// `template_instances[]`.
    INSTANCE "template_instance", below "";
    "id": Kind::Id, required; "Its namespace.";
    "template": Kind::Id, required; "The template.";
    "parameters": Kind::Arguments, = "{}"; "A value for each parameter.";
}
