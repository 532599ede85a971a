//! Running a plan.

pub mod context;
pub(crate) mod env;
pub(crate) mod message;
pub(crate) mod outbox;
pub mod tasks;

pub use context::{GraphContext, LoopIteration, PublishError};
pub use message::Stamp;
pub use tasks::TaskRefused;
