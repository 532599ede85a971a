//! A rule about the README: its table of platforms is what the checks do.

use super::{Fault, source::Source};
use crate::{
    ci,
    foreign::{PLATFORMS, Platform, QUICK},
};

const README: &str = "README.md";
const HEADING: &str = "## Platforms";

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
    fn a_readme_without_the_table_is_a_fault() {
        let faults = table(&[Source::new(README, "# A\n")]);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(table(&[Source::new("a.md", "# A\n")]).is_empty());
    }
}
