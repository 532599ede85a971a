//! The components: what they publish is a digest of all that they see, and what they suffer
//! follows from it.

use alloc::{borrow::ToOwned as _, format};
use core::{cell::RefCell, time::Duration};

use clockjack_exec::Handle;
use clockjack_graph::{
    Failure, GraphContext, Stamp,
    describe::Domain,
    testing::{Conduct, Fittings, Ports, is_multiple, mix, task},
};

use super::oracle::{COMMON, RunState, Visit};
use crate::{host::multi_worker::meanwhile, run::panic_as_told};

std::thread_local! {
    /// The run of this thread, and the executor that it is on.
    static HERE: RefCell<Option<(RunState, Handle)>> = const { RefCell::new(None) };
}

/// From here on components belong to this run.
pub(super) fn set_desk(of: Option<(RunState, Handle)>) {
    HERE.set(of);
}

fn here() -> Option<(RunState, Handle)> {
    HERE.with_borrow(Option::clone)
}

/// A digest of all that a call shows; the oracle are told of what has come.
fn look(
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

/// Publishes, and does what the habits and the faults say.
fn act(fittings: Fittings, cx: &mut GraphContext<'_>, call: Called<'_>) -> Result<u64, Failure> {
    let Fittings { habits, ports } = fittings;
    let Called { run_state, executor, who, seen, mut visit } = call;
    let epoch = cx.epoch();
    let call_faults = run_state.call_faults(who, epoch, seen);
    let mut digest = seen;
    let halved = cx.latest(ports.a).map_or(digest % COMMON, |value| value % COMMON / 2);
    for nth in 0..habits.burst.max(1) + call_faults.flood {
        let value = if habits.halves { halved } else { mix(digest, nth) };
        visit.publishes("out", value);
        let published = if is_multiple(digest, 2) {
            let ns = epoch * 1_000_000 + digest % 5_000_000;
            cx.publish_stamped(ports.out, value, Stamp { domain: Domain::Steady, ns })
        } else {
            cx.publish(ports.out, value)
        };
        if let Err(refused) = &published {
            // None if one was published by another call, too.
            visit.refused(value);
            digest = mix(digest, u64::from(refused.is_full()));
        }
    }
    // Others may come in between: they must see nothing of this call.
    meanwhile();
    if is_multiple(digest, 3) {
        let value = mix(digest, 0x5145);
        visit.publishes("side", value);
        if cx.publish(ports.side, value).is_err() {
            visit.refused(value);
            digest = mix(digest, 1);
        }
    }
    if is_multiple(digest, 2) {
        let value = mix(digest, 0x7e87);
        visit.publishes("text", value);
        if cx.publish(ports.text, format!("{value:x}")).is_err() {
            visit.refused(value);
            digest = mix(digest, 1);
        }
    }
    if is_multiple(digest, habits.tasks) {
        let value = mix(digest, 0xd0e);
        run_state.will_give((who, "done"), value);
        let work = sleepy_task(value, executor);
        digest = mix(digest, u64::from(cx.submit_task(ports.done, work).is_err()));
    }
    if habits.reports {
        #[expect(clippy::cast_precision_loss, reason = "it is below a hundred")]
        let residual = (digest % 100) as f64;
        cx.report_loop_convergence(is_multiple(digest, 5), Some(residual), "reported");
    }
    run_state.sim.take_time(call_faults.slow);
    meanwhile();
    if call_faults.stops || run_state.is_enough() {
        run_state.stop(epoch);
    }
    if call_faults.fails || is_multiple(digest, habits.fails) {
        return Err(Failure::msg("as told".to_owned()));
    }
    if call_faults.panics || is_multiple(digest, habits.panics) {
        panic_as_told();
    }
    visit.succeeds();
    Ok(digest)
}

/// The time of an epoch, in nanoseconds.
fn nanos(cx: &GraphContext<'_>) -> u64 {
    u64::try_from(cx.now().as_nanos()).unwrap_or(u64::MAX)
}

/// A call, with what it has seen.
struct Called<'d> {
    run_state: &'d RunState,
    executor: Handle,
    who: usize,
    seen: u64,
    visit: Visit<'d>,
}

/// A task that now and then sleeps by the clock of the system first.
async fn sleepy_task(value: u64, executor: Handle) -> Result<u64, Failure> {
    if is_multiple(value, 3) {
        executor.sleep(Duration::from_millis(1 + value % 20)).await?;
    }
    task(value, value % 5).await
}

/// Counts the components that there are.
pub(super) struct Alive(Option<RunState>);

impl Default for Alive {
    fn default() -> Self {
        let run_state = here().map(|(run_state, _)| run_state);
        if let Some(run_state) = &run_state {
            run_state.oracle().n_alive += 1;
        }
        Self(run_state)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        if let Some(run_state) = &self.0 {
            run_state.oracle().n_alive -= 1;
        }
    }
}

/// Components that belong to the run of their thread.
pub(super) struct Watched;

impl Conduct for Watched {
    type Luggage = Alive;

    fn call(fittings: Fittings, cx: &mut GraphContext<'_>, digest: u64) -> Result<u64, Failure> {
        let Some((run_state, executor)) = here() else { return Err(Failure::msg("no run")) };
        let who = cx.component_id().get(1..).and_then(|number| number.parse().ok());
        let who = who.ok_or_else(|| Failure::msg("a component without a number"))?;
        let visit = run_state.enters(who, cx.epoch(), nanos(cx));
        let seen = look(fittings.ports, cx, &run_state, who, digest);
        run_state.sim.note("call", &[who as u64, cx.epoch(), seen]);
        act(fittings, cx, Called { run_state: &run_state, executor, who, seen, visit })
    }
}
