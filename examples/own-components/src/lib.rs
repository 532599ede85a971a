//! Three components, and a registry that contains them and the standard components. This is an
//! example to read, not a library to depend on.
//!
//! The derive generates the ports and the settings, the description that the compiler checks files
//! against, and the text that `clockjack explain` prints. Only `execute` is written by hand.

use std::io::{self, Write as _};

use clockjack_graph::{
    Component, Config, ConfigError, Execute, Failure, GraphContext, Input, LogLevel, Output,
    Registry, Stamp, describe::ClockDomain,
};

/// The standard components and the components of this package.
#[must_use]
pub fn registry() -> Registry {
    Registry::standard().register::<Thermometer>().register::<Thermostat>().register::<Panel>()
}

/// `thermometer`: a room that warms up by `rise` per call. Its values have timestamps of its own
/// clock, and every `late_every`-th value arrives `late_ms` late.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "thermometer", title = "Thermometer", role = "input")]
pub struct Thermometer {
    /// Degrees.
    #[output]
    degrees: Output<f64>,
    #[config(default = 15.0)]
    start: f64,
    #[config(default = 0.25)]
    rise: f64,
    #[config(default = 0, min = 0)]
    late_every: u64,
    #[config(default = 50, min = 0)]
    late_ms: u64,
    /// A field without an attribute is private state.
    n: u32,
}

impl Execute for Thermometer {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let degrees = self.start + self.rise * f64::from(self.n);
        self.n += 1;
        // The time of the run, never that of the machine: so the run is reproducible.
        let now_ns = u64::try_from(cx.now().as_nanos())?;
        let is_late = self.late_every > 0 && u64::from(self.n).is_multiple_of(self.late_every);
        let age_ns = if is_late { self.late_ms * 1_000_000 } else { 0 };
        let stamp = Stamp { domain: ClockDomain::Device, ns: now_ns.saturating_sub(age_ns) };
        cx.publish_stamped(self.degrees, degrees, stamp)?;
        Ok(())
    }
}

/// `thermostat`: switches to 1 when it is colder than `low` and to 0 when it is warmer than `high`.
/// It publishes changes only.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "thermostat", title = "Thermostat")]
pub struct Thermostat {
    /// Degrees.
    #[input]
    degrees: Input<f64>,
    /// Whether to heat.
    #[output]
    heat: Output<f64>,
    #[config(default = 18.0)]
    low: f64,
    #[config(default = 21.0)]
    high: f64,
    is_on: Option<bool>,
}

impl Execute for Thermostat {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let Some(degrees) = cx.update(self.degrees).copied() else { return Ok(()) };
        let was_on = self.is_on;
        if degrees < self.low {
            self.is_on = Some(true);
        } else if degrees > self.high || was_on.is_none() {
            self.is_on = Some(false);
        }
        if self.is_on != was_on {
            let heat = if self.is_on == Some(true) { 1.0 } else { 0.0 };
            // `run --log info` prints this. Without the option nothing is formatted.
            cx.log(LogLevel::Info, format_args!("{degrees:.1} degrees"));
            cx.publish(self.heat, heat)?;
        }
        Ok(())
    }

    // Checks conditions on several settings: before a run, and before each change during a run.
    fn activate(&mut self) -> Result<(), Failure> {
        Ok(in_order(self.low, self.high)?)
    }

    fn validate_config(&self, config: &Config) -> Result<(), ConfigError> {
        in_order(config.get("low")?.unwrap_or(18.0), config.get("high")?.unwrap_or(21.0))
    }
}

/// `panel`: writes a line to standard error for each value. Standard output is reserved for the
/// result of the command, so that programs can read it.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "panel", title = "Panel", role = "output")]
pub struct Panel {
    /// What to show.
    #[input]
    heat: Input<f64>,
}

impl Execute for Panel {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if let Some(heat) = cx.update(self.heat).copied() {
            writeln!(io::stderr(), "at {:?}: heat {heat}", cx.now())?;
        }
        Ok(())
    }
}

fn in_order(low: f64, high: f64) -> Result<(), ConfigError> {
    if low <= high {
        Ok(())
    } else {
        Err(ConfigError::new("high", format!("{high} is below `low`, {low}")))
    }
}
