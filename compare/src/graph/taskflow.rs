//! Taskflow, if a C++ compiler finds its header: a small program is compiled, runs as a separate
//! process for each run and prints its measurement. Without such a compiler or header there are no
//! figures, and the report gives the reason.
//!
//! The values of Taskflow go through memory that the tasks share; it has no messages, triggers or
//! metrics.

use core::fmt;
use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{self, Command};

use super::measure::{Figure, Run};
use crate::clock::Elapsed;
use crate::failure::Failure;
use crate::measure::Spent;
use crate::tally::Tally;

pub(crate) const NAME: &str = "taskflow";

const SOURCE: &str = include_str!("taskflow.cpp");

/// The compiled program. Its drop removes the folder.
#[derive(Debug)]
pub(crate) struct Program {
    folder: PathBuf,
}

/// Why there is no program.
#[derive(Debug)]
pub(crate) enum Missing {
    Compiler(io::Error),
    Header,
    Refused(String),
    Folder(io::Error),
}

impl Program {
    /// Compiles the program.
    ///
    /// # Errors
    ///
    /// [`Missing`], if the compiler or the header is missing.
    pub(crate) fn compile() -> Result<Self, Missing> {
        if !has_header()? {
            return Err(Missing::Header);
        }
        let folder = env::temp_dir().join(format!("clockjack-compare-{}", process::id()));
        fs::create_dir_all(&folder).map_err(Missing::Folder)?;
        // From here on the drop removes the folder.
        let program = Self { folder };
        let source = program.folder.join("taskflow.cpp");
        fs::write(&source, SOURCE).map_err(Missing::Folder)?;
        let output = compiler()
            .args(["-std=c++20", "-O3", "-DNDEBUG", "-pthread"])
            .arg(&source)
            .arg("-o")
            .arg(program.path())
            .output()
            .map_err(Missing::Compiler)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| line.contains("error")).unwrap_or("nothing");
            return Err(Missing::Refused(first.to_owned()));
        }
        Ok(program)
    }

    fn path(&self) -> PathBuf {
        self.folder.join("taskflow")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A leftover in the folder for temporary files is not an error.
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

/// The compiler that `CXX` names, or `c++`.
fn compiler() -> Command {
    Command::new(env::var_os("CXX").unwrap_or_else(|| "c++".into()))
}

/// Whether a compiler would find the header, without compiling it.
///
/// # Errors
///
/// If there is no compiler.
fn has_header() -> Result<bool, Missing> {
    let output = compiler()
        .args(["-std=c++20", "-fsyntax-only", "-x", "c++", "-include", "taskflow/taskflow.hpp"])
        .arg("-M")
        .arg("/dev/null")
        .output()
        .map_err(Missing::Compiler)?;
    Ok(output.status.success())
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compiler(error) => write!(f, "no C++ compiler can be started ({error})"),
            Self::Header => f.write_str(
                "the C++ compiler does not find <taskflow/taskflow.hpp>; CPLUS_INCLUDE_PATH may \
                 name its folder",
            ),
            Self::Refused(said) => write!(f, "the C++ compiler refuses the program: {said}"),
            Self::Folder(error) => write!(f, "no folder for temporary files ({error})"),
        }
    }
}

/// Runs a shape as a taskflow.
///
/// # Errors
///
/// If the program fails, or the sum is wrong.
pub(crate) fn run(run: &Run<'_>) -> Result<Figure, Failure> {
    let failed = |said: String| Failure::child(NAME, said);
    let program = run.taskflow.ok_or_else(|| failed("the program was not compiled".to_owned()))?;
    let output = Command::new(program.path())
        .arg(run.n_threads.to_string())
        .arg(run.n_warm_up.to_string())
        .arg(run.n.to_string())
        .args(run.shape.words())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let numbers: Option<Vec<u64>> = said.split_whitespace().map(|word| word.parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[total, cpu_ns, wall_ns]) if output.status.success() => {
            // One epoch more than is measured, as for all others. Its allocations are not counted.
            let elapsed = Elapsed { cpu_ns: cpu_ns as f64, wall_ns: wall_ns as f64 };
            run.figure(NAME, total, Some(Spent { elapsed, tally: Tally::default() }))
        }
        _ => Err(failed(format!("{said}{}", String::from_utf8_lossy(&output.stderr)))),
    }
}
