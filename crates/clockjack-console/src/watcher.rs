//! [`Watcher`]: what lies between two inspections.

use core::time::Duration;

use clockjack_exec::Pid;

use crate::{
    Target, findings,
    state::{Counters, Place, State, StuckPlaces, Subscription},
};

/// Looks at a target again and again, for as long as it lives: rates, samples of what the workers
/// run, the walk over all actors, events, findings.
///
/// It has no thread and no clock. Its owner calls [`sample`](Self::sample),
/// [`sweep`](Self::sweep) and [`advance`](Self::advance), and says what time it is, by the clock of
/// the system ([`Target::now_ns`]): so tests use virtual time. Several watchers of a target share
/// what they know; with the last of them everything is forgotten, and the target costs nothing any
/// more.
#[derive(Debug)]
pub struct Watcher {
    target: Target,
}

impl Watcher {
    /// How often [`sample`](Self::sample) is to be called: 997 times per second, which no usual
    /// period of a program divides.
    pub const SAMPLE_PERIOD: Duration = Duration::from_nanos(1_003_009);

    /// Slots of actors that one call of [`sweep`](Self::sweep) reads at most.
    pub const SLICE: usize = 1024;

    /// Begins to look at a target: subscribes to its events.
    #[must_use]
    pub fn new(target: &Target) -> Self {
        let mut state = target.state();
        state.n_watchers += 1;
        let is_first = state.n_watchers == 1;
        drop(state);
        if is_first {
            // Without the lock, because this starts actors.
            let subscription = Subscription::new(target.system(), target.shared_log());
            target.state().subscription = Some(subscription);
        }
        Self { target: target.clone() }
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Reads what each worker runs now.
    pub fn sample(&self, now_ns: u64) {
        let executors = self.target.executors();
        let period = u64::try_from(Self::SAMPLE_PERIOD.as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.target.state();
        state.samples.count_lost(now_ns, period);
        state.samples.take(&executors, now_ns);
    }

    /// Reads the counters and computes the rates since the last call, and what is wrong. To be
    /// called once per frame, and at least once per second; a call within a tenth of a second after
    /// the last one only looks what each worker runs.
    pub fn advance(&self, now_ns: u64) {
        /// The shortest time over which a rate says something.
        const RATE_MIN_NS: u64 = 100_000_000;
        let executors = self.target.executors();
        let mut state = self.target.state();
        state.samples.take(&executors, now_ns);
        let last_ns = state.rates.last.as_ref().map(|last| last.at_ns);
        if last_ns.is_some_and(|last| now_ns.saturating_sub(last) < RATE_MIN_NS) {
            return;
        }
        let is_next = state.rates.push(Counters::read(&self.target, &executors, now_ns));
        let seconds = state.rates.seconds();
        self.target.log().advance(seconds, is_next);
        state.graphs.advance(&self.target, now_ns);
        state.follow.advance(&self.target, now_ns);
        findings::find(&self.target, &mut state, &executors, now_ns);
    }

    /// Continues the walk over all actors by one slice; returns whether that was the last of this
    /// walk, or the next walk is not due yet. The owner rests after each slice for
    /// [`rest`](Self::rest).
    pub fn sweep(&self, now_ns: u64) -> bool {
        let mut guard = self.target.state();
        let State { sweeper, samples, memory, .. } = &mut *guard;
        let stuck: &StuckPlaces = &memory.stuck;
        let is_stuck = |pid: Pid| stuck.contains(&pid);
        let n = u32::try_from(Self::SLICE).unwrap_or(u32::MAX);
        sweeper.slice(&self.target, samples, &is_stuck, (now_ns, n))
    }

    /// How long to wait after a slice that took so long, so that the walk takes 1 % of a core.
    #[must_use]
    pub fn rest(took: Duration) -> Duration {
        took.saturating_mul(99)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut state = self.target.state();
        state.n_watchers = state.n_watchers.saturating_sub(1);
        if state.n_watchers > 0 {
            return;
        }
        let subscription = state.subscription.take();
        state.clear();
        drop(state);
        // Without the lock, because this sends messages.
        drop(subscription);
        self.target.log().clear();
    }
}

/// The pid of the actor at a place, and what `inspect` says of it.
pub(crate) fn at_place<R>(
    target: &Target,
    executors: &[(String, clockjack_exec::Handle)],
    place: Place,
    inspect: impl FnOnce(&clockjack_actor::inspect::ActorView<'_>) -> R,
) -> Option<R> {
    let (_, handle) = executors.get(place.0)?;
    let (mut inspect, mut result) = (Some(inspect), None);
    target.system().inspect_slots(handle, place.1, 1, |actor| {
        result = inspect.take().map(|inspect| inspect(&actor));
    });
    result
}
