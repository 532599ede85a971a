//! Clockjack on [Embassy](https://embassy.dev): a system of actors as one of its tasks.
//!
//! Embassy has the executor, the interrupts and the clock of a microcontroller; this crate makes
//! Clockjack's clock, tick driver and toolbox out of them. Actors, timers and supervision are those
//! of every other host, and so are the programs.
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
//! # What there is
//!
//! * [`EmbassySystem`]: an [`ActorSystem`](clockjack_actor::ActorSystem) and the loop that runs it,
//!   to be awaited in a task. It sleeps until the next timer, without a tick in between.
//! * [`EmbassyToolbox`]: what a [`RootContext`](clockjack_actor::RootContext) or a
//!   [`LocalExecutor`](clockjack_exec::LocalExecutor) needs of Embassy, for those who write that
//!   loop themselves.
//! * [`AlarmDriver`]: the clock and the ticks alone, for Clockjack's scheduler without actors.
//!
//! # Beside other tasks
//!
//! Embassy's tasks take turns and so does the system: after at most 64 steps, or a millisecond of
//! them, it lets the others run. Other tasks, interrupts and executors of other priorities reach it
//! by `tell`, which wakes its task. What an actor awaits may be any of Embassy's futures.
//!
//! # What an application has to bring
//!
//! * A time driver for `embassy-time`: that of the chip's HAL, or its feature `std`.
//! * A global allocator. After [`EmbassySystem::seal`] nothing is allocated any more.
//!
//! # Faults
//!
//! * A panic is not caught: without `std` there is no way to. A failure that is to be supervised is
//!   an `Err`.
//! * A driver that was [stopped](clockjack_time::TickDriver::stop_and_flush) gives no ticks any
//!   more. [`EmbassySystem::run`] ends with an error that says so; what was accepted is still
//!   there, and [`EmbassySystem::shutdown`] accounts for it.
//! * A task that does not yield holds up the system as it does all others. Timers are late then and
//!   never lost; a job at a fixed rate catches up.
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

/// Embassy's timer queue lives in its executor.
#[cfg(test)]
use embassy_executor as _;
