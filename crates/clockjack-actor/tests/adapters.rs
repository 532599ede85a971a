//! Message adapters: state, failures, restarts, refusals.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;

use alloc::sync::Arc;
use std::sync::Mutex;

use bench::{Log, start};
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, EventKinds, Failure, Foreign, Mailbox, Next, Props,
    Signal, Strategy, SystemEvent, failure_info::Panicked,
};

enum Msg {
    Number(u32),
    Foreign(Foreign),
    /// Registers another adapter for text.
    Replace,
    Fail,
}

impl From<Foreign> for Msg {
    fn from(foreign: Foreign) -> Self {
        Msg::Foreign(foreign)
    }
}

type Given = Arc<Mutex<Option<ActorRef<&'static str>>>>;

struct Adder {
    log: Log,
    given: Given,
    registers: bool,
    handles_failures: bool,
}

impl Actor for Adder {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        if self.registers {
            let mut n_texts = 0;
            let text = cx.message_adapter(move |text: &'static str| {
                n_texts += 100;
                Msg::Number(n_texts + text.parse::<u32>().unwrap())
            });
            self.given.lock().unwrap().get_or_insert(text);
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Number(n) => self.log.add(n.to_string()),
            Msg::Foreign(foreign) => {
                if let Some(msg) = cx.adapt(foreign) {
                    return self.receive(cx, msg);
                }
            }
            Msg::Replace => drop(cx.message_adapter(|text: &'static str| {
                Msg::Number(u32::try_from(text.len()).unwrap())
            })),
            Msg::Fail => {
                self.registers = false;
                return Err(Failure::msg("failed"));
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::AdapterFailed(failure) if self.handles_failures => {
                assert!(failure.downcast_ref::<Panicked>().is_some());
                self.log.add("adapter failed");
                Ok(Next::Stay)
            }
            Signal::PreRestart => {
                self.log.add("restart");
                Ok(Next::Stay)
            }
            _ => Ok(Next::Unhandled),
        }
    }
}

fn adder(log: &Log, given: &Given, handles_failures: bool) -> impl FnMut() -> Adder + Send + use<> {
    let (log, given) = (log.clone(), Given::clone(given));
    let mut n_made = 0;
    move || {
        n_made += 1;
        let (log, given) = (log.clone(), Given::clone(&given));
        Adder { log, given, registers: n_made != 2, handles_failures }
    }
}

fn text_of(given: &Given) -> ActorRef<&'static str> {
    given.lock().unwrap().clone().unwrap()
}

#[test]
fn an_adapter_keeps_its_state_and_the_order_of_the_mailbox() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, given) = (Log::default(), Given::default());
    let actor = root.spawn("a", adder(&log, &given, false)).unwrap();
    root.run_until_idle();
    let text = text_of(&given);
    assert_eq!(text.pid(), actor.pid());
    actor.tell(Msg::Number(1)).unwrap();
    text.tell("2").unwrap();
    actor.tell(Msg::Number(3)).unwrap();
    text.tell("4").unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["1", "102", "3", "204"]);
}

#[test]
fn the_last_adapter_for_a_type_counts_also_for_older_addresses() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, given) = (Log::default(), Given::default());
    let actor = root.spawn("a", adder(&log, &given, false)).unwrap();
    root.run_until_idle();
    actor.tell(Msg::Replace).unwrap();
    text_of(&given).tell("12345").unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["5"]);
}

#[test]
fn a_failing_adapter_is_a_signal_that_may_be_handled() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, given) = (Log::default(), Given::default());
    let actor = root.spawn("a", adder(&log, &given, true)).unwrap();
    root.run_until_idle();
    let text = text_of(&given);
    text.tell("no number").unwrap();
    actor.tell(Msg::Number(1)).unwrap();
    text.tell("2").unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["adapter failed", "1", "202"]);
}

#[test]
fn a_failing_adapter_fails_an_actor_that_does_not_care() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, given) = (Log::default(), Given::default());
    // Only for panics: the failure keeps its type.
    let props =
        Props::new(adder(&log, &given, false)).supervise(Strategy::restart().only::<Panicked>());
    let actor = root.spawn("a", props).unwrap();
    root.run_until_idle();
    text_of(&given).tell("no number").unwrap();
    actor.tell(Msg::Number(1)).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["restart", "1"]);
}

#[test]
fn a_restart_forgets_adapters_and_what_comes_for_them_is_unhandled() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, given) = (Log::default(), Given::default());
    let to = log.clone();
    let events = root
        .spawn(
            "events",
            Props::from_fn(move |_, event: SystemEvent| {
                if let SystemEvent::Unhandled(unhandled) = event {
                    to.add(format!("{} unhandled", unhandled.message_type));
                }
                Ok(Next::Stay)
            }),
        )
        .unwrap();
    root.system().events().subscribe(EventKinds::UNHANDLED, events);
    let props = Props::new(adder(&log, &given, false)).supervise(Strategy::restart());
    let actor = root.spawn("a", props).unwrap();
    root.run_until_idle();
    // The second value registers none, the third does.
    actor.tell(Msg::Fail).unwrap();
    text_of(&given).tell("1").unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["restart", "&str unhandled"]);
    actor.tell(Msg::Fail).unwrap();
    text_of(&given).tell("1").unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["restart", "101"]);
}

#[test]
fn what_a_full_mailbox_refuses_comes_back_as_it_was() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, given) = (Log::default(), Given::default());
    let props = Props::new(adder(&log, &given, false)).mailbox(Mailbox::bounded(1));
    let actor = root.spawn("a", props).unwrap();
    root.run_until_idle();
    actor.tell(Msg::Number(1)).unwrap();
    let refused = text_of(&given).tell("2").unwrap_err();
    assert!(refused.is_full());
    assert_eq!(refused.into_inner(), "2");
    root.run_until_idle();
    assert_eq!(log.take(), ["1"]);
}
