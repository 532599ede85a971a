//! Known advisories against dependencies, stored in a file: the check needs no network and gives
//! the same result everywhere.
//!
//! The file does not contain advisories that were published later. It names the crates that were
//! looked up; a new dependency fails until somebody has looked it up.

use core::cmp::Ordering;
use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::version::Version;

/// The path of the list, relative to the root.
pub(super) const FILE: &str = "xtask/advisories.toml";

/// The contents of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// The date of the newest entry of the database when the crates were looked up.
    until: String,
    /// Every crate that was looked up, including those without an advisory.
    looked_up: BTreeSet<String>,
    /// Crates that were looked up in an older database only: to be looked up before a release.
    #[serde(default)]
    earlier: Vec<Earlier>,
    #[serde(default)]
    advisory: Vec<Advisory>,
}

/// Crates that were looked up in one older database.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Earlier {
    until: String,
    looked_up: BTreeSet<String>,
}

/// One entry of the database.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advisory {
    id: String,
    package: String,
    /// Ranges of versions that are not affected, because they are fixed or older than the defect. A
    /// version must be in one of the ranges; a range is a list of bounds, such as `>= 1.8.4, <
    /// 1.9.0`.
    sound: Vec<String>,
}

/// Reads the contents of the file.
///
/// # Errors
///
/// If the file is malformed, or has an advisory against a crate that it does not list.
pub(super) fn parse(text: &str) -> Result<Known> {
    let known: Known = toml::from_str(text)?;
    for Advisory { id, package, sound } in &known.advisory {
        anyhow::ensure!(known.has(package), "{id}: {package} is not in `looked_up`");
        for range in sound {
            bounds(range).with_context(|| id.clone())?;
        }
    }
    Ok(known)
}

impl Known {
    fn has(&self, name: &str) -> bool {
        let mut earlier = self.earlier.iter();
        self.looked_up.contains(name) || earlier.any(|list| list.looked_up.contains(name))
    }

    /// Checks crates by name and version.
    ///
    /// # Errors
    ///
    /// Lists every crate that was not looked up and every crate that an advisory affects.
    pub(super) fn check<'a>(
        &self,
        packages: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<String> {
        let mut n_crates = 0;
        let mut faults = Vec::new();
        for (name, version) in packages {
            n_crates += 1;
            if !self.has(name) {
                faults.push(format!(
                    "  {name} {version}: not looked up yet; see \
                     https://rustsec.org/packages/{name}.html and add it to {FILE}"
                ));
            }
            let parsed = Version::parse(version)
                .with_context(|| format!("{name} {version}: not a version"))?;
            for advisory in self.advisory.iter().filter(|advisory| advisory.package == name) {
                if !advisory.is_sound(parsed)? {
                    faults.push(format!(
                        "  {name} {version}: {id}; unaffected versions: {sound}",
                        id = advisory.id,
                        sound = advisory.sound.join(" or ")
                    ));
                }
            }
        }
        if !faults.is_empty() {
            bail!(
                "dependencies with advisories or not looked up: {}\n{}",
                faults.len(),
                faults.join("\n")
            );
        }
        let n_known = self.advisory.len();
        let earlier = self
            .earlier
            .iter()
            .map(|list| format!("; {} crates until {} only", list.looked_up.len(), list.until));
        let earlier: String = earlier.collect();
        Ok(format!("{n_crates} crates, {n_known} advisories, until {}{earlier}", self.until))
    }
}

impl Advisory {
    fn is_sound(&self, version: Version) -> Result<bool> {
        for range in &self.sound {
            if bounds(range)?.iter().all(|bound| bound.holds(version)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// One side of a range.
#[derive(Clone, Copy, Debug)]
struct Bound {
    allowed: &'static [Ordering],
    version: Version,
}

impl Bound {
    fn holds(&self, version: Version) -> bool {
        self.allowed.contains(&version.cmp(&self.version))
    }
}

fn bounds(range: &str) -> Result<Vec<Bound>> {
    range.split(',').map(|bound| parse_bound(bound.trim())).collect()
}

fn parse_bound(text: &str) -> Result<Bound> {
    let operators: [(&str, &'static [Ordering]); 4] = [
        (">= ", &[Ordering::Greater, Ordering::Equal]),
        ("<= ", &[Ordering::Less, Ordering::Equal]),
        ("> ", &[Ordering::Greater]),
        ("< ", &[Ordering::Less]),
    ];
    let found = operators.iter().find_map(|(operator, allowed)| {
        let version = Version::parse(text.strip_prefix(operator)?)?;
        Some(Bound { allowed, version })
    });
    found.with_context(|| format!("`{text}` is not a bound such as `>= 1.2.3`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        until = "2026-02-03"
        looked_up = ["bytes", "itoa"]

        [[advisory]]
        id = "RUSTSEC-2026-0007"
        package = "bytes"
        sound = [">= 1.11.1", "< 1.2.1", ">= 1.8.4, < 1.9.0"]
    "#;

    fn told(name: &str, version: &str) -> Option<String> {
        let known = parse(TEXT).expect("well formed");
        known.check([(name, version)].into_iter()).err().map(|error| error.to_string())
    }

    #[test]
    fn a_version_within_one_of_the_sound_ranges_passes_and_any_other_is_told_with_the_advisory() {
        for sound in ["1.11.1", "1.12.0", "2.0.0", "1.2.0", "1.8.4", "1.8.99", "1.11.1+meta"] {
            assert_eq!(told("bytes", sound), None, "{sound}");
        }
        for affected in ["1.11.0", "1.2.1", "1.8.3", "1.9.0", "1.11.1-rc.1"] {
            let told = told("bytes", affected).expect(affected);
            assert!(told.contains(&format!("bytes {affected}: RUSTSEC-2026-0007")), "{told}");
            assert!(told.contains(">= 1.11.1 or < 1.2.1"), "{told}");
        }
    }

    #[test]
    fn a_crate_that_nobody_has_looked_up_fails_with_where_to_look() {
        assert_eq!(told("itoa", "1.0.18"), None);
        let told = told("left-pad", "1.0.0").expect("it is new");
        assert!(told.contains("https://rustsec.org/packages/left-pad.html"), "{told}");
        assert!(told.contains(FILE), "{told}");
    }

    #[test]
    fn a_list_with_a_hole_or_a_bound_that_is_none_is_refused() {
        let refused = |from: &str, to: &str| {
            let error = parse(&TEXT.replace(from, to)).expect_err(to);
            format!("{error:#}")
        };
        let told = refused("looked_up = [\"bytes\", ", "looked_up = [");
        assert!(told.contains("bytes is not in `looked_up`"), "{told}");
        for bound in ["^1.11.1", ">= 1.11", "1.11.1", ">= 1.11.1.1", ""] {
            let told = refused(">= 1.11.1", bound);
            assert!(told.contains("RUSTSEC-2026-0007") && told.contains("not a bound"), "{told}");
        }
    }

    #[test]
    fn the_list_of_this_project_is_well_formed_and_in_order() {
        let root = crate::workspace::root().expect("there is a workspace");
        let text = std::fs::read_to_string(root.join(FILE)).expect("the file exists");
        let known = parse(&text).expect("well formed");
        assert!(known.advisory.is_sorted_by_key(|one| (&one.package, &one.id)));
        assert!(!known.looked_up.is_empty());
    }
}
