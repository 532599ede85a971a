//! A timer that fires while messages wait: it overtakes none of them, on any host.
//!
//! The actor sets a timer, tells itself a message that it handles for longer than the timer takes,
//! and then a few more. All of them are in the mailbox when the timer fires, so the message of the
//! timer comes last. A message that the actor tells itself when it handles the timer comes after
//! that.

use alloc::{vec, vec::Vec};
use core::time::Duration;

use clockjack_actor::{Actor, ActorSystem, Context, Failure, Next, Props};
use clockjack_sync::{Arc, spin_lock::SpinLock};

/// The delay of the timer: much shorter than the slow handler takes.
const DELAY: Duration = Duration::from_millis(2);
/// How long the slow handler takes: longer than an actor may run in one poll, so that the host
/// looks at its timers before the actor continues.
pub const SLOW: Duration = Duration::from_millis(20);

/// What the actor handles, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say when each is sent")]
pub enum Step {
    Slow,
    Waiting(u8),
    Timer,
    Afterwards,
}

/// What the actor must handle.
#[must_use]
pub fn expected() -> Vec<Step> {
    use Step::{Afterwards, Slow, Timer, Waiting};
    vec![Slow, Waiting(1), Waiting(2), Waiting(3), Timer, Afterwards]
}

/// The steps that the actor has handled so far.
#[derive(Clone, Debug)]
pub struct Steps(Arc<SpinLock<Vec<Step>>>);

impl Steps {
    /// Returns a copy of the steps.
    #[must_use]
    pub fn get(&self) -> Vec<Step> {
        self.0.with(|steps| steps.clone())
    }
}

/// Starts the actor, which shuts the system down at the end. `take_time` lets [`SLOW`] pass within
/// a handler.
///
/// # Errors
///
/// If the system has no room or has already shut down.
pub fn start(
    system: &ActorSystem,
    take_time: impl Fn() + Clone + Send + 'static,
) -> Result<Steps, Failure> {
    let steps = Steps(Arc::new(SpinLock::new(Vec::with_capacity(8))));
    let mine = steps.clone();
    let actor = Props::new(move || Orderly { steps: mine.clone(), take_time: take_time.clone() });
    system.spawn("orderly", actor)?;
    Ok(steps)
}

struct Orderly<F> {
    steps: Steps,
    take_time: F,
}

impl<F: Fn() + Send + 'static> Actor for Orderly<F> {
    type Msg = Step;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let me = cx.self_ref();
        for step in [Step::Slow, Step::Waiting(1), Step::Waiting(2), Step::Waiting(3)] {
            me.tell(step)?;
        }
        cx.timers().single("timer", DELAY, Step::Timer)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, step: Step) -> Result<Next, Failure> {
        self.steps.0.with(|steps| steps.push(step));
        match step {
            Step::Slow => (self.take_time)(),
            Step::Waiting(_) => {}
            Step::Timer => cx.self_ref().tell(Step::Afterwards)?,
            Step::Afterwards => drop(cx.system().shutdown()),
        }
        Ok(Next::Stay)
    }
}
