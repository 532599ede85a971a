//! Any channel, any sequence of calls: the same as a naive model, and every message in one counter.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    Channel, Pushed, Refusal,
    tests::{message, number},
};
use crate::describe::{EdgeMode, EdgeOverflow, EdgePolicy};

const MS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    Pop,
    Newest,
    Advance,
    Drain(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Push),
        3 => Just(Step::Pop),
        1 => Just(Step::Newest),
        2 => Just(Step::Advance),
        1 => (0_usize..4).prop_map(Step::Drain),
        2 => (0_u64..4).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..60)
}

fn policies() -> impl Strategy<Value = EdgePolicy> {
    let modes = prop::sample::select(EdgeMode::ALL);
    let overflows = prop::sample::select(EdgeOverflow::ALL);
    (modes, overflows, 1_u32..4, 0_u64..5, 0_u64..5).prop_map(
        |(mode, overflow, capacity, lifespan_ms, deadline_ms)| EdgePolicy {
            mode,
            overflow,
            capacity,
            lifespan_ms,
            deadline_ms,
            ..EdgePolicy::default()
        },
    )
}

/// Where a message that was offered is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Not to be seen before the next epoch.
    Later,
    /// In a barrier that has not opened.
    Closed,
    /// Target be popped.
    Ready,
    /// In a slot, looked at, still to be popped.
    LastSeen,
    Delivered,
    Dropped,
    Overwritten,
    Stale,
    Rejected,
}

/// Remembers the fate of every message there ever was, by number.
struct Model {
    policy: EdgePolicy,
    fates: Vec<(u64, Fate)>,
    /// The message in a slot that was popped.
    kept: Option<usize>,
}

impl Model {
    fn is_slot(&self) -> bool {
        matches!(self.policy.mode, EdgeMode::Latest | EdgeMode::Latched | EdgeMode::PreviousTick)
    }

    fn all(&self, wanted: &[Fate]) -> Vec<usize> {
        let is_wanted = |n: &usize| wanted.contains(&self.fates[*n].1);
        (0..self.fates.len()).filter(is_wanted).collect()
    }

    fn set(&mut self, which: &[usize], fate: Fate) {
        for n in which {
            self.fates[*n].1 = fate;
        }
    }

    fn evicted(&self) -> Fate {
        if self.policy.overflow == EdgeOverflow::DropOldest {
            Fate::Dropped
        } else {
            Fate::Overwritten
        }
    }

    fn push(&mut self, now_ns: u64) -> Fate {
        let mode = self.policy.mode;
        let unread = match mode {
            EdgeMode::PreviousTick => self.all(&[Fate::Later]),
            _ => self.all(&[Fate::Ready, Fate::Closed]),
        };
        let capacity = if self.is_slot() { 1 } else { self.policy.capacity as usize };
        if unread.len() == capacity {
            match self.policy.overflow {
                EdgeOverflow::Overwrite | EdgeOverflow::DropOldest => {
                    self.set(&unread[..1], self.evicted());
                }
                EdgeOverflow::DropNewest => {
                    self.fates.push((now_ns, Fate::Dropped));
                    return Fate::Dropped;
                }
                _ => {
                    self.fates.push((now_ns, Fate::Rejected));
                    return Fate::Rejected;
                }
            }
        }
        if matches!(mode, EdgeMode::Latest | EdgeMode::Latched) {
            self.replace_slot();
        }
        let fate = match mode {
            EdgeMode::PreviousTick => Fate::Later,
            EdgeMode::Barrier => Fate::Closed,
            _ => Fate::Ready,
        };
        self.fates.push((now_ns, fate));
        let inside = self.all(&[Fate::Ready, Fate::Closed]);
        if mode == EdgeMode::Barrier && inside.len() == capacity {
            self.set(&inside, Fate::Ready);
        }
        fate
    }

    fn replace_slot(&mut self) {
        self.kept = None;
        let seen = self.all(&[Fate::LastSeen]);
        self.set(&seen, Fate::Delivered);
    }

    fn advance(&mut self) {
        if let [later] = self.all(&[Fate::Later])[..] {
            let unread = self.all(&[Fate::Ready]);
            self.set(&unread, self.evicted());
            self.replace_slot();
            self.fates[later].1 = Fate::Ready;
        }
    }

    fn is_stale(&self, n: usize, now_ns: u64) -> bool {
        let lifespan_ns = self.policy.lifespan_ms * MS;
        lifespan_ns > 0 && now_ns - self.fates[n].0 > lifespan_ns
    }

    fn pop(&mut self, now_ns: u64) -> Option<usize> {
        for n in self.all(&[Fate::Ready, Fate::LastSeen]) {
            let is_seen = self.fates[n].1 == Fate::LastSeen;
            let is_stale = self.is_stale(n, now_ns);
            self.fates[n].1 = if is_stale && !is_seen { Fate::Stale } else { Fate::Delivered };
            if !is_stale {
                self.kept = self.is_slot().then_some(n);
                return Some(n);
            }
        }
        None
    }

    fn newest(&mut self, now_ns: u64) -> Option<usize> {
        let visible = self.all(&[Fate::Ready, Fate::LastSeen]);
        let n = visible.last().copied().or(self.kept)?;
        let is_stale = self.is_stale(n, now_ns);
        if self.is_slot() {
            self.fates[n].1 = match (self.fates[n].1, is_stale) {
                (Fate::Ready, true) => Fate::Stale,
                (Fate::Ready, false) | (Fate::LastSeen, false) => Fate::LastSeen,
                _ => Fate::Delivered,
            };
            if is_stale {
                self.kept = None;
            }
        }
        (!is_stale).then_some(n)
    }
}

fn check(policy: EdgePolicy, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut channel = Channel::new(0, &policy);
    let mut model = Model { policy, fates: Vec::new(), kept: None };
    let mut now_ns = 0;
    for step in steps {
        match *step {
            Step::Push => {
                let n = model.fates.len() as u64;
                let has_room = channel.room() > 0;
                let pushed = channel.push(now_ns, message(n, now_ns));
                prop_assert_eq!(has_room, !matches!(pushed, Pushed::Refused(..)));
                let is_dropped = matches!(pushed, Pushed::Refused(_, Refusal::DroppedNewest));
                let fate = model.push(now_ns);
                prop_assert_eq!(is_dropped, fate == Fate::Dropped);
                let is_refused = matches!(pushed, Pushed::Refused(..)) && !is_dropped;
                prop_assert_eq!(is_refused, fate == Fate::Rejected);
            }
            Step::Pop => {
                let popped = channel.pop(now_ns).map(|message| number(&message));
                prop_assert_eq!(popped, model.pop(now_ns).map(|n| n as u64));
            }
            Step::Newest => {
                let newest = channel.newest(now_ns).map(number);
                prop_assert_eq!(newest, model.newest(now_ns).map(|n| n as u64));
            }
            Step::Advance => {
                channel.advance(now_ns);
                model.advance();
            }
            Step::Drain(max) => {
                let mut drained = Vec::new();
                channel.drain(now_ns, max, |message| drained.push(number(&message)));
                let expected = (0..max).map_while(|_| model.pop(now_ns).map(|n| n as u64));
                prop_assert_eq!(drained, expected.collect::<Vec<_>>());
            }
            Step::Wait(ms) => now_ns += ms * MS,
        }
        let is_ready = !model.all(&[Fate::Ready, Fate::LastSeen]).is_empty();
        prop_assert_eq!(channel.has_update(), is_ready);
        conserve(&channel, &model)?;
    }
    Ok(())
}

/// Each message is in one counter, and it is the right one.
fn conserve(channel: &Channel, model: &Model) -> Result<(), TestCaseError> {
    let counters = channel.counters();
    let lost = counters.drop_count + counters.overwrite_count + counters.stale_drop_count;
    let inside = u64::from(channel.depth());
    prop_assert_eq!(counters.publish_count, counters.delivery_count + lost + inside);
    let offered = counters.publish_count + counters.reject_count;
    prop_assert_eq!(offered, model.fates.len() as u64);
    let mut fates = BTreeMap::new();
    for (_, fate) in &model.fates {
        *fates.entry(format!("{fate:?}")).or_insert(0) += 1;
    }
    let count = |fate: &str| fates.get(fate).copied().unwrap_or(0);
    prop_assert_eq!(counters.delivery_count, count("Delivered") + count("LastSeen"));
    prop_assert_eq!(counters.drop_count, count("Dropped"));
    prop_assert_eq!(counters.overwrite_count, count("Overwritten"));
    prop_assert_eq!(counters.stale_drop_count, count("Stale"));
    prop_assert_eq!(counters.reject_count, count("Rejected"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_channel_does_as_the_model_and_counts_each_message_once(
        policy in policies(),
        steps in steps(),
    ) {
        check(policy, &steps)?;
    }
}
