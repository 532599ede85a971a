//! The arguments of `top`. The screen is in `clockjack-console`; without the feature `tui` the
//! command says how to get it.

#[cfg_attr(not(feature = "tui"), path = "top/without.rs")]
#[cfg_attr(feature = "tui", path = "top/with.rs")]
mod screen;

use clap::Args;

use super::{Streams, exit_codes, graph::Env};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  clockjack top house                            what a running program does, twice per second
  clockjack top house --filter state:stuck       only some actors
  clockjack top house --once | head -3           one frame, as text
  clockjack top http://127.0.0.1:7117/#t=TOKEN   over TCP

Keys: 1 to 8 choose a tab, / a filter, s the order, enter opens an actor, ? lists all keys, q quits.
The program is named by its process id, the name of its system, the path of its socket, or a URL.";

/// Watch a running program in the terminal
#[derive(Debug, Args)]
#[command(after_help = exit_codes(EXAMPLES, &[0, 2, 8, 13, 130, 143]))]
pub(super) struct TopArgs {
    /// The program.
    program: String,

    /// Print one frame and exit.
    #[arg(long)]
    once: bool,

    /// The tab: overview, actors, tree, timers, jobs, graphs, events or workers.
    #[arg(long, value_name = "TAB", default_value = "actors")]
    tab: String,

    /// Which actors: `till`, `state:stuck,queued`, `depth>100`, `type:Till`, `-path:/system`.
    #[arg(long, value_name = "FILTER", default_value = "")]
    filter: String,

    /// Frames per second, at most 10.
    #[arg(long, value_name = "N", default_value_t = 2.0)]
    hz: f64,

    /// Columns of a frame that is printed; default: the width of the terminal, or 120.
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..))]
    width: Option<u16>,

    /// Lines of a frame that is printed.
    #[arg(long, value_name = "LINES", default_value_t = 30,
        value_parser = clap::value_parser!(u16).range(8..))]
    height: u16,
}

impl TopArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        if !(0.1..=10.0).contains(&self.hz) {
            return Err(Failure::usage("--hz is from 0.1 to 10"));
        }
        screen::run(self, env, streams)
    }
}
