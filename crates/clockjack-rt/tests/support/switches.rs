//! How often threads of this process were switched on or off: Linux, from `/proc`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Context switches so far, voluntary and not, of all threads whose name starts with `prefix`.
/// Threads that have ended do not count. The kernel keeps 15 bytes of a name.
pub(crate) fn context_switches(prefix: &str) -> io::Result<u64> {
    let mut sum = 0;
    for task in tasks(prefix)? {
        // A thread that ends meanwhile is one that has ended.
        let Ok(status) = fs::read_to_string(task.join("status")) else { continue };
        sum += status.lines().filter_map(switches_in).sum::<u64>();
    }
    Ok(sum)
}

/// How many threads there are whose name starts with `prefix`.
pub(crate) fn n_threads(prefix: &str) -> io::Result<usize> {
    tasks(prefix).map(|tasks| tasks.len())
}

/// Whether all threads of that prefix sleep, and there is one.
pub(crate) fn all_sleep(prefix: &str) -> io::Result<bool> {
    let sleeps = |task: &PathBuf| {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:\tS"))
    };
    let tasks = tasks(prefix)?;
    Ok(!tasks.is_empty() && tasks.iter().all(sleeps))
}

fn tasks(prefix: &str) -> io::Result<Vec<PathBuf>> {
    let has_prefix = |task: &Path| {
        fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with(prefix))
    };
    let all: io::Result<Vec<PathBuf>> =
        fs::read_dir("/proc/self/task")?.map(|entry| Ok(entry?.path())).collect();
    Ok(all?.into_iter().filter(|task| has_prefix(task)).collect())
}

fn switches_in(line: &str) -> Option<u64> {
    let (key, count) = line.split_once(':')?;
    matches!(key, "voluntary_ctxt_switches" | "nonvoluntary_ctxt_switches")
        .then(|| count.trim().parse().expect("the kernel writes a number here"))
}
