//! The common parts of the components of random graphs.

use core::{future::poll_fn, task::Poll};

use clockjack_graph::{
    Binder, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor, Execute,
    ExecuteShared, Failure, GraphContext, Input, InputPort, Need, Output, OutputPort, Registry,
};

/// The configured behaviour of a component.
#[derive(Clone, Copy, Debug, Default)]
pub struct BehaviorConfig {
    /// The component fails when its digest is a multiple of this; zero means never.
    pub fails: u64,
    /// The same for a panic.
    pub panics: u64,
    /// Messages per invocation.
    pub burst: u64,
    /// The component submits a task when its digest is a multiple of this.
    pub tasks: u64,
    /// Publishes half of its input, so that a loop converges.
    pub halves: bool,
    /// Reports convergence to its loop.
    pub reports: bool,
}

impl BehaviorConfig {
    fn describe(descriptor: Descriptor) -> Descriptor {
        let numbers = ["fails", "panics", "burst", "tasks"];
        let numbers = numbers.map(|name| ConfigField::new(name, ConfigKind::Int));
        let flags = ["halves", "reports"].map(|name| ConfigField::new(name, ConfigKind::Bool));
        numbers.into_iter().chain(flags).fold(descriptor, Descriptor::config)
    }

    fn of(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            fails: config.get("fails")?.unwrap_or(0),
            panics: config.get("panics")?.unwrap_or(0),
            burst: config.get("burst")?.unwrap_or(1),
            tasks: config.get("tasks")?.unwrap_or(0),
            halves: config.get("halves")?.unwrap_or(false),
            reports: config.get("reports")?.unwrap_or(false),
        })
    }
}

/// Whether `n` triggers a [configured behaviour](BehaviorConfig); never if `of` is zero.
#[must_use]
pub fn is_multiple(n: u64, of: u64) -> bool {
    of > 0 && n.is_multiple_of(of)
}

/// The ports of both types.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "named and described in the module above")]
pub struct Ports {
    pub a: Input<u64>,
    pub b: Input<u64>,
    pub s: Input<u64>,
    pub t: Input<String>,
    pub out: Output<u64>,
    pub side: Output<u64>,
    pub text: Output<String>,
    pub done: Output<u64>,
}

impl Ports {
    const A: InputPort<u64> = InputPort::new("a");
    const B: InputPort<u64> = InputPort::new("b");
    const S: InputPort<u64> = InputPort::new("s");
    const T: InputPort<String> = InputPort::new("t");
    const OUT: OutputPort<u64> = OutputPort::new("out");
    const SIDE: OutputPort<u64> = OutputPort::new("side");
    const TEXT: OutputPort<String> = OutputPort::new("text");
    const DONE: OutputPort<u64> = OutputPort::new("done");

    fn describe(component_type: &str) -> Descriptor {
        Descriptor::new(component_type)
            .inputs(Self::A, Need::Optional)
            .inputs(Self::B, Need::Optional)
            .input(Self::S, Need::Optional)
            .inputs(Self::T, Need::Optional)
            .output(Self::OUT)
            .output(Self::SIDE)
            .output(Self::TEXT)
            .output(Self::DONE)
    }

    fn bind(ports: &mut Binder<'_>) -> Self {
        Self {
            a: ports.input(Self::A),
            b: ports.input(Self::B),
            s: ports.input(Self::S),
            t: ports.input(Self::T),
            out: ports.output(Self::OUT),
            side: ports.output(Self::SIDE),
            text: ports.output(Self::TEXT),
            done: ports.output(Self::DONE),
        }
    }
}

/// The ports and the behaviour of a component.
#[derive(Clone, Copy, Debug, Default)]
pub struct TestComponentConfig {
    /// The configured behaviour.
    pub behavior: BehaviorConfig,
    /// The ports.
    pub ports: Ports,
}

impl TestComponentConfig {
    fn describe(component_type: &str) -> Descriptor {
        BehaviorConfig::describe(Ports::describe(component_type))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.ports = Ports::bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.behavior = BehaviorConfig::of(config)?;
        Ok(())
    }
}

/// The logic of the components of random graphs.
pub trait TestLogic: 'static {
    /// State that each component owns for its whole lifetime.
    type Resources: Default + Send + Sync + 'static;

    /// Executes one invocation and returns a digest of everything seen so far, including `digest`.
    ///
    /// # Errors
    ///
    /// The failure of the component.
    fn call(
        config: TestComponentConfig,
        cx: &mut GraphContext<'_>,
        digest: u64,
    ) -> Result<u64, Failure>;
}

/// Both component types with this logic.
#[must_use]
pub fn registry<C: TestLogic>() -> Registry {
    Registry::new().register::<Mixer<C>>().register_shared::<Pure<C>>()
}

/// Keeps a digest of everything that it has seen.
struct Mixer<C: TestLogic> {
    _resources: C::Resources,
    digest: u64,
    config: TestComponentConfig,
}

impl<C: TestLogic> Default for Mixer<C> {
    fn default() -> Self {
        Self {
            _resources: C::Resources::default(),
            digest: 0,
            config: TestComponentConfig::default(),
        }
    }
}

impl<C: TestLogic> Component for Mixer<C> {
    const TYPE: &'static str = "mixer";

    fn describe() -> Descriptor {
        TestComponentConfig::describe(Self::TYPE)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.config.bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.config.configure(config)
    }
}

impl<C: TestLogic> Execute for Mixer<C> {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.digest = C::call(self.config, cx, self.digest)?;
        Ok(())
    }
}

/// Digests each invocation by itself; invocations may overlap.
struct Pure<C: TestLogic>(Mixer<C>);

impl<C: TestLogic> Default for Pure<C> {
    fn default() -> Self {
        Self(Mixer::default())
    }
}

impl<C: TestLogic> Component for Pure<C> {
    const TYPE: &'static str = "pure";

    fn describe() -> Descriptor {
        TestComponentConfig::describe(Self::TYPE)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.0.bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.0.configure(config)
    }
}

impl<C: TestLogic> ExecuteShared for Pure<C> {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        C::call(self.0.config, cx, 1).map(drop)
    }
}

/// The task of a component: it is polled `polls_left` more times and then returns the value. Some
/// values make it fail.
///
/// # Errors
///
/// A failure for certain values.
pub async fn task(value: u64, mut polls_left: u64) -> Result<u64, Failure> {
    poll_fn(|cx| {
        if polls_left == 0 {
            return Poll::Ready(());
        }
        polls_left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    if is_multiple(value, 11) { Err(Failure::msg("the task fails")) } else { Ok(value) }
}
