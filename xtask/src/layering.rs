//! `cargo xtask layering`: the dependencies between the crates, against a table of the allowed
//! ones.
//!
//! A crate in the table need not exist yet; a crate that exists must be in the table. A new
//! dependency needs a second reader and a sentence in the commit message.
//!
//! It also checks what a user of the facade builds: exactly [`BUILT`], and nothing for several
//! nodes without the feature for it.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::{
    console::Steps,
    process::Cmd,
    workspace::{Dependency, Package, Workspace},
};

/// The layer of a crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    /// A core crate: no std, no mandatory outside dependency.
    Core,
    /// A crate that uses std.
    Host,
    /// A tool that is not published; may use every published crate.
    Tool,
}

use Tier::{Core, Host, Tool};

/// Every crate with the crates it may use. [`FOR_ALL`] may be used by all.
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
    // The answer to a request needs the actor that is asked, and `ReplyTo`.
    ("clockjack-wire", Core, &["clockjack-actor", "clockjack-macros"]),
    (
        "clockjack-net",
        Core,
        &["clockjack-wire", "clockjack-actor", "clockjack-time", "clockjack-sync"],
    ),
    ("clockjack-graph", Host, &["clockjack-actor"]),
    ("clockjack-rt", Host, ACTOR_AND_BELOW),
    // An engine for the net, on servers outside of the process. The runtime is for its tests: a
    // node may run on any host.
    ("clockjack-nats", Host, &["clockjack-net", "clockjack-actor", "clockjack-rt"]),
    // A program that `clockjack cluster` starts: clockjack-cli itself needs no client for NATS. The
    // runtime is for its tests, which have nodes.
    ("clockjack-cluster", Host, &["clockjack-nats", "clockjack-net", "clockjack-rt"]),
    ("clockjack-sim", Host, SIMULATED),
    // Not clockjack-graph, because the tests of clockjack-graph use this crate's virtual time.
    ("clockjack-testkit", Host, NET_AND_BELOW),
    ("clockjack-record", Host, &["clockjack-observe"]),
    ("clockjack-console", Host, OBSERVED),
    ("clockjack-cli", Host, &["clockjack-console", "clockjack-graph", "clockjack-rt"]),
    ("clockjack", Host, SHIPPED),
    ("clockjack-benches", Tool, SHIPPED),
    // The chapters are doc tests of user code, which depends on the facade. The facade does not
    // have the engine for several machines.
    ("clockjack-book", Tool, &["clockjack", "clockjack-cli", "clockjack-nats"]),
    // Its program is one of a user, which depends on the facade, with a token of its own.
    ("clockjack-browser", Tool, &["clockjack", "clockjack-console"]),
    ("clockjack-compare", Tool, SHIPPED),
    ("clockjack-gateway", Tool, &["clockjack"]),
    // The example is a program of a user, which depends on the facade.
    ("clockjack-opentelemetry-example", Tool, &["clockjack"]),
    ("clockjack-own-components", Tool, SHIPPED),
    // The example is a program of a user, which depends on the facade; its tests look at it.
    ("clockjack-shop", Tool, &["clockjack", "clockjack-cli", "clockjack-graph"]),
    ("clockjack-scenario", Tool, SHIPPED),
    ("clockjack-soak", Tool, SHIPPED),
    (FOR_TESTS, Tool, &["clockjack-exec", "clockjack-time"]),
    ("xtask", Tool, &[]),
];

const ACTOR_AND_BELOW: &[&str] =
    &["clockjack-actor", "clockjack-sched", "clockjack-exec", "clockjack-time", "clockjack-sync"];

const NET_AND_BELOW: &[&str] = &[
    "clockjack-net",
    "clockjack-actor",
    "clockjack-sched",
    "clockjack-exec",
    "clockjack-time",
    "clockjack-sync",
];

const SIMULATED: &[&str] = &[
    "clockjack-graph",
    "clockjack-net",
    "clockjack-actor",
    "clockjack-sched",
    "clockjack-exec",
    "clockjack-time",
    "clockjack-sync",
];

/// What a console looks at.
const OBSERVED: &[&str] = &[
    "clockjack-record",
    "clockjack-graph",
    "clockjack-rt",
    "clockjack-actor",
    "clockjack-sched",
    "clockjack-exec",
    "clockjack-time",
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
    "clockjack-wire",
    "clockjack-net",
    "clockjack-nats",
    "clockjack-graph",
    "clockjack-rt",
    "clockjack-sim",
    "clockjack-testkit",
    "clockjack-record",
    "clockjack-console",
    "clockjack-cli",
];

/// Every crate above this one may report events through it.
const FOR_ALL: &str = "clockjack-observe";

/// Shared test code: every crate may use it in its tests, the tools also elsewhere. The
/// dependencies of this crate are optional; only crates from the executor upwards enable them.
const FOR_TESTS: &str = "clockjack-testing";

/// Further dependencies, each with its reason.
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
        "an epoch is run by futures on the executor of the system, next to its actors",
    ),
    (
        "clockjack-graph",
        "clockjack-sync",
        "`mutant!`: the faults that are planted in it; `splitmix`: noise from a seed",
    ),
    ("clockjack-graph", "clockjack-macros", "`#[derive(Component)]` is part of a component"),
];

/// Dev-dependencies that point upwards, each with the reason.
const UPWARDS: &[(&str, &str, &str)] = &[
    (
        "clockjack-graph",
        "clockjack-sim",
        "its tests run the random graphs of the simulation, which the product does not contain",
    ),
    ("clockjack-graph", "clockjack-testkit", "its tests run actors in virtual time"),
    ("clockjack-console", "clockjack-testkit", "its tests look at actors in virtual time"),
    ("clockjack-net", "clockjack-testkit", "its tests run several nodes in virtual time"),
];

/// Outside crates that a core crate uses on some targets, each under exactly this condition.
const CONDITIONAL: &[(&str, &str, &str)] = &[
    ("clockjack-sync", "loom", "cfg(loom)"),
    ("clockjack-sync", "shuttle", "cfg(shuttle)"),
    ("clockjack-sync", "portable-atomic", "cfg(not(target_has_atomic = \"ptr\"))"),
    ("clockjack-sync", "portable-atomic", "cfg(not(target_has_atomic = \"64\"))"),
];

/// Outside crates that a core crate requires, each with the reason.
const MANDATORY: &[(&str, &str, &str)] = &[(
    "clockjack-embassy",
    "embassy-time",
    "the crate connects to its clock and alarm; it is no_std and the board provides its driver",
)];

/// Crates that Clockjack is measured against, and the packages that may use them.
const RIVALS: &[(&str, &[&str])] = &[
    ("actix", &[]),
    ("hierarchical_hash_wheel_timer", &[]),
    ("kameo", &[]),
    ("nexus-timer", &[]),
    ("ractor", &[]),
    ("rayon", &[]),
    ("smol", &[]),
    (
        "tokio",
        &[
            "clockjack-rt",
            "clockjack",
            "clockjack-book",
            // The client of WebDriver runs on it.
            "clockjack-browser",
            // The server of the console, on a thread of its own.
            "clockjack-console",
            "clockjack-gateway",
            // The client of NATS runs on it.
            "clockjack-nats",
            "clockjack-scenario",
        ],
    ),
    ("tokio-util", &[]),
    ("xtra", &[]),
];

/// All packages that the facade with its default features builds for [`TARGET`]. Who does not use
/// several nodes, graphs or tests pays for none of them.
const BUILT: &[&str] = &[
    "bitflags",
    FACADE,
    "clockjack-actor",
    "clockjack-exec",
    "clockjack-macros",
    "clockjack-observe",
    "clockjack-rt",
    "clockjack-sched",
    "clockjack-sync",
    "clockjack-time",
    "errno",
    "libc",
    "linux-raw-sys",
    "proc-macro2",
    "quote",
    "rustix",
    "signal-hook-registry",
    "syn",
    "unicode-ident",
];

/// What the feature `net` of the facade adds: no outside crate.
const NET: &[&str] = &["clockjack-net", "clockjack-wire"];

/// The features of the facade that are neither default ones nor `net`.
const OTHER_FEATURES: &str = "graph,testkit,tokio,tracing";

const FACADE: &str = "clockjack";

/// The target whose packages are listed, so that the list is the same on every machine.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A forbidden dependency.
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
    let mut steps = Steps::new("layering", 2);
    let workspace = Workspace::load()?;
    steps.step("dependencies between crates", |_| check_workspace(&workspace));
    steps.step("what a user of the facade builds", |_| check_facade(&workspace));
    steps.finish()
}

fn check_facade(workspace: &Workspace) -> Result<String> {
    let plain = built(workspace, "")?;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let expected: BTreeSet<String> = names(BUILT);
    if plain != expected {
        bail!("BUILT in xtask/src/layering.rs: {}", difference(&expected, &plain));
    }
    let with_net = built(workspace, "net")?;
    let expected: BTreeSet<String> = &expected | &names(NET);
    if with_net != expected {
        bail!("the feature `net`: {}", difference(&expected, &with_net));
    }
    let others = built(workspace, OTHER_FEATURES)?;
    let paid: Vec<&String> = others.iter().filter(|name| NET.contains(&name.as_str())).collect();
    if !paid.is_empty() {
        bail!("built without the feature `net`: {paid:?}");
    }
    Ok(format!("{} packages, {} more for several nodes", plain.len(), NET.len()))
}

fn difference(expected: &BTreeSet<String>, found: &BTreeSet<String>) -> String {
    let more: Vec<&String> = found.difference(expected).collect();
    let fewer: Vec<&String> = expected.difference(found).collect();
    format!("not expected: {more:?}, missing: {fewer:?}")
}

/// The names of all packages that the facade with these features builds.
fn built(workspace: &Workspace, features: &str) -> Result<BTreeSet<String>> {
    let cmd = Cmd::cargo().words("tree -e normal,build --prefix none --format {p} --target");
    let cmd = cmd.arg(TARGET).arg("-p").arg(FACADE).arg("--features").arg(features);
    let cmd = cmd.dir(&workspace.root);
    let finished = cmd.capture()?;
    if !finished.is_success() {
        bail!("{}", cmd.failure(&finished));
    }
    Ok(package_names(&finished.output))
}

/// The first word of each line that cargo prints as `NAME vVERSION ..`.
fn package_names(output: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        words.next()?.starts_with('v').then(|| name.to_owned())
    };
    output.lines().filter_map(name).collect()
}

fn check_workspace(workspace: &Workspace) -> Result<String> {
    let faults = check(&workspace.packages);
    if !faults.is_empty() {
        let lines: Vec<String> = faults.iter().map(|fault| format!("  {fault}")).collect();
        bail!("forbidden dependencies: {}\n{}", faults.len(), lines.join("\n"));
    }
    let n_dependencies: usize = workspace
        .packages
        .iter()
        .map(|p| p.dependencies.iter().filter(|d| is_ours(d)).count())
        .sum();
    Ok(format!("{} packages, {n_dependencies} dependencies", workspace.packages.len()))
}

/// Whether this is a core crate.
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
        return (!is_allowed).then(|| "a published crate may use it in tests only".to_owned());
    }
    if is_dev {
        let is_at_or_below = heights.get(to) <= heights.get(from) && heights.contains_key(to);
        let is_upwards = UPWARDS.iter().any(|&(a, b, _)| (a, b) == (from, to));
        let why = "a dev-dependency must be on a crate at or below the same height";
        return (!is_at_or_below && !is_upwards).then(|| why.to_owned());
    }
    Some(
        "not an allowed dependency in xtask/src/layering.rs: use a crate that re-exports it, or \
          add the dependency there and give the reason in the commit message"
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
        return Some("a competing crate: only compare/ may use it".to_owned());
    }
    let target = dependency.target.as_deref();
    for checker in ["loom", "shuttle"] {
        let cfg = format!("cfg({checker})");
        if name == checker && tier != Tool && target != Some(&cfg) {
            return Some(format!("{checker} is allowed under [target.'{cfg}'.dependencies] only"));
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
        "a core crate has no mandatory outside dependency: make it optional or list it here"
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

/// The length of the longest dependency path below each crate.
fn heights() -> BTreeMap<&'static str, usize> {
    let mut heights: BTreeMap<&str, usize> = CRATES.iter().map(|row| (row.0, 0)).collect();
    // A longest path visits each crate at most once, so this many rounds compute every height.
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
            version: "0.1.0".to_owned(),
            publish: None,
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

    /// Checks one dependency: `Ok`, or a word that the refusal must contain.
    #[track_caller]
    fn dependency(from: &str, to: Dependency, expected: Result<(), &str>) {
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
    fn the_names_of_packages_are_read_from_the_tree_of_cargo() {
        let output =
            "clockjack v0.1.0 (/a)\n    Blocking waiting for file lock\n\nlibc v0.2.1 (*)\n";
        let names: Vec<String> = package_names(output).into_iter().collect();
        assert_eq!(names, ["clockjack", "libc"]);
    }

    #[test]
    fn dependencies_of_the_plan_are_allowed() {
        dependency("clockjack-time", on("clockjack-sync"), Ok(()));
        dependency("clockjack-observe", on("clockjack-sync"), Ok(()));
        dependency("clockjack-rt", on("clockjack-actor"), Ok(()));
        dependency("clockjack-rt", on("clockjack-observe"), Ok(()));
        dependency("clockjack-compare", on("clockjack-time"), Ok(()));
        dependency("clockjack", on("clockjack-macros"), Ok(()));
    }

    #[test]
    fn a_dependency_that_is_not_listed_is_refused() {
        dependency("clockjack-sync", on("clockjack-observe"), Err("not an allowed dependency"));
        dependency("clockjack-sync", on("clockjack-time"), Err("not an allowed dependency"));
        dependency("clockjack-time", on("clockjack-sched"), Err("not an allowed dependency"));
        dependency("clockjack-graph", on("clockjack-rt"), Err("not an allowed dependency"));
        dependency("clockjack-sim", on("clockjack-rt"), Err("not an allowed dependency"));
        dependency("clockjack-time", on("clockjack-novelty"), Err("not an allowed dependency"));
    }

    #[test]
    fn a_crate_without_a_row_is_refused() {
        let faults = check(&[package("clockjack-novelty", Vec::new())]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].to_string().contains("no row"), "{}", faults[0]);
    }

    #[test]
    fn dev_dependencies_point_at_or_below_their_own_height() {
        dependency("clockjack-exec", dev("clockjack-sched"), Ok(()));
        dependency("clockjack-time", dev("clockjack-observe"), Ok(()));
        dependency("clockjack-time", dev("clockjack-actor"), Err("at or below"));
        dependency("clockjack-sync", dev("clockjack-observe"), Err("at or below"));
    }

    #[test]
    fn what_tests_share_is_for_tests_and_tools() {
        dependency("clockjack-sync", dev("clockjack-testing"), Ok(()));
        dependency("clockjack-soak", on("clockjack-testing"), Ok(()));
        dependency("clockjack-testing", on("clockjack-exec"), Ok(()));
        dependency("clockjack-sync", on("clockjack-testing"), Err("in tests only"));
        dependency("clockjack-rt", on("clockjack-testing"), Err("in tests only"));
    }

    #[test]
    fn a_core_crate_takes_outside_crates_only_optionally() {
        dependency("clockjack-time", on("libc"), Err("no mandatory outside dependency"));
        dependency("clockjack-time", Dependency { optional: true, ..on("defmt") }, Ok(()));
        dependency("clockjack-time", dev("proptest"), Ok(()));
        dependency("clockjack-rt", on("rustix"), Ok(()));
    }

    #[test]
    fn glue_may_have_what_it_is_glue_for_and_nobody_else() {
        dependency("clockjack-embassy", on("embassy-time"), Ok(()));
        dependency(
            "clockjack-embassy",
            on("embassy-executor"),
            Err("no mandatory outside dependency"),
        );
        dependency("clockjack-actor", on("embassy-time"), Err("no mandatory outside dependency"));
    }

    #[test]
    fn shuttle_enters_sync_under_its_condition_only() {
        dependency("clockjack-sync", under("shuttle", "cfg(shuttle)"), Ok(()));
        dependency("clockjack-sync", on("shuttle"), Err("cfg(shuttle)"));
        dependency("clockjack-sync", under("shuttle", "cfg(loom)"), Err("cfg(shuttle)"));
        dependency("clockjack-time", under("shuttle", "cfg(shuttle)"), Err("mandatory"));
        let dev = Dependency { kind: Some("dev".to_owned()), ..under("shuttle", "cfg(shuttle)") };
        dependency("clockjack-time", dev, Ok(()));
    }

    #[test]
    fn loom_and_portable_atomic_enter_sync_under_their_condition_only() {
        let no_atomics = "cfg(not(target_has_atomic = \"ptr\"))";
        dependency("clockjack-sync", under("loom", "cfg(loom)"), Ok(()));
        dependency("clockjack-sync", under("portable-atomic", no_atomics), Ok(()));
        let no_wide_ones = "cfg(not(target_has_atomic = \"64\"))";
        dependency("clockjack-sync", under("portable-atomic", no_wide_ones), Ok(()));
        dependency("clockjack-sync", on("loom"), Err("cfg(loom)"));
        dependency("clockjack-sync", on("portable-atomic"), Err("mandatory"));
        dependency("clockjack-time", under("loom", "cfg(loom)"), Err("mandatory"));
        dependency("clockjack-time", under("portable-atomic", no_atomics), Err("mandatory"));
        let loom = Dependency { kind: Some("dev".to_owned()), ..under("loom", "cfg(loom)") };
        dependency("clockjack-time", loom, Ok(()));
        dependency("clockjack-time", dev("loom"), Err("cfg(loom)"));
    }

    #[test]
    fn rivals_stay_in_compare() {
        dependency("clockjack-compare", on("nexus-timer"), Ok(()));
        dependency("clockjack-compare", on("tokio"), Ok(()));
        dependency("clockjack-time", dev("nexus-timer"), Err("competing"));
        dependency("clockjack-benches", on("tokio"), Err("competing"));
        dependency("clockjack-rt", Dependency { optional: true, ..on("tokio") }, Ok(()));
        dependency("clockjack", dev("tokio"), Ok(()));
    }

    #[test]
    fn every_dependency_of_the_table_has_a_row_and_is_lower() {
        let heights = heights();
        for (from, _, uses) in CRATES {
            for to in *uses {
                assert!(row(to).is_some(), "{from} -> {to}: no such row");
                assert!(heights[to] < heights[from], "{from} -> {to} does not go down");
            }
        }
    }
}
