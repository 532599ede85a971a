//! Ctrl-C ends a runtime that runs, and the second one the program. In processes of their own,
//! since it is for a whole program.

use core::time::Duration;
use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::ExitStatusExt as _,
    process::{Child, ChildStdout, Command, Stdio},
};

use clockjack_rt::{
    Runtime,
    actor::{Actor, Context, Failure, Next, Signal},
};

use crate::eventually::eventually;

/// Says in the environment what the child is to do.
const ROLE: &str = "CLOCKJACK_TEST_CTRL_C";

struct Talker {
    is_deaf: bool,
}

impl Actor for Talker {
    type Msg = ();

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    #[expect(clippy::print_stdout, reason = "its parent reads it")]
    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        println!("{signal:?}");
        if self.is_deaf {
            // Until the program ends.
            std::thread::sleep(Duration::from_secs(3600));
        }
        Ok(Next::Stay)
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "its parent reads it")]
fn what_the_child_does() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let runtime = Runtime::new("t").unwrap();
    let is_deaf = role == "deaf";
    runtime.spawn("talker", move || Talker { is_deaf }).unwrap();
    println!("ready");
    let report = runtime.run();
    println!("ended: {}", report.termination.reason);
}

fn child(role: &str) -> (Child, BufReader<ChildStdout>) {
    // What a shell starts in the background ignores Ctrl-C, and so would what that starts.
    let mut child = Command::new("env")
        .arg("--default-signal=INT")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "ctrl_c::what_the_child_does", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

/// Reads until a line ends so.
fn read_until(out: &mut BufReader<ChildStdout>, end: &str) {
    let mut line = String::new();
    while !line.trim_end().ends_with(end) {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "the child ended before it said {end}");
    }
}

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
}

/// Interrupts until the runtime has noticed: it listens a moment after it says that it is ready.
fn interrupt_once_it_runs(child: &Child) {
    // Its handler's thread is the last thing that is started before it waits.
    let tasks = format!("/proc/{}/task", child.id());
    let is_there = || {
        std::fs::read_dir(&tasks).unwrap().any(|task| {
            let comm = task.unwrap().path().join("comm");
            std::fs::read_to_string(comm).is_ok_and(|name| name.trim_end() == "ctrl-c")
        })
    };
    eventually("the child listens", is_there);
    interrupt(child);
}

#[test]
fn ctrl_c_terminates_the_system_in_order() {
    let (mut child, mut out) = child("polite");
    read_until(&mut out, "ready");
    interrupt_once_it_runs(&child);
    read_until(&mut out, "PostStop");
    read_until(&mut out, "ended: Ctrl-C");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_second_ctrl_c_ends_the_program_at_once() {
    let (mut child, mut out) = child("deaf");
    read_until(&mut out, "ready");
    interrupt_once_it_runs(&child);
    read_until(&mut out, "PostStop");
    interrupt(&child);
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(130), None));
}
