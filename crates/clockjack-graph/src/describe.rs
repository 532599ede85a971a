//! What a graph is, before anything is checked: from a file, or from a builder in code.

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
    EventSourceSpec, ExecutionSpec, GraphKind, GraphSpec, HierarchyEntry, LaneOverflow, LaneSpec,
    LaneType, LoopMode, LoopSpec, LoopType, Marks, Mode, OnPolicyError, Overflow, OverrunPolicy,
    Owner, PartialSuccess, Priority, Readers, Source, SourceType, Span, TriggerSpec, TriggerType,
};
