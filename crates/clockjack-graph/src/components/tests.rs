//! Tests of the standard components: their arithmetic, and what they publish when they are
//! executed.

use core::{
    pin::pin,
    sync::atomic::AtomicBool,
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{collections::VecDeque, sync::Arc};

use clockjack_testkit::ManualTime;
use proptest::prelude::*;

use super::{
    control::clamped,
    sources::{sine, unit},
    *,
};
use crate::{
    component::{Binder, Component, Config, Descriptor},
    data::{Blob, Data, Frame, Value},
    describe::{ConfigMap, ConfigValue, EdgeOverflow, Span},
    registry::node::{ErasedComponent, ErasedNode},
    run::{
        engine::{
            context::{Call, CallInfo, GraphContext, LastSeen, LoopIteration},
            env::Env,
        },
        flow::{
            message::{Message, Meta},
            outbox::{Carriage, Outbox},
            tasks::Tasks,
        },
    },
};

/// A standard component by itself, executed by the test.
struct Bench {
    body: ErasedComponent,
    descriptor: Descriptor,
    env: Env,
    /// Keeps the executor alive.
    _time: ManualTime,
    iteration: Option<LoopIteration>,
    /// Whether it has reported that its loop has converged.
    converged: Option<bool>,
}

fn config(entries: &[(&str, ConfigValue)]) -> Config {
    let entries = entries.iter().map(|(name, value)| ((*name).into(), value.clone(), Span::NONE));
    Config::new(ConfigMap { entries: entries.collect() })
}

fn number(value: f64) -> ConfigValue {
    ConfigValue::Float(value)
}

fn text(value: &str) -> ConfigValue {
    ConfigValue::Text(value.into())
}

/// Creates a component by itself, for its arithmetic.
#[track_caller]
fn with<C: Component + Default>(entries: &[(&str, ConfigValue)]) -> C {
    let mut component = C::default();
    component.configure(&config(entries)).unwrap();
    component
}

fn node_of(body: &mut ErasedComponent) -> &mut dyn ErasedNode {
    match body {
        ErasedComponent::Exclusive(own) => &mut **own,
        ErasedComponent::Shared(shared) => Arc::get_mut(shared).unwrap(),
        ErasedComponent::Removed => panic!("it was just made"),
    }
}

impl Bench {
    fn node(&mut self) -> &mut dyn ErasedNode {
        node_of(&mut self.body)
    }

    #[track_caller]
    fn new(component_type: &str, entries: &[(&str, ConfigValue)]) -> Self {
        let registry = Registry::standard();
        let entry = registry.entry(component_type).unwrap();
        let descriptor = (*entry.descriptor).clone();
        let mut body = (entry.make)();
        let node = node_of(&mut body);
        node.configure(&config(entries)).unwrap();
        let mut binder = Binder::new(&descriptor);
        node.bind(&mut binder);
        assert_eq!(binder.unknown(), None);
        node.activate().unwrap();
        let time = ManualTime::start();
        let env = Env {
            is_simulated: true,
            blackboard: crate::run::flow::blackboard::Snapshot::default(),
            is_written: AtomicBool::new(false),
            has_buffered_counts: AtomicBool::new(false),
            copied: std::sync::Mutex::default(),
            n_state_reads: core::sync::atomic::AtomicU64::new(0),
            epoch: 1,
            now_ns: 0,
            logs: false,
            measures: false,
            traces: false,
            tasks: Tasks::new(4),
            user: crate::run::observe::metrics::user::Registry::new(1),
            component_log: None,
            seed: 0,
            graph: "bench".into(),
            stop: Arc::new(AtomicBool::new(false)),
            executor: time.system().executor(),
            is_parallel: false,
            helpers: None,
            has_faults: AtomicBool::new(false),
            begun_ns: 0,
            began_ns: 0,
        };
        Self { body, descriptor, env, _time: time, iteration: None, converged: None }
    }

    /// Executes it with values at its inputs; returns the published values with their outputs.
    fn try_call<T: Data + Clone, U: Data + Clone>(
        &mut self,
        given: &[(&str, T)],
    ) -> Result<Vec<(String, U)>, String> {
        let port = |name: &str| self.descriptor.inputs.iter().position(|one| one.name == name);
        let message = |value: T| Message { value: Value::new(value), meta: Meta::default() };
        let arrival = |(name, value): &(&str, T)| {
            let port = u16::try_from(port(name).unwrap()).unwrap();
            Message { meta: Meta { port, ..Meta::default() }, ..message(value.clone()) }
        };
        let mut messages: Vec<_> = given.iter().map(arrival).collect();
        let edge = |at: usize| (u32::try_from(at).unwrap(), EdgeOverflow::Reject, Carriage::Single);
        let n_outputs = self.descriptor.outputs.len();
        let mut outbox = Outbox::new(&(0..n_outputs).map(|at| vec![edge(at)]).collect::<Vec<_>>());
        let iteration = self.iteration;
        let info = CallInfo { is_one_each: false, iteration, ..CallInfo::DEFAULT };
        let call = Call {
            env: &self.env,
            component: 0,
            id: &Arc::from("bench"),
            info: &info,
            report: None,
            saw_cancel: false,
        };
        let last_seen = LastSeen { first: 0, last: &[] };
        let mut cx = GraphContext { messages: &mut messages, last_seen, outbox: &mut outbox, call };
        let result = node_of(&mut self.body).execute(&mut cx);
        self.converged = cx.call.report.map(|report| report.converged);
        result.map_err(|failure| format!("{failure}"))?;
        let outputs = &self.descriptor.outputs;
        let staged = outbox.staged.as_slice().iter().map(|one| {
            let value = one.message.value.get::<U>().unwrap().clone();
            (outputs[usize::from(one.port)].name.clone(), value)
        });
        Ok(staged.collect())
    }

    #[track_caller]
    fn call(&mut self, given: &[(&str, f64)]) -> Vec<(String, f64)> {
        self.try_call(given).unwrap()
    }

    /// Executes it and returns the values published at `out`; fails if there are others.
    #[track_caller]
    fn out(&mut self, given: &[(&str, f64)]) -> Vec<f64> {
        let published = self.call(given).into_iter();
        published.inspect(|(port, _)| assert_eq!(port, "out")).map(|(_, value)| value).collect()
    }
}

#[test]
fn all_standard_components_are_in_the_registry_and_described() {
    let registry = Registry::standard();
    let expected = [
        "actuator",
        "async_worker",
        "binary_input",
        "binary_output",
        "constant",
        "controller",
        "counter",
        "delay",
        "estimator",
        "frame_input",
        "frame_output",
        "identity",
        "input",
        "join",
        "merge",
        "noise",
        "output",
        "rate_probe",
        "select",
        "sensor",
        "source",
        "validator",
    ];
    assert!(registry.types().eq(expected), "{registry:?}");
    for name in expected {
        let descriptor = registry.descriptor(name).unwrap();
        assert_eq!(descriptor.component_type, name);
        assert_ne!(descriptor.title, name, "it has a human-readable name");
    }
}

#[test]
fn an_input_passes_on_what_it_is_fed_with_and_else_follows_its_pattern() {
    let mut input = Bench::new("input", &[("start", number(5.0)), ("step", number(0.5))]);
    assert_eq!(input.out(&[]), [5.0]);
    assert_eq!(input.out(&[("feed", 1.0), ("feed", 2.0)]), [1.0, 2.0]);
    assert_eq!(input.out(&[]), [5.5]);
    let mut silent = Bench::new("input", &[("pattern", text("none"))]);
    assert!(silent.out(&[]).is_empty());
    assert_eq!(silent.out(&[("feed", 1.0)]), [1.0]);
}

#[test]
fn an_output_counts_and_keeps_the_last() {
    let mut output = Bench::new("output", &[]);
    output.out(&[("in", 3.0), ("in", 4.0)]);
    output.out(&[("in", -1.5)]);
    let snapshot = output.node().snapshot().unwrap().unwrap();
    let mut again = boundary::CountOutput::default();
    crate::component::Execute::restore(&mut again, &snapshot).unwrap();
    assert_eq!((again.count, again.last), (3, -1.5));
}

#[test]
fn identity_passes_on_all_that_comes() {
    let mut identity = Bench::new("identity", &[]);
    assert_eq!(identity.out(&[("in", 1.0), ("in", 2.0)]), [1.0, 2.0]);
    assert!(identity.out(&[]).is_empty());
}

#[test]
fn join_adds_what_more_than_two_inputs_have() {
    let mut join = Bench::new("join", &[]);
    assert!(join.out(&[("a", 1.0), ("h", 2.0)]).is_empty(), "`b` has none yet");
    assert_eq!(join.out(&[("a", 1.0), ("b", 2.0), ("d", 4.0), ("h", 8.0)]), [15.0]);
}

#[test]
fn merge_passes_on_each_value() {
    let mut merge = Bench::new("merge", &[]);
    assert_eq!(merge.out(&[("in", 1.0), ("in", 2.0), ("in", 1.0)]), [1.0, 2.0, 1.0]);
}

#[test]
fn select_publishes_the_input_that_the_index_chooses() {
    let mut select = Bench::new("select", &[]);
    let with = |index: f64| [("index", index), ("a", 10.0), ("b", 20.0), ("c", 30.0)];
    for (index, chosen) in [(0.0, 10.0), (1.0, 20.0), (2.9, 30.0)] {
        assert_eq!(select.out(&with(index)), [chosen]);
    }
    for index in [-1.0, 3.0, 8.0, f64::NAN, f64::INFINITY] {
        assert!(select.out(&with(index)).is_empty(), "there is no input {index} with a value");
    }
}

#[test]
fn join_waits_for_both_and_adds() {
    let mut join = Bench::new("join", &[]);
    assert!(join.out(&[("a", 1.0)]).is_empty());
    assert_eq!(join.out(&[("a", 1.0), ("b", 2.5)]), [3.5]);
}

#[test]
fn a_validator_drops_clamps_or_fails() {
    let bounds = |on_bad| [("min", number(0.0)), ("max", number(1.0)), ("on_bad", text(on_bad))];
    let mut drops = Bench::new("validator", &bounds("drop"));
    assert_eq!(drops.out(&[("in", 0.0), ("in", 1.0)]), [0.0, 1.0]);
    assert_eq!(drops.call(&[("in", 1.5)]), [("bad".into(), 1.5)]);
    let mut clamps = Bench::new("validator", &bounds("clamp"));
    let clamped = [("bad".into(), -3.0), ("out".into(), 0.0)];
    assert_eq!(clamps.call(&[("in", -3.0)]), clamped);
    assert_eq!(clamps.call(&[("in", f64::NAN)]).len(), 1, "NaN is nowhere near a bound");
    let mut fails = Bench::new("validator", &bounds("fail"));
    let failed = fails.try_call::<f64, f64>(&[("in", 2.0)]).unwrap_err();
    assert_eq!(failed, "2 is not between 0 and 1");
}

#[test]
fn limits_in_the_wrong_order_are_refused_before_the_run() {
    let entries = [("min", number(2.0)), ("max", number(1.0))];
    for name in ["validator", "controller"] {
        let mut body = (Registry::standard().entry(name).unwrap().make)();
        let node = node_of(&mut body);
        assert!(node.validate_config(&config(&entries)).is_err(), "{name}");
        node.configure(&config(&entries)).unwrap();
        assert!(node.activate().is_err(), "{name}");
    }
}

#[test]
fn a_delay_gives_what_came_so_many_values_ago() {
    let mut delay = Bench::new("delay", &[("depth", ConfigValue::Int(2))]);
    assert!(delay.out(&[("in", 1.0)]).is_empty());
    assert_eq!(delay.out(&[("in", 2.0), ("in", 3.0)]), [1.0]);
    assert_eq!(delay.out(&[("in", 4.0)]), [2.0]);
    let filled = [("depth", ConfigValue::Int(2)), ("initial", number(9.0))];
    assert_eq!(Bench::new("delay", &filled).out(&[("in", 1.0), ("in", 2.0)]), [9.0, 9.0]);
}

#[test]
fn an_async_worker_gives_its_product_after_so_many_polls() {
    let entries = [("gain", number(3.0)), ("polls", ConfigValue::Int(3))];
    let mut worker = Bench::new("async_worker", &entries);
    assert!(worker.out(&[("in", 2.0)]).is_empty());
    let mut submitted = worker.env.tasks.take_submitted();
    let mut task = submitted.pop().unwrap().into_work();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(task.as_mut().poll(&mut cx).is_pending());
    assert!(task.as_mut().poll(&mut cx).is_pending());
    let Poll::Ready(Ok(Some(value))) = task.as_mut().poll(&mut cx) else { panic!("not ready") };
    assert_eq!(value.get(), Some(&6.0));
    let five = [("in", 1.0); 5];
    assert!(
        worker.try_call::<f64, f64>(&five).is_err(),
        "the maximum number of tasks is in flight"
    );
    assert!(pin!(plain::product(1.0, 1.0, 0)).poll(&mut cx).is_ready());
}

#[test]
fn a_rate_probe_tells_values_a_second_of_the_runs_time() {
    let mut probe = Bench::new("rate_probe", &[("window_ms", ConfigValue::Int(100))]);
    let mut published = Vec::new();
    for tick in 0..=40 {
        probe.env.now_ns = tick * 10_000_000;
        published.extend(probe.call(&[("in", 0.0), ("in", 0.0)]));
    }
    assert_eq!(
        published,
        [
            ("rate".into(), 200.0),
            ("rate".into(), 200.0),
            ("rate".into(), 200.0),
            ("rate".into(), 200.0,)
        ]
    );
    assert!(probe.call(&[]).is_empty());
    let mut slow: plain::RateProbe = with(&[]);
    assert_eq!(slow.count(7, Duration::from_secs(5)), None);
    assert_eq!(slow.count(3, Duration::from_secs(7)), Some(1.5));
}

#[test]
fn sources_give_what_they_are_set_to() {
    assert_eq!(Bench::new("constant", &[("value", number(2.5))]).out(&[]), [2.5]);
    let mut counter = Bench::new("counter", &[("start", number(1.0)), ("step", number(-2.0))]);
    assert_eq!([counter.out(&[]), counter.out(&[])], [[1.0], [-1.0]]);
    counter.node().reset().unwrap();
    assert_eq!(counter.out(&[]), [1.0]);
}

#[test]
fn a_wave_begins_at_its_beginning_and_comes_back() {
    let wave = |shape, epoch| {
        let entries = [("shape", text(shape)), ("period", ConfigValue::Int(8))];
        let mut source = Bench::new("source", &entries);
        source.env.epoch = epoch;
        source.out(&[])[0]
    };
    assert_eq!([wave("saw", 1), wave("saw", 5), wave("saw", 9)], [-1.0, 0.0, -1.0]);
    assert_eq!([wave("square", 4), wave("square", 5)], [1.0, -1.0]);
    assert_eq!([wave("step", 8), wave("step", 9), wave("step", 1000)], [0.0, 1.0, 1.0]);
    assert_eq!(wave("sine", 1), 0.0);
    assert_eq!(wave("sine", 8_000_003), wave("sine", 3));
    let tuned: sources::Source =
        with(&[("amplitude", number(2.0)), ("offset", number(1.0)), ("shape", text("square"))]);
    assert_eq!([tuned.at(0), tuned.at(50)], [3.0, -1.0]);
}

#[test]
fn noise_is_the_same_row_for_the_same_seed() {
    let row = |seed| {
        let mut noise: sources::Noise = with(&[("seed", ConfigValue::Int(seed))]);
        (0..100).map(|_| noise.next(0)).collect::<Vec<f64>>()
    };
    assert_eq!(row(7), row(7));
    assert_ne!(row(7), row(8));
    let distinct = row(7).windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(distinct, 99);
    assert!(row(7).iter().all(|value| (-1.0..1.0).contains(value)));
    // Recordings of runs rely on this sequence.
    assert_eq!(unit(1, 1).to_bits(), UNIT_OF_SEED_ONE);
}

/// The first word of seed 1, `910a2dec89025cc1`, as a fraction of 2^64.
const UNIT_OF_SEED_ONE: u64 = 0x3fe2_2145_bd91_204b;

#[test]
fn a_sensor_measures_with_gain_bias_and_resolution_and_zero_before_there_is_anything() {
    let mut sensor = Bench::new("sensor", &[("gain", number(2.0)), ("bias", number(0.5))]);
    assert_eq!(sensor.out(&[]), [0.5]);
    assert_eq!(sensor.out(&[("in", 3.0)]), [6.5]);
    let coarse: control::Sensor = with(&[("resolution", number(0.25))]);
    assert_eq!(
        [coarse.measure(0.3), coarse.measure(-0.3), coarse.measure(0.5)],
        [0.25, -0.25, 0.5]
    );
}

#[test]
fn an_estimator_begins_at_the_first_value_and_follows_the_others() {
    let mut estimator = Bench::new("estimator", &[("alpha", number(0.25))]);
    assert_eq!(estimator.out(&[("in", 8.0)]), [8.0]);
    assert_eq!(estimator.out(&[("in", 4.0)]), [7.0]);
    assert!(estimator.out(&[]).is_empty());
    assert_eq!(estimator.converged, None);
}

#[test]
fn in_a_loop_an_estimator_says_when_it_no_longer_moves() {
    let mut estimator = Bench::new("estimator", &[("tolerance", number(0.1))]);
    estimator.iteration = Some(LoopIteration { index: 0, max: 10 });
    estimator.out(&[("in", 1.0)]);
    estimator.out(&[("in", 2.0)]);
    assert_eq!(estimator.converged, Some(false));
    estimator.out(&[("in", 1.6)]);
    assert_eq!(estimator.converged, Some(true));
}

#[test]
fn a_controller_takes_its_target_from_the_input_or_else_from_the_setting() {
    let entries = [("setpoint", number(0.5)), ("kp", number(1.0))];
    let mut controller = Bench::new("controller", &entries);
    assert_eq!(controller.out(&[("in", 0.25)]), [0.25]);
    assert_eq!(controller.out(&[("in", 0.25), ("target", 1.0)]), [0.75]);
    assert_eq!(controller.out(&[("in", -7.0)]), [1.0]);
}

#[test]
fn a_controller_at_its_limit_comes_back_as_soon_as_it_is_overshot() {
    let entries = [("kp", number(0.0)), ("ki", number(1.0)), ("dt", number(0.5))];
    let mut controller: control::Controller = with(&entries);
    for _ in 0..1000 {
        assert!(controller.command(1.0, 0.0) <= 1.0);
    }
    assert_eq!(controller.command(0.0, 1.0), 0.5);
}

#[test]
fn a_closed_loop_settles_at_its_target() {
    let mut controller: control::Controller =
        with(&[("kp", number(0.8)), ("ki", number(4.0)), ("max", number(10.0))]);
    let mut actuator: control::Actuator = with(&[]);
    let mut position = 0.0;
    for _ in 0..2000 {
        position = actuator.follow(controller.command(3.0, position));
    }
    assert!((position - 3.0).abs() < 1e-6, "{position}");
}

#[test]
fn a_reading_that_is_no_number_is_not_remembered() {
    let mut controller: control::Controller = with(&[("kp", number(0.0)), ("ki", number(1.0))]);
    let before = controller.command(1.0, 0.0);
    assert!(controller.command(1.0, f64::NAN).is_nan(), "its own command is NaN");
    assert!(controller.command(1.0, 0.0) > before);
    let mut estimator: control::Estimator = with(&[]);
    let mut actuator: control::Actuator = with(&[]);
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0] {
        estimator.correct(odd);
        actuator.follow(odd);
    }
    assert_eq!(estimator.correct(1.0), 0.0);
    assert!(actuator.follow(1.0) > 0.0);
}

#[test]
fn an_actuator_never_shoots_beyond_its_order() {
    let mut actuator = Bench::new("actuator", &[("dt", number(5.0)), ("tau", number(1.0))]);
    assert_eq!(actuator.call(&[("in", 2.0)]), [("position".into(), 2.0)]);
    assert!(actuator.call(&[]).is_empty());
}

#[test]
fn blobs_come_from_a_pool_and_are_the_same_whether_it_is_warm() {
    let entries = [("size", ConfigValue::Int(300)), ("buffers", ConfigValue::Int(2))];
    let mut input = Bench::new("binary_input", &entries);
    let mut output = Bench::new("binary_output", &[]);
    for n in 0..10_usize {
        let blobs: Vec<(String, Blob)> = input.try_call::<f64, Blob>(&[]).unwrap();
        let expected: Vec<u8> = (0..300).map(|i| (i + n).to_le_bytes()[0]).collect();
        assert_eq!(*blobs[0].1, expected);
        output.try_call::<Blob, f64>(&[("in", blobs[0].1.clone())]).unwrap();
    }
    let kept: Vec<_> = (0..2).map(|_| input.try_call::<f64, Blob>(&[]).unwrap()).collect();
    let failed = input.try_call::<f64, Blob>(&[]).unwrap_err();
    assert!(failed.contains("300 bytes requested"), "{failed}");
    drop(kept);
    assert!(input.try_call::<f64, Blob>(&[]).is_ok());
    let snapshot = output.node().snapshot().unwrap().unwrap();
    assert_eq!(Vec::<f64>::decode(&snapshot.payload).unwrap().len(), 2);
    assert_eq!(snapshot.payload[..8], 10_u64.to_le_bytes());
    assert_eq!(snapshot.payload[8..], 3000_u64.to_le_bytes());
}

#[test]
fn frames_have_the_size_and_pattern_that_is_set() {
    let entries = [
        ("width", ConfigValue::Int(30)),
        ("height", ConfigValue::Int(2)),
        ("format", text("rgb8")),
    ];
    let mut input = Bench::new("frame_input", &entries);
    let frames = [(); 2].map(|()| input.try_call::<f64, Frame>(&[]).unwrap().remove(0).1);
    let [first, second] = &frames;
    assert_eq!((first.width(), first.height(), first.stride()), (30, 2, 128));
    assert_eq!(first.row(0).unwrap(), (0..90).collect::<Vec<u8>>());
    assert_eq!(second.row(1).unwrap(), (2..92).collect::<Vec<u8>>());
    assert_eq!(first.pixels()[90..128], [0; 38]);
    let mut output = Bench::new("frame_output", &[]);
    output.try_call::<Frame, f64>(&[("in", second.clone())]).unwrap();
    let snapshot = output.node().snapshot().unwrap().unwrap();
    assert_eq!(snapshot.payload[8..], 256_u64.to_le_bytes());
}

#[test]
fn what_is_restored_goes_on_where_it_was_written_down() {
    let depth = [("depth", ConfigValue::Int(3))];
    let ki = [("ki", number(1.0))];
    let cases: [(&str, &[_]); 8] = [
        ("input", &[]),
        ("counter", &[]),
        ("noise", &[]),
        ("delay", &depth),
        ("estimator", &[]),
        ("controller", &ki),
        ("actuator", &[]),
        ("output", &[]),
    ];
    for (name, entries) in cases {
        let mut first = Bench::new(name, entries);
        let given: &[_] = if first.descriptor.inputs.iter().any(|port| port.name == "in") {
            &[("in", 0.3)]
        } else {
            &[]
        };
        let mut rest = VecDeque::from([0.1, 0.7, -0.2, 0.4]);
        while let Some(value) = rest.pop_front() {
            let _ = first.call(&given.iter().map(|(port, _)| (*port, value)).collect::<Vec<_>>());
        }
        let snapshot = first.node().snapshot().unwrap().unwrap();
        let mut second = Bench::new(name, entries);
        second.node().restore(&snapshot).unwrap();
        for _ in 0..5 {
            assert_eq!(first.call(given), second.call(given), "{name}");
        }
        let other = if name == "noise" { "counter" } else { "noise" };
        let refused = Bench::new(other, &[]).node().restore(&snapshot);
        assert!(refused.is_err(), "{other} took the state of {name}");
    }
}

proptest! {
    #[test]
    fn the_sine_is_one(turn in 0.0..1.0_f64) {
        let expected = (turn * 2.0 * core::f64::consts::PI).sin();
        prop_assert!((sine(turn) - expected).abs() < 1e-6, "{} {}", sine(turn), expected);
    }

    #[test]
    fn what_is_limited_lies_between_its_limits(
        value in any::<f64>(), a in any::<f64>(), b in any::<f64>(),
    ) {
        let (min, max) = (a.min(b), a.max(b));
        let clamped = clamped(value, min, max);
        prop_assert!(value.is_nan() || (min <= clamped && clamped <= max));
        prop_assert!(!(min..=max).contains(&value) || clamped == value);
    }
}
