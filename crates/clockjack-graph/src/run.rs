//! Running a plan.

pub mod context;
pub(crate) mod message;

pub use context::GraphContext;
