//! An actor that does what its messages say, and notes when it was told what.

use alloc::sync::Arc;
use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, BoxedProps, Context, DeadLetterReason, EventKinds, Failure, Next,
    Props, RootContext, Signal, SystemBuilder, SystemEvent,
};
use clockjack_time::{ManualClock, MonotonicClock, Resolution};

use crate::bench::{self, Log};

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

type Ctx<'c> = Context<'c, ScriptedActor>;
type Deed = dyn FnOnce(&mut Ctx<'_>) -> Result<Next, Failure> + Send;

pub(crate) enum Msg {
    /// Is noted, with the time and the batch.
    Say(&'static str),
    /// Is noted, and takes that many milliseconds.
    Work(&'static str, u64),
    /// Is noted, and ends neither nor begins the wait of a receive time-out.
    Quiet(&'static str),
    Do(Box<Deed>),
    /// As [`Quiet`](Self::Quiet), and does something.
    QuietDo(Box<Deed>),
    Fail,
    Panic,
    Stop,
}

type Start = dyn Fn(&mut Context<'_, ScriptedActor>) -> Result<Next, Failure> + Send + Sync;
type Hook = dyn Fn(&mut Context<'_, ScriptedActor>, &Signal) -> Option<Next> + Send + Sync;

pub(crate) struct ScriptedActor {
    log: Log,
    clock: Arc<ManualClock>,
    start: Arc<Start>,
    hook: Arc<Hook>,
}

impl ScriptedActor {
    fn note(&self, cx: &Context<'_, Self>, text: &str) {
        let at =
            self.clock.now().since(clockjack_time::TimerInstant { ticks: 0, resolution_ns: 1 });
        let batch = match cx.scheduler_batch() {
            Some(batch) if batch.missed_runs > 0 => format!(" x{}", batch.runs),
            Some(_) => " x1".into(),
            None => String::new(),
        };
        self.log.add(format!("{} {text}{batch}", at.as_millis()));
    }
}

impl Actor for ScriptedActor {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        (Arc::clone(&self.start))(cx)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Say(text) | Msg::Quiet(text) => self.note(cx, text),
            Msg::Work(text, n) => {
                self.note(cx, text);
                self.clock.advance(ms(n));
            }
            Msg::Do(deed) | Msg::QuietDo(deed) => return deed(cx),
            Msg::Fail => return Err(Failure::msg("failed")),
            Msg::Panic => panic!("panicked"),
            Msg::Stop => return Ok(Next::Stop),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let next = (Arc::clone(&self.hook))(cx, &signal);
        if let Some(next) = next {
            return Ok(next);
        }
        self.note(cx, &format!("{signal:?}"));
        Ok(Next::Stay)
    }
}

/// A system in virtual time with scripted actors in it.
pub(crate) struct Stage {
    pub(crate) root: RootContext,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) log: Log,
    pub(crate) dead: Log,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(ActorSystem::builder("t"))
    }

    pub(crate) fn with(builder: SystemBuilder) -> Self {
        Self::on(bench::start(builder))
    }

    pub(crate) fn ticking(builder: SystemBuilder, resolution: Resolution) -> Self {
        Self::on(bench::start_ticking(builder, 0, resolution))
    }

    fn on((mut root, clock): (RootContext, Arc<ManualClock>)) -> Self {
        let dead = Log::default();
        let to = dead.clone();
        let listener = root
            .spawn(
                "listener",
                Props::from_fn(move |_: &mut Context<'_, _>, event: SystemEvent| {
                    if let SystemEvent::DeadLetter(letter) = event {
                        to.add(match letter.reason {
                            DeadLetterReason::Stopped => "stopped",
                            DeadLetterReason::MailboxFull => "full",
                            _ => "other",
                        });
                    }
                    Ok(Next::Stay)
                }),
            )
            .unwrap();
        root.system().events().subscribe(EventKinds::DEAD_LETTER, listener);
        root.run_until_idle();
        Self { root, clock, log: Log::default(), dead }
    }

    pub(crate) fn props(
        &self,
        start: impl Fn(&mut Ctx<'_>) -> Result<Next, Failure> + Send + Sync + 'static,
    ) -> BoxedProps<ScriptedActor> {
        self.props_with(start, |_, _| None)
    }

    pub(crate) fn props_with(
        &self,
        start: impl Fn(&mut Ctx<'_>) -> Result<Next, Failure> + Send + Sync + 'static,
        hook: impl Fn(&mut Ctx<'_>, &Signal) -> Option<Next> + Send + Sync + 'static,
    ) -> BoxedProps<ScriptedActor> {
        let (log, clock) = (self.log.clone(), Arc::clone(&self.clock));
        let (start, hook): (Arc<Start>, Arc<Hook>) = (Arc::new(start), Arc::new(hook));
        Props::new(move || ScriptedActor {
            log: log.clone(),
            clock: Arc::clone(&clock),
            start: Arc::clone(&start),
            hook: Arc::clone(&hook),
        })
        .boxed()
    }

    pub(crate) fn scripted_actor(&mut self) -> ActorRef<Msg> {
        let props = self.props(|_| Ok(Next::Stay));
        let scripted_actor = self.root.spawn("a", props).unwrap();
        self.root.run_until_idle();
        scripted_actor
    }

    /// Lets so many milliseconds pass, one by one.
    pub(crate) fn pass(&mut self, n: u64) {
        for _ in 0..n {
            self.clock.advance(ms(1));
            self.root.run_until_idle();
        }
    }

    /// Tells a scripted actor something, and runs until all is quiet.
    pub(crate) fn tell(&mut self, to: &ActorRef<Msg>, msg: Msg) {
        tell(to, msg);
        self.root.run_until_idle();
    }

    /// Lets a scripted actor do something, and runs until all is quiet.
    pub(crate) fn act(
        &mut self,
        to: &ActorRef<Msg>,
        deed: impl FnOnce(&mut Ctx<'_>) -> Result<Next, Failure> + Send + 'static,
    ) {
        self.tell(to, Msg::Do(Box::new(deed)));
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        self.log.take()
    }

    /// So many milliseconds pass, and this is all that was heard until then.
    #[track_caller]
    pub(crate) fn hears_in(&mut self, n: u64, expected: &[&str]) {
        self.pass(n);
        assert_eq!(self.heard(), expected);
    }
}

pub(crate) fn tell(to: &ActorRef<Msg>, msg: Msg) {
    assert!(to.tell(msg).is_ok(), "there is room");
}

pub(crate) fn act(
    to: &ActorRef<Msg>,
    deed: impl FnOnce(&mut Ctx<'_>) -> Result<Next, Failure> + Send + 'static,
) {
    tell(to, Msg::Do(Box::new(deed)));
}
