//! Tests the graph `graphs/tank.yaml` in virtual time.

use std::sync::mpsc;

use clockjack::{
    graph::{
        Clock, CommitLog, Component, Execute, Failure, GraphContext, GraphFile, Input, Parallel,
        Registry, RunOptions, RunReport,
    },
    prelude::*,
    testkit::ManualTime,
};

use {{crate}}::registry;

const TANK: &str = include_str!("../graphs/tank.yaml");

/// `watched`: replaces the gauge, and sends its input values to the test.
#[derive(Component, Default)]
#[component(type = "watched", role = "output")]
struct Watched {
    #[input]
    r#in: Input<f64>,
    seen: Option<mpsc::Sender<f64>>,
}

impl Execute for Watched {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        while let Some(level) = cx.take(self.r#in) {
            if let Some(seen) = &self.seen {
                seen.send(level)?;
            }
        }
        Ok(())
    }
}

fn run(
    text: &str,
    registry: &Registry,
    options: RunOptions,
) -> Result<RunReport, Box<dyn std::error::Error>> {
    let graph = GraphFile::parse("tank.yaml", text)?.compile(registry)?;
    let time = ManualTime::start();
    Ok(time.block_on(graph.start(time.system(), options.clock(Clock::Virtual))?)?)
}

#[test]
fn the_tank_settles_at_ten_litres_and_never_overflows() -> Result<(), Box<dyn std::error::Error>> {
    let (to, seen) = mpsc::channel();
    let make = move || Watched {
        seen: Some(to.clone()),
        ..Watched::default()
    };
    let registry = registry().register_with(make);
    let text = TANK.replace("type: output", "type: watched");
    run(&text, &registry, RunOptions::steps(3000))?;
    drop(registry);
    let levels: Vec<f64> = seen.try_iter().collect();
    assert_eq!(levels.len(), 3000);
    let last = levels[levels.len() - 1];
    assert!((last - 10.0).abs() < 0.1, "the level is {last} after 30 s");
    let highest = levels.iter().copied().fold(0.0, f64::max);
    assert!(highest < 12.0, "the highest level was {highest}");
    Ok(())
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() -> Result<(), Box<dyn std::error::Error>> {
    let log_of = |workers: usize| {
        let log = CommitLog::in_memory();
        let options = RunOptions::steps(500).commit_log(&log).workers(workers);
        let rt = Runtime::new("tank")?;
        let graph = GraphFile::parse("tank.yaml", TANK)?.compile(&registry())?;
        let options = options.clock(Clock::Virtual).parallel(Parallel::Always);
        rt.block_on(graph.start(rt.system(), options)?)?;
        Ok::<_, Box<dyn std::error::Error>>(log.bytes())
    };
    let one = log_of(1)?;
    assert!(!one.is_empty());
    assert!(one == log_of(4)?, "the logs differ");
    Ok(())
}
