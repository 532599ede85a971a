//! What a thread asks of the operating system for itself, all at once, with an answer for each.
//!
//! One refusal keeps nothing else from being asked for. Processors come first and the class last:
//! a thread in a class that goes before all others does not look for its processor any more.

use std::io;

use clockjack_actor::system::{PolicyAnswer, PolicyAnswers, ThreadPolicy};

use crate::thread_control;

/// Asks for all of it, on the thread that it is for.
pub(crate) fn apply(wanted: &ThreadPolicy) -> PolicyAnswers {
    let ThreadPolicy { cpus, niceness, realtime } = wanted;
    PolicyAnswers {
        cpus: answer((!cpus.is_empty()).then(|| thread_control::run_on(cpus))),
        niceness: answer(niceness.map(thread_control::set_niceness)),
        realtime: answer(
            realtime.map(|(class, priority)| thread_control::set_realtime(class, priority)),
        ),
    }
}

fn answer(result: Option<io::Result<()>>) -> PolicyAnswer {
    match result {
        None => PolicyAnswer::NotAsked,
        Some(Ok(())) => PolicyAnswer::Applied,
        Some(Err(error)) if error.kind() == io::ErrorKind::Unsupported => PolicyAnswer::Unsupported,
        Some(Err(error)) => PolicyAnswer::Refused(error.to_string().into()),
    }
}
