//! Golden files for tests: expected texts that are compared with the current output.
//!
//! After an intended change, `CLOCKJACK_BLESS=1 cargo test -p clockjack-cli` rewrites them.

use std::{env, fs, path::Path};

/// Fails if the text differs from the file of this name in `tests/golden`.
#[track_caller]
pub(crate) fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("CLOCKJACK_BLESS").is_some() {
        fs::write(&path, text).expect("the file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} differs from the current output:\n{text}", path.display());
}
