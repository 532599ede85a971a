//! The changelog, in the form of Keep a Changelog: sections, newest first, with groups of changes.

use anyhow::{Context as _, Result, bail};

const UNRELEASED: &str = "Unreleased";
/// The groups that a section may have.
const GROUPS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// The sections of the changelog, newest first.
#[derive(Debug)]
pub(super) struct Changelog(Vec<Section>);

/// The changes of one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// A version, or `Unreleased`.
    name: String,
    /// The day of the release, as `2026-01-31`.
    day: Option<String>,
    /// The text below the heading.
    pub(super) notes: String,
}

impl Changelog {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut sections: Vec<Section> = Vec::new();
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                sections.push(Section::headed(heading)?);
            } else if let Some(section) = sections.last_mut() {
                if let Some(group) = line.strip_prefix("### ")
                    && !GROUPS.contains(&group)
                {
                    bail!("`### {group}` of {}: allowed are {}", section.name, GROUPS.join(", "));
                }
                section.notes.push_str(line);
                section.notes.push('\n');
            }
        }
        for section in &mut sections {
            section.notes = format!("{}\n", section.notes.trim());
        }
        let is_first = sections.first().is_some_and(|section| section.name == UNRELEASED);
        anyhow::ensure!(is_first, "the first section must be `## [{UNRELEASED}]`");
        Ok(Self(sections))
    }

    /// The section of a version. In a dry run it may still be called `Unreleased`.
    pub(super) fn release(&self, version: &str, is_dry: bool) -> Result<Section> {
        let unreleased = &self.0[0];
        let Some(section) = self.0.iter().find(|section| section.name == version) else {
            anyhow::ensure!(
                is_dry,
                "no section `## [{version}] - DAY`: move the changes of `[{UNRELEASED}]` there"
            );
            anyhow::ensure!(!unreleased.is_empty(), "`[{UNRELEASED}]` has no changes");
            return Ok(unreleased.clone());
        };
        anyhow::ensure!(!section.is_empty(), "the section of {version} has no changes");
        anyhow::ensure!(section.day.is_some(), "`## [{version}]` must name its day");
        anyhow::ensure!(
            unreleased.is_empty(),
            "changes are still under `[{UNRELEASED}]`, next to `[{version}]`"
        );
        anyhow::ensure!(self.0[1].name == version, "`[{version}]` is not the newest section");
        Ok(section.clone())
    }
}

impl Section {
    /// A section without changes, from the text after `## `.
    fn headed(heading: &str) -> Result<Self> {
        let named = heading.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (name, rest) = named.with_context(|| format!("`## {heading}` is no `## [VERSION]`"))?;
        let day = rest.strip_prefix(" - ");
        let is_day = |day: &str| {
            let shape: String =
                day.chars().map(|char| if char.is_ascii_digit() { '0' } else { char }).collect();
            shape == "0000-00-00"
        };
        anyhow::ensure!(
            rest.is_empty() || day.is_some_and(is_day),
            "`## {heading}`: write the day as `## [{name}] - 2026-01-31`"
        );
        Ok(Self { name: name.to_owned(), day: day.map(str::to_owned), notes: String::new() })
    }

    fn is_empty(&self) -> bool {
        !self.notes.lines().any(|line| line.starts_with("- "))
    }

    /// Whether the section has a place for changes that break programs.
    pub(super) fn names_breaking_changes(&self) -> bool {
        let is_named = |line: &str| matches!(line, "### Changed" | "### Removed");
        self.notes.lines().any(is_named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str = "# Changelog\n\nText.\n\n## [Unreleased]\n\n### Added\n\n- A.\n\n\
                        ## [0.1.0] - 2026-01-31\n\n### Fixed\n\n- B.\n";
    const CLOSED: &str = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-28\n\n\
                          ### Changed\n\n- A.\n";

    #[track_caller]
    fn refused(text: &str, version: &str, is_dry: bool, words: &str) {
        let release = Changelog::parse(text).and_then(|all| all.release(version, is_dry));
        let told = release.expect_err("it must be refused").to_string();
        assert!(told.contains(words), "{told}");
    }

    #[test]
    fn a_dry_run_takes_what_is_unreleased_and_a_release_wants_its_section() {
        let changelog = Changelog::parse(OPEN).expect("sound");
        let section = changelog.release("0.2.0", true).expect("changes");
        assert_eq!(section.notes, "### Added\n\n- A.\n");
        assert!(!section.names_breaking_changes());
        refused(OPEN, "0.2.0", false, "no section `## [0.2.0] - DAY`");
        let section = Changelog::parse(CLOSED).and_then(|all| all.release("0.2.0", false));
        let section = section.expect("sound");
        assert_eq!(section.notes, "### Changed\n\n- A.\n");
        assert!(section.names_breaking_changes());
    }

    #[test]
    fn a_section_that_is_empty_undated_or_not_the_newest_is_refused() {
        refused(&OPEN.replace("- A.\n", ""), "0.2.0", true, "`[Unreleased]` has no changes");
        refused(OPEN, "0.1.0", true, "still under `[Unreleased]`");
        refused(&CLOSED.replace("- A.\n", ""), "0.2.0", false, "has no changes");
        refused(&CLOSED.replace(" - 2026-02-28", ""), "0.2.0", false, "must name its day");
        refused(&CLOSED.replace("2026-02-28", "28 Feb"), "0.2.0", false, "write the day");
        let older = CLOSED.replace("## [0.2.0]", "## [0.3.0] - 2026-03-01\n\n- C.\n\n## [0.2.0]");
        refused(&older, "0.2.0", false, "not the newest");
        refused("## [0.1.0] - 2026-01-31\n", "0.1.0", true, "the first section must be");
        refused(&OPEN.replace("### Added", "### New"), "0.2.0", true, "`### New`");
        refused(&OPEN.replace("[0.1.0]", "0.1.0"), "0.2.0", true, "is no `## [VERSION]`");
    }
}
