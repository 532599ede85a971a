//! Rules about Rust code. They skip comments and string literals.

use super::{
    Fault,
    source::{Source, words},
};
use crate::layering;

/// Files whose code may depend on the platform, by the end of their path, and why.
const CONDITIONAL_FILES: &[(&str, &str)] = &[
    ("/src/lib.rs", "modules and re-exports are chosen here"),
    ("/src/primitive.rs", "the one facade over atomics"),
    ("/src/primitive/native.rs", "the facade's variant on hardware"),
    ("/src/primitive/loom.rs", "the facade's variant under loom"),
    ("/clockjack-sync/src/pad.rs", "the line length is one attribute per architecture"),
    ("/src/platform.rs", "chooses between the variants of a platform"),
    ("/src/tokio_integration.rs", "chooses by the feature `tokio`"),
    ("/clockjack-console/src/address.rs", "the directories of unix sockets, where there are any"),
    ("/clockjack-console/src/client/http.rs", "connects to unix sockets, where there are any"),
    ("/clockjack-console/src/client/list.rs", "removes unix sockets, where there are any"),
    (
        "/clockjack-console/src/server.rs",
        "chooses the socket's variant, and whether there is a page",
    ),
    (
        "/clockjack-console/src/server/connections.rs",
        "accepts on unix sockets, where there are any",
    ),
    ("/clockjack-console/src/server/errors.rs", "what can be wrong with unix sockets"),
    ("/clockjack-cli/src/cli/top.rs", "chooses by the feature `tui`"),
    ("/clockjack-cli/src/failure.rs", "one failure is that of a screen, by the feature `tui`"),
    ("/clockjack-cli/tests/interrupts.rs", "chooses between signals and the events of a console"),
    ("/clockjack-cli/tests/terminal.rs", "a pseudo-terminal of Linux"),
    ("/linux.rs", "named for a platform"),
    ("/macos.rs", "named for a platform"),
    ("/windows.rs", "named for a platform"),
    ("/unix.rs", "named for a platform"),
];

/// The words of conditions that any file may use: they select tests and models, not platforms.
const TEST_CONDITIONS: [&str; 7] = ["test", "loom", "miri", "shuttle", "any", "all", "not"];

/// The words of conditions by which a core crate selects modules: the heap and the atomics of the
/// target. Operating systems and architectures are not among them.
const CORE_CONDITIONS: [&str; 6] = ["feature", "alloc", "target_has_atomic", "ptr", "32", "64"];

/// Items that connect modules: a `cfg` may select these where they are declared.
const WIRING: [&str; 6] = ["mod ", "pub mod ", "pub(crate) mod ", "use ", "pub use ", "extern "];

/// The calls of a shutdown with a time limit.
const SHUTDOWNS: [&str; 2] = [".shutdown(", ".shutdown_within("];
/// How a time begins, in addition to constants and expressions of `Duration`.
const TIMES: [&str; 8] =
    ["ms(", "millis(", "secs(", "second", "timeout", "deadline", "limit", "within"];
/// The drop of a pool or runtime, which shuts it down: in the tests of this crate.
const DROPS: (&str, [&str; 2]) = ("clockjack-rt", ["drop(pool)", "drop(rt)"]);
/// Samples and templates, which users read: they are as short as the code of a user.
const SAMPLES: [&str; 2] = ["/samples/", "/templates/"];

/// A file starts with `//!`. Only attributes of the crate may precede it.
pub(super) fn opening(source: &Source) -> Vec<Fault> {
    if !source.is_rust() {
        return Vec::new();
    }
    let is_attribute = |line: &&str| line.starts_with("#![") || line.trim().is_empty();
    let first = source.text.lines().find(|line| !is_attribute(line));
    if first.is_some_and(|line| line.starts_with("//!")) {
        return Vec::new();
    }
    let what = "does not open with `//!`: say what the file is and which invariant it keeps";
    vec![source.fault(0, what)]
}

/// An exception uses `expect`, so that the compiler reports when it is no longer needed.
pub(super) fn allow_attributes(source: &Source) -> Vec<Fault> {
    let what = "`allow`: write `#[expect(lint, reason = \"..\")]`, which warns when unneeded";
    ["#[allow(", "#![allow("].iter().flat_map(|mark| found(source, mark, what)).collect()
}

/// No test is ignored.
pub(super) fn ignored_tests(source: &Source) -> Vec<Fault> {
    found(source, "#[ignore", "`#[ignore]`: make the test run everywhere, or remove it")
}

/// No debugging macro is committed.
pub(super) fn forbidden_macros(source: &Source) -> Vec<Fault> {
    ["dbg!", "todo!", "unimplemented!"]
        .iter()
        .flat_map(|name| found(source, name, &format!("`{name}`: remove it")))
        .collect()
}

/// A value that must exist says why.
pub(super) fn unwraps(source: &Source) -> Vec<Fault> {
    let is_ours = ["crates/", "xtask/", "benches/", "soak/", "testing/"]
        .iter()
        .any(|dir| source.path.starts_with(dir));
    if !is_ours || source.is_test_file() {
        return Vec::new();
    }
    let what = "`unwrap()`: write `expect(\"why this cannot fail\")`, or return the error";
    let tests_at = source.tests_at();
    let places = words(&source.code, ".unwrap()").filter(|at| *at < tests_at);
    if source.is_rust() { places.map(|at| source.fault(at, what)).collect() } else { Vec::new() }
}

/// Core crates never sleep, not even in tests: a clock is passed in.
pub(super) fn sleeps(source: &Source) -> Vec<Fault> {
    if !is_core(source) {
        return Vec::new();
    }
    found(source, "thread::sleep", "`thread::sleep`: read time from a clock that is passed in")
}

/// A shutdown with a time limit in a test, or the drop of a pool, goes through a function that
/// asserts the limit.
pub(super) fn deadlines(source: &Source) -> Vec<Fault> {
    let is_sample = SAMPLES.iter().any(|part| source.path.contains(part));
    let Some(name) = source.crate_name() else { return Vec::new() };
    if is_sample || !source.is_rust() || !source.is_test_file() {
        return Vec::new();
    }
    let what = "a shutdown whose deadline is not asserted: call `shutdown_in_time`, or \
                `keeps_deadline` or `awaits_deadline` of `clockjack-testing`";
    // A time is a constant, an expression of `Duration`, or has a usual name; settings are not.
    let is_limit = |argument: &str| {
        argument.starts_with(char::is_uppercase)
            || TIMES.iter().any(|time| argument.starts_with(time))
    };
    let places = SHUTDOWNS.iter().flat_map(|call| {
        let places = words(&source.code, call);
        places.filter(|at| is_limit(source.code[at + call.len()..].trim_start()))
    });
    let (of_crate, drops) = DROPS;
    let drops = drops.iter().filter(|_| name == of_crate);
    let drops = drops.flat_map(|call| words(&source.code, call));
    let is_unasserted = |at: &usize| {
        let before = &source.code[..*at];
        let begun = before.rfind([';', '{', '}']).unwrap_or(0);
        !before[begun..].contains("s_deadline(")
    };
    let places = places.chain(drops).filter(is_unasserted);
    places.map(|at| source.fault(at, what)).collect()
}

/// Core crates have no feature `std`.
pub(super) fn std_features(source: &Source) -> Vec<Fault> {
    if !is_core(source) {
        return Vec::new();
    }
    let what = "`feature = \"std\"` in a core crate: let the host pass in what differs";
    let is_std = |condition: &&Condition| condition.text.contains("feature = \"std\"");
    conditions_in(source).iter().filter(is_std).map(|c| source.fault(c.at, what)).collect()
}

/// Code that depends on the platform or a feature is in few, known files.
pub(super) fn conditions(source: &Source) -> Vec<Fault> {
    let is_known = CONDITIONAL_FILES.iter().any(|(end, _)| source.path.ends_with(end));
    if source.crate_name().is_none() || is_known {
        return Vec::new();
    }
    let is_free = |condition: &Condition| {
        let is_wiring = WIRING.iter().any(|item| condition.item.starts_with(item));
        let is_of_core = |word| TEST_CONDITIONS.contains(&word) || CORE_CONDITIONS.contains(&word);
        let is_choice = condition.words().all(is_of_core);
        is_choice && (is_wiring || source.is_test_file())
            || condition.words().all(|word| TEST_CONDITIONS.contains(&word))
    };
    let fault = |condition: Condition| {
        let what = format!(
            "`cfg({})` outside lib.rs, primitive and files named for a platform: move what it \
             guards to a module of its own, or make two variants, and choose at the `mod`",
            condition.text
        );
        source.fault(condition.at, what)
    };
    conditions_in(source).into_iter().filter(|condition| !is_free(condition)).map(fault).collect()
}

/// A `cfg`: its condition, and the text after it.
struct Condition {
    at: usize,
    text: String,
    item: String,
}

impl Condition {
    fn words(&self) -> impl Iterator<Item = &str> {
        self.text
            .split(|char: char| !char.is_alphanumeric() && char != '_')
            .filter(|w| !w.is_empty())
    }
}

fn conditions_in(source: &Source) -> Vec<Condition> {
    if !source.is_rust() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for mark in ["cfg(", "cfg!(", "cfg_attr("] {
        for at in words(&source.code, mark) {
            let open = at + mark.len();
            let end = closing(&source.code, open, mark == "cfg_attr(");
            let text: Vec<&str> = source.bare[open..end].split_whitespace().collect();
            let item = source.code[end..].trim_start_matches([')', ']']).trim_start();
            let item = item.lines().next().unwrap_or_default().to_owned();
            found.push(Condition { at, text: text.join(" "), item });
        }
    }
    found.sort_by_key(|condition| condition.at);
    found
}

/// Where the bracket before `open` closes, or the comma after a first argument.
fn closing(code: &str, open: usize, ends_at_comma: bool) -> usize {
    let mut depth = 0_usize;
    for (at, char) in code[open..].char_indices() {
        match char {
            '(' => depth += 1,
            ')' if depth == 0 => return open + at,
            ',' if depth == 0 && ends_at_comma => return open + at,
            ')' => depth -= 1,
            _ => (),
        }
    }
    code.len()
}

fn is_core(source: &Source) -> bool {
    source.crate_name().is_some_and(layering::is_core)
}

fn found(source: &Source, mark: &str, what: &str) -> Vec<Fault> {
    if !source.is_rust() {
        return Vec::new();
    }
    words(&source.code, mark).map(|at| source.fault(at, what)).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::planted, *};

    const PATH: &str = "crates/clockjack-time/src/wheel.rs";

    #[test]
    fn a_file_opens_with_what_it_is() {
        planted(opening, PATH, "use core::fmt;\n", &[(1, "//!")]);
        planted(opening, PATH, "", &[(1, "//!")]);
        planted(opening, PATH, "//! A wheel.\n", &[]);
        planted(opening, PATH, "#![cfg(loom)]\n\n//! A model.\n", &[]);
    }

    #[test]
    fn allow_is_refused_and_expect_is_not() {
        planted(allow_attributes, PATH, "a\n#[allow(dead_code)]\n", &[(2, "expect")]);
        planted(allow_attributes, PATH, "#![allow(dead_code)]\n", &[(1, "expect")]);
        planted(allow_attributes, PATH, "#[expect(dead_code)]\n// #[allow(b)]\n", &[]);
    }

    #[test]
    fn ignored_tests_are_found() {
        planted(ignored_tests, PATH, "#[test]\n#[ignore]\n", &[(2, "ignore")]);
        planted(ignored_tests, PATH, "#[ignore = \"slow\"]\n", &[(1, "ignore")]);
        planted(ignored_tests, PATH, "let a = \"#[ignore]\";\n", &[]);
    }

    #[test]
    fn macros_of_an_afternoon_are_found() {
        let text = "dbg!(a);\ntodo!();\nunimplemented!()\n";
        let expected = [(1, "dbg!"), (2, "todo!"), (3, "unimplemented!")];
        planted(forbidden_macros, PATH, text, &expected);
        planted(forbidden_macros, PATH, "// dbg!\nf(\"todo!\");\n", &[]);
    }

    #[test]
    fn unwrap_stays_in_tests() {
        let text = "a.unwrap();\n/// a.unwrap()\n#[cfg(test)]\nmod tests {\nb.unwrap();\n}\n";
        planted(unwraps, PATH, text, &[(1, "expect")]);
        planted(unwraps, "crates/clockjack-time/tests/a.rs", "a.unwrap();\n", &[]);
        planted(unwraps, PATH, "a.unwrap_or(b);\n", &[]);
    }

    #[test]
    fn a_test_asserts_the_deadline_of_a_shutdown() {
        let path = "crates/clockjack-rt/tests/a.rs";
        let bare = "    rt.shutdown(LONG);\n    rt.shutdown(Duration::from_secs(1));\n    \
                    rt.shutdown(ms(1));\n    jobs.shutdown_within(timeout);\n    drop(pool);\n";
        let faults = [1, 2, 3, 4, 5].map(|line| (line, "not asserted"));
        planted(deadlines, path, bare, &[faults[0], faults[1], faults[2], faults[3], faults[4]]);
        planted(deadlines, "crates/clockjack-sched/tests/a.rs", bare, &faults[..4]);
        let asserted = "    keeps_deadline(\n        LONG,\n        || rt.shutdown(LONG),\n    );\n\
                        \x20   rt.shutdown_in_time(LONG);\n    system.shutdown();\n    \
                        builder.shutdown(config);\n    keeps_deadline(LONG, || drop(pool));\n";
        planted(deadlines, path, asserted, &[]);
        planted(deadlines, "crates/clockjack/tests/samples/a.rs", bare, &[]);
        planted(deadlines, "crates/clockjack-rt/src/a.rs", bare, &[]);
    }

    #[test]
    fn nothing_sleeps_below_the_host() {
        let text = "std::thread::sleep(a);\n";
        planted(sleeps, PATH, text, &[(1, "passed in")]);
        planted(sleeps, "crates/clockjack-time/tests/a.rs", text, &[(1, "passed in")]);
        planted(sleeps, "crates/clockjack-rt/src/park.rs", text, &[]);
    }

    #[test]
    fn no_std_feature_below_the_host() {
        let text = "#[cfg(any(test,\n  feature = \"std\"))]\n";
        planted(std_features, "crates/clockjack-time/src/lib.rs", text, &[(1, "std")]);
        planted(std_features, "crates/clockjack-rt/src/lib.rs", text, &[]);
    }

    #[test]
    fn conditions_stand_in_known_files() {
        planted(conditions, PATH, "#[cfg(feature = \"alloc\")]\nfn f() {}", &[(1, "two variants")]);
        planted(conditions, PATH, "#[cfg(feature = \"alloc\")]\nmod heap;\n", &[]);
        planted(conditions, PATH, "#[cfg(feature = \"alloc\")]\npub use heap::A;\n", &[]);
        planted(conditions, PATH, "#[cfg(target_has_atomic = \"64\")]\nuse a::B;\n", &[]);
        planted(conditions, PATH, "#[cfg(unix)]\nmod unix;\n", &[(1, "cfg(unix)")]);
        planted(conditions, PATH, "a\nif cfg!(unix) {}\n", &[(2, "cfg(unix)")]);
        planted(conditions, PATH, "#[cfg_attr(unix, inline)]\n", &[(1, "cfg(unix)")]);
        planted(conditions, PATH, "#[cfg(test)]\nconst A: u8 = if cfg!(loom) { 2 };\n", &[]);
        planted(conditions, PATH, "// cfg(unix)\nf(\"cfg(unix)\");\n", &[]);
        let lib = "crates/clockjack-time/src/lib.rs";
        planted(conditions, lib, "#[cfg(feature = \"alloc\")]\n", &[]);
        let test = "crates/clockjack-time/tests/wheel.rs";
        planted(conditions, test, "#![cfg(feature = \"alloc\")]\n", &[]);
        planted(conditions, test, "#![cfg(unix)]\n", &[(1, "unix")]);
        planted(conditions, "xtask/src/main.rs", "#[cfg(unix)]\n", &[]);
    }
}
