//! Descriptions of failures, for parents, sinks, subscribers and logs.
//!
//! A [`FailureInfo`] contains the actor that failed, its path, the reason, and how often it was
//! restarted before. While the failure is escalated, the description is [moved to the
//! parent](FailureInfo::escalate_to_parent) level by level: `actor` and `path` then name the actor
//! that has to answer for the failure now, and [`FailureInfo::origin`] names the actor that failed.
//!
//! ```text
//!   stage   Initial        Escalated { hops: 1 }   Escalated { hops: 2 }   Root
//!   path    /user/boss/w   /user/boss              /user                   /
//! ```

use core::fmt;

use clockjack_exec::Pid;
use clockjack_sync::Arc;

use crate::{ActorPath, escalation::ReturnedBySinks, strategy::Directive};

mod metadata;
mod report;

pub use metadata::{ENTRIES_MAX, Metadata, MetadataFull};
pub use report::{FailureReport, Panicked, TEXT_LEN_MAX};

/// The description of a failure. Cheap to clone.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{ActorPath, Failure, FailureInfo, FailureReport, Pid};
/// use clockjack_actor::failure_info::EscalationStage;
///
/// let boss = Pid::new(1, 1, core::num::NonZeroU64::MIN);
/// let worker = Pid::new(1, 2, core::num::NonZeroU64::MIN);
/// let path = ActorPath::root().child("user").child("boss").child("worker");
///
/// let failed = FailureInfo::new(worker, path, FailureReport::new("out of paper"));
/// assert_eq!(failed.to_string(), "/user/boss/worker {1|2.1}: out of paper");
///
/// let above = failed.escalate_to_parent(boss);
/// assert_eq!(above.actor, boss);
/// assert_eq!(above.path.to_string(), "/user/boss");
/// assert_eq!(above.stage, EscalationStage::Escalated { hops: 1 });
/// assert_eq!(above.origin(), (worker, &failed.path));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailureInfo {
    /// The actor that has to answer for the failure now: the one that failed, or one of its
    /// ancestors.
    pub actor: Pid,
    /// The path of that actor.
    pub path: ActorPath,
    /// The reason of the failure.
    pub reason: FailureReport,
    /// How far the failure was escalated.
    pub stage: EscalationStage,
    /// How often the actor that failed was restarted before.
    pub restart_stats: RestartStats,
    /// The type of the message that was being handled; `None` in a start, a stop or a signal.
    pub message_type: Option<&'static str>,
    /// The decision about the failure; `None` while there is none.
    pub directive: Option<Directive>,
    /// Further entries, as text.
    pub metadata: Metadata,
    /// The actor that failed; `None` if that is `actor`.
    origin: Option<Arc<Origin>>,
    /// The sinks of a composite that returned the failure and have to see it again.
    returned: Option<Arc<ReturnedBySinks>>,
}

/// This type is the error type of every sink, and errors should not be large.
const _: () = assert!(size_of::<FailureInfo>() < 128);

impl FailureInfo {
    /// The description of a failure that was not escalated yet.
    pub fn new(actor: Pid, path: ActorPath, reason: impl Into<FailureReport>) -> Self {
        Self {
            actor,
            path,
            reason: reason.into(),
            stage: EscalationStage::Initial,
            restart_stats: RestartStats::default(),
            message_type: None,
            directive: None,
            metadata: Metadata::default(),
            origin: None,
            returned: None,
        }
    }

    /// The same failure, escalated by one level to the parent with this pid. At the root, which has
    /// no parent, only the stage changes.
    #[must_use]
    pub fn escalate_to_parent(&self, parent: Pid) -> Self {
        let mut info = self.clone();
        info.returned = None;
        let Some(path) = self.path.parent() else {
            info.stage = EscalationStage::Root;
            return info;
        };
        info.origin
            .get_or_insert_with(|| Arc::new(Origin { actor: self.actor, path: self.path.clone() }));
        info.actor = parent;
        info.path = path.clone();
        info.stage = self.stage.next(path);
        // The parent has not decided yet.
        info.directive = None;
        info
    }

    /// The pid and path of the actor that failed.
    #[must_use]
    pub fn origin(&self) -> (Pid, &ActorPath) {
        match &self.origin {
            Some(origin) => (origin.actor, &origin.path),
            None => (self.actor, &self.path),
        }
    }

    /// The number of levels by which the failure was escalated.
    #[must_use]
    pub fn hops(&self) -> usize {
        self.origin().1.depth().saturating_sub(self.path.depth())
    }

    pub(crate) fn returned(&self) -> Option<&Arc<ReturnedBySinks>> {
        self.returned.as_ref()
    }

    pub(crate) fn set_returned(&mut self, returned: Option<Arc<ReturnedBySinks>>) {
        self.returned = returned;
    }
}

impl fmt::Display for FailureInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (actor, path) = self.origin();
        write!(f, "{path} {actor}: {}", self.reason)?;
        if let Some(message_type) = self.message_type {
            write!(f, " (handling {message_type})")?;
        }
        if self.stage != EscalationStage::Initial {
            write!(f, ", escalated to {}", self.path)?;
        }
        if let Some(directive) = self.directive {
            write!(f, ", {directive}")?;
        }
        if !self.metadata.is_empty() {
            write!(f, " [{}]", self.metadata)?;
        }
        Ok(())
    }
}

/// How far a failure was escalated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EscalationStage {
    /// The failure is with the actor that failed and its own strategies.
    #[default]
    Initial,
    /// The failure is with an ancestor.
    Escalated {
        /// The number of levels between the failed actor and the ancestor. Saturates.
        hops: u16,
    },
    /// The failure is with the root.
    Root,
}

impl EscalationStage {
    /// The stage after escalation by one level, to the actor at `path`.
    fn next(self, path: &ActorPath) -> Self {
        match self {
            _ if path.parent().is_none() => Self::Root,
            Self::Initial => Self::Escalated { hops: 1 },
            Self::Escalated { hops } => Self::Escalated { hops: hops.saturating_add(1) },
            Self::Root => Self::Root,
        }
    }
}

/// How often an actor was restarted. Counts saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestartStats {
    /// The number of successful restarts.
    pub restarts: u32,
    /// When the last restart finished, in nanoseconds since the start of the system.
    pub last_restart_nanos: Option<u64>,
    /// The number of failures that required a restart in the present window of the restart limit;
    /// without a limit, of all.
    pub window_failures: u32,
}

#[derive(Debug)]
struct Origin {
    actor: Pid,
    path: ActorPath,
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    fn pid(index: u32) -> Pid {
        Pid::new(1, index, core::num::NonZeroU64::MIN)
    }

    fn info() -> FailureInfo {
        let path = ActorPath::root().child("user").child("a").child("b");
        FailureInfo::new(pid(9), path, FailureReport::new("why"))
    }

    #[test]
    fn on_its_way_up_it_names_each_level_and_still_the_origin() {
        let mut info = info();
        info.directive = Some(Directive::Escalate);
        info.metadata.insert("k", "v").unwrap();
        let origin = info.path.clone();
        let mut seen = alloc::vec![];
        for level in (0..4).rev() {
            info = info.escalate_to_parent(pid(level));
            assert_eq!(info.origin(), (pid(9), &origin));
            assert_eq!(info.directive, None);
            assert_eq!(info.metadata.get("k"), Some("v"));
            seen.push((info.actor.index(), info.path.to_string(), info.stage, info.hops()));
        }
        let escalated = |hops| EscalationStage::Escalated { hops };
        let expected = [
            (3, "/user/a".to_string(), escalated(1), 1),
            (2, "/user".to_string(), escalated(2), 2),
            (1, "/".to_string(), EscalationStage::Root, 3),
            // The root has no parent.
            (1, "/".to_string(), EscalationStage::Root, 3),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn it_is_shown_with_all_that_is_known() {
        let mut info = info();
        info.message_type = Some("Print");
        info.metadata.insert(Metadata::TRANSPORT, "tcp").unwrap();
        let mut above = info.escalate_to_parent(pid(2));
        above.directive = Some(Directive::Stop);
        assert_eq!(info.to_string(), "/user/a/b {1|9.1}: why (handling Print) [transport=tcp]");
        let expected = "/user/a/b {1|9.1}: why (handling Print), escalated to /user/a, stop \
                        [transport=tcp]";
        assert_eq!(above.to_string(), expected);
    }

    #[test]
    fn it_may_be_looked_at_by_many() {
        fn check<T: Send + Sync + Clone>() {}
        check::<FailureInfo>();
        check::<FailureReport>();
    }
}
