//! An interrupt that sends to a full mailbox, while the program that it interrupts publishes events
//! itself, and holds the locks that the interrupt meets. The output is compared with
//! `golden/interrupt.txt`.
//!
//! The interrupt's message is refused and becomes a dead letter, and so an event for two
//! subscribers: one that is slow, and one that takes nothing and whose backlog therefore evicts.
//! The interrupt must not wait for a lock, must not allocate, and must not free what it evicts.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, vec::Vec};
use core::{
    cell::{Cell, RefCell},
    future::pending,
};

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, EventKinds, Failure, Limits, Mailbox, Next, Overflow,
    Props, RootContext, SystemEvent,
};
use clockjack_firmware::{
    board::{self, Board},
    heap, line, program, report,
};
use clockjack_sched::SchedulerConfig;
use critical_section::Mutex;

program!(run);

/// The number of interrupts that send.
const INTERRUPTS: u32 = 500;
/// Actors that have stopped, and whose paths only events refer to.
const GONE: usize = 12;

/// The interrupt sends to this actor.
static FULL: Mutex<RefCell<Option<ActorRef<u32>>>> = Mutex::new(RefCell::new(None));
static TOLD: Count = Count::new();
static TAKEN: Count = Count::new();
/// Changes of the heap by an interrupt.
static HEAP_CHANGES: Count = Count::new();

struct Count(Mutex<Cell<u32>>);

impl Count {
    const fn new() -> Self {
        Self(Mutex::new(Cell::new(0)))
    }

    fn add(&self, n: u32) {
        critical_section::with(|cs| self.0.borrow(cs).set(self.0.borrow(cs).get() + n));
    }

    fn get(&self) -> u32 {
        critical_section::with(|cs| self.0.borrow(cs).get())
    }
}

fn on_tick(_: u64) {
    if TOLD.get() == INTERRUPTS {
        return;
    }
    let heap_now = || (heap::books().allocations, heap::books().refused, heap::used());
    let before = heap_now();
    critical_section::with(|cs| {
        if let Some(full) = FULL.borrow_ref(cs).as_ref() {
            full.tell(0).expect("it drops the newest");
            TOLD.add(1);
        }
    });
    HEAP_CHANGES.add(u32::from(heap_now() != before));
}

struct Sink;

impl Actor for Sink {
    type Msg = u32;

    fn receive(&mut self, _: &mut Context<'_, Self>, _: u32) -> Result<Next, Failure> {
        TAKEN.add(1);
        Ok(Next::Stay)
    }
}

/// Receives events; one that is deaf takes one and then waits for ever.
struct Listener {
    is_deaf: bool,
}

impl Actor for Listener {
    type Msg = SystemEvent;

    fn receive(&mut self, cx: &mut Context<'_, Self>, _: SystemEvent) -> Result<Next, Failure> {
        if self.is_deaf {
            cx.wait(pending(), |_, _, ()| Ok(Next::Stay))?;
        }
        Ok(Next::Stay)
    }
}

fn run() {
    let config = SchedulerConfig { capacity: 4, quota: 4, ..SchedulerConfig::SMALL };
    let limits = Limits::SMALL.processes(32).timers(4);
    let builder = ActorSystem::builder("t").limits(limits).scheduler(config);
    let mut root = RootContext::new(Board, builder).expect("it fits");
    let events = root.system().events().clone();
    let mailbox = Mailbox::bounded(1).overflow(Overflow::DropNewest);
    let full = root.spawn("full", Props::new(|| Sink).mailbox(mailbox)).expect("it fits");
    let listeners = [("slow", false), ("deaf", true)].map(|(name, is_deaf)| {
        let props = Props::new(move || Listener { is_deaf }).mailbox(Mailbox::bounded(2));
        let listener = root.spawn(name, props).expect("it fits");
        events.subscribe_bounded(EventKinds::DEAD_LETTER, listener.clone(), 4);
        listener
    });
    let mut gone: Vec<ActorRef<u32>> = (0..GONE)
        .map(|n| root.spawn(&format!("a-name-with-memory-{n}"), || Sink).expect("it fits"))
        .collect();
    gone.iter().for_each(|one| root.system().stop(one).expect("it is an actor of this system"));
    root.run_until_idle();
    // The deaf one takes this one, and waits.
    gone.pop().expect("there are some").tell_or_dead_letter(0);
    root.run_until_idle();
    root.seal();
    root.run_until_idle();
    critical_section::with(|cs| FULL.replace(cs, Some(full.clone())));
    board::on_tick(on_tick);
    board::start_ticks();

    let mut told = 1;
    while TOLD.get() < INTERRUPTS {
        if let Some(gone) = gone.pop() {
            gone.tell_or_dead_letter(0);
            told += 1;
        }
        for _ in 0..16 {
            full.tell(0).expect("it drops the newest");
            told += 1;
        }
        // The locks of the list and of the backlogs.
        for one in &listeners {
            events.dropped_by(one).expect("it has subscribed");
        }
        root.run_until_idle();
    }
    root.run_until_idle();
    let letters = root.system().metrics().dead_letters_total() as u32;
    line!("messages from interrupts: {}", TOLD.get());
    line!("changes of the heap by an interrupt: {}", HEAP_CHANGES.get());
    line!("each message has one end: {}", TAKEN.get() + letters == told + TOLD.get());
    line!("events were evicted: {}", events.dropped() > GONE);
    report();
}
