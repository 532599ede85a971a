//! A file with its text, and for Rust the text without comments and without literals.

use super::Fault;

/// A file, prepared for the rules.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text with comments blanked; every byte keeps its place.
    pub(super) bare: String,
    /// The text with comments and the insides of string and character literals blanked.
    pub(crate) code: String,
}

impl Source {
    /// Reads a text.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let is_rust = path.ends_with(".rs");
        let [bare, code] = if is_rust { blank(text) } else { [text, text].map(str::to_owned) };
        Self { path: path.to_owned(), text: text.to_owned(), bare, code }
    }

    /// Whether this is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The crate under `crates/` it belongs to.
    pub(super) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The last part of the path.
    pub(super) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether the whole file is tests or benches.
    pub(crate) fn is_test_file(&self) -> bool {
        let n_package_parts = if self.path.starts_with("crates/") { 2 } else { 1 };
        let mut inner = self.path.split('/').skip(n_package_parts);
        inner.any(|part| ["tests", "benches", "tests.rs"].contains(&part))
    }

    /// Where the unit tests at the end of the file begin; its length if there are none.
    pub(super) fn tests_at(&self) -> usize {
        let begin_of = |mark: &str| {
            let is_inline = |at: &usize| {
                let rest = &self.code[at + mark.len()..];
                rest.find(['{', ';']).is_some_and(|end| rest.as_bytes()[end] == b'{')
            };
            self.code.match_indices(mark).map(|(at, _)| at).find(is_inline)
        };
        // Many unit tests cannot run in a model.
        let marks = ["#[cfg(test)]\nmod ", "#[cfg(all(test, not(loom)))]\nmod "];
        marks.into_iter().filter_map(begin_of).min().unwrap_or(self.code.len())
    }

    /// A fault at a byte of the text.
    pub(super) fn fault(&self, at: usize, what: impl Into<String>) -> Fault {
        let line = self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        Fault { path: self.path.clone(), line, what: what.into() }
    }
}

/// Places of `word` in `text` that are not part of a longer word.
pub(super) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let starts = !word.starts_with(is_part) || !before.is_some_and(is_part);
        let ends = !word.ends_with(is_part) || !after.is_some_and(is_part);
        starts && ends
    })
}

/// The text without comments, and the text without comments and literals.
fn blank(text: &str) -> [String; 2] {
    let mut bare = text.as_bytes().to_vec();
    let mut code = bare.clone();
    let mut at = 0;
    while at < text.len() {
        let (kind, end) = token(text, at);
        let range = at..end;
        match kind {
            Kind::Comment => [&mut bare, &mut code].map(|bytes| erase(&mut bytes[range.clone()])),
            Kind::Literal { quote } => {
                [(); 2].map(|()| erase(&mut code[at + quote..(end - 1).max(at + quote)]))
            }
            Kind::Other => [(); 2],
        };
        at = end;
    }
    [bare, code].map(|bytes| String::from_utf8(bytes).expect("whole characters were blanked"))
}

fn erase(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

enum Kind {
    Comment,
    /// The opening of the literal is `quote` bytes long.
    Literal {
        quote: usize,
    },
    Other,
}

/// The token at `at` and where it ends.
fn token(text: &str, at: usize) -> (Kind, usize) {
    let rest = &text[at..];
    if rest.starts_with("//") {
        return (Kind::Comment, at + rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, at + block_comment(rest));
    }
    if let Some((open, close)) = raw_string(text, at) {
        let end = rest[open..].find(&close).map_or(rest.len(), |end| open + end + close.len());
        return (Kind::Literal { quote: open }, at + end);
    }
    if rest.starts_with('"') {
        return (Kind::Literal { quote: 1 }, at + quoted(rest, '"'));
    }
    if rest.starts_with('\'') && is_character(rest) {
        return (Kind::Literal { quote: 1 }, at + quoted(rest, '\''));
    }
    (Kind::Other, at + rest.chars().next().map_or(1, char::len_utf8))
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of the opening of a raw string at this position, and its closing text.
fn raw_string(text: &str, at: usize) -> Option<(usize, String)> {
    let before = text[..at].chars().next_back();
    if before.is_some_and(|char| char.is_alphanumeric() || char == '_') {
        return None;
    }
    let rest = &text[at..];
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let n_hashes = rest[prefix.len()..].find('"')?;
    Some((prefix.len() + n_hashes + 1, format!("\"{}", "#".repeat(n_hashes))))
}

/// The length of a literal with escapes, both quotes included.
fn quoted(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, char) in rest.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if char == quote => return at + 1,
            _ => (),
        }
    }
    rest.len()
}

/// Whether this is a character literal and not a lifetime.
fn is_character(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, bare: &str, code: &str) {
        let source = Source::new("a.rs", text);
        assert_eq!((source.bare.as_str(), source.code.as_str()), (bare, code));
    }

    #[test]
    fn comments_and_literals_are_blanked_in_place() {
        check("a // b\nc", "a     \nc", "a     \nc");
        check("a /* /* b */ c */ d", "a                 d", "a                 d");
        check(r#"f("x // y")"#, r#"f("x // y")"#, r#"f("      ")"#);
        check(r#"f("\"b") // c"#, r#"f("\"b")     "#, r#"f("   ")     "#);
        check("'\"' 'a b", "'\"' 'a b", "' ' 'a b");
        check("f::<'a>('\\'')", "f::<'a>('\\'')", "f::<'a>('  ')");
    }

    #[test]
    fn raw_strings_end_at_their_own_mark() {
        let text = "r#\"a \" // b\"# c";
        check(text, text, "r#\"         # c");
    }

    #[test]
    fn a_word_is_not_part_of_another() {
        assert_eq!(words("dbg!(a) mydbg!(b) dbg!", "dbg!").collect::<Vec<_>>(), [0, 18]);
        assert_eq!(words("a_b b", "b").collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn unit_tests_begin_at_their_module() {
        let text = "fn f() {}\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(Source::new("a.rs", text).tests_at(), 10);
        let without_loom = "fn f() {}\n#[cfg(all(test, not(loom)))]\nmod tests {\n}\n";
        assert_eq!(Source::new("a.rs", without_loom).tests_at(), 10);
        let outside = "#[cfg(test)]\nmod tests;\nfn f() {}\n";
        assert_eq!(Source::new("a.rs", outside).tests_at(), outside.len());
    }

    #[test]
    fn test_files_are_known_by_their_place() {
        let is_test = |path| Source::new(path, "").is_test_file();
        assert!(is_test("crates/clockjack-time/tests/loom.rs"));
        assert!(is_test("crates/clockjack-time/src/wheel/tests.rs"));
        assert!(is_test("crates/clockjack-time/src/wheel/tests/model.rs"));
        assert!(is_test("compare/tests/timers.rs"));
        assert!(!is_test("crates/clockjack-time/src/wheel.rs"));
        assert!(!is_test("benches/src/main.rs"));
    }
}
