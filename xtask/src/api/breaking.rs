//! Which changes of a public surface break programs.
//!
//! The surface is the text in `api/`, so the check needs no compiler and works on any two commits.
//! Where the text does not say enough, the check is strict: an item that has moved to another path
//! counts as removed. The chapter "Versions" of the book states the rules for users.

use std::collections::{BTreeMap, BTreeSet};

use crate::version::Changes;

/// Auto traits: a type that has no line about them has them.
const AUTO_TRAITS: [&str; 2] = ["Send", "Sync"];
/// What may precede the path of an item.
const KEYWORDS: [&str; 14] = [
    "pub", "unsafe", "async", "const", "fn", "struct", "enum", "union", "trait", "mod", "type",
    "static", "use", "macro",
];
/// Marks a type that may get further fields or variants.
pub(super) const OPEN: &str = ", non-exhaustive";
/// Marks a struct without fields: its name is a value.
pub(super) const UNIT: &str = ";";
/// Marks a member of a trait that has a default.
pub(super) const PROVIDED: &str = " { .. }";

/// The changes between two surfaces of one crate.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Each line that breaks programs, with its sign and the reason.
    pub(crate) breaking: Vec<String>,
    /// How many changes break nothing.
    pub(crate) n_additions: usize,
}

impl Difference {
    /// The weightiest of the changes.
    pub(crate) fn changes(&self) -> Changes {
        match (self.breaking.is_empty(), self.n_additions) {
            (false, _) => Changes::Breaking,
            (true, 0) => Changes::Nothing,
            (true, _) => Changes::Additions,
        }
    }

    /// Adds the changes of another crate.
    pub(crate) fn extend(&mut self, other: Self) {
        self.breaking.extend(other.breaking);
        self.n_additions += other.n_additions;
    }
}

/// Compares two surfaces of one crate.
pub(crate) fn compare(before: &str, now: &str) -> Difference {
    let (old, new) = (Surface::of(before), Surface::of(now));
    let mut difference = Difference::default();
    for line in old.lines.difference(&new.lines) {
        let is_relaxed = relaxed(line).iter().any(|line| new.lines.contains(line.as_str()));
        if is_relaxed || line.starts_with("impl Drop for ") {
            difference.n_additions += 1;
        } else if !is_of_removed(line, &old, &new) {
            difference.breaking.push(format!("- {line}"));
        }
    }
    for line in new.lines.difference(&old.lines) {
        match old.broken_by(line) {
            Some(why) => difference.breaking.push(format!("+ {line}   ({why})")),
            None => difference.n_additions += 1,
        }
    }
    for ((path, auto_trait), old_lines) in &old.auto_traits {
        let new_lines = new.auto_traits.get(&(*path, *auto_trait));
        match new_lines {
            None if new.types.contains_key(path) => difference.n_additions += 1,
            None => (),
            Some(new_lines) if new_lines == old_lines => (),
            Some(_) if is_negative(old_lines) => difference.n_additions += 1,
            Some(new_lines) => difference.breaking.push(narrowed(new_lines)),
        }
    }
    for (key @ (path, _), new_lines) in &new.auto_traits {
        if !old.auto_traits.contains_key(key) && old.types.contains_key(path) {
            difference.breaking.push(narrowed(new_lines));
        }
    }
    difference
}

/// Whether a removed line belongs to a type that was removed, too: the line of the type is enough.
fn is_of_removed(line: &str, old: &Surface<'_>, new: &Surface<'_>) -> bool {
    let of_impl = line.strip_suffix(')').and_then(|line| Some(line.rsplit_once(" (")?.1));
    let owner = of_impl.filter(|_| line.starts_with("impl"));
    let owner = owner.or_else(|| Some(path_of(line).rsplit_once("::")?.0));
    owner.is_some_and(|owner| old.types.contains_key(owner) && !new.types.contains_key(owner))
}

fn narrowed(lines: &BTreeSet<&str>) -> String {
    let lines: Vec<&str> = lines.iter().copied().collect();
    format!("+ {}   (the type had this trait in more cases)", lines.join("; "))
}

fn is_negative(lines: &BTreeSet<&str>) -> bool {
    lines.iter().any(|line| AUTO_TRAITS.iter().any(|name| line.contains(&format!("!{name} for "))))
}

/// The lines that may replace this one if its item only became easier to use: a type that is no
/// longer open, a struct whose name has become a value, a member of a trait that has got a default.
fn relaxed(line: &str) -> [String; 2] {
    match line.strip_suffix(OPEN) {
        Some(closed) => [closed.to_owned(), format!("{closed}{UNIT}")],
        None => [format!("{line}{PROVIDED}"), format!("{line}{UNIT}")],
    }
}

/// What the lines of a surface say about each other.
struct Surface<'t> {
    /// All lines except those about auto traits.
    lines: BTreeSet<&'t str>,
    /// Path and name of the auto trait, and the lines about it.
    auto_traits: BTreeMap<(&'t str, &'static str), BTreeSet<&'t str>>,
    types: BTreeMap<&'t str, Type>,
}

#[derive(Debug, PartialEq, Eq)]
enum Type {
    Enum,
    /// Whether users can write a value of it, field by field, with nothing after the fields.
    Struct {
        is_written_in_full: bool,
    },
    Trait,
    /// Anything that may grow.
    Open,
}

impl<'t> Surface<'t> {
    fn of(text: &'t str) -> Self {
        let mut surface =
            Self { lines: BTreeSet::new(), auto_traits: BTreeMap::new(), types: BTreeMap::new() };
        for line in text.lines() {
            match auto_trait(line) {
                Some(key) => drop(surface.auto_traits.entry(key).or_default().insert(line)),
                None => drop(surface.lines.insert(line)),
            }
        }
        let types: Vec<_> =
            surface.lines.iter().filter_map(|line| surface.declared(line)).collect();
        surface.types.extend(types);
        surface
    }

    /// The type that a line declares.
    fn declared(&self, line: &'t str) -> Option<(&'t str, Type)> {
        let kind = line.strip_prefix("pub ")?.split(' ').next()?;
        let path = path_of(line);
        let of = match kind {
            "enum" | "struct" | "union" if line.ends_with(OPEN) => Type::Open,
            "enum" => Type::Enum,
            "struct" | "union" => {
                let has = |start: String| self.lines.iter().any(|line| line.starts_with(&start));
                let has_fields = has(format!("pub {path}::"));
                let has_default = has(format!("pub const {path}::DEFAULT: "));
                Type::Struct { is_written_in_full: has_fields && !has_default }
            }
            "trait" => Type::Trait,
            _ => return None,
        };
        Some((path, of))
    }

    /// Why an added line breaks programs that were written for this surface, if it does.
    fn broken_by(&self, added: &str) -> Option<&'static str> {
        let (parent, _) = path_of(added).rsplit_once("::")?;
        let is_part = added.strip_prefix("pub ").is_some_and(|rest| rest.starts_with(parent));
        match self.types.get(parent)? {
            Type::Enum if is_part => Some("a `match` may be without this variant"),
            Type::Struct { is_written_in_full: true } if is_part => {
                Some("a value that is written field by field is without this field")
            }
            Type::Trait if !added.ends_with(PROVIDED) => Some("an `impl` is without this member"),
            _ => None,
        }
    }
}

/// The type and the auto trait that a line is about.
fn auto_trait(line: &str) -> Option<(&str, &'static str)> {
    let path = line.strip_suffix(')')?.rsplit_once(" (")?.1;
    let is_about = |name: &&&str| {
        line.starts_with("impl")
            && (line.contains(&format!(" {name} for ")) || line.contains(&format!(" !{name} for ")))
    };
    AUTO_TRAITS.iter().find(is_about).map(|name| (path, *name))
}

/// The path of the item that a line describes; of an implementation, nothing.
fn path_of(line: &str) -> &str {
    let mut rest = line;
    while let Some((word, behind)) = rest.split_once(' ')
        && KEYWORDS.contains(&word)
    {
        rest = behind;
    }
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | ':' | '#');
    let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
    rest[..end].trim_end_matches(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
impl !Sync for Gate (a::Gate)
impl Clone for Gate (a::Gate)
impl<T> Send for Cell<T> where T: Send (a::Cell)
pub a::Closed::One
pub a::Config::n: u32
pub a::Open::One(u8)
pub a::Pair::left: u32
pub const a::Config::DEFAULT: Self
pub enum a::Closed
pub enum a::Open, non-exhaustive
pub fn a::Gate::open(&self) -> bool
pub fn a::Step::run(&mut self)
pub struct a::Cell<T>
pub struct a::Config
pub struct a::Gate
pub struct a::Pair
pub struct a::Unit;
pub trait a::Step: Send
pub type a::Alias = u32
";

    /// Compares `BEFORE` with a copy in which one line is replaced; lines can be several or none.
    #[track_caller]
    fn check(from: &str, to: &str, expected: Changes, words: &str) {
        let now = if from.is_empty() {
            format!("{BEFORE}{to}\n")
        } else {
            let line = format!("{from}\n");
            assert!(BEFORE.contains(&line), "{from}");
            let to = if to.is_empty() { String::new() } else { format!("{to}\n") };
            BEFORE.replace(&line, &to)
        };
        let difference = compare(BEFORE, &now);
        assert_eq!(difference.changes(), expected, "{from} -> {to}: {difference:?}");
        assert!(difference.breaking.join("\n").contains(words), "{words}: {difference:?}");
    }

    #[test]
    fn a_removed_or_changed_item_breaks_programs() {
        use Changes::Breaking;
        check("pub fn a::Gate::open(&self) -> bool", "", Breaking, "- pub fn a::Gate::open");
        let changed = "pub fn a::Gate::open(&mut self) -> bool";
        check("pub fn a::Gate::open(&self) -> bool", changed, Breaking, "- pub fn a::Gate::open(&");
        check("impl Clone for Gate (a::Gate)", "", Breaking, "- impl Clone for Gate");
        check(
            "pub type a::Alias = u32",
            "pub type a::Alias = u64",
            Breaking,
            "- pub type a::Alias",
        );
        check("pub enum a::Closed", "pub enum a::Closed, non-exhaustive", Breaking, "a::Closed");
        // A hidden field: no value can be written any more.
        check("pub struct a::Unit;", "pub struct a::Unit", Breaking, "- pub struct a::Unit;");
        check("pub struct a::Pair", "pub struct a::Pair, non-exhaustive", Breaking, "a::Pair");
        let field = "pub a::Unit::x: u8\npub struct a::Unit";
        check("pub struct a::Unit;", field, Breaking, "- pub struct a::Unit;");
    }

    #[test]
    fn a_removed_type_is_one_change_whatever_it_had() {
        let kept: Vec<&str> = BEFORE.lines().filter(|line| !line.contains("Gate")).collect();
        let difference = compare(BEFORE, &kept.join("\n"));
        assert_eq!(difference.breaking, ["- pub struct a::Gate"]);
    }

    #[test]
    fn an_addition_breaks_programs_only_where_they_must_name_everything() {
        use Changes::{Additions, Breaking};
        check("", "pub fn a::Gate::close(&self)", Additions, "");
        check("", "pub struct a::New\npub a::New::x: u8", Additions, "");
        check("", "pub a::Open::Two", Additions, "");
        check("", "pub a::Closed::Two", Breaking, "without this variant");
        check("", "pub a::Pair::right: u32", Breaking, "without this field");
        check("", "pub a::Config::m: u32", Additions, "");
        check("", "pub a::Gate::x: u32", Additions, "");
        check("", "pub fn a::Step::stop(&mut self)", Breaking, "without this member");
        check("", "pub fn a::Step::stop(&mut self) { .. }", Additions, "");
        check("", "pub fn a::Closed::count(&self) -> u8", Additions, "");
        check("", "impl Debug for Gate (a::Gate)", Additions, "");
        check("", "pub trait a::New\npub fn a::New::run(&self)", Additions, "");
    }

    #[test]
    fn what_becomes_easier_to_use_breaks_nothing() {
        use Changes::Additions;
        check("pub enum a::Open, non-exhaustive", "pub enum a::Open", Additions, "");
        check("pub struct a::Gate", "pub struct a::Gate;", Additions, "");
        let provided = "pub fn a::Step::run(&mut self) { .. }";
        check("pub fn a::Step::run(&mut self)", provided, Additions, "");
        check("impl !Sync for Gate (a::Gate)", "", Additions, "");
        check("impl<T> Send for Cell<T> where T: Send (a::Cell)", "", Additions, "");
    }

    #[test]
    fn a_type_that_loses_send_or_sync_breaks_programs() {
        use Changes::{Additions, Breaking};
        check("", "impl !Send for Gate (a::Gate)", Breaking, "+ impl !Send for Gate");
        check("", "impl<T> Sync for Cell<T> where T: Sync (a::Cell)", Breaking, "in more cases");
        let (before, never) = (
            "impl<T> Send for Cell<T> where T: Send (a::Cell)",
            "impl<T> !Send for Cell<T> (a::Cell)",
        );
        check(before, never, Breaking, "in more cases");
        check("", "impl !Send for New (a::New)\npub struct a::New", Additions, "");
        check("impl !Sync for Gate (a::Gate)", "impl Sync for Gate (a::Gate)", Additions, "");
    }

    #[test]
    fn equal_surfaces_differ_by_nothing() {
        assert_eq!(compare(BEFORE, BEFORE), Difference::default());
        assert_eq!(compare(BEFORE, BEFORE).changes(), Changes::Nothing);
    }
}
