//! A strategy at work: what it remembers of one actor, and how it rules.
//!
//! Who holds a layer asks [`Layer::rule`] about a failure, carries out the ruling, and reports the
//! end of a restart by [`Layer::restarted`], that is, when the new actor's `started` went well. A
//! restart that was begun and failed again is not reported; the new failure is ruled about.
//!
//! ```text
//!            rule: Restart                restarted
//!   running ---------------> restarting -------------> running, restarted at ..
//!                             |      ^
//!                             +------+ rule: its start failed
//! ```
//!
//! User code, that is, the decision and the hooks, runs before anything is counted. If it panics,
//! nothing has happened here.
//!
//! A parent that has one strategy for many children keeps one [`Ledger`] for each child and the
//! [`Strategy`] once.

use core::time::Duration;

use clockjack_exec::Failure;
use clockjack_sync::mutant;

use super::{Children, Decider, Directive, Strategy, nanos};
use crate::{ActorPath, failure_info::RestartStats};

/// When a failure happened, and chance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Since the start of the system.
    pub now_nanos: u64,
    /// Whether it came out of the factory or `started` of the first start.
    pub is_startup: bool,
    /// Drawn by the caller from a stream that belongs to the actor's path.
    pub random: u64,
}

/// What is to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// Go on.
    Resume,
    /// Make the actor anew, after this time if there is one.
    Restart { delay: Option<Duration> },
    /// Stop the actor.
    Stop,
    /// Ask the next layer outward, then the parent; where nobody is left, stop. Also the ruling if
    /// a limit is exceeded.
    Escalate,
}

/// A strategy and what it remembers of the one actor that it is wrapped around.
#[derive(Debug)]
pub(crate) struct Layer {
    strategy: Strategy,
    ledger: Ledger,
}

impl Layer {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self { strategy, ledger: Ledger::default() }
    }

    /// Whether this failure concerns the layer; if not, it goes to the next one outward.
    pub(crate) fn matches(&self, failure: &Failure) -> bool {
        self.strategy.matches(failure)
    }

    /// Decides about a failure that it [`matches`](Self::matches).
    pub(crate) fn rule(&mut self, failure: &Failure, at: Moment) -> Ruling {
        self.strategy.rule(&mut self.ledger, failure, at)
    }

    /// The restart that was ruled has come to a good end.
    pub(crate) fn restarted(&mut self, now_nanos: u64) {
        self.ledger.restarted(now_nanos);
    }

    /// A layer further out restarts the actor, so what this one remembers is of an actor that is no
    /// more.
    pub(crate) fn reset(&mut self) {
        self.ledger = Ledger::default();
    }

    pub(crate) fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    pub(crate) fn keeps_children(&self) -> bool {
        self.strategy.keeps_children()
    }

    pub(crate) fn stash_capacity(&self) -> usize {
        self.strategy.stash_capacity
    }

    pub(crate) fn stats(&self) -> RestartStats {
        self.ledger.stats()
    }

    /// Calls the hook of a custom strategy.
    pub(crate) fn before_start(&mut self, path: &ActorPath) {
        self.strategy.before_start(path);
    }

    /// Calls the hook of a custom strategy.
    pub(crate) fn after_restart(&mut self, path: &ActorPath) {
        self.strategy.after_restart(path, &self.ledger.stats());
    }
}

impl Strategy {
    pub(crate) fn matches(&self, failure: &Failure) -> bool {
        self.only.is_none_or(|only| (only.is)(failure))
    }

    /// Decides about a failure of the actor that the ledger is about.
    pub(crate) fn rule(&mut self, ledger: &mut Ledger, failure: &Failure, at: Moment) -> Ruling {
        let directive = match &mut self.decider {
            Decider::Always(directive) => *directive,
            Decider::Asked(decider) => decider.decide(failure),
        };
        match directive {
            Directive::Stop => Ruling::Stop,
            Directive::Resume if !at.is_startup => Ruling::Resume,
            // There is no state to go on with.
            Directive::Resume | Directive::Escalate => Ruling::Escalate,
            Directive::Restart => self.grant_restart(ledger, at),
        }
    }

    pub(crate) fn keeps_children(&self) -> bool {
        self.children == Children::Keep
    }

    pub(crate) fn before_start(&mut self, path: &ActorPath) {
        if let Decider::Asked(decider) = &mut self.decider {
            decider.before_start(path);
        }
    }

    pub(crate) fn after_restart(&mut self, path: &ActorPath, stats: &RestartStats) {
        if let Decider::Asked(decider) = &mut self.decider {
            decider.after_restart(path, stats);
        }
    }

    fn grant_restart(&self, ledger: &mut Ledger, at: Moment) -> Ruling {
        // A first start that fails would fail again at once, unless there is a pause between.
        let is_hasty = at.is_startup && self.backoff.is_none();
        let is_granted = match self.limit {
            None => {
                ledger.count_failure(at.now_nanos, u64::MAX);
                !is_hasty
            }
            Some(limit) => {
                let failures = ledger.count_failure(at.now_nanos, nanos(limit.within));
                let last = if is_hasty && !mutant!("strategy-startup-as-any") {
                    limit.restarts.saturating_sub(1)
                } else {
                    limit.restarts
                };
                failures <= last
            }
        };
        if !is_granted {
            return Ruling::Escalate;
        }
        let delay = self.backoff.as_ref().map(|backoff| {
            let count = ledger.next_pause(at.now_nanos, backoff.calm_nanos());
            backoff.delay(count, at.random)
        });
        ledger.phase = Phase::Restarting;
        Ruling::Restart { delay }
    }
}

/// What is remembered of one actor's failures.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// When the window opened; none before the first failure.
    window_opened_nanos: Option<u64>,
    window_failures: u32,
    /// Pauses since the last calm.
    pauses: u32,
    restarts: u32,
    last_restart_nanos: Option<u64>,
    phase: Phase,
}

/// Whether a restart is under way, which alone makes a report of its end believable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Running,
    Restarting,
}

impl Ledger {
    /// The restart that was ruled has come to a good end. Ignored if none was, or if that end was
    /// reported before.
    pub(crate) fn restarted(&mut self, now_nanos: u64) {
        if self.phase != Phase::Restarting {
            return;
        }
        self.phase = Phase::Running;
        self.restarts = self.restarts.saturating_add(1);
        self.last_restart_nanos = Some(now_nanos);
    }

    pub(crate) fn stats(&self) -> RestartStats {
        RestartStats {
            restarts: self.restarts,
            last_restart_nanos: self.last_restart_nanos,
            window_failures: self.window_failures,
        }
    }

    /// How many failures the window has with this one. A window of `u64::MAX` never ends.
    fn count_failure(&mut self, now_nanos: u64, within_nanos: u64) -> u32 {
        let is_inside = self.window_opened_nanos.is_some_and(|opened| {
            within_nanos == u64::MAX || now_nanos.saturating_sub(opened) < within_nanos
        });
        if is_inside {
            self.window_failures = self.window_failures.saturating_add(1);
        } else {
            self.window_opened_nanos = Some(now_nanos);
            self.window_failures = 1;
        }
        if mutant!("strategy-window-slides") {
            self.window_opened_nanos = Some(now_nanos);
        }
        self.window_failures
    }

    /// How many pauses came before this one since the last calm.
    fn next_pause(&mut self, now_nanos: u64, calm_nanos: u64) -> u32 {
        // A failure of the restart's own start comes before its end, so it is never calm.
        let is_running = self.phase == Phase::Running || mutant!("strategy-calm-while-restarting");
        let was_calm = is_running
            && self
                .last_restart_nanos
                .is_some_and(|restart| now_nanos.saturating_sub(restart) >= calm_nanos);
        if was_calm {
            self.pauses = 0;
        }
        let before = self.pauses;
        self.pauses = before.saturating_add(1);
        before
    }
}
