//! Checks the pages that explain codes against the loader and the compiler.

use clockjack_graph::{
    Registry, compile,
    describe::GraphFile,
    diagnostic::{
        Code, Severity,
        explain::{Page, all},
    },
};

/// The distinct codes that a file produces.
fn codes_of(text: &str) -> Vec<Code> {
    let list = match GraphFile::parse("example.yaml", text) {
        Ok(file) => compile::check(file.spec(), &Registry::standard()).1.list,
        Err(diagnostics) => diagnostics.list,
    };
    let mut codes: Vec<Code> = list.iter().map(|one| one.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn a_wrong_example_gives_its_code_and_the_right_one_no_fault() {
    let mut faults = Vec::new();
    for page in all().filter(|page| !page.wrong.is_empty()) {
        let wrong = codes_of(&Page::complete(page.wrong));
        let right = codes_of(&Page::complete(page.right));
        let is_error = |code: &Code| code.severity() == Severity::Error;
        if !wrong.contains(&page.code)
            || wrong.iter().any(|code| is_error(code) && *code != page.code)
            || right.contains(&page.code)
            || right.iter().any(is_error)
        {
            faults.push(format!("{}: wrong gives {wrong:?}, right {right:?}", page.code));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
