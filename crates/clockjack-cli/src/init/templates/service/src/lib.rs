//! A service that keeps notes: one actor per session, and HTTP in front of the actors.
//!
//! The actors know nothing of HTTP, and HTTP knows nothing of their state, so each is tested
//! without the other, in virtual time.

pub mod http;
pub mod sessions;
