//! Threads of lanes: which lanes get one, what they request from the operating system, and which
//! requests were granted.
//!
//! Nothing here starts a thread. The host of the system does so, if it can, and applies the thread
//! policy on the thread itself, before anything runs there. A thread ends with its run.
//!
//! | lane | gets a thread |
//! |---|---|
//! | `isolated_thread` | always |
//! | `fixed_rate` by the wall clock | unless the run is in simulated time |
//! | any other | never: it shares the workers of the system |
//!
//! In simulated time nothing is requested from the operating system: the result does not depend on
//! it, and a graph that requires a real-time class can be simulated on a host without one.

use clockjack_actor::{
    ActorSystem,
    system::{OwnThread, PolicyAnswer, PolicyAnswers, RealtimeClass, ThreadPolicy},
};
use clockjack_exec::Handle;

use super::options::{Clock, RunOptions};
use crate::{
    compile::{
        Plan, PlanLane,
        capability::{self, OsRequest, Requirement},
    },
    describe::{LaneSpec, LaneType, OnPolicyError},
    diagnostic::{Code, Diagnostic},
    run::{engine::domain::Pace, observe::report::RunError},
};

const SIMULATED: &str = "the run is in simulated time";

const NO_COSTS: &str =
    "the run is in simulated time without a model of how long calls take, so no tick is late";

/// Which settings of a lane are in force: every given field is in one of the two lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneReport {
    /// Its id.
    pub lane: String,
    /// Whether it has a thread of its own.
    pub has_thread: bool,
    /// The fields that were given and are in force.
    pub enforced: Vec<&'static str>,
    /// The fields that were given and are not.
    pub advisory: Vec<LaneAdvice>,
}

/// A field that is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneAdvice {
    /// Its name.
    pub field: &'static str,
    /// Why.
    pub why: String,
}

/// The threads of a run's lanes. They end when this is dropped.
pub(crate) struct LaneThreads {
    /// By lane.
    threads: Vec<Option<OwnThread>>,
    pub(crate) reports: Vec<LaneReport>,
}

/// What a lane got in a run.
struct LaneGrant<'a> {
    /// It follows the clock of the system.
    keeps_wall_clock: bool,
    /// Time passes while it calls its components.
    calls_take_time: bool,
    /// The answers to its requests, or the reason why it made none.
    answers: Result<&'a PolicyAnswers, &'a str>,
    has_thread: bool,
}

impl LaneThreads {
    /// Starts the threads of a run's lanes.
    ///
    /// # Errors
    ///
    /// A lane requires a policy that the host does not grant.
    pub(crate) fn make(
        plan: &Plan,
        system: &ActorSystem,
        options: &RunOptions,
    ) -> Result<Self, RunError> {
        let mut made = Self {
            threads: Vec::with_capacity(plan.lanes.len()),
            reports: Vec::with_capacity(plan.lanes.len()),
        };
        for lane in &plan.lanes {
            let (thread, report) = make(lane, system, options)?;
            made.threads.push(thread);
            made.reports.push(report);
        }
        Ok(made)
    }

    /// The executor of a lane's thread, if it has one.
    pub(crate) fn executor(&self, lane: usize) -> Option<&Handle> {
        self.threads[lane].as_ref().map(OwnThread::executor)
    }

    /// The executors of isolated lanes: these run on their own threads, but belong to the first
    /// domain.
    pub(crate) fn isolated(&self, plan: &Plan) -> Vec<Option<Handle>> {
        let is_isolated = |lane: &PlanLane| lane.spec.lane_type == LaneType::IsolatedThread;
        let executor = |lane: usize| self.executor(lane).cloned();
        let lanes = plan.lanes.iter().enumerate();
        lanes.map(|(at, lane)| if is_isolated(lane) { executor(at) } else { None }).collect()
    }
}

fn make(
    lane: &PlanLane,
    system: &ActorSystem,
    options: &RunOptions,
) -> Result<(Option<OwnThread>, LaneReport), RunError> {
    let spec = &lane.spec;
    let (is_simulated, insists) =
        (options.clock == Clock::Virtual, spec.on_policy_error == OnPolicyError::Fail);
    let has_own_clock = capability::has_own_epoch_domain(spec);
    let keeps_wall_clock = has_own_clock && !is_simulated;
    let calls_take_time = options.call_cost.is_some()
        || super::start::pace(usize::from(has_own_clock), options) == Pace::System;
    let needs_thread = spec.lane_type == LaneType::IsolatedThread || keeps_wall_clock;
    if !needs_thread || lane.regions.is_empty() {
        let why = match () {
            () if is_simulated => SIMULATED,
            () if lane.regions.is_empty() => "the lane has no components",
            () => "the lane has no thread of its own",
        };
        let answers = Err(why);
        let grant = LaneGrant { keeps_wall_clock, calls_take_time, answers, has_thread: false };
        return Ok((None, report(spec, &grant)));
    }
    let thread_policy = if is_simulated { ThreadPolicy::default() } else { thread_policy(spec) };
    match system.own_thread(name(spec), &thread_policy) {
        Ok(thread) => {
            let answers = if is_simulated { Err(SIMULATED) } else { Ok(thread.answers()) };
            let grant = LaneGrant { keeps_wall_clock, calls_take_time, answers, has_thread: true };
            let report = report(spec, &grant);
            if insists
                && let Some(LaneAdvice { field, why }) = first_not_granted(spec, &report)
                && !is_simulated
            {
                let text = format!("lane `{}` requires `{field}`: {why}", spec.id);
                return Err(RunError::refused(text));
            }
            Ok((Some(thread), report))
        }
        Err(error) if insists => {
            let text = format!("lane `{}` has no thread of its own: {error}", spec.id);
            Err(RunError::refused(text))
        }
        Err(error) => {
            let why = format!("the lane has no thread of its own here: {error}");
            let answers = Err(why.as_str());
            let grant = LaneGrant { keeps_wall_clock, calls_take_time, answers, has_thread: false };
            Ok((None, report(spec, &grant)))
        }
    }
}

/// The first field that was requested from the operating system and is not in force.
fn first_not_granted<'r>(spec: &LaneSpec, report: &'r LaneReport) -> Option<&'r LaneAdvice> {
    let is_asked = |field: &str| {
        capability::effective(spec)
            .any(|(name, needs)| name == field && matches!(needs, Requirement::Os(_)))
    };
    report.advisory.iter().find(|advice| is_asked(advice.field))
}

fn name(spec: &LaneSpec) -> &str {
    spec.thread_name.as_ref().unwrap_or(&spec.id)
}

/// The thread policy that a lane requests.
fn thread_policy(spec: &LaneSpec) -> ThreadPolicy {
    // The ranges are checked by the compiler.
    let small = |n: i64| i32::try_from(n).unwrap_or(i32::MAX);
    let class = match spec.rt_policy.as_str() {
        "fifo" => Some(RealtimeClass::Fifo),
        "rr" => Some(RealtimeClass::RoundRobin),
        _ => None,
    };
    ThreadPolicy {
        cpus: spec.cpu_affinity.clone(),
        niceness: (spec.nice_priority != 0).then(|| small(spec.nice_priority)),
        realtime: class.map(|class| (class, small(spec.rt_priority))),
    }
}

fn report(spec: &LaneSpec, grant: &LaneGrant<'_>) -> LaneReport {
    let mut report =
        LaneReport { lane: spec.id.clone(), has_thread: grant.has_thread, ..LaneReport::default() };
    for (field, why) in capability::advice(spec) {
        report.advisory.push(LaneAdvice { field, why: why.into() });
    }
    for (field, needs) in capability::effective(spec) {
        match grant.why_not(needs) {
            None => report.enforced.push(field),
            Some(why) => report.advisory.push(LaneAdvice { field, why }),
        }
    }
    report
}

impl LaneGrant<'_> {
    fn why_not(&self, needs: Requirement) -> Option<String> {
        let without = || self.answers.err().unwrap_or(SIMULATED).to_string();
        match needs {
            Requirement::Nothing => None,
            Requirement::WallClock => (!self.keeps_wall_clock).then(|| SIMULATED.into()),
            Requirement::CallsTakeTime => (!self.calls_take_time).then(|| NO_COSTS.into()),
            Requirement::Thread => (!self.has_thread).then(without),
            Requirement::Os(wish) => match self.answers {
                Ok(answers) => not_granted(answer_of(answers, wish)),
                Err(why) => Some(why.into()),
            },
        }
    }
}

fn answer_of(answers: &PolicyAnswers, wish: OsRequest) -> &PolicyAnswer {
    match wish {
        OsRequest::Cpus => &answers.cpus,
        OsRequest::Niceness => &answers.niceness,
        OsRequest::Realtime => &answers.realtime,
    }
}

fn not_granted(answer: &PolicyAnswer) -> Option<String> {
    match answer {
        PolicyAnswer::Applied => None,
        PolicyAnswer::NotAsked => Some("it was not requested".into()),
        PolicyAnswer::Unsupported => Some("this host does not support it".into()),
        PolicyAnswer::Refused(says) => Some(format!("the operating system refused it: {says}")),
    }
}

impl Plan {
    /// Whether the settings of lanes depend on the host.
    #[must_use]
    pub fn asks_of_the_host(&self) -> bool {
        let is_asked = |(_, needs): (_, Requirement)| matches!(needs, Requirement::Os(_));
        self.lanes.iter().any(|lane| capability::effective(&lane.spec).any(is_asked))
    }

    /// Finds out which settings a host would grant, by starting and stopping a thread per lane.
    /// What the host does not grant becomes advisory, and is reported in the diagnostics.
    pub fn try_on(&mut self, system: &ActorSystem) {
        let options = RunOptions::until_stopped().clock(Clock::Wall);
        for lane in &mut self.lanes {
            let warned = LaneSpec { on_policy_error: OnPolicyError::Warn, ..lane.spec.clone() };
            let tried = PlanLane { spec: warned, ..lane.clone() };
            // A lane that requires nothing is never refused.
            let Ok((_, report)) = make(&tried, system, &options) else { continue };
            for (field, _) in capability::effective(&lane.spec) {
                let advice = report.advisory.iter().find(|advice| advice.field == field);
                let Some(LaneAdvice { why, .. }) = advice else { continue };
                lane.capabilities.implemented.retain(|one| one != field);
                lane.capabilities.advisory_fields.push(field.into());
                let path = format!("lanes.{}.{field}", lane.spec.id);
                let text = format!("`{field}` has no effect here: {why}");
                let found = Diagnostic::new(Code::AdvisoryLaneFieldIgnored, path, text);
                self.diagnostics.push(found.at(lane.spec.spans.get(field)));
            }
        }
    }
}
