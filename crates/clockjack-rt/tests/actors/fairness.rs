//! One worker, an actor that is flooded without end by handlers of a millisecond: neither its own
//! timer with priority, nor another actor, nor its timer, nor a stop is held up.
//!
//! A loaded machine makes everything late. So nothing here is measured in time: the bounds are
//! numbers of messages that the flooded actor handles meanwhile, each of which takes a millisecond
//! or, on a loaded machine, more.

use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{
    sync::{Arc, mpsc},
    time::Instant,
};

use crate::in_time::ShutdownInTime as _;
use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{Actor, ActorSystem, Context, Failure, Next},
};
use clockjack_testing::InTime;

/// Reached only by a fault.
const LONG: Duration = Duration::from_secs(60);
/// How long each of the messages takes of which there are always more.
const WORK: Duration = Duration::from_millis(1);
/// How many of them a poll may handle: those of 5 ms, and those until the actor reads the clock.
const PER_POLL_MAX: usize = 8;
/// After which time a timer comes again.
const PERIOD: Duration = Duration::from_millis(10);
/// How many may be handled between two runs of a timer: those of its time, and a poll before its
/// scheduler is asked and one before its actor is.
const PER_TIMER_MAX: usize = 10 + 1 + 2 * PER_POLL_MAX;

enum Msg {
    More,
    Tick,
}

/// How many messages the flooded actor has handled.
type Handled = Arc<AtomicUsize>;

struct Flooded {
    handled: Handled,
    to: mpsc::Sender<(&'static str, usize)>,
}

impl Flooded {
    fn arm(cx: &mut Context<'_, Self>) -> Result<(), Failure> {
        // Without priority it would wait for the messages before it: a thousand of them.
        cx.timers().priority().single("own", PERIOD, Msg::Tick)?;
        Ok(())
    }
}

impl Actor for Flooded {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        Self::arm(cx)?;
        cx.self_ref().tell(Msg::More)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        if let Msg::Tick = msg {
            self.to.send(("own", self.handled.load(SeqCst)))?;
            Self::arm(cx)?;
            return Ok(Next::Stay);
        }
        let begun = Instant::now();
        while begun.elapsed() < WORK {
            core::hint::spin_loop();
        }
        self.handled.fetch_add(1, SeqCst);
        // Two for one: the mailbox fills up and stays full.
        let _ = cx.self_ref().tell(Msg::More);
        let _ = cx.self_ref().tell(Msg::More);
        Ok(Next::Stay)
    }
}

/// Has a timer, and nothing else to do.
struct Timed {
    handled: Handled,
    to: mpsc::Sender<(&'static str, usize)>,
}

impl Actor for Timed {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().single("own", PERIOD, ())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.to.send(("other", self.handled.load(SeqCst)))?;
        self.started(cx)
    }
}

/// Always has one message: runs after each poll of the flooded actor.
struct Neighbour {
    handled: Handled,
    seen: Option<usize>,
    most: Arc<AtomicUsize>,
}

impl Actor for Neighbour {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.self_ref().tell(())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        let handled = self.handled.load(SeqCst);
        if let Some(seen) = self.seen.replace(handled) {
            self.most.fetch_max(handled - seen, SeqCst);
        }
        cx.self_ref().tell(())?;
        Ok(Next::Stay)
    }
}

/// The largest difference between two numbers in a row.
fn largest_step(counts: &[usize]) -> usize {
    counts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}

#[test]
fn a_flooded_actor_holds_up_neither_timers_nor_its_stop() {
    let config = RuntimeConfig { workers: Some(1), ..RuntimeConfig::DEFAULT };
    let rt = InTime::new(
        Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let (to, received) = mpsc::channel();
    let (handled, most) = (Handled::default(), Arc::new(AtomicUsize::new(0)));
    let (count, sender) = (Arc::clone(&handled), to.clone());
    let make = move || Flooded { handled: Arc::clone(&count), to: sender.clone() };
    let flooded = rt.spawn("flooded", make).unwrap();
    let count = Arc::clone(&handled);
    rt.spawn("timed", move || Timed { handled: Arc::clone(&count), to: to.clone() }).unwrap();
    let (count, most_of) = (Arc::clone(&handled), Arc::clone(&most));
    let make =
        move || Neighbour { handled: Arc::clone(&count), seen: None, most: Arc::clone(&most_of) };
    rt.spawn("neighbour", make).unwrap();
    let (mut own, mut other) = (Vec::new(), Vec::new());
    while own.len() < 30 || other.len() < 30 {
        match received.recv_timeout(LONG).expect("timers are not held up for ever") {
            ("own", n) => own.push(n),
            (_, n) => other.push(n),
        }
        let most = most.load(SeqCst);
        assert!(most <= PER_POLL_MAX, "{most} messages in a poll");
    }
    rt.system().stop(&flooded).unwrap();
    let before = handled.load(SeqCst);
    let begun = Instant::now();
    while !flooded.is_stopped() {
        assert!(begun.elapsed() < LONG, "the stop is held up");
        std::thread::yield_now();
    }
    let after_stop = handled.load(SeqCst) - before;
    assert!(after_stop <= PER_POLL_MAX, "{after_stop} messages behind the stop");
    assert!((1..=PER_POLL_MAX).contains(&most.load(SeqCst)), "a poll is counted");
    for (whose, counts) in [("its own", own), ("another actor's", other)] {
        let step = largest_step(&counts);
        assert!(step <= PER_TIMER_MAX, "{step} messages between two runs of {whose} timer");
    }
    assert!(rt.shutdown_in_time(LONG).is_clean());
}
