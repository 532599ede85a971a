//! Replaces the output to `tracing` in builds without the feature `tracing`.

use core::fmt;

use clockjack_actor::{ActorSystem, FailureInfo, MailboxRefusals};

/// There is no bridge.
pub(crate) fn is_bridged(_: &ActorSystem, _: &FailureInfo) -> bool {
    false
}

/// There is no bridge.
pub(crate) fn bridges_refusals(_: &ActorSystem) -> bool {
    false
}

/// Never takes a failure.
pub(crate) fn failure(_: &str, _: &FailureInfo) -> bool {
    false
}

/// Never takes a report about refused messages.
pub(crate) fn refusals(_: &str, _: &MailboxRefusals) -> bool {
    false
}

/// Never takes a warning.
pub(crate) fn warn(_: &str, _: fmt::Arguments<'_>) -> bool {
    false
}
