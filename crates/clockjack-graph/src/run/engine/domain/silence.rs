//! A watchdog for inputs at which nothing arrives: edges with `max_silence_ms`.
//!
//! The watchdog observes and never controls: a silent input causes no epoch. It compares the number
//! of messages of a channel after each epoch with that after the epoch before, so channels do no
//! work for it. With the clock of the system, a sleeping coordinator also wakes up when an input
//! becomes silent. In simulated time, an input is silent if time advances beyond its limit.

use std::sync::Arc;

use super::{Domain, EXCLUSIVE, Pace};
use crate::run::{
    observe::{
        health::{Health, HealthKey, HealthKind},
        report::RunStopReason,
    },
    setup::wiring::count,
};

/// An input that must not be silent for long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedInput {
    pub(crate) edge: u32,
    max_ns: u64,
    emits_health_events: bool,
    /// The messages that its channel has got by the end of the last epoch.
    n_published: u64,
    /// When the last one came, or the run began.
    last_ns: u64,
    is_silent: bool,
    /// How often it was silent.
    pub(crate) n_silences: u64,
    /// The longest time without a message.
    pub(crate) longest_ns: u64,
}

impl WatchedInput {
    pub(crate) fn new(edge: u32, max_ms: u64, emits_health_events: bool) -> Self {
        Self {
            edge,
            max_ns: max_ms.saturating_mul(1_000_000),
            emits_health_events,
            n_published: 0,
            last_ns: 0,
            is_silent: false,
            n_silences: 0,
            longest_ns: 0,
        }
    }

    /// The last time at which it is not silent.
    fn limit_ns(&self) -> u64 {
        self.last_ns.saturating_add(self.max_ns)
    }
}

impl Domain {
    /// When the next input is silent for too long, if nothing comes.
    pub(super) fn next_silence(&self) -> Option<u64> {
        let audible = self.progress.silence.iter().filter(|input| !input.is_silent);
        audible.map(|input| input.limit_ns().saturating_add(1)).min()
    }

    /// Reports the inputs that are silent for too long at this time.
    pub(super) fn watch_silence(&mut self, now_ns: u64) {
        if self.progress.silence.is_empty() {
            return;
        }
        let (plan, health) = (&self.shared.plan, &mut self.progress.health);
        health.watch(self.state.env.traces);
        for input in &mut self.progress.silence {
            input.longest_ns = input.longest_ns.max(now_ns.saturating_sub(input.last_ns));
            if input.is_silent || now_ns <= input.limit_ns() {
                continue;
            }
            input.is_silent = true;
            input.n_silences += 1;
            if !input.emits_health_events {
                continue;
            }
            let (component, _) = plan.edges[input.edge as usize].to;
            let (lane, policy) = (plan.components[component].lane, "");
            let key =
                HealthKey::new(HealthKind::InputSilent, count(component), count(lane), policy);
            health.record(Health {
                key: HealthKey { edge: input.edge, ..key },
                occurrence_count: 1,
                sequence: input.n_published,
                depth: 0,
                capacity: 0,
                observed_ns: input.limit_ns(),
            });
        }
    }

    /// The epoch of this time has ended: notes which inputs have got something.
    pub(super) fn note_arrivals(&mut self, now_ns: u64) {
        if self.progress.silence.is_empty() {
            return;
        }
        let state = Arc::get_mut(&mut self.state).expect(EXCLUSIVE);
        for input in &mut self.progress.silence {
            let place = self.channel_locations[input.edge as usize];
            let region = state.regions[place.region as usize].get_mut();
            let counts = region.channels[place.channel as usize].counters();
            let n_published = counts.publish_count + counts.reject_count;
            if n_published > input.n_published {
                (input.n_published, input.last_ns, input.is_silent) = (n_published, now_ns, false);
            }
        }
    }

    /// Reports the inputs that are silent when the domain ends.
    pub(super) fn watch_silence_at_end(&mut self, reason: RunStopReason) {
        let env = &self.state.env;
        let now_ns = match (self.pace, self.bounds.duration_ns) {
            (Pace::System, _) => env.since_start(),
            (Pace::Simulated, Some(end_ns)) if reason == RunStopReason::DurationBound => end_ns,
            (Pace::Simulated, _) => env.now_ns,
        };
        self.watch_silence(now_ns);
    }
}
