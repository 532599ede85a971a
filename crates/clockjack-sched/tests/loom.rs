//! Models of the scheduler's shared parts: run with `cargo xtask loom`.
#![cfg(loom)]

extern crate alloc;

#[path = "loom/close.rs"]
mod close;
#[path = "support/counting_task.rs"]
mod counting_task;
#[path = "loom/deliveries.rs"]
mod deliveries;
#[path = "support/host.rs"]
mod host;
#[path = "loom/jobs.rs"]
mod jobs;
#[path = "loom/quota.rs"]
mod quota;
#[path = "loom/stream.rs"]
mod stream;

/// Explores `f` with at most so many preemptions, or fewer if the environment says so.
fn model_within(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(model.preemption_bound.unwrap_or(usize::MAX).min(preemptions));
    model.check(f);
}
