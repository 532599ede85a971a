//! A component that does what a test tells it, and graphs of it.

use alloc::sync::Arc;

use clockjack_graph::describe::GraphFile;
use clockjack_graph::{
    Binder, Component, Config, ConfigError, Descriptor, Execute, Failure, Graph, GraphContext,
    Input, InputPort, Need, Output, OutputPort, Registry,
};

/// What it does when it is called.
pub(crate) type Act = Arc<
    dyn Fn(&mut GraphContext<'_>, Input<f64>, Output<f64>) -> Result<(), Failure> + Send + Sync,
>;

/// A component that does what a test tells it.
pub(crate) struct Acts {
    act: Act,
    a: Input<f64>,
    out: Output<f64>,
}

impl Acts {
    const A: InputPort<f64> = InputPort::new("a");
    const OUT: OutputPort<f64> = OutputPort::new("out");
}

impl Component for Acts {
    const TYPE: &'static str = "acts";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE).inputs(Self::A, Need::Optional).output(Self::OUT)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.a = ports.input(Self::A);
        self.out = ports.output(Self::OUT);
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Execute for Acts {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        (self.act)(cx, self.a, self.out)
    }
}

/// Adds the type to a registry.
pub(crate) fn with_acts(registry: Registry, act: Act) -> Registry {
    let make = move || Acts { act: Arc::clone(&act), a: Input::default(), out: Output::default() };
    registry.register_with(make)
}

/// A graph of this text.
pub(crate) fn compile(text: &str, registry: &Registry) -> Graph {
    let file = GraphFile::parse("t.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    file.compile(registry).unwrap_or_else(|faults| panic!("{faults:#?}"))
}
