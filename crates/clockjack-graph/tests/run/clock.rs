//! A host whose clock advances only when a test says so, and a component whose calls take as long
//! as the test says by that clock, so that no test waits.

use core::time::Duration;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use clockjack_actor::{ActorSystem, RootContext};
use clockjack_graph::{
    Binder, Clock, Component, Config, ConfigError, Descriptor, Execute, Failure, GraphContext,
    InputPort, Need, Output, OutputPort, Registry, RunError, RunOptions, RunReport, Stopper,
    describe::GraphFile,
};
use clockjack_testing::toolbox::{ByHand, Panics, Parking};
use clockjack_time::{ManualClock, MonotonicClock as _, Resolution};

const MS: u64 = 1_000_000;

/// What a slow component is told to do, and what it reports.
#[derive(Default)]
pub(crate) struct Diary {
    /// How long the next calls take, in milliseconds; then nothing.
    pub(crate) takes_ms: VecDeque<u64>,
    /// When each call began and ended, in milliseconds.
    pub(crate) calls: Vec<(u64, u64)>,
    /// In this call it stops the run.
    pub(crate) stops_in: Option<usize>,
    /// Whether it polls for cancellation.
    pub(crate) is_attentive: bool,
    pub(crate) stopper: Option<Stopper>,
}

/// Shared by a test and its component.
type Shared = Arc<Mutex<Diary>>;

/// A component that takes long.
struct Slow {
    clock: Arc<ManualClock>,
    diary: Shared,
    out: Output<f64>,
}

impl Slow {
    const A: InputPort<f64> = InputPort::new("a");
    const OUT: OutputPort<f64> = OutputPort::new("out");
}

impl Component for Slow {
    const TYPE: &'static str = "slow";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE).inputs(Self::A, Need::Optional).output(Self::OUT)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.out = ports.output(Self::OUT);
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Execute for Slow {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let mut diary = self.diary.lock().unwrap();
        let begun_ms = self.clock.now().tick().get();
        let takes_ms = diary.takes_ms.pop_front().unwrap_or(0);
        if diary.stops_in == Some(diary.calls.len() + 1) {
            diary.stopper.as_ref().expect("the run was started").stop();
        }
        for _ in 0..takes_ms {
            self.clock.advance(Duration::from_millis(1));
            if diary.is_attentive && cx.cancel_requested() {
                break;
            }
        }
        diary.calls.push((begun_ms, self.clock.now().tick().get()));
        cx.publish(self.out, 1.0)?;
        Ok(())
    }
}

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) diary: Diary,
    pub(crate) result: Result<RunReport, RunError>,
}

impl Ran {
    pub(crate) fn report(&self) -> &RunReport {
        self.result.as_ref().expect("it ends well")
    }

    pub(crate) fn metric(&self, name: &str, of: &str) -> u64 {
        let found = self.report().metrics.get(name, of);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        found.map(|value| value as u64).unwrap_or_else(|| panic!("no {name} of {of}"))
    }

    /// When the calls began.
    pub(crate) fn begun_ms(&self) -> Vec<u64> {
        self.diary.calls.iter().map(|(begun, _)| *begun).collect()
    }
}

/// Runs a text by the clock of that host.
pub(crate) fn run(text: &str, options: RunOptions, diary: Diary) -> Ran {
    run_as_given(text, options.clock(Clock::Wall), diary)
}

/// Runs a text on that host by the clock of the options.
pub(crate) fn run_as_given(text: &str, options: RunOptions, diary: Diary) -> Ran {
    let (mut host, clock) = ByHand::new(Resolution::MILLI);
    host.panics = Panics::GoThrough;
    // When it would sleep, its clock jumps to the next deadline.
    host.parking = Parking::MovesTime;
    let mut root = RootContext::new(host, ActorSystem::builder("jumps")).expect("it starts");
    let diary: Shared = Arc::new(Mutex::new(diary));
    let told = Arc::clone(&diary);
    let registry = Registry::new().register_with(move || Slow {
        clock: Arc::clone(&clock),
        diary: Arc::clone(&told),
        out: Output::default(),
    });
    let file = GraphFile::parse("t.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let graph = file.compile(&registry).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let run = graph.start(root.system(), options).expect("it starts");
    diary.lock().unwrap().stopper = Some(run.stopper());
    let result = root.block_on(run);
    let diary = core::mem::take(&mut *diary.lock().unwrap());
    Ran { diary, result }
}

/// So many milliseconds.
pub(crate) const fn ms(n: u64) -> u64 {
    n * MS
}
