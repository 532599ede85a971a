//! The table of the file format: every section with its fields, their types and their descriptions.
//!
//! The table also says where the value of a field is stored. Both the loader and the JSON Schema
//! use it, so they cannot disagree about the fields.

use super::{
    decode::{
        EdgeDraft, LoopDraft, RootDraft, add_input, chain, component, composite_loop,
        decode_each as each, edge, event_sources, expand::InstanceDraft, items, lanes, on_error,
        read, set_inputs, trigger, version,
    },
    limits::FileLimits,
    reader::{Reader, key_text},
    spec::{
        BoundaryRole, BoundarySpec, ChainSpec, ClockDomain, ComponentPriority, ComponentSpec,
        Condition, Convergence, CopyPolicy, EdgeKind, EdgeMode, EdgeOverflow, EdgePolicy,
        ErrorPolicy, ErrorPolicySpec, EventSourceSpec, ExecutionSpec, GraphKind, GraphSpec,
        LaneOverflow, LaneSpec, LaneType, LoopMode, LoopType, OnPolicyError, OverrunPolicy,
        PartialSuccess, SourceType, TriggerSpec, TriggerType,
    },
    tree::YamlNode,
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

/// Fields that sections had, and what replaces them.
const REMOVED: &[(&str, &str, &str)] = &[
    (
        "policy",
        "owner",
        "the field was removed, because it had no effect: the last reader frees a payload; delete \
         the field",
    ),
    (
        "policy",
        "readers",
        "the field was removed, because it had no effect: an edge has one reader, and each further \
         reader has an edge of its own; delete the field",
    ),
];

/// What a file with a removed field should do.
pub(super) fn removed(section: &Section, field: &str) -> Option<&'static str> {
    let is_it = |one: &&(&str, &str, &str)| (one.0, one.1) == (section.name, field);
    REMOVED.iter().find(is_it).map(|(_, _, help)| *help)
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
    /// An identifier with the namespace of its group.
    QualifiedId,
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
    /// A list of at least `min` distinct identifiers with the namespace of their group.
    QualifiedIds { min: usize },
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
pub(super) type LimitFn = fn(&FileLimits) -> usize;

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

/// Declares a section: its table of fields, and the function that stores the value of a field. The
/// target of a field is a member of the description, whose type says how the value is read (see
/// [`FromYaml`](super::decode::FromYaml)), or a block.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $section:ident $name:literal, below $prefix:literal;
        fn $set:ident($one:ident: $type:ty, $reader:ident, $field:ident, $value:ident);
        $(
            $key:literal: $kind:expr $(, = $default:literal)? $(, $required:ident)?;
            $description:literal => $target:tt;
        )+
    ) => {
        $(#[$meta])*
        pub(super) static $section: Section = Section {
            name: $name,
            fields: &[$( Field {
                name: $key,
                span_key: concat!($prefix, $key),
                kind: $kind,
                is_required: false $(|| section!(@$required))?,
                default: concat!("" $(, $default)?),
                description: $description,
            }, )+],
        };

        /// Stores the value of a field of the section.
        pub(super) fn $set<'t>(
            $one: &mut $type,
            $reader: &mut Reader<'t>,
            $field: &'static Field,
            $value: &'t YamlNode<'t>,
        ) {
            match $field.name {
                $( $key => section!(@set $target, $one, $reader, $field, $value), )+
                name => unreachable!("`{name}` is not a field of this section"),
            }
        }
    };
    (@required) => { true };
    (@set { $($block:tt)* }, $one:ident, $reader:ident, $field:ident, $value:ident) => {{
        $($block)*
    }};
    (@set ($($member:ident).+), $one:ident, $reader:ident, $field:ident, $value:ident) => {
        read(&mut $one.$($member).+, $reader, $field, $value)
    };
    (@set $member:ident, $one:ident, $reader:ident, $field:ident, $value:ident) => {
        read(&mut $one.$member, $reader, $field, $value)
    };
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
    fn set_root(one: RootDraft<'t>, reader, field, value);
    "schema_version": FieldKind::Version, required;
        "The version of this format." => { version(reader, value); };
    "graph": FieldKind::Map(&GRAPH), required;
        "General properties of the graph."
            => { reader.section(&GRAPH, value, &mut one.graph, set_graph); };
    "lanes": FieldKind::MapOf(&LANE, |limits| limits.lanes), required;
        "The lanes by id. A lane defines how its components are executed."
            => { lanes(reader, field, value, &mut one.graph); };
    "components": COMPONENTS, required;
        "The components." => { each(reader, field, value, &mut one.graph.components, component); };
    "edges": EDGES, required;
        "The edges between components."
            => { each(reader, field, value, &mut one.graph.edges, edge); };
    "composite_loops": LOOPS;
        "Loops that own cycles of immediate edges."
            => { each(reader, field, value, &mut one.graph.loops, composite_loop); };
    "chains": CHAINS;
        "Latency budgets from one component to another."
            => { each(reader, field, value, &mut one.graph.chains, chain); };
    "subgraphs": FieldKind::ListOf { of: &SUBGRAPH, min: 0, max: |limits| limits.groups };
        "Groups of components with their own namespace."
            => { one.groups.subgraphs = items(reader, field, value); };
    "templates": FieldKind::ListOf { of: &TEMPLATE, min: 0, max: |limits| limits.groups };
        "Groups with parameters, written as {{name}} in scalars."
            => { one.groups.templates = items(reader, field, value); };
    "template_instances": FieldKind::ListOf { of: &INSTANCE, min: 0, max: |limits| limits.groups };
        "Instances of templates, with values for the parameters."
            => { one.groups.instances = items(reader, field, value); };
}

const COMPONENTS: FieldKind =
    FieldKind::ListOf { of: &COMPONENT, min: 0, max: |limits| limits.components };
const SOME_COMPONENTS: FieldKind =
    FieldKind::ListOf { of: &COMPONENT, min: 1, max: |limits| limits.components };
const EDGES: FieldKind = FieldKind::ListOf { of: &EDGE, min: 0, max: |limits| limits.edges };
const LOOPS: FieldKind = FieldKind::ListOf { of: &LOOP, min: 0, max: |limits| limits.loops };
const CHAINS: FieldKind = FieldKind::ListOf { of: &CHAIN, min: 0, max: |limits| limits.loops };

section! {
    /// `graph`.
    GRAPH "graph", below "graph.";
    fn set_graph(one: GraphSpec, reader, field, value);
    "name": FieldKind::Label, required; "The name of the graph." => name;
    "kind": one_of!(GraphKind), = "\"runnable\"";
        "Whether the graph runs by itself or is part of a test." => kind;
    "config": FieldKind::Config; "The settings of the graph." => config;
    "clock": FieldKind::Map(&CLOCK);
        "The clock domains of timestamps." => { reader.section(&CLOCK, value, one, set_clock); };
}

section! {
    /// `graph.clock`.
    CLOCK "clock", below "graph.clock.";
    fn set_clock(one: GraphSpec, reader, field, value);
    "runtime_domain": FieldKind::Name(&["steady"], Code::InvalidValue), = "\"steady\"";
        "The clock domain of the runtime." => { _ = reader.name(field, value); };
    "event_domain": one_of!(ClockDomain), = "\"steady\"";
        "Advisory; it has no effect: each timestamp has its own clock domain." => event_domain;
}

section! {
    /// `lanes.<id>`.
    LANE "lane", below "";
    fn set_lane(one: LaneSpec, reader, field, value);
    "type": FieldKind::Name(names!(LaneType), Code::UnsupportedLaneType), required;
        "How the lane executes its components." => lane_type;
    "hz": FieldKind::Number, = "0"; "Ticks per second, if period_ms is 0." => hz;
    "period_ms": MILLIS, = "0"; "Milliseconds between ticks." => period_ms;
    "tick_budget_ms": MILLIS, = "0"; "Time budget per tick; 0 means the period." => tick_budget_ms;
    "wall_clock_enabled": FieldKind::Bool, = "false";
        "Use wall-clock ticks instead of simulated ones." => wall_clock_enabled;
    "overrun_policy": one_of!(OverrunPolicy), = "\"drop_tick\"";
        "What happens after a tick that took too long." => overrun_policy;
    "max_threads": COUNT, = "0";
        "Maximum number of concurrent invocations; 0 means one." => max_threads;
    "queue_capacity": COUNT, = "0"; "Ready invocations that may wait." => queue_capacity;
    "overflow": one_of!(LaneOverflow), = "\"reject\"";
        "What happens when the queue is full." => overflow;
    "aging_picks": COUNT, = "64";
        "Picks of others before a region goes first; 0 means never." => aging_picks;
    "max_callback_ms": MILLIS, = "0";
        "Longer invocations are reported; 0 means none." => max_callback_ms;
    "thread_name": FieldKind::Text; "The name of the lane's threads." => thread_name;
    "priority": SIGNED, = "0"; "Advisory; it has no effect." => priority;
    "cpu_affinity": FieldKind::Wholes, = "[]";
        "CPUs that the lane's thread may use." => cpu_affinity;
    "nice_priority": SIGNED, = "0"; "The niceness of the lane's thread." => nice_priority;
    "rt_policy": FieldKind::Name(&["none", "fifo", "rr"], Code::InvalidValue), = "\"none\"";
        "The scheduling class of the lane's dedicated thread." => rt_policy;
    "rt_priority": SIGNED, = "0"; "The priority in the class of rt_policy." => rt_priority;
    "isolation_intent": FieldKind::Text, = "\"none\"";
        "Advisory; it has no effect." => isolation_intent;
    "on_policy_error": one_of!(OnPolicyError), = "\"warn\"";
        "What happens if the operating system refuses a thread setting." => on_policy_error;
}

section! {
    /// `components[]`.
    COMPONENT "component", below "";
    fn set_component(one: ComponentSpec, reader, field, value);
    "id": FieldKind::QualifiedId, required; "The id of the component." => id;
    "type": FieldKind::Label, required; "The name of its type in the registry." => component_type;
    "event_sources": FieldKind::ListOf { of: &EVENT_SOURCE, min: 1, max: NO_LIMIT },
        = "[{\"type\":\"manual\"}]";
        "The events that can make it ready. Without this and `trigger_policy`, a message at the \
         only input that its type requires, if an `immediate` or `async` edge leads there."
            => { one.event_sources = event_sources(reader, field, value); };
    "trigger_policy": FieldKind::Map(&TRIGGER), = "{\"type\":\"manual\"}";
        "When its events cause an invocation." => { one.trigger = trigger(reader, value); };
    "execution": FieldKind::Map(&EXECUTION), required;
        "How it is executed."
            => { reader.section(&EXECUTION, value, &mut one.execution, set_execution); };
    "depends_on": FieldKind::QualifiedIds { min: 0 }, = "[]";
        "Components that start before it." => depends_on;
    "boundary": FieldKind::Map(&BOUNDARY), = "{\"role\":\"processing\"}";
        "Whether it is an input or output boundary of the graph."
            => { reader.section(&BOUNDARY, value, &mut one.boundary, set_boundary); };
    "config": FieldKind::Config; "The settings of the component." => config;
}

section! {
    /// `components[].event_sources[]`.
    EVENT_SOURCE "event_source", below "";
    fn set_event_source(one: EventSourceSpec, reader, field, value);
    "id": FieldKind::Id; "The id of the event source." => id;
    "type": FieldKind::Name(names!(SourceType), Code::InvalidEventSource), = "\"manual\"";
        "The type of event." => source_type;
    "inputs": FieldKind::Ids { min: 0 }, = "[]";
        "The inputs that it watches." => { set_inputs(&mut one.inputs, reader.ids(field, value)); };
    "input": FieldKind::Id;
        "Shorthand for one input." => { add_input(&mut one.inputs, reader.id(value)); };
    "period_ms": MILLIS, = "0"; "Timer only: milliseconds between ticks." => period_ms;
    "phase_ms": MILLIS, = "0"; "Timer only: milliseconds before the first tick." => phase_ms;
}

section! {
    /// `components[].trigger_policy`.
    TRIGGER "trigger_policy", below "trigger_policy.";
    fn set_trigger(one: TriggerSpec, reader, field, value);
    "type": one_of!(TriggerType), = "\"manual\""; "The type of trigger." => trigger_type;
    "inputs": FieldKind::Ids { min: 0 }, = "[]";
        "The inputs that it waits for; by default those of the event sources."
            => { set_inputs(&mut one.inputs, reader.ids(field, value)); };
    "input": FieldKind::Id;
        "Shorthand for one input." => { add_input(&mut one.inputs, reader.id(value)); };
    "batch_size": COUNT, = "0"; "Messages per batch." => batch_size;
    "batch_window_ms": MILLIS, = "0";
        "A batch ends when its oldest message is this old." => batch_window_ms;
    "sync_slop_ms": MILLIS, = "0"; "How far apart timestamps may be." => sync_slop_ms;
    "min_interval_ms": MILLIS, = "0"; "The minimum time between invocations." => min_interval_ms;
    "max_latency_ms": MILLIS, = "0"; "Older messages are dropped." => max_latency_ms;
    "watermark_lateness_ms": MILLIS, = "0";
        "How far a message may lag behind the newest." => watermark_lateness_ms;
    "debounce_window_ms": MILLIS, = "0"; "Must be 0." => debounce_window_ms;
    "condition": one_of!(Condition), = "\"all_inputs_ready\"";
        "Condition trigger only: the condition." => condition;
    "coalesce": FieldKind::Bool, = "false";
        "Use only the newest message of each input." => coalesce;
}

section! {
    /// `components[].execution`.
    EXECUTION "execution", below "execution.";
    fn set_execution(one: ExecutionSpec, reader, field, value);
    "lane": FieldKind::Id, required; "The lane that executes it." => lane;
    "reentrant": FieldKind::Bool, = "false"; "Whether its invocations may overlap." => reentrant;
    "priority": one_of!(ComponentPriority), = "\"normal\"";
        "Which ready component goes first." => priority;
    "budget_ms": MILLIS, = "0"; "Longer invocations are reported; 0 means none." => budget_ms;
    "on_error": FieldKind::NameOr(names!(ErrorPolicy), Code::UnsupportedErrorPolicy, &ON_ERROR),
        = "\"fail_fast\"";
        "What a failure does." => { on_error(reader, field, value, &mut one.on_error); };
    "burst": COUNT, = "0"; "Most messages per invocation on a blocking edge; 0 means one." => burst;
}

section! {
    /// `components[].execution.on_error`.
    ON_ERROR "on_error", below "execution.on_error.";
    fn set_on_error(one: ErrorPolicySpec, reader, field, value);
    "policy": FieldKind::Name(names!(ErrorPolicy), Code::UnsupportedErrorPolicy), required;
        "What a failure does." => policy;
    "max_restarts": COUNT, = "10"; "Maximum number of restarts within within_ms." => max_restarts;
    "within_ms": MILLIS, = "0"; "The window of max_restarts; 0 means the whole run." => within_ms;
    "backoff_ms": MILLIS, = "0";
        "Delay before the first restart; it doubles each time." => backoff_ms;
    "backoff_max_ms": MILLIS, = "60000"; "The maximum delay before a restart." => backoff_max_ms;
}

section! {
    /// `components[].boundary`.
    BOUNDARY "boundary", below "boundary.";
    fn set_boundary(one: BoundarySpec, reader, field, value);
    "role": one_of!(BoundaryRole), = "\"processing\""; "The role of the component." => role;
    "descriptor": FieldKind::Text, = "\"\""; "Free text." => descriptor;
}

section! {
    /// `edges[]`.
    EDGE "edge", below "";
    fn set_edge(one: EdgeDraft, reader, field, value);
    "id": FieldKind::QualifiedId, required; "The id of the edge." => id;
    "kind": one_of!(EdgeKind), required; "When published values become visible." => kind;
    "from": FieldKind::Endpoint, required; "The output: component.port." => from;
    "to": FieldKind::Endpoint, required; "The input: component.port." => to;
    "policy": FieldKind::Map(&POLICY), = "{}";
        "The policy of its channel."
            => { reader.section(&POLICY, value, &mut one.policy, set_policy); };
}

section! {
    /// `edges[].policy`.
    POLICY "policy", below "policy.";
    fn set_policy(one: EdgePolicy, reader, field, value);
    "mode": one_of!(EdgeMode), = "\"latest\""; "Which messages the channel keeps." => mode;
    "capacity": FieldKind::Whole { min: 1, max: u32::MAX as i64 }, = "1";
        "How many messages it keeps." => capacity;
    "overflow": one_of!(EdgeOverflow), = "\"overwrite\""; "What a full channel does." => overflow;
    "lifespan_ms": MILLIS, = "0"; "Older messages are dropped; 0 means none." => lifespan_ms;
    "deadline_ms": MILLIS, = "0"; "Older messages are flagged; 0 means none." => deadline_ms;
    "max_silence_ms": MILLIS, = "0";
        "A longer time without a new message is reported; 0 means none." => max_silence_ms;
    "max_inflight": COUNT, = "0";
        "Async only: messages in flight; 0 means any number." => max_inflight;
    "preserve_order": FieldKind::Bool, = "true";
        "Advisory; it has no effect: the messages of an edge keep their order." => preserve_order;
    "allow_drop": FieldKind::Bool, = "true"; "Whether messages may be dropped." => allow_drop;
    "emit_health_events": FieldKind::Bool, = "true";
        "Whether the channel emits health events." => emit_health_events;
    "timestamp_domain": one_of!(ClockDomain), = "\"steady\"";
        "Advisory; it has no effect: each timestamp has its own clock domain." => timestamp_domain;
    "copy_policy": one_of!(CopyPolicy), = "\"shared_view\"";
        "How a payload reaches its readers." => copy_policy;
}

section! {
    /// `composite_loops[]`.
    LOOP "composite_loop", below "";
    fn set_loop(one: LoopDraft, reader, field, value);
    "id": FieldKind::QualifiedId, required; "The id of the loop." => (spec.id);
    "components": FieldKind::QualifiedIds { min: 1 }, required;
        "Its members: exactly those of one cycle." => (spec.components);
    "order": FieldKind::QualifiedIds { min: 0 }, = "[]";
        "The order of its members; computed by default." => (spec.order);
    "loop_policy": FieldKind::Map(&LOOP_POLICY), required;
        "How the loop iterates." => { reader.section(&LOOP_POLICY, value, one, set_loop_policy); };
}

section! {
    /// `composite_loops[].loop_policy`.
    LOOP_POLICY "loop_policy", below "loop_policy.";
    fn set_loop_policy(one: LoopDraft, reader, field, value);
    "type": one_of!(LoopType), required;
        "`fixed_point`: iterate until nothing changes; `transaction`: all or nothing; \
         `solver_iteration`: iterate until the residual is small; `coalesced_event`: one \
         invocation for all pending messages; `async_task`: one iteration per epoch." => loop_type;
    "max_iterations": COUNT, = "0";
        "Maximum number of iterations; 0 means one." => (spec.max_iterations);
    "budget_ms": MILLIS, = "0"; "Time budget per epoch; 0 means no limit." => (spec.budget_ms);
    "convergence": one_of!(Convergence); "The convergence criterion." => (spec.convergence);
    "residual_threshold": FieldKind::Number;
        "The loop has converged when the residual is at most this." => (spec.residual_threshold);
    "partial_success": one_of!(PartialSuccess);
        "What happens to the outputs without convergence." => (spec.partial_success);
    "mode": one_of!(LoopMode), = "\"gauss_seidel\"";
        "Which values a member sees of the others." => (spec.mode);
    "max_inflight": COUNT, = "0"; "Reserved." => (spec.max_inflight);
    "drop_policy": FieldKind::Text; "Reserved." => (spec.drop_policy);
    "min_interval_ms": MILLIS, = "0"; "Reserved." => (spec.min_interval_ms);
}

section! {
    /// `chains[]`.
    CHAIN "chain", below "";
    fn set_chain(one: ChainSpec, reader, field, value);
    "id": FieldKind::QualifiedId; "The id of the chain; by default from:to." => id;
    "from": FieldKind::QualifiedId, required; "The component in which the data begins." => from;
    "to": FieldKind::QualifiedId, required; "The component that the data must reach." => to;
    "max_ms": MILLIS, required;
        "The longest time from the beginning of a call of `from` to the end of the call of `to` \
         that its data reached." => max_ms;
}

section! {
    /// `subgraphs[]`.
    SUBGRAPH "subgraph", below "";
    fn set_subgraph(one: GraphSpec, reader, field, value);
    "id": FieldKind::Id, required; "The id, which is also the namespace." => { reader.id(value); };
    "components": SOME_COMPONENTS, required;
        "The components." => { each(reader, field, value, &mut one.components, component); };
    "edges": EDGES, required;
        "The edges inside the group." => { each(reader, field, value, &mut one.edges, edge); };
    "composite_loops": LOOPS;
        "Loops that own cycles of immediate edges."
            => { each(reader, field, value, &mut one.loops, composite_loop); };
    "chains": CHAINS;
        "Latency budgets inside the group."
            => { each(reader, field, value, &mut one.chains, chain); };
}

section! {
    /// `templates[]`.
    TEMPLATE "template", below "";
    fn set_template(one: GraphSpec, reader, field, value);
    "id": FieldKind::Id, required; "The name of the template." => { reader.id(value); };
    "parameters": FieldKind::Ids { min: 0 }, = "[]";
        "The names of its parameters." => { reader.ids(field, value); };
    "components": SOME_COMPONENTS, required;
        "The components." => { each(reader, field, value, &mut one.components, component); };
    "edges": EDGES, required;
        "The edges inside the group." => { each(reader, field, value, &mut one.edges, edge); };
    "composite_loops": LOOPS;
        "Loops that own cycles of immediate edges."
            => { each(reader, field, value, &mut one.loops, composite_loop); };
    "chains": CHAINS;
        "Latency budgets inside the group."
            => { each(reader, field, value, &mut one.chains, chain); };
}

section! {
    /// `template_instances[]`.
    INSTANCE "template_instance", below "";
    fn set_instance(one: InstanceDraft<'t>, reader, field, value);
    "id": FieldKind::Id, required;
        "The id, which is also the namespace."
            => { one.id = reader.id(value).and(key_text(value)); };
    "template": FieldKind::Id, required;
        "The name of the template." => { one.template = reader.id(value).and(key_text(value)); };
    "parameters": FieldKind::Arguments, = "{}";
        "One value per parameter." => { one.arguments = Some(value); };
}
