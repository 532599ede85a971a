//! References behind a function that runs for long: the function delays nobody but its caller.

use core::time::Duration;
use std::{
    sync::mpsc,
    thread::{self, JoinHandle},
};

use clockjack_rt::actor::{Actor, ActorRef, Context, Failure, Mailbox, Next, Props, SendError};

use crate::in_time::ShutdownInTime as _;
use crate::{LONG, eventually::eventually, start};

/// Sends what it is told to a channel.
struct Echo(mpsc::Sender<u32>);

enum Msg {
    Note(u32),
    Stop,
}

impl Actor for Echo {
    type Msg = Msg;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Note(n) => {
                // The test may have seen enough.
                let _ = self.0.send(n);
                Ok(Next::Stay)
            }
            Msg::Stop => Ok(Next::Stop),
        }
    }
}

/// A message whose conversion says that it has begun, and waits until it may end.
struct Slow {
    has_begun: mpsc::Sender<()>,
    may_end: mpsc::Receiver<()>,
}

fn convert(slow: Slow) -> Msg {
    slow.has_begun.send(()).expect("the test waits for it");
    slow.may_end.recv().expect("the test says when");
    Msg::Note(0)
}

/// A thread in the function of a mapped reference, until the returned sender is used.
fn convert_slowly(
    to: &ActorRef<Msg>,
) -> (JoinHandle<Result<(), SendError<Slow>>>, mpsc::Sender<()>) {
    let (has_begun, begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel();
    let mapped = to.map(convert);
    let sender = thread::spawn(move || mapped.tell(Slow { has_begun, may_end }));
    begun.recv_timeout(LONG).expect("there is room, so the function is called");
    (sender, end)
}

fn echo(said: &mpsc::Sender<u32>) -> impl FnMut() -> Echo + Send + 'static {
    let said = said.clone();
    move || Echo(said.clone())
}

#[test]
fn while_the_function_of_a_mapped_reference_runs_the_actor_takes_messages_and_stops() {
    let runtime = start(2);
    let (said, heard) = mpsc::channel();
    let actor = runtime.spawn("a", echo(&said)).unwrap();
    let (sender, end) = convert_slowly(&actor);
    actor.tell(Msg::Note(1)).unwrap();
    assert_eq!(heard.recv_timeout(Duration::from_secs(10)), Ok(1), "the actor was not woken");
    actor.tell(Msg::Stop).unwrap();
    eventually("it stops", || actor.is_stopped());
    let letters_before = runtime.system().metrics().dead_letters_total();
    end.send(()).unwrap();
    assert!(sender.join().unwrap().is_ok(), "a message that was made cannot be returned");
    assert_eq!(runtime.system().metrics().dead_letters_total(), letters_before + 1);
}

#[test]
fn a_shutdown_does_not_wait_for_the_function_of_a_mapped_reference() {
    let runtime = start(2);
    let (said, _heard) = mpsc::channel();
    let actor = runtime.spawn("a", echo(&said)).unwrap();
    let (sender, end) = convert_slowly(&actor);
    let report = runtime.shutdown_in_time(Duration::from_secs(10));
    assert!(report.is_clean(), "{report:?}");
    end.send(()).unwrap();
    assert!(sender.join().unwrap().is_ok());
}

#[test]
fn a_message_that_was_made_is_accepted_although_others_have_taken_the_room() {
    let runtime = start(1);
    let (said, heard) = mpsc::channel();
    let (block, blocked) = mpsc::channel::<()>();
    let (has_begun, begun) = mpsc::channel::<()>();
    let props = Props::new(echo(&said)).mailbox(Mailbox::bounded(2));
    let actor = runtime.spawn("a", props).unwrap();
    // The only worker waits, so that the mailbox fills.
    let mut blocked = Some(blocked);
    let blocker = runtime.spawn("b", move || Blocker(blocked.take())).unwrap();
    blocker.tell(has_begun).unwrap();
    begun.recv_timeout(LONG).expect("the worker takes the message");
    let (sender, end) = convert_slowly(&actor);
    actor.tell(Msg::Note(1)).unwrap();
    actor.tell(Msg::Note(2)).unwrap();
    assert!(actor.tell(Msg::Note(3)).unwrap_err().is_full());
    end.send(()).unwrap();
    assert!(sender.join().unwrap().is_ok());
    assert!(actor.tell(Msg::Note(3)).unwrap_err().is_full());
    drop(block);
    let seen = [(); 3].map(|()| heard.recv_timeout(LONG).unwrap());
    assert_eq!(seen, [1, 2, 0]);
}

/// Waits in its handler until the other end of the channel is dropped.
struct Blocker(Option<mpsc::Receiver<()>>);

impl Actor for Blocker {
    type Msg = mpsc::Sender<()>;

    fn receive(
        &mut self,
        _: &mut Context<'_, Self>,
        has_begun: mpsc::Sender<()>,
    ) -> Result<Next, Failure> {
        has_begun.send(()).expect("the test waits for it");
        if let Some(blocked) = self.0.take() {
            let _ = blocked.recv();
        }
        Ok(Next::Stay)
    }
}
