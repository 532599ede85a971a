//! `cargo xtask firmware`: builds the bare-metal program, runs it in QEMU, checks what it says.
//!
//! The program is `firmware/`, a workspace of its own. Debian's compiler builds core and alloc from
//! its own sources (`-Zbuild-std`), the linker is the one that comes with rustup's, and QEMU counts
//! time by instructions, so that a run is the same each time and on each target. What the program
//! prints is compared with `firmware/golden/station.txt`; lines that begin with `#` are facts and
//! go into the tables.

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
    /// By which name cargo is told of the linker.
    linker: &'static str,
    qemu: &'static str,
    package: &'static str,
    machine: &'static str,
    /// What is said of it in the table.
    about: &'static str,
}

/// The first is what every submission is checked on.
const TARGETS: [Target; 4] = [
    Target {
        triple: "thumbv7m-none-eabi",
        linker: "CARGO_TARGET_THUMBV7M_NONE_EABI_LINKER",
        qemu: "qemu-system-arm",
        package: "qemu-system-arm",
        machine: "-machine mps2-an385",
        about: "Cortex-M3",
    },
    Target {
        triple: "thumbv7em-none-eabihf",
        linker: "CARGO_TARGET_THUMBV7EM_NONE_EABIHF_LINKER",
        qemu: "qemu-system-arm",
        package: "qemu-system-arm",
        machine: "-machine mps2-an386",
        about: "Cortex-M4F",
    },
    // ARMv6-M is a part of ARMv7-M. QEMU's own Cortex-M0 board has 16 KiB of memory.
    Target {
        triple: "thumbv6m-none-eabi",
        linker: "CARGO_TARGET_THUMBV6M_NONE_EABI_LINKER",
        qemu: "qemu-system-arm",
        package: "qemu-system-arm",
        machine: "-machine mps2-an385",
        about: "Cortex-M0 code on a Cortex-M3",
    },
    Target {
        triple: "riscv32imac-unknown-none-elf",
        linker: "CARGO_TARGET_RISCV32IMAC_UNKNOWN_NONE_ELF_LINKER",
        qemu: "qemu-system-riscv32",
        package: "qemu-system-misc",
        machine: "-machine virt -bios none",
        about: "RV32IMAC",
    },
];

/// The target on which timers are counted: its machine has the memory.
const TIMERS_ON: &str = "thumbv7em-none-eabihf";

/// What the program is made of in turn, by features: see `firmware/src/bin/size.rs`.
const PARTS: [(&str, &str); 4] = [
    ("start-up, tick, heap, output", ""),
    ("with the executor", "executor"),
    ("with the scheduler", "scheduler"),
    ("with actors, on both", "actors"),
];

/// 4 ns an instruction, 250,000 a tick: what is done at a tick is done within it, on every target.
/// Where the processor sleeps, time passes at once.
const BY_TICKS: &str = "-icount shift=2,align=off,sleep=off";
/// 1 ns an instruction: the clock is their number.
const BY_INSTRUCTIONS: &str = "-icount shift=0,align=off,sleep=off";
const SEMIHOSTING: &str = "-nographic -semihosting-config enable=on,target=native -kernel";

/// The program ends within a second; this is for a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(180);

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// A target to run on instead of the first
    #[arg(long)]
    target: Option<String>,
    /// All targets, and the instructions of timers
    #[arg(long)]
    all: bool,
    /// Write what the program says as what it has to say
    #[arg(long)]
    bless: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let bench = Bench { workspace: Workspace::load()?, linker: linker()? };
    let targets = chosen(options)?;
    let counts_timers = targets.iter().any(|target| target.triple == TIMERS_ON);
    let mut steps = Steps::new("firmware", 2 + 2 * targets.len() + usize::from(counts_timers));
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
        steps.step(&format!("station, {}", target.triple), |line| {
            bench.station(line, target, options.bless)
        });
        steps.step(&format!("sizes, {}", target.triple), |line| {
            let table = bench.sizes(line, target)?;
            tables.push(format!("{} ({})\n\n{table}", target.triple, target.about));
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
    match &options.target {
        Some(triple) => match TARGETS.iter().find(|target| target.triple == triple) {
            Some(target) => Ok(vec![target]),
            None => {
                let known: Vec<_> = TARGETS.iter().map(|target| target.triple).collect();
                bail!("no machine is known for {triple}; there are {}", known.join(", "))
            }
        },
        None if options.all => Ok(TARGETS.iter().collect()),
        None => Ok(vec![&TARGETS[0]]),
    }
}

/// The linker that comes with the compiler that runs this.
fn linker() -> Result<PathBuf> {
    let sysroot = Cmd::new("rustc").words("--print sysroot").capture()?;
    let host = Cmd::new("rustc").words("--print host-tuple").capture()?;
    anyhow::ensure!(sysroot.is_success() && host.is_success(), "rustc does not say where it is");
    let root = PathBuf::from(sysroot.output.trim());
    let linker = root.join("lib/rustlib").join(host.output.trim()).join("bin/rust-lld");
    anyhow::ensure!(linker.is_file(), "there is no linker at {}", linker.display());
    Ok(linker)
}

/// Where programs are built and run.
struct Bench {
    workspace: Workspace,
    linker: PathBuf,
}

/// What a program said.
struct Said {
    trace: Vec<String>,
    facts: BTreeMap<String, String>,
}

impl Bench {
    /// Builds a program of the firmware with these features; gives the file.
    fn build(&self, line: &Line, target: &Target, bin: &str, features: &str) -> Result<PathBuf> {
        let log = self.workspace.log(&format!("firmware-{}-{bin}.log", target.triple));
        let cmd = tool::debian("cargo")
            .env("RUSTC_BOOTSTRAP", "1")
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

    /// Runs a program, which has to end by itself and with success.
    fn run(&self, line: &Line, target: &Target, clock: &str, file: &PathBuf) -> Result<Said> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = self.workspace.log(&format!("firmware-{}-{name}-run.log", target.triple));
        let cmd = Cmd::new(target.qemu)
            .words(target.machine)
            .words(clock)
            .words(SEMIHOSTING)
            .arg(file)
            .limit(PATIENCE);
        let finished = cmd.run(line, &log)?;
        Ok(Said::read(&finished.output))
    }

    fn station(&self, line: &Line, target: &Target, bless: bool) -> Result<String> {
        let file = self.build(line, target, "station", "actors")?;
        let said = self.run(line, target, BY_TICKS, &file)?;
        let golden = self.workspace.root.join("firmware/golden/station.txt");
        if bless {
            process::write(&golden, &(said.trace.join("\n") + "\n"))?;
        }
        let expected = std::fs::read_to_string(&golden)
            .with_context(|| format!("cannot read {}", golden.display()))?;
        compare(&said.trace, &expected.lines().collect::<Vec<_>>())?;
        let heap = said.facts.get("heap-max").map_or("?", String::as_str);
        Ok(format!("{} lines, heap {heap} bytes at most", said.trace.len()))
    }

    fn sizes(&self, line: &Line, target: &Target) -> Result<Table> {
        let mut table = Table::new(&["program", "flash", "static", "heap"]);
        for (name, features) in PARTS {
            let file = self.build(line, target, "size", features)?;
            let said = self.run(line, target, BY_TICKS, &file)?;
            table.row(row(name, &file, &said)?);
        }
        let file = self.build(line, target, "station", "actors")?;
        let said = self.run(line, target, BY_TICKS, &file)?;
        table.row(row("the whole station", &file, &said)?);
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

/// Flash, static memory without the heap, and the most that was used of the heap, in bytes.
fn row(name: &str, file: &PathBuf, said: &Said) -> Result<[String; 4]> {
    let image = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let sizes = Sizes::of(&image).with_context(|| format!("in {}", file.display()))?;
    let arena: u64 = said.fact("arena")?.parse().context("the size of the heap is a number")?;
    let fixed = sizes.ram.saturating_sub(arena);
    Ok([name.to_owned(), sizes.flash.to_string(), fixed.to_string(), said.fact("heap-max")?.into()])
}

impl Said {
    fn read(output: &str) -> Self {
        let mut said = Self { trace: Vec::new(), facts: BTreeMap::new() };
        for line in output.lines() {
            match line.strip_prefix("# ").and_then(|fact| fact.rsplit_once(' ')) {
                Some((name, value)) => _ = said.facts.insert(name.to_owned(), value.to_owned()),
                // QEMU's own remark on a timer that has not been set yet.
                None if line.contains("Timer with period zero") => {}
                None => said.trace.push(line.trim_end().to_owned()),
            }
        }
        said
    }

    fn fact(&self, name: &str) -> Result<&str> {
        let value = self.facts.get(name).map(String::as_str);
        value.with_context(|| format!("the program did not say `{name}`"))
    }
}

/// Says the first line that differs.
fn compare(said: &[String], expected: &[&str]) -> Result<()> {
    let differs = |at: &usize| said.get(*at).map(String::as_str) != expected.get(*at).copied();
    let Some(at) = (0..said.len().max(expected.len())).find(differs) else { return Ok(()) };
    let none = "nothing more";
    bail!(
        "line {} of the trace differs from firmware/golden/station.txt\n  \
         expected: {}\n  said:     {}",
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
        let said =
            Said::read("one\n# heap 12\nTimer with period zero, disabling\n# arm 10 3.5\ntwo \n");
        assert_eq!(said.trace, ["one", "two"]);
        assert_eq!(said.fact("heap").unwrap(), "12");
        assert_eq!(said.fact("arm 10").unwrap(), "3.5");
        assert!(said.fact("flash").unwrap_err().to_string().contains("`flash`"));
    }

    #[test]
    fn a_trace_that_differs_is_refused_by_its_first_such_line() {
        let said = ["a".to_owned(), "b".to_owned()];
        assert!(compare(&said, &["a", "b"]).is_ok());
        let error = compare(&said, &["a", "c"]).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("expected: c"), "{error}");
        let error = compare(&said, &["a"]).unwrap_err().to_string();
        assert!(error.contains("expected: nothing more"), "{error}");
        let error = compare(&said, &["a", "b", "c"]).unwrap_err().to_string();
        assert!(error.contains("said:     nothing more"), "{error}");
    }

    #[test]
    fn an_unknown_target_is_refused_with_those_that_are_known() {
        let options = Options { target: Some("z80".to_owned()), all: false, bless: false };
        let error = chosen(&options).err().unwrap().to_string();
        assert!(error.contains("z80") && error.contains("thumbv7m-none-eabi"), "{error}");
    }
}
