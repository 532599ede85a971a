//! The attribute [`macro@actor`]: methods become messages of an actor.
//!
//! ```
//! # #[cfg(feature = "rt")] {
//! use clockjack::prelude::*;
//!
//! #[derive(Default)]
//! pub struct Counter {
//!     n: u64,
//! }
//!
//! #[actor]
//! impl Counter {
//!     #[msg]
//!     fn inc(&mut self, by: u32) {
//!         self.n += u64::from(by);
//!     }
//!
//!     #[ask]
//!     fn get(&self) -> u64 {
//!         self.n
//!     }
//! }
//!
//! let rt = Runtime::new("counting")?;
//! let counter = rt.spawn("counter", Counter::default)?;
//! counter.inc(2)?;
//! assert_eq!(rt.block_on(counter.get(Duration::from_secs(1)))?, 2);
//! # }
//! # Ok::<(), clockjack::actor::Failure>(())
//! ```
//!
//! All marks and options are told in the crate `clockjack-macros`. The one difference: what is
//! written looks for `Actor` and the others at `::clockjack::actor`. If a program knows this crate
//! by another name, it says so: `#[actor(crate = ::jack::actor)]`.

#[doc(inline)]
pub use clockjack_macros::facade_actor as actor;
