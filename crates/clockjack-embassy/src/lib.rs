//! Clockjack on [Embassy](https://embassy.dev): an actor system as an Embassy task.
//!
//! Embassy provides the executor, the interrupts and the clock of a microcontroller. This crate
//! builds Clockjack's clock, tick driver and toolbox from them. Actors, timers and supervision work
//! as on every other host, so programs need no changes.
//!
//! ```no_run
//! # extern crate embassy_executor;
//! use clockjack_actor::{ActorSystem, Limits, Next, Props};
//! use clockjack_embassy::EmbassyToolbox;
//! use clockjack_time::Resolution;
//! use embassy_executor::Spawner;
//!
//! #[embassy_executor::main]
//! async fn main(_spawner: Spawner) {
//!     let builder = ActorSystem::builder("board").limits(Limits::SMALL);
//!     let toolbox = EmbassyToolbox::new(Resolution::MILLI);
//!     let mut system = toolbox.system(builder).expect("there is room");
//!     let lamp = Props::from_fn(|_cx, is_on: bool| {
//!         // Here a pin is set.
//!         let _ = is_on;
//!         Ok(Next::Stay)
//!     });
//!     let lamp = system.spawn("lamp", lamp).expect("there is room");
//!     lamp.tell(true).expect("it was just started");
//!     let report = system.run().await.expect("nobody stops the driver");
//!     assert!(report.is_clean());
//! }
//! ```
//!
//! # Parts
//!
//! * [`EmbassySystem`]: an [`ActorSystem`](clockjack_actor::ActorSystem) with the loop that runs
//!   it, to be awaited in a task. It sleeps until the next timer, without periodic ticks.
//! * [`EmbassyToolbox`]: the services that a [`RootContext`](clockjack_actor::RootContext) or a
//!   [`LocalExecutor`](clockjack_exec::LocalExecutor) needs from Embassy, for a loop of your own.
//! * [`AlarmDriver`]: clock and ticks only, for Clockjack's scheduler without actors.
//!
//! # Next to other tasks
//!
//! Embassy's tasks are cooperative, and so is the system: after at most 64 steps, or one
//! millisecond, it lets the other tasks run. Other tasks, interrupts and executors of other
//! priorities reach it by `tell`, which wakes its task. An actor may await any Embassy future.
//!
//! # What an application must provide
//!
//! * A time driver for `embassy-time`: that of the chip's HAL, or its feature `std`.
//! * A global allocator. After [`EmbassySystem::seal`] nothing is allocated any more.
//!
//! # Faults
//!
//! * A panic is not caught, because without `std` that is impossible. A failure that a supervisor
//!   must handle is an `Err`.
//! * A driver that was [stopped](clockjack_time::TickDriver::stop_and_flush) gives no more ticks.
//!   [`EmbassySystem::run`] then returns an error that says so. Accepted messages are still there,
//!   and [`EmbassySystem::shutdown`] accounts for them.
//! * A task that does not yield delays the system as it delays all other tasks. Timers are then
//!   late and never lost; a job at a fixed rate catches up.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod clock;
mod driver;
mod system;
mod toolbox;

pub use clock::EmbassyClock;
pub use driver::AlarmDriver;
pub use system::EmbassySystem;
pub use toolbox::EmbassyToolbox;

/// Links the executor: Embassy's timer queue is in it.
#[cfg(test)]
use embassy_executor as _;
