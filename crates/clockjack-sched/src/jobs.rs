//! Jobs: their specification, state, storage and execution, up to the shard that threads share.

pub(crate) mod batch;
pub(crate) mod delay;
pub(crate) mod delivery;
pub(crate) mod policy;
pub(crate) mod quota;
pub(crate) mod shard;
pub(crate) mod slots;
pub(crate) mod spec;
pub(crate) mod state;
pub(crate) mod table;
pub(crate) mod task;
