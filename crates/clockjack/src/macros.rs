//! The attribute [`macro@actor`]: turns methods into messages of an actor.
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
//! The crate `clockjack-macros` documents all marker attributes and options. One difference: the
//! generated code uses the path `::clockjack::actor` for `Actor` and so on. If a program renames
//! this crate, set the path: `#[actor(crate = ::jack::actor)]`.

#[doc(inline)]
pub use clockjack_macros::facade_actor as actor;
