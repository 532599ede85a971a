//! Time as messages: one-shot, periodic, replaced and cancelled timers, receive time-out.
//!
//! `cargo run --example timers`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use clockjack::prelude::*;

/// Short, so that the example runs quickly; a minute works as well.
const MOMENT: Duration = Duration::from_millis(10);

enum Msg {
    Beat,
    Alarm(&'static str),
}

#[derive(Default)]
struct Watchman {
    beats: u32,
}

impl Actor for Watchman {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let mut timers = cx.timers();
        // One timer per key: a new one replaces the old one, whose message never arrives.
        timers.single("alarm", MOMENT, Msg::Alarm("the first"))?;
        timers.single("alarm", 2 * MOMENT, Msg::Alarm("the second"))?;

        // A cancel is final, even if the message is already in the mailbox.
        timers.single("false alarm", MOMENT, Msg::Alarm("a false one"))?;
        println!("cancelled: {}", timers.cancel("false alarm"));
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Alarm(which) => {
                println!("alarm: {which}");
                // A fixed rate does not drift: beat n is due n moments from now. If a slow handler
                // misses beats, `cx.scheduler_batch()` of the next beat has their number.
                cx.timers().fixed_rate("beat", MOMENT, || Msg::Beat)?;
            }
            Msg::Beat => {
                self.beats += 1;
                println!("beat {}", self.beats);
                if self.beats == 3 {
                    cx.timers().cancel("beat");
                    cx.set_receive_timeout(MOMENT);
                }
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::ReceiveTimeout => {
                println!("nobody calls: good night");
                Ok(Next::Stop) // this also cancels its timers
            }
            _ => Ok(Next::Unhandled),
        }
    }
}

fn main() -> Result<(), Failure> {
    let rt = Runtime::new("night")?;
    let watchman = rt.spawn("watchman", Watchman::default)?;
    rt.block_on(rt.system().when_stopped(&watchman));
    Ok(())
}
