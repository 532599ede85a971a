//! This program was built without the screen.

use super::TopArgs;
use crate::{cli::graph::Env, failure::Failure, streams::Streams};

pub(super) fn run(_: &TopArgs, _: Env<'_>, _: &mut Streams<'_>) -> Result<(), Failure> {
    Err(Failure::usage(
        "this `clockjack` was built without `top`; build it with `--features tui`, or use \
         `clockjack inspect`",
    ))
}
