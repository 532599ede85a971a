//! The description of a graph before it is checked: read from a file or built in code.

mod builder;
mod decode;
mod fields;
mod file;
mod limits;
mod reader;
mod scalar;
mod schema;
mod spec;
mod tree;

pub use builder::{Added, Edge, GraphBuilder, In, Lane, Loop, Out, Setup, Trigger};
pub use file::{GraphFile, ReadError};
pub use limits::FileLimits;
pub use schema::json_schema;
pub use spec::{
    BoundaryRole, ClockDomain, ComponentPriority, Condition, ConfigValue, Convergence, CopyPolicy,
    EdgeMode, EdgeOverflow, ErrorPolicy, LaneOverflow, LoopMode, LoopType, OnPolicyError,
    OverrunPolicy, PartialSuccess, SourceText, Span,
};
// The description as data, for the command `clockjack` and for tests. A program uses the builder.
#[doc(hidden)]
pub use spec::{
    BoundarySpec, ChainSpec, ComponentSpec, ConfigMap, EdgeKind, EdgePolicy, EdgeSpec,
    ErrorPolicySpec, EventSourceSpec, ExecutionSpec, FieldSpans, GraphKind, GraphSpec,
    HierarchyEntry, LaneSpec, LaneType, LoopSpec, SourceType, TriggerSpec, TriggerType,
};
