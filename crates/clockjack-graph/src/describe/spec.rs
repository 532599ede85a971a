//! The description of a graph as plain data: schema version 1, after subgraphs and templates are
//! flattened. The types represent invalid graphs as well, so that all errors can be reported at
//! once.

mod chain;
mod room;
mod span;

use std::sync::Arc;

use crate::named::named;
pub use chain::ChainSpec;
pub use span::{ConfigMap, ConfigValue, FieldSpans, SourceText, Span};

named! {
    /// Whether a graph runs by itself.
    #[derive(Default)]
    pub enum GraphKind {
        /// Runs by itself, and therefore needs an input boundary and an output boundary.
        #[default]
        Runnable = "runnable",
        /// A part that is used by tests.
        InternalTest = "internal_test",
    }
}

named! {
    /// The clock domain of a timestamp.
    #[derive(Default)]
    pub enum ClockDomain {
        /// The runtime's monotonic clock.
        #[default]
        Steady = "steady",
        /// The time of day.
        System = "system",
        /// The clock of a device.
        Device = "device",
        /// Any other clock.
        External = "external",
    }
}

named! {
    /// How the components of a lane are executed.
    pub enum LaneType {
        /// One after the other, in compiled order.
        EventLoop = "event_loop",
        /// One after the other, at each tick of a period.
        FixedRate = "fixed_rate",
        /// Several concurrently, on the workers of the system.
        ThreadPool = "thread_pool",
        /// One after the other, on a dedicated thread.
        IsolatedThread = "isolated_thread",
        /// One after the other, in epochs that the host requests.
        ManualStep = "manual_step",
    }
}

named! {
    /// What a wall-clock lane does after a tick that took too long. All policies keep the phase.
    #[derive(Default)]
    pub enum OverrunPolicy {
        /// Drops missed ticks and continues with the next tick of the grid.
        #[default]
        DropTick = "drop_tick",
        /// Like `drop_tick`, but skips one more tick.
        SkipNext = "skip_next",
        /// Runs one tick immediately, then continues with the grid.
        CatchUpOnce = "catch_up_once",
    }
}

named! {
    /// What happens to ready invocations that exceed the concurrency and queue of a pool lane.
    #[derive(Default)]
    pub enum LaneOverflow {
        /// Refuses the newest.
        #[default]
        Reject = "reject",
        /// Refuses the newest.
        RejectNew = "reject_new",
        /// Drops the newest.
        DropNewest = "drop_newest",
        /// Refuses the newest; nothing waits inside an epoch.
        Block = "block",
        /// Drops the oldest.
        DropOldest = "drop_oldest",
        /// Drops the oldest.
        Overwrite = "overwrite",
        /// Fails the run.
        FailFast = "fail_fast",
    }
}

named! {
    /// What happens if the operating system refuses a setting of a lane.
    #[derive(Default)]
    pub enum OnPolicyError {
        /// The field has no effect, and a diagnostic reports it.
        #[default]
        Warn = "warn",
        /// The run does not start.
        Fail = "fail",
    }
}

/// A lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneSpec {
    /// The id of the lane.
    pub id: String,
    /// How the lane executes its components.
    pub lane_type: LaneType,
    /// Ticks per second, if `period_ms` is zero.
    pub hz: f64,
    /// Milliseconds between ticks.
    pub period_ms: u64,
    /// Time budget of a tick; zero means the period.
    pub tick_budget_ms: u64,
    /// Whether ticks follow the wall clock instead of simulated time.
    pub wall_clock_enabled: bool,
    /// What happens after a tick that took too long.
    pub overrun_policy: OverrunPolicy,
    /// Maximum number of concurrent invocations of a pool lane; zero means one.
    pub max_threads: u32,
    /// How many ready invocations may wait, in addition to the active ones.
    pub queue_capacity: u32,
    /// What happens to further invocations.
    pub overflow: LaneOverflow,
    /// After this many picks of others a waiting region goes first; zero means never.
    pub aging_picks: u32,
    /// Longer invocations are reported; zero means none.
    pub max_callback_ms: u64,
    /// The name of the lane's threads.
    pub thread_name: Option<String>,
    /// Advisory; it has no effect.
    pub priority: i64,
    /// CPUs that the lane's dedicated thread may use.
    pub cpu_affinity: Vec<u32>,
    /// The niceness of the lane's dedicated thread.
    pub nice_priority: i64,
    /// `none`, `fifo` or `rr`.
    pub rt_policy: String,
    /// The priority for `fifo` and `rr`.
    pub rt_priority: i64,
    /// Advisory; it has no effect.
    pub isolation_intent: String,
    /// What happens if the operating system refuses a setting.
    pub on_policy_error: OnPolicyError,
    /// The location of each field.
    pub spans: FieldSpans,
}

impl LaneSpec {
    /// A lane with the default values of the schema.
    #[must_use]
    pub fn new(id: &str, lane_type: LaneType) -> Self {
        Self {
            id: id.into(),
            lane_type,
            hz: 0.0,
            period_ms: 0,
            tick_budget_ms: 0,
            wall_clock_enabled: false,
            overrun_policy: OverrunPolicy::default(),
            max_threads: 0,
            queue_capacity: 0,
            overflow: LaneOverflow::default(),
            aging_picks: 64,
            max_callback_ms: 0,
            thread_name: None,
            priority: 0,
            cpu_affinity: Vec::new(),
            nice_priority: 0,
            rt_policy: "none".into(),
            rt_priority: 0,
            isolation_intent: "none".into(),
            on_policy_error: OnPolicyError::default(),
            spans: FieldSpans::default(),
        }
    }

    /// Nanoseconds between ticks; zero means that each epoch is a tick.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and `hz` is checked to be a number that is not negative"
    )]
    pub fn period_ns(&self) -> u64 {
        if self.period_ms > 0 {
            self.period_ms.saturating_mul(1_000_000)
        } else if self.hz > 0.0 {
            ((1e9 / self.hz).round() as u64).max(1)
        } else {
            0
        }
    }
}

named! {
    /// The type of an event source.
    #[derive(Default)]
    pub enum SourceType {
        /// Every epoch.
        #[default]
        Manual = "manual",
        /// A message at an input.
        Message = "message",
        /// A period.
        Timer = "timer",
        /// A request message.
        Request = "request",
        /// A completed task.
        TaskReady = "task_ready",
        /// A completed future.
        FutureReady = "future_ready",
    }
}

/// An event that can make a component ready.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventSourceSpec {
    /// The id, if there is one.
    pub id: Option<String>,
    /// The type of event.
    pub source_type: SourceType,
    /// The inputs that it watches, including the one of the shorthand field `input`.
    pub inputs: Vec<String>,
    /// The period of a timer.
    pub period_ms: u64,
    /// The time of a timer's first tick after the start; zero means at the start.
    pub phase_ms: u64,
    /// The location of each field.
    pub spans: FieldSpans,
}

named! {
    /// When pending messages cause an invocation.
    #[derive(Default)]
    pub enum TriggerType {
        /// Every epoch.
        #[default]
        Manual = "manual",
        /// One message at any input.
        OnEvent = "on_event",
        /// One message at any input.
        AnyInput = "any_input",
        /// One message at each input.
        AllInputs = "all_inputs",
        /// One message at each input, with timestamps close to each other.
        TimeSync = "time_sync",
        /// A number of messages, or a time window.
        Batch = "batch",
        /// A request message.
        Request = "request",
        /// A completed task.
        TaskReady = "task_ready",
        /// Messages that are not too far behind the newest one.
        Watermark = "watermark",
        /// A fixed predicate.
        Condition = "condition",
        /// The newest message of each input.
        Debounce = "debounce",
        /// At most one message per interval.
        RateLimit = "rate_limit",
    }
}

named! {
    /// A predicate of the `condition` trigger.
    #[derive(Default)]
    pub enum Condition {
        /// A message at each input.
        #[default]
        AllInputsReady = "all_inputs_ready",
        /// A message at any input.
        AnyInputReady = "any_input_ready",
        /// A message with a timestamp at each input.
        EventTimestampPresent = "event_timestamp_present",
    }
}

/// When pending messages cause an invocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TriggerSpec {
    /// The type of trigger.
    pub trigger_type: TriggerType,
    /// The inputs that it waits for; if empty, those of the event sources.
    pub inputs: Vec<String>,
    /// Messages per batch.
    pub batch_size: u32,
    /// A batch ends when its oldest message is this old.
    pub batch_window_ms: u64,
    /// How far apart timestamps may be.
    pub sync_slop_ms: u64,
    /// The minimum time between invocations.
    pub min_interval_ms: u64,
    /// Messages that are older are dropped.
    pub max_latency_ms: u64,
    /// How far behind the newest timestamp a message may be.
    pub watermark_lateness_ms: u64,
    /// Must be zero in schema version 1.
    pub debounce_window_ms: u64,
    /// The predicate of the `condition` trigger.
    pub condition: Condition,
    /// Whether only the newest message of each input is used.
    pub coalesce: bool,
    /// The location of each field.
    pub spans: FieldSpans,
}

named! {
    /// Which ready component is executed first.
    #[derive(Default)]
    pub enum ComponentPriority {
        /// Before all others.
        High = "high",
        /// The default.
        #[default]
        Normal = "normal",
        /// After normal ones.
        Low = "low",
        /// Only when nothing else is ready.
        Background = "background",
    }
}

impl ComponentPriority {
    /// The rank; a higher rank goes first.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::High => 3,
            Self::Normal => 2,
            Self::Low => 1,
            Self::Background => 0,
        }
    }
}

named! {
    /// What a failure of a component does to the run.
    #[derive(Default)]
    pub enum ErrorPolicy {
        /// The run stops.
        #[default]
        FailFast = "fail_fast",
        /// The invocation is lost, and the run continues.
        Continue = "continue",
        /// The component is not called again.
        Isolate = "isolate",
        /// The component is restarted after a backoff, a limited number of times.
        Restart = "restart",
    }
}

/// What a failure does, and how often a component is restarted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorPolicySpec {
    /// The policy.
    pub policy: ErrorPolicy,
    /// Maximum number of restarts in the window; one more stops the run.
    pub max_restarts: u32,
    /// The length of the window; zero means the whole run.
    pub within_ms: u64,
    /// The delay before the first restart. It doubles with each restart.
    pub backoff_ms: u64,
    /// The maximum delay.
    pub backoff_max_ms: u64,
}

impl Default for ErrorPolicySpec {
    fn default() -> Self {
        Self {
            policy: ErrorPolicy::FailFast,
            max_restarts: 10,
            within_ms: 0,
            backoff_ms: 0,
            backoff_max_ms: 60_000,
        }
    }
}

/// How a component is executed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionSpec {
    /// The lane that executes it.
    pub lane: String,
    /// Whether its invocations may overlap.
    pub reentrant: bool,
    /// Which ready component goes first.
    pub priority: ComponentPriority,
    /// Longer invocations are reported; zero means none.
    pub budget_ms: u64,
    /// What a failure does.
    pub on_error: ErrorPolicySpec,
    /// Maximum number of messages per invocation on a blocking edge; zero means one.
    pub burst: u32,
}

named! {
    /// Whether a component is a boundary of the graph.
    #[derive(Default)]
    pub enum BoundaryRole {
        /// Inside the graph.
        #[default]
        Processing = "processing",
        /// Values enter the graph here.
        Input = "input",
        /// Values leave the graph here.
        Output = "output",
        /// Values enter and leave the graph here.
        InputOutput = "input_output",
    }
}

/// Whether a component is a boundary of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundarySpec {
    /// The role of the component.
    pub role: BoundaryRole,
    /// Free text.
    pub descriptor: String,
}

/// A component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComponentSpec {
    /// The id, including the namespace of its subgraph or instance.
    pub id: String,
    /// The name of its type in the registry.
    pub component_type: String,
    /// The events that can make it ready. Never empty: the default is `manual`.
    pub event_sources: Vec<EventSourceSpec>,
    /// When these events cause an invocation.
    pub trigger: TriggerSpec,
    /// How it is executed.
    pub execution: ExecutionSpec,
    /// Components that start before it.
    pub depends_on: Vec<String>,
    /// Whether it is a boundary of the graph.
    pub boundary: BoundarySpec,
    /// Its settings.
    pub config: ConfigMap,
    /// The location of each field. Nested fields have the name of their parent as a prefix:
    /// `execution.lane`, `trigger_policy.inputs`, `boundary.role`, `config`.
    pub spans: FieldSpans,
}

named! {
    /// When published values become visible.
    pub enum EdgeKind {
        /// In this epoch, after the producer's region is finished.
        Immediate = "immediate",
        /// In the next epoch.
        Delay = "delay",
        /// In the next epoch; until then readers see the old value.
        State = "state",
        /// In the next epoch, if not too many values are in flight.
        Async = "async",
    }
}

named! {
    /// Which messages a channel keeps.
    #[derive(Default)]
    pub enum EdgeMode {
        /// The newest message.
        #[default]
        Latest = "latest",
        /// All messages, in order.
        Queue = "queue",
        /// All messages, in order.
        RingBuffer = "ring_buffer",
        /// The newest message, permanently.
        Latched = "latched",
        /// All messages, once there are `capacity` of them.
        Barrier = "barrier",
        /// The newest message of the previous epoch.
        PreviousTick = "previous_tick",
    }
}

named! {
    /// What a full channel does.
    #[derive(Default)]
    pub enum EdgeOverflow {
        /// Drops the oldest message.
        #[default]
        Overwrite = "overwrite",
        /// Drops the oldest message.
        DropOldest = "drop_oldest",
        /// Drops the newest message.
        DropNewest = "drop_newest",
        /// The producer is not executed while there is no room.
        Block = "block",
        /// Refuses the publication and fails the run.
        FailFast = "fail_fast",
        /// Refuses the publication.
        Reject = "reject",
    }
}

named! {
    /// How a payload reaches several readers.
    #[derive(Default)]
    pub enum CopyPolicy {
        /// The reader gets a payload of its own: a copy, if there are other readers.
        Copy = "copy",
        /// All readers share one payload.
        #[default]
        SharedView = "shared_view",
        /// All readers share one payload from a buffer pool.
        LoanedView = "loaned_view",
        /// The only reader takes ownership.
        MoveOnly = "move_only",
    }
}

/// The policy of a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgePolicy {
    /// Which messages the channel keeps.
    pub mode: EdgeMode,
    /// How many messages it keeps.
    pub capacity: u32,
    /// What a full channel does.
    pub overflow: EdgeOverflow,
    /// Older messages are dropped before they are delivered; zero means none.
    pub lifespan_ms: u64,
    /// Older messages are delivered with a flag; zero means none.
    pub deadline_ms: u64,
    /// A longer time without a new message is reported; zero means none.
    pub max_silence_ms: u64,
    /// Maximum number of messages in flight on an `async` edge; zero means any number.
    pub max_inflight: u32,
    /// Whether the order of messages matters.
    pub preserve_order: bool,
    /// Whether messages may be dropped.
    pub allow_drop: bool,
    /// Whether the channel emits health events.
    pub emit_health_events: bool,
    /// The clock domain of the timestamps.
    pub timestamp_domain: ClockDomain,
    /// How a payload reaches several readers.
    pub copy_policy: CopyPolicy,
}

impl Default for EdgePolicy {
    fn default() -> Self {
        Self {
            mode: EdgeMode::default(),
            capacity: 1,
            overflow: EdgeOverflow::default(),
            lifespan_ms: 0,
            deadline_ms: 0,
            max_silence_ms: 0,
            max_inflight: 0,
            preserve_order: true,
            allow_drop: true,
            emit_health_events: true,
            timestamp_domain: ClockDomain::default(),
            copy_policy: CopyPolicy::default(),
        }
    }
}

/// An edge.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeSpec {
    /// The id, including the namespace of its subgraph or instance.
    pub id: String,
    /// When published values become visible.
    pub kind: EdgeKind,
    /// The output as `component.port`; the last dot separates the two.
    pub from: String,
    /// The input as `component.port`; the last dot separates the two.
    pub to: String,
    /// The policy of the channel.
    pub policy: EdgePolicy,
    /// The location of each field: `from`, `to`, `kind`, `policy.capacity` and so on.
    pub spans: FieldSpans,
}

impl EdgeSpec {
    /// Splits an endpoint into component and port. Without a dot, the port is empty.
    #[must_use]
    pub fn split(endpoint: &str) -> (&str, &str) {
        endpoint.rsplit_once('.').unwrap_or((endpoint, ""))
    }
}

named! {
    /// How a loop iterates.
    pub enum LoopType {
        /// Until nothing changes.
        FixedPoint = "fixed_point",
        /// All or nothing: if a member fails and the run continues, nothing of the epoch becomes
        /// visible, and each member that supports snapshots is restored to its earlier state.
        Transaction = "transaction",
        /// Until the residual is small.
        SolverIteration = "solver_iteration",
        /// One invocation per member for all pending messages, with the newest message of each
        /// input.
        CoalescedEvent = "coalesced_event",
        /// One iteration per epoch; its immediate outputs are held back until the loop is finished.
        AsyncTask = "async_task",
    }
}

named! {
    /// When a loop has converged, in addition to what its members report.
    pub enum Convergence {
        /// After one iteration.
        SinglePass = "single_pass",
        /// After one iteration.
        AfterFirstIteration = "after_first_iteration",
        /// After each iteration.
        Always = "always",
        /// When the outputs of an iteration equal those of the previous one.
        StableState = "stable_state",
    }
}

named! {
    /// What happens to the outputs of a loop that has not converged.
    pub enum PartialSuccess {
        /// They are published.
        CommitOutputs = "commit_outputs",
        /// They are discarded.
        DiscardOutputs = "discard_outputs",
        /// The run fails.
        FailRun = "fail_run",
    }
}

named! {
    /// Which values a member of a loop sees of the others within one iteration.
    #[derive(Default)]
    pub enum LoopMode {
        /// The values that earlier members have published in this iteration.
        #[default]
        GaussSeidel = "gauss_seidel",
        /// The values of the previous iteration; members may run concurrently.
        Jacobi = "jacobi",
    }
}

/// A composite loop, which owns a cycle of immediate edges.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopSpec {
    /// The id of the loop.
    pub id: String,
    /// Its members: exactly those of one cycle.
    pub components: Vec<String>,
    /// How it iterates.
    pub loop_type: LoopType,
    /// Maximum number of iterations per epoch; zero means one.
    pub max_iterations: u32,
    /// Time budget per epoch; zero means no limit.
    pub budget_ms: u64,
    /// The convergence criterion.
    pub convergence: Option<Convergence>,
    /// The loop has converged when the residual is at most this.
    pub residual_threshold: Option<f64>,
    /// What happens to the outputs if the loop has not converged.
    pub partial_success: Option<PartialSuccess>,
    /// The order of its members; if empty, the compiler chooses one with few backward edges.
    pub order: Vec<String>,
    /// Which values a member sees of the others.
    pub mode: LoopMode,
    /// Reserved.
    pub max_inflight: u32,
    /// Reserved.
    pub drop_policy: Option<String>,
    /// Reserved.
    pub min_interval_ms: u64,
    /// The location of each field: `components`, `loop_policy.type` and so on.
    pub spans: FieldSpans,
}

impl LoopSpec {
    /// A loop with the default values of the schema, without members.
    #[must_use]
    pub fn new(id: &str, loop_type: LoopType) -> Self {
        Self {
            id: id.into(),
            components: Vec::new(),
            loop_type,
            max_iterations: 0,
            budget_ms: 0,
            convergence: None,
            residual_threshold: None,
            partial_success: None,
            order: Vec::new(),
            mode: LoopMode::default(),
            max_inflight: 0,
            drop_policy: None,
            min_interval_ms: 0,
            spans: FieldSpans::default(),
        }
    }
}

/// The contents of an expanded subgraph or template instance. Used only for plans and diagrams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HierarchyEntry {
    /// The namespace.
    pub id: String,
    /// The template, if this is an instance of one.
    pub template: Option<String>,
    /// The ids of its components.
    pub components: Vec<String>,
    /// The ids of its edges.
    pub edges: Vec<String>,
    /// The ids of its loops.
    pub loops: Vec<String>,
}

/// A graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphSpec {
    /// The name of the graph.
    pub name: String,
    /// Whether it runs by itself.
    pub kind: GraphKind,
    /// The settings of the graph.
    pub config: ConfigMap,
    /// The clock domain of event timestamps.
    pub event_domain: ClockDomain,
    /// The lanes, in the order of the file.
    pub lanes: Vec<LaneSpec>,
    /// The components, in the order of the file, followed by those of subgraphs and instances.
    pub components: Vec<ComponentSpec>,
    /// The edges, in the same order.
    pub edges: Vec<EdgeSpec>,
    /// The loops, in the same order.
    pub loops: Vec<LoopSpec>,
    /// The chains with a latency budget, in the order of the file.
    pub chains: Vec<ChainSpec>,
    /// The expanded subgraphs and instances.
    pub hierarchy: Vec<HierarchyEntry>,
    /// The location of `graph`, `graph.name` and so on.
    pub spans: FieldSpans,
    /// The text from which the graph was read.
    pub source: Option<Arc<SourceText>>,
}
