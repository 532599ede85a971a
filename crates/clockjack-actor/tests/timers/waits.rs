//! A run of the scheduler whose handler begins a wait is complete when that is over.

use core::time::Duration;

use alloc::sync::Arc;

use clockjack_actor::{Actor, ActorRef, Context, Failure, Next, Props, Strategy};
use clockjack_time::{ManualClock, MonotonicClock};

use crate::{
    bench::Log,
    scripted_actor::{Stage, ms},
};

/// Waits for a while in each handler.
struct Waiter {
    log: Log,
    clock: Arc<ManualClock>,
}

#[derive(Clone)]
enum Msg {
    Timer(u64),
    Lend(u64),
    Chain,
    Panic,
    Say(&'static str),
}

impl Waiter {
    fn note(&self, cx: &Context<'_, Self>, text: &str) {
        let batch = if cx.scheduler_batch().is_some() { " in a run" } else { "" };
        self.log.add(format!("{} {text}{batch}", self.clock.now().ticks));
    }
}

impl Actor for Waiter {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        let sleep =
            |cx: &Context<'_, Self>, n| cx.system().scheduler().jobs().delays().delay(ms(n));
        match msg {
            Msg::Timer(n) => {
                self.note(cx, "begins");
                let delay = sleep(cx, n);
                cx.wait(delay, |me, cx, _| {
                    me.note(cx, "ends");
                    Ok(Next::Stay)
                })?;
            }
            Msg::Lend(n) => {
                self.note(cx, "begins");
                let delay = sleep(cx, n);
                cx.wait_mut(move |me| {
                    Box::pin(async move {
                        let _ = delay.await;
                        me.log.add("ends");
                        Ok(Next::Stay)
                    })
                })?;
            }
            Msg::Chain => {
                self.note(cx, "begins");
                let (one, two) = (sleep(cx, 3), sleep(cx, 7));
                cx.wait(one, |_, cx, _| {
                    cx.wait(two, |me, cx, _| {
                        me.note(cx, "ends");
                        Ok(Next::Stay)
                    })?;
                    Ok(Next::Stay)
                })?;
            }
            Msg::Panic => {
                self.note(cx, "begins");
                let delay = sleep(cx, 4);
                cx.wait(delay, |_, _, _| -> Next { panic!("behind the wait") })?;
            }
            Msg::Say(text) => self.note(cx, text),
        }
        Ok(Next::Stay)
    }
}

fn waiter(stage: &mut Stage) -> ActorRef<Msg> {
    let (log, clock) = (stage.log.clone(), Arc::clone(&stage.clock));
    let props = Props::new(move || Waiter { log: log.clone(), clock: Arc::clone(&clock) });
    let waiter = stage.root.spawn("waiter", props.supervise(Strategy::resume())).unwrap();
    stage.root.run_until_idle();
    waiter
}

fn every(stage: &Stage, delay: Duration, to: &ActorRef<Msg>, msg: Msg) {
    let jobs = stage.root.system().scheduler();
    jobs.schedule_with_fixed_delay(delay, delay, to, msg).unwrap();
}

#[test]
fn a_fixed_delay_counts_from_the_end_of_the_wait() {
    for (msg, ends) in [(Msg::Timer(5), ["15 ends", "30 ends"]), (Msg::Lend(5), ["ends", "ends"])] {
        let mut stage = Stage::new();
        let waiter = waiter(&mut stage);
        every(&stage, ms(10), &waiter, msg);
        stage.pass(44);
        assert_eq!(
            stage.heard(),
            ["10 begins in a run", ends[0], "25 begins in a run", ends[1], "40 begins in a run"]
        );
    }
}

#[test]
fn a_wait_behind_a_wait_is_waited_for_too() {
    let mut stage = Stage::new();
    let waiter = waiter(&mut stage);
    every(&stage, ms(10), &waiter, Msg::Chain);
    stage.hears_in(30, &["10 begins in a run", "17 ends", "27 begins in a run"]);
}

#[test]
fn a_panic_behind_the_wait_completes_the_run() {
    let mut stage = Stage::new();
    let waiter = waiter(&mut stage);
    every(&stage, ms(10), &waiter, Msg::Panic);
    stage.hears_in(25, &["10 begins in a run", "24 begins in a run"]);
}

#[test]
fn a_run_that_comes_in_a_wait_completes_by_itself() {
    let mut stage = Stage::new();
    let waiter = waiter(&mut stage);
    every(&stage, ms(10), &waiter, Msg::Timer(30));
    stage.pass(12);
    waiter.tell_control(Msg::Say("control")).unwrap();
    waiter.tell(Msg::Say("user")).unwrap();
    stage.hears_in(30, &["10 begins in a run", "13 control", "40 ends", "40 user"]);
    stage.hears_in(8, &["50 begins in a run"]);
}
