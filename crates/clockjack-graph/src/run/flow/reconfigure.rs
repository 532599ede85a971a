//! Changes of settings while a run goes on: all of a change, or nothing.
//!
//! A value that a component type does not allow is refused at once, as in a graph file. A change is
//! applied at the beginning of an epoch, in two phases. First every component validates its new
//! settings; if one refuses, nothing has happened. Then the components apply them, in the order of
//! the change. If one fails, it and those before it get their old settings back, in reverse order,
//! and the run ends, because a component may have applied its settings only in part.

use core::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use std::sync::{Arc, Mutex, MutexGuard};

use super::inbox::{Inbox, Incoming, wake_outside};
use crate::{
    describe::{ConfigMap, ConfigValue, Span},
    lock::lock,
    run::setup::shared::RunShared,
};

/// A change of settings, built step by step.
pub struct Reconfigure {
    pub(crate) shared: Arc<RunShared>,
    pub(crate) inboxes: Arc<[Inbox]>,
    pub(crate) changes: Vec<(String, String, ConfigValue)>,
}

/// `runtime.config.*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigCounts {
    pub(crate) version: u64,
    pub(crate) transaction: u64,
    pub(crate) staged: u64,
    pub(crate) committed: u64,
    pub(crate) rejected: u64,
    pub(crate) rolled_back: u64,
}

/// A change on its way to the coordinator: the new settings by component, in order.
pub(crate) struct Transaction {
    pub(crate) changes: Vec<(usize, ConfigMap)>,
    pub(crate) reply: Reply,
}

impl Reconfigure {
    /// Adds a setting of a component to the change.
    #[must_use]
    pub fn set(mut self, component: &str, field: &str, value: impl Into<ConfigValue>) -> Self {
        self.changes.push((component.into(), field.into(), value.into()));
        self
    }

    /// Submits the change. When the future is ready, the change is in force or refused. The future
    /// need not be awaited.
    ///
    /// # Errors
    ///
    /// [`ConfigRefused`], if a component does not exist, if its type does not declare the setting
    /// or does not allow the value, if the components belong to different epoch domains, if a
    /// component refuses its settings, or if the run has ended.
    pub fn commit(self) -> Committing {
        let reply = Reply::default();
        let committing = Committing(reply.clone());
        let plan = &self.shared.plan;
        let mut changes: Vec<(usize, ConfigMap)> = Vec::new();
        for (id, field, value) in self.changes {
            let Some(component) = plan.find(&id) else {
                reply.send(Err(ConfigRefused::new(&id, "there is no such component")));
                return committing;
            };
            if let Some(why) = plan.components[component].descriptor.refuses(&field, &value) {
                reply.send(Err(ConfigRefused::new(&id, why)));
                return committing;
            }
            let at = match changes.iter().position(|(of, _)| *of == component) {
                Some(at) => at,
                None => {
                    changes.push((component, ConfigMap::default()));
                    changes.len() - 1
                }
            };
            changes[at].1.entries.push((field, value, Span::NONE));
        }
        // Each domain applies changes in its own epochs.
        let domain_of = |component: usize| self.shared.nodes[component].0;
        let domain = changes.first().map_or(0, |(component, _)| domain_of(*component));
        if let Some((other, _)) = changes.iter().find(|(one, _)| domain_of(*one) != domain) {
            let why = "it belongs to another epoch domain than the components before it: \
                       change it separately";
            reply.send(Err(ConfigRefused::new(&plan.components[*other].spec.id, why)));
            return committing;
        }
        let transaction = Transaction { changes, reply: reply.clone() };
        if self.inboxes[domain as usize].put(Incoming::Config(transaction)).is_err() {
            reply.send(Err(ConfigRefused::new("", "the run has ended")));
        }
        committing
    }
}

impl fmt::Debug for Reconfigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconfigure").field("changes", &self.changes).finish_non_exhaustive()
    }
}

/// Ready when a change is in force or refused; yields the version of the settings.
pub struct Committing(Reply);

impl Future for Committing {
    type Output = Result<u64, ConfigRefused>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock();
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Committing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Committing")
    }
}

/// Where the coordinator stores the result of a change. A transaction that is dropped without a
/// result means that the run has ended.
#[derive(Clone, Default)]
pub(crate) struct Reply(Arc<Mutex<ReplyState>>);

#[derive(Default)]
struct ReplyState {
    result: Option<Result<u64, ConfigRefused>>,
    waker: Option<Waker>,
}

impl Reply {
    pub(crate) fn send(&self, result: Result<u64, ConfigRefused>) {
        let mut state = self.lock();
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            wake_outside(waker);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReplyState> {
        lock(&self.0)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let has_reply = Arc::strong_count(&self.reply.0) < 2 || {
            let state = self.reply.lock();
            state.result.is_some()
        };
        if !has_reply {
            self.reply.send(Err(ConfigRefused::new("", "the run has ended")));
        }
    }
}

/// A change of settings that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigRefused {
    component: String,
    reason: String,
}

impl ConfigRefused {
    pub(crate) fn new(component: &str, reason: impl fmt::Display) -> Self {
        Self { component: component.into(), reason: format!("{reason}") }
    }

    /// The component that refused; empty if it was none.
    #[must_use]
    pub fn component(&self) -> &str {
        &self.component
    }
}

impl fmt::Display for ConfigRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.component.is_empty() {
            f.write_str(&self.reason)
        } else {
            write!(f, "`{}`: {}", self.component, self.reason)
        }
    }
}

impl core::error::Error for ConfigRefused {}
