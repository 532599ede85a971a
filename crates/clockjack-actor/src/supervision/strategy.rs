//! Supervision strategies: directives, limits, back-off, and what a strategy remembers about an
//! actor.
//!
//! A [`Strategy`] is a decision with its limits, given when an actor is described. Nothing in this
//! module reads a clock, arms a timer or accesses an actor: the caller passes a failure and the
//! time, and gets a decision that it carries out. So the rules can be tested without any actor.
//!
//! # Rules
//!
//! 1. A strategy decides about failures that it matches, by default about all; with
//!    [`only`](Strategy::only) about one type of error. Other failures go outward.
//! 2. Only restarts are counted. A resume, a stop or an escalation is not recorded.
//! 3. A limit of `n` restarts within `t`, as OTP's intensity and period: a failure exceeds the
//!    limit if `n` restarts were granted less than `t` ago. So no window of length `t` has more
//!    than `n` restarts, wherever it begins. With `n = 0` the first failure exceeds the limit. The
//!    limit of an actor's own strategy counts the restarts of the actor. The limit of a strategy
//!    for children counts per supervisor: all decisions to restart a child, or the children in its
//!    scope, count one each. A supervisor that restarts without keeping its children begins to
//!    count again.
//! 4. A failure that exceeds a limit goes outward, to the next strategy, then to the parent; where
//!    nobody is left, the actor stops.
//! 5. A failure of the *first* start, in the factory or in `started`, is likely to be repeated at
//!    once. With an unlimited restart without back-off, or with a resume, it goes outward. A
//!    limited restart counts and tries again, except if that would be the last restart granted:
//!    with a limit of 2 an actor is started three times, with a limit of 1 once. With back-off
//!    there is a pause between the attempts, so it tries as often as the limit says, or forever.
//! 6. A failure of the start that belongs to a *restart* counts like a failure of any handler.
//! 7. The pause before a restart is `min(max, min * 2^count) * (1 + random * jitter)`. The count
//!    increases with each restart and is reset to zero if [`Backoff::reset_after`] has passed
//!    between the end of a restart and the next failure that causes one.
//! 8. The window and the back-off are counted separately: a calm period shortens the next pause,
//!    but does not open a new window.
//!
//! All counts saturate. Of a limit whose window ends, the restarts in the current window are kept,
//! eight bytes each and at most `n`; nothing else grows, so an actor that fails for years needs no
//! more memory than one that has failed `n` times.

use alloc::boxed::Box;
use core::{any::TypeId, error::Error, fmt, time::Duration};

use clockjack_exec::Failure;

use crate::{ActorPath, failure_info::RestartStats};

mod backoff;
mod state;

pub use backoff::Backoff;
pub(crate) use state::{ChildStrategy, Decision, FailureContext, RestartHistory, StrategyState};

/// How many messages are kept for an actor while a restart is pending, by default.
pub const STASH_CAPACITY: usize = 1000;

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Directive {
    /// Continue with the next message; the state is kept.
    Resume,
    /// Create the actor again by its factory; the mailbox is kept.
    Restart,
    /// Stop the actor.
    Stop,
    /// Pass the failure on to the next strategy outward, then to the parent.
    Escalate,
}

impl fmt::Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resume => "resume",
            Self::Restart => "restart",
            Self::Stop => "stop",
            Self::Escalate => "escalate",
        })
    }
}

/// Which children a directive about one child affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The child that failed.
    #[default]
    OneForOne,
    /// A restart or a stop affects all children, a resume only the one that failed.
    AllForOne,
    /// A restart or a stop affects the child that failed and those started after it.
    RestForOne,
}

/// A decision with state of its own, for [`Strategy::custom`].
///
/// The hooks are called in addition to those of the actor; a panic in one is treated as a failure
/// of the actor.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{ActorPath, Failure, RestartStats};
/// use clockjack_actor::strategy::{Directive, Strategy, SupervisorStrategy};
///
/// /// Resumes each second time.
/// #[derive(Default)]
/// struct Alternating(bool);
///
/// impl SupervisorStrategy for Alternating {
///     fn decide(
///         &mut self,
///         failure: &Failure,
///         path: &ActorPath,
///         stats: &RestartStats,
///         now_nanos: u64,
///     ) -> Directive {
///         println!("{path} fails at {now_nanos} ns after {} restarts: {failure}", stats.restarts);
///         self.0 = !self.0;
///         if self.0 { Directive::Restart } else { Directive::Resume }
///     }
///
///     fn after_restart(&mut self, path: &ActorPath, stats: &RestartStats) {
///         println!("{path} is back, for the {}th time", stats.restarts);
///     }
/// }
///
/// let strategy = Strategy::custom(Alternating::default());
/// # let _ = strategy;
/// ```
pub trait SupervisorStrategy: Send + 'static {
    /// What to do about this failure of the actor at `path`. The statistics are those before the
    /// decision; the time is in nanoseconds since the start of the system, as in
    /// [`RestartStats::last_restart_nanos`].
    fn decide(
        &mut self,
        failure: &Failure,
        path: &ActorPath,
        stats: &RestartStats,
        now_nanos: u64,
    ) -> Directive;

    /// The actor at `path` is about to be created, for the first time or again.
    fn before_start(&mut self, path: &ActorPath) {
        let _ = path;
    }

    /// The actor at `path` was created again and has started successfully.
    fn after_restart(&mut self, path: &ActorPath, stats: &RestartStats) {
        let _ = (path, stats);
    }
}

/// What to do about the failures of an actor, or of its children.
///
/// # Examples
///
/// ```
/// use clockjack_actor::strategy::{Backoff, Directive, Strategy};
/// use core::{num::ParseIntError, time::Duration};
///
/// // Bad input is no reason to lose the state; anything else is, with a pause between.
/// let inner = Strategy::resume().only::<ParseIntError>();
/// let outer = Strategy::restart()
///     .limit(10, Duration::from_secs(60))
///     .backoff(Backoff::new(Duration::from_millis(100), Duration::from_secs(10)).jitter(0.2));
///
/// // A decision for each failure.
/// let by_code = Strategy::decide(|failure| match failure.code() {
///     Some(7) => Directive::Resume,
///     _ => Directive::Escalate,
/// });
/// # let _ = (inner, outer, by_code);
/// ```
#[must_use]
pub struct Strategy {
    decider: Decider,
    limit: Option<Limit>,
    backoff: Option<Backoff>,
    only: Option<Only>,
    children: Children,
    stash_capacity: usize,
}

impl Strategy {
    /// Restart at each failure: without a limit, and at once.
    pub fn restart() -> Self {
        Self::new(Decider::Always(Directive::Restart))
    }

    /// Continue with the next message; the message whose handler failed is lost.
    pub fn resume() -> Self {
        Self::new(Decider::Always(Directive::Resume))
    }

    /// Stop at the first failure.
    pub fn stop() -> Self {
        Self::new(Decider::Always(Directive::Stop))
    }

    /// Pass the failure on: to the next strategy outward, then to the parent.
    pub fn escalate() -> Self {
        Self::new(Decider::Always(Directive::Escalate))
    }

    /// Decide for each failure by a closure.
    pub fn decide(decide: impl FnMut(&Failure) -> Directive + Send + 'static) -> Self {
        Self::new(Decider::Asked(Box::new(ByClosure(decide))))
    }

    /// Decide for each failure, with hooks around a restart.
    pub fn custom(strategy: impl SupervisorStrategy) -> Self {
        Self::new(Decider::Asked(Box::new(strategy)))
    }

    /// At most this many restarts in any window of this length: a failure that comes less than
    /// `within` after the last `restarts` restarts goes outward. `Duration::MAX` is forever, and so
    /// is everything above 584 years.
    ///
    /// The window slides, as OTP's period does, and unlike that of Pekko, which begins at a failure
    /// and then again at the first one after its end. That holds for an actor's own strategy
    /// ([`supervise`](crate::Props::supervise)) as for one for children
    /// ([`supervise_children`](crate::Props::supervise_children)). The limit of the latter counts
    /// per supervisor, as OTP's intensity: the restarts of all children together. A restart of
    /// several children because of one failure counts once.
    pub fn limit(mut self, restarts: u32, within: Duration) -> Self {
        self.limit = Some(Limit { restarts, within });
        self
    }

    /// Waits before each restart, with increasing pauses.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Applies only to failures that were made from an `E`; others go outward.
    pub fn only<E: Error + 'static>(mut self) -> Self {
        self.only = Some(Only {
            tag: TypeId::of::<E>(),
            is: |failure| failure.downcast_ref::<E>().is_some(),
        });
        self
    }

    /// Children survive a restart. By default they are stopped, and the restart waits for them.
    pub fn keep_children(mut self) -> Self {
        self.children = Children::Keep;
        self
    }

    /// How many messages are kept while a restart, or several in a row, are pending;
    /// [`STASH_CAPACITY`] by default. Signals are all kept.
    pub fn stash(mut self, capacity: usize) -> Self {
        self.stash_capacity = capacity;
        self
    }

    /// The type of error that it applies to; none if it applies to all.
    #[must_use]
    pub fn type_tag(&self) -> Option<TypeId> {
        self.only.map(|only| only.tag)
    }

    /// Why the strategy cannot be carried out, if it cannot: a back-off whose `min` is zero or
    /// greater than its `max`, a jitter that is negative, infinite or not a number, or a limit
    /// above zero with an empty window. Spawning an actor calls this.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if let Some(Limit { restarts: 1.., within: Duration::ZERO }) = self.limit {
            return Err("a limit needs a window longer than zero");
        }
        self.backoff.as_ref().map_or(Ok(()), Backoff::check)
    }

    /// Whether this strategy makes `other`, an inner one, useless: both apply to the same failures.
    /// So strategies do not accumulate, no matter how often an actor's props are wrapped.
    pub(crate) fn replaces(&self, other: &Self) -> bool {
        self.type_tag() == other.type_tag()
    }

    /// Whether it may ever decide to restart. A strategy whose decision is user code may.
    pub(crate) fn may_restart(&self) -> bool {
        match &self.decider {
            Decider::Always(directive) => *directive == Directive::Restart,
            Decider::Asked(_) => true,
        }
    }

    fn new(decider: Decider) -> Self {
        Self {
            decider,
            limit: None,
            backoff: None,
            only: None,
            children: Children::Stop,
            stash_capacity: STASH_CAPACITY,
        }
    }
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directive = match &self.decider {
            Decider::Always(directive) => Some(*directive),
            Decider::Asked(_) => None,
        };
        f.debug_struct("Strategy")
            .field("always", &directive)
            .field("limit", &self.limit)
            .field("backoff", &self.backoff)
            .field("only", &self.type_tag())
            .field("children", &self.children)
            .field("stash_capacity", &self.stash_capacity)
            .finish()
    }
}

enum Decider {
    Always(Directive),
    Asked(Box<dyn SupervisorStrategy>),
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    restarts: u32,
    within: Duration,
}

#[derive(Clone, Copy)]
struct Only {
    tag: TypeId,
    is: fn(&Failure) -> bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Children {
    Stop,
    Keep,
}

struct ByClosure<F>(F);

impl<F: FnMut(&Failure) -> Directive + Send + 'static> SupervisorStrategy for ByClosure<F> {
    fn decide(
        &mut self,
        failure: &Failure,
        _path: &ActorPath,
        _stats: &RestartStats,
        _now_nanos: u64,
    ) -> Directive {
        (self.0)(failure)
    }
}

/// A duration in nanoseconds, saturating.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use core::{fmt::Error as FmtError, num::ParseIntError};

    use super::*;

    #[test]
    fn a_layer_is_replaced_by_one_for_the_same_failures_only() {
        let all = Strategy::restart();
        let numbers = Strategy::resume().only::<ParseIntError>();
        let texts = Strategy::resume().only::<FmtError>();
        assert!(Strategy::stop().replaces(&all));
        assert!(Strategy::stop().only::<ParseIntError>().replaces(&numbers));
        assert!(!texts.replaces(&numbers) && !all.replaces(&numbers) && !numbers.replaces(&all));
    }

    #[test]
    fn what_cannot_be_carried_out_is_refused() {
        let backoff = |min, max| Backoff::new(Duration::from_nanos(min), Duration::from_nanos(max));
        let bad = [
            Strategy::restart().backoff(backoff(0, 5)),
            Strategy::restart().backoff(backoff(6, 5)),
            Strategy::restart().backoff(backoff(1, 5).jitter(-0.1)),
            Strategy::restart().backoff(backoff(1, 5).jitter(f64::NAN)),
            Strategy::restart().backoff(backoff(1, 5).jitter(f64::INFINITY)),
            Strategy::restart().limit(1, Duration::ZERO),
        ];
        for strategy in bad {
            assert!(strategy.check().is_err(), "{strategy:?}");
        }
        let good = [
            Strategy::restart().backoff(backoff(5, 5).jitter(0.0)),
            Strategy::restart().backoff(backoff(1, u64::MAX).jitter(3.0)),
            Strategy::restart().limit(0, Duration::ZERO),
            Strategy::restart().limit(u32::MAX, Duration::MAX),
            Strategy::resume().stash(0).keep_children(),
        ];
        for strategy in good {
            assert_eq!(strategy.check(), Ok(()), "{strategy:?}");
        }
    }

    #[test]
    fn only_a_strategy_that_can_restart_says_so() {
        assert!(Strategy::restart().may_restart());
        assert!(Strategy::decide(|_| Directive::Stop).may_restart());
        for strategy in [Strategy::resume(), Strategy::stop(), Strategy::escalate()] {
            assert!(!strategy.may_restart(), "{strategy:?}");
        }
    }
}
