//! The largest file that schema version 1 allows: 4,096 components, 8,192 edges; read, checked and
//! ordered.

use core::fmt::Write as _;
use std::io;

use clockjack_graph::{
    Component, Execute, Failure as Failed, GraphContext, GraphFile, Input, Output, Registry,
};

use super::clockjack::NAME;
use crate::clock::Watch;
use crate::failure::Failure;

/// Components of the file; it has twice as many edges.
pub(crate) const N_COMPONENTS: u32 = 4_096;

#[derive(Component, Default)]
#[component(type = "pair")]
struct Pair {
    #[input]
    a: Input<u64>,
    #[input]
    b: Input<u64>,
    #[output]
    out: Output<u64>,
}

impl Execute for Pair {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failed> {
        let (a, b) = (cx.latest(self.a).copied(), cx.latest(self.b).copied());
        cx.publish(self.out, a.unwrap_or(0).wrapping_add(b.unwrap_or(0)))?;
        Ok(())
    }
}

/// The times of one reading, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) load_ms: f64,
    /// The same file with an escape in its second line, which only the general YAML parser reads.
    pub(crate) load_general_ms: f64,
    pub(crate) compile_ms: f64,
    /// The total as wall time; the others are CPU time.
    pub(crate) wall_ms: f64,
}

/// The text of the file: each component reads the previous one and the one at half its number, so
/// that the order has both depth and width; the first one reads the last two of the previous epoch.
pub(crate) fn text() -> String {
    let mut text = String::from(
        "schema_version: 1\ngraph: { name: large }\nlanes: { main: { type: event_loop } }\n\
         components:\n",
    );
    for index in 0..N_COMPONENTS {
        let boundary = match index {
            0 => ", boundary: {role: input}",
            _ if index == N_COMPONENTS - 1 => ", boundary: {role: output}",
            _ => "",
        };
        let done = writeln!(
            text,
            "  - {{id: n{index}, type: pair, event_sources: [{{type: message, input: a}}], \
             trigger_policy: {{type: any_input}}, execution: {{lane: main}}{boundary}}}"
        );
        done.expect("writing to a string cannot fail");
    }
    text.push_str("edges:\n");
    for index in 0..N_COMPONENTS {
        let (kind, a, b) = match index {
            0 => ("delay", N_COMPONENTS - 1, N_COMPONENTS - 2),
            _ => ("immediate", index - 1, index / 2),
        };
        for (port, from) in [("a", a), ("b", b)] {
            let done = writeln!(
                text,
                "  - {{id: {port}{index}, kind: {kind}, from: n{from}.out, to: n{index}.{port}}}"
            );
            done.expect("writing to a string cannot fail");
        }
    }
    text
}

/// Reads the file once.
///
/// # Errors
///
/// If it is refused.
pub(crate) fn read(text: &str, watch: Watch) -> Result<Reading, Failure> {
    let refused = |what: String| Failure::start(NAME, io::Error::other(what));
    let registry = Registry::new().register::<Pair>();
    let (file, load) = watch.time(|| GraphFile::parse("large.yaml", text));
    let file = file.map_err(|faults| refused(faults.to_string()))?;
    let general = text.replacen("name: large", r#"name: "l\x61rge""#, 1);
    let (again, load_general) = watch.time(|| GraphFile::parse("large.yaml", &general));
    again.map_err(|faults| refused(faults.to_string()))?;
    let (graph, compile) = watch.time(|| file.compile(&registry));
    let graph = graph.map_err(|faults| refused(faults.to_string()))?;
    let n_regions = graph.plan().regions.len() as u64;
    if n_regions != u64::from(N_COMPONENTS) {
        let expected = u64::from(N_COMPONENTS);
        return Err(Failure::miscount(NAME, "the number of regions", n_regions, expected));
    }
    Ok(Reading {
        load_ms: load.cpu_ns / 1e6,
        load_general_ms: load_general.cpu_ns / 1e6,
        compile_ms: compile.cpu_ns / 1e6,
        wall_ms: (load.wall_ns + compile.wall_ns) / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::{N_COMPONENTS, read, text};
    use crate::clock::{Scope, Watch};

    #[test]
    fn the_file_is_as_large_as_it_says_and_no_larger_than_a_file_may_be() {
        let text = text();
        let count = |part: &str| text.matches(part).count();
        assert_eq!(count("type: pair"), N_COMPONENTS as usize);
        assert_eq!(count("kind: "), 2 * N_COMPONENTS as usize);
        assert!(text.len() <= 1 << 20, "{} bytes", text.len());
        let watch = Watch::calibrated(Scope::Thread);
        let reading = read(&text, watch).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(reading.load_ms > 0.0 && reading.compile_ms > 0.0, "{reading:?}");
    }
}
