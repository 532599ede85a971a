//! An actor that records the dead letters and the ask cycles of a system.

use clockjack_actor::{Actor, Context, EventKinds, Failure, Next, RootContext, SystemEvent};

use crate::bench::Log;

struct Listener(Log);

impl Actor for Listener {
    type Msg = SystemEvent;

    fn receive(&mut self, _: &mut Context<'_, Self>, event: SystemEvent) -> Result<Next, Failure> {
        match event {
            SystemEvent::DeadLetter(letter) => {
                let kind = letter.message_type.rsplit("::").next().unwrap();
                self.0.add(format!("{} {} {:?}", letter.recipient, kind, letter.reason));
            }
            SystemEvent::AskCycle(cycle) => {
                let paths: Vec<_> = cycle.paths.iter().map(ToString::to_string).collect();
                self.0.add(format!("cycle {}", paths.join(" ")));
            }
            _ => {}
        }
        Ok(Next::Stay)
    }
}

/// The dead letters and cycles of the system from now on.
pub(crate) fn listen(root: &mut RootContext) -> Log {
    let log = Log::default();
    let to = log.clone();
    let listener = root.spawn("listener", move || Listener(to.clone())).unwrap();
    root.system().events().subscribe(EventKinds::DEAD_LETTER | EventKinds::ASK_CYCLE, listener);
    log
}
