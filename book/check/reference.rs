//! The pages of the book that a program writes: they say what the command says.

mod components;
mod graph_file;

use std::{fs, io};

use clockjack::graph::Registry;
use clockjack_cli::{Streams, exit_code};
use serde_json::Value;

use crate::root;

/// A generated file.
#[derive(Clone, Debug)]
pub struct Page {
    /// Where it stands, from the root of the repository.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// The graphs that are drawn: the file, and what the picture is called.
const PICTURES: [(&str, &str); 2] =
    [("examples/robot-cell.yaml", "robot-cell"), ("book/graphs/positioner.yaml", "positioner")];

const NOTE: &str = "<!-- Written by `cargo xtask book`. Do not edit. -->\n\n";

/// Everything that is generated.
#[must_use]
pub fn pages() -> Vec<Page> {
    let page = |name: &str, text: String| Page {
        path: format!("book/src/reference/{name}.md"),
        text: format!("{NOTE}{}\n", text.trim_end()),
    };
    let mut pages = vec![
        page("commands", commands()),
        page("codes", codes()),
        page("graph-file", graph_file::text(&parsed(&["schema", "--format", "json"]))),
        page("components", components::text(&Registry::standard())),
    ];
    pages.extend(PICTURES.iter().map(|(file, name)| {
        let file = root().join(file);
        let file = file.to_string_lossy();
        Page {
            path: format!("book/src/img/{name}.svg"),
            text: clockjack(&["render", &file, "--format", "svg"]),
        }
    }));
    pages
}

/// Writes what has changed, and says how many files have.
///
/// # Errors
///
/// If a file cannot be written.
pub fn write() -> io::Result<usize> {
    let mut n_changed = 0;
    for page in pages() {
        let path = root().join(&page.path);
        if fs::read_to_string(&path).is_ok_and(|there| there == page.text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, &page.text)?;
        n_changed += 1;
    }
    Ok(n_changed)
}

/// What the command says to these arguments.
fn clockjack(args: &[&str]) -> String {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams::new(&mut out, &mut err);
    let code =
        clockjack_cli::run(&Registry::standard(), ["clockjack"].iter().chain(args), &mut streams);
    assert_eq!(code, exit_code::OK, "{args:?}: {}", String::from_utf8_lossy(&err));
    String::from_utf8(out).expect("the command writes text")
}

fn parsed(args: &[&str]) -> Value {
    serde_json::from_str(&clockjack(args)).expect("the command writes JSON")
}

/// A text without spaces at the ends of its lines.
fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

/// The help of the whole, and of each command.
fn commands() -> String {
    let whole = clockjack(&["--help"]);
    let listed = whole.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.map_while(|line| line.split_whitespace().next());
    let mut out = String::from(
        "# Commands\n\nWhat `clockjack --help` says, and the help of each command. A program with \
         components of its own has all of them, by `clockjack_cli::main(registry)`.\n",
    );
    out.push_str(&format!("\n```text\n{}\n```\n", trimmed(&whole)));
    for name in names.filter(|name| *name != "help") {
        let help = clockjack(&[name, "--help"]);
        out.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", trimmed(&help)));
    }
    out
}

/// A section for each code of a finding.
fn codes() -> String {
    let all = parsed(&["explain", "--format", "json"]);
    let pages = all["codes"].as_array().expect("a list of codes").iter();
    // Findings are about running programs, and have a page of their own.
    let pages: Vec<&Value> = pages.filter(|page| page["severity"] != "finding").collect();
    let text = |page: &Value, key: &str| page[key].as_str().unwrap_or_default().trim().to_owned();
    let mut out = format!(
        "# Diagnostic codes\n\n`clockjack check` reports every error of a graph file, each with \
         one of these {} codes; `clockjack explain CODE` prints the same text. The examples leave \
         out the parts that every file has.\n\n| code | severity | what it means |\n\
         |---|---|---|\n",
        pages.len()
    );
    for page in pages.iter().copied() {
        let (code, means) = (text(page, "code"), text(page, "means").replace('|', "\\|"));
        let severity = text(page, "severity");
        out.push_str(&format!("| [`{code}`](#{code}) | {severity} | {means} |\n"));
    }
    for page in pages.iter().copied() {
        let (severity, category) = (text(page, "severity"), text(page, "category"));
        out.push_str(&format!("\n## {}\n\n*{severity}, {category}.* ", text(page, "code")));
        out.push_str(&format!("{}\n", text(page, "means")));
        for (title, key) in [("Wrong", "wrong"), ("Right", "right")] {
            let example = trimmed_end(page[key].as_str().unwrap_or_default());
            if !example.is_empty() {
                out.push_str(&format!("\n{title}:\n\n```yaml\n{example}\n```\n"));
            }
        }
        out.push_str(&format!("\nWhy: {}\n", text(page, "why")));
    }
    out
}

/// An example keeps its first indent.
fn trimmed_end(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}
