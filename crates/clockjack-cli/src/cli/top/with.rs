//! Shows the screen, or prints it once.

use core::time::Duration;

use clockjack_console::{
    query::Filter,
    tui::{Charset, Tab, Top, TopConfig},
};
use clockjack_graph::Clock;

use super::TopArgs;
use crate::{
    cli::{graph::Env, write_result},
    failure::Failure,
    live,
    streams::Streams,
};

/// How long the program is looked at before a frame is printed: findings need as long.
const LOOK: Duration = Duration::from_secs(3);
const COLUMNS: u16 = 120;

pub(super) fn run(args: &TopArgs, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let tab = Tab::of_name(&args.tab);
    let tab = tab.ok_or_else(|| Failure::usage(format!("--tab: there is no '{}'", args.tab)))?;
    Filter::parse(&args.filter).map_err(|error| Failure::usage(format!("--filter: {error}")))?;
    let charset = if streams.out_is_utf8 { Charset::Unicode } else { Charset::Ascii };
    let is_painted = env.color.paints_out(streams);
    let mut config = TopConfig::default();
    (config.tab, config.filter, config.hz) = (tab, args.filter.clone(), args.hz);
    (config.charset, config.is_painted) = (charset, is_painted);
    let client = live::connect(&args.program)?;
    let top = Top::new(client, config);
    if args.once || !streams.out_is_terminal {
        let columns = streams.out_columns.and_then(|columns| u16::try_from(columns).ok());
        let width = args.width.or(columns).unwrap_or(COLUMNS);
        let text = top.once(width, args.height, LOOK).map_err(Failure::client)?;
        return write_result(streams, &text);
    }
    streams.interrupt.listen(Clock::Virtual, streams.err);
    let interrupt = streams.interrupt.clone();
    top.run(|| interrupt.is_requested()).map_err(Failure::terminal)?;
    let signal = streams.interrupt.signal();
    signal.map_or(Ok(()), |signal| Err(Failure::already_reported(signal.exit_code())))
}
