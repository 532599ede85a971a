//! The name of a project: a valid package name from which a valid crate name can be derived.

use std::path::Path;

use crate::failure::Failure;

/// Keywords of Rust, names that cargo or the compiler reserves, and names of dependencies.
const RESERVED: &str = "\
    Self abstract alloc as async await become box break build clockjack const continue core crate \
    deps do dyn else enum examples extern false final fn for gen if impl in incremental let loop \
    macro match mod move mut override priv proc-macro proc_macro pub ref return self static std \
    struct super test trait true try type typeof unsafe unsized use virtual where while yield";

/// A valid package name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    /// The last part of a path; for `.` and `..`, the last part of the directory that they refer
    /// to.
    pub(crate) fn of(dir: &Path) -> Result<Self, Failure> {
        let resolved = if dir.file_name().is_none() { dir.canonicalize().ok() } else { None };
        let dir = resolved.as_deref().unwrap_or(dir);
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match invalid_reason(&name) {
            Some(why) => {
                Err(Failure::usage(format!("'{name}' is not a valid project name: {why}")))
            }
            None => Ok(Self(name)),
        }
    }

    /// The package name, as in the manifest.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The crate name, as in code.
    pub(crate) fn crate_name(&self) -> String {
        self.0.replace('-', "_")
    }
}

fn invalid_reason(name: &str) -> Option<&'static str> {
    let Some(first) = name.chars().next() else { return Some("the name is empty") };
    if !name.chars().all(|char| char.is_ascii_alphanumeric() || char == '-' || char == '_') {
        return Some("only ASCII letters, digits, `-` and `_` are allowed");
    }
    if !first.is_ascii_alphabetic() {
        return Some("the name must start with a letter");
    }
    // A project with the name of a Clockjack crate would collide with that crate in the lock file,
    // which cargo rejects.
    let is_ours = name.starts_with("clockjack-") || name.starts_with("clockjack_");
    let is_reserved = is_ours || RESERVED.split(' ').any(|reserved| reserved == name);
    is_reserved.then_some("the name is reserved by Rust, cargo or Clockjack")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Result<&str, &str>) {
        match (Name::of(Path::new(path)), expected) {
            (Ok(name), Ok(expected)) => assert_eq!(name.as_str(), expected),
            (Err(error), Err(words)) => {
                assert!(error.to_string().contains(words), "{path}: {error}");
            }
            (found, expected) => panic!("{path}: {found:?}, and not {expected:?}"),
        }
    }

    #[test]
    fn a_project_is_called_like_its_directory() {
        check("night-watch", Ok("night-watch"));
        check("deep/in/there/a1_b", Ok("a1_b"));
        check("./here/", Ok("here"));
    }

    #[test]
    fn a_project_in_the_directory_that_one_is_in_is_called_like_that() {
        let here = std::env::current_dir().expect("tests run somewhere");
        let above =
            here.parent().and_then(Path::file_name).expect("the test runs inside the repository");
        check("..", Ok(&above.to_string_lossy()));
    }

    #[test]
    fn what_cargo_or_the_language_would_not_take_is_refused() {
        check("/", Err("the name is empty"));
        check("1st", Err("start with a letter"));
        check("-x", Err("start with a letter"));
        check("my project", Err("are allowed"));
        check("größe", Err("are allowed"));
        check("match", Err("is reserved"));
        check("test", Err("is reserved"));
        check("clockjack", Err("is reserved"));
        check("clockjack-rt", Err("is reserved"));
        check("clockjacket", Ok("clockjacket"));
    }

    #[test]
    fn code_names_the_crate_by_an_identifier() {
        assert_eq!(Name(String::from("night-watch")).crate_name(), "night_watch");
    }

    #[test]
    fn the_list_of_reserved_names_is_sorted() {
        assert!(RESERVED.split(' ').is_sorted());
    }
}
