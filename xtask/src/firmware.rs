//! `cargo xtask firmware`: builds the bare-metal programs, runs them in QEMU and checks their
//! output.
//!
//! The programs are in `firmware/`, a separate workspace. Debian's compiler builds core and alloc
//! from its own sources (`-Zbuild-std`), the linker is the one of rustup's toolchain, and QEMU
//! derives time from the instruction count, so that every run is the same, on each target. The
//! output of a program is compared with a file in `firmware/golden`; lines that begin with `#` are
//! measurements and go into the tables.
//!
//! The memory of a board determines its [suite](Suite).

mod elf;

use core::time::Duration;
use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use self::elf::Sizes;
use crate::{
    console::{self, Line, Steps},
    process::{self, Cmd},
    table::Table,
    tool,
    workspace::Workspace,
};

/// A target, and the machine that runs its code.
struct Target {
    triple: &'static str,
    /// The environment variable that names the linker for cargo.
    linker: &'static str,
    /// The board of `firmware/boards` that the program is linked for.
    board: &'static str,
    qemu: &'static str,
    package: &'static str,
    machine: &'static str,
    suite: Suite,
    /// The description in the table.
    about: &'static str,
}

/// Which programs fit into the memory of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suite {
    /// All programs: the station, the scenario and the interrupt, which have actors and the shared
    /// scheduler, and a table of jobs with one owner.
    Whole,
    /// Only the table of jobs, for a board with 16 KiB.
    Table,
}

impl Suite {
    fn programs(self) -> &'static [Program] {
        match self {
            Self::Whole => &PROGRAMS,
            Self::Table => &PROGRAMS[4..],
        }
    }
}

/// A program whose trace is compared.
struct Program {
    bin: &'static str,
    features: &'static str,
    golden: Golden,
}

/// The expected trace.
#[derive(Clone, Copy)]
enum Golden {
    /// A file in `firmware/golden`.
    File(&'static str),
    /// The files of the scenario, which are the same for every host.
    Scenario,
}

const PROGRAMS: [Program; 5] = [
    Program { bin: "station", features: "actors", golden: Golden::File("station.txt") },
    Program { bin: "scenario", features: "scenario", golden: Golden::Scenario },
    Program { bin: "interrupt", features: "actors", golden: Golden::File("interrupt.txt") },
    Program { bin: "jobs", features: "scheduler", golden: Golden::File("jobs.txt") },
    // The expected trace is the same as that of the program before.
    Program { bin: "table", features: "scheduler", golden: Golden::File("jobs.txt") },
];

/// The targets. `ci` uses only the first one.
const TARGETS: [Target; 5] = [
    Target {
        triple: "thumbv7m-none-eabi",
        linker: "CARGO_TARGET_THUMBV7M_NONE_EABI_LINKER",
        board: "mps2-an385",
        qemu: "qemu-system-arm",
        package: "qemu-system-arm",
        machine: "-machine mps2-an385",
        suite: Suite::Whole,
        about: "Cortex-M3",
    },
    Target {
        triple: "thumbv7em-none-eabihf",
        linker: "CARGO_TARGET_THUMBV7EM_NONE_EABIHF_LINKER",
        board: "mps2-an386",
        qemu: "qemu-system-arm",
        package: "qemu-system-arm",
        machine: "-machine mps2-an386",
        suite: Suite::Whole,
        about: "Cortex-M4F",
    },
    // ARMv6-M is a subset of ARMv7-M. QEMU's only Cortex-M0 board, the next entry, has 16 KiB of
    // memory.
    Target {
        triple: "thumbv6m-none-eabi",
        linker: "CARGO_TARGET_THUMBV6M_NONE_EABI_LINKER",
        board: "mps2-an385",
        qemu: "qemu-system-arm",
        package: "qemu-system-arm",
        machine: "-machine mps2-an385",
        suite: Suite::Whole,
        about: "Cortex-M0 code on a Cortex-M3",
    },
    Target {
        triple: "thumbv6m-none-eabi",
        linker: "CARGO_TARGET_THUMBV6M_NONE_EABI_LINKER",
        board: "microbit",
        qemu: "qemu-system-arm",
        package: "qemu-system-arm",
        machine: "-machine microbit",
        suite: Suite::Table,
        about: "Cortex-M0",
    },
    Target {
        triple: "riscv32imac-unknown-none-elf",
        linker: "CARGO_TARGET_RISCV32IMAC_UNKNOWN_NONE_ELF_LINKER",
        board: "virt",
        qemu: "qemu-system-riscv32",
        package: "qemu-system-misc",
        machine: "-machine virt -bios none",
        suite: Suite::Whole,
        about: "RV32IMAC",
    },
];

/// The target for the instruction counts of timers: its machine has enough memory.
const TIMERS_ON: &str = "thumbv7em-none-eabihf";

/// The parts whose sizes are shown, each added by a feature: see `firmware/src/bin/size.rs`.
const PARTS: [(&str, &str, &str); 5] = [
    ("start-up, tick, heap, output", "size", ""),
    ("a table of jobs, room for 8", "table", "scheduler"),
    ("with the executor", "size", "executor"),
    ("with the scheduler", "size", "scheduler"),
    ("with actors, on both", "size", "actors"),
];

/// 2 ns per instruction, so 500,000 instructions per tick: the work of a tick is finished within
/// the tick, on every target. While the processor sleeps, virtual time jumps to the next interrupt.
const BY_TICKS: &str = "-icount shift=1,align=off,sleep=off";
/// 1 ns per instruction: the clock counts instructions.
const BY_INSTRUCTIONS: &str = "-icount shift=0,align=off,sleep=off";
const SEMIHOSTING: &str = "-nographic -semihosting-config enable=on,target=native -kernel";

/// A program takes less than a second; this limit allows for a very busy machine.
const RUN_LIMIT: Duration = Duration::from_secs(180);

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Run on this target or board instead of the first one
    #[arg(long)]
    target: Option<String>,
    /// Run on all targets, and count the instructions of timers
    #[arg(long)]
    all: bool,
    /// Store the output of the program as the expected output
    #[arg(long)]
    bless: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let bench = Programs { workspace: Workspace::load()?, linker: linker()? };
    let targets = chosen(options)?;
    let counts_timers = targets.iter().any(|target| target.triple == TIMERS_ON);
    let n_programs: usize = targets.iter().map(|target| target.suite.programs().len()).sum();
    let n_steps = 2 + n_programs + targets.len() + usize::from(counts_timers);
    let mut steps = Steps::new("firmware", n_steps);
    steps.step("toolchain", tool::ensure_debian_rust);
    steps.step("machines", |line| {
        for target in &targets {
            tool::ensure_apt(line, target.qemu, target.package, || tool::starts(target.qemu))?;
        }
        let version = Cmd::new(targets[0].qemu).arg("--version").capture()?;
        Ok(version.output.lines().next().unwrap_or_default().to_owned())
    });
    let mut tables = Vec::new();
    for target in &targets {
        for program in target.suite.programs() {
            steps.step(&format!("{}, {}", program.bin, target.name()), |line| {
                bench.check(line, target, program, options.bless)
            });
        }
        steps.step(&format!("sizes, {}", target.name()), |line| {
            let table = bench.sizes(line, target)?;
            let name = target.name();
            tables.push(format!("{name} ({}), bytes\n\n{table}", target.about));
            Ok(String::new())
        });
        if target.triple == TIMERS_ON {
            steps.step("instructions of timers", |line| {
                tables.push(bench.timers(line, target)?);
                Ok(String::new())
            });
        }
    }
    tables.iter().for_each(|table| console::say(format_args!("\n{table}")));
    steps.finish()
}

fn chosen(options: &Options) -> Result<Vec<&'static Target>> {
    let Some(name) = &options.target else {
        return Ok(TARGETS.iter().take(if options.all { TARGETS.len() } else { 1 }).collect());
    };
    let is_meant = |target: &&Target| target.triple == name || target.board == name;
    let meant: Vec<_> = TARGETS.iter().filter(is_meant).collect();
    if meant.is_empty() {
        let known: Vec<_> = TARGETS.iter().map(Target::name).collect();
        bail!("no machine is known for {name}; known targets: {}", known.join(", "))
    }
    Ok(meant)
}

impl Target {
    fn name(&self) -> String {
        format!("{} on {}", self.triple, self.board)
    }
}

/// The linker of the toolchain that compiled this tool.
fn linker() -> Result<PathBuf> {
    let sysroot = Cmd::new("rustc").words("--print sysroot").capture()?;
    let host = Cmd::new("rustc").words("--print host-tuple").capture()?;
    anyhow::ensure!(sysroot.is_success() && host.is_success(), "rustc does not print its sysroot");
    let root = PathBuf::from(sysroot.output.trim());
    let linker = root.join("lib/rustlib").join(host.output.trim()).join("bin/rust-lld");
    anyhow::ensure!(linker.is_file(), "there is no linker at {}", linker.display());
    Ok(linker)
}

/// The workspace and the tools that build and run the programs.
struct Programs {
    workspace: Workspace,
    linker: PathBuf,
}

/// The output of a program.
struct Printed {
    trace: Vec<String>,
    facts: BTreeMap<String, String>,
}

impl Programs {
    /// Builds a program of the firmware with these features and returns the path of its file.
    fn build(&self, line: &Line, target: &Target, bin: &str, features: &str) -> Result<PathBuf> {
        let log = self.workspace.log(&format!("firmware-{}-{bin}.log", target.board));
        let cmd = tool::debian("cargo")
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CLOCKJACK_BOARD", target.board)
            .env(target.linker, &self.linker)
            .dir(&self.workspace.root.join("firmware"))
            .words("build --release --locked --target-dir ../target/firmware")
            .words("-Zbuild-std=core,alloc -Zbuild-std-features=optimize_for_size")
            .words("--no-default-features --features")
            .arg(features)
            .words("--target")
            .arg(target.triple)
            .words("--bin")
            .arg(bin);
        cmd.run(line, &log)?;
        let built = self.workspace.root.join("target/firmware").join(target.triple);
        Ok(built.join("release").join(bin))
    }

    /// Runs a program, which must exit by itself with success.
    fn run(&self, line: &Line, target: &Target, clock: &str, file: &PathBuf) -> Result<Printed> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = self.workspace.log(&format!("firmware-{}-{name}-run.log", target.board));
        let cmd = Cmd::new(target.qemu)
            .words(target.machine)
            .words(clock)
            .words(SEMIHOSTING)
            .arg(file)
            .limit(RUN_LIMIT);
        let finished = cmd.run(line, &log)?;
        Ok(Printed::read(&finished.output))
    }

    /// Runs a program and compares its output.
    fn check(
        &self,
        line: &Line,
        target: &Target,
        program: &Program,
        bless: bool,
    ) -> Result<String> {
        let file = self.build(line, target, program.bin, program.features)?;
        let said = self.run(line, target, BY_TICKS, &file)?;
        let what = match program.golden {
            Golden::File(name) => self.compare_file(&said, name, bless)?,
            Golden::Scenario => self.compare_scenario(&said)?,
        };
        let (heap, stack) = (said.fact("heap-max")?, said.fact("stack-max")?);
        Ok(format!("{what}, heap {heap} and stack {stack} bytes at most"))
    }

    fn compare_file(&self, said: &Printed, name: &str, bless: bool) -> Result<String> {
        let golden = self.workspace.root.join("firmware/golden").join(name);
        if bless {
            process::write(&golden, &(said.trace.join("\n") + "\n"))?;
        }
        let expected = std::fs::read_to_string(&golden)
            .with_context(|| format!("cannot read {}", golden.display()))?;
        let name = format!("firmware/golden/{name}");
        compare(&said.trace, &expected.lines().collect::<Vec<_>>(), &name)?;
        Ok(format!("{} lines", said.trace.len()))
    }

    /// Compares the scenario: its trace must equal the one of every other host, and for each seed
    /// the order must equal the order that was recorded on a server.
    fn compare_scenario(&self, said: &Printed) -> Result<String> {
        let read = |name: &str| {
            let path = self.workspace.root.join("scenario").join(name);
            std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))
        };
        let (golden, orders) = (read("golden.txt")?, read("orders.txt")?);
        let (trace, seeds) = said.trace.split_at(said.trace.len().min(golden.lines().count()));
        compare(trace, &golden.lines().collect::<Vec<_>>(), "scenario/golden.txt")?;
        let digests = orders.lines().filter(|line| line.starts_with("seed "));
        compare(seeds, &digests.take(seeds.len()).collect::<Vec<_>>(), "scenario/orders.txt")?;
        anyhow::ensure!(seeds.len() > 1, "no order was compared");
        Ok(format!("{} lines, {} seeds", trace.len(), seeds.len()))
    }

    fn sizes(&self, line: &Line, target: &Target) -> Result<Table> {
        let mut table = Table::new(&["program", "flash", "static", "heap", "stack"]);
        let whole = [("the whole station", "station", "actors")];
        let (small, large): (&[_], &[_]) = match target.suite {
            Suite::Whole => (&PARTS, &whole),
            Suite::Table => (&PARTS[..2], &[]),
        };
        for (name, bin, features) in small.iter().chain(large) {
            let file = self.build(line, target, bin, features)?;
            let said = self.run(line, target, BY_TICKS, &file)?;
            table.row(row(name, &file, &said)?);
        }
        Ok(table)
    }

    fn timers(&self, line: &Line, target: &Target) -> Result<String> {
        let file = self.build(line, target, "timers", "")?;
        let said = self.run(line, target, BY_INSTRUCTIONS, &file)?;
        let mut table = Table::new(&["instructions", "of 1,000", "of 10,000"]);
        for name in ["arm", "cancel", "fire"] {
            let cost = |n| said.fact(&format!("{name} {n}"));
            table.row([name.to_owned(), cost(1_000)?.to_owned(), cost(10_000)?.to_owned()]);
        }
        Ok(format!("timers, {} ({})\n\n{table}", target.triple, target.about))
    }
}

/// Flash, static memory without the heap, and the maximum use of heap and stack, in bytes.
fn row(name: &str, file: &PathBuf, said: &Printed) -> Result<[String; 5]> {
    let image = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let sizes = Sizes::of(&image).with_context(|| format!("in {}", file.display()))?;
    let arena: u64 = said.fact("arena")?.parse().context("the size of the heap is not a number")?;
    let fixed = sizes.ram.saturating_sub(arena);
    let (heap, stack) = (said.fact("heap-max")?, said.fact("stack-max")?);
    let (flash, fixed) = (sizes.flash.to_string(), fixed.to_string());
    Ok([name.to_owned(), flash, fixed, heap.to_owned(), stack.to_owned()])
}

impl Printed {
    fn read(output: &str) -> Self {
        let mut said = Self { trace: Vec::new(), facts: BTreeMap::new() };
        for line in output.lines() {
            match line.strip_prefix("# ").and_then(|fact| fact.rsplit_once(' ')) {
                Some((name, value)) => _ = said.facts.insert(name.to_owned(), value.to_owned()),
                // QEMU prints this about a timer that has not been set yet.
                None if line.contains("Timer with period zero") => {}
                None => said.trace.push(line.trim_end().to_owned()),
            }
        }
        said
    }

    fn fact(&self, name: &str) -> Result<&str> {
        let value = self.facts.get(name).map(String::as_str);
        value.with_context(|| format!("the program did not print `{name}`"))
    }
}

/// Reports the first line that differs.
fn compare(said: &[String], expected: &[&str], golden: &str) -> Result<()> {
    let differs = |at: &usize| said.get(*at).map(String::as_str) != expected.get(*at).copied();
    let Some(at) = (0..said.len().max(expected.len())).find(differs) else { return Ok(()) };
    let none = "nothing more";
    bail!(
        "line {} of the trace differs from {golden}\n  expected: {}\n  printed:  {}",
        at + 1,
        expected.get(at).unwrap_or(&none),
        said.get(at).map_or(none, String::as_str)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_told_apart_from_the_trace() {
        let said = Printed::read(
            "one\n# heap 12\nTimer with period zero, disabling\n# arm 10 3.5\ntwo \n",
        );
        assert_eq!(said.trace, ["one", "two"]);
        assert_eq!(said.fact("heap").unwrap(), "12");
        assert_eq!(said.fact("arm 10").unwrap(), "3.5");
        assert!(said.fact("flash").unwrap_err().to_string().contains("`flash`"));
    }

    #[test]
    fn a_trace_that_differs_is_refused_by_its_first_such_line() {
        let said = ["a".to_owned(), "b".to_owned()];
        assert!(compare(&said, &["a", "b"], "g").is_ok());
        let error = compare(&said, &["a", "c"], "g").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("expected: c"), "{error}");
        let error = compare(&said, &["a"], "g").unwrap_err().to_string();
        assert!(error.contains("expected: nothing more"), "{error}");
        let error = compare(&said, &["a", "b", "c"], "g").unwrap_err().to_string();
        assert!(error.contains("printed:  nothing more"), "{error}");
    }

    #[test]
    fn an_unknown_target_is_refused_with_those_that_are_known() {
        let options = Options { target: Some("z80".to_owned()), all: false, bless: false };
        let error = chosen(&options).err().unwrap().to_string();
        assert!(error.contains("z80") && error.contains("thumbv7m-none-eabi"), "{error}");
    }

    #[test]
    fn a_board_names_itself_and_a_target_all_its_boards() {
        let boards = |name: &str| -> Vec<_> {
            let options = Options { target: Some(name.to_owned()), all: false, bless: false };
            chosen(&options).unwrap().into_iter().map(|target| target.board).collect()
        };
        assert_eq!(boards("microbit"), ["microbit"]);
        assert_eq!(boards("thumbv6m-none-eabi"), ["mps2-an385", "microbit"]);
    }

    #[test]
    fn the_smallest_board_runs_the_program_that_fits() {
        let bins = |suite: Suite| -> Vec<_> {
            suite.programs().iter().map(|program| program.bin).collect()
        };
        assert_eq!(bins(Suite::Whole), ["station", "scenario", "interrupt", "jobs", "table"]);
        assert_eq!(bins(Suite::Table), ["table"]);
    }
}
