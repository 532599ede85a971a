//! Models of the scheduler's shared parts: run with `cargo xtask loom`.
#![cfg(loom)]

extern crate alloc;

#[path = "loom/close.rs"]
mod close;
#[path = "support/host.rs"]
mod host;
#[path = "loom/jobs.rs"]
mod jobs;
#[path = "loom/parcels.rs"]
mod parcels;
#[path = "loom/quota.rs"]
mod quota;
#[path = "loom/stream.rs"]
mod stream;
#[path = "support/told.rs"]
mod told;

/// Explores `f` with at most so many preemptions, or fewer if the environment says so.
fn model_within(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(model.preemption_bound.unwrap_or(usize::MAX).min(preemptions));
    model.check(f);
}
