//! Processes on two workers: sent to, cancelled, terminated.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use clockjack_exec::{
    Event, Events, Failure, JoinError, Limits, Payload, Process, ProcessRef, StepOutput,
};
use shuttle::{future::block_on, thread};

use crate::{
    task::Token,
    toolbox::{ModelExecutor, explore},
};

/// What became of the processes of a scene.
#[derive(Default)]
struct Counts {
    received: AtomicUsize,
    closed: AtomicUsize,
}

/// The events of a step. If there is none, a sender may be in the middle of its push: until that is
/// over the step is repeated, and shuttle has to be told that this waits.
fn patient<M>(events: &mut Events<'_, M>) -> impl Iterator<Item = Event<M>> {
    let first = events.next();
    if first.is_none() {
        thread::yield_now();
    }
    first.into_iter().chain(events)
}

enum Hit {
    Meet(ProcessRef<Hit>),
    Ball(u32),
}

/// Sends the ball back with one less, until there is none left or nobody to send it to.
struct Player {
    peer: Option<ProcessRef<Hit>>,
    counts: Arc<Counts>,
}

impl Process for Player {
    type Message = Hit;

    fn step(&mut self, events: &mut Events<'_, Hit>, out: &mut StepOutput) -> Result<(), Failure> {
        out.idle();
        for event in patient(events) {
            match event {
                Event::Message(Hit::Meet(peer)) => self.peer = Some(peer),
                Event::Message(Hit::Ball(left)) => {
                    self.counts.received.fetch_add(1, Relaxed);
                    let Some(peer) = &self.peer else { panic!("the ball came before the peer") };
                    if left == 0 || peer.tell(Hit::Ball(left - 1)).is_err() {
                        peer.cancel("the ball is lost");
                        out.done(Payload::new(()));
                    }
                }
                Event::Cancel { .. } => out.done(Payload::new(())),
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.counts.closed.fetch_add(1, Relaxed);
    }
}

/// A wake on a worker goes into its LIFO slot, and a terminate comes from outside at any time. Each
/// player ends once, and if one is ended from outside the other learns it.
#[test]
fn players_that_wake_each_other_end_once_though_one_is_terminated() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let counts = Arc::new(Counts::default());
        let player = || Player { peer: None, counts: Arc::clone(&counts) };
        let [one, two] =
            [player(), player()].map(|player| executor.handle().submit(player).unwrap());
        one.tell(Hit::Meet(two.clone())).unwrap();
        two.tell(Hit::Meet(one.clone())).unwrap();
        one.tell(Hit::Ball(4)).unwrap();
        let victim = two.clone();
        let terminator = thread::spawn(move || victim.terminate());
        let did = terminator.join().unwrap();
        if did {
            // It may have been ended with the ball in its mailbox, and then nobody has it.
            one.cancel("the other has gone");
        }
        block_on(one.join()).unwrap();
        match block_on(two.join()) {
            Ok(_) => assert!(did || counts.received.load(Relaxed) == 5),
            Err(exit) => assert!(exit.is_terminated() && did, "{exit}"),
        }
        drop((one, two));
        executor.end();
        assert_eq!(counts.closed.load(Relaxed), 2);
    });
}

/// Takes messages, until it is asked to stop or has so many.
struct Sink {
    left: usize,
    counts: Arc<Counts>,
}

impl Process for Sink {
    type Message = Token;

    fn step(
        &mut self,
        events: &mut Events<'_, Token>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        out.idle();
        for event in patient(events) {
            match event {
                Event::Message(token) => {
                    drop(token);
                    self.counts.received.fetch_add(1, Relaxed);
                    self.left -= 1;
                    if self.left == 0 {
                        out.done(Payload::new(()));
                        break;
                    }
                }
                Event::Cancel { .. } => {
                    out.done(Payload::new(()));
                    break;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.counts.closed.fetch_add(1, Relaxed);
    }
}

/// Sends, and gives the number of those that were accepted.
fn send(sink: &ProcessRef<Token>, n: usize, left: &Arc<AtomicUsize>) -> usize {
    (0..n).filter(|_| sink.tell(Token::new(left)).is_ok()).count()
}

#[test]
fn every_message_that_is_accepted_is_received() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let (counts, left) = (Arc::new(Counts::default()), Arc::new(AtomicUsize::new(0)));
        let sink = Sink { left: 4, counts: Arc::clone(&counts) };
        let sink = executor.handle().submit(sink).unwrap();
        let (other, theirs) = (sink.clone(), Arc::clone(&left));
        let sender = thread::spawn(move || send(&other, 2, &theirs));
        assert_eq!(send(&sink, 2, &left), 2);
        assert_eq!(sender.join().unwrap(), 2);
        block_on(sink.join()).unwrap();
        assert_eq!(counts.received.load(Relaxed), 4);
        assert!(sink.tell(Token::new(&left)).is_err());
        drop(sink);
        executor.end();
        assert_eq!(left.load(Relaxed), 0);
    });
}

/// One room in the mailbox, two senders, one that cancels and one that terminates.
#[test]
fn no_message_is_lost_or_doubled_when_its_process_is_ended() {
    explore(|| {
        let executor = ModelExecutor::with(Limits::SMALL.messages(2));
        let (counts, left) = (Arc::new(Counts::default()), Arc::new(AtomicUsize::new(0)));
        let sink = Sink { left: usize::MAX, counts: Arc::clone(&counts) };
        let sink = executor.handle().submit(sink).unwrap();
        let (other, theirs) = (sink.clone(), Arc::clone(&left));
        let sender = thread::spawn(move || send(&other, 3, &theirs));
        let other = sink.clone();
        let terminator = thread::spawn(move || other.terminate());
        let accepted = send(&sink, 1, &left);
        let cancelled = sink.cancel("enough");
        let result = block_on(sink.join());
        let accepted = accepted + sender.join().unwrap();
        let terminated = terminator.join().unwrap();
        match result {
            Ok(_) => assert!(cancelled),
            Err(exit) => assert!(exit.is_terminated() && terminated, "{exit}"),
        }
        assert!(block_on(sink.join()).is_err_and(|exit: JoinError| exit.is_already_joined()));
        assert!(counts.received.load(Relaxed) <= accepted);
        assert_eq!(counts.closed.load(Relaxed), 1);
        drop(sink);
        executor.end();
        // Received, refused, or dropped with the process: each once.
        assert_eq!(left.load(Relaxed), 0);
    });
}
