//! Rules about the project's own vocabulary: `xtask/words.toml` lists what is retired, the section
//! "Words" of ARCHITECTURE.md what remains.

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
/// Documents whose sentences follow the list of phrases, by the start of their path.
const PROSE: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "STYLE.md", "book/src/", "examples/"];

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

/// No type and no module has a retired name.
pub(super) fn retired_names(source: &Source) -> Vec<Fault> {
    let Some(name) = source.crate_name() else { return Vec::new() };
    if !source.is_rust() || !source.path.contains("/src/") {
        return Vec::new();
    }
    let lists = ["*", name].into_iter().filter_map(|key| RETIRED.names.get(key));
    let mut faults = Vec::new();
    for (retired, instead) in lists.flatten() {
        for definition in DEFINITIONS {
            let text = format!("{definition}{retired}");
            let fault = |at| source.fault(at, format!("`{retired}` is retired: use `{instead}`"));
            faults.extend(words(&source.code, &text).map(fault));
        }
    }
    faults
}

/// No comment of the product and no document uses a retired phrase.
pub(super) fn retired_phrases(source: &Source) -> Vec<Fault> {
    let is_product = source.crate_name().is_some() && source.path.contains("/src/");
    let text = if is_product && source.is_rust() {
        comments(source)
    } else if is_product || PROSE.iter().any(|start| source.path.starts_with(start)) {
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

/// The comments of a Rust file in lower case, everything else blank; every byte keeps its place.
fn comments(source: &Source) -> String {
    let bytes = source.text.bytes().zip(source.bare.bytes());
    let comment = bytes.map(|(text, bare)| match (text, bare) {
        (b'\n', _) => b'\n',
        (text, bare) if text != bare => text.to_ascii_lowercase(),
        _ => b' ',
    });
    String::from_utf8_lossy(&comment.collect::<Vec<u8>>()).into_owned()
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
        let what = format!("{} words of our own, {WORDS_MAX} allowed: rename some", list.len());
        faults.push(document.fault(list[0].0, what));
    }
    let is_product =
        |source: &&Source| source.crate_name().is_some() && source.path.contains("/src/");
    let product: Vec<String> =
        sources.iter().filter(is_product).map(|source| source.text.to_lowercase()).collect();
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
    fn a_retired_phrase_is_refused_in_comments_and_documents() {
        let text = "//! Whoever reads this.\nlet whoever = \"whoever\"; // Made anew.\n";
        let expected = [(2, "\"anew\""), (1, "\"whoever\"")];
        planted(retired_phrases, "crates/clockjack-time/src/a.rs", text, &expected);
        planted(retired_phrases, "crates/clockjack-time/tests/a.rs", text, &[]);
        planted(retired_phrases, "README.md", "# A\n\nBuilt anew.\n", &[(3, "write \"again\"")]);
    }

    #[test]
    fn every_word_of_our_own_is_in_use_and_there_are_not_too_many() {
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
        assert_eq!(check(&many), ["101 words of our own, 100 allowed: rename some"]);
    }
}
