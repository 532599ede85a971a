//! The engine: runs epochs. A [`domain`] decides when an epoch runs; [`epoch`] explains how an
//! epoch commits; a [`region`] calls components; [`helpers`] run regions in parallel.

pub(crate) mod batch;
pub(crate) mod call_cost;
pub(crate) mod chains;
pub(crate) mod context;
pub(crate) mod context_error;
pub(crate) mod current_position;
pub(crate) mod domain;
pub(crate) mod env;
pub(crate) mod epoch;
pub(crate) mod helpers;
pub(crate) mod lanes;
pub(crate) mod loops;
pub(crate) mod members;
pub(crate) mod node;
pub(crate) mod region;
pub(crate) mod step_kind;
