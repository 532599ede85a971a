//! A component that does what a test tells it, and graphs of it.

use std::sync::Arc;

use clockjack_graph::{
    Component, Execute, Failure, Graph, GraphContext, Input, Output, Registry, describe::GraphFile,
};

/// What it does when it is called.
pub(crate) type Act = Arc<
    dyn Fn(&mut GraphContext<'_>, Input<f64>, Output<f64>) -> Result<(), Failure> + Send + Sync,
>;

/// A component that does what a test tells it.
#[derive(Component)]
#[component(type = "acts")]
pub(crate) struct Acts {
    act: Act,
    #[input(optional, multiple)]
    a: Input<f64>,
    #[output]
    out: Output<f64>,
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
