//! Systems that have neither signals nor console events: nothing outside of the program asks it to
//! stop.

use std::io;

use super::signals::{Installed, SignalKind};

/// Accepts every kind. None of them ever occurs.
#[expect(clippy::unnecessary_wraps, reason = "the same interface on all systems")]
pub(crate) fn install(_kind: SignalKind, _deliver: fn(SignalKind)) -> io::Result<Installed> {
    Ok(Installed::unless_ignored(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_system_lacks_is_accepted() {
        for kind in [SignalKind::Interrupt, SignalKind::Terminate, SignalKind::Hangup] {
            let installed = install(kind, |kind| panic!("{kind:?} does not exist"));
            assert_eq!(installed.expect("it never occurs"), Installed::unless_ignored(false));
        }
    }
}
