//! An actor that executes closures of a test, and records what it receives.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Mutex;

use clockjack_actor::{
    Actor, ActorRef, Context, Failure, FailureInfo, Next, Props, RootContext, Signal, SystemEvent,
};

use crate::bench::Log;

pub(crate) type Cx<'c> = Context<'c, ScriptedActor>;
type Act = Box<dyn FnOnce(&mut ScriptedActor, &mut Cx<'_>) -> Result<Next, Failure> + Send>;
type OnStarted = Box<dyn FnMut(&mut ScriptedActor, &mut Cx<'_>) -> Result<Next, Failure> + Send>;
type OnSignal = Box<dyn FnMut(&mut ScriptedActor, &mut Cx<'_>, &Signal) -> Option<Next> + Send>;

pub(crate) struct ScriptedActor {
    pub(crate) log: Log,
    /// The number of this value of the factory, starting with one.
    pub(crate) born: u32,
    pub(crate) state: u32,
    plan: Plan,
    name: String,
}

pub(crate) enum Msg {
    Say(&'static str),
    /// Recorded with the number of the value that handles it.
    Born,
    Fail,
    Panic,
    Stop,
    Do(Act),
}

/// The behaviour of a scripted actor, shared with the test.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    births: Arc<AtomicU32>,
    started: Arc<Mutex<Option<OnStarted>>>,
    signal: Arc<Mutex<Option<OnSignal>>>,
}

impl Plan {
    pub(crate) fn started(
        self,
        act: impl FnMut(&mut ScriptedActor, &mut Cx<'_>) -> Result<Next, Failure> + Send + 'static,
    ) -> Self {
        *self.started.lock().unwrap() = Some(Box::new(act));
        self
    }

    /// The answer to a signal; `None` for the default.
    pub(crate) fn signal(
        self,
        act: impl FnMut(&mut ScriptedActor, &mut Cx<'_>, &Signal) -> Option<Next> + Send + 'static,
    ) -> Self {
        *self.signal.lock().unwrap() = Some(Box::new(act));
        self
    }

    pub(crate) fn props(
        &self,
        log: &Log,
    ) -> Props<ScriptedActor, impl FnMut() -> ScriptedActor + Send + use<>> {
        let (plan, log) = (self.clone(), log.clone());
        Props::new(move || plan.scripted_actor(&log))
    }

    pub(crate) fn scripted_actor(&self, log: &Log) -> ScriptedActor {
        ScriptedActor {
            log: log.clone(),
            born: self.births.fetch_add(1, Relaxed) + 1,
            state: 0,
            plan: self.clone(),
            name: String::new(),
        }
    }

    /// How often the factory was called.
    pub(crate) fn births(&self) -> u32 {
        self.births.load(Relaxed)
    }
}

pub(crate) fn props(
    log: &Log,
) -> Props<ScriptedActor, impl FnMut() -> ScriptedActor + Send + use<>> {
    Plan::default().props(log)
}

/// Wraps a closure for the scripted actor.
pub(crate) fn act(
    act: impl FnOnce(&mut ScriptedActor, &mut Cx<'_>) -> Result<Next, Failure> + Send + 'static,
) -> Msg {
    Msg::Do(Box::new(act))
}

/// Sends the scripted actor a message, and runs until the system is idle.
pub(crate) fn run(
    root: &mut RootContext,
    scripted_actor: &ActorRef<Msg>,
    what: impl FnOnce(&mut ScriptedActor, &mut Cx<'_>) -> Result<Next, Failure> + Send + 'static,
) {
    scripted_actor.tell(act(what)).unwrap();
    root.run_until_idle();
}

impl ScriptedActor {
    pub(crate) fn say(&self, text: impl AsRef<str>) {
        self.log.add(format!("{} {}", self.name, text.as_ref()));
    }
}

impl Actor for ScriptedActor {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Cx<'_>) -> Result<Next, Failure> {
        let path = cx.path().to_string();
        self.name = path.strip_prefix("/user/").unwrap_or(&path).to_owned();
        self.say("started");
        let shared = Arc::clone(&self.plan.started);
        let mut hook = shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        hook.as_mut().map_or(Ok(Next::Stay), |hook| hook(self, cx))
    }

    fn receive(&mut self, cx: &mut Cx<'_>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Say(text) => self.say(text),
            Msg::Born => self.say(format!("is {}", self.born)),
            Msg::Fail => return Err(Failure::msg("failed")),
            Msg::Panic => panic!("panicked"),
            Msg::Stop => return Ok(Next::Stop),
            Msg::Do(act) => return act(self, cx),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Cx<'_>, signal: Signal) -> Result<Next, Failure> {
        let shared = Arc::clone(&self.plan.signal);
        let mut hook = shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let next = hook.as_mut().and_then(|hook| hook(self, cx, &signal));
        let text = match &signal {
            Signal::Terminated(end) => match &end.failure {
                Some(failure) => format!("sees {} end by: {failure}", end.path.name()),
                None => format!("sees {} end", end.path.name()),
            },
            Signal::ChildFailed(info) => format!("hears that {}", short(info)),
            Signal::Escalated(info) => format!("is left with {}", short(info)),
            other => format!("{other:?}"),
        };
        self.say(text);
        Ok(next.unwrap_or(Next::Stay))
    }
}

/// The failure in a few words: the responsible actor, the decision, the origin.
pub(crate) fn short(info: &FailureInfo) -> String {
    let directive = info.directive.map_or("?".to_owned(), |directive| directive.to_string());
    format!("{} {directive} ({} of {})", info.path, info.reason, info.origin().1)
}

/// An actor that records all events of some kinds.
pub(crate) fn events(
    root: &mut RootContext,
    kinds: clockjack_actor::EventKinds,
    log: &Log,
) -> ActorRef<SystemEvent> {
    let log = log.clone();
    let props = Props::from_fn(move |_, event: SystemEvent| {
        log.add(match event {
            SystemEvent::Failure(info) => short(&info),
            SystemEvent::DeadLetter(letter) => {
                format!("dead letter for {}: {}", letter.recipient, letter.reason)
            }
            SystemEvent::Straggler(path) => format!("{path} does not stop"),
            SystemEvent::Lifecycle(life) => format!("{} {:?}", life.path, life.step),
            SystemEvent::Unhandled(unhandled) => format!("unhandled by {}", unhandled.path),
            other => format!("{other:?}"),
        });
        Ok(Next::Stay)
    })
    .mailbox(clockjack_actor::Mailbox::unbounded());
    let to = root.spawn("events", props).unwrap();
    root.system().events().subscribe(kinds, to.clone());
    root.run_until_idle();
    to
}
