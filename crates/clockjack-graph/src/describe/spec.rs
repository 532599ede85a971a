//! The description of a graph as data: schema version 1, after subgraphs and templates are
//! flattened. Nothing here is checked; whatever a file can say has a place, so that all of its
//! faults can be told at once.

mod place;

use std::sync::Arc;

use crate::named::named;
pub use place::{ConfigMap, ConfigValue, Marks, Source, Span};

named! {
    /// What a graph is for.
    #[derive(Default)]
    pub enum GraphKind {
        /// Runs by itself: it needs an input boundary and an output boundary.
        #[default]
        Runnable = "runnable",
        /// A part that tests look at.
        InternalTest = "internal_test",
    }
}

named! {
    /// Whose clock a timestamp is of.
    #[derive(Default)]
    pub enum Domain {
        /// The runtime's own, which never goes back.
        #[default]
        Steady = "steady",
        /// The time of day.
        System = "system",
        /// A device's.
        Device = "device",
        /// Somebody else's.
        External = "external",
    }
}

named! {
    /// How the components of a lane are called.
    pub enum LaneType {
        /// One after the other, in compiled order.
        EventLoop = "event_loop",
        /// One after the other, at each tick of a period.
        FixedRate = "fixed_rate",
        /// Several at once, on the workers of the system.
        ThreadPool = "thread_pool",
        /// One after the other, on a thread of the lane's own.
        IsolatedThread = "isolated_thread",
        /// One after the other, in epochs for which the host calls.
        ManualStep = "manual_step",
    }
}

named! {
    /// What a wall-clock lane does after a tick that took too long. All keep the phase.
    #[derive(Default)]
    pub enum OverrunPolicy {
        /// Missed ticks are dropped; the next is the next of the grid.
        #[default]
        DropTick = "drop_tick",
        /// As `drop_tick`, and one more is left out.
        SkipNext = "skip_next",
        /// One tick at once, then the grid again.
        CatchUpOnce = "catch_up_once",
    }
}

named! {
    /// What becomes of ready invocations beyond a pool lane's width and queue.
    #[derive(Default)]
    pub enum LaneOverflow {
        /// The newest are refused.
        #[default]
        Reject = "reject",
        /// The newest are refused.
        RejectNew = "reject_new",
        /// The newest are dropped.
        DropNewest = "drop_newest",
        /// The newest are refused; nothing waits inside an epoch.
        Block = "block",
        /// The oldest are dropped.
        DropOldest = "drop_oldest",
        /// The oldest are dropped.
        Overwrite = "overwrite",
        /// The run fails.
        FailFast = "fail_fast",
    }
}

named! {
    /// What happens if the operating system refuses what a lane asks of it.
    #[derive(Default)]
    pub enum OnPolicyError {
        /// The field stays advisory, with a diagnostic.
        #[default]
        Warn = "warn",
        /// The run does not start.
        Fail = "fail",
    }
}

/// A lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneSpec {
    /// Its id.
    pub id: String,
    /// Its type.
    pub lane_type: LaneType,
    /// Ticks a second, if `period_ms` is zero.
    pub hz: f64,
    /// Milliseconds between ticks.
    pub period_ms: u64,
    /// How long a tick may take; zero: the period.
    pub tick_budget_ms: u64,
    /// Ticks by the system's clock instead of simulated ones.
    pub wall_clock_enabled: bool,
    /// After a tick that took too long.
    pub overrun_policy: OverrunPolicy,
    /// Workers of a pool lane at once; zero: one.
    pub max_threads: u32,
    /// Ready invocations beyond the active ones.
    pub queue_capacity: u32,
    /// Beyond that.
    pub overflow: LaneOverflow,
    /// After this many picks of others a waiting region goes first; zero: never.
    pub aging_picks: u32,
    /// A callback that takes longer is reported; zero: none is.
    pub max_callback_ms: u64,
    /// Name of the lane's threads.
    pub thread_name: Option<String>,
    /// Advisory.
    pub priority: i64,
    /// Processors that the lane's own thread may use.
    pub cpu_affinity: Vec<u32>,
    /// Niceness of the lane's own thread.
    pub nice_priority: i64,
    /// `none`, `fifo` or `rr`.
    pub rt_policy: String,
    /// For `fifo` and `rr`.
    pub rt_priority: i64,
    /// Advisory.
    pub isolation_intent: String,
    /// What if the system refuses.
    pub on_policy_error: OnPolicyError,
    /// Where all that stands.
    pub marks: Marks,
}

impl LaneSpec {
    /// A lane with the defaults of the schema.
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
            marks: Marks::default(),
        }
    }

    /// Nanoseconds between ticks; zero: each epoch is a tick.
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
    /// What can make a component ready.
    #[derive(Default)]
    pub enum SourceType {
        /// Every epoch.
        #[default]
        Manual = "manual",
        /// A message at an input.
        Message = "message",
        /// A period.
        Timer = "timer",
        /// A message that asks for something.
        Request = "request",
        /// A task that has ended.
        TaskReady = "task_ready",
        /// A future that has ended.
        FutureReady = "future_ready",
    }
}

/// What can make a component ready.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventSourceSpec {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its type.
    pub source_type: SourceType,
    /// The inputs that it looks at (`input` is one of them).
    pub inputs: Vec<String>,
    /// Of a timer.
    pub period_ms: u64,
    /// Of a timer: its first tick after the start. Zero: at once.
    pub phase_ms: u64,
    /// Where all that stands.
    pub marks: Marks,
}

named! {
    /// When what is pending makes an invocation.
    #[derive(Default)]
    pub enum TriggerType {
        /// Every epoch.
        #[default]
        Manual = "manual",
        /// One message is enough.
        OnEvent = "on_event",
        /// One message is enough.
        AnyInput = "any_input",
        /// One message at each input.
        AllInputs = "all_inputs",
        /// One message at each input, with timestamps close to each other.
        TimeSync = "time_sync",
        /// So many messages, or so much time.
        Batch = "batch",
        /// A message that asks for something.
        Request = "request",
        /// A task that has ended.
        TaskReady = "task_ready",
        /// Messages that are not too far behind the newest.
        Watermark = "watermark",
        /// A fixed predicate.
        Condition = "condition",
        /// The newest message of each input.
        Debounce = "debounce",
        /// One message each interval.
        RateLimit = "rate_limit",
    }
}

named! {
    /// A fixed predicate of the `condition` trigger.
    #[derive(Default)]
    pub enum Condition {
        /// A message at each input.
        #[default]
        AllInputsReady = "all_inputs_ready",
        /// A message at one input.
        AnyInputReady = "any_input_ready",
        /// A message with a timestamp at each input.
        EventTimestampPresent = "event_timestamp_present",
    }
}

/// When what is pending makes an invocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TriggerSpec {
    /// Its type.
    pub trigger_type: TriggerType,
    /// The inputs that it looks at; none: those of the sources.
    pub inputs: Vec<String>,
    /// Messages in a batch.
    pub batch_size: u32,
    /// A batch is made when its oldest message is this old.
    pub batch_window_ms: u64,
    /// How far timestamps may be apart.
    pub sync_slop_ms: u64,
    /// The least time between invocations.
    pub min_interval_ms: u64,
    /// Messages that are older are dropped.
    pub max_latency_ms: u64,
    /// How far behind the newest timestamp a message may be.
    pub watermark_lateness_ms: u64,
    /// Must be zero in schema version 1.
    pub debounce_window_ms: u64,
    /// Of the `condition` trigger.
    pub condition: Condition,
    /// The newest message of each input instead of all of them.
    pub coalesce: bool,
    /// Where all that stands.
    pub marks: Marks,
}

named! {
    /// Which ready component goes first.
    #[derive(Default)]
    pub enum Priority {
        /// Before all others.
        High = "high",
        /// As usual.
        #[default]
        Normal = "normal",
        /// After those.
        Low = "low",
        /// When nothing else is ready.
        Background = "background",
    }
}

impl Priority {
    /// The higher, the earlier.
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
        /// The invocation is lost, the run goes on.
        Continue = "continue",
        /// The component is not called again.
        Isolate = "isolate",
        /// The component is made anew, after a backoff, so many times.
        Restart = "restart",
    }
}

/// What a failure does, and how often a component is made anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorPolicySpec {
    /// What happens.
    pub policy: ErrorPolicy,
    /// Restarts in the window; one more and the run stops.
    pub max_restarts: u32,
    /// The window; zero: the whole run.
    pub within_ms: u64,
    /// Before the first restart. It doubles with each.
    pub backoff_ms: u64,
    /// The longest.
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

/// How a component is called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionSpec {
    /// Its lane.
    pub lane: String,
    /// Invocations of it may overlap.
    pub reentrant: bool,
    /// Who goes first.
    pub priority: Priority,
    /// A longer call is reported; zero: none is.
    pub budget_ms: u64,
    /// What a failure does.
    pub on_error: ErrorPolicySpec,
    /// How many messages an invocation publishes on a blocking edge at most; zero: one.
    pub burst: u32,
}

named! {
    /// Whether a component stands at the border of the graph.
    #[derive(Default)]
    pub enum BoundaryRole {
        /// Inside.
        #[default]
        Processing = "processing",
        /// Where values come in.
        Input = "input",
        /// Where values go out.
        Output = "output",
        /// Both.
        InputOutput = "input_output",
    }
}

/// Whether a component stands at the border of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundarySpec {
    /// Its role.
    pub role: BoundaryRole,
    /// Free text.
    pub descriptor: String,
}

/// A component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComponentSpec {
    /// Its id; with the namespace of its subgraph or instance.
    pub id: String,
    /// The key of its type in the registry.
    pub component_type: String,
    /// What can make it ready. Never empty: without any it is `manual`.
    pub event_sources: Vec<EventSourceSpec>,
    /// When that makes an invocation.
    pub trigger: TriggerSpec,
    /// How it is called.
    pub execution: ExecutionSpec,
    /// Started after these.
    pub depends_on: Vec<String>,
    /// At the border?
    pub boundary: BoundarySpec,
    /// Its settings.
    pub config: ConfigMap,
    /// Where all that stands. Fields below one have its name before a dot: `execution.lane`,
    /// `trigger_policy.inputs`, `boundary.role`, `config`.
    pub marks: Marks,
}

named! {
    /// When what is published becomes visible.
    pub enum EdgeKind {
        /// In this epoch, when the region of the producer has ended.
        Immediate = "immediate",
        /// At the next epoch.
        Delay = "delay",
        /// At the next epoch; readers keep the old value until then.
        State = "state",
        /// At the next epoch, if so many are not under way already.
        Async = "async",
    }
}

named! {
    /// What a channel keeps.
    #[derive(Default)]
    pub enum Mode {
        /// The newest message.
        #[default]
        Latest = "latest",
        /// All, in order.
        Queue = "queue",
        /// All, in order.
        RingBuffer = "ring_buffer",
        /// The newest, for ever.
        Latched = "latched",
        /// All, once there are `capacity`.
        Barrier = "barrier",
        /// The newest of the epoch before.
        PreviousTick = "previous_tick",
    }
}

named! {
    /// What a full channel does.
    #[derive(Default)]
    pub enum Overflow {
        /// The oldest goes.
        #[default]
        Overwrite = "overwrite",
        /// The oldest goes.
        DropOldest = "drop_oldest",
        /// The newest is dropped.
        DropNewest = "drop_newest",
        /// The producer is not called while there is no room.
        Block = "block",
        /// The publication is refused, and the run fails.
        FailFast = "fail_fast",
        /// The publication is refused.
        Reject = "reject",
    }
}

named! {
    /// How a payload gets to several readers.
    #[derive(Default)]
    pub enum CopyPolicy {
        /// Each has its own.
        #[default]
        Copy = "copy",
        /// All have the same.
        SharedView = "shared_view",
        /// All have the same, of a buffer pool.
        LoanedView = "loaned_view",
        /// There is one reader, and it has it.
        MoveOnly = "move_only",
    }
}

named! {
    /// Who owns a payload.
    #[derive(Default)]
    pub enum Owner {
        /// The producer.
        Producer = "producer",
        /// The runtime.
        #[default]
        Runtime = "runtime",
        /// The consumer.
        Consumer = "consumer",
    }
}

named! {
    /// How many read a channel.
    #[derive(Default)]
    pub enum Readers {
        /// One.
        #[default]
        Single = "single",
        /// Several.
        Multi = "multi",
        /// Several.
        Multiple = "multiple",
    }
}

/// What a channel keeps, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgePolicy {
    /// What it keeps.
    pub mode: Mode,
    /// How many.
    pub capacity: u32,
    /// What if it is full.
    pub overflow: Overflow,
    /// Older messages are dropped before they are delivered; zero: none is.
    pub lifespan_ms: u64,
    /// Older messages are delivered with a flag; zero: none is.
    pub deadline_ms: u64,
    /// Messages of an `async` edge under way; zero: any number.
    pub max_inflight: u32,
    /// Whether the order of messages counts.
    pub preserve_order: bool,
    /// Whether messages may be dropped.
    pub allow_drop: bool,
    /// Whether health events are made.
    pub emit_health_events: bool,
    /// Whose clock the timestamps are of.
    pub timestamp_domain: Domain,
    /// How a payload gets to several readers.
    pub copy_policy: CopyPolicy,
    /// Who owns a payload.
    pub owner: Owner,
    /// How many read it.
    pub readers: Readers,
}

impl Default for EdgePolicy {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            capacity: 1,
            overflow: Overflow::default(),
            lifespan_ms: 0,
            deadline_ms: 0,
            max_inflight: 0,
            preserve_order: true,
            allow_drop: true,
            emit_health_events: true,
            timestamp_domain: Domain::default(),
            copy_policy: CopyPolicy::default(),
            owner: Owner::default(),
            readers: Readers::default(),
        }
    }
}

/// An edge.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeSpec {
    /// Its id; with the namespace of its subgraph or instance.
    pub id: String,
    /// When what is published becomes visible.
    pub kind: EdgeKind,
    /// `component.port`; the last dot separates them.
    pub from: String,
    /// `component.port`; the last dot separates them.
    pub to: String,
    /// What the channel keeps.
    pub policy: EdgePolicy,
    /// Where all that stands: `from`, `to`, `kind`, `policy.capacity` and so on.
    pub marks: Marks,
}

impl EdgeSpec {
    /// Component and port of an endpoint. Without a dot, the port is empty.
    #[must_use]
    pub fn split(endpoint: &str) -> (&str, &str) {
        endpoint.rsplit_once('.').unwrap_or((endpoint, ""))
    }
}

named! {
    /// What kind of loop it is.
    pub enum LoopType {
        /// Until nothing changes.
        FixedPoint = "fixed_point",
        /// All or nothing: if a member fails and the run goes on, nothing of the epoch is seen, and
        /// each member that offers its state gets back what it was before.
        Transaction = "transaction",
        /// Until the residual is small.
        SolverIteration = "solver_iteration",
        /// Each member is called once for all that has come, with the newest of each input.
        CoalescedEvent = "coalesced_event",
        /// One iteration an epoch; its immediate outputs are held until it ends.
        AsyncTask = "async_task",
    }
}

named! {
    /// When a loop has converged, beside what its members report.
    pub enum Convergence {
        /// After one iteration.
        SinglePass = "single_pass",
        /// After one iteration.
        AfterFirstIteration = "after_first_iteration",
        /// After each.
        Always = "always",
        /// When the outputs of an iteration equal those of the one before.
        StableState = "stable_state",
    }
}

named! {
    /// What becomes of the outputs of a loop that has not converged.
    pub enum PartialSuccess {
        /// They are published.
        CommitOutputs = "commit_outputs",
        /// They are thrown away.
        DiscardOutputs = "discard_outputs",
        /// The run fails.
        FailRun = "fail_run",
    }
}

named! {
    /// What a member of a loop sees of the others in one iteration.
    #[derive(Default)]
    pub enum LoopMode {
        /// What those before it have just published.
        #[default]
        GaussSeidel = "gauss_seidel",
        /// What they published in the iteration before; members may run at once.
        Jacobi = "jacobi",
    }
}

/// A composite loop: the owner of a cycle of immediate edges.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopSpec {
    /// Its id.
    pub id: String,
    /// Its members: exactly those of one cycle.
    pub components: Vec<String>,
    /// What kind of loop it is.
    pub loop_type: LoopType,
    /// Iterations in an epoch; zero: one.
    pub max_iterations: u32,
    /// Time in an epoch; zero: any.
    pub budget_ms: u64,
    /// When it has converged.
    pub convergence: Option<Convergence>,
    /// It has converged when the residual is not greater.
    pub residual_threshold: Option<f64>,
    /// What if it has not.
    pub partial_success: Option<PartialSuccess>,
    /// The order of its members; none: one that breaks few edges.
    pub order: Vec<String>,
    /// What a member sees of the others.
    pub mode: LoopMode,
    /// Reserved.
    pub max_inflight: u32,
    /// Reserved.
    pub drop_policy: Option<String>,
    /// Reserved.
    pub min_interval_ms: u64,
    /// Where all that stands: `components`, `loop_policy.type` and so on.
    pub marks: Marks,
}

impl LoopSpec {
    /// A loop with the defaults of the schema, without members.
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
            marks: Marks::default(),
        }
    }
}

/// What a subgraph or an instance of a template has become. For plans and pictures only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HierarchyEntry {
    /// The namespace.
    pub id: String,
    /// The template, if it is an instance of one.
    pub template: Option<String>,
    /// Ids of its components.
    pub components: Vec<String>,
    /// Ids of its edges.
    pub edges: Vec<String>,
    /// Ids of its loops.
    pub loops: Vec<String>,
}

/// A graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub kind: GraphKind,
    /// Its settings.
    pub config: ConfigMap,
    /// Whose clock the timestamps of events are of.
    pub event_domain: Domain,
    /// Its lanes, in the order of the file.
    pub lanes: Vec<LaneSpec>,
    /// Its components, in the order of the file; those of subgraphs and instances after them.
    pub components: Vec<ComponentSpec>,
    /// Its edges, likewise.
    pub edges: Vec<EdgeSpec>,
    /// Its loops, likewise.
    pub loops: Vec<LoopSpec>,
    /// What subgraphs and instances have become.
    pub hierarchy: Vec<HierarchyEntry>,
    /// Where `graph`, `graph.name` and so on stand.
    pub marks: Marks,
    /// The text it was read from.
    pub source: Option<Arc<Source>>,
}
