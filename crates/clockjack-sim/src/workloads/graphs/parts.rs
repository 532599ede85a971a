//! The components: their outputs are a digest of all their inputs, and their faults depend on that
//! digest.

use core::{cell::RefCell, time::Duration};

use clockjack_exec::Handle;
use clockjack_graph::{Failure, GraphContext, Stamp, describe::ClockDomain};

use super::oracle::{COMMON, RunState, RunningCall};
use crate::{
    host::multi_worker::interleave,
    random_graph::{Ports, TestComponentConfig, TestLogic, is_multiple, mix, task},
    run::inject_panic,
};

std::thread_local! {
    /// The run of this thread, and its executor.
    static HERE: RefCell<Option<(RunState, Handle)>> = const { RefCell::new(None) };
}

/// From now on, components on this thread belong to this run.
pub(super) fn set_run_state(of: Option<(RunState, Handle)>) {
    HERE.set(of);
}

fn here() -> Option<(RunState, Handle)> {
    HERE.with_borrow(Option::clone)
}

/// A digest of all inputs of a call; reports the inputs to the oracle.
fn digest_inputs(
    ports: Ports,
    cx: &mut GraphContext<'_>,
    run_state: &RunState,
    who: usize,
    mut digest: u64,
) -> u64 {
    digest = mix(digest, who as u64);
    digest = mix(digest, cx.epoch());
    digest = mix(digest, nanos(cx));
    digest = mix(digest, cx.missed_runs());
    digest = mix(digest, cx.loop_iteration().map_or(99, |one| one.index.into()));
    for (port, name) in [(ports.a, "a"), (ports.b, "b"), (ports.s, "s")] {
        digest = mix(digest, cx.latest(port).copied().unwrap_or(7));
        digest = mix(digest, u64::from(cx.is_late(port)));
        digest = mix(digest, cx.stamp(port).map_or(3, |stamp| stamp.ns));
        for value in cx.drain(port) {
            digest = mix(digest, *value);
            run_state.sees((who, name), *value);
        }
    }
    for text in cx.drain(ports.t) {
        let value = u64::from_str_radix(text, 16).unwrap_or(COMMON);
        digest = mix(digest, value);
        run_state.sees((who, "t"), value);
    }
    digest
}

/// Publishes values, according to the configuration and the faults of the call.
fn act(
    fittings: TestComponentConfig,
    cx: &mut GraphContext<'_>,
    call: ComponentCall<'_>,
) -> Result<u64, Failure> {
    let TestComponentConfig { behavior: habits, ports } = fittings;
    let ComponentCall { run_state, executor, who, seen, mut running } = call;
    let epoch = cx.epoch();
    let call_faults = run_state.call_faults(who, epoch, seen);
    let mut digest = seen;
    let halved = cx.latest(ports.a).map_or(digest % COMMON, |value| value % COMMON / 2);
    for nth in 0..habits.burst.max(1) + call_faults.flood {
        let value = if habits.halves { halved } else { mix(digest, nth) };
        running.publishes("out", value);
        let published = if is_multiple(digest, 2) {
            let ns = epoch * 1_000_000 + digest % 5_000_000;
            cx.publish_stamped(ports.out, value, Stamp { domain: ClockDomain::Steady, ns })
        } else {
            cx.publish(ports.out, value)
        };
        if let Err(refused) = &published {
            // `None` if another call has published the same value.
            running.refused(value);
            digest = mix(digest, u64::from(refused.is_full()));
        }
    }
    // Other workers run here: they must see nothing of this call.
    interleave();
    if is_multiple(digest, 3) {
        let value = mix(digest, 0x5145);
        running.publishes("side", value);
        if cx.publish(ports.side, value).is_err() {
            running.refused(value);
            digest = mix(digest, 1);
        }
    }
    if is_multiple(digest, 2) {
        let value = mix(digest, 0x7e87);
        running.publishes("text", value);
        if cx.publish(ports.text, format!("{value:x}")).is_err() {
            running.refused(value);
            digest = mix(digest, 1);
        }
    }
    if is_multiple(digest, habits.tasks) {
        let value = mix(digest, 0xd0e);
        run_state.will_publish((who, "done"), value);
        let work = sleepy_task(value, executor);
        digest = mix(digest, u64::from(cx.submit_task(ports.done, work).is_err()));
    }
    if habits.reports {
        #[expect(clippy::cast_precision_loss, reason = "it is below a hundred")]
        let residual = (digest % 100) as f64;
        cx.report_loop_convergence(is_multiple(digest, 5), Some(residual), "reported");
    }
    run_state.sim.spend_time(call_faults.slow);
    interleave();
    if call_faults.stops || run_state.is_enough() {
        run_state.stop(epoch);
    }
    if call_faults.fails || is_multiple(digest, habits.fails) {
        return Err(Failure::msg("injected failure".to_owned()));
    }
    if call_faults.panics || is_multiple(digest, habits.panics) {
        inject_panic();
    }
    running.succeeds();
    Ok(digest)
}

/// The time of the epoch in nanoseconds.
fn nanos(cx: &GraphContext<'_>) -> u64 {
    u64::try_from(cx.now().as_nanos()).unwrap_or(u64::MAX)
}

/// A call with the digest of its inputs.
struct ComponentCall<'d> {
    run_state: &'d RunState,
    executor: Handle,
    who: usize,
    seen: u64,
    running: RunningCall<'d>,
}

/// A task that sometimes sleeps first, by the clock of the system.
async fn sleepy_task(value: u64, executor: Handle) -> Result<u64, Failure> {
    if is_multiple(value, 3) {
        executor.sleep(Duration::from_millis(1 + value % 20)).await?;
    }
    task(value, value % 5).await
}

/// Counts the live components.
pub(super) struct LiveCounter(Option<RunState>);

impl Default for LiveCounter {
    fn default() -> Self {
        let run_state = here().map(|(run_state, _)| run_state);
        if let Some(run_state) = &run_state {
            run_state.oracle().n_alive += 1;
        }
        Self(run_state)
    }
}

impl Drop for LiveCounter {
    fn drop(&mut self) {
        if let Some(run_state) = &self.0 {
            run_state.oracle().n_alive -= 1;
        }
    }
}

/// Components that belong to the run of their thread.
pub(super) struct TestComponent;

impl TestLogic for TestComponent {
    type Resources = LiveCounter;

    fn call(
        fittings: TestComponentConfig,
        cx: &mut GraphContext<'_>,
        digest: u64,
    ) -> Result<u64, Failure> {
        let Some((run_state, executor)) = here() else { return Err(Failure::msg("no run")) };
        let who = cx.component_id().get(1..).and_then(|number| number.parse().ok());
        let who = who.ok_or_else(|| Failure::msg("a component without a number"))?;
        let running = run_state.enters(who, cx.epoch(), nanos(cx));
        let seen = digest_inputs(fittings.ports, cx, &run_state, who, digest);
        run_state.sim.record("call", &[who as u64, cx.epoch(), seen]);
        act(fittings, cx, ComponentCall { run_state: &run_state, executor, who, seen, running })
    }
}
