//! Running a plan.

pub(crate) mod batch;
pub mod blackboard;
pub(crate) mod channel;
pub(crate) mod collect;
pub mod commit_log;
pub mod component_log;
pub mod context;
mod credit;
pub(crate) mod current_position;
pub(crate) mod domain;
pub(crate) mod env;
mod epoch;
pub mod feed;
pub mod health;
mod helpers;
pub(crate) mod inbox;
mod lanes;
pub(crate) mod live;
mod loops;
pub(crate) mod message;
pub mod metrics;
mod node;
pub mod observer;
pub mod options;
pub(crate) mod outbox;
pub(crate) mod pending;
pub mod reconfigure;
mod region;
pub mod report;
pub(crate) mod shared;
pub mod sinks;
pub(crate) mod start;
mod step_kind;
pub mod tasks;
pub mod threads;
pub mod timeline;
pub mod trace;
pub(crate) mod trigger;
pub(crate) mod wiring;

pub use blackboard::StateRefused;
pub use component_log::{ComponentLog, Level, LogRecord};
pub use context::{GraphContext, LoopIteration, PublishError};
pub use feed::{Feed, FeedRefused};
pub use health::{HealthEvent, HealthKind};
pub use live::LiveLane;
pub use message::Stamp;
pub use metrics::{
    Counter, Histogram, Metric, MetricDescriptor, MetricKind, MetricRefused, MetricScope, Metrics,
    Summary, UserMetric,
};
pub use observer::{MemoryObserver, Observation, Observed, Observer};
pub use options::{Clock, Parallel, RunOptions};
pub use reconfigure::{Committing, ConfigRefused, Reconfigure};
pub use report::{Fault, LoopResult, Phase, RunError, RunReport, StopReason};
pub use sinks::{CommitLog, TraceLog};
pub use tasks::{ShutdownPolicy, TaskRefused};
pub use threads::{LaneAdvice, LaneReport};
pub use trace::{TraceName, TraceRecord};
