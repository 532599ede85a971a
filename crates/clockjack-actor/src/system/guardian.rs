//! The actors at the top: `/`, `/user` and `/system`.

use core::convert::Infallible;

use crate::{Actor, Context, Failure, Next, Signal, shutdown::Reason};

/// An actor that only has children.
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

/// The guardian of the user's actors. Its end, for whatever reason, is that of the system.
pub(super) struct UserGuardian;

impl Actor for UserGuardian {
    type Msg = Infallible;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Infallible) -> Result<Next, Failure> {
        match msg {}
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::PostStop = signal {
            // Without effect if the system ends anyway.
            cx.system().inner().terminate(Reason::new("the user guardian has stopped"));
        }
        Ok(Next::Stay)
    }
}
