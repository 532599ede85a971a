//! What a component sees of the run while it is called.

use core::marker::PhantomData;

/// What a component sees of the run while it is called.
#[derive(Debug)]
pub struct GraphContext<'a> {
    _lent: PhantomData<&'a mut ()>,
}
