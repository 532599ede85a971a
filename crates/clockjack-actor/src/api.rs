//! What user code sees of actors: definition, addresses, contexts, questions, timers and futures.

pub mod actor;
pub mod actor_ref;
pub mod adapter;
pub mod ask;
pub mod context;
pub mod error;
pub mod futures;
pub mod path;
pub mod props;
pub mod receive_timeout;
pub mod reply;
pub mod system_message;
pub mod timers;
