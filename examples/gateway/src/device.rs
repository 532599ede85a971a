//! One device, as an actor: its heartbeat, its rate limit, its readings and its commands.

use std::{collections::BTreeMap, sync::Arc};

use clockjack::{actor::AskError, prelude::*};

use crate::{
    bucket::TokenBucket,
    figures::{Figures, count},
    protocol::Line,
    store::{self, Full, Reading},
    tcp::Out,
};

/// A device that sends nothing for this long is disconnected.
pub const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How many readings a device may send at once.
pub const BURST: u32 = 50;
/// A device may send one more reading per interval.
pub const READING_EVERY: Duration = Duration::from_millis(10);
/// How often a command is sent before the gateway reports that nothing happened.
pub const COMMAND_ATTEMPTS: u32 = 3;
/// How long the gateway waits for `done` before it sends a command again.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(2);
/// How many commands may wait for `done`.
pub const COMMANDS_MAX: usize = 16;
/// How long a device waits for its shard.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many readings may wait for the shard: a whole burst.
const STORING_MAX: u16 = 64;
/// How many messages wait for a device. Its connection waits for room.
const MAILBOX: usize = 64;

/// The messages of a device.
#[derive(Debug)]
pub enum Msg {
    /// A line from the device.
    Line(Line),
    /// The answer of the shard.
    Stored {
        /// The number of the reading.
        number: u64,
        /// Whether it is buffered.
        outcome: Result<Result<(), Full>, AskError>,
    },
    /// Sends a command to the device, and answers when it is done.
    Command(String, ReplyTo<Result<(), CommandError>>),
    /// A command was not done in time.
    Resend(u64),
    /// Asks what is known of the device.
    Status(ReplyTo<Status>),
    /// The device was silent for too long.
    Silent,
    /// The connection is closed, or replaced by a new one.
    Close,
    /// Takes no more readings, answers those that it has, and stops.
    Drain,
}

/// Why a command has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// Too many commands wait.
    Busy,
    /// The device did not answer any of the attempts.
    NoAnswer,
}

/// What is known of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// How many of its readings were acknowledged.
    pub n_accepted: u64,
    /// How many of its readings were refused.
    pub n_refused: u64,
    /// How many commands wait.
    pub n_commands: usize,
}

#[derive(Debug)]
struct Command {
    text: String,
    attempts: u32,
    reply_to: ReplyTo<Result<(), CommandError>>,
}

/// One device.
#[derive(Debug)]
pub struct Device {
    name: Arc<str>,
    writer: ActorRef<Out>,
    store: ActorRef<store::Msg>,
    figures: Arc<Figures>,
    bucket: TokenBucket,
    status: Status,
    /// Readings that wait for their shard.
    n_storing: usize,
    is_draining: bool,
    commands: BTreeMap<u64, Command>,
    n_commands: u64,
}

impl Device {
    /// The settings for a device that answers through `writer`. A device is not started again: a
    /// device that has failed connects again.
    pub fn props(
        name: &str,
        writer: ActorRef<Out>,
        store: ActorRef<store::Msg>,
        figures: Arc<Figures>,
    ) -> Props<Self, impl FnMut() -> Self + Send + use<>> {
        let device = Self {
            name: name.into(),
            writer,
            store,
            figures,
            bucket: TokenBucket::new(BURST, READING_EVERY),
            status: Status::default(),
            n_storing: 0,
            is_draining: false,
            commands: BTreeMap::new(),
            n_commands: 0,
        };
        Props::once(device).mailbox(Mailbox::bounded(MAILBOX)).futures_max(STORING_MAX)
    }

    /// Sends a line to the device. A device that does not read is disconnected: the gateway keeps
    /// no lines for it without bound.
    fn write(&mut self, line: String) -> Next {
        match self.writer.tell(Out::Line(line)) {
            Ok(()) => Next::Stay,
            Err(refused) => {
                if refused.is_full() {
                    count(&self.figures.devices_slow);
                }
                Next::Stop
            }
        }
    }

    fn line(&mut self, cx: &mut Context<'_, Self>, line: Line) -> Result<Next, Failure> {
        // The timer keeps its place between the lines: even if this actor is behind, it does not
        // overtake a heartbeat that has arrived before.
        cx.timers().single("silence", SILENCE_MAX, Msg::Silent)?;
        match line {
            Line::Hello(_) => Ok(self.write("error hello twice".into())),
            Line::Ping => Ok(self.write("pong".into())),
            Line::Data { number, value } => Ok(self.store(cx, number, value)),
            Line::Done(number) => {
                // An answer to an attempt that was repeated may arrive twice.
                if let Some(command) = self.commands.remove(&number) {
                    cx.timers().cancel(("command", number));
                    command.reply_to.reply(Ok(()));
                }
                Ok(Next::Stay)
            }
        }
    }

    fn store(&mut self, cx: &mut Context<'_, Self>, number: u64, value: i64) -> Next {
        if self.is_draining {
            count(&self.figures.refused_stopping);
            return self.refuse(number);
        }
        if !self.bucket.take(cx.now()) {
            count(&self.figures.refused_rate);
            return self.refuse(number);
        }
        let reading = Reading { device: Arc::clone(&self.name), number, value };
        let request = |reply_to| store::Msg::Put(reading, reply_to);
        let asked = cx.ask(&self.store, request, STORE_TIMEOUT, move |_me, outcome| {
            Ok(Msg::Stored { number, outcome })
        });
        if asked.is_err() {
            count(&self.figures.refused_full);
            return self.refuse(number);
        }
        self.n_storing += 1;
        Next::Stay
    }

    fn stored(&mut self, number: u64, outcome: Result<Result<(), Full>, AskError>) -> Next {
        self.n_storing -= 1;
        let next = match outcome {
            Ok(Ok(())) => {
                count(&self.figures.accepted);
                self.status.n_accepted += 1;
                self.write(format!("ack {number}"))
            }
            Err(error) if error.is_timed_out() => {
                count(&self.figures.unknown);
                self.write(format!("unknown {number}"))
            }
            Ok(Err(Full)) | Err(_) => {
                count(&self.figures.refused_full);
                self.refuse(number)
            }
        };
        if self.is_drained() { Next::Stop } else { next }
    }

    fn refuse(&mut self, number: u64) -> Next {
        self.status.n_refused += 1;
        self.write(format!("busy {number}"))
    }

    fn is_drained(&self) -> bool {
        self.is_draining && self.n_storing == 0
    }

    fn command(
        &mut self,
        cx: &mut Context<'_, Self>,
        text: String,
        reply_to: ReplyTo<Result<(), CommandError>>,
    ) -> Result<Next, Failure> {
        if self.is_draining || self.commands.len() >= COMMANDS_MAX {
            reply_to.reply(Err(CommandError::Busy));
            return Ok(Next::Stay);
        }
        self.n_commands += 1;
        self.commands.insert(self.n_commands, Command { text, attempts: 0, reply_to });
        self.attempt(cx, self.n_commands)
    }

    fn attempt(&mut self, cx: &mut Context<'_, Self>, number: u64) -> Result<Next, Failure> {
        let Some(command) = self.commands.get_mut(&number) else { return Ok(Next::Stay) };
        if command.attempts == COMMAND_ATTEMPTS {
            if let Some(command) = self.commands.remove(&number) {
                command.reply_to.reply(Err(CommandError::NoAnswer));
            }
            return Ok(Next::Stay);
        }
        command.attempts += 1;
        if command.attempts > 1 {
            count(&self.figures.commands_resent);
        }
        let line = format!("cmd {number} {}", command.text);
        cx.timers().single(("command", number), COMMAND_TIMEOUT, Msg::Resend(number))?;
        Ok(self.write(line))
    }
}

impl Actor for Device {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.watch_with(&self.writer, Msg::Close)?;
        cx.timers().single("silence", SILENCE_MAX, Msg::Silent)?;
        Ok(self.write("ok".into()))
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Line(line) => return self.line(cx, line),
            Msg::Stored { number, outcome } => return Ok(self.stored(number, outcome)),
            Msg::Command(text, reply_to) => return self.command(cx, text, reply_to),
            Msg::Resend(number) => return self.attempt(cx, number),
            Msg::Status(reply_to) => {
                reply_to.reply(Status { n_commands: self.commands.len(), ..self.status });
            }
            Msg::Silent => {
                count(&self.figures.devices_silent);
                return Ok(Next::Stop);
            }
            Msg::Close => return Ok(Next::Stop),
            Msg::Drain => {
                self.is_draining = true;
                if self.is_drained() {
                    return Ok(Next::Stop);
                }
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::PostStop = signal {
            cx.unwatch(&self.writer);
            // The writer writes what it has, and closes the connection. The writer of a device that
            // does not read has no room, and one whose device has gone is gone, too.
            let bye = [Out::Line("bye".into()), Out::Close];
            if bye.into_iter().any(|out| self.writer.tell(out).is_err()) {
                let _ = self.writer.tell_control(Out::Close);
            }
        }
        Ok(Next::Stay)
    }
}
