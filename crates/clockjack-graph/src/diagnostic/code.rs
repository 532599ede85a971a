//! The closed set of findings.

use crate::named::named;

named! {
    /// How bad a finding is. Only an error keeps a graph from running.
    pub enum Severity {
        /// The graph cannot run.
        Error = "error",
        /// It can, but probably not as meant.
        Warning = "warning",
        /// Worth knowing.
        Info = "info",
        /// A field is read, and has no effect here.
        Advisory = "advisory",
    }
}

named! {
    /// Which part of a graph a finding is about.
    #[non_exhaustive]
    pub enum Category {
        /// Names, and who is connected with whom.
        GraphStructure = "graph_structure",
        /// Lanes and how components are called.
        Scheduler = "scheduler",
        /// What channels keep.
        Channel = "channel",
        /// What flows.
        Payload = "payload",
        /// When components are called.
        Trigger = "trigger",
    }
}

macro_rules! codes {
    ($( $(#[$meta:meta])* $variant:ident = $name:literal, $severity:ident, $category:ident; )+) => {
        named! {
            /// What kind of finding it is.
            #[non_exhaustive]
            pub enum Code { $( $(#[$meta])* $variant = $name, )+ }
        }

        impl Code {
            /// How bad it is.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $( Self::$variant => Severity::$severity, )+ }
            }

            /// What it is about.
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
    /// The text is not YAML, or uses what is not allowed here (anchors, aliases, tags, documents).
    InvalidYaml = "invalid_yaml", Error, GraphStructure;
    /// There is more of something than the limits allow.
    LimitExceeded = "limit_exceeded", Error, GraphStructure;
    /// `schema_version` is not 1.
    UnsupportedSchemaVersion = "unsupported_schema_version", Error, GraphStructure;
    /// A field that does not exist here.
    UnknownField = "unknown_field", Error, GraphStructure;
    /// A field that must be there is not.
    MissingField = "missing_field", Error, GraphStructure;
    /// A key stands twice in one map.
    DuplicateKey = "duplicate_key", Error, GraphStructure;
    /// A value of another type is needed.
    WrongType = "wrong_type", Error, GraphStructure;
    /// A value that the field cannot have.
    InvalidValue = "invalid_value", Error, GraphStructure;
    /// An id or an endpoint that cannot be one.
    InvalidIdentifier = "invalid_identifier", Error, GraphStructure;
    /// An instance of a template that does not exist.
    UnknownTemplate = "unknown_template", Error, GraphStructure;
    /// A parameter of a template that is not given, not declared or not used rightly.
    InvalidTemplateParameter = "invalid_template_parameter", Error, GraphStructure;
    /// An edge, a loop or a dependency names a component that does not exist.
    UnknownComponent = "unknown_component", Error, GraphStructure;
    /// An edge names a port that its component does not have.
    UnknownPort = "unknown_port", Error, GraphStructure;
    /// A component names a lane that does not exist.
    UnknownLane = "unknown_lane", Error, Scheduler;
    /// A component is of a type that the registry does not have.
    UnknownType = "unknown_type", Error, GraphStructure;
    /// An id is given twice.
    DuplicateId = "duplicate_id", Error, GraphStructure;
    /// A setting that the component does not take.
    InvalidConfig = "invalid_config", Error, GraphStructure;
    /// `depends_on` goes round.
    DependencyCycle = "dependency_cycle", Error, GraphStructure;
    /// The ends of an edge carry different payloads.
    PayloadTypeMismatch = "payload_type_mismatch", Error, Payload;
    /// An input that must be connected is not.
    MissingRequiredInput = "missing_required_input", Error, GraphStructure;
    /// An input that may be connected is not.
    OptionalInputUnconnected = "optional_input_unconnected", Advisory, GraphStructure;
    /// The role at the border is not that of the component's type.
    BoundaryRoleMismatch = "boundary_role_mismatch", Error, GraphStructure;
    /// A runnable graph has no input boundary or no output boundary.
    MissingBoundary = "missing_boundary", Error, GraphStructure;
    /// Several edges end at an input that takes one.
    PortMultiplicityMismatch = "port_multiplicity_mismatch", Error, GraphStructure;
    /// A cycle of immediate edges that no loop owns.
    ImmediateCycleWithoutLoop = "immediate_cycle_without_loop", Error, GraphStructure;
    /// A loop that owns a part of a cycle, or more than it.
    PartialCompositeLoop = "partial_composite_loop", Error, GraphStructure;
    /// A loop that owns no cycle.
    DecorativeCompositeLoop = "decorative_composite_loop", Error, GraphStructure;
    /// A loop's fields contradict each other.
    InvalidLoopPolicy = "invalid_loop_policy", Error, GraphStructure;
    /// Two state edges write one input.
    MultiStateWriter = "multi_state_writer", Error, Channel;
    /// Fields of an edge's policy contradict each other.
    InvalidChannelPolicy = "invalid_channel_policy", Error, Channel;
    /// A cycle of blocking edges, which would wait for itself.
    BlockingCycle = "blocking_cycle", Error, Channel;
    /// An immediate edge between lanes that keep their own time.
    ImmediateEdgeCrossesDomains = "immediate_edge_crosses_domains", Error, Scheduler;
    /// A payload that is moved to several readers.
    InvalidMoveOnlyMultireader = "invalid_move_only_multireader", Error, Payload;
    /// A lane of a type that does not exist.
    UnsupportedLaneType = "unsupported_lane_type", Error, Scheduler;
    /// A lane's fields contradict each other.
    InvalidLanePolicy = "invalid_lane_policy", Error, Scheduler;
    /// An error policy that does not exist, or that this component cannot have.
    UnsupportedErrorPolicy = "unsupported_error_policy", Error, Scheduler;
    /// A component that is called as reentrant and cannot be.
    NotReentrant = "not_reentrant", Error, Scheduler;
    /// An event source that cannot be.
    InvalidEventSource = "invalid_event_source", Error, Trigger;
    /// A trigger's fields contradict each other.
    InvalidTriggerPolicy = "invalid_trigger_policy", Error, Trigger;
    /// A trigger looks at an input that no edge ends at.
    TriggerMissingInput = "trigger_missing_input", Error, Trigger;
    /// A trigger looks at an input whose channel cannot make it ready.
    IncompatibleTriggerEdgeMode = "incompatible_trigger_edge_mode", Error, Trigger;
    /// A field of a lane is read, and has no effect.
    AdvisoryLaneFieldIgnored = "advisory_lane_field_ignored", Advisory, Scheduler;
    /// A field of a component's execution is read, and has no effect.
    AdvisoryExecutionFieldIgnored = "advisory_execution_field_ignored", Advisory, Scheduler;
    /// A slow reader holds up its producer or loses messages.
    BackpressureRisk = "backpressure_risk", Warning, Channel;
    /// So many messages may wait that they are old when they are read.
    HighQueueDepthLatencyRisk = "high_queue_depth_latency_risk", Warning, Channel;
    /// Large payloads are copied.
    LargePayloadCopy = "large_payload_copy", Warning, Payload;
    /// Nothing can make the trigger ready.
    TriggerNeverReady = "trigger_never_ready", Warning, Trigger;
    /// Reserved: subgraphs are flattened before anything is checked.
    SubgraphHiddenCycle = "subgraph_hidden_cycle", Error, GraphStructure;
    /// Reserved.
    DiagnosticNote = "diagnostic_note", Info, GraphStructure;
    /// Anything else.
    GraphValidationError = "graph_validation_error", Error, GraphStructure;
}
