//! Collects the diagnostics of the checks, and limits the cost of suggestions.

use crate::{
    describe::{SourceText, Span},
    diagnostic::{Code, Diagnostic},
    nearest::nearest,
};

/// The number of suggestions per report. A file with more unknown names gets suggestions for the
/// first ones; a hostile file cannot waste much time.
const SEARCHES_MAX: u32 = 32;

/// Collects the diagnostics of the checks.
#[derive(Debug)]
pub(super) struct Report<'a> {
    list: Vec<Diagnostic>,
    source: Option<&'a SourceText>,
    searches_left: u32,
}

impl<'a> Report<'a> {
    pub(super) fn new(source: Option<&'a SourceText>) -> Self {
        Self { list: Vec::new(), source, searches_left: SEARCHES_MAX }
    }

    pub(super) fn push(&mut self, found: Diagnostic) {
        self.list.push(found);
    }

    /// Reports an unknown name with the name that was probably meant. `whole` returns the text as
    /// it is written in the file, and its replacement.
    pub(super) fn push_unknown<'n>(
        &mut self,
        found: Diagnostic,
        wrong: &str,
        candidates: impl IntoIterator<Item = &'n str>,
        whole: impl FnOnce(&str) -> (String, String),
    ) -> Option<&'n str> {
        let meant = self.nearest(wrong, candidates);
        let found = match meant {
            None => found,
            Some(name) => {
                let (written, right) = whole(name);
                let span = found.span;
                let found = found.help(format!("did you mean `{name}`?"));
                if self.is_written_at(span, &written) { found.fix(span, right) } else { found }
            }
        };
        self.push(found);
        meant
    }

    pub(super) fn nearest<'n>(
        &mut self,
        wrong: &str,
        candidates: impl IntoIterator<Item = &'n str>,
    ) -> Option<&'n str> {
        self.searches_left = self.searches_left.checked_sub(1)?;
        // An empty id is an error of its own and never a suggestion.
        nearest(wrong, candidates.into_iter().filter(|name| !name.is_empty()))
    }

    /// Reports a field that has no effect.
    pub(super) fn advise(&mut self, code: Code, path: String, span: Span, why: &str) {
        let field = path.rsplit('.').next().unwrap_or(&path);
        let message = format!("`{field}` has no effect here: {why}");
        self.push(Diagnostic::new(code, path, message).at(span).help("remove it"));
    }

    /// Whether the text contains exactly this at a location. The full name of an expanded item
    /// differs from what the template or subgraph contains, and must not replace it.
    pub(super) fn is_written_at(&self, span: Span, written: &str) -> bool {
        let text = self.source.and_then(|one| one.text.get(span.start as usize..span.end as usize));
        text.is_some_and(|text| text.trim_matches(['"', '\'']) == written)
    }

    pub(super) fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }

    /// All diagnostics in the order of the text; those without a location in the order of the
    /// checks.
    pub(super) fn into_list(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|one| one.span.start);
        self.list
    }
}
