//! This program was built without `run --console`.

use clockjack_graph::GraphRun;
use clockjack_rt::Runtime;

use crate::{failure::Failure, run::Allowed};

/// There is none.
#[derive(Debug)]
pub(crate) enum RunConsole {}

impl RunConsole {
    /// Says how to get a console.
    pub(crate) fn open(_: &Runtime, _: Allowed) -> Result<Self, Failure> {
        Err(Failure::usage(
            "this `clockjack` was built without `run --console`; build it with \
             `--features console`",
        ))
    }

    /// There is none that could show anything.
    pub(crate) fn show(&self, _: &str, _: &GraphRun) -> String {
        match *self {}
    }

    /// There is none that could be closed.
    pub(crate) fn close(self) {
        match self {}
    }
}
