//! What the components of a random graph have in common, whoever writes what they do.

use alloc::string::String;

use crate::{
    Binder, Config, ConfigError, ConfigField, ConfigKind, Descriptor, Input, InputPort, Need,
    Output, OutputPort,
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

/// Ports and habits of a component, for its type to delegate to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fittings {
    /// Set by [`configure`](Self::configure).
    pub habits: Habits,
    /// Set by [`bind`](Self::bind).
    pub ports: Ports,
}

impl Fittings {
    /// What a component of this type has.
    #[must_use]
    pub fn describe(component_type: &str) -> Descriptor {
        Habits::describe(Ports::describe(component_type))
    }

    /// Takes the ports.
    pub fn bind(&mut self, ports: &mut Binder<'_>) {
        self.ports = Ports::bind(ports);
    }

    /// Takes the habits.
    ///
    /// # Errors
    ///
    /// If a setting is of another kind.
    pub fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.habits = Habits::of(config)?;
        Ok(())
    }
}
