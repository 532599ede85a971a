//! Parses the output of the test harness: the tests of a binary, their outcomes, the totals.

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    Ignored,
}

impl Outcome {
    /// The word that the harness prints for this outcome.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::Ignored => "ignored",
        }
    }
}

/// Tests that passed and failed, summed over binaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl core::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// A test with the binary or document it came from, as cargo announced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran<'a> {
    /// The executable of a `Running` line, or the crate of a `Doc-tests` line.
    pub(crate) origin: &'a str,
    pub(crate) name: &'a str,
    pub(crate) outcome: Outcome,
}

/// Sums the `test result:` lines of an output.
pub(crate) fn totals(output: &str) -> Totals {
    let mut sum = Totals::default();
    for line in output.lines() {
        let Some(counts) = line.trim_start().strip_prefix("test result: ") else { continue };
        let count = |word: &str| {
            counts
                .split([';', '.'])
                .find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
                .unwrap_or(0)
        };
        sum += Totals { passed: count("passed"), failed: count("failed") };
    }
    sum
}

/// The tests of an output of `cargo test`, each with its origin.
pub(crate) fn ran(output: &str) -> Vec<Ran<'_>> {
    let mut origin = "";
    let mut found = Vec::new();
    for line in output.lines() {
        let text = line.trim_start();
        if let Some(rest) = text.strip_prefix("Running ") {
            origin = rest.rsplit_once('(').map_or(rest, |(_, path)| path.trim_end_matches(')'));
        } else if let Some(rest) = text.strip_prefix("Doc-tests ") {
            origin = rest.trim();
        } else if let Some((name, outcome)) = outcome(line) {
            found.push(Ran { origin, name, outcome });
        }
    }
    found
}

/// Test names in the output of a test binary's `--list --format terse`.
pub(crate) fn listed(output: &str) -> Vec<String> {
    output.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// The output of failing tests of all binaries, without backtraces.
pub(crate) fn failures(output: &str) -> String {
    let mut shown = String::new();
    let (mut is_inside, mut is_backtrace) = (false, false);
    for line in output.lines() {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            (is_inside, is_backtrace) = (true, false);
        } else if line == "failures:" {
            is_inside = false;
        } else if line == "stack backtrace:" {
            is_backtrace = true;
        }
        if is_inside && !is_backtrace && !line.is_empty() {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    shown
}

fn outcome(line: &str) -> Option<(&str, Outcome)> {
    let (name, word) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    // The harness prints `name - should panic` for a test that must panic, and `.. - compile` for a
    // doc test that is only compiled.
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    let outcome = match word.split([',', ' ']).next()? {
        "ok" => Outcome::Passed,
        "FAILED" => Outcome::Failed,
        "ignored" => Outcome::Ignored,
        _ => return None,
    };
    Some((name, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
     Running unittests src/lib.rs (target/debug/deps/sample-0123)

running 3 tests
test wheel::fires_in_order ... ok
test wheel::refuses_the_past - should panic ... ok
test wheel::is_skipped ... ignored, reason

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/loom.rs (target/debug/deps/loom-4567)

running 1 test
test lease ... FAILED

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out

   Doc-tests sample

running 1 test
test src/lib.rs - wheel (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out
";

    #[test]
    fn totals_are_summed_over_binaries() {
        assert_eq!(totals(OUTPUT), Totals { passed: 3, failed: 1 });
        assert_eq!(totals("error: could not compile"), Totals::default());
    }

    #[test]
    fn each_test_is_told_with_its_binary_and_outcome() {
        let lib = "target/debug/deps/sample-0123";
        let expected = [
            (lib, "wheel::fires_in_order", Outcome::Passed),
            (lib, "wheel::refuses_the_past", Outcome::Passed),
            (lib, "wheel::is_skipped", Outcome::Ignored),
            ("target/debug/deps/loom-4567", "lease", Outcome::Failed),
            ("sample", "src/lib.rs - wheel (line 3)", Outcome::Passed),
        ];
        let expected = expected.map(|(origin, name, outcome)| Ran { origin, name, outcome });
        assert_eq!(ran(OUTPUT), expected);
    }

    #[test]
    fn failures_are_found_in_front_of_other_binaries() {
        let output = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\n\nthread 'a' panicked\n\
                      left: 1\nstack backtrace:\n   0: main\n\n\n---- b stdout ----\nthread 'b'\n\n\
                      failures:\n    a\n    b\n\ntest result: FAILED. 0 passed; 2 failed\n\
                      running 1 test\ntest c ... ok\n";
        let expected =
            "---- a stdout ----\nthread 'a' panicked\nleft: 1\n---- b stdout ----\nthread 'b'\n";
        assert_eq!(failures(output), expected);
        assert_eq!(failures("error: could not compile"), "");
    }

    #[test]
    fn a_list_names_tests_and_leaves_benches_out() {
        assert_eq!(listed("a::b: test\nc: bench\n\n1 test, 1 benchmark\n"), ["a::b"]);
    }
}
