//! Services of an actor system: events, receptionist, routers and scheduler.

pub mod events;
pub mod receptionist;
pub mod router;
pub mod scheduler;
pub mod scheduler_dump;
