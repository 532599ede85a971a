//! The scheduler, as in Pekko.

use std::sync::mpsc;

use clockjack::{
    actor::{DispatcherId, TaskRunPriority},
    prelude::*,
};

const ANY: DispatcherId = DispatcherId::DEFAULT;

#[derive(Clone)]
struct Ping;

/// It has no `Clone`.
enum Odd {
    Tick,
    Ask(ReplyTo<u32>),
}

fn jobs(
    rt: &Runtime,
    pong: &ActorRef<Ping>,
    odd: &ActorRef<Odd>,
) -> Result<(), Box<dyn core::error::Error>> {
    let (s, ms) = (rt.system().scheduler(), Duration::from_millis);
    let once = s.schedule_once(ms(300_000), pong, Ping)?;
    s.with_sender(pong.pid()).schedule_at_fixed_rate(Duration::ZERO, ms(50), pong, Ping)?;
    s.schedule_at_fixed_rate(ms(1), ms(1), &odd.map(|()| Odd::Tick), ())?;
    let guard = s.schedule_with_fixed_delay(ms(90), ms(500), pong, Ping)?;
    let guard = guard.cancel_on_drop();
    let (told, heard) = mpsc::channel();
    s.jobs().schedule_at_fixed_rate_fn(ms(25), ms(25), ANY, move |fire| {
        told.send((fire.late(), fire.batch().missed_runs))
    })?;
    s.jobs()
        .schedule_once_fn(ms(10), ANY, |_| Err(Failure::msg("ends the job, reported once")))?
        .run_on_close();
    assert!(once.cancel() && once.is_cancelled() && !once.cancel());
    s.jobs().register_on_close(|| Ok(()), TaskRunPriority::User)?;
    rt.block_on(s.jobs().delays().delay(ms(20)))?;
    drop(guard);
    heard.recv()?;
    Ok(())
}

#[test]
fn jobs_of_every_kind_are_sent_to_actors() -> Result<(), Box<dyn core::error::Error>> {
    let rt = Runtime::new("jobs")?;
    let (told, heard) = mpsc::channel();
    let pong = Props::from_fn(move |_cx, Ping| {
        told.send(())?;
        Ok(Next::Stay)
    });
    let pong = rt.spawn("pong", pong)?;
    let mut ticks = 0;
    let odd = Props::from_fn(move |_cx, msg: Odd| {
        match msg {
            Odd::Tick => ticks += 1,
            Odd::Ask(reply_to) => reply_to.reply(ticks),
        }
        Ok(Next::Stay)
    });
    let odd = rt.spawn("odd", odd)?;
    jobs(&rt, &pong, &odd)?;
    heard.recv()?;
    while rt.block_on(odd.ask(Odd::Ask, Duration::from_secs(10)))? == 0 {}
    assert!(rt.shutdown(Duration::from_secs(10)).is_clean());
    Ok(())
}
