//! What computes: a component, its ports, its settings.

pub mod config;
pub mod descriptor;
pub mod port;

use clockjack_exec::Failure;

use crate::run::GraphContext;
pub use config::{Config, ConfigError};
pub use descriptor::{ConfigField, ConfigKind, Descriptor, Multiplicity, Need, PortDescriptor};
pub use port::{Binder, Input, InputPort, Output, OutputPort};

/// What a component is: written by `#[derive(Component)]`.
pub trait Component: Send + 'static {
    /// The key of its type in a registry and in files.
    const TYPE: &'static str;

    /// Its ports and settings.
    fn describe() -> Descriptor;

    /// Takes the keys of its ports.
    fn bind(&mut self, ports: &mut Binder<'_>);

    /// Takes its settings: before it is activated, and at each change after.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if it cannot work with them.
    fn configure(&mut self, config: &Config) -> Result<(), ConfigError>;
}

/// What a component does. One invocation at a time.
pub trait Execute: Component {
    /// One invocation.
    ///
    /// # Errors
    ///
    /// A failure: what it has published is thrown away, and its `on_error` decides what follows.
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure>;

    /// Before the first invocation, after those that it depends on.
    ///
    /// # Errors
    ///
    /// A failure: the run does not start, and those that were activated are deactivated.
    fn activate(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// After the last invocation, before those that it depends on.
    ///
    /// # Errors
    ///
    /// A failure: it is reported, the others are deactivated all the same.
    fn deactivate(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Back to what it was when it was activated.
    ///
    /// # Errors
    ///
    /// A failure: the run does not start.
    fn reset(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Its state, if it has one that can be written down.
    ///
    /// # Errors
    ///
    /// A failure: it is reported and counted.
    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure> {
        Ok(None)
    }

    /// Takes a state that [`snapshot`](Self::snapshot) gave.
    ///
    /// # Errors
    ///
    /// A failure: the run does not start. By default anything but an empty state is refused.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        refuse_restore(Self::TYPE, snapshot)
    }

    /// Looks at new settings without taking them.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: the whole change is refused.
    fn validate_config(&self, config: &Config) -> Result<(), ConfigError> {
        let _ = config;
        Ok(())
    }
}

/// What a reentrant component does: invocations may overlap.
pub trait ExecuteShared: Component + Sync {
    /// One invocation.
    ///
    /// # Errors
    ///
    /// A failure: what it has published is thrown away, and its `on_error` decides what follows.
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure>;

    /// Before the first invocation, after those that it depends on.
    ///
    /// # Errors
    ///
    /// A failure: the run does not start.
    fn activate(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// After the last invocation.
    ///
    /// # Errors
    ///
    /// A failure: it is reported.
    fn deactivate(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The state of a component, written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The type of the component. Another type's is refused.
    pub component_type: String,
    /// The version of the format, as the component counts.
    pub version: u32,
    /// The state.
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
