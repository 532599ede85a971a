//! A courier: hands parcels to a carrier, and retries until the carrier confirms the delivery.
#![no_std]

extern crate alloc;

use alloc::collections::BTreeMap;

use clockjack::prelude::*;

/// The maximum number of attempts per parcel.
pub const ATTEMPTS: u32 = 3;

/// How long the courier waits for a confirmation after attempt n, which starts at 1: 1 s, 2 s, 4 s.
#[must_use]
pub fn retry_delay(attempt: u32) -> Duration {
    Duration::from_secs(1 << attempt.saturating_sub(1).min(16))
}

/// The outcome of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The parcel was delivered.
    Delivered(u64),
    /// No attempt was confirmed.
    Lost(u64),
}

/// The messages of a courier.
#[derive(Debug)]
pub enum Msg {
    /// Delivers a parcel.
    Send(u64),
    /// The carrier confirms a delivery.
    Arrived(u64),
    /// No confirmation arrived in time. The courier's own timer sends this message.
    TimedOut(u64),
    /// Asks for the number of pending parcels.
    Pending(ReplyTo<usize>),
}

/// Hands parcels to a carrier, each up to [`ATTEMPTS`] times.
#[derive(Debug)]
pub struct Courier {
    carrier: ActorRef<u64>,
    customer: ActorRef<Outcome>,
    attempts: BTreeMap<u64, u32>,
}

impl Courier {
    /// A courier without pending parcels.
    #[must_use]
    pub fn new(carrier: ActorRef<u64>, customer: ActorRef<Outcome>) -> Self {
        Self {
            carrier,
            customer,
            attempts: BTreeMap::new(),
        }
    }

    fn attempt(&mut self, cx: &mut Context<'_, Self>, parcel: u64) -> Result<(), Failure> {
        let attempt = self.attempts.entry(parcel).or_insert(0);
        *attempt += 1;
        let wait = retry_delay(*attempt);
        self.carrier.tell(parcel)?;
        cx.timers()
            .single(("timeout", parcel), wait, Msg::TimedOut(parcel))?;
        Ok(())
    }
}

impl Actor for Courier {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Send(0) => return Err(Failure::msg("parcels are numbered from 1")),
            Msg::Send(parcel) => self.attempt(cx, parcel)?,
            Msg::Arrived(parcel) => {
                // A late or repeated confirmation is ignored.
                if self.attempts.remove(&parcel).is_some() {
                    cx.timers().cancel(("timeout", parcel));
                    self.customer.tell(Outcome::Delivered(parcel))?;
                }
            }
            Msg::TimedOut(parcel) => {
                if self.attempts.get(&parcel).is_some_and(|n| *n >= ATTEMPTS) {
                    self.attempts.remove(&parcel);
                    self.customer.tell(Outcome::Lost(parcel))?;
                } else {
                    self.attempt(cx, parcel)?;
                }
            }
            Msg::Pending(reply_to) => reply_to.reply(self.attempts.len()),
        }
        Ok(Next::Stay)
    }
}
