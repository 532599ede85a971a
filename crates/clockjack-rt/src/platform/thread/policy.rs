//! Applies a thread policy to the current thread, with one result per setting.
//!
//! A refused setting does not prevent the others. CPUs come first and the real-time class last: a
//! thread in a real-time class would no longer be moved to its CPU in time.

use std::io;

use clockjack_actor::system::{PolicyAnswer, PolicyAnswers, ThreadPolicy};

use crate::platform::thread_control;

/// Applies all settings to the calling thread.
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
