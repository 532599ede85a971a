//! Messages without spans: the feature `spans` is off.

use clockjack_exec::Failure;

use crate::{
    Next,
    cell::{AnyPoll, header::ActorHeader},
};

/// The flag of a cell whose messages have spans: no cell has it.
pub(crate) const HAS_SPANS: u16 = 0;

/// The spans of a system: none.
#[derive(Default)]
pub(crate) struct SpanSource {}

impl SpanSource {
    fn is_some(&self) -> bool {
        false
    }
}

/// The span that a message carries: none.
#[derive(Default)]
pub(crate) struct CarriedSpan {}

impl CarriedSpan {
    pub(crate) fn current(_: &ActorHeader) -> Self {
        Self {}
    }

    pub(crate) fn is_none(&self) -> bool {
        true
    }

    pub(crate) fn enter<R>(&self, _: &ActorHeader, poll: impl FnOnce() -> R) -> R {
        poll()
    }
}

pub(crate) fn has_spans(actor: &ActorHeader) -> bool {
    actor.system().spans().is_some()
}

pub(crate) fn handle(
    _: &AnyPoll<'_>,
    _: CarriedSpan,
    _: &'static str,
    handler: impl FnOnce() -> Result<Next, Failure>,
) -> Result<Next, Failure> {
    handler()
}
