//! Components whose results are a digest of all they see, and that take a different time in each
//! run. Nothing here looks at a clock: the delays come from a number that the runner sets.

use core::future::poll_fn;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Poll;
use std::panic::resume_unwind;
use std::thread::yield_now;

use clockjack_graph::describe::Domain;
use clockjack_graph::testing::mix;
use clockjack_graph::{
    Binder, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor, Execute,
    ExecuteShared, Failure, GraphContext, Input, InputPort, Need, Output, OutputPort, Registry,
    Stamp,
};

/// What the delays of a run are drawn from: the results must not depend on it.
static DELAYS: AtomicU64 = AtomicU64::new(0);

/// Components that take their time now.
static AT_WORK: AtomicU64 = AtomicU64::new(0);

/// How often a component may still look whether another has come to work beside it. A thread that
/// is to do so must be woken first, and most calls would be over by then.
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
        descriptor
            .config(int("fails"))
            .config(int("panics"))
            .config(int("burst"))
            .config(int("tasks"))
            .config(flag("halves"))
            .config(flag("reports"))
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

    /// A digest of all that an invocation shows.
    fn look(self, cx: &mut GraphContext<'_>, mut digest: u64) -> u64 {
        digest = mix(digest, cx.epoch());
        digest = mix(digest, u64::try_from(cx.now().as_nanos()).unwrap());
        digest = mix(digest, cx.missed_runs());
        digest = mix(digest, cx.loop_iteration().map_or(99, |one| one.index.into()));
        for port in [self.a, self.b, self.s] {
            digest = mix(digest, cx.latest(port).copied().unwrap_or(7));
            digest = mix(digest, u64::from(cx.is_late(port)));
            digest = mix(digest, cx.stamp(port).map_or(3, |stamp| stamp.ns));
            for value in cx.drain(port) {
                digest = mix(digest, *value);
            }
        }
        for text in cx.drain(self.t) {
            digest = text.bytes().fold(digest, |digest, byte| mix(digest, byte.into()));
        }
        digest
    }

    /// Publishes and does what the habits say.
    fn act(self, cx: &mut GraphContext<'_>, habits: Habits, digest: u64) -> Result<u64, Failure> {
        let mut digest = digest;
        let halved = cx.latest(self.a).map_or(digest % 64, |value| value % 64 / 2);
        for nth in 0..habits.burst.max(1) {
            let value = if habits.halves { halved } else { mix(digest, nth) };
            let refused = if is_multiple(digest, 2) {
                let ns = cx.epoch() * 1_000_000 + digest % 5_000_000;
                let stamp = Stamp { domain: Domain::Steady, ns };
                cx.publish_stamped(self.out, value, stamp).is_err()
            } else {
                cx.publish(self.out, value).is_err()
            };
            digest = mix(digest, u64::from(refused));
        }
        if is_multiple(digest, 3) {
            digest = mix(digest, u64::from(cx.publish(self.side, digest).is_err()));
        }
        if is_multiple(digest, 2) {
            let text = format!("{}:{digest:x}", cx.component_id());
            digest = mix(digest, u64::from(cx.publish(self.text, text).is_err()));
        }
        if is_multiple(digest, habits.tasks) {
            let refused = cx.submit_task(self.done, task(digest)).is_err();
            digest = mix(digest, u64::from(refused));
        }
        if habits.reports {
            #[expect(clippy::cast_precision_loss, reason = "it is below a hundred")]
            let residual = (digest % 100) as f64;
            cx.report_loop_convergence(is_multiple(digest, 5), Some(residual), "reported");
        }
        dawdle(cx);
        if is_multiple(digest, habits.fails) {
            return Err(Failure::msg(format!("told to fail: {digest:x}")));
        }
        if is_multiple(digest, habits.panics) {
            // It goes past the hook, which would print it.
            resume_unwind(Box::new("told to panic"));
        }
        Ok(digest)
    }
}

/// A task that is polled some times before it ends, and now and then fails.
async fn task(digest: u64) -> Result<u64, Failure> {
    let mut left = mix(DELAYS.load(Ordering::Relaxed), digest) % 5;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    if is_multiple(digest, 11) { Err(Failure::msg("the task fails")) } else { Ok(!digest) }
}

/// Keeps a digest of all that it has ever seen.
#[derive(Default)]
pub(crate) struct Mixer {
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
        let seen = self.ports.look(cx, self.digest);
        self.digest = self.ports.act(cx, self.habits, seen)?;
        Ok(())
    }
}

/// Digests one invocation at a time, and may do so with several at once.
#[derive(Default)]
pub(crate) struct Pure {
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
        let seen = self.ports.look(cx, 1);
        self.ports.act(cx, self.habits, seen).map(drop)
    }
}

/// Both types.
pub(crate) fn registry() -> Registry {
    Registry::new().register::<Mixer>().register_shared::<Pure>()
}
