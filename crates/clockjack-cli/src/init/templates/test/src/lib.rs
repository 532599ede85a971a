//! A courier: hands parcels to a carrier, and tries again until it hears that they arrived.
#![no_std]

extern crate alloc;

use alloc::collections::BTreeMap;

use clockjack::prelude::*;

/// How often a parcel is handed over before it is given up.
pub const ATTEMPTS: u32 = 3;

/// How long the courier waits for news after its n-th attempt, from 1: a second, two, four.
#[must_use]
pub fn patience(attempt: u32) -> Duration {
    Duration::from_secs(1 << attempt.saturating_sub(1).min(16))
}

/// What became of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It arrived.
    Delivered(u64),
    /// No attempt was answered.
    Lost(u64),
}

/// What a courier is told.
#[derive(Debug)]
pub enum Msg {
    /// To be brought away.
    Send(u64),
    /// The carrier says that it arrived.
    Arrived(u64),
    /// Nobody has said so in time. It comes from the courier's own timer.
    NoNews(u64),
    /// How many are under way?
    UnderWay(ReplyTo<usize>),
}

/// Hands parcels to a carrier, each up to [`ATTEMPTS`] times.
#[derive(Debug)]
pub struct Courier {
    carrier: ActorRef<u64>,
    office: ActorRef<Outcome>,
    attempts: BTreeMap<u64, u32>,
}

impl Courier {
    /// A courier with nothing under way.
    #[must_use]
    pub fn new(carrier: ActorRef<u64>, office: ActorRef<Outcome>) -> Self {
        Self {
            carrier,
            office,
            attempts: BTreeMap::new(),
        }
    }

    fn hand_over(&mut self, cx: &mut Context<'_, Self>, parcel: u64) -> Result<(), Failure> {
        let attempt = self.attempts.entry(parcel).or_insert(0);
        *attempt += 1;
        let wait = patience(*attempt);
        self.carrier.tell(parcel)?;
        cx.timers()
            .single(("news", parcel), wait, Msg::NoNews(parcel))?;
        Ok(())
    }
}

impl Actor for Courier {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Send(0) => return Err(Failure::msg("parcels are numbered from 1")),
            Msg::Send(parcel) => self.hand_over(cx, parcel)?,
            Msg::Arrived(parcel) => {
                // News of a parcel that was given up, or that arrived twice, is no news.
                if self.attempts.remove(&parcel).is_some() {
                    cx.timers().cancel(("news", parcel));
                    self.office.tell(Outcome::Delivered(parcel))?;
                }
            }
            Msg::NoNews(parcel) => {
                if self.attempts.get(&parcel).is_some_and(|n| *n >= ATTEMPTS) {
                    self.attempts.remove(&parcel);
                    self.office.tell(Outcome::Lost(parcel))?;
                } else {
                    self.hand_over(cx, parcel)?;
                }
            }
            Msg::UnderWay(reply_to) => reply_to.reply(self.attempts.len()),
        }
        Ok(Next::Stay)
    }
}
