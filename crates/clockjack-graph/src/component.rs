//! Components: their traits, ports and settings.

pub(crate) mod config;
mod descriptor;
pub(crate) mod port;

use clockjack_exec::Failure;

use crate::run::GraphContext;
pub use config::{Config, ConfigError};
pub use descriptor::{ConfigField, ConfigKind, Descriptor, Multiplicity, Need, PortDescriptor};
pub use port::{Binder, Input, InputPort, Output, OutputPort};

/// The type of a component: implemented by `#[derive(Component)]`.
pub trait Component: Send + 'static {
    /// The name of the type in a registry and in files.
    const TYPE: &'static str;

    /// The ports and settings of the type.
    fn describe() -> Descriptor;

    /// Stores the keys of the component's ports.
    fn bind(&mut self, ports: &mut Binder<'_>);

    /// Applies the settings: before activation, and at each change after it.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if the settings are not acceptable.
    fn configure(&mut self, config: &Config) -> Result<(), ConfigError>;
}

/// The behaviour of a component that executes one invocation at a time.
pub trait Execute: Component {
    /// Executes one invocation.
    ///
    /// # Errors
    ///
    /// A failure: the published messages are discarded, and `on_error` decides what follows.
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure>;

    /// Called before the first invocation, after the activation of its dependencies.
    ///
    /// # Errors
    ///
    /// A failure: the run does not start, and components that are already active are deactivated.
    fn activate(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Called after the last invocation, before the deactivation of its dependencies.
    ///
    /// # Errors
    ///
    /// A failure: it is reported, and the other components are deactivated nevertheless.
    fn deactivate(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Resets the component to its state at activation.
    ///
    /// # Errors
    ///
    /// A failure: the run does not start.
    fn reset(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// The state of the component, if it supports snapshots.
    ///
    /// # Errors
    ///
    /// A failure: it is reported and counted.
    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure> {
        Ok(None)
    }

    /// Restores a state that [`snapshot`](Self::snapshot) returned.
    ///
    /// # Errors
    ///
    /// A failure: the run does not start. By default only an empty state is accepted.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        refuse_restore(Self::TYPE, snapshot)
    }

    /// Checks new settings without applying them.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: the whole change is refused.
    fn validate_config(&self, config: &Config) -> Result<(), ConfigError> {
        let _ = config;
        Ok(())
    }
}

/// The behaviour of a reentrant component, whose invocations may overlap.
pub trait ExecuteShared: Component + Sync {
    /// Executes one invocation.
    ///
    /// # Errors
    ///
    /// A failure: the published messages are discarded, and `on_error` decides what follows.
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure>;

    /// Called before the first invocation, after the activation of its dependencies.
    ///
    /// # Errors
    ///
    /// A failure: the run does not start.
    fn activate(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Called after the last invocation.
    ///
    /// # Errors
    ///
    /// A failure: it is reported.
    fn deactivate(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The saved state of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The type of the component. A snapshot of another type is refused.
    pub component_type: String,
    /// The version of the format, as defined by the component.
    pub version: u32,
    /// The encoded state.
    pub payload: Vec<u8>,
}

pub(crate) fn refuse_restore(
    component_type: &'static str,
    snapshot: &Snapshot,
) -> Result<(), Failure> {
    if snapshot.payload.is_empty() {
        Ok(())
    } else {
        Err(Failure::msg(format!("`{component_type}` has no state to restore")))
    }
}
