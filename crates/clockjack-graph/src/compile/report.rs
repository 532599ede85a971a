//! Where the checks put what they find. It decides nothing: it only knows the text that the places
//! are of, and how much help a report may cost.

use crate::{
    describe::{Source, Span},
    diagnostic::{Code, Diagnostic},
    nearest::nearest,
};

/// Names are looked for this often in one report. A file with more slips has its first ones
/// explained; one that was made to cost time has bought little of it.
const SEARCHES_MAX: u32 = 32;

/// Where the checks put what they find.
#[derive(Debug)]
pub(super) struct Report<'a> {
    list: Vec<Diagnostic>,
    source: Option<&'a Source>,
    searches_left: u32,
}

impl<'a> Report<'a> {
    pub(super) fn new(source: Option<&'a Source>) -> Self {
        Self { list: Vec::new(), source, searches_left: SEARCHES_MAX }
    }

    pub(super) fn push(&mut self, found: Diagnostic) {
        self.list.push(found);
    }

    /// A name that does not exist, with the one that was probably meant. `whole` makes what is to
    /// stand in the text out of that one.
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
                if self.stands_there(span, &written) { found.fix(span, right) } else { found }
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
        // An empty id is a fault of its own, not one that somebody meant.
        nearest(wrong, candidates.into_iter().filter(|name| !name.is_empty()))
    }

    /// A field that has no effect where it stands.
    pub(super) fn advise(&mut self, code: Code, path: String, span: Span, why: &str) {
        let field = path.rsplit('.').next().unwrap_or(&path);
        let message = format!("`{field}` has no effect here: {why}");
        self.push(Diagnostic::new(code, path, message).at(span).help("leave it out"));
    }

    /// Whether the text has exactly this at a place. What a template or a subgraph has made is
    /// written otherwise than it is called, and must not be replaced by its full name.
    pub(super) fn stands_there(&self, span: Span, written: &str) -> bool {
        let text = self.source.and_then(|one| one.text.get(span.start as usize..span.end as usize));
        text.is_some_and(|text| text.trim_matches(['"', '\'']) == written)
    }

    pub(super) fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }

    /// All findings in the order of the text; those without a place in the order of the checks.
    pub(super) fn into_list(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|one| one.span.start);
        self.list
    }
}
