//! A toolbox whose time advances by hand, and processes that log their events.

use alloc::sync::Arc;
use core::{any::type_name, marker::PhantomData, time::Duration};
use std::sync::Mutex;

use clockjack_exec::{
    Commands, Event, Events, ExitReason, Failure, Handle, IntervalTick, Limits, LocalExecutor,
    Payload, Pid, Process, StartError, StepOutput,
};
use clockjack_testing::toolbox::{ByHand, Parking};
use clockjack_time::{ManualClock, MonotonicClock as _, Resolution, Tick};

/// An executor in virtual time, and the hand on its clock.
pub(crate) struct Run {
    pub(crate) exec: LocalExecutor,
    pub(crate) clock: Arc<ManualClock>,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self::of(Limits::DEFAULT, Commands::new(), 0)
    }

    pub(crate) fn with(commands: Commands) -> Self {
        Self::of(Limits::DEFAULT, commands, 0)
    }

    pub(crate) fn of(limits: Limits, commands: Commands, seed: u64) -> Self {
        Self::try_of(limits, commands, seed).expect("each number has one handler")
    }

    pub(crate) fn try_of(
        limits: Limits,
        commands: Commands,
        seed: u64,
    ) -> Result<Self, StartError> {
        let (mut host, clock) = ByHand::new(Resolution::MILLI);
        host.seed = seed;
        host.parking = Parking::MovesTime;
        Ok(Self { exec: LocalExecutor::new(host, limits, commands)?, clock })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.exec.handle()
    }

    pub(crate) fn idle(&mut self) -> usize {
        self.exec.run_until_idle()
    }

    /// Runs to idle, and on through every timer that is due in the next `millis`.
    pub(crate) fn run_for(&mut self, millis: u64) {
        let until = Tick::new(self.clock.now().ticks + millis);
        loop {
            self.idle();
            match self.exec.next_wake() {
                Some(wake) if wake <= until => self.clock.advance_to(wake),
                _ => break,
            };
        }
        self.clock.advance_to(until);
        self.idle();
    }

    /// Nothing was lost: all that was started has ended, and the executor still runs things.
    #[track_caller]
    pub(crate) fn assert_well(&mut self) {
        let join = self.exec.spawn_future(async { 41 + 1 });
        self.idle();
        assert!(join.is_finished(), "the executor runs nothing any more");
        assert_eq!(self.exec.block_on(join).expect("it ends with its output"), 42);
        let stats = self.handle().stats();
        assert_eq!(stats.spawned, stats.finished, "something has not ended");
        assert_eq!(self.exec.live_len(), 0);
    }
}

/// What has happened, in words.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// What was said since the last time, one a line.
    pub(crate) fn take(&self) -> String {
        core::mem::take(&mut *self.0.lock().unwrap()).join("\n")
    }

    #[track_caller]
    pub(crate) fn expect(&self, lines: &[&str]) {
        assert_eq!(self.take(), lines.join("\n"));
    }
}

/// An event in words.
pub(crate) fn text<M: core::fmt::Display>(event: Event<M>) -> String {
    match event {
        Event::Message(message) => format!("message {message}"),
        Event::YieldComplete { tag, result } => match result {
            Ok(payload) => format!("{} {}", tag.0, value(&payload)),
            Err(failure) => format!("{} failed: {}", tag.0, why(&failure)),
        },
        Event::Cancel { reason } => format!("cancel {reason}"),
        Event::Exit { reason, .. } => format!("exit {}", how(&reason)),
        Event::LinkDown { reason, .. } => format!("link down {}", how(&reason)),
        _ => "something new".into(),
    }
}

fn value(payload: &Payload) -> String {
    if let Some(n) = payload.downcast_ref::<u32>() {
        n.to_string()
    } else if let Some(tick) = payload.downcast_ref::<IntervalTick>() {
        format!("due {} missed {}", tick.due.get(), tick.missed)
    } else if payload.is::<()>() {
        "done".into()
    } else if payload.is::<Pid>() {
        "pid".into()
    } else {
        payload.type_name().into()
    }
}

pub(crate) fn why(failure: &Failure) -> String {
    failure.code().map_or_else(|| failure.to_string(), |code| format!("code {code}"))
}

pub(crate) fn how(reason: &ExitReason) -> String {
    match reason {
        ExitReason::Normal => "normal".into(),
        ExitReason::Failed(text) => format!("failed: {text}"),
        ExitReason::Panicked(text) => format!("panicked: {text}"),
        ExitReason::Terminated => "terminated".into(),
        ExitReason::Cancelled(reason) => format!("cancelled: {reason}"),
        _ => "in a new way".into(),
    }
}

/// A process that is one closure.
pub(crate) struct Stepping<M, F>(F, PhantomData<fn(M)>);

pub(crate) fn process<M, F>(step: F) -> Stepping<M, F>
where
    M: 'static,
    F: FnMut(&mut Events<'_, M>, &mut StepOutput) -> Result<(), Failure> + 'static,
{
    Stepping(step, PhantomData)
}

impl<M, F> Process for Stepping<M, F>
where
    M: 'static,
    F: FnMut(&mut Events<'_, M>, &mut StepOutput) -> Result<(), Failure> + 'static,
{
    type Message = M;

    fn step(&mut self, events: &mut Events<'_, M>, out: &mut StepOutput) -> Result<(), Failure> {
        (self.0)(events, out)
    }
}

type Ask = Box<dyn FnOnce(&mut StepOutput) + Send>;

/// A process that yields a command at first, logs its events, and ends when it is
/// asked to.
pub(crate) struct Asker {
    ask: Option<Ask>,
    log: Log,
}

pub(crate) fn asker(log: &Log, ask: impl FnOnce(&mut StepOutput) + Send + 'static) -> Asker {
    Asker { ask: Some(Box::new(ask)), log: log.clone() }
}

impl Process for Asker {
    type Message = u32;

    fn step(&mut self, events: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        if let Some(ask) = self.ask.take() {
            ask(out);
        }
        for event in events {
            let is_cancel = matches!(event, Event::Cancel { .. });
            self.log.say(text(event));
            if is_cancel {
                out.done(Payload::unit());
                return Ok(());
            }
        }
        out.idle();
        Ok(())
    }

    fn close(&mut self) {
        self.log.say("closed");
    }
}

/// A process that does nothing until a message says how to end: 0 by a result, 1 by a failure, else
/// by a panic. A cancel ends it by a result.
pub(crate) struct Mortal;

impl Process for Mortal {
    type Message = u32;

    fn step(&mut self, events: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            match event {
                Event::Message(1) => return Err(Failure::msg("told to fail")),
                Event::Message(0) | Event::Cancel { .. } => {
                    out.done(Payload::unit());
                    return Ok(());
                }
                Event::Message(_) => panic!("told to panic"),
                _ => {}
            }
        }
        out.idle();
        Ok(())
    }
}

/// Says it when it is dropped.
pub(crate) struct Dropped(pub(crate) Log, pub(crate) &'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.say(format!("dropped {}", self.1));
    }
}

/// Panics when it is dropped.
#[derive(Debug)]
pub(crate) struct Bomb(pub(crate) &'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "bomb {} of {}", self.0, type_name::<Self>());
    }
}

impl core::fmt::Display for Bomb {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "bomb {}", self.0)
    }
}

pub(crate) const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}
