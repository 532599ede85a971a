//! Tests of actors in virtual time.
//!
//! Four things, from the whole to the part:
//!
//! * [`ManualTime`] is a whole system on the thread of the test. Nothing runs but when the test
//!   says so, and no time passes but what the test lets pass; a day takes no longer than the
//!   messages that are sent in it. The same test takes the same course each time.
//! * [`TestProbe`] stands in for an actor that others talk to, and shows what they have said.
//! * [`ActorTestKit`] calls one actor by hand, message by message, and writes down what it does.
//! * [`for_each_seed`] runs a test in many orders of delivery, and names the one that failed.
//!
//! # The model
//!
//! The test is outside: it tells, lets things happen, and looks. "Lets things happen" is always one
//! of three: [`settle`](ManualTime::settle) runs until nobody has anything to do *now*;
//! [`advance`](ManualTime::advance) does the same at each moment that something is due, in order;
//! [`block_on`](ManualTime::block_on) goes on until a future has its output. The expectations of a
//! probe settle first, so a test seldom has to.
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

extern crate alloc;

mod kit;
mod manual_time;
mod probe;
mod seeds;
mod toolbox;

#[doc(inline)]
pub use clockjack_actor::testing::{Effect, TimerHandle, TimerMode};
pub use kit::ActorTestKit;
pub use manual_time::ManualTime;
pub use probe::{Fish, TestProbe};
pub use seeds::{SEED_VARIABLE, for_each_seed};
