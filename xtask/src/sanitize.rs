//! `cargo xtask sanitize`: the stress tests under ThreadSanitizer and AddressSanitizer.
//!
//! The tests of the actors run too: those on one thread exercise memory, and those on several
//! threads cover cases that the stress tests do not.
//!
//! Everything is built with Debian's compiler and a std built from its sources: with an
//! uninstrumented std, ThreadSanitizer reports races in correct programs. The sanitizer's run-time
//! library is the archive of rustup's toolchain, because Debian has none under the name that its
//! compiler expects; the archive is passed to the linker, so no system folder changes.
//!
//! `proof/sanitize` runs first. The sanitizer must report its planted faults and must not report
//! its correct program; otherwise a run without reports would prove nothing. There is no
//! suppression file, and sanitizer options of the environment, which could name one, are replaced.
//! Any report is a failure.
//!
//! ThreadSanitizer does not model stand-alone fences. If an ordering depends on a fence alone, it
//! reports a false race; then the code gets an access that provides the ordering, and the report is
//! not suppressed.

use core::{fmt, time::Duration};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};

use crate::{
    console::{Line, Steps},
    libtest::{self, Totals},
    process::{Cmd, Finished},
    testbin::{self, TestBin},
    tool,
    workspace::{Package, Workspace},
};

/// The tests for this command: they use many real threads.
const TESTS: &str = "tests/stress.rs";
/// Further tests: a package, and the arguments of `cargo test` that select its targets.
const ALSO: [(&str, &str); 2] =
    [("clockjack-actor", "--tests"), ("clockjack-rt", "--test actors --test actor_laws")];
/// Tests that leak memory on purpose: threads that never exit and what these threads own; a panic
/// that unwinds through an executor, which cannot know what it has left behind; values that panic
/// again when they are dropped.
const LEAVE: [&str; 3] = [
    "who_does_not_stop_in_time_is_reported_to_all_and_left_behind",
    "what_the_host_does_not_catch_no_strategy_is_asked_about",
    "a_panic_with_something_that_panics_is_survived",
];
/// The test target that is empty without loom.
const MODELS: &str = "loom";
/// The only target whose run-time archives are searched for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The manifest of the planted faults.
const PROOF: &str = "proof/sanitize/Cargo.toml";
/// Instrumented code is slow, and so are shared machines; the limit still detects a hang.
const LIMIT: Duration = Duration::from_secs(1200);
/// How many lines of the first report are printed; the log has all of it.
const REPORT_LINES: usize = 30;

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Use only this sanitizer instead of both
    sanitizer: Option<Sanitizer>,
}

/// A sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sanitizer {
    /// Data races
    Thread,
    /// Use after free, access out of bounds, and memory leaks
    Address,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let all = [Sanitizer::Thread, Sanitizer::Address];
    let chosen: Vec<Sanitizer> =
        all.into_iter().filter(|one| options.sanitizer.is_none_or(|only| only == *one)).collect();
    let mut steps = Steps::new("sanitize", 1 + 3 * chosen.len());
    if !steps.step("toolchain with a std to build", tool::ensure_debian_rust) {
        return steps.finish();
    }
    for sanitizer in chosen {
        let proven = steps.step(&format!("{sanitizer} reports the planted faults"), |line| {
            sanitizer.prove(&workspace, line)
        });
        if !proven {
            break;
        }
        let mut tests = Vec::new();
        let built = steps.step(&format!("build stress tests for {sanitizer}"), |line| {
            tests = sanitizer.build(&workspace, line)?;
            Ok(format!("{} binaries", tests.len()))
        });
        if !built {
            break;
        }
        steps.step(&format!("stress tests under {sanitizer}"), |line| {
            sanitizer.run_tests(&workspace, &tests, line)
        });
    }
    steps.finish()
}

impl Sanitizer {
    /// The compiler's name of the sanitizer.
    fn word(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Address => "address",
        }
    }

    /// The rustup archive with the sanitizer's run-time.
    fn runtime(self) -> Result<PathBuf> {
        let sysroot = Cmd::new("rustc").words("--print sysroot").capture()?;
        let dir = Path::new(sysroot.output.trim()).join("lib/rustlib").join(TARGET).join("lib");
        let end = match self {
            Self::Thread => "_rt.tsan.a",
            Self::Address => "_rt.asan.a",
        };
        let entries =
            std::fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.find(|path| path.to_string_lossy().ends_with(end)).with_context(|| {
            format!("no *{end} in {}: rustup's toolchains contain it", dir.display())
        })
    }

    /// Debian's cargo with the std and the flags for this sanitizer; `words` start with the
    /// subcommand.
    fn cargo(self, workspace: &Workspace, words: &str) -> Result<Cmd> {
        let runtime = self.runtime()?;
        // Link the whole archive, because the linker sees no reference to the functions that it
        // intercepts; and link it first, because it needs the system libraries, which are linked
        // last.
        let flags = format!(
            "-Zsanitizer={} -Zexternal-clangrt \
             -Zpre-link-arg=-Wl,--whole-archive,{},--no-whole-archive",
            self.word(),
            runtime.display()
        );
        Ok(tool::debian("cargo")
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", flags)
            .without_env("CARGO_ENCODED_RUSTFLAGS")
            .words(words)
            .words("-Zbuild-std --target")
            .arg(TARGET)
            .arg("--target-dir")
            .arg(self.target_dir())
            .dir(&workspace.root))
    }

    fn target_dir(self) -> PathBuf {
        Path::new("target/sanitize").join(self.word())
    }

    /// Sets the options of the sanitizer; all others have their defaults.
    fn watch(self, cmd: Cmd) -> Cmd {
        // A distinct exit status, even if all tests pass; an empty list of suppressions.
        let options = "exitcode=66:suppressions=";
        cmd.env("TSAN_OPTIONS", options)
            .env("ASAN_OPTIONS", format!("{options}:detect_leaks=1"))
            .env("LSAN_OPTIONS", options)
            // Resolving the names of a backtrace takes seconds here, and some tests panic on
            // purpose.
            .env("RUST_BACKTRACE", "0")
            .limit(LIMIT)
    }

    /// Builds and runs the proof: the correct program causes no report, each fault does.
    fn prove(self, workspace: &Workspace, line: &Line) -> Result<String> {
        let build = self.cargo(workspace, &format!("build --manifest-path {PROOF}"))?;
        build.run(line, &workspace.log(&format!("build-{}-proof.log", self.word())))?;
        let program = workspace
            .root
            .join(self.target_dir())
            .join(TARGET)
            .join("debug/clockjack-sanitize-proof");
        let run = |fault: &str| -> Result<(Cmd, Finished)> {
            let cmd = self.watch(Cmd::new(&program).arg(fault));
            let finished = cmd.capture()?;
            Ok((cmd, finished))
        };
        let (cmd, sound) = run("sound")?;
        anyhow::ensure!(
            sound.is_success() && report(&sound.output).is_none(),
            "a correct program was reported: {}",
            cmd.failure(&sound)
        );
        let faults: &[(&str, &str)] = match self {
            Self::Thread => &[("race", "data race")],
            Self::Address => {
                &[("use-after-free", "heap-use-after-free"), ("leak", "LeakSanitizer")]
            }
        };
        for (fault, words) in faults {
            let (cmd, planted) = run(fault)?;
            let found = report(&planted.output).filter(|report| report.contains(words));
            anyhow::ensure!(
                found.is_some() && !planted.is_success(),
                "the planted {fault} was not reported: {}",
                cmd.failure(&planted)
            );
        }
        let names: Vec<&str> = faults.iter().map(|fault| fault.0).collect();
        Ok(names.join(", "))
    }

    fn build(self, workspace: &Workspace, line: &Line) -> Result<Vec<TestBin>> {
        let packages = workspace.with_file(TESTS);
        anyhow::ensure!(!packages.is_empty(), "no crate has {TESTS}");
        let log = workspace.log(&format!("build-sanitize-{}.log", self.word()));
        let build = |packages: &[&Package], selection: &str| {
            let cargo_test = self.cargo(workspace, "test --all-features")?;
            testbin::build_by(workspace, cargo_test, &log, packages, selection, line)
        };
        let mut tests = build(&packages, "--test stress")?;
        anyhow::ensure!(tests.len() == packages.len(), "a crate's {TESTS} was not built");
        for (name, selection) in ALSO {
            let package = workspace.package(name).with_context(|| format!("there is no {name}"))?;
            let more = build(&[package], selection)?;
            tests.extend(more.into_iter().filter(|test| test.target != MODELS));
        }
        Ok(tests)
    }

    /// Runs one binary after the other: each uses threads for every core.
    fn run_tests(self, workspace: &Workspace, tests: &[TestBin], line: &Line) -> Result<String> {
        let mut sum = Totals::default();
        let mut faults = Vec::new();
        for test in tests {
            let mut cmd = self.watch(test.cmd());
            if self == Self::Address {
                cmd = LEAVE.into_iter().fold(cmd, |cmd, name| cmd.words("--skip").arg(name));
            }
            let name = format!("{} {}", test.package, test.target);
            let log = format!("sanitize-{}-{}.log", self.word(), name.replace(' ', "-"));
            let log = workspace.log(&log);
            let outcome = cmd.run(line, &log);
            let output = std::fs::read_to_string(&log).unwrap_or_default();
            let totals = libtest::totals(&output);
            sum += totals;
            match (report(&output), outcome) {
                (Some(report), _) => {
                    faults.push(format!("{name}: {report}(full output: {})", log.display()));
                }
                (None, Err(error)) => faults.push(format!("{name}: {error:#}")),
                (None, Ok(_)) if totals.passed == 0 => {
                    faults.push(format!("{name}: no test ran"));
                }
                (None, Ok(_)) => line.say(&format!("{name:<38} {} passed", totals.passed)),
            }
        }
        if !faults.is_empty() {
            bail!("{}", faults.join("\n"));
        }
        Ok(format!("{} passed, 0 reports", sum.passed))
    }
}

impl fmt::Display for Sanitizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Thread => "ThreadSanitizer",
            Self::Address => "AddressSanitizer",
        })
    }
}

/// The number of reports in an output, and the beginning of the first.
fn report(output: &str) -> Option<String> {
    let is_head = |text: &str| {
        ["WARNING: ", "ERROR: ", "FATAL: "].iter().any(|word| {
            text.split_once(word).is_some_and(|(_, rest)| {
                rest.split([':', ' ']).next().is_some_and(|name| name.ends_with("Sanitizer"))
            })
        })
    };
    let n_reports = output.lines().filter(|text| is_head(text)).count();
    let first = output.lines().skip_while(|text| !is_head(text)).take(REPORT_LINES);
    let plural = if n_reports == 1 { "report" } else { "reports" };
    (n_reports > 0).then(|| {
        let lines: String = first.map(|text| format!("  {text}\n")).collect();
        format!("{n_reports} {plural}, the first:\n{lines}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_counted_and_the_first_is_shown() {
        let race = "==================\nWARNING: ThreadSanitizer: data race (pid=7)\n  Write of";
        let found = report(race).expect("one report");
        assert!(found.starts_with("1 report, the first:\n  WARNING: ThreadSanitizer"), "{found}");
        let leak = "==7==ERROR: LeakSanitizer: detected memory leaks\n";
        let freed = "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n";
        let found = report(&format!("{freed}\n{leak}")).expect("two reports");
        assert!(found.starts_with("2 reports, the first:\n  ==7==ERROR: Addr"), "{found}");
        let fatal = "FATAL: ThreadSanitizer: unexpected memory mapping 0x1-0x2\n";
        assert!(report(fatal).is_some());
    }

    #[test]
    fn the_output_of_tests_that_pass_is_no_report() {
        let passed = "test a_sanitizer_is_named ... ok\nwarning: ThreadSanitizer\nERROR: no\n";
        assert_eq!(report(passed), None);
    }
}
