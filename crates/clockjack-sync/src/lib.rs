//! Lock-free parts of Clockjack, each with its protocol written down beside it.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

#[cfg(feature = "alloc")]
pub mod counted;
pub mod counter;
pub mod injector;
pub mod link;
pub mod mpsc;
pub mod mutant;
pub mod pad;
pub mod prim;
mod push_error;
pub mod return_stack;
#[cfg(all(feature = "alloc", any(loom, target_has_atomic = "64")))]
pub mod ring;

#[cfg(feature = "alloc")]
pub use counted::Counted;
pub use injector::Injector;
pub use push_error::PushError;
pub use return_stack::ReturnStack;
