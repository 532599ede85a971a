//! The specialised steps of a component do what the general one does: a component with a budget
//! takes the general step, and sees, publishes and counts the same.

use core::{
    fmt::{Debug, Write},
    time::Duration,
};
use std::sync::{Arc, Mutex};

use clockjack_graph::{
    Binder, Clock, CommitLog, Component, Config, ConfigError, Data, Descriptor, Edge, Execute,
    Failure, Graph, GraphContext, Input, InputPort, Lane, Need, Output, OutputPort, RunOptions,
    Setup, TraceLog, Trigger,
    describe::{CopyPolicy, ErrorPolicy},
};
use clockjack_testkit::ManualTime;

/// What all have seen, in order.
type Diary = Arc<Mutex<String>>;

/// A value for the source, by its number.
trait Value: Data + Clone + Debug {
    const TYPES: [&'static str; 2];

    fn nth(n: u64) -> Self;
}

impl Value for u64 {
    const TYPES: [&'static str; 2] = ["source_of_numbers", "picker_of_numbers"];

    fn nth(n: u64) -> Self {
        n
    }
}

impl Value for String {
    const TYPES: [&'static str; 2] = ["source_of_texts", "picker_of_texts"];

    fn nth(n: u64) -> Self {
        format!("text {n}")
    }
}

/// Publishes a value in most epochs, and two in some.
struct Source<T> {
    out: Output<T>,
    phase: u64,
}

impl<T: Value> Source<T> {
    const OUT: OutputPort<T> = OutputPort::new("out");
}

impl<T: Value> Component for Source<T> {
    const TYPE: &'static str = T::TYPES[0];

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE).output(Self::OUT)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.out = ports.output(Self::OUT);
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl<T: Value> Execute for Source<T> {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let n = cx.epoch() * 10;
        match (cx.epoch() + self.phase) % 7 {
            0 => {}
            1 => {
                cx.publish(self.out, T::nth(n + 1)).map_err(|full| full.discard())?;
                cx.publish(self.out, T::nth(n + 2)).map_err(|full| full.discard())?;
            }
            _ => cx.publish(self.out, T::nth(n)).map_err(|full| full.discard())?,
        }
        Ok(())
    }
}

/// Reads its inputs in all possible ways, one after the other, and fails now and then.
struct Picker<T> {
    from: [Input<T>; 3],
    out: Output<T>,
    id: &'static str,
    n_calls: u64,
    diary: Diary,
}

impl<T: Value> Picker<T> {
    const FROM: [InputPort<T>; 3] = [InputPort::new("a"), InputPort::new("b"), InputPort::new("c")];
    const OUT: OutputPort<T> = OutputPort::new("out");
}

impl<T: Value> Component for Picker<T> {
    const TYPE: &'static str = T::TYPES[1];

    fn describe() -> Descriptor {
        let empty = Descriptor::new(Self::TYPE).output(Self::OUT);
        Self::FROM.into_iter().fold(empty, |all, port| all.input(port, Need::Optional))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.from = Self::FROM.map(|port| ports.input(port));
        self.out = ports.output(Self::OUT);
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl<T: Value> Execute for Picker<T> {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.n_calls += 1;
        let mut seen = String::new();
        for (nth, port) in (0_u64..).zip(self.from) {
            write!(seen, " {nth}:")?;
            match (self.n_calls + nth) % 5 {
                0 => write!(seen, "latest {:?}", cx.latest(port))?,
                1 => {
                    write!(seen, "update {:?}", cx.update(port))?;
                    write!(seen, " then {:?}", cx.update(port))?;
                }
                2 => {
                    write!(seen, "take {:?}", cx.take(port))?;
                    write!(seen, " before it {:?}", cx.latest(port))?;
                }
                3 => write!(seen, "all {:?}", cx.drain(port).collect::<Vec<_>>())?,
                _ => {}
            }
        }
        let mut diary = self.diary.lock().expect("nobody panics with it");
        writeln!(diary, "{} {}{seen}", cx.epoch(), self.id)?;
        drop(diary);
        cx.publish(self.out, T::nth(self.n_calls)).map_err(|full| full.discard())?;
        if self.n_calls % 11 == 6 {
            return Err(Failure::msg("now and then it fails"));
        }
        Ok(())
    }
}

/// Five sources, one picker that reads one of them, one behind it, and one that waits for three.
fn build<T: Value>(edge: &Edge, setup: &dyn Fn(Setup) -> Setup, diary: &Diary) -> Graph {
    let mut graph = Graph::builder("ways");
    graph.lane("main", Lane::fixed_rate(Duration::from_millis(1)));
    let mut sources = (0..5).map(|phase| {
        let make = move || Source::<T> { out: Output::default(), phase };
        graph.add_with(&format!("source{phase}"), make, setup(Setup::on("main")))
    });
    let sources: [_; 5] = core::array::from_fn(|_| sources.next().expect("there are five"));
    let mut add = |id: &'static str, trigger: Trigger| {
        let diary = Arc::clone(diary);
        let make = move || Picker::<T> {
            from: [Input::default(); 3],
            out: Output::default(),
            id,
            n_calls: 0,
            diary: Arc::clone(&diary),
        };
        graph.add_with(id, make, setup(Setup::on("main").trigger(trigger)))
    };
    let each = add("each", Trigger::AnyInput);
    let behind = add("behind", Trigger::AnyInput);
    let all = add("all", Trigger::AllInputs);
    let [a, b, c] = Picker::<T>::FROM;
    graph.connect(sources[0].out(Source::OUT), each.input(a), edge.clone());
    // Not the first of its inputs.
    graph.connect(each.out(Picker::OUT), behind.input(c), edge.clone());
    graph.connect(sources[2].out(Source::OUT), all.input(a), edge.clone());
    graph.connect(sources[3].out(Source::OUT), all.input(b), edge.clone());
    graph.connect(sources[4].out(Source::OUT), all.input(c), edge.clone());
    graph.build().expect("it is a graph")
}

/// What was seen, and what was counted but for times.
fn run<T: Value>(
    edge: &Edge,
    setup: &dyn Fn(Setup) -> Setup,
    options: RunOptions,
) -> (String, Vec<String>) {
    let diary = Diary::default();
    let graph = build::<T>(edge, setup, &diary);
    let time = ManualTime::start();
    let run = graph.start(time.system(), options.clock(Clock::Virtual)).expect("it starts");
    let report = time.block_on(run).expect("it goes on when somebody fails");
    let kinds = ["runtime.channel.", "runtime.trigger.", "runtime.publication."];
    let counted = report.metrics.list.iter().map(|metric| format!("{metric:?}"));
    let counted = counted.filter(|one| kinds.iter().any(|kind| one.contains(kind)));
    let seen = core::mem::take(&mut *diary.lock().expect("nobody panics with it"));
    (seen, counted.collect())
}

fn shows_the_same<T: Value>(edge: &Edge, on_error: fn(Setup) -> Setup) {
    let steps = || RunOptions::steps(300);
    let long = |setup: Setup| on_error(setup).budget(Duration::from_secs(3600));
    let expected = run::<T>(edge, &long, steps());
    assert!(expected.0.lines().count() > 100, "all were called: {}", expected.0);
    assert!(expected.0.contains("before it Some"), "{}", expected.0);
    let short = |setup: Setup| on_error(setup);
    let written = || steps().commit_log(&CommitLog::in_memory());
    for options in [steps(), written(), steps().trace(&TraceLog::new(64))] {
        let (seen, counted) = run::<T>(edge, &short, options);
        for (nth, (one, other)) in expected.0.lines().zip(seen.lines()).enumerate() {
            assert_eq!(one, other, "call {nth}");
        }
        assert_eq!(expected.0.len(), seen.len());
        assert_eq!(expected.1, counted);
    }
}

#[test]
fn a_call_without_a_budget_sees_and_counts_what_one_with_a_budget_does() {
    let quiet: fn(Setup) -> Setup = |setup| setup.on_error(ErrorPolicy::Continue);
    shows_the_same::<u64>(&Edge::immediate(), quiet);
    shows_the_same::<u64>(&Edge::immediate().queue(3), quiet);
    shows_the_same::<String>(&Edge::immediate().copy_policy(CopyPolicy::MoveOnly), quiet);
}

#[test]
fn so_does_one_that_is_made_anew_after_a_failure() {
    let anew: fn(Setup) -> Setup = |setup| setup.restart(1000, Duration::from_millis(2));
    shows_the_same::<u64>(&Edge::immediate(), anew);
    shows_the_same::<String>(&Edge::immediate().copy_policy(CopyPolicy::MoveOnly), anew);
}

#[test]
fn a_trace_that_is_full_has_the_newest_records_as_they_were() {
    let short = |setup: Setup| setup.on_error(ErrorPolicy::Continue);
    let traced = |capacity: usize| {
        let trace = TraceLog::new(capacity);
        run::<u64>(&Edge::immediate(), &short, RunOptions::steps(100).trace(&trace));
        (trace.n_dropped(), trace.take())
    };
    let (n_dropped, all) = traced(1 << 16);
    assert_eq!(n_dropped, 0);
    for capacity in [0, 1, 2, 17, 100, 500] {
        let (n_dropped, newest) = traced(capacity);
        assert_eq!(newest, all[all.len() - capacity..], "of {capacity}");
        assert_eq!(n_dropped, (all.len() - capacity) as u64);
    }
}
