//! The guardians `/` and `/user`.

use core::convert::Infallible;

use crate::{Actor, Context, Failure, Next, Signal};

/// An actor that only supervises children.
pub(super) struct Guardian;

impl Actor for Guardian {
    type Msg = Infallible;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Infallible) -> Result<Next, Failure> {
        match msg {}
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, _: Signal) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}
