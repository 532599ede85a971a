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

pub use engine::{
    context::{GraphContext, LoopIteration, PublishError},
    context_error::ContextError,
};
pub use flow::{
    feed::{Feed, FeedRefused},
    message::Stamp,
    reconfigure::{Committing, ConfigRefused, Reconfigure},
    tasks::ShutdownPolicy,
};
pub use observe::{
    call_watch::OverdueCall,
    component_log::{ComponentLog, LogLevel, LogRecord},
    health::{HealthEvent, HealthKind},
    live::LiveLane,
    losses::{Loss, LossCause, LossPlace},
    metrics::{HistogramSummary, Metric, MetricKind, Metrics, UserCounter, UserHistogram},
    observer::{MemoryObserver, Observation, Observed, Observer},
    report::{
        ChainReport, ComponentCounts, EdgeCounts, Fault, LoopResult, RunError, RunPhase, RunReport,
        RunStopReason, SilentInput,
    },
    sinks::{CommitLog, TraceLog},
    trace::{TraceName, TraceRecord},
};
// For the command `clockjack` and for tests: the table of all metrics, and the formats of logs and
// traces.
#[doc(hidden)]
pub use observe::{
    commit_log,
    metrics::{MetricDescriptor, MetricScope},
    timeline, trace,
};
pub use setup::{
    options::{Clock, Parallel, RunOptions},
    threads::{LaneAdvice, LaneReport},
};
