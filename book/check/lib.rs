//! The book's keeper: its code blocks are doc tests, its reference is written by a program, its
//! links lead somewhere. Not a part of Clockjack, and not published.
//!
//! * Each chapter with Rust in it is included by [`chapters`]; a test finds those that are not.
//! * [`mod@reference`] makes what stands in `src/reference` and `src/img`; a test finds what is
//!   stale.
//! * [`links`] looks at every link of the book and of the documents at the root.

pub mod chapters;
pub mod links;
pub mod reference;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let book = Path::new(env!("CARGO_MANIFEST_DIR"));
    book.parent().expect("the book stands in the repository").to_owned()
}

/// Every Markdown file below a folder of the repository, as paths from its root, sorted.
///
/// # Errors
///
/// If a folder cannot be read.
pub fn markdown_below(folder: &str) -> io::Result<Vec<String>> {
    let root = root();
    let mut open = vec![root.join(folder)];
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                let parts = path.strip_prefix(&root).unwrap_or(&path).iter();
                let parts: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
                found.push(parts.join("/"));
            }
        }
    }
    found.sort();
    Ok(found)
}
