//! `cargo xtask foreign --windows [CRATE]`: the tests of the host crates, built for Windows with
//! Debian's compiler and mingw, and run in Wine.
//!
//! Clippy looks at the same code. Each test binary runs by itself with a time limit. What is
//! compiled for Linux alone is listed with the first sentence of its file. The tests of
//! [`COMPARED`] hold what they get against texts that were recorded on Linux, and must have run;
//! [`commit_logs`] compares with Linux itself.
//!
//! Wine 8 has no `bcryptprimitives.dll`, which std takes its random numbers from: [`RANDOM`] is
//! compiled and placed next to the programs. Wine shows what a program does with the interface of
//! Windows; it shows nothing about the scheduler of Windows, or about the resolution of its timers.

mod commit_logs;

use core::time::Duration;
use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use super::{
    HOST_PACKAGES,
    lint::{self, Extent},
};
use crate::{
    console::{Line, Steps},
    libtest::{self, Outcome},
    process::{self, Cmd, Held},
    testbin::{self, TestBin},
    tidy::{self, Source},
    tool,
    workspace::{Package, Workspace},
};

/// The target that is built.
pub(super) const TARGET: &str = "x86_64-pc-windows-gnu";
const LINKER: &str = "x86_64-w64-mingw32-gcc";
const WINE: &str = "/usr/lib/wine/wine64";
const WINE_SERVER: &str = "/usr/lib/wine/wineserver64";
const PACKAGES: &str = "gcc-mingw-w64-x86-64-win32 wine64";
/// The only package of the quick form.
const QUICK: &str = "clockjack-scenario";
/// Enough for a std and all dependencies on a busy machine.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);
/// One test binary. The longest, a stress test, takes a minute on a machine that does nothing else.
const RUN_LIMIT: Duration = Duration::from_secs(1800);
/// The creation of the folder that Wine calls a prefix.
const PREFIX_LIMIT: Duration = Duration::from_secs(600);

/// The one function of `bcryptprimitives.dll` that std uses, by the older name of the same thing.
const RANDOM: &str = "\
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length)
{
    return SystemFunction036(buffer, (ULONG)length);
}
";

/// What a test cannot do in Wine: package, test, reason.
const SKIPPED: &[(&str, &str, &str)] = &[(
    "clockjack-rt",
    "what_the_compiler_refuses_is_explained",
    "starts cargo of the host, and what the compiler refuses is the same on every system",
)];

/// The tests that compare a result with the same result on Linux: package, binary, test.
const COMPARED: &[(&str, &str, &str)] = &[
    (QUICK, "simulation", "every_seed_leaves_the_golden_trace"),
    (QUICK, "simulation", "a_seed_decides_the_order_between_actors_and_always_the_same"),
    (QUICK, "hosts", "threads::one_worker_leaves_the_golden_trace"),
    (QUICK, "hosts", "threads::four_workers_leave_the_golden_trace"),
    (QUICK, "hosts", "tokio::a_task_of_tokio_leaves_the_golden_trace"),
    (QUICK, "hosts", "embassy::a_task_of_embassy_leaves_the_golden_trace"),
    ("clockjack-sim", "golden", "the_first_seeds_give_the_hashes_that_were_written_down"),
    ("clockjack-graph", "examples", "every_example_does_what_its_golden_text_says"),
    ("clockjack-own-components", "heater", "the_commit_log_is_the_same_on_every_machine"),
    ("clockjack", "examples", "every_example_says_what_its_golden_text_says"),
];

/// Tests that Windows has under the same names: the file that is not compiled for it, and the file
/// that is. The others of the first file are about Unix.
const TWINS: &[(&str, &str)] = &[
    ("crates/clockjack-rt/tests/linux/signals.rs", "crates/clockjack-rt/tests/windows/console.rs"),
    ("crates/clockjack-rt/tests/tokio/linux.rs", "crates/clockjack-rt/tests/windows/tokio_run.rs"),
];

/// Where the programs are, and what Wine needs.
struct Places {
    root: PathBuf,
    target_dir: PathBuf,
    /// The folder of the programs: test binaries in `deps`, examples in `examples`.
    built: PathBuf,
    wine: PathBuf,
}

impl Places {
    fn new(workspace: &Workspace) -> Self {
        let target_dir = workspace.root.join("target/foreign");
        let built = target_dir.join(TARGET).join("debug");
        let wine = target_dir.join("wine");
        Self { root: workspace.root.clone(), target_dir, built, wine }
    }

    /// A command of Debian's cargo, for Windows.
    fn cargo(&self, command: &str) -> Cmd {
        tool::debian("cargo")
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", LINKER)
            // Nobody debugs these programs, and the linker of mingw is slow.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .arg(command)
            .words("-Zbuild-std=std,panic_unwind,test --all-features --target")
            .arg(TARGET)
            .arg("--target-dir")
            .arg(&self.target_dir)
            .limit(BUILD_LIMIT)
            .dir(&self.root)
    }

    /// A command in Wine's environment.
    fn wine(&self, program: impl AsRef<std::ffi::OsStr>) -> Cmd {
        Cmd::new(program).env("WINEPREFIX", self.wine.join("prefix")).env("WINEDEBUG", "-all")
    }

    /// A test binary as a command in Wine.
    fn test(&self, binary: &TestBin) -> Cmd {
        let cmd = self
            .wine(WINE)
            .dir(&binary.dir)
            .env("CARGO_MANIFEST_DIR", &binary.dir)
            // Wine cannot start cargo, so the examples are built beforehand.
            .env("CLOCKJACK_EXAMPLES", self.built.join("examples"))
            // A golden file that the emulated system wrote itself would prove nothing.
            .without_env("CLOCKJACK_BLESS")
            .without_env("CLOCKJACK_MUTANT")
            .arg(&binary.path);
        let skipped = SKIPPED.iter().filter(|(package, ..)| *package == binary.package);
        skipped.fold(cmd, |cmd, (_, test, _)| cmd.arg("--skip").arg(test))
    }
}

/// Wine, running until this is dropped. Its server and its services start with the first program
/// and would end with the last, so one program stays: otherwise each test would start them.
struct Wine<'p> {
    places: &'p Places,
    _resident: Held,
}

impl<'p> Wine<'p> {
    fn start(places: &'p Places) -> Result<Self> {
        // Its input does not end.
        Ok(Self { places, _resident: places.wine(WINE).arg("cmd.exe").hold()? })
    }
}

impl Drop for Wine<'_> {
    fn drop(&mut self) {
        drop(self.places.wine(WINE_SERVER).arg("-k").capture());
    }
}

/// Runs the quick form of the command.
pub(super) fn run_quick() -> Result<()> {
    run_packages(Some(QUICK), false)
}

/// Runs the command for one package, or for all.
pub(super) fn run(only: Option<&str>) -> Result<()> {
    run_packages(only, true)
}

fn run_packages(only: Option<&str>, is_linted: bool) -> Result<()> {
    let workspace = Workspace::load()?;
    let names = HOST_PACKAGES.iter().filter(|name| only.is_none_or(|only| only == **name));
    let packages: Vec<&Package> = names.filter_map(|name| workspace.package(name)).collect();
    ensure!(!packages.is_empty(), "no package {only:?}: one of {}", HOST_PACKAGES.join(", "));
    let has_command = packages.iter().any(|package| package.name == commit_logs::PACKAGE);
    let places = Places::new(&workspace);
    let n_steps = 4 + packages.len() + usize::from(has_command) + 2 * usize::from(is_linted);
    let mut steps = Steps::new("foreign", n_steps);
    let is_ready = steps.step("toolchain with a std to build", tool::ensure_debian_rust)
        && (!is_linted || steps.step("clippy of the same toolchain", lint::ensure));
    if !is_ready {
        return steps.finish();
    }
    let mut wine = None;
    let is_ready = steps.step("mingw and Wine", |line| {
        let version = ensure_wine(line, &places, &workspace)?;
        wine = Some(Wine::start(&places)?);
        Ok(version)
    });
    if !is_ready {
        return steps.finish();
    }
    let mut binaries = Vec::new();
    let is_built = steps.step("build tests for Windows", |line| {
        let log = workspace.log("foreign-windows-build.log");
        let cmd = places.cargo("test");
        binaries = testbin::build_by(&workspace, cmd, &log, &packages, "--tests", line)?;
        build_examples(&places, &packages, &workspace, line)?;
        Ok(format!("{} packages, {} binaries", packages.len(), binaries.len()))
    });
    if !is_built {
        return steps.finish();
    }
    for package in &packages {
        steps.step(&package.name, |line| {
            let own: Vec<&TestBin> =
                binaries.iter().filter(|one| one.package == package.name).collect();
            run_package(&places, package, &own, &workspace, line)
        });
    }
    if has_command {
        steps.step("commit logs as on Linux", |line| {
            commit_logs::compare(&places, &workspace, line)
        });
    }
    drop(wine);
    if is_linted {
        steps.step(&format!("clippy for {TARGET}"), |line| {
            let names: Vec<&str> = packages.iter().map(|package| &*package.name).collect();
            lint::run(&workspace, TARGET, &names, Extent::All, line)
        });
    }
    steps.step("not compiled for Windows", |line| list_skipped(&packages, &places.root, line));
    steps.finish()
}

/// Installs mingw and Wine, compiles [`RANDOM`], and creates Wine's prefix.
fn ensure_wine(line: &Line, places: &Places, workspace: &Workspace) -> Result<String> {
    tool::ensure_apt(line, "mingw with Wine", PACKAGES, || {
        tool::starts(LINKER) && Path::new(WINE).is_file() && Path::new(WINE_SERVER).is_file()
    })?;
    let source = places.wine.join("random.c");
    process::write(&source, RANDOM)?;
    let library = places.wine.join("bcryptprimitives.dll");
    let compile = Cmd::new(LINKER).words("-shared -O1 -o").arg(&library).arg(&source);
    compile.arg("-ladvapi32").run(line, &workspace.log("foreign-windows-dll.log"))?;
    for folder in ["", "deps", "examples"] {
        let folder = places.built.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {folder:?}"))?;
        fs::copy(&library, folder.join("bcryptprimitives.dll"))
            .with_context(|| format!("cannot copy a library to {folder:?}"))?;
    }
    // Away from the pipe of this command: what Wine starts outlives it, and would keep it open.
    let start = format!("{WINE} wineboot -i </dev/null >/dev/null 2>&1");
    let start = places.wine("sh").arg("-c").arg(start);
    start.limit(PREFIX_LIMIT).run(line, &workspace.log("foreign-windows-prefix.log"))?;
    let version = places.wine(WINE).arg("--version").capture()?;
    Ok(version.output.trim().to_owned())
}

/// The programs that the facade's tests start.
fn build_examples(
    places: &Places,
    packages: &[&Package],
    workspace: &Workspace,
    line: &Line,
) -> Result<()> {
    if packages.iter().any(|package| package.name == "clockjack") {
        let cmd = places.cargo("build").words("-p clockjack --examples");
        cmd.run(line, &workspace.log("foreign-windows-examples.log"))?;
    }
    Ok(())
}

/// Runs the binaries of a package one by one. All of them run, even if one fails.
fn run_package(
    places: &Places,
    package: &Package,
    binaries: &[&TestBin],
    workspace: &Workspace,
    line: &Line,
) -> Result<String> {
    let (mut passed, mut faults, mut all) = (0, Vec::new(), String::new());
    let mut compared = COMPARED.iter().filter(|(owner, ..)| *owner == package.name).count();
    for binary in binaries {
        let cmd = places.test(binary);
        line.tick(&binary.target);
        let (finished, totals) = testbin::run_tests(&cmd, RUN_LIMIT)?;
        passed += totals.passed;
        all += &format!("$ {cmd}\n{}\n", finished.output);
        compared -= n_compared(binary, &finished.output);
        if !finished.is_success() {
            let failures = libtest::failures(&finished.output);
            let shown = if failures.is_empty() { cmd.failure(&finished) } else { failures };
            faults.push(format!("{}: {} failed\n{shown}", binary.target, totals.failed));
        }
    }
    let log = workspace.log(&format!("foreign-windows-{}.log", package.name));
    process::write(&log, &all)?;
    if compared > 0 {
        faults.push(format!("{compared} tests that compare with Linux did not pass"));
    }
    ensure!(faults.is_empty(), "{}\n(full output: {})", faults.join("\n"), log.display());
    ensure!(passed > 0, "no test ran: see {}", log.display());
    Ok(format!("{passed} tests passed in {} binaries", binaries.len()))
}

/// How many tests of [`COMPARED`] have passed in this binary.
fn n_compared(binary: &TestBin, output: &str) -> usize {
    let ran = libtest::ran(output);
    let has_passed = |(package, target, test): &&(&str, &str, &str)| {
        (*package, *target) == (&*binary.package, &*binary.target)
            && ran.iter().any(|one| one.name == *test && one.outcome == Outcome::Passed)
    };
    COMPARED.iter().filter(has_passed).count()
}

/// Says which files of tests are not compiled for Windows, each with what it says about itself, and
/// which tests are [`SKIPPED`].
fn list_skipped(packages: &[&Package], root: &Path, line: &Line) -> Result<String> {
    let mut sources = Vec::new();
    for package in packages {
        tidy::collect(root, package.dir(), &mut sources)?;
    }
    let twin_of = |source: &Source| {
        let (_, twin) = TWINS.iter().find(|(file, _)| *file == source.path)?;
        sources.iter().find(|other| other.path == *twin)
    };
    let listed = |source: &Source| only_elsewhere(source, twin_of(source));
    let files: Vec<(usize, String)> = sources.iter().filter_map(listed).collect();
    files.iter().for_each(|(_, text)| line.say(text));
    let is_chosen = |name: &str| packages.iter().any(|package| package.name == name);
    let by_name: Vec<_> = SKIPPED.iter().filter(|(package, ..)| is_chosen(package)).collect();
    for (package, test, reason) in &by_name {
        line.say(&format!("{package} {test}: {reason}"));
    }
    let n_tests: usize = files.iter().map(|(n_tests, _)| n_tests).sum();
    Ok(format!("{n_tests} tests in {} files, {} by name", files.len(), by_name.len()))
}

/// A file with tests about Linux or Unix alone: the number of its tests that `twin` does not have;
/// its path with that number and its first sentence. Such a file says so itself, or its name or
/// that of its folder says so.
fn only_elsewhere(source: &Source, twin: Option<&Source>) -> Option<(usize, String)> {
    let is_limited = |line: &str| {
        line.starts_with("#![cfg(")
            && ["unix", "target_os"].iter().any(|word| line.contains(word))
            && !line.contains("windows")
    };
    let names = Path::new(&source.path).with_extension("");
    let is_named = names.iter().any(|name| ["linux", "unix", "macos"].iter().any(|os| name == *os));
    if !(is_named || source.text.lines().any(is_limited)) {
        return None;
    }
    let there: Vec<&str> = twin.map(|twin| names_of_tests(&twin.text)).unwrap_or_default();
    let mut tests = names_of_tests(&source.text);
    tests.retain(|name| !there.contains(name));
    let n_tests = tests.len();
    if n_tests == 0 {
        return None;
    }
    let opening = source.text.lines().map_while(|line| line.strip_prefix("//!"));
    let opening = opening.map(str::trim).collect::<Vec<_>>().join(" ");
    let sentence = opening.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let word = if n_tests == 1 { "test" } else { "tests" };
    let text = format!("{}: {n_tests} {word}: {sentence}", source.path);
    let Some(twin) = twin else { return Some((n_tests, text)) };
    Some((n_tests, format!("{text}; only {}, the others are in {}", tests.join(", "), twin.path)))
}

/// The functions that are tests.
fn names_of_tests(text: &str) -> Vec<&str> {
    let after = text.split("#[test]\n").skip(1);
    let named = after.filter_map(|test| test.split_once("fn ")?.1.split('(').next());
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_about_linux_alone_is_listed_with_its_tests_and_its_first_sentence() {
        let listed = |path: &str, text: &str| only_elsewhere(&Source::new(path, text), None);
        let linux = "//! What only Linux shows:\n//! signals. More.\n\
                     #![cfg(target_os = \"linux\")]\n#[test]\nfn a() {}\n";
        let what = "a/tests/b.rs: 1 test: What only Linux shows: signals".to_owned();
        assert_eq!(listed("a/tests/b.rs", linux), Some((1, what)));
        let chosen = "//! Affinity.\nmod tests {\n    #[test]\n    fn a() {}\n    \
                      #[test]\n    #[should_panic]\n    fn b() {}\n";
        let what = "a/src/thread/linux.rs: 2 tests: Affinity".to_owned();
        assert_eq!(listed("a/src/thread/linux.rs", chosen), Some((2, what)));
        assert!(listed("a/tests/linux/pins.rs", chosen).is_some());
        let without_tests = "//! Affinity.\n#![cfg(unix)]\n";
        assert_eq!(listed("a/src/thread/linux.rs", without_tests), None);
        let not_loom = "//! Everywhere.\n#![cfg(not(loom))]\n#[test]\nfn a() {}\n";
        assert_eq!(listed("a/tests/b.rs", not_loom), None);
        let both = "//! Both.\n#![cfg(any(target_os = \"linux\", windows))]\n#[test]\nfn a() {}\n";
        assert_eq!(listed("a/tests/b.rs", both), None);
    }

    #[test]
    fn a_test_with_a_twin_of_the_same_name_is_not_listed() {
        let source = |path: &str, tests: &[&str]| {
            let tests: Vec<_> =
                tests.iter().map(|name| format!("#[test]\nfn {name}() {{}}\n")).collect();
            Source::new(path, &format!("//! Signals.\n{}", tests.concat()))
        };
        let linux = source("a/tests/linux.rs", &["stops", "forks"]);
        let twin = source("a/tests/windows.rs", &["stops"]);
        let text = "a/tests/linux.rs: 1 test: Signals; only forks, the others are in \
                    a/tests/windows.rs";
        assert_eq!(only_elsewhere(&linux, Some(&twin)), Some((1, text.to_owned())));
        let both = source("a/tests/windows.rs", &["forks", "stops"]);
        assert_eq!(only_elsewhere(&linux, Some(&both)), None);
        let root = crate::workspace::root().expect("the tests run in the workspace");
        for (file, twin) in TWINS {
            assert!(root.join(file).is_file() && root.join(twin).is_file(), "{file}, {twin}");
        }
    }

    #[test]
    fn a_comparison_with_linux_counts_if_it_passed_in_its_own_binary() {
        let binary = |target: &str| TestBin {
            package: "clockjack-sim".to_owned(),
            target: target.to_owned(),
            dir: PathBuf::new(),
            path: PathBuf::new(),
        };
        let test = "the_first_seeds_give_the_hashes_that_were_written_down";
        let output = |word: &str| format!("test a ... ok\ntest {test} ... {word}\n");
        assert_eq!(n_compared(&binary("golden"), &output("ok")), 1);
        assert_eq!(n_compared(&binary("golden"), &output("FAILED")), 0);
        assert_eq!(n_compared(&binary("golden"), &output("ignored")), 0);
        assert_eq!(n_compared(&binary("campaign"), &output("ok")), 0);
        assert!(COMPARED.iter().all(|(package, ..)| HOST_PACKAGES.contains(package)));
    }

    #[test]
    fn cargo_is_told_of_the_linker_by_the_name_of_the_target() {
        let name = TARGET.to_uppercase().replace('-', "_");
        assert_eq!(
            format!("CARGO_TARGET_{name}_LINKER"),
            "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER"
        );
    }
}
