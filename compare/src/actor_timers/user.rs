//! The behaviour of the actors, written once for every crate: an actor arms and cancels timers as
//! the driver commands, and counts the timers that fire.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::load::{Command, Horizon, Load};
use super::subject::{Mail, Timers};
use crate::actors::actor_counts::{ActorCounts, Member};
use crate::receiver::Receiver;

/// The distance between the start positions of two neighbours in the sequence of delays; a prime,
/// so that they do not overlap soon.
const N_PLACES_APART: usize = 61;

/// What the actors of one pass share.
#[derive(Debug)]
pub(crate) struct PassShared {
    pub(crate) load: Arc<Load>,
    pub(crate) receiver: &'static Receiver,
    /// Whether the actors read the clock to detect timers that fire early. Reading the clock costs
    /// as much as some timers, so timed passes do not do it.
    pub(crate) detects_early: bool,
    pub(crate) n_early: AtomicU32,
}

/// The state of an actor.
#[derive(Debug)]
pub(crate) struct TimerUser {
    member: Member,
    pass: Arc<PassShared>,
    n_keys: u32,
    /// How many timers are still to be armed after others have fired.
    n_chained: u32,
    /// The actor's position in the sequence of delays.
    place: usize,
    /// The earliest instant at which the timer of each key may fire; empty if early timers are not
    /// detected.
    not_before: Vec<Instant>,
}

/// Whether an actor continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Stay,
    Stop,
}

impl TimerUser {
    /// The actor with this index in the load.
    pub(crate) fn new(pass: &Arc<PassShared>, counts: &Arc<ActorCounts>, index: u32) -> Self {
        let share = pass.load.share(index);
        let n_detected = if pass.detects_early { share.n_keys as usize } else { 0 };
        Self {
            member: Member::of(counts),
            pass: Arc::clone(pass),
            n_keys: share.n_keys,
            n_chained: share.n_chained,
            place: index as usize * N_PLACES_APART,
            not_before: vec![Instant::now(); n_detected],
        }
    }

    /// Called by the host when the crate has started the actor.
    pub(crate) fn started(&self) {
        self.member.started();
    }

    /// Handles a message.
    pub(crate) fn receive(&mut self, mail: Mail, timers: &mut impl Timers) -> After {
        match mail {
            Mail::Command(Command::Arm(keys, horizon)) => {
                for key in keys.of(self.n_keys) {
                    self.arm(key, horizon, timers);
                }
                self.member.finish(0);
            }
            Mail::Command(Command::Cancel(keys)) => {
                for key in keys.of(self.n_keys) {
                    timers.cancel(key);
                }
                self.member.finish(0);
            }
            Mail::Fired(key, mut shot) => {
                timers.fired(key);
                if self.not_before.get(key as usize).is_some_and(|due| Instant::now() < *due) {
                    // Relaxed: the driver reads the count after the last timer.
                    self.pass.n_early.fetch_add(1, Ordering::Relaxed);
                }
                shot.fire();
                if self.n_chained > 0 {
                    self.n_chained -= 1;
                    self.arm(key, Horizon::Short, timers);
                }
            }
            Mail::Stop => return After::Stop,
        }
        After::Stay
    }

    fn arm(&mut self, key: u32, horizon: Horizon, timers: &mut impl Timers) {
        let delay = self.pass.load.delay(horizon, self.place);
        self.place += 1;
        if let Some(due) = self.not_before.get_mut(key as usize) {
            *due = Instant::now() + delay;
        }
        timers.arm(key, delay, Mail::Fired(key, self.pass.receiver.shot()));
    }
}

#[cfg(test)]
mod tests {
    use super::{ActorCounts, Receiver, Timers};
    use super::{After, Arc, AtomicU32, Load, Mail, Ordering, PassShared, TimerUser};
    use crate::actor_timers::load::Step;
    use crate::actor_timers::subject::Case;
    use crate::receiver::Ends;
    use core::time::Duration;
    use std::time::Instant;

    /// Records the armed timers, in order.
    #[derive(Default)]
    struct Armed(Vec<(u32, Mail)>);

    impl Timers for Armed {
        fn arm(&mut self, key: u32, _: Duration, mail: Mail) {
            self.cancel(key);
            self.0.push((key, mail));
        }

        fn cancel(&mut self, key: u32) {
            self.0.retain(|(armed, _)| *armed != key);
        }

        fn fired(&mut self, _: u32) {}
    }

    /// An actor with all `n` timers of a case, after its commands.
    fn commanded(case: Case, n: u32) -> (TimerUser, Armed, Arc<PassShared>) {
        let load = Arc::new(Load::new(case, n));
        assert_eq!(load.n_actors, 1, "a load for one actor");
        let Ends { fired, dropped } = load.expected();
        let receiver = Receiver::leaked(fired + dropped);
        let n_early = AtomicU32::new(0);
        let pass = PassShared { load: Arc::clone(&load), receiver, detects_early: true, n_early };
        let pass = Arc::new(pass);
        let mut user = TimerUser::new(&pass, &ActorCounts::new(1, 1), 0);
        let mut armed = Armed::default();
        for step in &load.steps {
            if let Step::Send(command) = *step {
                assert_eq!(user.receive(Mail::Command(command), &mut armed), After::Stay);
            }
        }
        (user, armed, pass)
    }

    #[test]
    fn a_message_before_its_time_is_detected() {
        let (mut user, mut armed, pass) = commanded(Case::Keyed, 100);
        let fired: Vec<Mail> = armed.0.drain(..).map(|(_, mail)| mail).collect();
        assert_eq!(fired.len(), 75);
        for mail in fired {
            user.receive(mail, &mut armed);
        }
        assert_eq!(pass.n_early.load(Ordering::Relaxed), 75);
        assert_eq!(pass.receiver.wait(Instant::now()), pass.load.expected());
    }

    #[test]
    fn a_message_in_time_is_not_early_and_arms_the_next_timer() {
        let (mut user, mut armed, pass) = commanded(Case::ArmFire, 1);
        user.n_chained = 1;
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(5));
            let (_, mail) = armed.0.pop().expect("a timer is armed");
            user.receive(mail, &mut armed);
        }
        assert!(armed.0.is_empty(), "the chain is over");
        assert_eq!(pass.n_early.load(Ordering::Relaxed), 0);
        assert_eq!(pass.receiver.wait(Instant::now()), Ends { fired: 2, dropped: 0 });
    }

    #[test]
    fn what_is_cancelled_is_dropped() {
        let (_, armed, pass) = commanded(Case::ArmCancel, 130);
        assert!(armed.0.is_empty(), "all timers are cancelled");
        assert_eq!(pass.receiver.wait(Instant::now()), Ends { fired: 0, dropped: 130 });
    }
}
