//! Supervision: error, panic, backoff, watch, root sink.

use std::sync::mpsc;

use clockjack::{
    actor::{EscalationSink, EventKinds, FailureInfo, SystemEvent},
    prelude::*,
};

enum Msg {
    WorkerGone,
    Noticed(SystemEvent),
}

struct Boss {
    /// Receives each failure that the parent was notified of.
    noticed: mpsc::Sender<String>,
}

struct Pager {
    paged: mpsc::Sender<String>,
}

impl Actor for Boss {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let backoff = Backoff::new(Duration::from_millis(1), Duration::from_secs(10));
        let worker = Props::from_fn(|_cx, text: String| match text.parse::<u32>()? {
            0 => panic!("an Err and a panic go the same way"),
            1 => Ok(Next::Stop),
            _ => Ok(Next::Stay),
        })
        .supervise(Strategy::resume().only::<core::num::ParseIntError>())
        .supervise(Strategy::restart().limit(10, Duration::from_secs(60)).backoff(backoff));
        let worker = cx.spawn_child("worker", worker)?;
        cx.watch_with(&worker, Msg::WorkerGone)?;
        let kinds = EventKinds::FAILURE | EventKinds::DEAD_LETTER;
        cx.system().events().subscribe(kinds, cx.self_ref().map(Msg::Noticed));
        for text in ["seven", "0", "1"] {
            worker.tell(text.into())?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::WorkerGone => return Err(Failure::msg("no worker left")),
            Msg::Noticed(SystemEvent::Failure(info)) => {
                self.noticed.send(info.reason.to_string())?
            }
            Msg::Noticed(_) => {}
        }
        Ok(Next::Stay)
    }
}

impl EscalationSink for Pager {
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
        let (_, path) = info.origin();
        // The receiver exists until the end of the test.
        drop(self.paged.send(format!("{path}: {}", info.reason)));
        Ok(())
    }
}

#[test]
fn what_nobody_settles_reaches_the_sink_and_ends_the_system()
-> Result<(), Box<dyn core::error::Error>> {
    let (paged, pages) = mpsc::channel();
    let (noticed, notices) = mpsc::channel();
    let plant = ActorSystem::builder("plant")
        .supervise_users(Scope::AllForOne, Strategy::escalate())
        .escalation(Pager { paged });
    let rt = Runtime::start(plant)?;
    rt.spawn("boss", move || Boss { noticed: noticed.clone() })?;
    let report = rt.run();
    assert!(report.termination.reason.contains("no worker left"), "{}", report.termination.reason);
    assert_eq!(pages.iter().collect::<Vec<_>>(), ["/user/boss: no worker left"]);
    // The stop of the worker may overtake the last notice, but not the first.
    assert!(notices.iter().next().is_none_or(|first| first.contains("invalid digit")));
    Ok(())
}
