//! What a program prints whose actors fail. In processes of their own, since standard error belongs
//! to a whole program.

use core::{error::Error, time::Duration};

use clockjack_rt::{
    FailureLog, Runtime, RuntimeConfig,
    actor::{Actor, ActorSystem, Context, Failure, Next, Props, ReplyTo, Strategy},
};

use crate::child::{self, Process};

const TEST: &str = "failure_log::what_the_child_does";
const LOOPS: usize = 1_000;

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

#[test]
#[expect(clippy::print_stdout, reason = "its parent reads it")]
fn what_the_child_does() -> Result<(), Box<dyn Error>> {
    let Some(role) = child::role() else { return Ok(()) };
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
        "stops" | "panics" | "off" => println!("{}", rt.run().failure.ok_or("it failed")?),
        _ => rt.block_on(printer.ask(Job::Done, Duration::from_secs(60)))?,
    }
    Ok(())
}

/// The lines of the runtime on standard error.
fn lines_of(role: &str) -> Vec<String> {
    let err = Process::start(TEST, role).wait_for_success();
    let ours = err.lines().filter(|line| role != "panics" || line.starts_with("clockjack"));
    ours.map(str::to_owned).collect()
}

#[test]
fn a_failure_is_one_line_with_path_message_cause_and_decision() {
    let line = |cause, decision| {
        format!(
            "clockjack[shop]: actor /user/printer failed while handling linux::failure_log::Job: \
             {cause}; the actor {decision}"
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
