//! The filter language: one for all front ends, evaluated next to the data.
//!
//! ```text
//! filter  = { space term }
//! term    = ["-"] ( field ":" words | field compare number | text )
//! words   = text { "," text }                         one of them
//! compare = ">" | ">=" | "<" | "<=" | "="
//! number  = digits ["." digits] [ "%" | "k" | "M" | "ns" | "us" | "ms" | "s" ]
//! text    = a word without spaces, or anything between double quotes
//! ```
//!
//! All terms hold. A text alone is a part of the path. A path with a leading slash means that actor
//! and all below it; any other text is searched for, in whatever case.

use core::fmt;

use crate::view::{ActorRow, AskRow, JobRow, Number, TreeRow};

/// The longest filter, in bytes.
const LENGTH_MAX: usize = 1024;

/// Which rows are wanted. The default wants all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    is_negated: bool,
    what: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    /// One of these texts is in the field; the path if there is no field.
    Text(Option<&'static str>, Vec<String>),
    Number(&'static str, Compare, Limit),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compare {
    More,
    AtLeast,
    Less,
    AtMost,
    Equal,
}

/// A number with the unit that it was written with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limit {
    written: f64,
    unit: &'static str,
}

/// Fields with text.
const TEXTS: &[&str] = &["path", "state", "type", "pid", "mode", "job"];

/// Fields with numbers.
const NUMBERS: &[&str] = &[
    "depth", "capacity", "rate", "handled", "wait", "share", "restarts", "refused", "children",
    "below", "backlog", "missed", "due", "period",
];

/// Units: the longer ones first, so that `ms` is not read as `s`.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("%", 0.01),
    ("k", 1e3),
    ("M", 1e6),
    ("", 1.0),
];

const COMPARES: &[(&str, Compare)] = &[
    (">=", Compare::AtLeast),
    ("<=", Compare::AtMost),
    (">", Compare::More),
    ("<", Compare::Less),
    ("=", Compare::Equal),
];

/// A row that a filter can look at.
pub trait Filtered {
    /// The text in this field; `None` if the row has no such field.
    fn text(&self, field: &str) -> Option<&str>;

    /// The number in this field; unknown if the row has no such field.
    fn number(&self, field: &str) -> Number;
}

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Where, in bytes from the begin.
    pub at: usize,
    /// What is wrong there.
    pub text: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.text, self.at)
    }
}

impl core::error::Error for FilterError {}

fn error<T>(at: usize, text: impl Into<String>) -> Result<T, FilterError> {
    Err(FilterError { at, text: text.into() })
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    ///
    /// If the text is no filter.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        if text.len() > LENGTH_MAX {
            return error(LENGTH_MAX, format!("a filter has at most {LENGTH_MAX} bytes"));
        }
        let terms = words(text)?.into_iter().map(|(at, word)| Term::parse(at, word));
        Ok(Self { terms: terms.collect::<Result<_, _>>()? })
    }

    /// Whether it wants all rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether it wants this row.
    #[must_use]
    pub fn matches(&self, row: &impl Filtered) -> bool {
        self.terms.iter().all(|term| term.what.holds(row) != term.is_negated)
    }
}

/// The words with their positions; spaces between double quotes do not separate.
fn words(text: &str) -> Result<Vec<(usize, &str)>, FilterError> {
    let mut words = Vec::new();
    let mut begin = None;
    let mut quoted_at = None;
    for (at, char) in text.char_indices() {
        match char {
            '"' => {
                quoted_at = if quoted_at.is_none() { Some(at) } else { None };
                begin = begin.or(Some(at));
            }
            char if char.is_whitespace() && quoted_at.is_none() => {
                words.extend(begin.take().map(|begin| (begin, &text[begin..at])));
            }
            _ => begin = begin.or(Some(at)),
        }
    }
    if let Some(at) = quoted_at {
        return error(at, "the quote is not closed");
    }
    words.extend(begin.map(|begin| (begin, &text[begin..])));
    Ok(words)
}

fn known(names: &'static [&'static str], name: &str) -> Option<&'static str> {
    names.iter().copied().find(|known| *known == name)
}

impl Term {
    fn parse(at: usize, word: &str) -> Result<Self, FilterError> {
        let (is_negated, rest) = match word.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let at = at + (word.len() - rest.len());
        if rest.is_empty() {
            return error(at, "a term is missing behind `-`");
        }
        let letters = rest.find(|char: char| !char.is_ascii_lowercase()).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(letters);
        let what = if let Some(texts) = behind.strip_prefix(':').filter(|_| !name.is_empty()) {
            Test::text(at, name, texts)?
        } else if let Some((sign, compare)) =
            COMPARES.iter().find(|(sign, _)| !name.is_empty() && behind.starts_with(sign))
        {
            let number = &behind[sign.len()..];
            Test::number(at, name, *compare, number)?
        } else {
            Test::Text(None, vec![unquoted(rest)])
        };
        Ok(Self { is_negated, what })
    }
}

fn unquoted(text: &str) -> String {
    text.chars().filter(|char| *char != '"').collect()
}

impl Test {
    fn text(at: usize, name: &str, texts: &str) -> Result<Self, FilterError> {
        let Some(field) = known(TEXTS, name) else {
            return error(at, format!("`{name}` is no field with text; there are {TEXTS:?}"));
        };
        // A comma between quotes separates as well; no path and no type has one.
        let texts: Vec<String> =
            texts.split(',').map(unquoted).filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return error(at, format!("a text is missing behind `{name}:`"));
        }
        Ok(Self::Text(Some(field), texts))
    }

    fn number(at: usize, name: &str, compare: Compare, text: &str) -> Result<Self, FilterError> {
        let Some(field) = known(NUMBERS, name) else {
            return error(at, format!("`{name}` is no field with a number; there are {NUMBERS:?}"));
        };
        let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit)).map_or("", |unit| unit.0);
        let digits = &text[..text.len() - unit.len()];
        let is_number = digits.chars().all(|char| char.is_ascii_digit() || char == '.');
        let Some(written) = digits.parse::<f64>().ok().filter(|_| is_number) else {
            return error(at, format!("`{text}` is no number"));
        };
        Ok(Self::Number(field, compare, Limit { written, unit }))
    }

    fn holds(&self, row: &impl Filtered) -> bool {
        match self {
            Self::Text(field, texts) => {
                let field = field.unwrap_or("path");
                let Some(value) = row.text(field) else { return false };
                texts.iter().any(|text| text_matches(field, value, text))
            }
            Self::Number(field, compare, limit) => {
                // An unknown number is neither large nor small.
                let Some(value) = row.number(field).value else { return false };
                compare.holds(value, limit.value())
            }
        }
    }
}

fn text_matches(field: &str, value: &str, text: &str) -> bool {
    match field {
        "path" if text.starts_with('/') => {
            let text = text.strip_suffix('/').unwrap_or(text);
            value.strip_prefix(text).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        "state" | "mode" => value.eq_ignore_ascii_case(text),
        _ => value.to_lowercase().contains(&text.to_lowercase()),
    }
}

impl Compare {
    #[expect(clippy::float_cmp, reason = "the user has asked for this number")]
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::More => value > limit,
            Self::AtLeast => value >= limit,
            Self::Less => value < limit,
            Self::AtMost => value <= limit,
            Self::Equal => value == limit,
        }
    }
}

impl Limit {
    fn value(self) -> f64 {
        let factor = UNITS.iter().find(|(unit, _)| *unit == self.unit).map_or(1.0, |unit| unit.1);
        self.written * factor
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, term) in self.terms.iter().enumerate() {
            let (space, minus) =
                (if n > 0 { " " } else { "" }, if term.is_negated { "-" } else { "" });
            write!(f, "{space}{minus}")?;
            match &term.what {
                Test::Text(None, texts) => write!(f, "{}", quoted(texts.first()))?,
                Test::Text(Some(field), texts) => {
                    let texts: Vec<_> = texts.iter().map(|text| quoted(Some(text))).collect();
                    write!(f, "{field}:{}", texts.join(","))?;
                }
                Test::Number(field, compare, Limit { written, unit }) => {
                    let sign =
                        COMPARES.iter().find(|one| one.1 == *compare).map_or("=", |one| one.0);
                    write!(f, "{field}{sign}{written}{unit}")?;
                }
            }
        }
        Ok(())
    }
}

fn quoted(text: Option<&String>) -> String {
    let text = text.map_or("", String::as_str);
    let is_plain = !text.contains(|char: char| char.is_whitespace() || ":<>=-".contains(char));
    if is_plain && !text.is_empty() { text.to_owned() } else { format!("\"{text}\"") }
}

impl Filtered for ActorRow {
    fn text(&self, field: &str) -> Option<&str> {
        Some(match field {
            "path" => &self.path,
            "state" => self.state.name(),
            "type" => &self.type_name,
            "pid" => &self.pid,
            _ => return None,
        })
    }

    fn number(&self, field: &str) -> Number {
        match field {
            "depth" => self.depth,
            "capacity" => self.capacity,
            "rate" => self.rate,
            "handled" => self.handled,
            "wait" => self.wait_ns,
            "share" => self.share,
            "restarts" => self.restarts,
            "refused" => self.refused,
            _ => Number::UNKNOWN,
        }
    }
}

impl Filtered for TreeRow {
    fn text(&self, field: &str) -> Option<&str> {
        self.actor.text(field)
    }

    fn number(&self, field: &str) -> Number {
        match field {
            "children" => self.children,
            "below" => self.below,
            _ => self.actor.number(field),
        }
    }
}

impl Filtered for JobRow {
    fn text(&self, field: &str) -> Option<&str> {
        Some(match field {
            "job" | "path" => &self.job,
            "state" => &self.state,
            "mode" => &self.mode,
            _ => return None,
        })
    }

    fn number(&self, field: &str) -> Number {
        match field {
            "backlog" => self.backlog,
            "missed" => self.missed,
            "due" => self.due_in_ns,
            "period" => self.period_ns,
            _ => Number::UNKNOWN,
        }
    }
}

impl Filtered for AskRow {
    fn text(&self, field: &str) -> Option<&str> {
        (field == "path").then_some(&self.from)
    }

    fn number(&self, _: &str) -> Number {
        Number::UNKNOWN
    }
}

#[cfg(test)]
mod tests;
