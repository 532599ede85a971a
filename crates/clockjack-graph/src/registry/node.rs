//! Type-erased components.

use std::sync::Arc;

use clockjack_exec::Failure;

use crate::{
    component::{Binder, Config, ConfigError, Execute, ExecuteShared, Snapshot},
    run::GraphContext,
};

/// A type-erased component, as the run stores it.
pub(crate) enum ErasedComponent {
    /// One invocation at a time.
    Exclusive(Box<dyn ErasedNode>),
    /// Invocations may overlap. Operations that need exclusive access run between invocations.
    Shared(Arc<dyn ErasedSharedNode>),
    /// The component was removed.
    Removed,
}

/// The operations of any component, with exclusive access.
pub(crate) trait ErasedNode: Send {
    fn bind(&mut self, ports: &mut Binder<'_>);
    fn configure(&mut self, config: &Config) -> Result<(), ConfigError>;
    fn validate_config(&self, config: &Config) -> Result<(), ConfigError>;
    fn activate(&mut self) -> Result<(), Failure>;
    fn deactivate(&mut self) -> Result<(), Failure>;
    fn reset(&mut self) -> Result<(), Failure>;
    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure>;
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure>;
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure>;
}

/// The additional operation of a component whose invocations may overlap.
pub(crate) trait ErasedSharedNode: ErasedNode + Sync {
    fn execute_shared(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure>;
}

/// A component with one invocation at a time.
pub(crate) struct ExclusiveComponent<C>(C);

impl<C: Execute> ExclusiveComponent<C> {
    pub(crate) fn boxed(component: C) -> Box<dyn ErasedNode> {
        Box::new(Self(component))
    }
}

impl<C: Execute> ErasedNode for ExclusiveComponent<C> {
    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.0.bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.0.configure(config)
    }

    fn validate_config(&self, config: &Config) -> Result<(), ConfigError> {
        self.0.validate_config(config)
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.0.activate()
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.0.deactivate()
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.0.reset()
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure> {
        self.0.snapshot()
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        self.0.restore(snapshot)
    }

    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.0.execute(cx)
    }
}

/// A component whose invocations may overlap.
pub(crate) struct SharedComponent<C>(C);

impl<C: ExecuteShared> SharedComponent<C> {
    pub(crate) fn in_arc(component: C) -> Arc<dyn ErasedSharedNode> {
        Arc::new(Self(component))
    }
}

impl<C: ExecuteShared> ErasedNode for SharedComponent<C> {
    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.0.bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.0.configure(config)
    }

    fn validate_config(&self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.0.activate()
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.0.deactivate()
    }

    fn reset(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure> {
        Ok(None)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        crate::component::refuse_restore(C::TYPE, snapshot)
    }

    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.0.execute(cx)
    }
}

impl<C: ExecuteShared> ErasedSharedNode for SharedComponent<C> {
    fn execute_shared(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.0.execute(cx)
    }
}
