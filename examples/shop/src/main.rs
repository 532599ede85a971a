//! Two hundred actors under load, to be looked at while they run: `clockjack top shop`. With
//! `--ill NAME` one of them is ill, see `README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows something")]

mod graphs;
mod illness;
mod tills;

use std::{env, process::ExitCode};

use clockjack::{
    console::{Bind, Console, Thresholds},
    prelude::*,
};

use self::{illness::Illness, tills::Shop};

/// How many tills there are.
const TILLS: u32 = 200;

/// What the arguments say.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    illness: Option<Illness>,
    /// Whether the console is for a browser.
    is_for_browser: bool,
}

impl Options {
    fn of_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(arg) = args.next() {
            match (arg.as_str(), args.next()) {
                ("--ill", Some(name)) => options.illness = Some(Illness::of_name(&name)?),
                ("--console", Some(kind)) if kind == "browser" => options.is_for_browser = true,
                _ => return Err("usage: shop [--ill NAME] [--console browser]".into()),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let options = match Options::of_args(env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("shop: {why}");
            return ExitCode::from(2);
        }
    };
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("shop: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// A shop is ill sooner than a program whose owner has time, and its timers need not be exact.
fn thresholds(illness: Option<Illness>) -> Thresholds {
    let mut thresholds = Thresholds::default();
    thresholds.late_ticks = if illness == Some(Illness::Late) { 30 } else { 200 };
    thresholds.busy_for_ns = 1_000_000_000;
    thresholds.growth_minute_ns = 100_000_000;
    thresholds
}

fn run(Options { illness, is_for_browser }: Options) -> Result<(), Failure> {
    let rt = Runtime::new("shop")?;
    let console = Console::of(&rt).thresholds(thresholds(illness));
    // What is ill in an actor or a worker delays the belt as well, which would then be ill, too.
    let has_belt = matches!(illness, None | Some(Illness::Overrun | Illness::Drops));
    let console = if has_belt {
        console.graph("belt", &graphs::start(rt.system(), illness)?)
    } else {
        console
    };
    let bind = if is_for_browser { Bind::Loopback(0) } else { Bind::Socket };
    let console = console.bind(bind).open()?;
    rt.spawn("shop", move || Shop { illness, n_tills: TILLS })?;
    if illness == Some(Illness::Blocking) {
        illness::block(&rt);
    }
    // For a browser with the token, which is in the URL.
    println!("look at {}", console.url().unwrap_or_else(|| console.address().to_string()));
    let report = rt.run(); // until Ctrl-C or SIGTERM
    if report.is_success() { Ok(()) } else { Err(Failure::msg(report.to_string())) }
}
