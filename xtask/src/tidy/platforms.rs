//! A rule about README and book: their tables of platforms are what the checks do.

use super::{Fault, source::Source};
use crate::{
    ci,
    foreign::{PLATFORMS, Platform, QUICK},
};

const README: &str = "README.md";
const HEADING: &str = "## Platforms";
const CHAPTER: &str = "book/src/platforms.md";

/// The table has one row for each platform that is checked, with the level, the command, and the
/// list that runs the command; it has no other row.
pub(super) fn table(sources: &[Source]) -> Vec<Fault> {
    let Some(readme) = sources.iter().find(|source| source.path == README) else {
        return Vec::new();
    };
    let Some(begin) = readme.text.find(HEADING) else {
        return vec![readme.fault(0, format!("there is no heading `{HEADING}`"))];
    };
    let section = &readme.text[begin..];
    let end = section[HEADING.len()..].find("\n## ").map_or(section.len(), |at| at + HEADING.len());
    let mut faults = Vec::new();
    let mut found = Vec::new();
    let mut at = begin;
    for line in section[..end].split_inclusive('\n') {
        let here = at;
        at += line.len();
        let cells: Vec<&str> = line.trim().split('|').map(str::trim).collect();
        let ["", name, level, checked_by, ""] = cells[..] else { continue };
        if name == "platform" || name.starts_with("---") {
            continue;
        }
        let Some(platform) = PLATFORMS.iter().find(|one| name.contains(&quoted(one.target))) else {
            faults.push(readme.fault(here, format!("nothing checks `{name}`: remove the row")));
            continue;
        };
        found.push(platform.target);
        if (level, checked_by) != (platform.level, &*checks(platform)) {
            let what = format!("write: | {name} | {} | {} |", platform.level, checks(platform));
            faults.push(readme.fault(here, what));
        }
    }
    for missing in PLATFORMS.iter().filter(|one| !found.contains(&one.target)) {
        faults.push(readme.fault(begin, format!("the platform {} has no row", missing.target)));
    }
    faults
}

/// The table of the book has each platform in one row: its target in the second cell, and its level
/// at the beginning of the third, which may go on after a colon. A row may have more targets of one
/// level; one without a target is about something else.
pub(super) fn table_of_book(sources: &[Source]) -> Vec<Fault> {
    let Some(chapter) = sources.iter().find(|source| source.path == CHAPTER) else {
        return Vec::new();
    };
    let (mut faults, mut found, mut at) = (Vec::new(), Vec::new(), 0);
    let end = chapter.text.find("\n## ").unwrap_or(chapter.text.len());
    for line in chapter.text[..end].split_inclusive('\n') {
        let here = at;
        at += line.len();
        let cells: Vec<&str> = line.trim().split('|').map(str::trim).collect();
        let ["", _, targets, level, ""] = cells[..] else { continue };
        let level = level.split(':').next().unwrap_or_default();
        for target in targets.split('`').skip(1).step_by(2) {
            let Some(platform) = PLATFORMS.iter().find(|one| one.target == target) else {
                faults.push(chapter.fault(here, format!("nothing checks `{target}`: remove it")));
                continue;
            };
            found.push(platform.target);
            if level != platform.level {
                let what = format!("the level of `{target}` is: {}", platform.level);
                faults.push(chapter.fault(here, what));
            }
        }
    }
    for missing in PLATFORMS.iter().filter(|one| !found.contains(&one.target)) {
        faults.push(chapter.fault(0, format!("the platform {} has no row", missing.target)));
    }
    faults
}

fn quoted(target: &str) -> String {
    format!("`{target}`")
}

/// The last cell of a row.
fn checks(platform: &Platform) -> String {
    let Platform { command, has_quick, .. } = platform;
    let quick = has_quick.then(|| ci::list_that_runs(&format!("{command}{QUICK}")));
    match (ci::list_that_runs(command), quick.flatten()) {
        (Some(list), None) => format!("`cargo {command}`, in `{list}`"),
        (Some(list), Some(quick)) => {
            format!("`cargo {command}`, in `{list}`; with `{}` in `{quick}`", QUICK.trim_start())
        }
        (None, _) => format!("nothing: neither `ci` nor `deep` runs `cargo {command}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readme(rows: &[String]) -> Vec<Source> {
        let text = format!(
            "# A\n\n{HEADING}\n\n| platform | level | checked by |\n|---|---|---|\n{}\n## Next\n\n\
             | a | b | c |\n",
            rows.concat()
        );
        vec![Source::new(README, &text)]
    }

    fn row(platform: &Platform) -> String {
        format!("| A (`{}`) | {} | {} |\n", platform.target, platform.level, checks(platform))
    }

    #[test]
    fn each_platform_is_checked_by_a_list() {
        for platform in &PLATFORMS {
            assert!(checks(platform).starts_with("`cargo "), "{}", checks(platform));
        }
    }

    #[test]
    fn what_ci_does_quickly_is_in_the_row() {
        let is_quick = |one: &&Platform| checks(one).ends_with("; with `--quick` in `ci`");
        let quick: Vec<_> = PLATFORMS.iter().filter(is_quick).map(|one| one.target).collect();
        assert_eq!(quick, ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"]);
    }

    #[test]
    fn a_row_that_is_missing_or_too_much_or_wrong_is_a_fault() {
        let all: Vec<String> = PLATFORMS.iter().map(row).collect();
        let check = |rows: &[String], expected: &[&str]| {
            let faults = table(&readme(rows));
            assert_eq!(faults.len(), expected.len(), "{faults:?}");
            for (fault, words) in faults.iter().zip(expected) {
                assert!(fault.what.contains(words), "{fault}");
            }
        };
        check(&all, &[]);
        check(&all[1..], &["x86_64-unknown-linux-gnu has no row"]);
        let mut other = all.clone();
        other.push("| B (`vax-unknown-netbsd`) | tested | nothing |\n".to_owned());
        check(&other, &["remove the row"]);
        let mut better = all;
        better[3] = better[3].replace("run in an emulator", "tested");
        let row = "| run in an emulator | `cargo xtask foreign --windows`, in `deep`; with \
                   `--quick` in `ci` |";
        check(&better, &[row]);
    }

    #[test]
    fn the_book_has_each_platform_with_its_level() {
        let row = |platform: &Platform| {
            format!("| A | `{}` | {}: some |\n", platform.target, platform.level)
        };
        let rows: Vec<String> = PLATFORMS.iter().map(row).collect();
        let check = |rows: &[String], expected: &[&str]| {
            let text = format!("# P\n\n| a | b | c |\n|---|---|---|\n{}\n## More\n", rows.concat());
            let faults = table_of_book(&[Source::new(CHAPTER, &text)]);
            assert_eq!(faults.len(), expected.len(), "{faults:?}");
            for (fault, words) in faults.iter().zip(expected) {
                assert!(fault.what.contains(words), "{fault}");
            }
        };
        check(&rows, &[]);
        let [a, b] = [&PLATFORMS[4], &PLATFORMS[5]].map(|one| one.target);
        let mut joined = rows[..4].to_vec();
        joined.push(format!(
            "| A | `{a}`, `{b}` | type-checked |\n| chips | see there | emulated |\n"
        ));
        check(&joined, &[]);
        check(&rows[1..], &["x86_64-unknown-linux-gnu has no row"]);
        let mut better = rows.clone();
        better[3] = better[3].replace("run in an emulator", "tested");
        better.push("| B | `vax-unknown-netbsd` | tested |\n".to_owned());
        check(&better, &["is: run in an emulator", "nothing checks `vax-unknown-netbsd`"]);
        assert!(table_of_book(&[Source::new("a.md", "# A\n")]).is_empty());
    }

    #[test]
    fn a_readme_without_the_table_is_a_fault() {
        let faults = table(&[Source::new(README, "# A\n")]);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(table(&[Source::new("a.md", "# A\n")]).is_empty());
    }
}
