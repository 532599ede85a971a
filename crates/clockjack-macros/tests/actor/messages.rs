//! The code that `#[actor]` generates: each form of method is sent, handled and answered.

use core::{future::ready, time::Duration};

use clockjack_macros::actor;

use crate::stub::{ActorRef, Context, Failure, Next, ReplyTo, Signal, Stage};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Counter {
    n: u64,
    pending: Vec<ReplyTo<u64>>,
    log: Vec<&'static str>,
}

#[actor(crate = crate::stub)]
impl Counter {
    const LIMIT: u64 = 100;

    fn limited(n: u64) -> Self {
        Counter { n: n.min(Self::LIMIT), ..Self::default() }
    }

    /// Increments the count.
    #[msg]
    fn inc(&mut self, by: u32) {
        self.n += u64::from(by);
        self.log.push("inc");
    }

    #[msg]
    fn reset(&mut self) {
        self.n = 0;
    }

    #[msg]
    #[control]
    fn urgent(&mut self) {
        self.log.push("urgent");
    }

    // No unused warning here: the result of handling is not used. Sending is tested below.
    #[msg]
    #[deprecated(note = "it was never fast")]
    fn faster(&mut self) {
        self.n += 10;
    }

    #[msg]
    fn finish(&mut self) -> Next {
        Next::Stop
    }

    #[msg]
    fn check(&self, at_most: u64) -> Result<(), Failure> {
        if self.n <= at_most { Ok(()) } else { Err(Failure(format!("{} is too many", self.n))) }
    }

    #[msg]
    fn finish_at(&self, n: u64) -> Result<Next, Failure> {
        Ok(if self.n == n { Next::Stop } else { Next::Stay })
    }

    #[msg]
    fn inc_again(&mut self, cx: &mut Context<'_, Self>, mut times: u32) {
        times -= 1;
        self.n += 1;
        if times > 0 {
            cx.self_ref().inc_again(times).unwrap();
        }
    }

    /// The count.
    #[ask]
    fn get(&self) -> u64 {
        self.n
    }

    #[ask]
    fn flush(&mut self) {
        self.log.clear();
    }

    #[ask]
    fn divide(&self, by: u64, twice: bool) -> Result<u64, String> {
        let n = self.n.checked_div(by).ok_or("by zero")?;
        Ok(if twice { n / by } else { n })
    }

    #[ask]
    fn next(&mut self, reply_to: ReplyTo<u64>, _hint: u8) -> Next {
        self.pending.push(reply_to);
        Next::Unhandled
    }

    #[msg]
    fn answer_all(&mut self) {
        for reply_to in self.pending.drain(..) {
            reply_to.reply(self.n);
        }
    }

    #[msg]
    async fn inc_slowly(&mut self, by: u64) -> Result<(), Failure> {
        if by > Self::LIMIT {
            return Err(Failure("too far".to_owned()));
        }
        self.n += ready(by).await;
        Ok(())
    }

    #[ask]
    async fn get_slowly(&mut self, plus: u64) -> u64 {
        ready(self.n + plus).await
    }

    #[ask]
    async fn get_later(&mut self, reply_to: ReplyTo<u64>) {
        reply_to.reply(ready(self.n).await);
    }

    #[started]
    fn on_start(&mut self, _cx: &mut Context<'_, Self>) {
        self.log.push("started");
    }

    #[signal]
    fn on_signal(&mut self, signal: Signal) -> Next {
        match signal {
            Signal::PostStop => self.log.push("stopped"),
        }
        Next::Stay
    }
}

fn counter() -> (Stage<Counter>, ActorRef<CounterMsg>) {
    let stage = Stage::new(Counter::default());
    let target = stage.target.clone();
    (stage, target)
}

#[test]
fn a_message_calls_its_method() {
    let (mut stage, target) = counter();
    target.inc(2).unwrap();
    target.tell(CounterMsg::Inc { by: 3 }).unwrap();
    stage.run();
    assert_eq!(stage.actor.n, 5);
    target.tell(CounterMsg::Reset).unwrap();
    stage.run();
    assert_eq!(stage.actor.n, 0);
}

#[test]
#[expect(deprecated, reason = "that there is a warning is what is tested")]
fn sending_a_deprecated_message_is_warned_of() {
    let (mut stage, target) = counter();
    target.faster().unwrap();
    stage.run();
    assert_eq!(stage.actor.n, 10);
}

#[test]
fn a_refused_message_comes_back() {
    let (mut stage, target) = counter();
    stage.stop();
    let refused = target.inc(7).unwrap_err().0;
    assert!(matches!(refused, CounterMsg::Inc { by: 7 }), "{refused:?}");
    let refused = target.urgent().unwrap_err().0;
    assert!(matches!(refused, CounterMsg::Urgent), "{refused:?}");
}

#[test]
fn an_ask_is_answered_by_what_the_method_returns() {
    let (mut stage, target) = counter();
    target.inc(12).unwrap();
    let (get, flush) = (target.get(SECOND), target.flush(2 * SECOND));
    assert_eq!((get.timeout, flush.timeout), (SECOND, 2 * SECOND));
    assert_eq!(get.answer(), None);
    stage.run();
    assert_eq!(get.answer(), Some(12));
    assert_eq!(flush.answer(), Some(()));
}

#[test]
fn a_result_is_answered_as_it_is() {
    let (mut stage, target) = counter();
    target.inc(12).unwrap();
    let answers = [target.divide(0, false, SECOND), target.divide(2, true, SECOND)];
    stage.run();
    assert_eq!(answers[0].answer(), Some(Err("by zero".to_owned())));
    assert_eq!(answers[1].answer(), Some(Ok(3)));
}

#[test]
fn an_ask_with_reply_to_is_answered_later_and_says_what_is_next() {
    let (mut stage, target) = counter();
    let next = target.next(1, SECOND);
    assert_eq!(stage.handle(), Some(Ok(Next::Unhandled)));
    assert_eq!(next.answer(), None);
    assert!(!next.is_abandoned());
    target.inc(4).unwrap();
    target.answer_all().unwrap();
    stage.run();
    assert_eq!(next.answer(), Some(4));
}

#[test]
fn what_a_handler_returns_is_what_the_actor_does_next() {
    let (mut stage, target) = counter();
    target.finish().unwrap();
    assert_eq!(stage.handle(), Some(Ok(Next::Stop)));
    target.inc(3).unwrap();
    target.check(3).unwrap();
    stage.run();
    target.check(2).unwrap();
    assert_eq!(stage.handle(), Some(Err(Failure("3 is too many".to_owned()))));
    target.finish_at(2).unwrap();
    assert_eq!(stage.handle(), Some(Ok(Next::Stay)));
    target.finish_at(3).unwrap();
    assert_eq!(stage.handle(), Some(Ok(Next::Stop)));
}

#[test]
fn a_handler_gets_the_context_if_it_takes_it() {
    let (mut stage, target) = counter();
    target.inc_again(3).unwrap();
    stage.run();
    assert_eq!(stage.actor.n, 3);
}

#[test]
fn a_control_message_goes_first() {
    let (mut stage, target) = counter();
    target.inc(1).unwrap();
    target.urgent().unwrap();
    stage.run();
    assert_eq!(stage.actor.log, ["urgent", "inc"]);
}

#[test]
fn an_async_message_borrows_the_actor_until_it_is_done() {
    let (mut stage, target) = counter();
    target.inc_slowly(9).unwrap();
    stage.run();
    assert_eq!(stage.actor.n, 9);
    target.inc_slowly(Counter::LIMIT + 1).unwrap();
    assert_eq!(stage.handle(), Some(Err(Failure("too far".to_owned()))));
}

#[test]
fn an_async_ask_answers_when_it_is_done() {
    let mut stage = Stage::new(Counter::limited(5));
    let target = stage.target.clone();
    let (slowly, later) = (target.get_slowly(1, SECOND), target.get_later(SECOND));
    stage.run();
    assert_eq!(slowly.answer(), Some(6));
    assert_eq!(later.answer(), Some(5));
}

#[test]
fn an_ask_of_a_stopped_actor_is_abandoned() {
    let (mut stage, target) = counter();
    stage.stop();
    assert!(target.get(SECOND).is_abandoned());
}

#[test]
fn hooks_are_called_by_any_name() {
    let (mut stage, _) = counter();
    assert_eq!(stage.start(), Ok(Next::Stay));
    assert_eq!(stage.signal(Signal::PostStop), Ok(Next::Stay));
    assert_eq!(stage.actor.log, ["started", "stopped"]);
}

#[test]
fn a_message_is_shown_by_its_name_alone() {
    assert_eq!(format!("{:?}", CounterMsg::Inc { by: 1 }), "Inc");
    assert_eq!(format!("{:?}", CounterMsg::AnswerAll), "AnswerAll");
}
