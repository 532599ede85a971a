//! Texts that are kept in files and compared with what is printed now; for tests.
//!
//! After a change that is meant, `CLOCKJACK_BLESS=1 cargo test -p clockjack-cli` writes them anew.

use std::{env, fs, path::Path};

/// Fails if a text is not that of the file of this name below `tests/golden`.
#[track_caller]
pub(crate) fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("CLOCKJACK_BLESS").is_some() {
        fs::write(&path, text).expect("the file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} is not what is printed now:\n{text}", path.display());
}
