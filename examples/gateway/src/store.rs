//! Readings on their way to the archive: shards buffer them, and a flush job sends them in batches.

use core::sync::atomic::Ordering::Relaxed;
use std::{collections::VecDeque, sync::Arc};

use clockjack::{
    actor::{Pool, ServiceKey, router::hash_of},
    prelude::*,
};

use crate::{
    archive,
    figures::{Figures, count},
};

/// The number of shards.
pub const SHARDS: usize = 4;
/// How many readings a shard keeps, including the batch that is being written.
pub const BUFFERED_MAX: usize = 10_000;
/// The largest batch.
pub const BATCH_MAX: usize = 1_000;
/// How often a shard sends what it has.
pub const FLUSH_EVERY: Duration = Duration::from_millis(200);
/// How long a shard waits for the archive before it sends a batch again.
pub const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(1);
/// How many messages wait for a shard.
const MAILBOX: usize = 4_096;

/// The pause before attempt n + 1, where n starts at 1: 100 ms, doubled up to 3.2 s.
#[must_use]
pub fn retry_delay(attempt: u32) -> Duration {
    Duration::from_millis(100) * (1 << attempt.saturating_sub(1).min(5))
}

/// A reading of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The name of the device.
    pub device: Arc<str>,
    /// The number that the device gave to the reading.
    pub number: u64,
    /// The value.
    pub value: i64,
}

/// A shard that has no room for a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The messages of a shard. The router forwards [`Msg::Put`]; shards get the others directly.
#[derive(Debug)]
pub enum Msg {
    /// Buffers a reading.
    Put(Reading, ReplyTo<Result<(), Full>>),
    /// The flush job.
    Flush,
    /// The pause after an attempt is over.
    Resend,
    /// The outcome of an attempt.
    Written(Result<(), String>),
    /// Writes everything, and answers when nothing is left.
    Drain(ReplyTo<()>),
}

/// The key under which shards are registered, so that the drain finds them.
#[must_use]
pub fn shards() -> ServiceKey<Msg> {
    ServiceKey::new("shards")
}

/// The router: all readings of a device go to the same shard, and so stay in order.
pub fn router(
    archive: ActorRef<archive::Store>,
    figures: Arc<Figures>,
) -> Pool<Shard, impl FnMut() -> Shard + Clone + Send> {
    fn key(msg: &Msg) -> u64 {
        if let Msg::Put(reading, _) = msg { hash_of(&*reading.device) } else { 0 }
    }
    let shard = move || Shard::new(archive.clone(), Arc::clone(&figures), BUFFERED_MAX);
    Pool::consistent_hash(SHARDS, key, shard)
        .mailbox(Mailbox::bounded(MAILBOX))
        .routees(|shard| shard.mailbox(Mailbox::bounded(MAILBOX)))
}

/// A batch on its way to the archive.
#[derive(Debug)]
struct Batch {
    number: u64,
    readings: Arc<[Reading]>,
    attempts: u32,
}

/// Buffers readings and sends them to the archive.
#[derive(Debug)]
pub struct Shard {
    id: u64,
    archive: ActorRef<archive::Store>,
    figures: Arc<Figures>,
    buffered: VecDeque<Reading>,
    in_flight: Option<Batch>,
    buffered_max: usize,
    n_batches: u64,
    drains: Vec<ReplyTo<()>>,
}

impl Shard {
    /// An empty shard that keeps at most `buffered_max` readings.
    #[must_use]
    pub fn new(
        archive: ActorRef<archive::Store>,
        figures: Arc<Figures>,
        buffered_max: usize,
    ) -> Self {
        Self {
            id: figures.next_shard(),
            archive,
            figures,
            buffered: VecDeque::new(),
            in_flight: None,
            buffered_max,
            n_batches: 0,
            drains: Vec::new(),
        }
    }

    fn put(&mut self, reading: Reading) -> Result<(), Full> {
        let n_in_flight = self.in_flight.as_ref().map_or(0, |batch| batch.readings.len());
        if self.buffered.len() + n_in_flight >= self.buffered_max {
            return Err(Full);
        }
        self.buffered.push_back(reading);
        Ok(())
    }

    /// Sends the next batch, if there is one and none is on its way.
    fn flush(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Failure> {
        if self.in_flight.is_some() {
            return Ok(());
        }
        if self.buffered.is_empty() {
            self.drains.drain(..).for_each(|reply_to| reply_to.reply(()));
            return Ok(());
        }
        self.n_batches += 1;
        let n = self.buffered.len().min(BATCH_MAX);
        let readings = self.buffered.drain(..n).collect();
        self.in_flight = Some(Batch { number: self.n_batches, readings, attempts: 0 });
        self.send(cx)
    }

    /// Asks the archive to write the batch.
    fn send(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Failure> {
        let Some(batch) = &mut self.in_flight else { return Ok(()) };
        batch.attempts += 1;
        let (shard, number) = (self.id, batch.number);
        let readings = Arc::clone(&batch.readings);
        let request = |reply_to| archive::Store { shard, batch: number, readings, reply_to };
        cx.ask(&self.archive, request, ARCHIVE_TIMEOUT, |_me, answer| {
            Ok(Msg::Written(answer.unwrap_or_else(|error| Err(error.to_string()))))
        })?;
        Ok(())
    }

    fn written(
        &mut self,
        cx: &mut Context<'_, Self>,
        outcome: Result<(), String>,
    ) -> Result<(), Failure> {
        let Some(batch) = &self.in_flight else { return Ok(()) };
        match outcome {
            Ok(()) => {
                self.figures.archived.fetch_add(batch.readings.len() as u64, Relaxed);
                self.in_flight = None;
                if !self.drains.is_empty() || self.buffered.len() >= BATCH_MAX {
                    self.flush(cx)?;
                }
            }
            Err(why) => {
                if batch.attempts == 1 {
                    let n = batch.readings.len();
                    tracing::warn!("the archive did not write {n} readings, trying again: {why}");
                }
                count(&self.figures.batches_resent);
                cx.timers().single("resend", retry_delay(batch.attempts), Msg::Resend)?;
            }
        }
        Ok(())
    }
}

impl Actor for Shard {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().fixed_delay("flush", FLUSH_EVERY, || Msg::Flush)?;
        let system = cx.system().clone();
        system.receptionist().register(&shards(), &cx.self_ref())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Put(reading, reply_to) => reply_to.reply(self.put(reading)),
            Msg::Flush => self.flush(cx)?,
            Msg::Resend => self.send(cx)?,
            Msg::Written(outcome) => self.written(cx, outcome)?,
            Msg::Drain(reply_to) => {
                self.drains.push(reply_to);
                self.flush(cx)?;
            }
        }
        Ok(Next::Stay)
    }
}
