//! The name of a project: one that cargo takes, and under which code can name the crate.

use std::path::Path;

use super::InitError;

/// Keywords of Rust, and names that cargo or the compiler have taken, or that would be those of a
/// dependency.
const TAKEN: &[&str] = &[
    "Self",
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "clockjack",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// What cargo calls a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    /// The last part of a path; for `.` and the like, that of the directory it stands for.
    pub(crate) fn of(dir: &Path) -> Result<Self, InitError> {
        let meant = if dir.file_name().is_none() { dir.canonicalize().ok() } else { None };
        let dir = meant.as_deref().unwrap_or(dir);
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match refusal(&name) {
            Some(why) => Err(InitError::BadName { name, why }),
            None => Ok(Self(name)),
        }
    }

    /// As it stands in the manifest.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// As code names it.
    pub(crate) fn of_crate(&self) -> String {
        self.0.replace('-', "_")
    }
}

fn refusal(name: &str) -> Option<&'static str> {
    let Some(first) = name.chars().next() else { return Some("it is empty") };
    if !name.chars().all(|char| char.is_ascii_alphanumeric() || char == '-' || char == '_') {
        return Some("letters without accents, digits, `-` and `_` are allowed");
    }
    if !first.is_ascii_alphabetic() {
        return Some("it must begin with a letter");
    }
    // A crate of ours would be in one lock file with its namesake, which cargo refuses.
    let is_ours = name.starts_with("clockjack-") || name.starts_with("clockjack_");
    let is_taken = is_ours || TAKEN.contains(&name);
    is_taken.then_some("that name is taken, by the language, by cargo or by Clockjack")
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
        let above = here.parent().and_then(Path::file_name).expect("it stands in the repository");
        check("..", Ok(&above.to_string_lossy()));
    }

    #[test]
    fn what_cargo_or_the_language_would_not_take_is_refused() {
        check("/", Err("it is empty"));
        check("1st", Err("begin with a letter"));
        check("-x", Err("begin with a letter"));
        check("my project", Err("are allowed"));
        check("größe", Err("are allowed"));
        check("match", Err("is taken"));
        check("test", Err("is taken"));
        check("clockjack", Err("is taken"));
        check("clockjack-rt", Err("is taken"));
        check("clockjacket", Ok("clockjacket"));
    }

    #[test]
    fn code_names_the_crate_by_an_identifier() {
        assert_eq!(Name(String::from("night-watch")).of_crate(), "night_watch");
    }

    #[test]
    fn the_list_of_taken_names_is_in_order() {
        assert!(TAKEN.is_sorted());
    }
}
