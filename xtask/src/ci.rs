//! `cargo xtask ci` and `cargo xtask deep`: lists of command lines, run in order to the end.
//!
//! A failing step does not stop the rest, so one run shows every error. The errors are printed a
//! second time at the very end, because a truncated log keeps its end.

use std::time::SystemTime;

use anyhow::{Context as _, Result};

use crate::{
    console::{self, Steps},
    digest::{digest, is_item},
    process::{self, Cmd},
    workspace::Workspace,
};

/// One step: a command line with its environment variables.
struct Step {
    name: &'static str,
    /// Arguments of cargo.
    args: &'static str,
    env: Option<(&'static str, &'static str)>,
    /// Whether the output is shown while the step runs: for steps that take minutes.
    is_shown: bool,
}

const fn quiet(name: &'static str, args: &'static str) -> Step {
    Step { name, args, env: None, is_shown: false }
}

const fn shown(name: &'static str, args: &'static str) -> Step {
    Step { name, args, env: None, is_shown: true }
}

/// What every submission must pass. The first step is the README's test command.
const CI: &[Step] = &[
    shown("cargo xtask test", "xtask test"),
    quiet("fmt", "fmt --all --check"),
    quiet("fmt proof", "fmt --manifest-path proof/nostd/Cargo.toml --check"),
    quiet("fmt proof, sanitizers", "fmt --manifest-path proof/sanitize/Cargo.toml --check"),
    quiet("fmt fuzz", "fmt --manifest-path fuzz/Cargo.toml --check"),
    quiet("fuzz, kept corpus", "test --manifest-path fuzz/Cargo.toml --target-dir target/fuzz"),
    quiet("clippy", "clippy --workspace --all-targets --all-features -- -D warnings"),
    quiet(
        "clippy, core without features",
        "clippy -p clockjack-sync -p clockjack-time -p clockjack-observe -- -D warnings",
    ),
    quiet("clippy, rt without features", "clippy -p clockjack-rt --all-targets -- -D warnings"),
    quiet("tests, rt without features", "test -p clockjack-rt --lib --test pool"),
    Step {
        env: Some(("RUSTFLAGS", "--cfg loom")),
        // Without the console and what is above it: tokio has no sockets under loom.
        ..quiet(
            "clippy, loom",
            "clippy -p clockjack-sync -p clockjack-time -p clockjack-observe -p clockjack-exec \
             -p clockjack-sched -p clockjack-actor -p clockjack-macros -p clockjack-wire \
             -p clockjack-net -p clockjack-testkit -p clockjack-rt -p clockjack-embassy \
             -p clockjack-graph -p clockjack-sim -p clockjack-scenario -p clockjack-testing \
             --lib --tests --all-features --profile model --target-dir target/mutants/loom \
             -- -D warnings",
        )
    },
    Step {
        env: Some(("RUSTFLAGS", "--cfg shuttle")),
        ..quiet(
            "clippy, shuttle",
            "clippy -p clockjack-sync -p clockjack-time -p clockjack-observe -p clockjack-exec \
             --lib --tests --all-features --profile model --target-dir target/mutants/shuttle \
             -- -D warnings",
        )
    },
    Step {
        env: Some(("RUSTDOCFLAGS", "-D warnings")),
        ..quiet("docs", "doc --workspace --no-deps --all-features")
    },
    quiet("tidy", "xtask tidy"),
    quiet("layering", "xtask layering"),
    quiet("contract", "xtask contract"),
    quiet("licences", "xtask licences"),
    // Without builds: `deep` has the whole dry run.
    quiet("release checks", "xtask release --dry-run --no-verify"),
    shown("init", "xtask init"),
    quiet("fmt firmware", "fmt --manifest-path firmware/Cargo.toml --check"),
    shown("nostd", "xtask nostd"),
    shown("firmware", "xtask firmware"),
    // A fixed seed: the same schedules each time. `deep` uses other seeds.
    shown("shuttle", "xtask shuttle --share --seed 1"),
    shown("sim, 200 seeds", "xtask sim --seeds 200 --twice"),
    // All of them by the workload that has a sixth of those above.
    shown("sim, 200 seeds of clusters", "xtask sim --workload cluster --seeds 200"),
    // Without the faults of nodes and servers, which take minutes. The server is fetched.
    shown("nats, quick", "xtask nats --quick"),
    // Debian's Chromium; it is installed if it is missing.
    shown("browser", "xtask browser"),
    shown("Windows, the scenario in Wine", "xtask foreign --windows --quick"),
    shown("macOS, libraries", "xtask foreign --macos --quick"),
    shown("mutants", "xtask mutants"),
    shown("counts", "xtask counts"),
];

/// The long checks: before a release, and after a change to a protocol between threads.
const DEEP: &[Step] = &[
    shown("loom, full", "xtask loom --full"),
    shown("shuttle, long", "xtask shuttle --iterations 2000000"),
    shown("sim, 10,000 seeds", "xtask sim --seeds 10000"),
    shown("sim, planted faults", "xtask sim --planted"),
    shown("mutants", "xtask mutants"),
    Step {
        env: Some(("CLOCKJACK_GRAPHS", "1000")),
        ..shown(
            "a thousand random graphs",
            "test --release -p clockjack-graph --test determinism -- --nocapture",
        )
    },
    Step {
        env: Some(("CLOCKJACK_REPEATS", "50")),
        ..shown(
            "no silent loss by the wall clock, fifty times",
            "test --release -p clockjack-graph --test determinism ledger -- --nocapture",
        )
    },
    shown(
        "pictures of 2,000 components",
        "run --profile dist -p clockjack-graph --example large_picture",
    ),
    shown("release, dry run", "xtask release --dry-run"),
    shown("sanitizers", "xtask sanitize"),
    shown("nostd, all targets", "xtask nostd --all"),
    shown("firmware, all targets", "xtask firmware --all"),
    shown("foreign processors", "xtask foreign"),
    shown("Windows, in Wine", "xtask foreign --windows"),
    shown("macOS, type-checked", "xtask foreign --macos"),
    shown("nats, fifty rounds", "xtask nats --rounds 50 --operations 100000"),
    shown("fuzz, ten minutes per target", "xtask fuzz --minutes 10"),
    shown("counts", "xtask counts"),
    // The comparisons and the soak are not part of `ci`, whose clippy compiles them all the same.
    quiet("compare tests", "test --profile smoke -p clockjack-compare"),
    // One program at a time, on a quiet machine: they are looked at for three seconds each.
    quiet("sick shops", "test -p clockjack-shop -- --test-threads 1"),
    shown(
        "an idle minute of the gateway",
        "run -p clockjack-gateway -- --idle 60 127.0.0.1:0 127.0.0.1:0",
    ),
    shown("compare timers", "xtask compare timers"),
    shown("compare executor", "xtask compare executor"),
    shown("compare jitter", "xtask compare jitter"),
    shown("compare scheduler", "xtask compare scheduler"),
    shown("compare actors", "xtask compare actors"),
    shown("compare actor-timers", "xtask compare actor-timers"),
    shown("compare graph", "xtask compare graph"),
    shown("rate over a minute", "run --profile dist -p clockjack-rt --example rate"),
    shown("soak, half an hour", "xtask soak --minutes 30"),
];

/// Runs `ci`.
pub(crate) fn run() -> Result<()> {
    run_list("ci", CI).1
}

/// Runs `deep` and writes all output to one dated file.
pub(crate) fn run_deep() -> Result<()> {
    let workspace = Workspace::load()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let date = date(now.context("the clock shows a time before 1970")?.as_secs());
    let (output, result) = run_list("deep", DEEP);
    let path = workspace.root.join(format!("target/deep-{date}.log"));
    process::write(&path, &output)?;
    console::say(format_args!("log: {}", path.display()));
    result
}

/// The list that has a step with these arguments of cargo: `ci`, or else `deep`.
pub(crate) fn list_that_runs(args: &str) -> Option<&'static str> {
    let lists = [("ci", CI), ("deep", DEEP)];
    let found = lists.into_iter().find(|(_, list)| list.iter().any(|step| step.args == args));
    found.map(|(title, _)| title)
}

fn run_list(title: &'static str, list: &[Step]) -> (String, Result<()>) {
    let workspace = match Workspace::load() {
        Ok(workspace) => workspace,
        Err(error) => return (String::new(), Err(error)),
    };
    let mut output = String::new();
    let mut faults = Vec::new();
    let mut steps = Steps::new(title, list.len());
    for (index, step) in list.iter().enumerate() {
        let log = workspace.log(&format!("{title}-{:02}.log", index + 1));
        // The step calls xtask through cargo, so that cargo rebuilds xtask first if it has changed.
        // Nothing is built a second time, so incremental data would be of no use.
        let cmd = Cmd::cargo().words(step.args).dir(&workspace.root);
        let mut cmd = cmd.env("CI", "true").env("CARGO_INCREMENTAL", "0");
        if let Some((name, value)) = step.env {
            cmd = cmd.env(name, value);
        }
        let mut text = String::new();
        let passed = steps.step(step.name, |line| {
            let result = if step.is_shown {
                cmd.stream(line, &log, |text| !is_item(text))
            } else {
                cmd.run(line, &log)
            };
            text = std::fs::read_to_string(&log).unwrap_or_default();
            let finished = result?;
            Ok(note(step, &finished.output))
        });
        if !passed {
            faults.push((step.name, digest(&text)));
        }
        output += &text;
    }
    let result = steps.finish();
    for (name, lines) in faults {
        console::say(format_args!("\nFAILED: {name}"));
        lines.iter().for_each(|line| console::say(format_args!("  {line}")));
    }
    (output, result)
}

/// The last line of the output of one of our own commands: the totals of the tests, or the note of
/// the last step.
fn note(step: &Step, output: &str) -> String {
    let is_ours = step.args.starts_with("xtask");
    let last = output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    if is_ours && last.ends_with(" failed") {
        return last.to_owned();
    }
    let ends = output.lines().rfind(|line| line.starts_with('[') && line.contains("] "));
    let remark = ends.and_then(|line| Some(line.split_once(" ok ")?.1.split_once("s  ")?.1));
    remark.filter(|_| is_ours).unwrap_or_default().to_owned()
}

/// The date of a time in seconds since 1970, UTC, as `2026-01-31`.
///
/// Days are counted from 0000-03-01, so that the leap day is the last of its year; after Howard
/// Hinnant's "chrono-Compatible Low-Level Date Algorithms".
fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_of_ci_is_the_test_command_of_the_readme() {
        assert_eq!(CI[0].args, "xtask test");
    }

    #[test]
    fn dates_are_right_at_the_edges() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_798_761_599, "2026-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }

    #[test]
    fn the_note_of_a_step_is_what_our_own_commands_say_last() {
        let ours = quiet("tidy", "xtask tidy");
        assert_eq!(note(&ours, "tidy: 1 step\n[1/1] rules ... ok 0.1s  9 files\n"), "9 files");
        assert_eq!(note(&ours, "[1/1] rules ... ok 0.1s\n\ntotal  1.0\n"), "");
        assert_eq!(
            note(&ours, "[1/1] a ... ok 0.1s  b\n\n7 passed, 0 failed\n"),
            "7 passed, 0 failed"
        );
        assert_eq!(note(&quiet("fmt", "fmt --all"), "something\n"), "");
    }
}
