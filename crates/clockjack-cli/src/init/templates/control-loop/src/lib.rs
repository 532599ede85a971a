//! A leaking tank as a graph component.
//!
//! The derive macro generates the ports, the settings and the checks of graph files; only `execute`
//! is written by hand.

use clockjack::graph::{Component, Execute, Failure, GraphContext, Input, Output, Registry};

/// The standard components and those of this package.
#[must_use]
pub fn registry() -> Registry {
    Registry::standard().register::<Tank>()
}

/// `tank`: water flows in through `inflow` and out through a leak, faster at a higher level. Each
/// tick of its lane advances the tank by `dt` seconds.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "tank", title = "Tank")]
pub struct Tank {
    /// Litres per second; 0 before the first value.
    #[input]
    inflow: Input<f64>,
    /// Litres.
    #[output]
    level: Output<f64>,
    #[config(default = 0.01, min = 0.0)]
    dt: f64,
    #[config(default = 0.5, min = 0.0)]
    leak: f64,
    /// A field without an attribute is private state of the component.
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
