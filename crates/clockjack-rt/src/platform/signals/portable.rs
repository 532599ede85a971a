//! Ctrl-C where there are no signals of Unix: one handler for the program, by the crate `ctrlc`.

use std::io;

use super::signals::{Installed, SignalKind};

/// Calls `deliver` on a thread of the crate `ctrlc` for each Ctrl-C. The other kinds do not exist
/// here: they are accepted, and never occur.
pub(crate) fn install(kind: SignalKind, deliver: fn(SignalKind)) -> io::Result<Installed> {
    if kind != SignalKind::Interrupt {
        return Ok(Installed::Handled);
    }
    let installed = ctrlc::try_set_handler(move || deliver(SignalKind::Interrupt));
    installed.map(|()| Installed::Handled).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_system_lacks_is_accepted_and_a_second_handler_of_ctrl_c_is_an_error() {
        let install = |kind| install(kind, |_| std::process::exit(130));
        for kind in [SignalKind::Terminate, SignalKind::Hangup] {
            assert_eq!(install(kind).expect("it never occurs"), Installed::Handled);
        }
        // The first one may fail as well: the test may run with Ctrl-C ignored.
        let _first = install(SignalKind::Interrupt);
        let refused = install(SignalKind::Interrupt).expect_err("there is a handler");
        assert!(refused.to_string().contains("handler"), "{refused}");
    }
}
