//! One page per code: its meaning, a small file with the error, the corrected file, and the reason
//! for the rule. The pages are the chapters of `explain.md`. Examples omit the parts that every
//! file has; [`Page::complete`] adds them, so that tests can show that the wrong file produces the
//! code and the right file does not.

use std::sync::LazyLock;

use super::Code;

/// The explanation of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The code.
    pub code: Code,
    /// The meaning of the code, in one sentence.
    pub means: &'static str,
    /// A part of a file with the error; empty if no file can show the error.
    pub wrong: &'static str,
    /// The same part without the error; empty if no file can show the error.
    pub right: &'static str,
    /// The reason for the rule.
    pub why: &'static str,
}

/// The text of all pages: one chapter per code with its meaning, the two examples if there are any,
/// and the reason.
const TEXT: &str = include_str!("explain.md");

static PAGES: LazyLock<Vec<Page>> =
    LazyLock::new(|| TEXT.split("\n## ").skip(1).map(Page::parse).collect());

/// The page of a code.
#[must_use]
pub fn page(code: Code) -> &'static Page {
    let found = all().find(|page| page.code == code);
    found.expect("a test ensures that every code has a page")
}

/// All pages.
pub fn all() -> impl Iterator<Item = &'static Page> {
    PAGES.iter()
}

/// The parts that every file must have, with the text to use in an example that omits them.
const FRAME: [(&str, &str); 5] = [
    ("schema_version:", "schema_version: 1\n"),
    ("graph:", "graph: {name: example, kind: internal_test}\n"),
    ("lanes:", "lanes: {main: {type: event_loop}}\n"),
    ("components:", "components: [{id: one, type: counter, execution: {lane: main}}]\n"),
    ("edges:", "edges: []\n"),
];

impl Page {
    /// Parses a chapter. Tests ensure that every chapter has its parts.
    fn parse(chapter: &'static str) -> Self {
        let (name, rest) = chapter.split_once("\n\n").unwrap_or_default();
        let (means, rest) = rest.split_once("\n\n").unwrap_or_default();
        let (wrong, rest) = take_example(rest, "```yaml wrong\n");
        let (right, rest) = take_example(rest, "```yaml right\n");
        let code = Code::from_name(name).expect("a chapter begins with a code");
        let why = rest.strip_prefix("Why: ").expect("a chapter ends with a reason").trim_end();
        Self { code, means, wrong, right, why }
    }

    /// Completes an example to a whole file by adding the missing parts in front of it.
    #[must_use]
    pub fn complete(example: &str) -> String {
        let is_there = |key: &str| example.lines().any(|line| line.starts_with(key));
        let missing = FRAME.iter().filter(|(key, _)| !is_there(key));
        let mut out: String = missing.map(|(_, line)| *line).collect();
        out.push_str(example);
        out
    }

    /// Formats the page as text for a terminal.
    #[must_use]
    pub fn to_text(&self) -> String {
        let code = self.code;
        let (severity, category) = (code.severity(), code.category());
        let mut out = format!("{code} ({severity}, {category})\n\n{}\n", self.means);
        for (title, example) in [("Wrong:", self.wrong), ("Right:", self.right)] {
            if !example.is_empty() {
                out.push_str(&format!("\n{title}\n\n{}", indented(example)));
            }
        }
        out.push_str(&format!("\nWhy: {}\n", self.why));
        out
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Splits a text into the example that it begins with, which may be missing, and the rest.
fn take_example(text: &'static str, fence: &str) -> (&'static str, &'static str) {
    let Some(rest) = text.strip_prefix(fence) else { return ("", text) };
    let (example, rest) = rest.split_once("```\n\n").expect("a fence closes the example");
    (example, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_page() {
        for code in Code::ALL {
            assert_eq!(all().filter(|page| page.code == *code).count(), 1, "{code}");
        }
    }

    #[test]
    fn a_page_says_something_and_fits_a_terminal() {
        for page in all() {
            let text = page.to_text();
            assert!(page.means.ends_with('.') && page.why.ends_with('.'), "{}", page.code);
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            assert_eq!(page.wrong.is_empty(), page.right.is_empty(), "{}", page.code);
            for example in [page.wrong, page.right] {
                assert!(example.is_empty() || example.ends_with('\n'), "{}", page.code);
            }
            assert_ne!((page.wrong, page.wrong.is_empty()), (page.right, false), "{}", page.code);
        }
    }

    #[test]
    fn only_what_cannot_be_written_in_a_file_has_no_example() {
        let without: Vec<Code> =
            all().filter(|page| page.wrong.is_empty()).map(|page| page.code).collect();
        assert_eq!(without, [Code::InvalidEncoding, Code::GraphValidationError]);
    }

    #[test]
    fn an_example_is_completed_by_what_it_leaves_out() {
        let whole = Page::complete("edges:\n  - {id: e}\ngraph: {name: mine}\n");
        assert_eq!(
            whole,
            "schema_version: 1\nlanes: {main: {type: event_loop}}\n\
             components: [{id: one, type: counter, execution: {lane: main}}]\n\
             edges:\n  - {id: e}\ngraph: {name: mine}\n"
        );
    }
}
