//! The description of a graph before it is checked: read from a file or built in code.

pub mod builder;
mod decode;
mod fields;
pub mod file;
pub mod limits;
mod reader;
mod scalar;
mod schema;
pub mod spec;
mod tree;

pub use builder::{Added, Edge, GraphBuilder, In, Lane, Loop, Out, Setup, Trigger};
pub use file::{GraphFile, ReadError};
pub use limits::Limits;
pub use schema::json_schema;
pub use spec::{
    BoundaryRole, BoundarySpec, ComponentSpec, Condition, ConfigMap, ConfigValue, Convergence,
    CopyPolicy, Domain, EdgeKind, EdgePolicy, EdgeSpec, ErrorPolicy, ErrorPolicySpec,
    EventSourceSpec, ExecutionSpec, FieldSpans, GraphKind, GraphSpec, HierarchyEntry, LaneOverflow,
    LaneSpec, LaneType, LoopMode, LoopSpec, LoopType, Mode, OnPolicyError, Overflow, OverrunPolicy,
    Owner, PartialSuccess, Priority, Readers, Source, SourceType, Span, TriggerSpec, TriggerType,
};
