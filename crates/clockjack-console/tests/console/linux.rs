//! The threads of a console, and their switches, as Linux lists them in `/proc`.
#![cfg(target_os = "linux")]

use core::time::Duration;
use std::{path::PathBuf, sync::mpsc};

use clockjack_console::query::Params;

use super::house;

/// The threads of this process with this name.
fn threads(name: &str) -> Vec<PathBuf> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let tasks = tasks.map(|task| task.unwrap().path());
    // A name has at most fifteen bytes.
    let name = &name[..name.len().min(15)];
    tasks
        .filter(|task| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name)
        })
        .collect()
}

#[test]
fn a_stream_of_a_client_that_has_gone_costs_nothing_any_more() {
    /// How often the thread has given up its processor, once it waits.
    fn switches(task: &std::path::Path) -> u64 {
        loop {
            let status = std::fs::read_to_string(task.join("status")).unwrap();
            let field = |name: &str| {
                let line = status.lines().find(|line| line.starts_with(name)).unwrap();
                line.split_whitespace().nth(1).unwrap()
            };
            if field("State:") == "S" {
                return field("voluntary_ctxt").parse().unwrap();
            }
            std::thread::yield_now();
        }
    }
    // The other tests of this file have threads with these names, so this one is a process.
    if std::env::var_os("CLOCKJACK_IDLE").is_none() {
        let exe = std::env::current_exe().unwrap();
        let name = "linux::a_stream_of_a_client_that_has_gone_costs_nothing_any_more";
        let mut child = std::process::Command::new(exe);
        let output = child.env("CLOCKJACK_IDLE", "1").args([name, "--exact"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let (_runtime, console, client) = house();
    let [thread] = &threads("clockjack-console")[..] else { panic!("one thread") };
    assert!(threads("clockjack-watch").is_empty(), "nobody looks");
    let mut stream = client.stream(&[("overview", Params::new())], 10.0).unwrap();
    stream.next_event().unwrap();
    assert_eq!(threads("clockjack-watch").len(), 1);
    drop(stream);
    while !threads("clockjack-watch").is_empty() || console.clients() > 0 {
        std::thread::yield_now();
    }
    // The thread that served the client has counted it out, and may not wait for the next one yet.
    let before = switches(thread);
    let (_keep, never) = mpsc::channel::<()>();
    let _waited = never.recv_timeout(Duration::from_secs(10));
    assert_eq!(switches(thread), before, "nothing has woken the console");
}
