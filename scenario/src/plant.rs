//! The program: a plant of actors.
//!
//! ```text
//!   /user/plant        restarts a child once; a second failure goes to the root, which shuts down
//!     ├─ gauge         takes samples, fails at the third, is restarted by its own strategy
//!     ├─ metronome     fixed rate, five times, each a sample for the gauge
//!     ├─ pump          fixed delay, four times
//!     ├─ valve         single timers: one cancelled, one replaced; stops by itself, is watched
//!     ├─ clerk         asks the gauge and waits for the answer
//!     └─ cell          escalates the failures of its child
//!         └─ fuse      a single timer, then a failure
//! ```
//!
//! # Why the trace is the same on every host
//!
//! 1. No actor reads a clock. All times are *nominal*: the deadline of the timer that caused the
//!    message, in milliseconds since the start of the plant. The messages contain this time.
//! 2. Each actor receives messages from only one source at a time, or their order does not matter:
//!    the plant waits for four reports and records them in a fixed order after the last one.
//! 3. An actor first forwards a message and then reports that it did so: when the report arrives,
//!    the forwarded message is already in its mailbox.
//! 4. Delays may be arbitrarily long: the timeout of the ask and the window of the restarts are one
//!    hour each.

use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, AskError, Context, EscalationSink, Failure, FailureInfo, Mailbox,
    Next, Props, ReplyTo, Scope, Signal, StaticError, Strategy, SystemBuilder, shutdown::Phase,
};

use crate::tape::{Tape, Who};

const BEAT_MS: u32 = 4;
const BEATS: u32 = 5;
const STROKE_MS: u32 = 3;
const STROKES: u32 = 4;
const OPEN_MS: u32 = 5;
const CLOSE_MS: u32 = 6;
/// The delay of the timer that is replaced before it fires.
const NEVER_MS: u32 = 50;
const BLOW_MS: u32 = 2;
/// The sample at which the gauge fails.
const BAD_SAMPLE: u32 = 3;
/// Longer than any host needs.
const LONG: Duration = Duration::from_secs(3_600);

static BAD: StaticError = StaticError::new(3, "a bad sample");
static BLOWN: StaticError = StaticError::new(7, "the fuse is blown");

/// The builder of the plant's actor system; a host may set more options.
#[must_use]
pub fn builder(tape: &Tape) -> SystemBuilder {
    ActorSystem::builder("scenario")
        .supervise_users(Scope::OneForOne, Strategy::escalate())
        .escalation(Sink(tape.clone()))
}

/// Starts the plant. The plant stops by itself and then shuts the system down.
///
/// # Errors
///
/// If the system has no room or has already shut down.
pub fn start(system: &ActorSystem, tape: &Tape) -> Result<(), Failure> {
    let last = tape.clone();
    let note = async move {
        last.note(Who::Shutdown, "before-service-unbind");
        Ok(())
    };
    system.on_shutdown(Phase::BEFORE_SERVICE_UNBIND, "note", note)?;
    let mine = tape.clone();
    let plant = Props::new(move || Plant::new(mine.clone()));
    let twice = Strategy::restart().limit(1, LONG);
    system.spawn("plant", small(plant).supervise_children(Scope::OneForOne, twice))?;
    Ok(())
}

/// Limits the mailbox to the memory of a microcontroller.
fn small<A: Actor, F: FnMut() -> A>(props: Props<A, F>) -> Props<A, F> {
    props.mailbox(Mailbox::bounded(8))
}

const fn ms(ms: u32) -> Duration {
    Duration::from_millis(ms as u64)
}

/// Records a signal; all actors handle signals in the same way.
fn note_signal(tape: &Tape, who: Who, signal: &Signal) -> Next {
    match signal {
        Signal::PreRestart => tape.note(who, "pre-restart"),
        Signal::PostStop => tape.note(who, "post-stop"),
        Signal::Escalated(info) => {
            tape.count(who, "escalated", info.reason.code().map_or(0, u32::from));
        }
        _ => return Next::Unhandled,
    }
    Next::Stay
}

enum PlantMsg {
    Beaten { at_ms: u32 },
    Pumped { at_ms: u32 },
    ValveGone,
    CellReady,
    Answered { total: u32, at_ms: u32 },
}

/// The reports that the plant waits for first.
#[derive(Default)]
struct Reports {
    beaten_ms: Option<u32>,
    pumped_ms: Option<u32>,
    is_valve_gone: bool,
    is_cell_ready: bool,
}

struct Plant {
    tape: Tape,
    /// `None` after all of them have arrived.
    reports: Option<Reports>,
    now_ms: u32,
    clerk: Option<ActorRef<ClerkMsg>>,
    cell: Option<ActorRef<CellMsg>>,
}

impl Plant {
    fn new(tape: Tape) -> Self {
        let reports = Some(Reports::default());
        Self { tape, reports, now_ms: 0, clerk: None, cell: None }
    }

    /// Continues if all reports have arrived.
    fn join(&mut self) -> Result<Next, Failure> {
        let Some(Reports {
            beaten_ms: Some(beaten_ms),
            pumped_ms: Some(pumped_ms),
            is_valve_gone: true,
            is_cell_ready: true,
        }) = self.reports
        else {
            return Ok(Next::Stay);
        };
        self.reports = None;
        self.now_ms = beaten_ms.max(pumped_ms);
        self.tape.due(Who::Plant, "beaten", beaten_ms);
        self.tape.due(Who::Plant, "pumped", pumped_ms);
        self.tape.note(Who::Plant, "valve gone");
        self.tape.note(Who::Plant, "cell ready");
        let clerk = self.clerk.as_ref().ok_or_else(|| Failure::msg("no clerk"))?;
        clerk.tell(ClerkMsg::Ask { at_ms: self.now_ms })?;
        Ok(Next::Stay)
    }

    fn load(&self) -> Result<Next, Failure> {
        let cell = self.cell.as_ref().ok_or_else(|| Failure::msg("no cell"))?;
        cell.tell(CellMsg::Load { at_ms: self.now_ms })?;
        Ok(Next::Stay)
    }
}

impl Actor for Plant {
    type Msg = PlantMsg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.tape.note(Who::Plant, "started");
        let (me, tape) = (cx.self_ref(), self.tape.clone());
        let gauge = Props::new(move || Gauge { tape: tape.clone(), total: 0 });
        let gauge = small(gauge).supervise(Strategy::restart().limit(3, LONG));
        let gauge = cx.spawn_child("gauge", gauge)?;

        let (tape, plant, samples) = (self.tape.clone(), me.clone(), gauge.clone());
        let metronome = Props::new(move || Metronome {
            tape: tape.clone(),
            plant: plant.clone(),
            gauge: samples.clone(),
            n_beats: 0,
        });
        cx.spawn_child("metronome", small(metronome))?;

        let (tape, plant) = (self.tape.clone(), me.clone());
        let pump =
            Props::new(move || Pump { tape: tape.clone(), plant: plant.clone(), n_strokes: 0 });
        cx.spawn_child("pump", small(pump))?;

        let tape = self.tape.clone();
        let valve = cx.spawn_child("valve", small(Props::new(move || Valve(tape.clone()))))?;
        cx.watch_with(&valve, PlantMsg::ValveGone)?;

        let (tape, plant) = (self.tape.clone(), me.clone());
        let clerk = Props::new(move || Clerk {
            tape: tape.clone(),
            plant: plant.clone(),
            gauge: gauge.clone(),
        });
        self.clerk = Some(cx.spawn_child("clerk", small(clerk))?);

        let tape = self.tape.clone();
        let cell = Props::new(move || Cell { tape: tape.clone(), plant: me.clone(), fuse: None });
        let cell = small(cell).supervise_children(Scope::OneForOne, Strategy::escalate());
        self.cell = Some(cx.spawn_child("cell", cell)?);
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: PlantMsg) -> Result<Next, Failure> {
        match (msg, &mut self.reports) {
            (PlantMsg::Beaten { at_ms }, Some(reports)) => reports.beaten_ms = Some(at_ms),
            (PlantMsg::Pumped { at_ms }, Some(reports)) => reports.pumped_ms = Some(at_ms),
            (PlantMsg::ValveGone, Some(reports)) => reports.is_valve_gone = true,
            (PlantMsg::CellReady, Some(reports)) => reports.is_cell_ready = true,
            (PlantMsg::Answered { total, at_ms }, None) => {
                self.tape.due_count(Who::Plant, "answered", total, at_ms);
                return self.load();
            }
            (PlantMsg::CellReady, None) => {
                self.tape.note(Who::Plant, "cell ready");
                // The fuse fails when its timer fires, so the nominal time advances by the delay of
                // that timer.
                self.now_ms += BLOW_MS;
                return self.load();
            }
            _ => self.tape.note(Who::Plant, "out of turn"),
        }
        self.join()
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        Ok(note_signal(&self.tape, Who::Plant, &signal))
    }
}

struct Beat;

/// Sends beats at a fixed rate.
struct Metronome {
    tape: Tape,
    plant: ActorRef<PlantMsg>,
    gauge: ActorRef<GaugeMsg>,
    n_beats: u32,
}

impl Actor for Metronome {
    type Msg = Beat;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.tape.note(Who::Metronome, "started");
        cx.timers().fixed_rate("beat", ms(BEAT_MS), || Beat)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, Beat: Beat) -> Result<Next, Failure> {
        self.n_beats += 1;
        let (number, at_ms) = (self.n_beats, self.n_beats * BEAT_MS);
        self.tape.due_count(Who::Metronome, "beat", number, at_ms);
        self.gauge.tell(GaugeMsg::Sample { number, at_ms })?;
        if number == BEATS {
            // A late host has more beats pending: after the cancel none of them may arrive.
            let is_cancelled = cx.timers().cancel("beat");
            self.tape.count(Who::Metronome, "cancelled", u32::from(is_cancelled));
            self.plant.tell(PlantMsg::Beaten { at_ms })?;
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        Ok(note_signal(&self.tape, Who::Metronome, &signal))
    }
}

enum GaugeMsg {
    Sample { number: u32, at_ms: u32 },
    Total(ReplyTo<u32>),
}

/// Counts samples; fails at a bad one and restarts at zero.
struct Gauge {
    tape: Tape,
    total: u32,
}

impl Actor for Gauge {
    type Msg = GaugeMsg;

    fn started(&mut self, _cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.tape.note(Who::Gauge, "started");
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: GaugeMsg) -> Result<Next, Failure> {
        match msg {
            GaugeMsg::Sample { number, at_ms } => {
                self.tape.due_count(Who::Gauge, "sample", number, at_ms);
                if number == BAD_SAMPLE {
                    return Err(BAD.failure());
                }
                self.total += 1;
            }
            GaugeMsg::Total(reply_to) => {
                self.tape.count(Who::Gauge, "total", self.total);
                reply_to.reply(self.total);
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        Ok(note_signal(&self.tape, Who::Gauge, &signal))
    }
}

struct Stroke;

/// Strokes with a fixed delay.
struct Pump {
    tape: Tape,
    plant: ActorRef<PlantMsg>,
    n_strokes: u32,
}

impl Actor for Pump {
    type Msg = Stroke;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.tape.note(Who::Pump, "started");
        cx.timers().fixed_delay("stroke", ms(STROKE_MS), || Stroke)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, Stroke: Stroke) -> Result<Next, Failure> {
        self.n_strokes += 1;
        let at_ms = self.n_strokes * STROKE_MS;
        self.tape.due_count(Who::Pump, "stroke", self.n_strokes, at_ms);
        if self.n_strokes == STROKES {
            let is_cancelled = cx.timers().cancel("stroke");
            self.tape.count(Who::Pump, "cancelled", u32::from(is_cancelled));
            self.plant.tell(PlantMsg::Pumped { at_ms })?;
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        Ok(note_signal(&self.tape, Who::Pump, &signal))
    }
}

enum ValveMsg {
    Open,
    TooSoon,
    Close { number: u32 },
}

/// Opens and closes once, then stops.
struct Valve(Tape);

impl Actor for Valve {
    type Msg = ValveMsg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.0.note(Who::Valve, "started");
        cx.timers().single("open", ms(OPEN_MS), ValveMsg::Open)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: ValveMsg) -> Result<Next, Failure> {
        match msg {
            ValveMsg::Open => {
                self.0.due(Who::Valve, "open", OPEN_MS);
                // Already due, so another thread may have fired it before it is cancelled: even
                // then its message must not arrive.
                cx.timers().single("too soon", Duration::ZERO, ValveMsg::TooSoon)?;
                let is_cancelled = cx.timers().cancel("too soon");
                self.0.count(Who::Valve, "cancelled", u32::from(is_cancelled));
                cx.timers().single("close", ms(NEVER_MS), ValveMsg::Close { number: 1 })?;
                cx.timers().single("close", ms(CLOSE_MS), ValveMsg::Close { number: 2 })?;
                Ok(Next::Stay)
            }
            ValveMsg::TooSoon => {
                self.0.note(Who::Valve, "too soon");
                Ok(Next::Stay)
            }
            ValveMsg::Close { number } => {
                self.0.due_count(Who::Valve, "close", number, OPEN_MS + CLOSE_MS);
                Ok(Next::Stop)
            }
        }
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        Ok(note_signal(&self.0, Who::Valve, &signal))
    }
}

enum ClerkMsg {
    Ask { at_ms: u32 },
}

/// Asks the gauge.
struct Clerk {
    tape: Tape,
    plant: ActorRef<PlantMsg>,
    gauge: ActorRef<GaugeMsg>,
}

impl Actor for Clerk {
    type Msg = ClerkMsg;

    fn started(&mut self, _cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.tape.note(Who::Clerk, "started");
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: ClerkMsg) -> Result<Next, Failure> {
        let ClerkMsg::Ask { at_ms } = msg;
        self.tape.due(Who::Clerk, "ask", at_ms);
        let total = self.gauge.ask(GaugeMsg::Total, LONG);
        cx.wait(total, move |me: &mut Self, _cx, total: Result<u32, AskError>| {
            let total = total?;
            me.tape.due_count(Who::Clerk, "answer", total, at_ms);
            me.plant.tell(PlantMsg::Answered { total, at_ms })?;
            Ok(Next::Stay)
        })?;
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        Ok(note_signal(&self.tape, Who::Clerk, &signal))
    }
}

enum CellMsg {
    Load { at_ms: u32 },
}

/// Starts a fuse and escalates its failures.
struct Cell {
    tape: Tape,
    plant: ActorRef<PlantMsg>,
    fuse: Option<ActorRef<FuseMsg>>,
}

impl Actor for Cell {
    type Msg = CellMsg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.tape.note(Who::Cell, "started");
        let tape = self.tape.clone();
        let fuse = Props::new(move || Fuse(tape.clone()));
        self.fuse = Some(cx.spawn_child("fuse", small(fuse))?);
        self.plant.tell(PlantMsg::CellReady)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: CellMsg) -> Result<Next, Failure> {
        let CellMsg::Load { at_ms } = msg;
        self.tape.due(Who::Cell, "load", at_ms);
        let fuse = self.fuse.as_ref().ok_or_else(|| Failure::msg("no fuse"))?;
        fuse.tell(FuseMsg::Load { at_ms })?;
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        Ok(note_signal(&self.tape, Who::Cell, &signal))
    }
}

enum FuseMsg {
    Load { at_ms: u32 },
    Blow { at_ms: u32 },
}

/// Fails after a delay.
struct Fuse(Tape);

impl Actor for Fuse {
    type Msg = FuseMsg;

    fn started(&mut self, _cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.0.note(Who::Fuse, "started");
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: FuseMsg) -> Result<Next, Failure> {
        match msg {
            FuseMsg::Load { at_ms } => {
                self.0.due(Who::Fuse, "load", at_ms);
                let blow = FuseMsg::Blow { at_ms: at_ms + BLOW_MS };
                cx.timers().single("blow", ms(BLOW_MS), blow)?;
                Ok(Next::Stay)
            }
            FuseMsg::Blow { at_ms } => {
                self.0.due(Who::Fuse, "blow", at_ms);
                Err(BLOWN.failure())
            }
        }
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        Ok(note_signal(&self.0, Who::Fuse, &signal))
    }
}

/// Records the failures that were escalated to the root.
struct Sink(Tape);

impl EscalationSink for Sink {
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
        self.0.count(Who::Sink, "failure", info.reason.code().map_or(0, u32::from));
        self.0.count(Who::Sink, "of depth", u32::try_from(info.origin().1.depth()).unwrap_or(0));
        Ok(())
    }
}
