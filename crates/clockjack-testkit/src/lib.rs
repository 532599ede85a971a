//! Test kit for actors, in virtual time.
//!
//! The kit has five parts:
//!
//! * [`ManualTime`] is a complete actor system on the thread of the test. Actors run only when the
//!   test says so, and time passes only when the test advances it; a day takes no longer than the
//!   messages that are sent in it. The same test runs in the same order every time.
//! * [`TestProbe`] is an actor that records the messages it receives, so that a test can check
//!   them.
//! * [`ActorTestKit`] calls one actor directly, message by message, and records its effects.
//! * `TestCluster` (feature `net`) is several systems on one clock, as the nodes of a cluster.
//! * [`for_each_seed`] runs a test in many orders of delivery, and reports the one that failed.
//!
//! # The model
//!
//! The test sends messages, lets the system run, and checks the results. There are three ways to
//! let the system run: [`settle`](ManualTime::settle) runs until no actor has anything to do *now*;
//! [`advance`](ManualTime::advance) does the same at each point in time at which something is due,
//! in order; [`block_on`](ManualTime::block_on) runs until a future completes. The expectations of
//! a probe call `settle` first, so a test seldom has to.
//!
//! # Examples
//!
//! ```
//! use clockjack_actor::{Actor, ActorRef, Context, Failure, Next, Props};
//! use clockjack_testkit::ManualTime;
//!
//! struct Doubler(ActorRef<u32>);
//!
//! impl Actor for Doubler {
//!     type Msg = u32;
//!
//!     fn receive(&mut self, _cx: &mut Context<'_, Self>, n: u32) -> Result<Next, Failure> {
//!         self.0.tell(2 * n)?;
//!         Ok(Next::Stay)
//!     }
//! }
//!
//! let time = ManualTime::start();
//! let out = time.probe::<u32>();
//! let to = out.actor_ref();
//! let doubler = time.spawn("doubler", Props::new(move || Doubler(to.clone())));
//! doubler.tell(21).expect("it is there");
//! out.expect_eq(42);
//! out.expect_none();
//! time.expect_no_failures();
//! ```

#[cfg(feature = "net")]
mod cluster;
mod kit;
mod manual_time;
mod probe;
mod seeds;
mod toolbox;

#[doc(inline)]
pub use clockjack_actor::testing::{Effect, TimerHandle, TimerMode};
#[cfg(feature = "net")]
pub use cluster::TestCluster;
pub use kit::ActorTestKit;
pub use manual_time::ManualTime;
pub use probe::{Fish, TestProbe};
pub use seeds::{SEED_VARIABLE, for_each_seed};
