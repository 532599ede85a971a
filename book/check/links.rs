//! Links of Markdown files: where they lead, and whether anything is there.
//!
//! Relative links must lead to a file of the repository, and what stands behind `#` must be a
//! heading there. Links to other sites are not followed: a test must not depend on them.

use std::{fs, path::Path};

/// A link: the line that it stands in, from 1, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The line, from 1.
    pub line: usize,
    /// What stands between the round brackets.
    pub target: String,
}

/// The links of a text, without those in blocks and spans of code.
#[must_use]
pub fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (index, line) in prose(text) {
        let bare = without_spans(line);
        let mut rest = bare.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            found.push(Link { line: index + 1, target: rest[..end].to_owned() });
            rest = &rest[end..];
        }
    }
    found
}

/// The anchors of a text: one for each heading, as code hosts and mdBook make them.
#[must_use]
pub fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if !(1..=6).contains(&level) || !line[level..].starts_with(' ') {
            continue;
        }
        let base = slug(&line[level + 1..]);
        let n_same = found.iter().filter(|one| is_of(one, &base)).count();
        found.push(if n_same == 0 { base } else { format!("{base}-{n_same}") });
    }
    found
}

/// Whether an anchor is this one, or one of its numbered twins.
fn is_of(anchor: &str, base: &str) -> bool {
    let rest = anchor.strip_prefix(base);
    rest.is_some_and(|rest| {
        let number = rest.strip_prefix('-').unwrap_or(rest);
        number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Lower case, spaces become hyphens, signs fall out.
fn slug(heading: &str) -> String {
    let kept = |char: &char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_');
    let chars = heading.trim().chars().flat_map(char::to_lowercase).filter(kept);
    chars.map(|char| if char == ' ' { '-' } else { char }).collect()
}

/// The lines that stand in no block of code, with their indices.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// A line without what stands between backticks.
fn without_spans(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// What is wrong with the links of a file of the repository, a line each.
#[must_use]
pub fn faults(root: &Path, path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for Link { line, target } in links(text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
        let folder = Path::new(path).parent().unwrap_or(Path::new(""));
        let to = if file.is_empty() { root.join(path) } else { root.join(folder).join(file) };
        if !to.exists() {
            faults.push(format!("{path}:{line}: `{target}` leads nowhere"));
            continue;
        }
        if anchor.is_empty() {
            continue;
        }
        let there = if file.is_empty() {
            text.to_owned()
        } else {
            fs::read_to_string(&to).unwrap_or_default()
        };
        if !anchors(&there).iter().any(|one| one == anchor) {
            faults.push(format!("{path}:{line}: `{target}`: there is no such heading"));
        }
    }
    faults
}
