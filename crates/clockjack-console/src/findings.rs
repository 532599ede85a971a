//! Findings: what is wrong, out of a closed list.
//!
//! Each check reads what the state has, and returns what holds *now*. How long it has held is
//! remembered here, by code and subject.

mod actors;
mod machine;
mod texts;

use std::collections::BTreeMap;

use clockjack_exec::{Handle, Pid};

pub(crate) use self::actors::{ASKS_MAX, cycles};
pub use self::texts::{EXPLANATIONS, Explanation, explain};
use crate::{
    Target,
    state::State,
    view::{Evidence, Finding, Findings, Number, Undecided},
};

/// The most findings that are reported.
const FINDINGS_MAX: usize = 64;
/// The most findings of one code that are reported.
const EACH_MAX: usize = 8;

/// The order of the codes, the worst first: what causes others comes before them. Actors that wait
/// for each other, or one that does not return, fill mailboxes and delay timers; a pool that is
/// saturated does both.
const ORDER: &[&str] = &[
    "S02", "S01", "S12", "S13", "S04", "S08", "S09", "S06", "S07", "S03", "S05", "S11", "S10",
    "S14",
];

const SECOND_NS: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60 * SECOND_NS;
/// What was found longer ago than this is not known any more. Findings are looked for four times
/// per second.
const SILENT_NS: u64 = 5 * SECOND_NS;

/// From which numbers on something is a finding. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Thresholds {
    /// S01: a handler takes longer than this. A runtime's watchdog has a limit of its own, which
    /// may be shorter; what it reports is a finding in any case.
    pub stuck_ns: u64,
    /// S03: a mailbox is fuller than this part of its capacity, for so long.
    pub mailbox_full: f64,
    /// See `mailbox_full`.
    pub mailbox_for_ns: u64,
    /// S04: an actor restarts more often than this within a minute.
    pub restarts_per_minute: u32,
    /// S05: more dead letters than this per second.
    pub dead_letters_rate: f64,
    /// S06: each worker is busy for more than this part of the time, for so long.
    pub busy: f64,
    /// See `busy`.
    pub busy_for_ns: u64,
    /// S07: 99 of 100 timers are at most so many ticks late.
    pub late_ticks: u64,
    /// S11: live actors grow by more than this part per minute, for so many minutes.
    pub growth_per_minute: f64,
    /// See `growth_per_minute`.
    pub growth_minutes: u32,
    /// S11: how long such a minute is.
    pub growth_minute_ns: u64,
    /// S13: the clock of the system does not advance for so long.
    pub clock_still_ns: u64,
    /// For how long something that has happened once, such as a lost message, is a finding.
    pub keep_ns: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            stuck_ns: SECOND_NS,
            mailbox_full: 0.8,
            mailbox_for_ns: 2 * SECOND_NS,
            restarts_per_minute: 3,
            dead_letters_rate: 10.0,
            busy: 0.95,
            busy_for_ns: 2 * SECOND_NS,
            late_ticks: 10,
            growth_per_minute: 0.01,
            growth_minutes: 10,
            growth_minute_ns: 60 * SECOND_NS,
            clock_still_ns: 2 * SECOND_NS,
            keep_ns: 10 * SECOND_NS,
        }
    }
}

/// What the checks remember.
#[derive(Default)]
pub(crate) struct Memory {
    /// Since when each finding has held, by code and subject.
    since: BTreeMap<(String, String), u64>,
    /// The actors whose handlers take too long.
    pub(crate) stuck: Vec<Pid>,
    /// Since when all workers are busy, and how many tasks waited then.
    pub(crate) saturated: Option<(u64, usize)>,
    /// The last minutes: when, how many actors lived, and under which parents.
    pub(crate) minutes: Vec<Minute>,
    /// Things that have happened, and are reported for a while: by code and subject, when last, and
    /// the finding.
    happened: BTreeMap<(&'static str, String), (u64, Finding)>,
    /// When the clock of the system was seen to advance, and its time then.
    pub(crate) clock: Option<(u64, u64)>,
    /// Why not every cycle of asks is seen, if so.
    pub(crate) unseen_asks: Option<String>,
    /// Events and samples that the console had lost at the last look.
    pub(crate) lost: (u64, u64),
}

/// The actors at one time.
#[derive(Clone, Default)]
pub(crate) struct Minute {
    pub(crate) at_ns: u64,
    pub(crate) live: usize,
    pub(crate) parents: BTreeMap<String, u64>,
}

/// What a check looks at.
pub(crate) struct Check<'a> {
    pub(crate) target: &'a Target,
    pub(crate) executors: &'a [(String, Handle)],
    pub(crate) thresholds: &'a Thresholds,
    pub(crate) now_ns: u64,
}

/// Looks for all findings that hold now, and keeps them in the state, the worst first.
pub(crate) fn find(
    target: &Target,
    state: &mut State,
    executors: &[(String, Handle)],
    now_ns: u64,
) {
    let thresholds = &target.thresholds();
    let check = Check { target, executors, thresholds, now_ns };
    let mut found = Vec::new();
    actors::check(&check, state, &mut found);
    machine::check(&check, state, &mut found);
    state.memory.keep(&check, &mut found);
    state.memory.date(&mut found, now_ns);
    let rank = |finding: &Finding| ORDER.iter().position(|code| *code == finding.code);
    found.sort_by(|a, b| (rank(a), b.since_ms, &a.subject).cmp(&(rank(b), a.since_ms, &b.subject)));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    found.retain(|finding| {
        let n = counts.entry(finding.code.clone()).or_default();
        *n += 1;
        *n <= EACH_MAX
    });
    found.truncate(FINDINGS_MAX);
    let first_ns = state.looked_ns.map_or(now_ns, |(first, _)| first);
    state.looked_ns = Some((first_ns, now_ns));
    state.undecided = undecided(&check, &state.memory, &found, now_ns.saturating_sub(first_ns));
    state.findings = found;
}

/// The findings that there may be although they were not found within this time.
fn undecided(
    check: &Check<'_>,
    memory: &Memory,
    found: &[Finding],
    looked_ns: u64,
) -> Vec<Undecided> {
    let limits = check.thresholds;
    let growth_ns = limits.growth_minute_ns.saturating_mul(u64::from(limits.growth_minutes));
    let needed = [
        ("S01", limits.stuck_ns),
        ("S03", limits.mailbox_for_ns),
        ("S04", MINUTE_NS),
        ("S06", limits.busy_for_ns),
        ("S11", growth_ns),
        ("S13", limits.clock_still_ns),
    ];
    let is_open = |code: &str| found.iter().all(|one| one.code != code);
    let of_time = needed.into_iter().filter(|(code, ns)| looked_ns < *ns && is_open(code));
    let of_time = of_time.map(|(code, ns)| (code, format!("needs a look of {}", time(ns))));
    let of_asks = memory.unseen_asks.as_ref().filter(|_| is_open("S02"));
    let all = of_asks.map(|why| ("S02", why.clone())).into_iter().chain(of_time);
    let mut all: Vec<Undecided> =
        all.map(|(code, why)| Undecided { code: code.to_owned(), why }).collect();
    all.sort_by(|a, b| a.code.cmp(&b.code));
    all
}

/// What is known at this time: nothing if nobody looks.
pub(crate) fn known(state: &State, now_ns: u64) -> Findings {
    let Some((first_ns, last_ns)) = state.looked_ns else { return Findings::default() };
    let silent_ns = now_ns.saturating_sub(last_ns);
    if silent_ns > SILENT_NS {
        // The thread that looks has ended, or does not run. What it has found long ago may be
        // over, and what is wrong now it has not seen.
        let text = format!(
            "the console has not looked for {}: what is wrong now is unknown",
            time(silent_ns)
        );
        let limit = crate::state::float(SILENT_NS) / 1e9;
        let one = finding("S14", "console", text);
        let one = one.with("seconds", crate::state::float(silent_ns) / 1e9, limit);
        return Findings { rows: vec![one], ..Findings::default() };
    }
    Findings {
        looked_ms: Some(last_ns.saturating_sub(first_ns) / 1_000_000),
        rows: state.findings.clone(),
        undecided: state.undecided.clone(),
    }
}

impl Memory {
    /// Something has happened; it is reported for a while.
    pub(crate) fn happened(&mut self, code: &'static str, at_ns: u64, finding: Finding) {
        let key = (code, finding.subject.clone());
        if self.happened.len() < FINDINGS_MAX || self.happened.contains_key(&key) {
            self.happened.insert(key, (at_ns, finding));
        }
    }

    fn keep(&mut self, check: &Check<'_>, found: &mut Vec<Finding>) {
        let is_recent = |at_ns: u64| check.now_ns.saturating_sub(at_ns) < check.thresholds.keep_ns;
        self.happened.retain(|_, (at_ns, _)| is_recent(*at_ns));
        found.extend(self.happened.values().map(|(_, finding)| finding.clone()));
    }

    /// Says of each finding how long it has held, unless the check has.
    fn date(&mut self, found: &mut [Finding], now_ns: u64) {
        let mut since = BTreeMap::new();
        for finding in found {
            let key = (finding.code.clone(), finding.subject.clone());
            let first_ns = self.since.get(&key).copied().unwrap_or(now_ns);
            let first_ns = first_ns.min(now_ns.saturating_sub(finding.since_ms * 1_000_000));
            finding.since_ms = now_ns.saturating_sub(first_ns) / 1_000_000;
            since.insert(key, first_ns);
        }
        self.since = since;
    }
}

/// A finding without evidence.
pub(crate) fn finding(code: &str, subject: impl Into<String>, text: impl Into<String>) -> Finding {
    Finding {
        code: code.to_owned(),
        subject: subject.into(),
        text: text.into(),
        ..Finding::default()
    }
}

impl Finding {
    /// Adds a number, and the number from which on it is a finding.
    pub(crate) fn with(
        mut self,
        name: &str,
        value: impl Into<Number>,
        threshold: impl Into<Number>,
    ) -> Self {
        let (value, threshold) = (value.into(), threshold.into());
        self.evidence.push(Evidence { name: name.to_owned(), value, threshold });
        self
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self::exact(value)
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self::count(value)
    }
}

impl From<usize> for Number {
    fn from(value: usize) -> Self {
        Self::size(value)
    }
}

/// A time for people: `3.2 s`, `250 ms`.
pub(crate) fn time(nanos: u64) -> String {
    if nanos >= SECOND_NS {
        format!("{:.1} s", crate::state::float(nanos) / 1e9)
    } else {
        format!("{} ms", nanos / 1_000_000)
    }
}
