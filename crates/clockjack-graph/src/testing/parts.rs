//! What the components of a random graph have in common, whoever writes what they do.

use core::{future::poll_fn, task::Poll};

use crate::{
    Binder, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor, Execute,
    ExecuteShared, Failure, GraphContext, Input, InputPort, Need, Output, OutputPort, Registry,
};

/// What a component does beside its digest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// It fails when its digest is a multiple of this; zero: never.
    pub fails: u64,
    /// The same, for a panic.
    pub panics: u64,
    /// Messages at once.
    pub burst: u64,
    /// It submits a task when its digest is a multiple of this.
    pub tasks: u64,
    /// It publishes half of what comes, so that a loop settles.
    pub halves: bool,
    /// It says of its loop how far that is.
    pub reports: bool,
}

impl Habits {
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

/// Whether it is time for something that a [habit](Habits) says; never if the habit is zero.
#[must_use]
pub fn is_multiple(n: u64, of: u64) -> bool {
    of > 0 && n.is_multiple_of(of)
}

/// The ports, which both types have.
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

/// Ports and habits of a component.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fittings {
    /// What it does beside its digest.
    pub habits: Habits,
    /// Where it gets and puts messages.
    pub ports: Ports,
}

impl Fittings {
    fn describe(component_type: &str) -> Descriptor {
        Habits::describe(Ports::describe(component_type))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.ports = Ports::bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.habits = Habits::of(config)?;
        Ok(())
    }
}

/// What the components of a random graph do.
pub trait Conduct: 'static {
    /// What each component has with it for as long as it lives.
    type Luggage: Default + Send + Sync + 'static;

    /// One call; it gives a digest of all that it has seen, that before it included.
    ///
    /// # Errors
    ///
    /// The component's own.
    fn call(fittings: Fittings, cx: &mut GraphContext<'_>, digest: u64) -> Result<u64, Failure>;
}

/// Both types of components, which behave like this.
#[must_use]
pub fn registry<C: Conduct>() -> Registry {
    Registry::new().register::<Mixer<C>>().register_shared::<Pure<C>>()
}

/// Keeps a digest of all that it has ever seen.
struct Mixer<C: Conduct> {
    _luggage: C::Luggage,
    digest: u64,
    fittings: Fittings,
}

impl<C: Conduct> Default for Mixer<C> {
    fn default() -> Self {
        Self { _luggage: C::Luggage::default(), digest: 0, fittings: Fittings::default() }
    }
}

impl<C: Conduct> Component for Mixer<C> {
    const TYPE: &'static str = "mixer";

    fn describe() -> Descriptor {
        Fittings::describe(Self::TYPE)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.fittings.bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.fittings.configure(config)
    }
}

impl<C: Conduct> Execute for Mixer<C> {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.digest = C::call(self.fittings, cx, self.digest)?;
        Ok(())
    }
}

/// Digests one call at a time, and may do so with several at once.
struct Pure<C: Conduct>(Mixer<C>);

impl<C: Conduct> Default for Pure<C> {
    fn default() -> Self {
        Self(Mixer::default())
    }
}

impl<C: Conduct> Component for Pure<C> {
    const TYPE: &'static str = "pure";

    fn describe() -> Descriptor {
        Fittings::describe(Self::TYPE)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.0.bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.0.configure(config)
    }
}

impl<C: Conduct> ExecuteShared for Pure<C> {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        C::call(self.0.fittings, cx, 1).map(drop)
    }
}

/// What a task of a component does: it is polled so many times more, and then ends with this value,
/// or now and then fails.
///
/// # Errors
///
/// If the value says so.
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
