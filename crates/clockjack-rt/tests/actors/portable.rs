//! The same actors on a runtime and on one thread.

use core::num::ParseIntError;
use std::sync::mpsc;

use clockjack_rt::actor::{
    Actor, ActorRef, ActorSystem, Context, Failure, Next, Props, RootContext, Signal, Strategy,
};
use clockjack_testing::toolbox::ByHand;
use clockjack_time::Resolution;

use crate::{Log, start};

/// Adds up what its child reads.
struct Boss {
    log: Log,
    child: Option<ActorRef<String>>,
    sender: mpsc::Sender<()>,
}

enum Msg {
    Read(&'static str),
    Done,
}

struct Reader(Log);

impl Actor for Reader {
    type Msg = String;

    fn receive(&mut self, _: &mut Context<'_, Self>, text: String) -> Result<Next, Failure> {
        match text.parse::<u32>()? {
            0 => panic!("zero"),
            1 => Ok(Next::Stop),
            n => {
                self.0.add(format!("read {n}"));
                Ok(Next::Stay)
            }
        }
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        self.0.add(format!("reader {signal:?}"));
        Ok(Next::Stay)
    }
}

impl Actor for Boss {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let log = self.log.clone();
        let props = Props::new(move || Reader(log.clone()))
            .supervise(Strategy::resume().only::<ParseIntError>())
            .supervise(Strategy::restart());
        let child = cx.spawn_child("reader", props)?;
        cx.watch_with(&child, Msg::Done)?;
        self.child = Some(child);
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match (msg, &self.child) {
            (Msg::Read(text), Some(child)) => child.tell(text.into())?,
            _ => {
                self.log.add("done");
                self.sender.send(())?;
            }
        }
        Ok(Next::Stay)
    }
}

const TEXTS: [&str; 6] = ["2", "x", "3", "0", "4", "1"];

#[test]
fn the_same_actors_do_the_same_on_threads_and_on_one_thread() {
    let on_one = Log::default();
    let (sender, receiver) = mpsc::channel();
    let (bench, _clock) = ByHand::new(Resolution::MILLI);
    let mut root = RootContext::new(bench, ActorSystem::builder("t")).unwrap();
    let log = on_one.clone();
    let make = move || Boss { log: log.clone(), child: None, sender: sender.clone() };
    let boss = root.spawn("boss", make).unwrap();
    TEXTS.iter().for_each(|text| boss.tell(Msg::Read(text)).unwrap());
    root.run_until_idle();
    receiver.try_recv().unwrap();

    let on_threads = Log::default();
    let (sender, receiver) = mpsc::channel();
    let runtime = start(2);
    let log = on_threads.clone();
    let make = move || Boss { log: log.clone(), child: None, sender: sender.clone() };
    let boss = runtime.spawn("boss", make).unwrap();
    TEXTS.iter().for_each(|text| boss.tell(Msg::Read(text)).unwrap());
    receiver.recv_timeout(crate::LONG).unwrap();

    let expected = ["read 2", "read 3", "reader PreRestart", "read 4", "reader PostStop", "done"];
    assert_eq!(on_one.lines(), expected);
    assert_eq!(on_threads.lines(), expected);
}

#[test]
fn one_thread_has_no_dispatchers_and_says_so() {
    let (bench, _clock) = ByHand::new(Resolution::MILLI);
    let root = RootContext::new(bench, ActorSystem::builder("t")).unwrap();
    assert!(root.system().create_pinned("p").unwrap_err().is_unsupported());
    let refused = root.system().create_dispatcher("d", 1).unwrap_err();
    assert!(refused.is_unsupported());
    assert!(refused.to_string().ends_with("this platform has no threads for d"), "{refused}");
}
