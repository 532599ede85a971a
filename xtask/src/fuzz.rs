//! `cargo xtask fuzz`: the targets of `fuzz/` under libFuzzer.
//!
//! libFuzzer comes with `cargo-fuzz`, which is installed below `target/` and needs a nightly
//! compiler. A run starts with the stored corpus and writes new inputs below `target/fuzz-corpus`.
//! If an input violates an invariant, the run fails and prints that input. `--keep` then adds the
//! inputs that increase coverage to the stored corpus. Without libFuzzer, `cargo test` in `fuzz/`
//! runs the stored corpus once.

use core::time::Duration;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;

use crate::{
    console::{Line, Steps},
    process::Cmd,
    tool,
    workspace::Workspace,
};

/// The targets: each is a file in `fuzz/fuzz_targets` and a folder in `fuzz/corpus`.
const TARGETS: [&str; 10] = [
    "core_inputs",
    "graph",
    "log_record",
    "mailbox",
    "process",
    "scheduler",
    "trace",
    "wheel",
    "wire_frame",
    "wire_types",
];
/// The version of cargo-fuzz that is known to work.
const CARGO_FUZZ: &str = "0.13.2";
/// Where cargo-fuzz is installed, so that nothing outside of the checkout changes.
const TOOLS: &str = "target/tools";
/// Time for the build and the start of a run, in addition to the time of fuzzing.
const EXTRA: Duration = Duration::from_secs(1800);
/// The longest input: enough operations to reach every fault of the small models.
const LEN_MAX: u32 = 512;

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// How long each target runs
    #[arg(long, value_name = "M", default_value_t = 1)]
    minutes: u64,
    /// Run only this target
    #[arg(long, value_name = "T", value_parser = TARGETS)]
    target: Option<String>,
    /// Add inputs that increase coverage to the stored corpus
    #[arg(long)]
    keep: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let chosen: Vec<&str> = TARGETS
        .into_iter()
        .filter(|name| options.target.as_deref().is_none_or(|only| only == *name))
        .collect();
    let mut steps = Steps::new("fuzz", 2 + chosen.len() * (1 + usize::from(options.keep)));
    if !steps.step("nightly", ensure_nightly)
        || !steps.step("cargo-fuzz", |line| ensure_cargo_fuzz(&workspace, line))
    {
        return steps.finish();
    }
    for name in chosen {
        let is_clean = steps.step(&format!("{name}, {} min", options.minutes), |line| {
            fuzz(&workspace, name, options.minutes, line)
        });
        if options.keep && is_clean {
            steps.step(&format!("{name}, keep new inputs"), |line| keep(&workspace, name, line));
        }
    }
    steps.finish()
}

fn ensure_nightly(_line: &Line) -> Result<String> {
    let version = || Cmd::new("rustc").arg("+nightly").arg("--version").capture();
    if !version().is_ok_and(|finished| finished.is_success()) {
        let install = "toolchain install nightly --profile minimal";
        Cmd::new("rustup").words(install).capture()?;
    }
    let finished = version()?;
    if !finished.is_success() {
        bail!("no nightly compiler: run rustup toolchain install nightly --profile minimal");
    }
    Ok(finished.output.trim().to_owned())
}

fn ensure_cargo_fuzz(workspace: &Workspace, line: &Line) -> Result<String> {
    let program = workspace.root.join(TOOLS).join("bin/cargo-fuzz");
    let is_there = || tool::starts(&program.to_string_lossy());
    if !is_there() {
        Cmd::cargo()
            .words("install --locked cargo-fuzz --version")
            .arg(CARGO_FUZZ)
            .arg("--root")
            .arg(workspace.root.join(TOOLS))
            .run(line, &workspace.log("cargo-fuzz.log"))?;
    }
    Ok(CARGO_FUZZ.to_owned())
}

/// `cargo-fuzz run` of a target; the caller appends corpora and libFuzzer's options.
fn cargo_fuzz(workspace: &Workspace, name: &str) -> Cmd {
    Cmd::new(workspace.root.join(TOOLS).join("bin/cargo-fuzz"))
        .env("RUSTUP_TOOLCHAIN", "nightly")
        .env("CARGO_TERM_COLOR", "never")
        .without_env("CARGO")
        .without_env("RUSTC")
        .words("fuzz run --features libfuzzer --target-dir target/fuzz-lib")
        .arg(name)
        .dir(&workspace.root)
}

fn found_dir(name: &str) -> String {
    format!("target/fuzz-corpus/{name}")
}

fn kept_dir(name: &str) -> String {
    format!("fuzz/corpus/{name}")
}

fn fuzz(workspace: &Workspace, name: &str, minutes: u64, line: &Line) -> Result<String> {
    let time = Duration::from_secs(minutes * 60);
    let found = workspace.root.join(found_dir(name));
    std::fs::create_dir_all(&found)?;
    let finished = cargo_fuzz(workspace, name)
        .arg(found)
        .arg(kept_dir(name))
        .arg("--")
        .arg(format!("-max_total_time={}", time.as_secs()))
        .arg(format!("-max_len={LEN_MAX}"))
        .words("-timeout=20 -print_final_stats=1")
        .limit(time + EXTRA)
        .run(line, &workspace.log(&format!("fuzz-{name}.log")))?;
    // A run that tested no input is not a success.
    let Some(runs) = stat(&finished.output, "stat::number_of_executed_units").filter(|n| *n > 0)
    else {
        bail!("libFuzzer does not report how many inputs it ran:\n{}", finished.tail());
    };
    let rate = stat(&finished.output, "stat::average_exec_per_sec").unwrap_or(0);
    Ok(format!("{runs} inputs, {rate}/s, no invariant violated"))
}

fn keep(workspace: &Workspace, name: &str, line: &Line) -> Result<String> {
    let kept = workspace.root.join(kept_dir(name));
    let before = n_files(&kept);
    cargo_fuzz(workspace, name)
        .arg(&kept)
        .arg(found_dir(name))
        .arg("--")
        .words("-merge=1")
        .limit(EXTRA)
        .run(line, &workspace.log(&format!("fuzz-{name}-keep.log")))?;
    Ok(format!("{before} inputs before, {} now", n_files(&kept)))
}

fn n_files(dir: &Path) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

/// The number after a name in libFuzzer's statistics.
fn stat(output: &str, name: &str) -> Option<u64> {
    let line = output.lines().rev().find_map(|line| line.trim().strip_prefix(name))?;
    line.trim_start_matches(':').trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_off_the_end_of_a_run() {
        let output = "Done 7 runs\nstat::number_of_executed_units: 308548\nstat::x: 1\n";
        assert_eq!(stat(output, "stat::number_of_executed_units"), Some(308_548));
        assert_eq!(stat(output, "stat::peak_rss_mb"), None);
    }

    #[test]
    fn every_target_has_its_file_its_corpus_and_its_function() {
        let root = crate::workspace::root().expect("there is a workspace");
        let list =
            std::fs::read_to_string(root.join("fuzz/src/lib.rs")).expect("fuzz/src/lib.rs exists");
        let n_functions = list.lines().filter(|line| line.starts_with("    (\"")).count();
        assert_eq!(n_functions, TARGETS.len(), "a target is in one list only");
        for name in TARGETS {
            assert!(root.join(format!("fuzz/fuzz_targets/{name}.rs")).is_file(), "{name}");
            assert!(n_files(&root.join(kept_dir(name))) > 0, "{name}");
            assert!(list.contains(&format!("(\"{name}\", {name})")), "{name}");
        }
    }
}
