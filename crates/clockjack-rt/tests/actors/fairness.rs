//! One worker, an actor that is flooded without end by handlers of a millisecond: neither its own
//! timer with priority, nor another actor's timer, nor its stop is held up. The bounds are
//! generous, for the machine may be busy; without fairness none of it would ever come.

use core::time::Duration;
use std::{sync::mpsc, time::Instant};

use crate::in_time::ShutdownInTime as _;
use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{Actor, ActorSystem, Context, Failure, Next},
};

/// By far more than it takes, and by far less than for ever.
const GENEROUS: Duration = Duration::from_secs(5);

enum Msg {
    More,
    Tick,
}

struct Flooded(mpsc::Sender<&'static str>);

impl Actor for Flooded {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        // Without priority it would wait for the messages before it: a thousand of them.
        let mut timers = cx.timers().priority();
        timers.fixed_rate("own", Duration::from_millis(10), || Msg::Tick)?;
        cx.self_ref().tell(Msg::More)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        if let Msg::Tick = msg {
            self.0.send("own")?;
            return Ok(Next::Stay);
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1) {
            core::hint::spin_loop();
        }
        // Two for one: the mailbox fills up and stays full.
        let _ = cx.self_ref().tell(Msg::More);
        let _ = cx.self_ref().tell(Msg::More);
        Ok(Next::Stay)
    }
}

struct Timed(mpsc::Sender<&'static str>);

impl Actor for Timed {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().fixed_rate("own", Duration::from_millis(10), || ())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.0.send("other")?;
        Ok(Next::Stay)
    }
}

#[test]
fn a_flooded_actor_holds_up_neither_timers_nor_its_stop() {
    let config = RuntimeConfig { workers: Some(1), ..RuntimeConfig::DEFAULT };
    let rt = Runtime::start_with(ActorSystem::builder("t"), config).unwrap();
    let (sender, receiver) = mpsc::channel();
    let to = sender.clone();
    let flooded = rt.spawn("flooded", move || Flooded(to.clone())).unwrap();
    rt.spawn("timed", move || Timed(sender.clone())).unwrap();
    let (mut own, mut other) = (0, 0);
    while own < 10 || other < 10 {
        match receiver.recv_timeout(GENEROUS).unwrap() {
            "own" => own += 1,
            _ => other += 1,
        }
    }
    rt.system().stop(&flooded).unwrap();
    let begun = Instant::now();
    while !flooded.is_stopped() {
        assert!(begun.elapsed() < GENEROUS);
        std::thread::yield_now();
    }
    assert!(rt.shutdown_in_time(Duration::from_secs(60)).is_clean());
}
