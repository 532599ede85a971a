//! A component of which only itself knows the type.

use std::sync::Arc;

use clockjack_exec::Failure;

use crate::{
    component::{Binder, Config, ConfigError, Execute, ExecuteShared, Snapshot},
    run::GraphContext,
};

/// A component, as the run has it.
pub(crate) enum Body {
    /// One invocation at a time.
    Own(Box<dyn Node>),
    /// Invocations may overlap. What changes it needs it alone, so it comes between them.
    Shared(Arc<dyn SharedNode>),
    /// It was taken down.
    Gone,
}

/// What can be done with any component, one at a time.
pub(crate) trait Node: Send {
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

/// The same for one whose invocations may overlap.
pub(crate) trait SharedNode: Node + Sync {
    fn execute_shared(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure>;
}

/// A component that is called one at a time.
pub(crate) struct Own<C>(C);

impl<C: Execute> Own<C> {
    pub(crate) fn boxed(component: C) -> Box<dyn Node> {
        Box::new(Self(component))
    }
}

impl<C: Execute> Node for Own<C> {
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
pub(crate) struct Shared<C>(C);

impl<C: ExecuteShared> Shared<C> {
    pub(crate) fn counted(component: C) -> Arc<dyn SharedNode> {
        Arc::new(Self(component))
    }
}

impl<C: ExecuteShared> Node for Shared<C> {
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

impl<C: ExecuteShared> SharedNode for Shared<C> {
    fn execute_shared(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.0.execute(cx)
    }
}
