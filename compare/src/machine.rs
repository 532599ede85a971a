//! The machine of the measurement: the figures mean nothing on another machine.

use std::fs;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

/// One line: processor, cores, load, date, compiler and build.
pub(crate) fn describe() -> String {
    let cores = available_parallelism().map_or_else(|_| "?".to_owned(), |n| n.to_string());
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let date = since_epoch.map_or_else(|_| "date unknown".to_owned(), |d| date_utc(d.as_secs()));
    let build =
        if cfg!(debug_assertions) { "DEBUG BUILD, figures mean nothing" } else { "release" };
    format!(
        "{}, {cores} cores, load {}, {date}, {}, {build}",
        cpu_model(),
        load_average(),
        env!("COMPARE_RUSTC"),
    )
}

/// The version of `package` that this program was built with.
pub(crate) fn locked_version(package: &str) -> Option<&'static str> {
    const LOCK: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock"));
    let name = format!("name = \"{package}\"");
    let mut lines = LOCK.lines().skip_while(|line| *line != name).skip(1);
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

fn cpu_model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// The number of runnable processes over the last minute, usually without this one: a value far
/// above zero at the start means that something else is running.
fn load_average() -> String {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split_whitespace().next().unwrap_or("unknown").to_owned()
}

/// Seconds since 1970 as date and time of day, in the Gregorian calendar.
fn date_utc(secs: u64) -> String {
    const DAY_SECS: u64 = 86_400;
    let mut days = secs / DAY_SECS;
    let mut year = 1970;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // One iteration per year since 1970.
    loop {
        let year_days = if is_leap(year) { 366 } else { 365 };
        if days < year_days {
            break;
        }
        days -= year_days;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for month_days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < month_days {
            break;
        }
        days -= month_days;
        month += 1;
    }
    let (hour, minute) = (secs % DAY_SECS / 3_600, secs % 3_600 / 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02} UTC", days + 1)
}

#[cfg(test)]
mod tests {
    use super::{date_utc, describe, locked_version};

    #[test]
    fn seconds_become_dates() {
        fn check(secs: u64, expected: &str) {
            assert_eq!(date_utc(secs), expected);
        }
        check(0, "1970-01-01 00:00 UTC");
        check(86_399, "1970-01-01 23:59 UTC");
        check(951_782_400, "2000-02-29 00:00 UTC");
        check(951_868_800, "2000-03-01 00:00 UTC");
        check(1_709_164_800, "2024-02-29 00:00 UTC");
        check(1_735_689_599, "2024-12-31 23:59 UTC");
        check(4_107_542_400, "2100-03-01 00:00 UTC");
    }

    #[test]
    fn the_lock_file_names_the_rivals_versions() {
        let version = locked_version("nexus-timer").expect("it is a dependency");
        assert!(version.starts_with("1."), "{version}");
        assert_eq!(locked_version("no-such-package"), None);
    }

    #[test]
    fn the_machine_fits_one_line_and_names_the_compiler() {
        let line = describe();
        assert!(line.contains("rustc 1."), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}
