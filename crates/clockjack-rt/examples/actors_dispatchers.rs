//! Actors on several kinds of threads: the pool, one thread, threads for what waits.

#![expect(clippy::print_stdout, reason = "an example shows something")]

use core::{cell::Cell, error::Error, time::Duration};
use std::{rc::Rc, sync::mpsc};

use clockjack_rt::{
    BLOCKING_DISPATCHER, Runtime,
    actor::{Actor, ActorRef, Context, Failure, Next, Props},
};

/// A display whose driver must stay on one thread.
struct Display {
    pixels: Rc<Cell<u64>>,
    sender: mpsc::Sender<u64>,
}

impl Actor for Display {
    type Msg = String;

    fn receive(&mut self, _: &mut Context<'_, Self>, text: String) -> Result<Next, Failure> {
        self.pixels.set(self.pixels.get() + text.len() as u64);
        self.sender.send(self.pixels.get())?;
        Ok(Next::Stay)
    }
}

/// Reads what takes its time, on a thread that may wait.
struct Disk(ActorRef<String>);

impl Actor for Disk {
    type Msg = u32;

    fn receive(&mut self, _: &mut Context<'_, Self>, sector: u32) -> Result<Next, Failure> {
        std::thread::sleep(Duration::from_millis(1));
        self.0.tell(format!("sector {sector}"))?;
        Ok(Next::Stay)
    }
}

/// Runs the example.
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let rt = Runtime::new("dispatchers")?;
    let (sender, receiver) = mpsc::channel();

    let screen = rt.system().create_pinned("screen")?;
    let make = move || Display { pixels: Rc::default(), sender: sender.clone() };
    let display = rt.system().spawn_pinned(&screen, "display", make)?;

    let disk = Props::new(move || Disk(display.clone())).dispatcher(BLOCKING_DISPATCHER);
    let disk = rt.spawn("disk", disk)?;
    for sector in 0..3 {
        disk.tell(sector)?;
    }
    let drawn = receiver.iter().take(3).last();
    println!("{drawn:?} letters drawn");
    assert_eq!(drawn, Some(24));

    assert!(rt.shutdown(Duration::from_secs(10)).is_clean());
    Ok(())
}
