//! Failures as events of `tracing`, where the thread has a subscriber.

use core::fmt;

use clockjack_actor::{ActorSystem, EscalationStage, EventKinds, FailureInfo, MailboxRefusals};
use tracing::{dispatcher, subscriber::NoSubscriber};

use crate::tracing_bridge;

/// Whether a bridge of the system writes this failure to the subscriber.
pub(crate) fn is_bridged(system: &ActorSystem, info: &FailureInfo) -> bool {
    if has_no_subscriber() {
        return false;
    }
    match info.stage {
        EscalationStage::Root => tracing_bridge::is_installed(system),
        _ => tracing_bridge::forwards(system, EventKinds::FAILURE),
    }
}

/// Whether a bridge of the system writes reports about refused messages to the subscriber.
pub(crate) fn bridges_refusals(system: &ActorSystem) -> bool {
    !has_no_subscriber() && tracing_bridge::forwards(system, EventKinds::MAILBOX_REFUSALS)
}

/// Passes a failure to the subscriber. Returns false if there is none.
pub(crate) fn failure(system: &str, info: &FailureInfo) -> bool {
    if has_no_subscriber() {
        return false;
    }
    tracing_bridge::write_decided(system, info);
    true
}

/// Passes a report about refused messages to the subscriber. Returns false if there is none.
pub(crate) fn refusals(system: &str, refusals: &MailboxRefusals) -> bool {
    if has_no_subscriber() {
        return false;
    }
    tracing_bridge::write_refusals(system, refusals);
    true
}

/// Passes a warning to the subscriber. Returns false if there is none.
pub(crate) fn warn(system: &str, text: fmt::Arguments<'_>) -> bool {
    if has_no_subscriber() {
        return false;
    }
    tracing_bridge::write_text(system, text);
    true
}

fn has_no_subscriber() -> bool {
    dispatcher::get_default(dispatcher::Dispatch::is::<NoSubscriber>)
}
