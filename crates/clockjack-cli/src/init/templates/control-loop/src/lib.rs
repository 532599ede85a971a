//! A tank with a leak, as a component of graphs.
//!
//! The derive makes the ports, the settings and what files are checked against. By hand there is
//! `execute` only.

use clockjack::graph::{Component, Execute, Failure, GraphContext, Input, Output, Registry};

/// The standard components, and those of this package.
#[must_use]
pub fn registry() -> Registry {
    Registry::standard().register::<Tank>()
}

/// `tank`: water that comes in by `inflow`, and leaves by a leak, the faster the more there is.
/// Called at each tick of its lane, it moves on by `dt` seconds.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "tank", title = "Tank")]
pub struct Tank {
    /// Litres a second. Nothing comes in before the first value.
    #[input]
    inflow: Input<f64>,
    /// Litres.
    #[output]
    level: Output<f64>,
    #[config(default = 0.01, min = 0.0)]
    dt: f64,
    #[config(default = 0.5, min = 0.0)]
    leak: f64,
    /// A field without a mark is the component's own.
    litres: f64,
}

impl Execute for Tank {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let inflow = cx.latest(self.inflow).copied().unwrap_or(0.0);
        self.litres += self.dt * (inflow - self.leak * self.litres);
        cx.publish(self.level, self.litres)?;
        Ok(())
    }
}
