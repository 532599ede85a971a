//! What keeps the book true: nothing stale, nothing untested, no link to nowhere.

use std::fs;

use super::{links, markdown_below, reference, root};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn generated_pages_and_pictures_are_what_the_commands_say_now() {
    for page in reference::pages() {
        let there = fs::read_to_string(root().join(&page.path)).unwrap_or_default();
        assert!(there == page.text, "{} is stale: `cargo xtask book` writes it anew", page.path);
    }
}

#[test]
fn nothing_stands_among_the_generated_pages_that_is_not_generated() {
    let pages = reference::pages();
    for folder in ["book/src/reference", "book/src/img"] {
        for entry in fs::read_dir(root().join(folder)).expect("it is there") {
            let name = entry.expect("it can be listed").file_name();
            let path = format!("{folder}/{}", name.to_string_lossy());
            assert!(pages.iter().any(|page| page.path == path), "{path} is made by nothing");
        }
    }
}

#[test]
fn every_chapter_is_in_the_table_of_contents_and_the_table_names_no_other() {
    let summary = read("book/src/SUMMARY.md");
    let mut listed: Vec<String> = links::links(&summary)
        .into_iter()
        .map(|link| format!("book/src/{}", link.target))
        .collect();
    listed.push("book/src/SUMMARY.md".to_owned());
    listed.sort();
    assert_eq!(listed, markdown_below("book/src").expect("it can be read"));
}

#[test]
fn every_chapter_with_rust_in_it_is_tested() {
    let tested = read("book/check/chapters.rs");
    for path in markdown_below("book/src").expect("it can be read") {
        if read(&path).contains("```rust") {
            let name = path.strip_prefix("book/src/").expect("it was found there");
            assert!(tested.contains(&format!("\"../src/{name}\"")), "{path} is not in chapters.rs");
        }
    }
}

#[test]
fn no_block_of_rust_is_exempt_from_being_tested() {
    for path in markdown_below("book/src").expect("it can be read") {
        for (index, line) in read(&path).lines().enumerate() {
            let is_exempt = line.trim_start().starts_with("```rust")
                && ["ignore", "no_run", "compile_fail"].iter().any(|word| line.contains(word));
            assert!(!is_exempt, "{path}:{}: {line}", index + 1);
        }
    }
}

#[test]
fn the_graph_that_is_shown_is_the_one_that_is_drawn() {
    let graph = read("book/graphs/positioner.yaml");
    for path in ["README.md", "book/src/tutorial/control-loop.md"] {
        assert!(read(path).contains(&format!("```yaml\n{graph}```\n")), "{path} shows another");
    }
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut paths = markdown_below("book/src").expect("it can be read");
    let at_root = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "STYLE.md"];
    paths.extend(at_root.map(str::to_owned));
    let faults: Vec<String> =
        paths.iter().flat_map(|path| links::faults(&root(), path, &read(path))).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn links_in_code_are_none_and_others_are_found_with_their_line() {
    let text = "a [b](c.md)\n`[d](e)` and [f](g#h) [i](j)\n```\n[k](l)\n```\n";
    let found: Vec<(usize, String)> =
        links::links(text).into_iter().map(|link| (link.line, link.target)).collect();
    assert_eq!(found, [(1, "c.md".into()), (2, "g#h".into()), (2, "j".into())]);
}

#[test]
fn headings_have_the_anchors_that_code_hosts_give_them() {
    let text = "# A first `actor`\n## What's new?\n## Speed\n### Speed\n```\n# no\n```\n#no\n";
    assert_eq!(links::anchors(text), ["a-first-actor", "whats-new", "speed", "speed-1"]);
}

#[test]
fn a_link_to_nowhere_and_one_to_no_heading_are_faults() {
    let text = "# Here\n[a](no-such.md) [b](#here) [c](#there) [d](STYLE.md#names-and-files)\n";
    let faults = links::faults(&root(), "README.md", text);
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("README.md:2: `no-such.md` leads nowhere"), "{faults:?}");
    assert!(faults[1].contains("`#there`: there is no such heading"), "{faults:?}");
}
