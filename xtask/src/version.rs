//! Version numbers, and what a step from one to the next promises.

use core::fmt;

/// Three numbers, and whether it is a release: a pre-release is less than its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version([u64; 3], bool);

impl Version {
    /// Parses `1.2.3`, with or without a pre-release and build metadata.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.split('+').next()?;
        let (numbers, is_release) = match text.split_once('-') {
            Some((numbers, _)) => (numbers, false),
            None => (text, true),
        };
        let numbers: Option<Vec<u64>> = numbers.split('.').map(|part| part.parse().ok()).collect();
        Some(Self(numbers?.try_into().ok()?, is_release))
    }

    /// The lowest release after this one that may have such changes, as cargo reads versions: for
    /// `0.x.y` the second number stands for what breaks programs, and the third one for the rest.
    pub(crate) fn next(self, changes: Changes) -> Self {
        let Self([major, minor, patch], _) = self;
        let numbers = match (changes, major) {
            (Changes::Breaking, 0) | (Changes::Additions, 1..) => [major, minor + 1, 0],
            (Changes::Breaking, _) => [major + 1, 0, 0],
            (Changes::Additions | Changes::Nothing, _) => [major, minor, patch + 1],
        };
        Self(numbers, true)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, minor, patch], is_release) = self;
        write!(f, "{major}.{minor}.{patch}{}", if *is_release { "" } else { "-pre" })
    }
}

/// The weightiest change between two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Changes {
    /// The surface is the same.
    Nothing,
    /// Programs compile as before, and can do more.
    Additions,
    /// A program that compiled before may not compile now.
    Breaking,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, changes: Changes, to: &str) {
        let from = Version::parse(from).expect("a version");
        assert_eq!(from.next(changes).to_string(), to, "{from} {changes:?}");
    }

    #[test]
    fn the_number_that_cargo_reads_as_breaking_is_the_one_that_is_asked_for() {
        check("0.1.2", Changes::Nothing, "0.1.3");
        check("0.1.2", Changes::Additions, "0.1.3");
        check("0.1.2", Changes::Breaking, "0.2.0");
        check("1.2.3", Changes::Nothing, "1.2.4");
        check("1.2.3", Changes::Additions, "1.3.0");
        check("1.2.3", Changes::Breaking, "2.0.0");
    }

    #[test]
    fn a_pre_release_is_before_its_release_and_what_is_no_version_is_none() {
        let version = |text| Version::parse(text);
        assert!(version("0.2.0-rc.1") < version("0.2.0"));
        assert!(version("0.9.0") < version("0.10.0"));
        for text in ["", "1", "1.2", "1.2.3.4", "v1.2.3", "a.b.c"] {
            assert_eq!(version(text), None, "{text}");
        }
    }
}
