//! What is told about a failure: to parents, sinks, subscribers and logs.
//!
//! A [`FailureInfo`] says who failed, where it stands, why, and how often before. On its way up the
//! tree it is [moved to the parent](FailureInfo::escalate_to_parent) level by level: then `actor`
//! and `path` name the one that is concerned now, [`FailureInfo::origin`] the one that failed.
//!
//! ```text
//!   stage   Initial        Escalated { hops: 1 }   Escalated { hops: 2 }   Root
//!   path    /user/boss/w   /user/boss              /user                   /
//! ```

use core::fmt;

use clockjack_exec::Pid;
use clockjack_sync::Counted;

use crate::{ActorPath, escalation::ReturnedBySinks, strategy::Directive};

mod metadata;
mod report;

pub use metadata::{ENTRIES_MAX, Metadata, MetadataFull};
pub use report::{FailureReport, Panicked, TEXT_LEN_MAX};

/// What is told about a failure. Cheap to clone.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{ActorPath, Failure, FailureInfo, FailureReport, Pid};
/// use clockjack_actor::failure_info::EscalationStage;
///
/// let boss: Pid = "{1|1.1}".parse()?;
/// let worker: Pid = "{1|2.1}".parse()?;
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
    /// The actor that this is about now: the one that failed, or one above it that has to answer.
    pub actor: Pid,
    /// Where that actor stands.
    pub path: ActorPath,
    /// Why it failed.
    pub reason: FailureReport,
    /// How far up it has come.
    pub stage: EscalationStage,
    /// How often the actor that failed was restarted before.
    pub restart_stats: RestartStats,
    /// The type of the message that was being handled; none in a start, a stop or a signal.
    pub message_type: Option<&'static str>,
    /// What was done about it; none while that is undecided.
    pub directive: Option<Directive>,
    /// Notes.
    pub metadata: Metadata,
    /// Who failed; none if that is `actor`.
    origin: Option<Counted<Origin>>,
    /// The sinks of a composite that have to see it again.
    returned: Option<Counted<ReturnedBySinks>>,
}

/// It is the error of every sink, which should not be large.
const _: () = assert!(size_of::<FailureInfo>() < 128);

impl FailureInfo {
    /// The first news of a failure.
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

    /// The same failure as the parent sees it, which has this pid: one level up. At the root there
    /// is no level above; there it stays as it is.
    #[must_use]
    pub fn escalate_to_parent(&self, parent: Pid) -> Self {
        let mut info = self.clone();
        info.returned = None;
        let Some(path) = self.path.parent() else {
            info.stage = EscalationStage::Root;
            return info;
        };
        info.origin.get_or_insert_with(|| {
            Counted::new(Origin { actor: self.actor, path: self.path.clone() })
        });
        info.actor = parent;
        info.path = path.clone();
        info.stage = self.stage.next(path);
        // What is to be done up there is not decided yet.
        info.directive = None;
        info
    }

    /// The actor that failed in the first place.
    #[must_use]
    pub fn origin(&self) -> (Pid, &ActorPath) {
        match &self.origin {
            Some(origin) => (origin.actor, &origin.path),
            None => (self.actor, &self.path),
        }
    }

    /// How many levels it has come up.
    #[must_use]
    pub fn hops(&self) -> usize {
        self.origin().1.depth().saturating_sub(self.path.depth())
    }

    pub(crate) fn returned(&self) -> Option<&Counted<ReturnedBySinks>> {
        self.returned.as_ref()
    }

    pub(crate) fn set_returned(&mut self, returned: Option<Counted<ReturnedBySinks>>) {
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

/// How far up a failure has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EscalationStage {
    /// With the actor that failed, and its own strategies.
    #[default]
    Initial,
    /// With one above, which stands for it now.
    Escalated {
        /// How many levels above. Saturates.
        hops: u16,
    },
    /// With the root, above which is nobody.
    Root,
}

impl EscalationStage {
    /// The stage one level further up, where the actor at `path` has to answer.
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
    /// Restarts that came to a good end.
    pub restarts: u32,
    /// When the last of them ended, in nanoseconds since the start of the system.
    pub last_restart_nanos: Option<u64>,
    /// Failures that asked for a restart since the limit's window opened; without a limit, all.
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
            // Above the root is nobody.
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
