//! A strategy with its state: what it remembers about one actor, and how it decides.
//!
//! The owner of a [`StrategyState`] passes it a failure by [`StrategyState::decide_on`], carries
//! out the decision, and reports the end of a restart by [`StrategyState::restarted`], that is,
//! when the new actor's `started` has succeeded. A restart that fails is not reported; the owner
//! passes the new failure instead.
//!
//! ```text
//!            decision: Restart            restarted
//!   running ---------------> restarting -------------> running, restarted at ..
//!                             |      ^
//!                             +------+ its start failed
//! ```
//!
//! User code, that is, the decider and the hooks, runs before anything is counted. If it panics,
//! the state is unchanged.
//!
//! A parent that has one strategy for many children keeps one [`RestartHistory`] per child, and
//! the [`Strategy`] and its [`RestartWindow`] once, in a [`ChildStrategy`].

use alloc::collections::VecDeque;
use core::time::Duration;

use clockjack_exec::Failure;

use super::{Children, Decider, Directive, Limit, Scope, Strategy, nanos};
use crate::{ActorPath, failure_info::RestartStats};

/// When a failure happened, and a random number for the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailureContext {
    /// Since the start of the system.
    pub now_nanos: u64,
    /// Whether it happened in the factory or in `started`, and no start has succeeded before.
    pub is_startup: bool,
    /// Drawn by the caller from a stream that belongs to the actor's path.
    pub random: u64,
}

/// What to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Continue.
    Resume,
    /// Restart the actor, after this delay if there is one.
    Restart { delay: Option<Duration> },
    /// Stop the actor.
    Stop,
    /// Ask the next strategy outward, then the parent; where nobody is left, stop. Also the
    /// decision if a limit is exceeded.
    Escalate,
}

/// A strategy and what it remembers about the one actor that it belongs to.
#[derive(Debug)]
pub(crate) struct StrategyState {
    strategy: Strategy,
    window: RestartWindow,
    history: RestartHistory,
}

/// A strategy for children, and what it remembers about all of them.
#[derive(Debug)]
pub(crate) struct ChildStrategy {
    pub(crate) scope: Scope,
    pub(crate) strategy: Strategy,
    pub(crate) window: RestartWindow,
}

impl ChildStrategy {
    pub(crate) fn new((scope, strategy): (Scope, Strategy)) -> Self {
        Self { scope, strategy, window: RestartWindow::default() }
    }

    /// Allocates now what the limit needs later.
    pub(crate) fn reserve(&mut self) {
        self.window.reserve(self.strategy.limit);
    }

    /// Decides about a child, whose history this is. A failure that the strategy does not apply to
    /// is escalated.
    pub(crate) fn decide_on(
        &mut self,
        history: &mut RestartHistory,
        path: &ActorPath,
        failure: &Failure,
        at: FailureContext,
    ) -> Decision {
        if self.strategy.matches(failure) {
            self.strategy.decide_on((&mut self.window, history), path, failure, at)
        } else {
            Decision::Escalate
        }
    }
}

impl StrategyState {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self { strategy, window: RestartWindow::default(), history: RestartHistory::default() }
    }

    /// Allocates now what the limit needs later.
    pub(crate) fn reserve(&mut self) {
        self.window.reserve(self.strategy.limit);
    }

    /// Whether the strategy applies to this failure; if not, the next one outward decides.
    pub(crate) fn matches(&self, failure: &Failure) -> bool {
        self.strategy.matches(failure)
    }

    /// Decides about a failure that it [`matches`](Self::matches).
    pub(crate) fn decide_on(
        &mut self,
        path: &ActorPath,
        failure: &Failure,
        at: FailureContext,
    ) -> Decision {
        self.strategy.decide_on((&mut self.window, &mut self.history), path, failure, at)
    }

    /// The restart that was decided has succeeded.
    pub(crate) fn restarted(&mut self, now_nanos: u64) {
        self.history.restarted(now_nanos);
    }

    /// An outer strategy restarts the actor, so the state is about a previous incarnation.
    pub(crate) fn reset(&mut self) {
        self.window.clear();
        self.history = RestartHistory::default();
    }

    #[cfg(test)]
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
        self.history.stats(&self.window)
    }

    /// Calls the hook of a custom strategy.
    pub(crate) fn before_start(&mut self, path: &ActorPath) {
        self.strategy.before_start(path);
    }

    /// Calls the hook of a custom strategy.
    pub(crate) fn after_restart(&mut self, path: &ActorPath) {
        self.strategy.after_restart(path, &self.history.stats(&self.window));
    }
}

impl Strategy {
    pub(crate) fn matches(&self, failure: &Failure) -> bool {
        self.only.is_none_or(|only| (only.is)(failure))
    }

    /// Decides about a failure of the actor that the history belongs to.
    fn decide_on(
        &mut self,
        (window, history): (&mut RestartWindow, &mut RestartHistory),
        path: &ActorPath,
        failure: &Failure,
        at: FailureContext,
    ) -> Decision {
        let directive = match &mut self.decider {
            Decider::Always(directive) => *directive,
            Decider::Asked(decider) => {
                decider.decide(failure, path, &history.stats(window), at.now_nanos)
            }
        };
        match directive {
            Directive::Stop => Decision::Stop,
            Directive::Resume if !at.is_startup => Decision::Resume,
            // There is no state to continue with.
            Directive::Resume | Directive::Escalate => Decision::Escalate,
            Directive::Restart => self.grant_restart(window, history, at),
        }
    }

    pub(crate) fn keeps_children(&self) -> bool {
        self.children == Children::Keep
    }

    pub(crate) fn stash_capacity(&self) -> usize {
        self.stash_capacity
    }

    /// Whether it has hooks for starts.
    pub(crate) fn has_hooks(&self) -> bool {
        matches!(self.decider, Decider::Asked(_))
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

    fn grant_restart(
        &self,
        window: &mut RestartWindow,
        history: &mut RestartHistory,
        at: FailureContext,
    ) -> Decision {
        // A first start that fails would fail again at once, unless there is a pause in between.
        // The starts after a granted restart are not first starts.
        let is_first = at.is_startup && history.phase == Phase::Running;
        let is_hasty = is_first && self.backoff.is_none();
        let failures = window.count_failure(at.now_nanos, self.limit);
        let is_granted = match self.limit {
            None => !is_hasty,
            Some(limit) => {
                let last = if is_hasty { limit.restarts.saturating_sub(1) } else { limit.restarts };
                failures <= last
            }
        };
        if !is_granted {
            return Decision::Escalate;
        }
        window.grant(at.now_nanos, self.limit);
        let delay = self.backoff.as_ref().map(|backoff| {
            let count = history.next_pause(at.now_nanos, backoff.calm_nanos());
            backoff.delay(count, at.random)
        });
        history.restarts();
        Decision::Restart { delay }
    }
}

/// The restarts that count for a limit. The window slides: it ends now, as with OTP's intensity and
/// period.
#[derive(Debug, Default)]
pub(crate) struct RestartWindow {
    /// When restarts were granted, oldest first; only those of a window that ends, and at most as
    /// many as the limit grants. Restarts that have left the window are removed.
    granted_nanos: VecDeque<u64>,
    /// How many restarts were granted in a window that never ends.
    granted: u32,
    /// The restarts in the window at the last failure, and that failure.
    failures: u32,
}

/// For how many restarts of a limit a sealed system allocates memory in advance.
const RESERVED_MAX: usize = 64;

impl RestartWindow {
    /// How long a restart counts; none if forever.
    fn within(limit: Option<Limit>) -> Option<u64> {
        limit.map(|limit| nanos(limit.within)).filter(|within| *within != u64::MAX)
    }

    /// The number of restarts in the window that ends now, and this failure.
    fn count_failure(&mut self, now_nanos: u64, limit: Option<Limit>) -> u32 {
        let before = match Self::within(limit) {
            None => self.granted,
            Some(within) => {
                let has_left = |granted: &u64| now_nanos.saturating_sub(*granted) >= within;
                while self.granted_nanos.front().is_some_and(has_left) {
                    self.granted_nanos.pop_front();
                }
                u32::try_from(self.granted_nanos.len()).unwrap_or(u32::MAX)
            }
        };
        self.failures = before.saturating_add(1);
        self.failures
    }

    fn grant(&mut self, now_nanos: u64, limit: Option<Limit>) {
        if Self::within(limit).is_some() {
            self.granted_nanos.push_back(now_nanos);
        } else {
            self.granted = self.granted.saturating_add(1);
        }
    }

    /// Forgets all restarts, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.granted_nanos.clear();
        (self.granted, self.failures) = (0, 0);
    }

    fn reserve(&mut self, limit: Option<Limit>) {
        if let (Some(_), Some(limit)) = (Self::within(limit), limit) {
            self.granted_nanos.reserve_exact(RESERVED_MAX.min(limit.restarts as usize));
        }
    }
}

/// What is remembered about one actor's failures.
#[derive(Debug, Default)]
pub(crate) struct RestartHistory {
    /// Pauses since the last calm period.
    pauses: u32,
    restarts: u32,
    last_restart_nanos: Option<u64>,
    phase: Phase,
}

/// Whether a restart is in progress; only then the report of its end is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Running,
    Restarting,
}

impl RestartHistory {
    /// A restart was decided: because of this actor, or because of a sibling.
    pub(crate) fn restarts(&mut self) {
        self.phase = Phase::Restarting;
    }

    /// The restart that was decided has succeeded. Ignored if there was none, or if it was reported
    /// before.
    pub(crate) fn restarted(&mut self, now_nanos: u64) {
        if self.phase != Phase::Restarting {
            return;
        }
        self.phase = Phase::Running;
        self.restarts = self.restarts.saturating_add(1);
        self.last_restart_nanos = Some(now_nanos);
    }

    pub(crate) fn stats(&self, window: &RestartWindow) -> RestartStats {
        RestartStats {
            restarts: self.restarts,
            last_restart_nanos: self.last_restart_nanos,
            window_failures: window.failures,
        }
    }

    /// The number of pauses before this one since the last calm period.
    fn next_pause(&mut self, now_nanos: u64, calm_nanos: u64) -> u32 {
        // A failure of the restart's own start happens before its end, so there is no calm period.
        let is_running = self.phase == Phase::Running;
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

#[cfg(test)]
mod tests {
    use alloc::{string::String, sync::Arc, vec, vec::Vec};
    use core::{num::ParseIntError, panic::AssertUnwindSafe};
    use std::{panic::catch_unwind, sync::Mutex};

    use proptest::{
        prelude::{any, prop_assert_eq, proptest},
        strategy::Strategy as Generator,
    };

    use super::{super::Backoff, *};
    use crate::SupervisorStrategy;

    const AT_ONCE: Decision = Decision::Restart { delay: None };
    const SECOND: u64 = 1_000_000_000;

    fn at(now_nanos: u64) -> FailureContext {
        FailureContext { now_nanos, is_startup: false, random: 0 }
    }

    fn startup() -> FailureContext {
        FailureContext { is_startup: true, ..at(0) }
    }

    fn failure() -> Failure {
        Failure::msg("any")
    }

    fn path() -> ActorPath {
        ActorPath::root().child("any")
    }

    /// Rules at each of these times; a granted restart ends at once.
    fn decisions(strategy: Strategy, times: &[u64]) -> Vec<Decision> {
        let mut state = StrategyState::new(strategy);
        let decide = |now: &u64| {
            let decision = state.decide_on(&path(), &failure(), at(*now));
            state.restarted(*now);
            decision
        };
        times.iter().map(decide).collect()
    }

    /// How often an actor is started that fails in each start; `max` if that has no end.
    fn start_attempts(strategy: Strategy, max: usize) -> usize {
        let mut state = StrategyState::new(strategy);
        for attempt in 1..max {
            if !matches!(state.decide_on(&path(), &failure(), startup()), Decision::Restart { .. })
            {
                return attempt;
            }
        }
        max
    }

    #[test]
    fn each_directive_is_ruled_as_it_is() {
        let decide = |strategy| decisions(strategy, &[5])[0];
        assert_eq!(decide(Strategy::restart()), AT_ONCE);
        assert_eq!(decide(Strategy::resume()), Decision::Resume);
        assert_eq!(decide(Strategy::stop()), Decision::Stop);
        assert_eq!(decide(Strategy::escalate()), Decision::Escalate);
        assert_eq!(decide(Strategy::decide(|_| Directive::Stop)), Decision::Stop);
    }

    #[test]
    fn the_failure_after_the_last_restart_granted_exceeds_the_limit() {
        let strategy = || Strategy::restart().limit(2, Duration::from_nanos(100));
        let exceeded = Decision::Escalate;
        assert_eq!(decisions(strategy(), &[10, 20, 109]), [AT_ONCE, AT_ONCE, exceeded]);
        // A restart counts for less than the length of the window.
        let times = [10, 20, 110, 120, 130];
        assert_eq!(decisions(strategy(), &times), [AT_ONCE, AT_ONCE, AT_ONCE, AT_ONCE, exceeded]);
        // The window slides: 100, 110 and 120 are within the length of one.
        let times = [10, 100, 110, 120, 200];
        assert_eq!(decisions(strategy(), &times), [AT_ONCE, AT_ONCE, AT_ONCE, exceeded, AT_ONCE]);
        let none = Strategy::restart().limit(0, Duration::from_nanos(100));
        assert_eq!(decisions(none, &[0, 500]), [exceeded, exceeded]);
    }

    #[test]
    fn no_window_of_that_length_has_more_restarts_than_the_limit() {
        let ms = |n: u64| n * 1_000_000;
        let strategy = Strategy::restart().limit(3, Duration::from_secs(10));
        // Two at the end of what was one window, and three at the beginning of the next.
        let times = [0, 9_000, 9_500, 10_100, 10_300, 10_500].map(ms);
        let exceeded = Decision::Escalate;
        let expected = [AT_ONCE, AT_ONCE, AT_ONCE, AT_ONCE, exceeded, exceeded];
        assert_eq!(decisions(strategy, &times), expected);
    }

    #[test]
    fn a_limit_that_stays_exceeded_is_no_wider() {
        let strategy = Strategy::restart().limit(1, Duration::from_nanos(100));
        let expected = [AT_ONCE, Decision::Escalate, Decision::Escalate, AT_ONCE];
        assert_eq!(decisions(strategy, &[0, 1, 2, 100]), expected);
    }

    #[test]
    fn windows_of_a_month_and_of_for_ever_do_not_overflow() {
        let month = 30 * 24 * 3600 * SECOND;
        let strategy = Strategy::restart().limit(1, Duration::from_nanos(month));
        let late = u64::MAX - month;
        let expected = [AT_ONCE, Decision::Escalate, AT_ONCE, Decision::Escalate];
        assert_eq!(decisions(strategy, &[late, late + month - 1, u64::MAX, u64::MAX]), expected);
        for for_ever in [Duration::MAX, Duration::from_nanos(u64::MAX)] {
            let strategy = Strategy::restart().limit(1, for_ever);
            assert_eq!(decisions(strategy, &[0, u64::MAX]), [AT_ONCE, Decision::Escalate]);
        }
    }

    #[test]
    fn a_clock_that_goes_back_opens_no_window() {
        let strategy = Strategy::restart().limit(1, Duration::from_nanos(100));
        assert_eq!(decisions(strategy, &[1000, 10]), [AT_ONCE, Decision::Escalate]);
    }

    #[test]
    fn a_first_start_that_fails_is_tried_again_only_with_a_limit_or_a_pause() {
        let pause = || Backoff::new(Duration::from_nanos(1), Duration::from_nanos(9));
        let limited = |n| Strategy::restart().limit(n, Duration::MAX);
        assert_eq!(start_attempts(Strategy::restart(), 9), 1);
        assert_eq!(start_attempts(Strategy::resume(), 9), 1);
        assert_eq!(start_attempts(limited(0), 9), 1);
        assert_eq!(start_attempts(limited(1), 9), 1);
        assert_eq!(start_attempts(limited(2), 9), 3);
        assert_eq!(start_attempts(limited(3), 9), 4);
        assert_eq!(start_attempts(Strategy::restart().backoff(pause()), 9), 9);
        assert_eq!(start_attempts(limited(0).backoff(pause()), 9), 1);
        assert_eq!(start_attempts(limited(1).backoff(pause()), 9), 2);
        assert_eq!(start_attempts(limited(2).backoff(pause()), 9), 3);
    }

    #[test]
    fn a_resume_of_what_never_started_goes_outward() {
        let mut state = StrategyState::new(Strategy::resume());
        assert_eq!(state.decide_on(&path(), &failure(), startup()), Decision::Escalate);
        assert_eq!(state.decide_on(&path(), &failure(), at(0)), Decision::Resume);
        assert_eq!(
            StrategyState::new(Strategy::stop()).decide_on(&path(), &failure(), startup()),
            Decision::Stop
        );
    }

    #[test]
    fn a_layer_concerns_the_failures_of_its_type_only() {
        let state = StrategyState::new(Strategy::resume().only::<ParseIntError>());
        let number = Failure::from("x".parse::<u8>().unwrap_err());
        assert!(state.matches(&number) && !state.matches(&failure()));
        let all = StrategyState::new(Strategy::resume());
        assert!(all.matches(&number) && all.matches(&failure()));
    }

    #[test]
    fn the_pause_is_the_shortest_again_only_after_a_calm() {
        let backoff = Backoff::new(Duration::from_nanos(10), Duration::from_nanos(1000));
        let mut state = StrategyState::new(
            Strategy::restart().backoff(backoff.reset_after(Duration::from_nanos(50))),
        );
        let mut pause = |now, restarted: Option<u64>| {
            let decision = state.decide_on(&path(), &failure(), at(now));
            restarted.into_iter().for_each(|end| state.restarted(end));
            let Decision::Restart { delay: Some(delay) } = decision else { panic!("{decision:?}") };
            delay.as_nanos()
        };
        assert_eq!(pause(0, Some(10)), 10);
        // One less than the calm.
        assert_eq!(pause(59, Some(79)), 20);
        // The start of the restart fails, long after the last one that went well.
        assert_eq!(pause(100, None), 40);
        assert_eq!(pause(5000, Some(6000)), 80);
        assert_eq!(pause(6050, None), 10);
    }

    #[test]
    fn the_end_of_a_restart_counts_once_and_only_if_there_was_one() {
        let mut state = StrategyState::new(Strategy::restart());
        state.restarted(1);
        assert_eq!(state.stats(), RestartStats::default());
        state.decide_on(&path(), &failure(), at(2));
        state.restarted(3);
        state.restarted(4);
        let expected =
            RestartStats { restarts: 1, last_restart_nanos: Some(3), window_failures: 1 };
        assert_eq!(state.stats(), expected);
        state.reset();
        assert_eq!(state.stats(), RestartStats::default());
    }

    #[test]
    fn counters_stop_at_their_largest() {
        let backoff = Backoff::new(Duration::from_nanos(1), Duration::from_nanos(9));
        let strategy = Strategy::restart().limit(u32::MAX, Duration::MAX).backoff(backoff);
        let mut state = StrategyState::new(strategy);
        state.window.granted = u32::MAX - 1;
        state.history.pauses = u32::MAX;
        state.history.restarts = u32::MAX;
        let pause = Decision::Restart { delay: Some(Duration::from_nanos(9)) };
        assert_eq!(state.decide_on(&path(), &failure(), at(1)), pause);
        state.restarted(2);
        assert_eq!(state.stats().restarts, u32::MAX);
        assert_eq!(state.stats().window_failures, u32::MAX);
    }

    #[test]
    fn what_is_not_restarted_is_not_counted() {
        let mut next = [Directive::Resume, Directive::Escalate, Directive::Stop].into_iter();
        let strategy = Strategy::decide(move |_| next.next().unwrap_or(Directive::Restart));
        let decisions = decisions(strategy.limit(1, Duration::MAX), &[0; 5]);
        let expected =
            [Decision::Resume, Decision::Escalate, Decision::Stop, AT_ONCE, Decision::Escalate];
        assert_eq!(decisions, expected);
    }

    #[test]
    fn children_and_stash_are_as_the_strategy_says() {
        let plain = StrategyState::new(Strategy::restart());
        assert!(!plain.keeps_children());
        assert_eq!(plain.stash_capacity(), 1000);
        let other = StrategyState::new(Strategy::restart().keep_children().stash(3));
        assert!(other.keeps_children());
        assert_eq!(other.stash_capacity(), 3);
        assert!(other.strategy().may_restart());
    }

    /// Writes down what it is asked; panics over what says so.
    struct Diary(Arc<Mutex<Vec<String>>>);

    impl SupervisorStrategy for Diary {
        fn decide(
            &mut self,
            failure: &Failure,
            path: &ActorPath,
            stats: &RestartStats,
            now_nanos: u64,
        ) -> Directive {
            let text = alloc::format!("{path} {failure} {} at {now_nanos}", stats.restarts);
            self.0.lock().unwrap().push(text);
            if alloc::format!("{failure}") == "bad" {
                panic!("it said so")
            }
            Directive::Restart
        }

        fn before_start(&mut self, path: &ActorPath) {
            self.0.lock().unwrap().push(alloc::format!("start {path}"));
        }

        fn after_restart(&mut self, path: &ActorPath, stats: &RestartStats) {
            self.0.lock().unwrap().push(alloc::format!("{path} {}", stats.restarts));
        }
    }

    #[test]
    fn a_custom_strategy_is_told_of_starts_and_restarts() {
        let diary = Arc::new(Mutex::new(vec![]));
        let mut state = StrategyState::new(Strategy::custom(Diary(diary.clone())));
        let path = ActorPath::root().child("a");
        state.before_start(&path);
        state.decide_on(&path, &failure(), at(0));
        state.before_start(&path);
        state.restarted(1);
        state.after_restart(&path);
        state.decide_on(&path, &failure(), at(7));
        let expected = ["start /a", "/a any 0 at 0", "start /a", "/a 1", "/a any 1 at 7"];
        assert_eq!(*diary.lock().unwrap(), expected);
    }

    #[test]
    fn a_decision_that_panics_counts_nothing() {
        let strategy = Strategy::custom(Diary(Arc::default())).limit(1, Duration::MAX);
        let mut state = StrategyState::new(strategy);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            state.decide_on(&path(), &Failure::msg("bad"), at(0))
        }));
        assert!(caught.is_err());
        assert_eq!(state.stats(), RestartStats::default());
        assert_eq!(state.decide_on(&path(), &failure(), at(1)), AT_ONCE);
    }

    #[test]
    fn children_of_one_strategy_have_one_limit_and_each_its_pauses() {
        let nanos = Duration::from_nanos;
        let strategy = Strategy::restart().limit(2, Duration::MAX);
        let strategy = strategy.backoff(Backoff::new(nanos(1), nanos(9)));
        let mut children = ChildStrategy::new((Scope::OneForOne, strategy));
        let (mut one, mut other) = (RestartHistory::default(), RestartHistory::default());
        let mut decide = |history: &mut _| children.decide_on(history, &path(), &failure(), at(0));
        let shortest = Decision::Restart { delay: Some(nanos(1)) };
        assert_eq!([decide(&mut one), decide(&mut other)], [shortest; 2]);
        assert_eq!(decide(&mut one), Decision::Escalate);
        assert_eq!(one.stats(&children.window).window_failures, 3);
    }

    /// What happens between two failures.
    #[derive(Clone, Debug)]
    struct Step {
        /// From the last event to this failure.
        gap: u64,
        /// How long the restart takes; none if its start fails.
        restart: Option<u64>,
        random: u64,
    }

    #[derive(Clone, Debug)]
    struct Plan {
        limit: Option<(u32, u64)>,
        /// Shortest, longest, calm; jitter in thousandths.
        backoff: Option<(u64, u64, Option<u64>, u32)>,
        first_start_fails: bool,
        steps: Vec<Step>,
    }

    fn plans() -> impl Generator<Value = Plan> {
        let backoff = (1_u64..20, 0_u64..80, proptest::option::of(0_u64..60), 0_u32..2000)
            .prop_map(|(min, more, calm, jitter)| (min, min + more, calm, jitter));
        let step = (0_u64..60, proptest::option::weighted(0.8, 0_u64..20), any::<u64>())
            .prop_map(|(gap, restart, random)| Step { gap, restart, random });
        (
            proptest::option::of((0_u32..5, 1_u64..150)),
            proptest::option::of(backoff),
            any::<bool>(),
            proptest::collection::vec(step, 1..40),
        )
            .prop_map(|(limit, backoff, first_start_fails, steps)| Plan {
                limit,
                backoff,
                first_start_fails,
                steps,
            })
    }

    fn strategy_of(plan: &Plan) -> Strategy {
        let mut strategy = Strategy::restart();
        if let Some((n, within)) = plan.limit {
            strategy = strategy.limit(n, Duration::from_nanos(within));
        }
        if let Some((min, max, calm, jitter)) = plan.backoff {
            let mut backoff = Backoff::new(Duration::from_nanos(min), Duration::from_nanos(max))
                .jitter(f64::from(jitter) / 1000.0);
            if let Some(calm) = calm {
                backoff = backoff.reset_after(Duration::from_nanos(calm));
            }
            strategy = strategy.backoff(backoff);
        }
        strategy
    }

    /// The laws with timers that fire and lists that grow.
    #[derive(Default)]
    struct Naive {
        /// All restarts so far.
        granted: Vec<u64>,
        count: u32,
        /// When to reset the count, if it is still this.
        resets: Vec<(u64, u32)>,
    }

    impl Naive {
        /// How many restarts were granted less than this long ago.
        fn in_window(&self, now: u64, within: u64) -> usize {
            self.granted.iter().filter(|granted| now - **granted < within).count()
        }

        fn decide(&mut self, plan: &Plan, now: u64, is_startup: bool, random: u64) -> Decision {
            for (due, count) in core::mem::take(&mut self.resets) {
                if due > now {
                    self.resets.push((due, count));
                } else if count == self.count {
                    self.count = 0;
                }
            }
            let is_hasty = is_startup && plan.backoff.is_none();
            let is_exceeded = match plan.limit {
                None => is_hasty,
                Some((0, _)) => true,
                Some((n, _)) if is_hasty => n == 1,
                Some((n, within)) => self.in_window(now, within) >= n as usize,
            };
            if is_exceeded {
                return Decision::Escalate;
            }
            self.granted.push(now);
            let delay = plan.backoff.map(|(min, max, _, jitter)| {
                let base = (0..self.count).fold(min, |pause, _| (pause * 2).min(max)).min(max);
                self.count += 1;
                let widest = base * u64::from(jitter) / 1000;
                let chance = random / (1 << 32);
                Duration::from_nanos(base + widest * chance / (1 << 32))
            });
            Decision::Restart { delay }
        }

        fn restarted(&mut self, plan: &Plan, now: u64) {
            if let Some((min, max, calm, _)) = plan.backoff {
                self.resets.push((now + calm.unwrap_or((min + max) / 2), self.count));
            }
        }
    }

    proptest! {
        #[test]
        fn rulings_are_those_of_timers_and_lists(plan in plans()) {
            let mut state = StrategyState::new(strategy_of(&plan));
            let mut naive = Naive::default();
            let mut now = 0;
            for (n, step) in plan.steps.iter().enumerate() {
                now += step.gap;
                let is_startup = n == 0 && plan.first_start_fails;
                let context = FailureContext { now_nanos: now, is_startup, random: step.random };
                let decision = state.decide_on(&path(), &failure(), context);
                let expected = naive.decide(&plan, now, is_startup, step.random);
                prop_assert_eq!(decision, expected, "failure {} at {}", n, now);
                if let (Decision::Restart { delay }, Some(restart)) = (decision, step.restart) {
                    now += restart + delay.map_or(0, nanos);
                    state.restarted(now);
                    naive.restarted(&plan, now);
                }
            }
        }
    }
}
