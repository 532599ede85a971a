//! What the errors, exits and limits promise: each says what it is and nothing else, gives back
//! what was refused, and prints no user's value.
#![cfg(not(loom))]

extern crate alloc;

use alloc::rc::Rc;
use core::{error::Error, num::NonZeroU64, time::Duration};
use std::panic;

use clockjack_exec::{
    error::{SendError, StartError, SubmitError, TimerError},
    exit::{ExitReason, JoinError, PanicPayload, Text},
    failure::{Failure, StaticError},
    limits::Limits,
    pid::Pid,
};

static SILENT: StaticError = StaticError::new(7, "sensor silent");

/// Neither printed nor sent nor shared: nothing that an error may ask of it.
#[derive(PartialEq)]
struct Secret(Rc<u8>);

fn secret() -> Secret {
    Secret(Rc::new(42))
}

fn pid() -> Pid {
    Pid::new(3, 17, NonZeroU64::new(42).expect("it is not zero"))
}

/// `is` has all answers of an error in order; only that at `index` may be yes.
fn check_only<const N: usize>(is: [bool; N], index: usize, what: &str) {
    for (at, is) in is.into_iter().enumerate() {
        assert_eq!(is, at == index, "{what}: predicate {at}");
    }
}

fn texts(error: &dyn Error, says: &str) {
    assert_eq!(error.to_string(), says);
    assert!(!format!("{error:?}").contains("42"), "{error:?}");
}

#[test]
fn a_refused_message_comes_back_with_the_reason() {
    type Make = fn(Secret) -> SendError<Secret>;
    let makers: [(Make, &str); 4] = [
        (SendError::full, "message not sent: the mailbox is full"),
        (SendError::stopped, "message not sent: the process has stopped"),
        (SendError::unknown, "message not sent: there is no such process"),
        (SendError::wrong_type, "message not sent: the process takes messages of another type"),
    ];
    for (index, (make, says)) in makers.into_iter().enumerate() {
        let error = make(secret());
        texts(&error, says);
        let is =
            |e: &SendError<()>| [e.is_full(), e.is_stopped(), e.is_unknown(), e.is_wrong_type()];
        check_only(is(&error.discard()), index, says);
        assert!(make(secret()).into_inner() == secret());
        let mapped = make(secret()).map(|Secret(number)| *number);
        texts(&mapped, says);
        assert_eq!(mapped.into_inner(), 42);
    }
}

#[test]
fn a_refused_message_becomes_a_failure_once_it_can_be_sent() {
    let fails = || -> Result<(), Failure> { Err(SendError::full(secret()).discard())? };
    assert!(fails().expect_err("it does").downcast::<SendError<()>>().is_ok());
    let leaves = || -> Result<(), Box<dyn Error>> { Err(SendError::full(secret()))? };
    assert!(leaves().is_err());
}

#[test]
fn a_refused_process_comes_back_with_the_reason() {
    type Made = SubmitError<Secret>;
    type Make = fn() -> Made;
    let made: [(Make, &str); 3] = [
        (|| Made::full(secret()), "process not started: the limit of processes is reached"),
        (|| Made::stopped(secret()), "process not started: the executor has shut down"),
        (
            || Made::refused(SILENT.failure(), Some(secret())),
            "process not started: its init failed: sensor silent (code 7)",
        ),
    ];
    for (index, (make, says)) in made.into_iter().enumerate() {
        texts(&make(), says);
        let error = make().discard();
        texts(&error, says);
        let is = [error.is_full(), error.is_stopped(), error.is_refused()];
        check_only(is, index, says);
        assert_eq!(error.failure().is_some(), error.is_refused());
        assert_eq!(error.failure().and_then(Failure::code), error.into_failure().map(|_| 7));
        assert!(make().into_inner() == Some(secret()));
    }
    assert!(Made::refused(SILENT.failure(), None).into_inner().is_none());
}

#[test]
fn an_executor_that_does_not_start_says_why() {
    let errors = [
        (StartError::zero_workers(), "it needs at least one worker"),
        (StartError::too_many_workers(512), "it can have at most 512 workers"),
        (StartError::thread(&"no memory"), "no thread for a worker: no memory"),
        (StartError::duplicate_command(300), "two handlers for command 300"),
        (StartError::stopped(), "it has shut down"),
    ];
    for (index, (error, says)) in errors.into_iter().enumerate() {
        texts(&error, &format!("executor not started or resized: {says}"));
        let is = [
            error.is_zero_workers(),
            error.is_too_many_workers(),
            error.is_thread(),
            error.is_duplicate_command(),
            error.is_stopped(),
        ];
        check_only(is, index, says);
        assert_eq!(error.workers_max(), error.is_too_many_workers().then_some(512));
        assert_eq!(error.command(), error.is_duplicate_command().then_some(300));
    }
}

#[test]
fn a_timer_that_is_not_armed_says_why() {
    let errors = [
        (TimerError::full(), "timer not armed: the limit of timers is reached"),
        (TimerError::closed(), "timer not armed: the executor has shut down"),
    ];
    for (index, (error, says)) in errors.into_iter().enumerate() {
        texts(&error, says);
        check_only([error.is_full(), error.is_closed()], index, says);
    }
}

fn caught(throw: impl FnOnce() + panic::UnwindSafe) -> PanicPayload {
    PanicPayload::new(panic::catch_unwind(throw).expect_err("it panics"))
}

#[test]
fn a_caught_panic_says_what_was_said() {
    fn check(payload: Box<dyn core::any::Any + Send>, says: &str) {
        let caught = PanicPayload::new(payload);
        assert_eq!(caught.message(), says);
        assert_eq!(format!("{caught:?}"), format!("PanicPayload({says:?})"));
        let exit = JoinError::panicked(caught);
        assert_eq!(exit.panic_message(), Some(says));
        assert_eq!(exit.reason().to_string(), format!("panicked: {says}"));
    }
    check(Box::new("static"), "static");
    check(Box::new(String::from("made")), "made");
    check(Box::new(7_u32), "a panic whose payload is not a text");

    let thrown = caught(|| panic::resume_unwind(Box::new(7_u32)));
    assert_eq!(thrown.into_inner().downcast_ref::<u32>(), Some(&7));
}

/// One error of each kind, its text, and its exit reason.
fn exits() -> [(JoinError, &'static str, &'static str); 8] {
    [
        (
            JoinError::failed(SILENT.failure()),
            "the process failed: sensor silent (code 7)",
            "failed: sensor silent (code 7)",
        ),
        (
            JoinError::panicked(PanicPayload::new(Box::new("boom"))),
            "the process panicked: boom",
            "panicked: boom",
        ),
        (JoinError::terminated(), "the process was terminated", "terminated"),
        (
            JoinError::cancelled("shutdown"),
            "the process was cancelled: shutdown",
            "cancelled: shutdown",
        ),
        (
            JoinError::link_down(pid(), "sensor silent"),
            "the linked process {3|17.42} failed: sensor silent",
            "failed: the linked process {3|17.42} failed: sensor silent",
        ),
        (
            JoinError::already_joined(),
            "the result of the process was taken before",
            "failed: the result of the process was taken before",
        ),
        (
            JoinError::refused_full(),
            "the process was not started: the limit of processes is reached",
            "failed: the process was not started: the limit of processes is reached",
        ),
        (
            JoinError::refused_stopping(),
            "the process was not started: the executor is shutting down",
            "failed: the process was not started: the executor is shutting down",
        ),
    ]
}

#[test]
fn an_exit_says_how_the_process_ended() {
    for (index, (exit, says, told)) in exits().into_iter().enumerate() {
        assert_eq!(exit.to_string(), says);
        assert_eq!(exit.reason().to_string(), told);
        let is = [
            exit.is_failed(),
            exit.is_panicked(),
            exit.is_terminated(),
            exit.is_cancelled(),
            exit.is_link_down(),
            exit.is_already_joined(),
            exit.is_refused(),
        ];
        // The last two are both refusals.
        check_only(is, index.min(6), says);
        assert_eq!(exit.is_unavailable(), index >= 5, "{says}");
        assert_eq!(exit.reason().is_failure(), !exit.is_cancelled(), "{says}");
        assert_eq!(exit.failure().is_some(), exit.is_failed());
        assert_eq!(exit.linked(), exit.is_link_down().then(pid));
        assert_eq!(exit.panic_message(), exit.is_panicked().then_some("boom"));
    }
    for (exit, ..) in exits() {
        let failed = exit.is_failed();
        assert_eq!(exit.into_failure().and_then(|failure| failure.code()), failed.then_some(7));
    }
    for (exit, ..) in exits() {
        assert_eq!(exit.is_panicked(), exit.into_panic().is_some());
    }
}

#[test]
fn an_exit_leaves_by_question_mark() {
    let step = || -> Result<(), Failure> { Err(JoinError::cancelled("enough"))? };
    assert!(
        step().expect_err("it does").downcast::<JoinError>().is_ok_and(|exit| exit.is_cancelled())
    );
    let main = || -> Result<(), Box<dyn Error>> { Err(JoinError::terminated())? };
    assert!(main().expect_err("it does").is::<JoinError>());
}

#[test]
fn a_chain_of_causes_names_each_once() {
    let inner = SubmitError::<()>::refused(Failure::msg("inner"), None);
    let outer = JoinError::failed(Failure::from(inner));
    assert_eq!(
        outer.to_string(),
        "the process failed: process not started: its init failed: inner"
    );
    assert!(outer.source().is_none(), "all of it is in the text");

    let utf8 = String::from_utf8(vec![0xff]).expect_err("no text");
    let deep = JoinError::failed(Failure::from(Wrapper(utf8.utf8_error())));
    assert!(deep.source().expect("the wrapper's").is::<core::str::Utf8Error>());
}

#[derive(Debug)]
struct Wrapper(core::str::Utf8Error);

impl core::fmt::Display for Wrapper {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("wrapped")
    }
}

impl Error for Wrapper {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn a_reason_goes_to_many_and_shares_its_text() {
    const fn goes_to_any_thread<T: Send + Sync + Clone>() {}
    const { goes_to_any_thread::<ExitReason>() };

    let reason = JoinError::failed(Failure::msg(format!("sensor {}", 7))).reason();
    let copy = reason.clone();
    let (ExitReason::Failed(one), ExitReason::Failed(two)) = (&reason, &copy) else {
        panic!("{reason:?} and {copy:?} are failures");
    };
    assert!(core::ptr::eq(one.as_str(), two.as_str()), "one text for both");
    drop(Text::from(reason));
    assert_eq!(format!("{copy:?}"), r#"Failed("sensor 7")"#);
}

#[test]
fn only_an_end_that_nobody_wanted_is_a_failure() {
    assert!(!ExitReason::Normal.is_failure());
    assert!(!ExitReason::Cancelled("enough").is_failure());
    assert!(ExitReason::Terminated.is_failure());
    assert!(ExitReason::Panicked("boom".into()).is_failure());
    assert_eq!(ExitReason::Normal.to_string(), "ended normally");
}

#[test]
fn a_link_is_told_the_text_of_the_other_end() {
    for (reason, says) in [
        (ExitReason::Failed("silent".into()), "silent"),
        (ExitReason::Panicked("boom".into()), "boom"),
        (ExitReason::Terminated, "terminated"),
        (ExitReason::Cancelled("enough"), "enough"),
        (ExitReason::Normal, "ended normally"),
    ] {
        let exit = JoinError::link_down(pid(), reason);
        assert_eq!(exit.to_string(), format!("the linked process {{3|17.42}} failed: {says}"));
    }
}

#[test]
fn each_limit_is_set_alone() {
    const SET: Limits = Limits::DEFAULT
        .processes(1)
        .timers(2)
        .messages(3)
        .throughput(4)
        .step_budget(Duration::from_millis(5));
    let all = |limits: Limits| {
        let budget = limits.step_budget_max().as_millis();
        let (processes, timers) = (limits.processes_max(), limits.timers_max());
        (processes, timers, limits.messages_max(), limits.throughput_max(), budget)
    };
    assert_eq!(all(SET), (1, 2, 3, 4, 5));
    assert_eq!(all(Limits::default()), (1 << 20, 1 << 20, 1 << 16, 64, 1));
    assert_eq!(Limits::SMALL.throughput(0).throughput_max(), 1);
}
