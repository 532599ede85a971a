//! Running a plan.
//!
//! | module | what it does |
//! |---|---|
//! | `setup` | builds a run from a plan, starts it and takes it down |
//! | `engine` | runs epochs: calls components and commits what they publish |
//! | `flow` | moves messages: channels, triggers, credit, feeds, tasks |
//! | `observe` | records what happens: logs, traces, metrics, reports |

pub(crate) mod engine;
pub(crate) mod flow;
pub(crate) mod observe;
pub(crate) mod setup;

pub use engine::context::{self, GraphContext, LoopIteration, PublishError};
pub use flow::{
    blackboard::{self, StateRefused},
    feed::{self, Feed, FeedRefused},
    message::Stamp,
    reconfigure::{self, Committing, ConfigRefused, Reconfigure},
    tasks::{self, ShutdownPolicy, TaskRefused},
};
pub use observe::{
    commit_log,
    component_log::{self, ComponentLog, Level, LogRecord},
    health::{self, HealthEvent, HealthKind},
    live::LiveLane,
    metrics::{
        self, Counter, Histogram, Metric, MetricDescriptor, MetricKind, MetricRefused, MetricScope,
        Metrics, Summary, UserMetric,
    },
    observer::{self, MemoryObserver, Observation, Observed, Observer},
    report::{self, Fault, LoopResult, Phase, RunError, RunReport, StopReason},
    sinks::{self, CommitLog, TraceLog},
    timeline,
    trace::{self, TraceName, TraceRecord},
};
pub use setup::{
    options::{self, Clock, Parallel, RunOptions},
    threads::{self, LaneAdvice, LaneReport},
};
