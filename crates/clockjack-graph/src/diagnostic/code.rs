//! The closed set of diagnostic codes.

use crate::named::named;

named! {
    /// The severity of a diagnostic. Only an error prevents a graph from running.
    pub enum Severity {
        /// The graph cannot run.
        Error = "error",
        /// The graph can run, but probably not as intended.
        Warning = "warning",
        /// Information.
        Info = "info",
        /// A field is accepted, but it has no effect here.
        Advisory = "advisory",
    }
}

named! {
    /// The part of a graph that a diagnostic is about.
    #[non_exhaustive]
    pub enum Category {
        /// Names and connections.
        GraphStructure = "graph_structure",
        /// Lanes, and how components are executed.
        Scheduler = "scheduler",
        /// Channels, and which messages they keep.
        Channel = "channel",
        /// Payloads of messages.
        Payload = "payload",
        /// Triggers: when components are executed.
        Trigger = "trigger",
    }
}

macro_rules! codes {
    ($( $(#[$meta:meta])* $variant:ident = $name:literal, $severity:ident, $category:ident; )+) => {
        named! {
            /// The kind of problem that a diagnostic reports.
            #[non_exhaustive]
            pub enum Code { $( $(#[$meta])* $variant = $name, )+ }
        }

        impl Code {
            /// The severity of the code.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $( Self::$variant => Severity::$severity, )+ }
            }

            /// The part of a graph that the code is about.
            #[must_use]
            pub const fn category(self) -> Category {
                match self { $( Self::$variant => Category::$category, )+ }
            }
        }
    };
}

codes! {
    /// The text is not UTF-8.
    InvalidEncoding = "invalid_encoding", Error, GraphStructure;
    /// The text is not valid YAML, or uses anchors, aliases, tags or several documents.
    InvalidYaml = "invalid_yaml", Error, GraphStructure;
    /// A limit is exceeded.
    LimitExceeded = "limit_exceeded", Error, GraphStructure;
    /// `schema_version` is not 1.
    UnsupportedSchemaVersion = "unsupported_schema_version", Error, GraphStructure;
    /// A field does not exist here.
    UnknownField = "unknown_field", Error, GraphStructure;
    /// A required field is missing.
    MissingField = "missing_field", Error, GraphStructure;
    /// A key occurs twice in one map.
    DuplicateKey = "duplicate_key", Error, GraphStructure;
    /// A value has the wrong type.
    WrongType = "wrong_type", Error, GraphStructure;
    /// A value is not allowed for its field.
    InvalidValue = "invalid_value", Error, GraphStructure;
    /// An id or an endpoint is malformed.
    InvalidIdentifier = "invalid_identifier", Error, GraphStructure;
    /// An instance refers to a template that does not exist.
    UnknownTemplate = "unknown_template", Error, GraphStructure;
    /// A template parameter is missing, undeclared or misused.
    InvalidTemplateParameter = "invalid_template_parameter", Error, GraphStructure;
    /// An edge, a loop, a chain or a dependency names a component that does not exist.
    UnknownComponent = "unknown_component", Error, GraphStructure;
    /// An edge names a port that its component does not have.
    UnknownPort = "unknown_port", Error, GraphStructure;
    /// A component names a lane that does not exist.
    UnknownLane = "unknown_lane", Error, Scheduler;
    /// A component is of a type that the registry does not have.
    UnknownType = "unknown_type", Error, GraphStructure;
    /// An id is used twice.
    DuplicateId = "duplicate_id", Error, GraphStructure;
    /// A setting is unknown to the component, or its value is not allowed.
    InvalidConfig = "invalid_config", Error, GraphStructure;
    /// `depends_on` has a cycle.
    DependencyCycle = "dependency_cycle", Error, GraphStructure;
    /// The two ends of an edge have different payload types.
    PayloadTypeMismatch = "payload_type_mismatch", Error, Payload;
    /// A required input is not connected.
    MissingRequiredInput = "missing_required_input", Error, GraphStructure;
    /// An optional input is not connected.
    OptionalInputUnconnected = "optional_input_unconnected", Advisory, GraphStructure;
    /// The boundary role does not match the component's type.
    BoundaryRoleMismatch = "boundary_role_mismatch", Error, GraphStructure;
    /// A runnable graph has no input boundary or no output boundary.
    MissingBoundary = "missing_boundary", Error, GraphStructure;
    /// Several edges end at an input that takes only one.
    PortMultiplicityMismatch = "port_multiplicity_mismatch", Error, GraphStructure;
    /// A cycle of immediate edges that no loop owns.
    ImmediateCycleWithoutLoop = "immediate_cycle_without_loop", Error, GraphStructure;
    /// A loop contains only a part of a cycle, or components outside of it.
    PartialCompositeLoop = "partial_composite_loop", Error, GraphStructure;
    /// A loop contains no cycle.
    DecorativeCompositeLoop = "decorative_composite_loop", Error, GraphStructure;
    /// A loop's fields contradict each other.
    InvalidLoopPolicy = "invalid_loop_policy", Error, GraphStructure;
    /// A chain has no budget, or begins and ends at the same component.
    InvalidChain = "invalid_chain", Error, GraphStructure;
    /// No path leads from one end of a chain to the other.
    UnconnectedChain = "unconnected_chain", Error, GraphStructure;
    /// Two state edges write to the same input.
    MultiStateWriter = "multi_state_writer", Error, Channel;
    /// Fields of an edge's policy contradict each other.
    InvalidChannelPolicy = "invalid_channel_policy", Error, Channel;
    /// Blocking edges form a cycle and can wait for each other forever.
    BlockingCycle = "blocking_cycle", Error, Channel;
    /// An immediate edge connects lanes with different epoch domains.
    ImmediateEdgeCrossesDomains = "immediate_edge_crosses_domains", Error, Scheduler;
    /// A payload that is moved has several readers.
    InvalidMoveOnlyMultireader = "invalid_move_only_multireader", Error, Payload;
    /// A lane has an unknown type.
    UnsupportedLaneType = "unsupported_lane_type", Error, Scheduler;
    /// A lane's fields contradict each other.
    InvalidLanePolicy = "invalid_lane_policy", Error, Scheduler;
    /// An error policy is unknown, or the component does not support it.
    UnsupportedErrorPolicy = "unsupported_error_policy", Error, Scheduler;
    /// A component is declared reentrant, but its type is not.
    NotReentrant = "not_reentrant", Error, Scheduler;
    /// An event source is invalid.
    InvalidEventSource = "invalid_event_source", Error, Trigger;
    /// A trigger's fields contradict each other.
    InvalidTriggerPolicy = "invalid_trigger_policy", Error, Trigger;
    /// A trigger waits for an input at which no edge ends.
    TriggerMissingInput = "trigger_missing_input", Error, Trigger;
    /// A trigger waits for an input whose channel cannot make the trigger ready.
    IncompatibleTriggerEdgeMode = "incompatible_trigger_edge_mode", Error, Trigger;
    /// A field of a lane is accepted, but has no effect.
    AdvisoryLaneFieldIgnored = "advisory_lane_field_ignored", Advisory, Scheduler;
    /// A field of a component's execution is accepted, but has no effect.
    AdvisoryExecutionFieldIgnored = "advisory_execution_field_ignored", Advisory, Scheduler;
    /// A slow reader blocks its producer.
    BackpressureRisk = "backpressure_risk", Warning, Channel;
    /// So many messages may be queued that they are old when they are read.
    HighQueueDepthLatencyRisk = "high_queue_depth_latency_risk", Warning, Channel;
    /// Large payloads are copied.
    LargePayloadCopy = "large_payload_copy", Warning, Payload;
    /// A chain leads through lanes with different clocks, so that some runs cannot measure it.
    ChainCrossesClocks = "chain_crosses_clocks", Warning, Scheduler;
    /// No event can make the trigger ready.
    TriggerNeverReady = "trigger_never_ready", Warning, Trigger;
    /// An error without a code of its own.
    GraphValidationError = "graph_validation_error", Error, GraphStructure;
}
