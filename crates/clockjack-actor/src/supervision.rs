//! Failures: strategies, descriptions, escalation, subscribers, and handlers that are stuck.

pub mod escalation;
pub mod failure_info;
pub mod hub;
pub mod strategy;
pub mod stuck;
