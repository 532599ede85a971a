//! Components whose results are a digest of everything they see, and that take a different time in
//! each run. Nothing here reads a clock: the delays come from a number that the runner sets.

use core::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering},
};
use std::{panic::resume_unwind, thread::yield_now};

use clockjack_graph::{Failure, GraphContext, Stamp, describe::ClockDomain};
use clockjack_sim::random_graph::{Ports, TestComponentConfig, TestLogic, is_multiple, mix, task};

/// What the delays of a run are drawn from: the results must not depend on it.
static DELAYS: AtomicU64 = AtomicU64::new(0);

/// Components that take their time now.
static AT_WORK: AtomicU64 = AtomicU64::new(0);

/// How often a component may still check whether another one runs concurrently. A thread for it
/// must be woken first, and most calls would be over by then.
static PATIENCE: AtomicU64 = AtomicU64::new(0);

/// Lets the components of the next run take other times, and wait so often for company.
pub(crate) fn set_delays(seed: u64, patience: u64) {
    DELAYS.store(seed, Ordering::SeqCst);
    PATIENCE.store(patience, Ordering::SeqCst);
}

/// Takes some time, another in each run.
fn dawdle(cx: &GraphContext<'_>) {
    let mut drawn = mix(DELAYS.load(Ordering::Relaxed), cx.epoch());
    for byte in cx.component_id().bytes() {
        drawn = mix(drawn, byte.into());
    }
    AT_WORK.fetch_add(1, Ordering::Relaxed);
    while AT_WORK.load(Ordering::Relaxed) < 2 {
        let less = |left: u64| left.checked_sub(1);
        if PATIENCE.try_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            break;
        }
        yield_now();
    }
    for _ in 0..drawn % 4 {
        yield_now();
    }
    for _ in 0..(drawn >> 8) % 2_000 {
        spin_loop();
    }
    if AT_WORK.fetch_sub(1, Ordering::Relaxed) > 1 {
        // Once in a run is enough.
        PATIENCE.store(0, Ordering::Relaxed);
    }
}

/// A digest of all that an invocation shows.
fn look(ports: Ports, cx: &mut GraphContext<'_>, mut digest: u64) -> u64 {
    digest = mix(digest, cx.epoch());
    digest = mix(digest, u64::try_from(cx.now().as_nanos()).unwrap());
    digest = mix(digest, cx.missed_runs());
    digest = mix(digest, cx.loop_iteration().map_or(99, |one| one.index.into()));
    for port in [ports.a, ports.b, ports.s] {
        digest = mix(digest, cx.latest(port).copied().unwrap_or(7));
        digest = mix(digest, u64::from(cx.is_late(port)));
        digest = mix(digest, cx.stamp(port).map_or(3, |stamp| stamp.ns));
        for value in cx.drain(port) {
            digest = mix(digest, *value);
        }
    }
    for text in cx.drain(ports.t) {
        digest = text.bytes().fold(digest, |digest, byte| mix(digest, byte.into()));
    }
    digest
}

/// Publishes and does what the habits say.
fn act(
    config: TestComponentConfig,
    cx: &mut GraphContext<'_>,
    digest: u64,
) -> Result<u64, Failure> {
    let TestComponentConfig { behavior, ports } = config;
    let mut digest = digest;
    let halved = cx.latest(ports.a).map_or(digest % 64, |value| value % 64 / 2);
    for nth in 0..behavior.burst.max(1) {
        let value = if behavior.halves { halved } else { mix(digest, nth) };
        let refused = if is_multiple(digest, 2) {
            let ns = cx.epoch() * 1_000_000 + digest % 5_000_000;
            let stamp = Stamp { domain: ClockDomain::Steady, ns };
            cx.publish_stamped(ports.out, value, stamp).is_err()
        } else {
            cx.publish(ports.out, value).is_err()
        };
        digest = mix(digest, u64::from(refused));
    }
    if is_multiple(digest, 3) {
        digest = mix(digest, u64::from(cx.publish(ports.side, digest).is_err()));
    }
    if is_multiple(digest, 2) {
        let text = format!("{}:{digest:x}", cx.component_id());
        digest = mix(digest, u64::from(cx.publish(ports.text, text).is_err()));
    }
    if is_multiple(digest, behavior.tasks) {
        let n_polls = mix(DELAYS.load(Ordering::Relaxed), digest) % 5;
        let refused = cx.submit_task(ports.done, task(!digest, n_polls)).is_err();
        digest = mix(digest, u64::from(refused));
    }
    if behavior.reports {
        #[expect(clippy::cast_precision_loss, reason = "it is below a hundred")]
        let residual = (digest % 100) as f64;
        cx.report_loop_convergence(is_multiple(digest, 5), Some(residual), "reported");
    }
    dawdle(cx);
    if is_multiple(digest, behavior.fails) {
        return Err(Failure::msg(format!("told to fail: {digest:x}")));
    }
    if is_multiple(digest, behavior.panics) {
        // It goes past the hook, which would print it.
        resume_unwind(Box::new("told to panic"));
    }
    Ok(digest)
}

/// Components that look, act and take their time.
pub(crate) struct Digests;

impl TestLogic for Digests {
    type Resources = ();

    fn call(
        config: TestComponentConfig,
        cx: &mut GraphContext<'_>,
        digest: u64,
    ) -> Result<u64, Failure> {
        let seen = look(config.ports, cx, digest);
        act(config, cx, seen)
    }
}
