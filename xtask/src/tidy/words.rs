//! Rules about project-specific words: `xtask/words.toml` lists the retired ones, the section
//! "Words" of ARCHITECTURE.md those that remain.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::{
    Fault,
    source::{Source, words},
};

/// The document that explains the words that remain.
const DOCUMENT: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Words";
/// How many words may have a meaning that exists only in this project.
pub(crate) const WORDS_MAX: usize = 100;
/// The keywords before the names of types and modules.
const DEFINITIONS: [&str; 6] = ["struct ", "enum ", "union ", "trait ", "type ", "mod "];
/// Documents that are checked for phrases, by the start of their path.
const DOCUMENTS: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "STYLE.md", "book/src/", "examples/"];
/// Packages next to `crates/`: tools, comparisons, firmware and shared test code.
const TOOLS: [&str; 9] = [
    "benches/",
    "compare/",
    "firmware/",
    "fuzz/",
    "proof/",
    "scenario/",
    "soak/",
    "testing/",
    "xtask/",
];
/// Tools whose types may have retired names: prefix and reason.
const FREE_NAMES: [(&str, &str); 2] = [
    ("scenario/", "its golden trace records the names of its actors, such as `metronome`"),
    ("firmware/src/bin/station.rs", "the station is an actor of this program"),
];
/// Files that spell the retired words.
const LISTS: [&str; 2] = ["xtask/words.toml", "xtask/src/tidy/"];

/// The contents of `xtask/words.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Retired {
    /// Names of types and modules: crate, or `*` for all crates; then the name and its successor.
    names: BTreeMap<String, BTreeMap<String, String>>,
    /// Phrases in comments and documents, and what to write instead.
    phrases: BTreeMap<String, String>,
}

static RETIRED: LazyLock<Retired> = LazyLock::new(|| {
    toml::from_str(include_str!("../../words.toml")).expect("xtask/words.toml is well formed")
});

/// No type and no module has a retired name. The tools follow the list for all crates.
pub(super) fn retired_names(source: &Source) -> Vec<Fault> {
    let is_tool = starts_with(source, &TOOLS)
        && !starts_with(source, &LISTS)
        && !FREE_NAMES.iter().any(|(start, _)| source.path.starts_with(start));
    if !source.is_rust() || !(is_product(source) || is_tool) {
        return Vec::new();
    }
    let name = source.crate_name().unwrap_or_default();
    let lists = ["*", name].map(|key| RETIRED.names.get(key));
    let defined = DEFINITIONS.iter().flat_map(|definition| defined(&source.code, definition));
    let mut faults = Vec::new();
    for (at, name) in defined {
        if let Some(instead) = lists.iter().flatten().find_map(|list| list.get(name)) {
            faults.push(source.fault(at, format!("`{name}` is retired: use `{instead}`")));
        }
    }
    faults
}

/// The names that follow a keyword, each with its place.
fn defined<'a>(code: &'a str, keyword: &'a str) -> impl Iterator<Item = (usize, &'a str)> + 'a {
    words(code, keyword).map(move |at| {
        let name = &code[at + keyword.len()..];
        let is_part = |char: char| char.is_alphanumeric() || char == '_';
        (at, &name[..name.find(|char| !is_part(char)).unwrap_or(name.len())])
    })
}

/// No comment, no string literal and no document uses a retired phrase. Literals of tests are free,
/// and the folders `crates/*/tests` are not checked.
pub(super) fn retired_phrases(source: &Source) -> Vec<Fault> {
    let is_checked = is_product(source) || starts_with(source, &TOOLS);
    let text = if starts_with(source, &LISTS) {
        return Vec::new();
    } else if is_checked && source.is_rust() {
        prose(source)
    } else if is_checked || starts_with(source, &DOCUMENTS) {
        source.text.to_lowercase()
    } else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    for (phrase, instead) in &RETIRED.phrases {
        let fault = |at| source.fault(at, format!("\"{phrase}\" is retired: write {instead}"));
        faults.extend(words(&text, phrase).map(fault));
    }
    faults
}

/// Whether the file is part of a crate's product.
fn is_product(source: &Source) -> bool {
    source.crate_name().is_some() && source.path.contains("/src/")
}

fn starts_with(source: &Source, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| source.path.starts_with(prefix))
}

/// The comments of a Rust file and, unless it is a test, its string literals, in lower case;
/// everything else is blank, and every byte keeps its place.
fn prose(source: &Source) -> String {
    let code = if source.is_test_file() { &source.bare } else { &source.code };
    let bytes = source.text.bytes().zip(code.bytes());
    let prose = bytes.map(|(text, code)| match (text, code) {
        (b'\n', _) => b'\n',
        (text, code) if text != code => text.to_ascii_lowercase(),
        _ => b' ',
    });
    String::from_utf8_lossy(&prose.collect::<Vec<u8>>()).into_owned()
}

/// The document lists at most a hundred words, and every one of them is in use.
pub(super) fn house_words(sources: &[Source]) -> Vec<Fault> {
    let Some(document) = sources.iter().find(|source| source.path == DOCUMENT) else {
        return Vec::new();
    };
    let list = listed(&document.text);
    let mut faults = Vec::new();
    if list.is_empty() {
        faults.push(document.fault(0, format!("no table of words under `{HEADING}`")));
    }
    if list.len() > WORDS_MAX {
        let what =
            format!("{} project-specific words, {WORDS_MAX} allowed: rename some", list.len());
        faults.push(document.fault(list[0].0, what));
    }
    let product = sources.iter().filter(|source| is_product(source));
    let product: Vec<String> = product.map(|source| source.text.to_lowercase()).collect();
    for (at, word) in list {
        let word = word.to_lowercase();
        let joined = word.replace(' ', "");
        let snake = word.replace(' ', "_");
        let is_used =
            |text: &String| text.contains(&word) || text.contains(&joined) || text.contains(&snake);
        if !product.iter().any(is_used) {
            faults
                .push(document.fault(at, format!("`{word}` is not used in any crate: remove it")));
        }
    }
    faults
}

/// The words of the table under the heading, each with its place.
pub(crate) fn listed(document: &str) -> Vec<(usize, &str)> {
    let Some(start) = document.find(&format!("\n{HEADING}\n")) else { return Vec::new() };
    let section = &document[start + 1 + HEADING.len()..];
    let section = &section[..section.find("\n## ").unwrap_or(section.len())];
    let mut found = Vec::new();
    for line in section.lines().filter(|line| line.starts_with("| ")) {
        let cell = line.trim_start_matches("| ").split(" |").next().unwrap_or_default();
        for word in cell.split(", ").map(|word| word.trim_matches(['*', '`'])) {
            found.push((word.as_ptr().addr() - document.as_ptr().addr(), word));
        }
    }
    // The first row is the head of the table.
    if found.first().is_some_and(|(_, word)| *word == "word") {
        found.remove(0);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{super::tests::planted, *};

    #[test]
    fn a_retired_name_is_refused_in_its_crate_and_its_successor_is_named() {
        let text =
            "//! F.\npub struct Counted<T>(T);\n// Counted here is free.\nlet counted = 1;\n";
        let path = "crates/clockjack-sync/src/arc.rs";
        planted(retired_names, path, text, &[(2, "`Counted` is retired: use `Arc`")]);
        planted(retired_names, "crates/clockjack-sync/tests/arc.rs", text, &[]);
        planted(retired_names, "crates/clockjack-graph/src/arc.rs", "//! F.\nstruct Gate;\n", &[]);
        planted(retired_names, path, "//! F.\nmod prim;\n", &[(2, "use `primitive`")]);
        let office = "//! F.\nenum Office {}\n";
        planted(retired_names, "crates/clockjack-cli/src/a.rs", office, &[(2, "`Office`")]);
    }

    #[test]
    fn a_retired_phrase_is_refused_in_comments_texts_and_documents() {
        let text = "//! Whoever reads this.\nlet whoever = 1; // Made anew.\nf(\"as whoever\");\n";
        let expected = [(2, "\"anew\""), (1, "\"whoever\""), (3, "\"whoever\"")];
        planted(retired_phrases, "crates/clockjack-time/src/a.rs", text, &expected);
        planted(retired_phrases, "crates/clockjack-time/tests/a.rs", text, &[]);
        planted(retired_phrases, "README.md", "# A\n\nBuilt anew.\n", &[(3, "write \"again\"")]);
    }

    #[test]
    fn a_retired_phrase_or_name_is_refused_in_tools_too() {
        let help = "//! F.\n/// Write the files anew\nbless: bool,\n";
        let path = "xtask/src/api.rs";
        planted(retired_phrases, path, help, &[(2, "\"anew\" is retired: write \"again\"")]);
        let message = "//! F.\nbail!(\"{n} letters never came back\");\n";
        planted(retired_phrases, "compare/src/a.rs", message, &[(2, "\"came back\"")]);
        let document = "# F\n\nA lock beside a queue.\n";
        planted(retired_phrases, "firmware/README.md", document, &[(3, "\"beside\"")]);
        planted(retired_phrases, "xtask/words.toml", "[phrases]\nanew = 'again'\n", &[]);
        let name = "//! F.\nstruct Bell;\n";
        planted(retired_names, "compare/src/bell.rs", name, &[(2, "use `WakeFlag`")]);
        planted(retired_names, "scenario/src/plant.rs", "//! F.\nstruct Metronome;\n", &[]);
    }

    #[test]
    fn every_listed_word_is_in_use_and_there_are_not_too_many() {
        let source =
            Source::new("crates/clockjack-graph/src/a.rs", "//! A lane.\nstruct DropPolicy;\n");
        let table = |rows: &str| {
            format!("# A\n\n## Words\n\n| word | meaning |\n|---|---|\n{rows}\n## B\n| c | d |\n")
        };
        let check = |rows: &str| {
            let document = Source::new(DOCUMENT, &table(rows));
            let faults = house_words(&[document, Source::new(&source.path, &source.text)]);
            faults.into_iter().map(|fault| fault.what).collect::<Vec<_>>()
        };
        assert_eq!(check("| lane, `drop policy` | decides |\n"), [""; 0]);
        assert_eq!(
            check("| office | a room |\n"),
            ["`office` is not used in any crate: remove it"]
        );
        assert_eq!(check(""), ["no table of words under `## Words`"]);
        let many: String = (0..=WORDS_MAX).map(|_| "| lane | decides |\n").collect();
        assert_eq!(check(&many), ["101 project-specific words, 100 allowed: rename some"]);
    }
}
