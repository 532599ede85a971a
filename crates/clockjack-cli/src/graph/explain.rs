//! `clockjack explain`: the explanations of diagnostic codes in every output format.

use clockjack_graph::diagnostic::{
    Code,
    explain::{self, Page},
};
use serde_json::{Value, json};

use crate::failure::Failure;

/// The pages of these codes, or of all codes if the list is empty.
pub(crate) fn find(codes: &[String]) -> Result<Vec<&'static Page>, Failure> {
    if codes.is_empty() {
        return Ok(Code::ALL.iter().map(|code| explain::page(*code)).collect());
    }
    let page = |name: &String| {
        let code = Code::from_name(name).ok_or_else(|| Failure::unknown_code(name))?;
        Ok(explain::page(code))
    };
    codes.iter().map(page).collect()
}

/// One line per code.
pub(crate) fn list(pages: &[&Page]) -> String {
    let row =
        |page: &&Page| format!("{:<32} {:<9} {}\n", page.code, page.code.severity(), page.means);
    pages.iter().map(row).collect()
}

/// Complete pages.
pub(crate) fn pages(pages: &[&Page]) -> String {
    let texts: Vec<String> = pages.iter().map(|page| page.to_text()).collect();
    texts.join("\n")
}

/// A page as JSON.
pub(crate) fn record(page: &Page) -> Value {
    json!({
        "code": page.code.name(),
        "severity": page.code.severity().name(),
        "category": page.code.category().name(),
        "means": page.means,
        "wrong": page.wrong,
        "right": page.right,
        "why": page.why,
    })
}

/// The codes with the most similar names.
pub(crate) fn near(name: &str) -> Vec<&'static str> {
    let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).collect();
    let shared =
        |code: &str| words.iter().filter(|word| word.len() > 2 && code.contains(**word)).count();
    let mut codes: Vec<&'static str> = Code::ALL.iter().map(|code| code.name()).collect();
    codes.retain(|code| shared(code) > 0);
    codes.sort_by_key(|code| (core::cmp::Reverse(shared(code)), code.len()));
    codes.truncate(3);
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_with_the_same_words_are_near() {
        assert_eq!(near("unkown_component"), ["unknown_component"]);
        assert_eq!(near("cycle").len(), 3);
        assert!(near("zzz").is_empty());
    }
}
