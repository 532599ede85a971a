//! The command `gateway`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its user")]

use core::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clockjack_gateway::{
    gateway::{Config, Gateway},
    open_files,
};
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

const USAGE: &str = "\
usage: gateway [--idle SECONDS] [TCP [HTTP [ARCHIVE]]]

TCP      where devices connect; 127.0.0.1:7070 by default, port 0 is any free port
HTTP     where the pages are; 127.0.0.1:8080 by default
ARCHIVE  the file to which readings are appended; without it they are dropped

--idle SECONDS  drain after this time, and fail if anything was warned of,
                except that SIGINT was ignored at the start

Ctrl-C and SIGTERM drain the gateway, a second signal exits at once.";

/// The maximum number of devices, unless the limit of open files is lower.
const DEVICES_MAX: usize = 20_000;
/// Open files that are not connections of devices.
const FILES_OTHER: u64 = 200;

/// How many warnings and errors were logged.
static WARNINGS: AtomicU64 = AtomicU64::new(0);

/// Logs to standard error, and counts what somebody would have to act on.
struct CountedLog;

impl MakeWriter<'_> for CountedLog {
    type Writer = Line<io::Stderr>;

    fn make_writer(&self) -> Self::Writer {
        Line { to: io::stderr(), is_counted: false }
    }

    fn make_writer_for(&self, line: &Metadata<'_>) -> Self::Writer {
        Line { is_counted: *line.level() <= Level::WARN, ..self.make_writer() }
    }
}

/// A line of the log.
struct Line<W> {
    to: W,
    /// Whether the line is a warning or an error that was not looked at yet.
    is_counted: bool,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if core::mem::take(&mut self.is_counted) && is_about_us(bytes) {
            // Relaxed: read after the threads of the gateway were joined.
            WARNINGS.fetch_add(1, Relaxed);
        }
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Whether somebody would have to change the gateway. That it was started in the background of a
/// script, with SIGINT ignored, is worth a warning and no fault of the gateway.
fn is_about_us(line: &[u8]) -> bool {
    !String::from_utf8_lossy(line).contains("SIGINT was ignored")
}

fn main() -> ExitCode {
    let (config, idle) = match arguments(std::env::args().skip(1)) {
        Ok(Some(config)) => config,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("gateway: {problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    tracing_subscriber::fmt().with_writer(CountedLog).init();
    let files = open_files::raise(DEVICES_MAX as u64 + FILES_OTHER);
    let room = usize::try_from(files.saturating_sub(FILES_OTHER)).unwrap_or(DEVICES_MAX);
    let devices_max = config.devices_max.min(room);
    if devices_max < config.devices_max {
        tracing::info!("at most {devices_max} devices: the limit of open files is {files}");
    }
    let gateway = match Gateway::start(Config { devices_max, ..config }) {
        Ok(gateway) => gateway,
        Err(failure) => {
            tracing::error!("{failure}");
            return ExitCode::FAILURE;
        }
    };
    tracing::info!("devices at {}, pages at http://{}", gateway.tcp, gateway.http);
    if let Some(idle) = idle {
        gateway.stop_after(idle);
    }
    let report = gateway.run();
    if let Some(idle) = idle {
        let n = WARNINGS.load(Relaxed);
        tracing::info!("{n} warnings in {idle:?}");
        if n > 0 {
            return ExitCode::FAILURE;
        }
    }
    if report.is_clean() && report.failure.is_none() {
        tracing::info!("{report}");
        ExitCode::SUCCESS
    } else {
        tracing::error!("{report}");
        ExitCode::FAILURE
    }
}

/// The settings, and after which time to stop; `None` if help is wanted.
fn arguments(
    words: impl Iterator<Item = String>,
) -> Result<Option<(Config, Option<Duration>)>, String> {
    let mut words: Vec<String> = words.collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return Ok(None);
    }
    let mut idle = None;
    if let Some(at) = words.iter().position(|word| word == "--idle") {
        let seconds = words.get(at + 1).ok_or("`--idle` needs a number of seconds")?;
        let seconds =
            seconds.parse().map_err(|_| format!("'{seconds}' is no number of seconds"))?;
        idle = Some(Duration::from_secs(seconds));
        words.drain(at..at + 2);
    }
    if let Some(further) = words.get(3) {
        return Err(format!("unexpected argument '{further}'"));
    }
    let address = |index: usize, default: &str| {
        let text = words.get(index).map_or(default, String::as_str);
        text.parse().map_err(|_| format!("'{text}' is not an address, as {default} is"))
    };
    let config = Config {
        tcp: address(0, "127.0.0.1:7070")?,
        http: address(1, "127.0.0.1:8080")?,
        archive: words.get(2).map(PathBuf::from),
        devices_max: DEVICES_MAX,
    };
    Ok(Some((config, idle)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_counted_once_unless_it_is_about_the_start_in_the_background() {
        let n_counted = |line: &str, is_counted| {
            let before = WARNINGS.load(Relaxed);
            let mut line_out = Line { to: Vec::new(), is_counted };
            let (head, tail) = line.split_at(line.len() / 2);
            line_out.write_all(line.as_bytes()).expect("memory takes it");
            line_out.write_all(tail.as_bytes()).expect("memory takes it");
            assert_eq!(line_out.to, [head, tail, tail].concat().as_bytes());
            WARNINGS.load(Relaxed) - before
        };
        assert_eq!(n_counted(" WARN the executor is late", true), 1);
        assert_eq!(n_counted(" WARN SIGINT was ignored when the program started", true), 0);
        assert_eq!(n_counted(" INFO devices at", false), 0);
    }
}
