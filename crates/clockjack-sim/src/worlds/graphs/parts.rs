//! The components: what they publish is a digest of all that they see, and what they suffer
//! follows from it.

use alloc::{borrow::ToOwned as _, format, string::String};
use core::{cell::RefCell, future::poll_fn, task::Poll, time::Duration};

use clockjack_exec::Handle;
use clockjack_graph::{
    Binder, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor, Execute,
    ExecuteShared, Failure, GraphContext, Input, InputPort, Need, Output, OutputPort, Registry,
    Stamp, describe::Domain, testing::mix,
};

use super::books::{COMMON, Desk, Visit};
use crate::{crowd::meanwhile, run::panic_as_told};

std::thread_local! {
    /// The run of this thread, and the executor that it is on.
    static HERE: RefCell<Option<(Desk, Handle)>> = const { RefCell::new(None) };
}

/// From here on components belong to this run.
pub(super) fn set_desk(of: Option<(Desk, Handle)>) {
    HERE.set(of);
}

fn here() -> Option<(Desk, Handle)> {
    HERE.with_borrow(Option::clone)
}

/// What a component does beside its digest.
#[derive(Clone, Copy, Default)]
struct Habits {
    /// It fails when its digest is a multiple of this; zero: never.
    fails: u64,
    panics: u64,
    /// Messages at once.
    burst: u64,
    /// It submits a task when its digest is a multiple of this.
    tasks: u64,
    /// It publishes half of what comes, so that a loop settles.
    halves: bool,
    /// It says of its loop how far that is.
    reports: bool,
}

impl Habits {
    fn describe(descriptor: Descriptor) -> Descriptor {
        let int = |name| ConfigField::new(name, ConfigKind::Int);
        let flag = |name| ConfigField::new(name, ConfigKind::Bool);
        let numbers = ["fails", "panics", "burst", "tasks"].map(int);
        let flags = ["halves", "reports"].map(flag);
        numbers.into_iter().chain(flags).fold(descriptor, Descriptor::config)
    }

    fn of(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            fails: config.get("fails")?.unwrap_or(0),
            panics: config.get("panics")?.unwrap_or(0),
            burst: config.get("burst")?.unwrap_or(1),
            tasks: config.get("tasks")?.unwrap_or(0),
            halves: config.get("halves")?.unwrap_or(false),
            reports: config.get("reports")?.unwrap_or(false),
        })
    }
}

fn is_multiple(n: u64, of: u64) -> bool {
    of > 0 && n.is_multiple_of(of)
}

/// The ports, which both types have.
#[derive(Clone, Copy, Default)]
struct Ports {
    a: Input<u64>,
    b: Input<u64>,
    s: Input<u64>,
    t: Input<String>,
    out: Output<u64>,
    side: Output<u64>,
    text: Output<String>,
    done: Output<u64>,
}

impl Ports {
    const A: InputPort<u64> = InputPort::new("a");
    const B: InputPort<u64> = InputPort::new("b");
    const S: InputPort<u64> = InputPort::new("s");
    const T: InputPort<String> = InputPort::new("t");
    const OUT: OutputPort<u64> = OutputPort::new("out");
    const SIDE: OutputPort<u64> = OutputPort::new("side");
    const TEXT: OutputPort<String> = OutputPort::new("text");
    const DONE: OutputPort<u64> = OutputPort::new("done");

    fn describe(component_type: &str) -> Descriptor {
        Descriptor::new(component_type)
            .inputs(Self::A, Need::Optional)
            .inputs(Self::B, Need::Optional)
            .input(Self::S, Need::Optional)
            .inputs(Self::T, Need::Optional)
            .output(Self::OUT)
            .output(Self::SIDE)
            .output(Self::TEXT)
            .output(Self::DONE)
    }

    fn bind(ports: &mut Binder<'_>) -> Self {
        Self {
            a: ports.input(Self::A),
            b: ports.input(Self::B),
            s: ports.input(Self::S),
            t: ports.input(Self::T),
            out: ports.output(Self::OUT),
            side: ports.output(Self::SIDE),
            text: ports.output(Self::TEXT),
            done: ports.output(Self::DONE),
        }
    }

    /// A digest of all that a call shows; the books are told of what has come.
    fn look(self, cx: &mut GraphContext<'_>, desk: &Desk, who: usize, mut digest: u64) -> u64 {
        digest = mix(digest, who as u64);
        digest = mix(digest, cx.epoch());
        digest = mix(digest, nanos(cx));
        digest = mix(digest, cx.missed_runs());
        digest = mix(digest, cx.loop_iteration().map_or(99, |one| one.index.into()));
        for (port, name) in [(self.a, "a"), (self.b, "b"), (self.s, "s")] {
            digest = mix(digest, cx.latest(port).copied().unwrap_or(7));
            digest = mix(digest, u64::from(cx.is_late(port)));
            digest = mix(digest, cx.stamp(port).map_or(3, |stamp| stamp.ns));
            for value in cx.drain(port) {
                digest = mix(digest, *value);
                desk.sees((who, name), *value);
            }
        }
        for text in cx.drain(self.t) {
            let value = u64::from_str_radix(text, 16).unwrap_or(COMMON);
            digest = mix(digest, value);
            desk.sees((who, "t"), value);
        }
        digest
    }

    /// Publishes, and does what the habits and the faults say.
    fn act(
        self,
        cx: &mut GraphContext<'_>,
        habits: Habits,
        call: Called<'_>,
    ) -> Result<u64, Failure> {
        let Called { desk, executor, who, seen, mut visit } = call;
        let epoch = cx.epoch();
        let woe = desk.woe(who, epoch, seen);
        let mut digest = seen;
        let halved = cx.latest(self.a).map_or(digest % COMMON, |value| value % COMMON / 2);
        for nth in 0..habits.burst.max(1) + woe.flood {
            let value = if habits.halves { halved } else { mix(digest, nth) };
            visit.publishes("out", value);
            let published = if is_multiple(digest, 2) {
                let ns = epoch * 1_000_000 + digest % 5_000_000;
                cx.publish_stamped(self.out, value, Stamp { domain: Domain::Steady, ns })
            } else {
                cx.publish(self.out, value)
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
            if cx.publish(self.side, value).is_err() {
                visit.refused(value);
                digest = mix(digest, 1);
            }
        }
        if is_multiple(digest, 2) {
            let value = mix(digest, 0x7e87);
            visit.publishes("text", value);
            if cx.publish(self.text, format!("{value:x}")).is_err() {
                visit.refused(value);
                digest = mix(digest, 1);
            }
        }
        if is_multiple(digest, habits.tasks) {
            let value = mix(digest, 0xd0e);
            desk.will_give((who, "done"), value);
            let work = task(value, executor);
            digest = mix(digest, u64::from(cx.submit_task(self.done, work).is_err()));
        }
        if habits.reports {
            #[expect(clippy::cast_precision_loss, reason = "it is below a hundred")]
            let residual = (digest % 100) as f64;
            cx.report_loop_convergence(is_multiple(digest, 5), Some(residual), "reported");
        }
        desk.dawdle(woe.slow);
        meanwhile();
        if woe.stops || desk.is_enough() {
            desk.stop(epoch);
        }
        if woe.fails || is_multiple(digest, habits.fails) {
            return Err(Failure::msg("as told".to_owned()));
        }
        if woe.panics || is_multiple(digest, habits.panics) {
            panic_as_told();
        }
        visit.succeeds();
        Ok(digest)
    }
}

/// The time of an epoch, in nanoseconds.
fn nanos(cx: &GraphContext<'_>) -> u64 {
    u64::try_from(cx.now().as_nanos()).unwrap_or(u64::MAX)
}

/// A call, with what it has seen.
struct Called<'d> {
    desk: &'d Desk,
    executor: Handle,
    who: usize,
    seen: u64,
    visit: Visit<'d>,
}

/// Looks and acts.
fn call(
    ports: Ports,
    habits: Habits,
    cx: &mut GraphContext<'_>,
    digest: u64,
) -> Result<u64, Failure> {
    let Some((desk, executor)) = here() else { return Err(Failure::msg("no run")) };
    let who = cx.component_id().get(1..).and_then(|number| number.parse().ok());
    let who = who.ok_or_else(|| Failure::msg("a component without a number"))?;
    let visit = desk.enters(who, cx.epoch(), nanos(cx));
    let seen = ports.look(cx, &desk, who, digest);
    desk.stage.note("call", &[who as u64, cx.epoch(), seen]);
    ports.act(cx, habits, Called { desk: &desk, executor, who, seen, visit })
}

/// A task that is polled some times, or sleeps by the clock of the system, and now and then fails.
async fn task(value: u64, executor: Handle) -> Result<u64, Failure> {
    if is_multiple(value, 3) {
        executor.sleep(Duration::from_millis(1 + value % 20)).await?;
    }
    let mut left = value % 5;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    if is_multiple(value, 11) { Err(Failure::msg("the task fails")) } else { Ok(value) }
}

/// Counts the components that there are.
struct Alive(Option<Desk>);

impl Default for Alive {
    fn default() -> Self {
        let desk = here().map(|(desk, _)| desk);
        if let Some(desk) = &desk {
            desk.books().n_alive += 1;
        }
        Self(desk)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        if let Some(desk) = &self.0 {
            desk.books().n_alive -= 1;
        }
    }
}

/// Keeps a digest of all that it has ever seen.
#[derive(Default)]
struct Mixer {
    _alive: Alive,
    digest: u64,
    habits: Habits,
    ports: Ports,
}

impl Component for Mixer {
    const TYPE: &'static str = "mixer";

    fn describe() -> Descriptor {
        Habits::describe(Ports::describe(Self::TYPE))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.ports = Ports::bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.habits = Habits::of(config)?;
        Ok(())
    }
}

impl Execute for Mixer {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.digest = call(self.ports, self.habits, cx, self.digest)?;
        Ok(())
    }
}

/// Digests one call at a time, and may do so with several at once.
#[derive(Default)]
struct Pure {
    _alive: Alive,
    habits: Habits,
    ports: Ports,
}

impl Component for Pure {
    const TYPE: &'static str = "pure";

    fn describe() -> Descriptor {
        Habits::describe(Ports::describe(Self::TYPE))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.ports = Ports::bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.habits = Habits::of(config)?;
        Ok(())
    }
}

impl ExecuteShared for Pure {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        call(self.ports, self.habits, cx, 1).map(drop)
    }
}

/// Both types.
pub(super) fn registry() -> Registry {
    Registry::new().register::<Mixer>().register_shared::<Pure>()
}
