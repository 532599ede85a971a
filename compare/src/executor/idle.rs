//! The cost of an idle executor.
//!
//! Each subject is left idle in a separate process, a copy of this program: threads that another
//! subject has left, such as timer threads, would be counted too. The measuring thread is not
//! counted, neither its CPU time nor the context switch when it goes to sleep, so that a runtime
//! that only sleeps has exactly zero.

use core::fmt;
use core::time::Duration;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io, process, thread};

use super::load::HOUR;
use super::subject::Subject;
use crate::failure::Failure;

/// How long a newly started runtime may still be busy.
const SETTLE: Duration = Duration::from_millis(300);

/// The resources that an idle executor used. Its text consists of the two numbers that
/// [`Idleness::parse`] reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Idleness {
    pub(crate) cpu_us: f64,
    pub(crate) n_switches: u64,
}

impl Idleness {
    /// Both in one figure; they have about the same weight, because a context switch takes about a
    /// microsecond.
    pub(crate) fn figure(self) -> f64 {
        self.cpu_us + self.n_switches as f64
    }

    fn parse(text: &str) -> Option<Self> {
        let (cpu_us, n_switches) = text.trim().split_once(' ')?;
        Some(Self { cpu_us: cpu_us.parse().ok()?, n_switches: n_switches.parse().ok()? })
    }
}

impl fmt::Display for Idleness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.cpu_us, self.n_switches)
    }
}

/// Leaves a subject idle in this process, with one sleep of an hour armed.
///
/// # Errors
///
/// If it cannot be started, or the operating system does not report the context switches of
/// threads.
pub(crate) fn measure<S: Subject>(millis: u32) -> Result<Idleness, Failure> {
    let refused = |source| Failure::start(S::FACTS.name, source);
    let subject = S::start()?;
    // In an array, so that the handle is returned and not awaited.
    let sleeper = subject.block_on(async { [S::spawn(S::sleep(HOUR))] });
    thread::sleep(SETTLE);
    let before = used_elsewhere().map_err(refused)?;
    thread::sleep(Duration::from_millis(u64::from(millis)));
    let after = used_elsewhere().map_err(refused)?;
    // The process exits now; stopping the subject would only wait for the sleeper.
    core::mem::forget((subject, sleeper));
    // The counters of a thread that has exited meanwhile are gone.
    let cpu_ns = after.cpu_ns.saturating_sub(before.cpu_ns);
    let n_switches = after.n_switches.saturating_sub(before.n_switches);
    Ok(Idleness { cpu_us: cpu_ns as f64 / 1_000.0, n_switches })
}

/// Measures a subject in a separate process.
///
/// # Errors
///
/// If the process cannot be started or prints anything but the two numbers.
pub(crate) fn measure_apart(name: &'static str, millis: u32) -> Result<Idleness, Failure> {
    let refused = |source| Failure::start(name, source);
    let program = env::current_exe().map_err(refused)?;
    let mut command = Command::new(program);
    let output = command.args(["idle", name, &millis.to_string()]).output();
    let output = output.map_err(refused)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let parsed = Idleness::parse(&printed).filter(|_| output.status.success());
    parsed.ok_or_else(|| {
        let said =
            format!("{}, {printed}{}", output.status, String::from_utf8_lossy(&output.stderr));
        Failure::child(name, said)
    })
}

/// The counters of threads, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    cpu_ns: u64,
    n_switches: u64,
}

/// The counters of all threads of this process except the first, which is the measuring one.
fn used_elsewhere() -> io::Result<Used> {
    let first = process::id().to_string();
    let mut used = Used::default();
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?;
        if task.file_name().to_str() == Some(&first) {
            continue;
        }
        let thread = used_by(&task.path());
        used.cpu_ns += thread.cpu_ns;
        used.n_switches += thread.n_switches;
    }
    Ok(used)
}

/// The counters of the thread with this folder; zero if it has exited.
fn used_by(thread: &Path) -> Used {
    let read = |file| fs::read_to_string(thread.join(file)).unwrap_or_default();
    Used { cpu_ns: cpu_ns(&read("schedstat")), n_switches: n_voluntary(&read("status")) }
}

/// The first number of a thread's `schedstat`.
fn cpu_ns(schedstat: &str) -> u64 {
    schedstat.split_whitespace().next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn n_voluntary(status: &str) -> u64 {
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Idleness, cpu_ns, n_voluntary, used_by};
    use crate::clock::Scope;
    use core::time::Duration;
    use std::path::Path;

    #[test]
    fn what_a_child_says_is_read_back() {
        let said = Idleness { cpu_us: 12.375, n_switches: 7 };
        assert_eq!(Idleness::parse(&format!("{said}\n")), Some(said));
        assert!((said.figure() - 19.375).abs() < 1e-9, "{said:?}");
        assert_eq!(Idleness::parse("12.375"), None);
        assert_eq!(Idleness::parse("many few"), None);
    }

    #[test]
    fn the_work_of_a_thread_is_found_in_its_account() {
        let used = || used_by(Path::new("/proc/thread-self")).cpu_ns;
        let before = used();
        let start = Scope::Thread.cpu();
        while Scope::Thread.cpu() < start + Duration::from_millis(40) {}
        // The kernel updates the counters of a running thread only now and then.
        let grown = used() - before;
        assert!(grown >= 10_000_000, "{grown} ns");
        assert_eq!(cpu_ns("1234 567 8\n"), 1_234);
        assert_eq!(cpu_ns(""), 0);
    }

    #[test]
    fn voluntary_switches_are_found_among_the_others() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t41\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(n_voluntary(status), 41);
        assert_eq!(n_voluntary("Name:\tx\n"), 0);
    }
}
