//! `cargo xtask layering`: the arrows between the crates, against the one table of those allowed.
//!
//! A crate of the table need not exist yet; a crate that exists must be in the table. An arrow
//! that is not drawn here needs a second reader and a sentence in the commit that draws it.

use core::fmt;
use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::{
    console::Steps,
    workspace::{Dependency, Package, Workspace},
};

/// Where a crate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    /// Below the line: no std, no mandatory outside dependency.
    Core,
    /// Above the line.
    Host,
    /// Not shipped; may use every crate that is.
    Tool,
}

use Tier::{Core, Host, Tool};

/// Every crate with the crates it may use. Those that all may use are in [`FOR_ALL`].
const CRATES: &[(&str, Tier, &[&str])] = &[
    ("clockjack-sync", Core, &[]),
    ("clockjack-observe", Core, &[]),
    ("clockjack-time", Core, &["clockjack-sync"]),
    ("clockjack-exec", Core, &["clockjack-time", "clockjack-sync"]),
    ("clockjack-sched", Core, &["clockjack-time", "clockjack-sync"]),
    (
        "clockjack-actor",
        Core,
        &["clockjack-sched", "clockjack-exec", "clockjack-time", "clockjack-sync"],
    ),
    (
        "clockjack-embassy",
        Core,
        &["clockjack-actor", "clockjack-exec", "clockjack-time", "clockjack-sync"],
    ),
    ("clockjack-macros", Host, &[]),
    ("clockjack-graph", Host, &["clockjack-actor"]),
    ("clockjack-rt", Host, ACTOR_AND_BELOW),
    ("clockjack-sim", Host, GRAPH_AND_CORE),
    // Not graph, whose own tests run in the virtual time of this one.
    ("clockjack-testkit", Host, ACTOR_AND_BELOW),
    ("clockjack-record", Host, &["clockjack-observe"]),
    ("clockjack-console", Host, &["clockjack-record"]),
    ("clockjack-cli", Host, &["clockjack-console", "clockjack-graph", "clockjack-rt"]),
    ("clockjack", Host, SHIPPED),
    ("clockjack-benches", Tool, SHIPPED),
    // Its chapters are doc tests of what a user writes, who names the facade.
    ("clockjack-book", Tool, &["clockjack", "clockjack-cli"]),
    ("clockjack-compare", Tool, SHIPPED),
    ("clockjack-own-components", Tool, SHIPPED),
    ("clockjack-scenario", Tool, SHIPPED),
    ("clockjack-soak", Tool, SHIPPED),
    (FOR_TESTS, Tool, &["clockjack-exec", "clockjack-time"]),
    ("xtask", Tool, &[]),
];

const ACTOR_AND_BELOW: &[&str] =
    &["clockjack-actor", "clockjack-sched", "clockjack-exec", "clockjack-time", "clockjack-sync"];

const GRAPH_AND_CORE: &[&str] = &[
    "clockjack-graph",
    "clockjack-actor",
    "clockjack-sched",
    "clockjack-exec",
    "clockjack-time",
    "clockjack-sync",
];

const SHIPPED: &[&str] = &[
    "clockjack-sync",
    "clockjack-observe",
    "clockjack-time",
    "clockjack-exec",
    "clockjack-sched",
    "clockjack-actor",
    "clockjack-embassy",
    "clockjack-macros",
    "clockjack-graph",
    "clockjack-rt",
    "clockjack-sim",
    "clockjack-testkit",
    "clockjack-record",
    "clockjack-console",
    "clockjack-cli",
];

/// Every crate above it may report through this one.
const FOR_ALL: &str = "clockjack-observe";

/// What tests share: every crate may use it for its tests, the tools also for what they do. Its own
/// arrows are behind a feature that only crates from the executor upwards switch on.
const FOR_TESTS: &str = "clockjack-testing";

/// Arrows beside the plan, each with its reason.
const EXTRA: &[(&str, &str, &str)] = &[
    (
        "clockjack-observe",
        "clockjack-sync",
        "the recorder is a protocol between threads, and only sync knows loom",
    ),
    ("clockjack-cli", "clockjack-time", "`demo timers` drives a wheel itself"),
    (
        "clockjack-cli",
        "clockjack-sched",
        "`demo jobs` drives a scheduler in virtual time, without the threads of a runtime",
    ),
    (
        "clockjack-cli",
        "clockjack-sync",
        "`splitmix`: the loads of `timers` and `jobs` are drawn from a seed",
    ),
    (
        "clockjack-graph",
        "clockjack-exec",
        "an epoch is run by futures on the executor of the system, beside its actors",
    ),
    (
        "clockjack-graph",
        "clockjack-sync",
        "`mutant!`: the faults that are planted in it; `splitmix`: noise from a seed",
    ),
    ("clockjack-graph", "clockjack-macros", "`#[derive(Component)]` is part of a component"),
];

/// Dev-dependencies that point upwards, each with the reason.
const UPWARDS: &[(&str, &str, &str)] = &[(
    "clockjack-graph",
    "clockjack-sim",
    "its tests run the random graphs of the simulation, which the product does not contain",
)];

/// Outside crates that a core crate takes on some targets, each under exactly this condition.
const CONDITIONAL: &[(&str, &str, &str)] = &[
    ("clockjack-sync", "loom", "cfg(loom)"),
    ("clockjack-sync", "shuttle", "cfg(shuttle)"),
    ("clockjack-sync", "portable-atomic", "cfg(not(target_has_atomic = \"ptr\"))"),
    ("clockjack-sync", "portable-atomic", "cfg(not(target_has_atomic = \"64\"))"),
];

/// Outside crates that a core crate cannot be without, each with the reason.
const MANDATORY: &[(&str, &str, &str)] = &[(
    "clockjack-embassy",
    "embassy-time",
    "its clock and alarm are what the crate is glue for; it is no_std, with the board's driver",
)];

/// Crates that Clockjack is measured against, and who else may use one.
const RIVALS: &[(&str, &[&str])] = &[
    ("actix", &[]),
    ("hierarchical_hash_wheel_timer", &[]),
    ("kameo", &[]),
    ("nexus-timer", &[]),
    ("ractor", &[]),
    ("rayon", &[]),
    ("smol", &[]),
    ("tokio", &["clockjack-rt", "clockjack", "clockjack-book", "clockjack-scenario"]),
    ("tokio-util", &[]),
    ("xtra", &[]),
];

/// An arrow that may not be.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    from: String,
    to: String,
    why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}: {}", self.from, self.to, self.why)
    }
}

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::new("layering", 1);
    steps.step("arrows between crates", |_| check_workspace(&Workspace::load()?));
    steps.finish()
}

fn check_workspace(workspace: &Workspace) -> Result<String> {
    let faults = check(&workspace.packages);
    if !faults.is_empty() {
        let lines: Vec<String> = faults.iter().map(|fault| format!("  {fault}")).collect();
        bail!("arrows that may not be: {}\n{}", faults.len(), lines.join("\n"));
    }
    let n_arrows: usize = workspace
        .packages
        .iter()
        .map(|p| p.dependencies.iter().filter(|d| is_ours(d)).count())
        .sum();
    Ok(format!("{} packages, {n_arrows} arrows", workspace.packages.len()))
}

/// Whether this is a crate below the line.
pub(crate) fn is_core(name: &str) -> bool {
    row(name).is_some_and(|(_, tier, _)| *tier == Core)
}

fn check(packages: &[Package]) -> Vec<Fault> {
    let heights = heights();
    let mut faults = Vec::new();
    for package in packages {
        let Some(&(_, tier, _)) = row(&package.name) else {
            faults.push(Fault {
                from: package.name.clone(),
                to: "?".to_owned(),
                why: "no row for this crate in xtask/src/layering.rs".to_owned(),
            });
            continue;
        };
        for dependency in &package.dependencies {
            let why = if is_ours(dependency) {
                check_ours(package, dependency, &heights)
            } else {
                check_outside(package, tier, dependency)
            };
            if let Some(why) = why {
                let (from, to) = (package.name.clone(), dependency.name.clone());
                faults.push(Fault { from, to, why });
            }
        }
    }
    faults
}

fn check_ours(
    package: &Package,
    dependency: &Dependency,
    heights: &BTreeMap<&str, usize>,
) -> Option<String> {
    let (from, to) = (package.name.as_str(), dependency.name.as_str());
    if may_use(from, to) {
        return None;
    }
    let is_dev = dependency.kind.as_deref() == Some("dev");
    if to == FOR_TESTS {
        let is_allowed = is_dev || row(from).is_some_and(|(_, tier, _)| *tier == Tool);
        return (!is_allowed).then(|| "a crate that is published uses it in tests only".to_owned());
    }
    if is_dev {
        let is_at_or_below = heights.get(to) <= heights.get(from) && heights.contains_key(to);
        let is_upwards = UPWARDS.iter().any(|&(a, b, _)| (a, b) == (from, to));
        let why = "a dev-dependency points to a crate at or below its own height";
        return (!is_at_or_below && !is_upwards).then(|| why.to_owned());
    }
    Some(
        "not an arrow of xtask/src/layering.rs: use the crate through its upper one, or draw \
          the arrow there and say why in the commit"
            .to_owned(),
    )
}

fn check_outside(package: &Package, tier: Tier, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.as_str();
    let rival = RIVALS.iter().find(|(rival, _)| *rival == name);
    if let Some((_, others)) = rival
        && package.name != "clockjack-compare"
        && !others.contains(&package.name.as_str())
    {
        return Some("a rival's crate: it belongs in compare/ only".to_owned());
    }
    let target = dependency.target.as_deref();
    for checker in ["loom", "shuttle"] {
        let cfg = format!("cfg({checker})");
        if name == checker && tier != Tool && target != Some(&cfg) {
            return Some(format!("{checker} stands under [target.'{cfg}'.dependencies] only"));
        }
    }
    if tier != Core || dependency.kind.as_deref() == Some("dev") || dependency.optional {
        return None;
    }
    let is_conditional = CONDITIONAL
        .iter()
        .any(|&(from, to, cfg)| (from, to, Some(cfg)) == (package.name.as_str(), name, target));
    let is_mandatory = MANDATORY.iter().any(|&(from, to, _)| (from, to) == (&package.name, name));
    (!is_conditional && !is_mandatory).then(|| {
        "a core crate has no mandatory outside dependency: make it optional or write it here"
            .to_owned()
    })
}

fn is_ours(dependency: &Dependency) -> bool {
    row(&dependency.name).is_some() || dependency.name.starts_with("clockjack")
}

fn row(name: &str) -> Option<&'static (&'static str, Tier, &'static [&'static str])> {
    CRATES.iter().find(|(known, _, _)| *known == name)
}

fn may_use(from: &str, to: &str) -> bool {
    let is_drawn = row(from).is_some_and(|(_, _, uses)| uses.contains(&to));
    let is_report =
        to == FOR_ALL && !["clockjack-sync", "clockjack-macros", FOR_ALL].contains(&from);
    let is_extra = EXTRA.iter().any(|&(a, b, _)| (a, b) == (from, to));
    is_drawn || is_report || is_extra
}

/// How many arrows the longest way down from each crate has.
fn heights() -> BTreeMap<&'static str, usize> {
    let mut heights: BTreeMap<&str, usize> = CRATES.iter().map(|row| (row.0, 0)).collect();
    // The longest way visits each crate once, so as many rounds settle every height.
    for _ in CRATES {
        for (from, _, _) in CRATES {
            let below = CRATES.iter().filter(|to| may_use(from, to.0)).map(|to| heights[to.0] + 1);
            let height = below.max().unwrap_or(0);
            heights.insert(from, height);
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: Vec<Dependency>) -> Package {
        Package {
            name: name.to_owned(),
            id: name.to_owned(),
            manifest_path: "Cargo.toml".into(),
            dependencies,
        }
    }

    fn on(name: &str) -> Dependency {
        Dependency { name: name.to_owned(), ..Dependency::default() }
    }

    fn dev(name: &str) -> Dependency {
        Dependency { kind: Some("dev".to_owned()), ..on(name) }
    }

    fn under(name: &str, cfg: &str) -> Dependency {
        Dependency { target: Some(cfg.to_owned()), ..on(name) }
    }

    /// Checks one arrow: `Ok` or a word that the refusal must contain.
    #[track_caller]
    fn arrow(from: &str, to: Dependency, expected: Result<(), &str>) {
        let faults = check(&[package(from, vec![to.clone()])]);
        match expected {
            Ok(()) => assert_eq!(faults, [], "{from} -> {}", to.name),
            Err(word) => {
                assert_eq!(faults.len(), 1, "{from} -> {} was let through", to.name);
                assert!(faults[0].to_string().contains(word), "{}", faults[0]);
            }
        }
    }

    #[test]
    fn arrows_of_the_plan_are_allowed() {
        arrow("clockjack-time", on("clockjack-sync"), Ok(()));
        arrow("clockjack-observe", on("clockjack-sync"), Ok(()));
        arrow("clockjack-rt", on("clockjack-actor"), Ok(()));
        arrow("clockjack-rt", on("clockjack-observe"), Ok(()));
        arrow("clockjack-compare", on("clockjack-time"), Ok(()));
        arrow("clockjack", on("clockjack-macros"), Ok(()));
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_refused() {
        arrow("clockjack-sync", on("clockjack-observe"), Err("not an arrow"));
        arrow("clockjack-sync", on("clockjack-time"), Err("not an arrow"));
        arrow("clockjack-time", on("clockjack-sched"), Err("not an arrow"));
        arrow("clockjack-graph", on("clockjack-rt"), Err("not an arrow"));
        arrow("clockjack-sim", on("clockjack-rt"), Err("not an arrow"));
        arrow("clockjack-time", on("clockjack-novelty"), Err("not an arrow"));
    }

    #[test]
    fn a_crate_without_a_row_is_refused() {
        let faults = check(&[package("clockjack-novelty", Vec::new())]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].to_string().contains("no row"), "{}", faults[0]);
    }

    #[test]
    fn dev_dependencies_point_at_or_below_their_own_height() {
        arrow("clockjack-exec", dev("clockjack-sched"), Ok(()));
        arrow("clockjack-time", dev("clockjack-observe"), Ok(()));
        arrow("clockjack-time", dev("clockjack-actor"), Err("at or below"));
        arrow("clockjack-sync", dev("clockjack-observe"), Err("at or below"));
    }

    #[test]
    fn what_tests_share_is_for_tests_and_tools() {
        arrow("clockjack-sync", dev("clockjack-testing"), Ok(()));
        arrow("clockjack-soak", on("clockjack-testing"), Ok(()));
        arrow("clockjack-testing", on("clockjack-exec"), Ok(()));
        arrow("clockjack-sync", on("clockjack-testing"), Err("in tests only"));
        arrow("clockjack-rt", on("clockjack-testing"), Err("in tests only"));
    }

    #[test]
    fn a_core_crate_takes_outside_crates_only_optionally() {
        arrow("clockjack-time", on("libc"), Err("no mandatory outside dependency"));
        arrow("clockjack-time", Dependency { optional: true, ..on("defmt") }, Ok(()));
        arrow("clockjack-time", dev("proptest"), Ok(()));
        arrow("clockjack-rt", on("rustix"), Ok(()));
    }

    #[test]
    fn glue_may_have_what_it_is_glue_for_and_nobody_else() {
        arrow("clockjack-embassy", on("embassy-time"), Ok(()));
        arrow("clockjack-embassy", on("embassy-executor"), Err("no mandatory outside dependency"));
        arrow("clockjack-actor", on("embassy-time"), Err("no mandatory outside dependency"));
    }

    #[test]
    fn shuttle_enters_sync_under_its_condition_only() {
        arrow("clockjack-sync", under("shuttle", "cfg(shuttle)"), Ok(()));
        arrow("clockjack-sync", on("shuttle"), Err("cfg(shuttle)"));
        arrow("clockjack-sync", under("shuttle", "cfg(loom)"), Err("cfg(shuttle)"));
        arrow("clockjack-time", under("shuttle", "cfg(shuttle)"), Err("mandatory"));
        let dev = Dependency { kind: Some("dev".to_owned()), ..under("shuttle", "cfg(shuttle)") };
        arrow("clockjack-time", dev, Ok(()));
    }

    #[test]
    fn loom_and_portable_atomic_enter_sync_under_their_condition_only() {
        let no_atomics = "cfg(not(target_has_atomic = \"ptr\"))";
        arrow("clockjack-sync", under("loom", "cfg(loom)"), Ok(()));
        arrow("clockjack-sync", under("portable-atomic", no_atomics), Ok(()));
        let no_wide_ones = "cfg(not(target_has_atomic = \"64\"))";
        arrow("clockjack-sync", under("portable-atomic", no_wide_ones), Ok(()));
        arrow("clockjack-sync", on("loom"), Err("cfg(loom)"));
        arrow("clockjack-sync", on("portable-atomic"), Err("mandatory"));
        arrow("clockjack-time", under("loom", "cfg(loom)"), Err("mandatory"));
        arrow("clockjack-time", under("portable-atomic", no_atomics), Err("mandatory"));
        let loom = Dependency { kind: Some("dev".to_owned()), ..under("loom", "cfg(loom)") };
        arrow("clockjack-time", loom, Ok(()));
        arrow("clockjack-time", dev("loom"), Err("cfg(loom)"));
    }

    #[test]
    fn rivals_stay_in_compare() {
        arrow("clockjack-compare", on("nexus-timer"), Ok(()));
        arrow("clockjack-compare", on("tokio"), Ok(()));
        arrow("clockjack-time", dev("nexus-timer"), Err("rival"));
        arrow("clockjack-benches", on("tokio"), Err("rival"));
        arrow("clockjack-rt", Dependency { optional: true, ..on("tokio") }, Ok(()));
        arrow("clockjack", dev("tokio"), Ok(()));
    }

    #[test]
    fn every_arrow_of_the_table_ends_at_a_row_and_goes_down() {
        let heights = heights();
        for (from, _, uses) in CRATES {
            for to in *uses {
                assert!(row(to).is_some(), "{from} -> {to}: no such row");
                assert!(heights[to] < heights[from], "{from} -> {to} does not go down");
            }
        }
    }
}
