//! The pages of findings for `clockjack explain`: what each one reports, its cause, an example, the
//! repair.

use clockjack_console::findings::{EXPLANATIONS, Explanation, explain};
use serde_json::{Value, json};

/// All pages.
pub(crate) fn all() -> Vec<&'static Explanation> {
    EXPLANATIONS.iter().collect()
}

/// The page of a code, in whatever case.
pub(crate) fn page(code: &str) -> Option<&'static Explanation> {
    explain(code)
}

/// The code that a similar text may mean: `S1` is `S01`.
pub(crate) fn near(name: &str) -> Option<&'static str> {
    let number = name.strip_prefix(['s', 'S'])?.parse::<u32>().ok()?;
    page(&format!("S{number:02}")).map(|page| page.code)
}

/// A line of the list of all codes.
pub(crate) fn to_row(page: &Explanation) -> String {
    format!("{:<32} {:<9} {}\n", page.code, "finding", page.title)
}

/// A complete page.
pub(crate) fn to_text(page: &Explanation) -> String {
    let Explanation { code, title, cause, example, repair, .. } = page;
    let example = example.replace('\n', "\n    ");
    format!(
        "{code} (finding)\n{title}\n\nCause:\n{cause}\n\nExample:\n\n    {example}\n\n\
         Repair:\n{repair}\n"
    )
}

/// A page as JSON.
pub(crate) fn to_json(page: &Explanation) -> Value {
    json!({
        "code": page.code,
        "severity": "finding",
        "category": "running_program",
        "means": page.title,
        "cause": page.cause,
        "example": page.example,
        "repair": page.repair,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_has_a_page_with_all_its_parts() {
        let codes: Vec<&str> = all().iter().map(|page| page.code).collect();
        let expected: Vec<String> = (1..=14).map(|n| format!("S{n:02}")).collect();
        assert_eq!(codes, expected);
        for page in all() {
            let text = to_text(page);
            for part in [page.title, page.cause, page.repair] {
                assert!(part.len() > 10 && text.contains(part), "{page:?}");
            }
        }
    }

    #[test]
    fn a_similar_code_is_near() {
        assert_eq!(near("s1"), Some("S01"));
        assert_eq!(near("S99"), None);
        assert_eq!(near("cycle"), None);
        assert!(page("s03").is_some());
    }
}
