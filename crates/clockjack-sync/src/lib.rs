//! Lock-free parts of Clockjack, each with its protocol written down beside it.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

pub mod mutant;
pub mod pad;
pub mod prim;
pub mod return_stack;

pub use return_stack::ReturnStack;
