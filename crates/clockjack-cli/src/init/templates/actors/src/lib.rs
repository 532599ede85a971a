//! A throttle: admits a burst of requests, and one more per period.
//!
//! The actor owns its state and handles one message at a time. A timer tick is a message like any
//! other, so a test controls when time passes.

use clockjack::prelude::*;

/// The messages of a throttle.
#[derive(Debug)]
pub enum Msg {
    /// Asks whether a request may pass now.
    Enter(ReplyTo<bool>),
    /// A period has passed. The throttle's own timer sends this message.
    Refill,
}

/// Admits `burst` requests at once, and one more per `period`.
#[derive(Debug)]
pub struct Throttle {
    burst: u32,
    period: Duration,
    left: u32,
}

impl Throttle {
    /// A throttle that admits `burst` requests before the first period has passed.
    #[must_use]
    pub fn new(burst: u32, period: Duration) -> Self {
        Self {
            burst,
            period,
            left: burst,
        }
    }
}

impl Actor for Throttle {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers()
            .fixed_rate("refill", self.period, || Msg::Refill)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Enter(reply_to) => {
                let may_enter = self.left > 0;
                self.left -= u32::from(may_enter);
                reply_to.reply(may_enter);
            }
            Msg::Refill => {
                // A fixed-rate timer does not drift, and it counts periods that a busy actor
                // missed.
                let missed = cx.scheduler_batch().map_or(0, |batch| batch.missed_runs);
                let left = self.left.saturating_add(1).saturating_add(missed);
                self.left = left.min(self.burst);
            }
        }
        Ok(Next::Stay)
    }
}
