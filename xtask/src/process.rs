//! Child processes: starts them, limits their time and stores their output.

use core::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use std::{
    ffi::{OsStr, OsString},
    io::{self, BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use crate::console::{Line, seconds};

/// How many of the last lines of a failed command are printed; its log has all of them.
const TAIL_LINES: usize = 40;
/// How often a running child is polled.
const POLL: Duration = Duration::from_millis(15);

/// A command line with its environment, directory and time limit.
#[derive(Clone, Debug)]
pub(crate) struct Cmd {
    program: OsString,
    args: Vec<OsString>,
    envs: Vec<(&'static str, Option<OsString>)>,
    dir: Option<PathBuf>,
    limit: Option<Duration>,
}

/// The result of a child process.
#[derive(Debug)]
pub(crate) struct Finished {
    /// `None` if the child was killed at the time limit.
    pub(crate) status: Option<ExitStatus>,
    /// Standard output and standard error, in the order they were written.
    pub(crate) output: String,
    /// The running time.
    pub(crate) took: Duration,
}

/// A child in the background, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Finished {
    /// Whether the child exited by itself with status 0.
    pub(crate) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The last lines of output, for a report.
    pub(crate) fn tail(&self) -> String {
        let lines: Vec<&str> = self.output.lines().collect();
        let skipped = lines.len().saturating_sub(TAIL_LINES);
        let mut text = String::new();
        if skipped > 0 {
            text = format!("... {skipped} lines before\n");
        }
        text + &lines[skipped..].join("\n")
    }
}

impl Cmd {
    /// A command; `program` is looked up on `PATH`.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            envs: Vec::new(),
            dir: None,
            limit: None,
        }
    }

    /// The cargo that runs this tool.
    pub(crate) fn cargo() -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Self::new(cargo).env("CARGO_TERM_COLOR", "never")
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds the words of `text`, split at spaces.
    pub(crate) fn words(mut self, text: &str) -> Self {
        self.args.extend(text.split_whitespace().map(OsString::from));
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.envs.push((name, Some(value.as_ref().to_owned())));
        self
    }

    /// Removes a variable from the child's environment.
    pub(crate) fn without_env(mut self, name: &'static str) -> Self {
        self.envs.push((name, None));
        self
    }

    /// Runs in this directory.
    pub(crate) fn dir(mut self, dir: &Path) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }

    /// Kills the child and its descendants after this time.
    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Runs the command and returns its result, whether it succeeded or not.
    ///
    /// # Errors
    ///
    /// If the program cannot be started or waited for.
    pub(crate) fn capture(&self) -> Result<Finished> {
        self.watch(&|_| (), &mut || ())
    }

    /// Like [`Cmd::capture`], and redraws the line of the step; fails if the child fails, with the
    /// command and the end of its output. The output is written to `log`.
    pub(crate) fn run(&self, line: &Line, log: &Path) -> Result<Finished> {
        let last = Mutex::new(String::new());
        let finished = self.watch(
            &|text| text.clone_into(&mut last.lock().unwrap_or_else(PoisonError::into_inner)),
            &mut || line.tick(&last.lock().unwrap_or_else(PoisonError::into_inner)),
        )?;
        write(log, &format!("$ {self}\n{}", finished.output))?;
        if !finished.is_success() {
            bail!("{}\n(full output: {})", self.failure(&finished), log.display());
        }
        Ok(finished)
    }

    /// Like [`Cmd::run`], and prints the lines of output that `is_shown` selects below the step.
    pub(crate) fn stream(
        &self,
        line: &Line,
        log: &Path,
        is_shown: fn(&str) -> bool,
    ) -> Result<Finished> {
        let unseen = Mutex::new(Vec::new());
        let take = || core::mem::take(&mut *unseen.lock().unwrap_or_else(PoisonError::into_inner));
        let finished = self.watch(
            &|text| {
                if is_shown(text) {
                    unseen.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
                }
            },
            &mut || take().iter().for_each(|text| line.say(text)),
        )?;
        take().iter().for_each(|text| line.say(text));
        write(log, &format!("$ {self}\n{}", finished.output))?;
        if !finished.is_success() {
            bail!("{}\n(full output: {})", self.outcome(&finished), log.display());
        }
        Ok(finished)
    }

    /// Starts the command in the background, with a standard input that never ends and without
    /// output.
    ///
    /// # Errors
    ///
    /// If the program cannot be started.
    pub(crate) fn hold(&self) -> Result<Held> {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Held).with_context(|| format!("cannot start `{self}`"))
    }

    /// Replaces this process by the program, so that output, exit status and Ctrl-C handling are
    /// those of the program. Returns only if the program cannot be started.
    #[cfg(unix)]
    pub(crate) fn hand_over(&self) -> Result<()> {
        let error = std::os::unix::process::CommandExt::exec(&mut self.command());
        Err(error).with_context(|| format!("cannot start `{self}`"))
    }

    /// Runs with the caller's own standard streams.
    #[cfg(not(unix))]
    pub(crate) fn hand_over(&self) -> Result<()> {
        let status = self.command().status().with_context(|| format!("cannot start `{self}`"))?;
        anyhow::ensure!(status.success(), "`{self}` exited with {status}");
        Ok(())
    }

    /// How the child exited, with the end of its output.
    pub(crate) fn failure(&self, finished: &Finished) -> String {
        format!("{}\n{}", self.outcome(finished), finished.tail())
    }

    fn outcome(&self, finished: &Finished) -> String {
        match finished.status {
            Some(status) => format!("`{self}` exited with {status}"),
            None => format!("`{self}` was killed after {} s", seconds(finished.took)),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        for (name, value) in &self.envs {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    fn watch(
        &self,
        on_line: &(dyn Fn(&str) + Sync),
        on_poll: &mut dyn FnMut(),
    ) -> Result<Finished> {
        let started = Instant::now();
        let (reader, writer) = io::pipe().context("cannot create a pipe")?;
        let mut command = self.command();
        command.stdin(Stdio::null());
        command.stdout(writer.try_clone().context("cannot share a pipe")?);
        command.stderr(writer);
        let mut child = command.spawn().with_context(|| format!("cannot start `{self}`"))?;
        // Drop the parent's copies of the writing end, so that the reader sees the end of file.
        drop(command);
        thread::scope(|scope| {
            let output = scope.spawn(|| read_lines(reader, on_line));
            let status = wait(&mut child, started, self.limit, on_poll)?;
            let output = output.join().unwrap_or_default();
            Ok(Finished { status, output, took: started.elapsed() })
        })
    }
}

impl fmt::Display for Cmd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.envs {
            if let Some(value) = value
                && *name != "CARGO_TERM_COLOR"
            {
                write!(f, "{name}=\"{}\" ", value.to_string_lossy())?;
            }
        }
        let program = Path::new(&self.program);
        let name = program.file_name().unwrap_or(&self.program);
        let is_cargo = name == "cargo" && program != Path::new("/usr/bin/cargo");
        let shown = if is_cargo { name } else { &self.program };
        write!(f, "{}", shown.to_string_lossy())?;
        for arg in &self.args {
            write!(f, " {}", arg.to_string_lossy())?;
        }
        Ok(())
    }
}

fn read_lines(reader: impl io::Read, on_line: &(dyn Fn(&str) + Sync)) -> String {
    let mut all = String::new();
    let mut reader = BufReader::new(reader);
    let mut bytes = Vec::new();
    // After a read error no more output can be shown; the exit status still decides.
    while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&bytes);
        on_line(text.trim_end());
        all.push_str(&text);
        bytes.clear();
    }
    all
}

fn wait(
    child: &mut Child,
    started: Instant,
    limit: Option<Duration>,
    on_poll: &mut dyn FnMut(),
) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a child")? {
            return Ok(Some(status));
        }
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            // Kill the descendants first: once the child is gone, they have another parent and
            // cannot be found. They would keep running and keep the output pipe open.
            end(&descendants(child.id()))?;
            child.kill().context("cannot kill a child")?;
            child.wait().context("cannot wait for a child")?;
            return Ok(None);
        }
        on_poll();
        thread::sleep(POLL);
    }
}

/// All descendants of a process; empty on systems without `/proc`.
fn descendants(root: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let parents: Vec<(u32, u32)> = entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((pid, parent(&stat)?))
        })
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&one) = found.get(next) {
        found.extend(parents.iter().filter(|(_, parent)| *parent == one).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// The parent in the `stat` file of a process: the second field after the name, which may contain
/// any character.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Kills processes by their ids; a process that has already exited is not an error.
fn end(pids: &[u32]) -> Result<()> {
    if pids.is_empty() {
        return Ok(());
    }
    let kill = Cmd::new("sh").arg("-c").arg("kill -KILL \"$@\"").arg("kill");
    pids.iter().fold(kill, |kill, pid| kill.arg(pid.to_string())).capture()?;
    Ok(())
}

/// Writes a file and creates the folders above it.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {folder:?}"))?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {path:?}"))
}

/// Applies `work` to every item, on as many threads as the machine has cores. `on_done` receives
/// each result on the caller's thread as soon as it is available; the returned results keep the
/// order of the items.
pub(crate) fn parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    on_done: impl FnMut(&T, &R),
) -> Vec<R> {
    parallel_per_core(1, items, work, on_done)
}

/// Like [`parallel`], with this many threads per core: for work that waits more than it computes.
pub(crate) fn parallel_per_core<T: Sync, R: Send>(
    threads_per_core: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut on_done: impl FnMut(&T, &R),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let n_cores = thread::available_parallelism().map_or(1, usize::from);
    let n_threads = (threads_per_core * n_cores).min(items.len());
    let (sender, receiver) = mpsc::channel();
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    thread::scope(|scope| {
        for _ in 0..n_threads {
            let sender = sender.clone();
            scope.spawn(|| {
                let sender = sender;
                loop {
                    // Relaxed: the counter only distributes indices and publishes nothing else.
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    if sender.send((index, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (index, result) in receiver {
            on_done(&items[index], &result);
            results[index] = Some(result);
        }
    });
    results.into_iter().map(|slot| slot.expect("every index was distributed")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_results_keep_the_order_of_their_items() {
        let items: Vec<u32> = (0..100).collect();
        let mut n_done = 0;
        let doubled = parallel(&items, |item| item * 2, |_, _| n_done += 1);
        assert_eq!(doubled, (0..200).step_by(2).collect::<Vec<_>>());
        assert_eq!(n_done, 100);
    }

    #[test]
    fn a_failing_child_is_reported_with_its_command_and_the_end_of_its_output() {
        let cmd = Cmd::cargo().arg("no-such-command-here");
        let finished = cmd.capture().expect("cargo starts");
        assert!(!finished.is_success());
        let report = cmd.failure(&finished);
        assert!(report.starts_with("`cargo no-such-command-here` exited with exit"), "{report}");
        assert!(report.contains("no such command"), "{report}");
    }

    #[test]
    fn only_the_end_of_long_output_is_shown() {
        let output = (0..100).map(|n| format!("line {n}\n")).collect();
        let finished = Finished { status: None, output, took: Duration::ZERO };
        let tail = finished.tail();
        assert!(tail.starts_with("... 60 lines before\nline 60\n"), "{tail}");
        assert!(tail.ends_with("line 99"), "{tail}");
    }

    #[cfg(unix)]
    #[test]
    fn a_child_over_its_time_limit_is_ended_and_told_apart_from_a_failure() {
        let cmd = Cmd::new("sleep").arg("600").limit(Duration::from_millis(1));
        let finished = cmd.capture().expect("sleep starts");
        assert_eq!(finished.status, None);
        assert!(cmd.failure(&finished).starts_with("`sleep 600` was killed after"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_in_the_background_ends_when_it_is_dropped() {
        let held = Cmd::new("cat").hold().expect("cat starts");
        let place = format!("/proc/{}", held.0.id());
        assert!(Path::new(&place).exists());
        drop(held);
        assert!(!Path::new(&place).exists());
    }

    /// Otherwise `capture` would wait for the grandchild, which holds the writing end of the pipe.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_child_over_its_time_limit_has_started_is_ended_too() {
        let script = "sleep 600 & echo $!; wait";
        let cmd = Cmd::new("sh").arg("-c").arg(script).limit(Duration::from_secs(1));
        let finished = cmd.capture().expect("a shell starts");
        assert_eq!(finished.status, None);
        let pid = finished.output.trim();
        assert!(pid.parse::<u32>().is_ok(), "{pid}");
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The process may still be a zombie.
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("7 (sleep) S 5 7 1 0"), Some(5));
        assert_eq!(parent("7 (a) S 9 (b)) R 5 7"), Some(5));
        assert_eq!(parent("7"), None);
    }
}
