//! What a program prints whose actors fail. In processes of their own, since standard error belongs
//! to a whole program.
#![cfg(not(loom))]

use core::{error::Error, time::Duration};
use std::{
    env,
    io::{self, BufRead as _, BufReader, Read as _},
    process::{Child, Command, Stdio},
    sync::{Arc, Barrier},
    thread,
};

use clockjack_rt::{
    FailureLog, Runtime, RuntimeConfig,
    actor::{Actor, ActorSystem, Context, Failure, Mailbox, Next, Props, ReplyTo, Strategy},
};

/// Says in the environment what the child is to do.
const ROLE: &str = "CLOCKJACK_TEST_ROLE";
const TEST: &str = "failure_log::what_the_child_does";
const OVERLOADED: &str = "failure_log::what_the_overloaded_child_does";
const LOOPS: usize = 1_000;

/// Starts one test of this program in a role. The child ends by itself, at the latest when its
/// standard input is closed.
fn start(test: &str, role: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Whether a line is not the warning that Ctrl-C is ignored, as for a process that a shell has
/// started in the background.
fn is_ours(line: &str) -> bool {
    !line.contains("SIGINT was ignored")
}

/// The lines that a child prints on standard error. It ends well.
fn told(test: &str, role: &str) -> Vec<String> {
    let output = start(test, role).wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{}: {err}", output.status);
    err.lines().filter(|line| is_ours(line)).map(str::to_owned).collect()
}

enum Job {
    Fails,
    Panics,
    Done(ReplyTo<()>),
}

struct Printer;

impl Actor for Printer {
    type Msg = Job;

    fn receive(&mut self, _: &mut Context<'_, Self>, job: Job) -> Result<Next, Failure> {
        match job {
            Job::Fails => Err(Failure::msg("out of paper")),
            Job::Panics => panic!("on fire"),
            Job::Done(reply_to) => {
                reply_to.reply(());
                Ok(Next::Stay)
            }
        }
    }
}

/// Sends to an actor whose handler waits, until 1000 messages were refused.
fn overload(rt: &Runtime) -> Result<(), Box<dyn Error>> {
    let props = Props::from_fn(|_, gate: Option<Arc<Barrier>>| {
        for _ in 0..2 {
            gate.iter().for_each(|gate| _ = gate.wait());
        }
        Ok(Next::Stay)
    });
    let slow = rt.spawn("slow", props.mailbox(Mailbox::bounded(4)))?;
    let gate = Arc::new(Barrier::new(2));
    slow.tell(Some(Arc::clone(&gate))).map_err(|_| "it has room")?;
    gate.wait();
    let n_refused = (0..1004).filter(|_| slow.tell(None).is_err()).count();
    gate.wait();
    if n_refused == LOOPS { Ok(()) } else { Err(format!("{n_refused} were refused").into()) }
}

#[test]
fn what_the_overloaded_child_does() -> Result<(), Box<dyn Error>> {
    let Ok(role) = env::var(ROLE) else { return Ok(()) };
    let log = if role == "off" { FailureLog::Off } else { FailureLog::On };
    let config = RuntimeConfig { failure_log: log, ..RuntimeConfig::DEFAULT };
    let rt = Runtime::start_with(ActorSystem::builder("shop"), config)?;
    overload(&rt)?;
    if role == "continues" {
        let system = rt.system().clone();
        thread::spawn(move || {
            // Until the parent closes it.
            drop(io::stdin().read_to_end(&mut Vec::new()));
            system.shutdown()
        });
        drop(rt.run());
    }
    Ok(())
}

#[test]
fn refused_messages_are_one_line_that_names_the_worst_mailbox() {
    let line =
        "clockjack[shop]: actor /user/slow: the mailbox was full and has refused 1000 messages";
    let at_once = told(OVERLOADED, "ends at once");
    assert_eq!(at_once, [line], "the shutdown writes what was not written");
    assert_eq!(told(OVERLOADED, "off"), [""; 0]);

    let mut child = start(OVERLOADED, "continues");
    let err = BufReader::new(child.stderr.take().unwrap());
    let mut lines = err.lines().map(Result::unwrap).filter(|line| is_ours(line));
    assert_eq!(lines.next().as_deref(), Some(line), "the line comes while the program runs");
    drop(child.stdin.take());
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    assert!(!rest.iter().any(|line| line.contains("refused")), "the line comes once: {rest:?}");
}

#[test]
fn what_the_child_does() -> Result<(), Box<dyn Error>> {
    let Ok(role) = env::var(ROLE) else { return Ok(()) };
    let rt = if role == "off" {
        let config = RuntimeConfig { failure_log: FailureLog::Off, ..RuntimeConfig::DEFAULT };
        Runtime::start_with(ActorSystem::builder("shop"), config)?
    } else {
        Runtime::new("shop")?
    };
    let props = Props::new(|| Printer);
    let props = match &*role {
        "loops" | "restarts" => props.supervise(Strategy::restart()),
        "resumes" => props.supervise(Strategy::resume()),
        _ => props,
    };
    let printer = rt.spawn("printer", props)?;
    for _ in 0..if role == "loops" { LOOPS } else { 1 } {
        let job = if role == "panics" { Job::Panics } else { Job::Fails };
        rt.block_on(printer.send(job))?;
    }
    match &*role {
        "stops" | "panics" | "off" => drop(rt.run().failure.ok_or("it failed")?),
        _ => rt.block_on(printer.ask(Job::Done, Duration::from_secs(60)))?,
    }
    Ok(())
}

/// The lines of the runtime on standard error.
fn lines_of(role: &str) -> Vec<String> {
    let mut lines = told(TEST, role);
    lines.retain(|line| role != "panics" || line.starts_with("clockjack"));
    lines
}

#[test]
fn a_failure_is_one_line_with_path_message_cause_and_decision() {
    let line = |cause, decision| {
        format!(
            "clockjack[shop]: actor /user/printer failed while handling \
             termination::failure_log::Job: {cause}; the actor {decision}"
        )
    };
    assert_eq!(lines_of("stops"), [line("out of paper", "stops")]);
    assert_eq!(lines_of("panics"), [line("panicked: on fire", "stops")]);
    assert_eq!(lines_of("restarts"), [line("out of paper", "restarts")]);
}

#[test]
fn nothing_is_printed_if_it_is_off_or_the_actor_resumes() {
    assert_eq!(lines_of("off"), [""; 0]);
    assert_eq!(lines_of("resumes"), [""; 0]);
}

#[test]
fn an_actor_that_fails_in_a_loop_prints_a_few_lines_and_the_number_of_the_others() {
    let lines = lines_of("loops");
    let counted = |line: &String| {
        let rest = line.strip_prefix("clockjack[shop]: ")?;
        // The singular if a second ends before the next failure.
        let number = rest
            .strip_suffix(" more failures were counted and not written")
            .or_else(|| rest.strip_suffix(" more failure was counted and not written"))?;
        number.parse::<usize>().ok()
    };
    let n_counted: usize = lines.iter().filter_map(counted).sum();
    let n_failures = lines.iter().filter(|line| line.contains("out of paper")).count();
    assert_eq!(n_failures + n_counted, LOOPS, "{lines:#?}");
    assert!(lines.len() < 100, "{lines:#?}");
    let is_last = |line: &String| line.ends_with("; more failures in this second are only counted");
    assert!(lines.iter().any(is_last), "{lines:#?}");
}
