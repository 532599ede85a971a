//! What keeps the book true: nothing stale, nothing untested, no link to nowhere.

#[path = "../../crates/clockjack-cli/tests/graph/overview.rs"]
mod overview;

use std::{fs, path::Path};

use clockjack::graph::Registry;
use clockjack_cli::{Streams, exit_code};
use overview::lasting;

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
fn the_page_about_deployment_shows_the_files_that_the_template_has() {
    let page = read("book/src/how-to/deploy.md");
    for (language, file) in [("ini", "deploy/systemd.service"), ("dockerfile", "Dockerfile")] {
        let file = read(&format!("crates/clockjack-cli/src/init/templates/service/{file}"));
        let file = file.replace("{{name}}", "night-watch").replace("{{docker-clockjack}}", "");
        assert!(!file.contains("{{"), "a place of the template that this test does not know");
        assert!(page.contains(&format!("```{language}\n{file}```")), "the page differs:\n{file}");
    }
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
    assert!(graph.lines().count() <= 20, "a first graph is short");
    for path in ["README.md", "book/src/tutorial/control-loop.md"] {
        assert!(read(path).contains(&format!("```yaml\n{graph}```\n")), "{path} shows another");
    }
}

/// The blocks of this language in a text.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let mut parts = text.split("```");
    let mut found = Vec::new();
    while let (Some(_prose), Some(block)) = (parts.next(), parts.next()) {
        let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
        if first == language {
            found.push(rest);
        }
    }
    found
}

/// What the command says to these arguments at the root of the book, and its exit code.
fn clockjack(args: &[&str]) -> (u8, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams::new(&mut out, &mut err);
    let args = ["clockjack"].iter().chain(args);
    let code = clockjack_cli::run(&Registry::standard(), args, &mut streams);
    (code, String::from_utf8_lossy(&[out, err].concat()).into_owned())
}

#[test]
fn every_command_that_is_shown_is_one_that_can_be_given() {
    let mut n_seen = 0;
    let mut paths = markdown_below("book/src").expect("it can be read");
    paths.extend(["README.md", "examples/README.md"].map(str::to_owned));
    for path in paths.iter().filter(|path| !path.contains("/reference/")) {
        let text = read(path);
        for line in blocks(&text, "sh").iter().flat_map(|block| block.lines()) {
            let Some((cargo, args)) = line.split_once(" -- ") else { continue };
            if !cargo.starts_with("cargo run") || cargo.contains("-p ") {
                continue;
            }
            n_seen += 1;
            let args = args.split(['#', '&']).next().unwrap_or_default().split_whitespace();
            let mut args: Vec<&str> = args.collect();
            for file in args.iter().filter(|arg| arg.ends_with(".yaml")) {
                assert!(root().join(file).is_file(), "{path}: {line}: there is no {file}");
            }
            args.push("--help"); // what stands before it is judged, and nothing is done
            let (code, said) = clockjack(&args);
            assert_eq!(code, exit_code::OK, "{path}: {line}\n{said}");
        }
    }
    assert!(n_seen > 8, "{n_seen}");
}

/// All of the code below a folder.
fn code_below(folder: &Path) -> String {
    let mut out = String::new();
    for entry in fs::read_dir(folder).expect("it can be read") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            out.push_str(&code_below(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            out.push_str(&fs::read_to_string(&path).expect("it is text"));
        }
    }
    out
}

#[test]
fn every_guard_that_is_named_is_a_test() {
    let code = code_below(&root().join("crates"));
    let mut n_seen = 0;
    let text = read("book/src/guarantees.md");
    let rows = text.lines().filter(|line| line.starts_with('|'));
    for span in rows.flat_map(|row| row.split('`').skip(1).step_by(2)) {
        let is_test = span.matches('_').count() > 2
            && span.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
        if is_test {
            n_seen += 1;
            assert!(code.contains(&format!("fn {span}")), "there is no {span}");
        }
    }
    assert!(n_seen > 30, "{n_seen}");
}

#[test]
fn the_front_page_of_the_crate_and_the_readme_show_the_same_actor_and_say_the_same_first() {
    let readme = read("README.md");
    let [actor, ..] = blocks(&readme, "rust")[..] else { panic!("the README shows an actor") };
    let source = read("crates/clockjack/src/lib.rs");
    let page = source.lines().map_while(|line| line.strip_prefix("//!"));
    let page: Vec<&str> = page.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let text = page.join("\n");
    let [shown, ..] = blocks(&text, "")[..] else { panic!("the front page shows an actor") };
    let visible = shown.lines().filter(|line| !line.starts_with("# "));
    assert!(visible.eq(actor.lines()), "the front page shows another actor");
    assert!(readme.contains(&format!("\n**{}**", page[0])), "the README begins otherwise");
}

#[test]
fn what_the_first_command_prints_is_what_the_readme_shows() {
    let readme = read("README.md");
    let [shown, ..] = blocks(&readme, "text")[..] else { panic!("a block of output") };
    // As `cargo run` calls it from the root.
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams::new(&mut out, &mut err);
    let cell = root().join("examples/robot-cell.yaml");
    let args = ["target/release/clockjack", "run", &cell.to_string_lossy()];
    let code = clockjack_cli::run(&Registry::standard(), args, &mut streams);
    let said = String::from_utf8_lossy(&[out, err].concat()).into_owned();
    assert_eq!(code, exit_code::OK, "{said}");
    let said = said.replace(&format!("{}/", root().display()), "");
    // How long it took, and what was at work at once, is a matter of the machine.
    let said = lasting(&said);
    let mut rest = said.as_slice();
    // Of what is left out, only the place is shown.
    for (nth, part) in lasting(shown).split(|line| *line == "...").enumerate() {
        let begins = |at: &usize| rest[*at..].starts_with(part);
        let found = (0..=rest.len()).find(begins);
        let found = found.unwrap_or_else(|| panic!("not in this order: {part:#?}\n{said:#?}"));
        assert!(nth > 0 || found == 0, "the beginning is left out");
        rest = &rest[found + part.len()..];
    }
    let took = |text: &str| text.lines().filter(|line| line.starts_with("took ")).count();
    assert_eq!(took(shown), 1);
}

#[test]
fn the_assertions_that_are_shown_hold_for_the_graph_that_is_shown() {
    let text = read("book/src/how-to/find-out-what-a-graph-did.md");
    let [rules] = blocks(&text, "yaml")[..] else { panic!("one block of rules") };
    let file = std::env::temp_dir().join(format!("clockjack-rules-{}.yaml", std::process::id()));
    fs::write(&file, rules).expect("it can be written");
    let graph = root().join("book/graphs/positioner.yaml");
    let (graph, rules) = (graph.to_string_lossy(), file.to_string_lossy());
    let (code, said) = clockjack(&["observe", &graph, "--steps", "10", "--assert", &rules]);
    fs::remove_file(&file).expect("it is ours");
    assert_eq!(code, exit_code::OK, "{said}");
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut paths = markdown_below("book/src").expect("it can be read");
    let others = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "README.md",
        "STYLE.md",
        "examples/README.md",
    ];
    paths.extend(others.map(str::to_owned));
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
