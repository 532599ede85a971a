//! Extracts from a long output the lines that say what is wrong, for a reader who sees only the end
//! of a log.
//!
//! A line is recognised by its words, because the outputs come from many programs. Each such line
//! is kept together with some lines after it, which contain the message of a panic or the two sides
//! of a comparison. The last lines of the output are always kept.

/// The maximum number of lines of a digest.
const LINES: usize = 60;
/// If there are too many lines, this many of the first ones are kept: the first error often causes
/// the others.
const HEAD: usize = 46;
/// Lines that are kept after a line that reports an error.
const FOLLOWING: usize = 5;
/// Lines that are kept after a failed step of our own commands: they are the report of that step.
const FOLLOWING_STEP: usize = 30;
/// How many of the last lines are always kept.
const LAST: usize = 6;
/// A line is cut after this many characters.
const COLUMNS: usize = 200;

/// Words that occur in lines that report an error.
const FAULTS: [&str; 13] = [
    "FAILED",
    "SURVIVED",
    "panicked at",
    "error:",
    "error[",
    "failed",
    "Diff in ",
    "exited with",
    "was killed after",
    "overflowed its stack",
    "signal: ",
    "cannot ",
    "is missing",
];

/// The lines of `output` that say what went wrong, at most [`LINES`].
pub(crate) fn digest(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut kept = vec![false; lines.len()];
    kept[lines.len().saturating_sub(LAST)..].fill(true);
    let mut keep_until = 0;
    for (index, line) in lines.iter().enumerate() {
        if is_good_news(line) {
            continue;
        }
        if FAULTS.iter().any(|word| line.contains(word)) {
            let is_step = line.trim_start().starts_with('[') && line.contains("... FAILED");
            let following = if is_step { FOLLOWING_STEP } else { FOLLOWING };
            keep_until = keep_until.max(index + 1 + following);
        }
        kept[index] |= index < keep_until;
    }
    let cut = |line: &str| line.trim_end().chars().take(COLUMNS).collect::<String>();
    let mut found: Vec<String> =
        lines.iter().zip(kept).filter(|(_, kept)| *kept).map(|(line, _)| cut(line)).collect();
    if found.len() > LINES {
        let more = found.len() - (LINES - 1);
        found.splice(HEAD..HEAD + more, [format!("... {more} lines like these")]);
    }
    found
}

/// Whether the line only reports a success. Names of tests can contain any word, so these lines are
/// recognised first.
fn is_good_news(line: &str) -> bool {
    let text = line.trim();
    let is_test = text.starts_with("test ") && text.ends_with(" ... ok");
    let is_step = text.starts_with('[') && text.contains(" ... ok ");
    let is_total = text.ends_with(" 0 failed") || text.contains("; 0 failed;");
    is_item(text) || is_test || is_step || is_total
}

/// Whether the line says that one model or one shuttle test of many passed.
pub(crate) fn is_item(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words[..], [_, _, "ok", seconds] if seconds.ends_with('s'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of a step with two errors far before its end.
    fn output() -> String {
        let models = |n: usize| "   clockjack-exec   a_failed_step_is_told   ok   0.0s\n".repeat(n);
        format!(
            "test: 5 steps\n[1/5] build tests ... ok 9.9s  error: none\n{}\
             \x20  clockjack-exec   two_wakers   FAILED   0.1s\n\
             \x20  `loom two_wakers` exited with 101\n\
             \x20  thread 'two_wakers' panicked at tests/loom.rs:1:\n   left: 1\n   right: 2\n{}\
             [5/5] loom ... FAILED 9.9s\n      1 models failed\n7 passed, 1 failed\n",
            models(100),
            models(100)
        )
    }

    #[test]
    fn a_fault_far_in_front_of_the_end_is_kept_with_its_message() {
        let found = digest(&output());
        let expected = [
            "FAILED   0.1s",
            "exited with",
            "panicked at",
            "left: 1",
            "right: 2",
            "[5/5]",
            "1 models",
            "1 failed",
        ];
        // Of the lines that report a success, only those among the last lines remain.
        let bad: Vec<&String> = found.iter().filter(|line| !is_good_news(line)).collect();
        assert_eq!(bad.len(), expected.len(), "{found:#?}");
        for (line, part) in bad.iter().zip(expected) {
            assert!(line.contains(part), "{line}");
        }
        assert!(found.len() <= expected.len() + LAST);
    }

    #[test]
    fn of_many_faults_the_first_and_the_last_remain() {
        let output: String = (0..500).map(|n| format!("error: number {n}\n")).collect();
        let found = digest(&output);
        assert_eq!(found.len(), LINES);
        assert_eq!(found[0], "error: number 0");
        assert_eq!(found[HEAD], "... 441 lines like these");
        assert_eq!(found[LINES - 1], "error: number 499");
    }

    #[test]
    fn an_output_without_a_known_word_leaves_its_end() {
        let output: String = (0..50).map(|n| format!("line {n}\n\n")).collect();
        let found = digest(&output);
        assert_eq!(found.len(), LAST);
        assert_eq!(found[LAST - 1], "line 49");
        assert!(digest("").is_empty());
    }

    #[test]
    fn names_of_passed_tests_are_not_errors() {
        for line in [
            "test console::a_failed_step_fails_the_command ... ok",
            "test error: x - should panic ... ok",
            "  clockjack-rt  parker::an_error_is_told   ok    0.2s",
            "[2/5] unit tests ... ok 9.9s  3 passed, 0 failed",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured",
            "7 passed, 0 failed",
        ] {
            assert!(is_good_news(line), "{line}");
        }
        for line in [
            "test a ... FAILED",
            "clockjack-rt  a_model  FAILED  0.2s",
            "[2/5] unit tests ... FAILED 9.9s",
            "7 passed, 10 failed",
            "mutant  SURVIVED",
        ] {
            assert!(!is_good_news(line), "{line}");
        }
    }
}
