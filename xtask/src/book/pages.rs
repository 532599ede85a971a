//! The links of built pages: each leads to a page, a heading or a file of the repository.
//!
//! mdBook takes every link that ends in `.md` for one to a chapter and writes `.html` instead, also
//! where the document is not a chapter. Such a link is put right: the pages stand as deep below the
//! root as the chapters do, so what leads out of the book leads to the document in the checkout.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

/// Marks of a link in a page.
const MARKS: [&str; 2] = ["href=\"", "src=\""];
/// Shown for addresses that do not exist: where its links lead depends on the address.
const NOT_FOUND: &str = "404.html";

/// Puts links to documents right, and follows all of them; how many there are.
///
/// # Errors
///
/// If a page cannot be read or written, or a link leads nowhere.
pub(super) fn settle(root: &Path, folder: &str) -> Result<usize> {
    let base = root.join(folder);
    let mut n_links = 0;
    let mut faults = Vec::new();
    for path in pages(&base)? {
        if path.ends_with(NOT_FOUND) {
            continue;
        }
        let text = read(&path)?;
        let mut settled = text.clone();
        for link in links(&text) {
            n_links += 1;
            match follow(&base, &path, link) {
                Leads::Somewhere => (),
                Leads::To(document) => {
                    for mark in MARKS {
                        let (old, new) = (format!("{mark}{link}\""), format!("{mark}{document}\""));
                        settled = settled.replace(&old, &new);
                    }
                }
                Leads::Nowhere => {
                    let page = path.strip_prefix(&base).unwrap_or(&path).display();
                    faults.push(format!("  {page}: `{link}`"));
                }
            }
        }
        if settled != text {
            fs::write(&path, settled).with_context(|| format!("cannot write {path:?}"))?;
        }
    }
    if !faults.is_empty() {
        bail!("links that lead nowhere: {}\n{}", faults.len(), faults.join("\n"));
    }
    Ok(n_links)
}

/// Where a link leads.
#[derive(Debug, PartialEq, Eq)]
enum Leads {
    /// To what is there, or out of the checkout.
    Somewhere,
    /// To a document that is no chapter, if written so.
    To(String),
    Nowhere,
}

fn follow(base: &Path, page: &Path, link: &str) -> Leads {
    let is_elsewhere = ["http:", "https:", "mailto:", "data:", "javascript:"];
    if link.is_empty() || is_elsewhere.iter().any(|begin| link.starts_with(begin)) {
        return Leads::Somewhere;
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
        return Leads::To(format!("{stem}.md{anchor}"));
    }
    let has_anchor = || {
        let is_page = to.starts_with(base) && to.extension().is_some_and(|end| end == "html");
        let id = format!("id=\"{anchor}\"");
        !is_page || fs::read_to_string(&to).is_ok_and(|text| text.contains(&id))
    };
    if to.exists() && (anchor.is_empty() || has_anchor()) {
        Leads::Somewhere
    } else {
        Leads::Nowhere
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

/// The path without `..`, which need not exist.
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
        fs::create_dir_all(&pages).expect("a folder can be made");
        let write = |path: PathBuf, text: &str| fs::write(path, text).expect("it can be written");
        write(root.join("README.md"), "# R\n");
        write(root.join("target/book/index.html"), "<h2 id=\"begin\">B</h2>");
        write(pages.join("ask.html"), page);
        root
    }

    /// What comes of a page with this link: the page, or what is told.
    fn check(name: &str, link: &str) -> Result<String, String> {
        let root = repository(name, &format!("<h1 id=\"top\"><a href=\"{link}\">x</a>"));
        let settled = settle(&root, "target/book").map_err(|error| error.to_string());
        let page = read(&root.join("target/book/how-to/ask.html")).expect("it is there");
        fs::remove_dir_all(&root).expect("it was made above");
        settled.map(|n_links| {
            assert_eq!(n_links, 1);
            page
        })
    }

    #[test]
    fn links_to_pages_headings_and_other_sites_stay_as_they_are() {
        for link in ["../index.html", "../index.html#begin", "#top", "https://docs.rs/x", ""] {
            let page = check("stay", link).expect("it leads somewhere");
            assert!(page.contains(&format!("href=\"{link}\"")), "{link}: {page}");
        }
    }

    #[test]
    fn a_link_to_a_document_of_the_repository_leads_there() {
        let page = check("document", "../../../README.html#speed").expect("it leads somewhere");
        assert!(page.contains("href=\"../../../README.md#speed\""), "{page}");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_told_with_its_page() {
        for link in ["gone.html", "../index.html#end", "#bottom", "../../../GONE.html"] {
            let told = check("nowhere", link).expect_err("it leads nowhere");
            assert!(told.contains(&format!("how-to/ask.html: `{link}`")), "{told}");
        }
    }
}
