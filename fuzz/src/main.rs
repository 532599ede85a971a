//! Runs the fuzzed functions on changed texts, the same for the same seed:
//! `cargo run --release --manifest-path fuzz/Cargo.toml -- RUNS SEED [FILE..]`. Files are what is
//! changed, beside one that is built in; with zero runs they are only loaded, as they are.

use std::process::ExitCode;

/// Every part of the format, briefly.
const SEED: &str = "\
schema_version: 1
graph: {name: g, kind: internal_test, config: {k: [1, {a: 'b'}]}, clock: {event_domain: device}}
lanes:
  main: {type: fixed_rate, hz: 1.5, cpu_affinity: [0, 1]}
components:
  - id: a
    type: t
    event_sources: [{type: message, inputs: [x], input: y}]
    trigger_policy: {type: batch, batch_size: 3}
    execution: {lane: main, on_error: {policy: restart}}
    depends_on: [s.b]
    config: {text: \"a\\tb\", none: }
edges:
  - {id: e, kind: async, from: a.out, to: s.b.in, policy: {mode: queue, capacity: 8}}
composite_loops:
  - {id: l, components: [a], order: [a], loop_policy: {type: fixed_point}}
subgraphs:
  - {id: s, components: [{id: b, type: t, execution: {lane: main}}], edges: []}
templates:
  - id: t
    parameters: [p]
    components: [{id: c, type: '{{p}}', execution: {lane: main}}]
    edges: []
template_instances: [{id: i, template: t, parameters: {p: x}}]
";

/// What texts are changed with.
const PIECES: &[&str] = &[
    "",
    "\n",
    "  ",
    "\n- ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\"",
    "'",
    "|\n",
    "&a ",
    "*a",
    "!t ",
    "?",
    "#",
    "~",
    "-1",
    "1e999",
    "{{p}}",
    "{{",
    "---\n",
    "...\n",
    "%",
    "\t",
    "\r",
    "\0",
    "\u{feff}",
    "é",
    "id",
    "lanes",
    "components: ",
    "edges: []",
    "templates: ",
    "<<: ",
    "99999999999999999999",
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok());
    let (Some(runs), Some(seed)) = (number(), number()) else {
        eprintln!("usage: clockjack-fuzz RUNS SEED [FILE..]");
        return ExitCode::from(2);
    };
    let mut texts = vec![SEED.as_bytes().to_vec()];
    for path in arguments {
        match std::fs::read(&path) {
            Ok(bytes) => texts.push(bytes),
            Err(error) => {
                eprintln!("{path} cannot be read: {error}");
                return ExitCode::from(2);
            }
        }
    }
    texts.iter().for_each(|text| clockjack_fuzz::load(text));
    for run in 0..runs {
        // Each run has a seed of its own, so that one can be repeated alone.
        let mut random = Random(seed.wrapping_add(run));
        let bytes = changed(&texts, &mut random);
        if std::panic::catch_unwind(|| clockjack_fuzz::load(&bytes)).is_err() {
            eprintln!("seed {}: {:?}", seed.wrapping_add(run), String::from_utf8_lossy(&bytes));
            return ExitCode::FAILURE;
        }
    }
    println!("{runs} changed texts from seed {seed}: all read or refused");
    ExitCode::SUCCESS
}

/// A text with some pieces cut out, put in, repeated or moved.
fn changed(texts: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = texts[random.below(texts.len())].clone();
    for _ in 0..=random.below(8) {
        let start = random.below(bytes.len() + 1);
        let end = (start + random.below(40)).min(bytes.len());
        let piece = match random.below(6) {
            0 => Vec::new(),
            1 => bytes[start..end].repeat(random.below(50)),
            2 => vec![u8::try_from(random.below(256)).expect("it is below 256")],
            3 => {
                let from = random.below(bytes.len() + 1);
                bytes[from..(from + 30).min(bytes.len())].to_vec()
            }
            _ => PIECES[random.below(PIECES.len())].as_bytes().to_vec(),
        };
        bytes.splice(start..end, piece);
    }
    bytes
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `max`, which is not zero.
    fn below(&mut self, max: usize) -> usize {
        let max = u64::try_from(max).expect("lengths fit");
        usize::try_from(self.next() % max).expect("it is below a length")
    }
}
