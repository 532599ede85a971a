//! The links of built pages: each leads to a page, a heading or a file of the repository.
//!
//! mdBook assumes that every link that ends in `.md` leads to a chapter and replaces the ending by
//! `.html`, even if the document is not a chapter. [`fix_links`] restores such a link. The built
//! pages are as deep below the root of the repository as the chapters, so a relative link out of
//! the book leads to the document in the checkout.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

/// The start of a link in a page.
const MARKS: [&str; 2] = ["href=\"", "src=\""];
/// The page for addresses that do not exist; the targets of its links depend on the address, so it
/// is not checked.
const NOT_FOUND: &str = "404.html";

/// Fixes links to documents and checks all links; returns how many links there are.
///
/// # Errors
///
/// If a page cannot be read or written, or if a link is broken.
pub(super) fn fix_links(root: &Path, folder: &str) -> Result<usize> {
    let base = root.join(folder);
    let mut n_links = 0;
    let mut faults = Vec::new();
    for path in pages(&base)? {
        if path.ends_with(NOT_FOUND) {
            continue;
        }
        let text = read(&path)?;
        let mut fixed = text.clone();
        for link in links(&text) {
            n_links += 1;
            match follow(&base, &path, link) {
                LinkTarget::Valid => (),
                LinkTarget::Document(document) => {
                    for mark in MARKS {
                        let (old, new) = (format!("{mark}{link}\""), format!("{mark}{document}\""));
                        fixed = fixed.replace(&old, &new);
                    }
                }
                LinkTarget::Broken => {
                    let page = path.strip_prefix(&base).unwrap_or(&path).display();
                    faults.push(format!("  {page}: `{link}`"));
                }
            }
        }
        if fixed != text {
            fs::write(&path, fixed).with_context(|| format!("cannot write {path:?}"))?;
        }
    }
    if !faults.is_empty() {
        bail!("broken links: {}\n{}", faults.len(), faults.join("\n"));
    }
    Ok(n_links)
}

/// The target of a link.
#[derive(Debug, PartialEq, Eq)]
enum LinkTarget {
    /// An existing page, or an address outside of the checkout.
    Valid,
    /// A document that is not a chapter, with the corrected link.
    Document(String),
    Broken,
}

fn follow(base: &Path, page: &Path, link: &str) -> LinkTarget {
    let is_elsewhere = ["http:", "https:", "mailto:", "data:", "javascript:"];
    if link.is_empty() || is_elsewhere.iter().any(|begin| link.starts_with(begin)) {
        return LinkTarget::Valid;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let file = file.split('?').next().unwrap_or(file);
    let folder = page.parent().unwrap_or(base);
    let to = if file.is_empty() { page.to_owned() } else { normal(&folder.join(file)) };
    if !to.starts_with(base)
        && !to.exists()
        && let Some(stem) = file.strip_suffix(".html")
        && to.with_extension("md").is_file()
    {
        let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
        return LinkTarget::Document(format!("{stem}.md{anchor}"));
    }
    let has_anchor = || {
        let is_page = to.starts_with(base) && to.extension().is_some_and(|end| end == "html");
        let id = format!("id=\"{anchor}\"");
        !is_page || fs::read_to_string(&to).is_ok_and(|text| text.contains(&id))
    };
    if to.exists() && (anchor.is_empty() || has_anchor()) {
        LinkTarget::Valid
    } else {
        LinkTarget::Broken
    }
}

/// The links of a page.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for mark in MARKS {
        let rests = text.split(mark).skip(1);
        found.extend(rests.filter_map(|rest| rest.split('"').next()));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The path without `..` components; it need not exist.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => (),
            other => normal.push(other),
        }
    }
    normal
}

/// Every page below a folder.
fn pages(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {dir:?}"))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "html") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with a document, and a book with two pages.
    fn repository(name: &str, page: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("clockjack-{name}-{}", std::process::id()));
        let pages = root.join("target/book/how-to");
        fs::create_dir_all(&pages).expect("a folder can be created");
        let write =
            |path: PathBuf, text: &str| fs::write(path, text).expect("the file can be written");
        write(root.join("README.md"), "# R\n");
        write(root.join("target/book/index.html"), "<h2 id=\"begin\">B</h2>");
        write(pages.join("ask.html"), page);
        root
    }

    /// Checks a page with this link: the resulting page, or the error.
    fn check(name: &str, link: &str) -> Result<String, String> {
        let root = repository(name, &format!("<h1 id=\"top\"><a href=\"{link}\">x</a>"));
        let fixed = fix_links(&root, "target/book").map_err(|error| error.to_string());
        let page = read(&root.join("target/book/how-to/ask.html")).expect("the page exists");
        fs::remove_dir_all(&root).expect("the folder was created above");
        fixed.map(|n_links| {
            assert_eq!(n_links, 1);
            page
        })
    }

    #[test]
    fn links_to_pages_headings_and_other_sites_stay_as_they_are() {
        for link in ["../index.html", "../index.html#begin", "#top", "https://docs.rs/x", ""] {
            let page = check("stay", link).expect("the link is valid");
            assert!(page.contains(&format!("href=\"{link}\"")), "{link}: {page}");
        }
    }

    #[test]
    fn a_link_to_a_document_of_the_repository_leads_there() {
        let page = check("document", "../../../README.html#speed").expect("the link is valid");
        assert!(page.contains("href=\"../../../README.md#speed\""), "{page}");
    }

    #[test]
    fn a_broken_link_is_reported_with_its_page() {
        for link in ["gone.html", "../index.html#end", "#bottom", "../../../GONE.html"] {
            let told = check("nowhere", link).expect_err("the link is broken");
            assert!(told.contains(&format!("how-to/ask.html: `{link}`")), "{told}");
        }
    }
}
