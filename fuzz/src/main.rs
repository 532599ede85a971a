//! Runs a target on mutated inputs, the same for the same seed, without libFuzzer: `cargo run
//! --release --manifest-path fuzz/Cargo.toml -- TARGET RUNS SEED [FILE..]`. The inputs are the
//! files, or the stored corpus of the target; with zero runs they are run unchanged.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clockjack_testing::Random;

/// Pieces that mutations insert, in addition to single bytes.
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
    let name = arguments.next().unwrap_or_default();
    let target = clockjack_fuzz::TARGETS.iter().find(|(known, _)| *known == name);
    let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok());
    let (Some((name, run)), Some(runs), Some(seed)) = (target, number(), number()) else {
        let names = clockjack_fuzz::TARGETS.map(|(name, _)| name).join("|");
        eprintln!("usage: clockjack-fuzz {names} RUNS SEED [FILE..]");
        return ExitCode::from(2);
    };
    let mut paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    if paths.is_empty() {
        paths = corpus(name);
    }
    let mut inputs = Vec::new();
    for path in paths {
        match std::fs::read(&path) {
            Ok(bytes) => inputs.push(bytes),
            Err(error) => {
                eprintln!("{} cannot be read: {error}", path.display());
                return ExitCode::from(2);
            }
        }
    }
    if inputs.is_empty() {
        inputs.push(Vec::new());
    }
    inputs.iter().for_each(|input| run(input));
    for nth in 0..runs {
        // Each run has its own seed, so that it can be repeated alone.
        let mut random = Random::new(seed.wrapping_add(nth));
        let bytes = changed(&inputs, &mut random);
        if std::panic::catch_unwind(|| run(&bytes)).is_err() {
            eprintln!("{name}, seed {}: {:?}", seed.wrapping_add(nth), bytes.escape_ascii());
            return ExitCode::FAILURE;
        }
    }
    println!("{name}: {runs} mutated inputs from seed {seed}, no invariant violated");
    ExitCode::SUCCESS
}

/// The stored inputs of a target, in a fixed order.
fn corpus(name: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// An input with some pieces removed, inserted, repeated or moved.
fn changed(texts: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = texts[random.index(texts.len())].clone();
    for _ in 0..=random.index(8) {
        let start = random.index(bytes.len() + 1);
        let end = (start + random.index(40)).min(bytes.len());
        let piece = match random.index(6) {
            0 => Vec::new(),
            1 => bytes[start..end].repeat(random.index(50)),
            2 => vec![u8::try_from(random.index(256)).expect("it is below 256")],
            3 => {
                let from = random.index(bytes.len() + 1);
                bytes[from..(from + 30).min(bytes.len())].to_vec()
            }
            _ => PIECES[random.index(PIECES.len())].as_bytes().to_vec(),
        };
        bytes.splice(start..end, piece);
    }
    bytes
}
