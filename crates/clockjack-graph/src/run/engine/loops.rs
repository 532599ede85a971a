//! A composite loop: its members are called repeatedly within one epoch, until nothing changes or a
//! bound is reached. No other region sees anything before the loop has ended.
//!
//! Publications between members become visible as the mode says: at once (`gauss_seidel`), or after
//! the iteration (`jacobi`). Immediate publications to other regions are held until the loop ends,
//! and then committed or discarded. Those of other kinds wait for the next epoch as everywhere; a
//! loop that discards its outputs discards those of this epoch too. An iteration in which no member
//! was ready is not counted, and ends the loop. The members of a `jacobi` loop on a pool of several
//! threads may run at the same time ([`members`](super::members)).
//!
//! The loop types add to this:
//!
//! * `fixed_point` ends when an iteration has published the same values as the previous one.
//! * `solver_iteration` may discard its outputs if it has not converged.
//! * `transaction` is all or nothing: when a member fails, nothing that any member has published or
//!   written in this epoch becomes visible outside the loop, the commit log has none of it, and
//!   each member that provides snapshots gets its previous state back ([`Rollback`]).
//! * `coalesced_event` calls a member once for all messages, with the newest of each input: its
//!   triggers are built that way when the graph is wired.
//! * `async_task` makes one iteration per epoch and continues in the next; its immediate outputs
//!   are held until it ends.

use std::sync::Arc;

use super::{
    context::{ConvergenceReport, LoopIteration},
    env::Env,
    members::ConcurrentMembers,
    node::{Route, Target},
    region::{Deferred, Downstream, Region},
};
use crate::{
    component::Snapshot,
    describe::{Convergence, EdgeKind, LoopMode, LoopSpec, LoopType, PartialSuccess},
    run::{
        flow::{message::Message, outbox::Mark},
        observe::{
            commit_log,
            report::{Fault, RunPhase},
            trace::TraceName,
        },
        setup::wiring,
    },
};

/// The state of a loop.
pub(crate) struct LoopState {
    pub(crate) id: Arc<str>,
    spec: LoopSpec,
    /// Publications to other regions, until the loop ends.
    held: Vec<(Route, Message)>,
    report: ConvergenceReport,
    has_report: bool,
    /// A hash of what the members published in this iteration.
    digest: u64,
    /// The hash of the previous iteration.
    digest_before: Option<u64>,
    /// The next iteration of an `async_task` that continues.
    next_index: u32,
    scratch: Vec<u8>,
    /// How its members run at the same time; `None` if they run one after the other.
    members: Option<Box<ConcurrentMembers>>,
    pub(crate) counts: LoopCounts,
}

/// `runtime.loop.*` of a loop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoopCounts {
    pub(crate) iterations: u64,
    pub(crate) converged: u64,
    pub(crate) budget_overrun: u64,
    pub(crate) max_iterations_hit: u64,
    pub(crate) error: u64,
    pub(crate) cancel_requested: u64,
    pub(crate) output_discarded: u64,
    pub(crate) residual: Option<f64>,
    pub(crate) reason: &'static str,
}

/// How the iterations of an epoch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopEnding {
    Converged,
    Cancelled,
    Budget,
    Bound,
    /// No member was ready, after at least one iteration.
    Exhausted,
    /// A member of a transaction has failed.
    Failed,
    /// It continues in the next epoch.
    Unfinished,
}

impl LoopState {
    /// `n_at_once`: how many members the lane and the workers allow to run at the same time;
    /// `None` if the lane calls one after the other.
    pub(crate) fn new(spec: &LoopSpec, n_members: usize, n_at_once: Option<usize>) -> Self {
        // A transaction ends with the first failure, before the members after it are called.
        let is_concurrent =
            spec.mode == LoopMode::Jacobi && spec.loop_type != LoopType::Transaction;
        let members = n_at_once.filter(|_| is_concurrent && n_members > 1).map(|n_at_once| {
            let members = ConcurrentMembers::new(n_members, n_at_once);
            Box::new(members)
        });
        Self {
            members,
            id: spec.id.as_str().into(),
            spec: spec.clone(),
            held: Vec::new(),
            report: ConvergenceReport::default(),
            has_report: false,
            digest: 0,
            digest_before: None,
            next_index: 0,
            scratch: Vec::new(),
            counts: LoopCounts::default(),
        }
    }

    /// Combines the report of a member with those of this iteration.
    pub(crate) fn take_report(&mut self, report: ConvergenceReport) {
        self.has_report = true;
        self.report.converged |= report.converged;
        self.report.residual = report.residual.or(self.report.residual);
        self.report.reason = report.reason;
    }

    /// Holds a publication back until the loop has ended.
    pub(crate) fn hold(&mut self, route: Route, message: Message) {
        self.held.push((route, message));
    }

    /// How many publications on an edge are held: each already occupies room in the channel.
    pub(crate) fn n_held(&self, edge: u32) -> u32 {
        wiring::count(self.held.iter().filter(|(route, _)| route.edge == edge).count())
    }

    /// How many publications for other regions are held.
    pub(crate) fn n_held_all(&self) -> u64 {
        self.held.len() as u64
    }

    fn is_transaction(&self) -> bool {
        self.spec.loop_type == LoopType::Transaction
    }

    /// Whether it makes one iteration per epoch.
    pub(crate) fn is_one_per_epoch(&self) -> bool {
        self.spec.loop_type == LoopType::AsyncTask
    }

    /// Whether equal iterations end the loop.
    fn stops_when_stable(&self) -> bool {
        self.spec.loop_type == LoopType::FixedPoint
            || self.spec.convergence == Some(Convergence::StableState)
    }

    /// Whether the iteration that has just ended was the last one, and why.
    fn has_converged(&self, index: u32) -> Option<&'static str> {
        match self.spec.convergence {
            Some(Convergence::SinglePass) => return Some("single_pass"),
            Some(Convergence::AfterFirstIteration) => return Some("after_first_iteration"),
            Some(Convergence::Always) => return Some("always"),
            _ => {}
        }
        if self.has_report && self.report.converged {
            let reason = self.report.reason;
            return Some(if reason.is_empty() { "reported" } else { reason });
        }
        if let (Some(threshold), Some(residual)) =
            (self.spec.residual_threshold, self.report.residual)
            && residual <= threshold
        {
            return Some("residual");
        }
        let is_stable = self.stops_when_stable() && self.digest_before == Some(self.digest);
        (index > 0 && is_stable).then_some("stable")
    }

    fn partial_success(&self) -> PartialSuccess {
        match (self.spec.loop_type, self.spec.partial_success) {
            (LoopType::SolverIteration, None) => PartialSuccess::DiscardOutputs,
            (LoopType::SolverIteration, Some(chosen)) => chosen,
            _ => PartialSuccess::CommitOutputs,
        }
    }
}

/// One epoch of a loop.
///
/// # Errors
///
/// A fault that ends the run: of a member, or of a loop that must converge and did not.
pub(crate) fn step(
    region: &mut Region,
    env: &Env,
    downstream: &mut impl Downstream,
) -> Result<u32, Fault> {
    let deferred_before = region.deferred.len();
    let is_under_way = region.is_under_way();
    let state = region.looping.as_ref().expect("only loops get here");
    let mut rollback = None;
    if state.is_transaction() {
        if !region.might_be_ready(env) {
            return Ok(0);
        }
        rollback = Some(Rollback::new(region));
    }
    match iterate(region, env, downstream) {
        Ok((n_called, LoopEnding::Unfinished)) => Ok(n_called),
        Ok((0, _)) if !is_under_way => Ok(0),
        Ok((n_called, LoopEnding::Failed)) => {
            fail(region, env, deferred_before);
            if let Some(rollback) = rollback {
                rollback.restore(region, env);
            }
            Ok(n_called)
        }
        Ok((n_called, ending)) => {
            end(region, env, downstream, ending, deferred_before)?;
            Ok(n_called)
        }
        Err(fault) => {
            fail(region, env, deferred_before);
            if let Some(rollback) = rollback {
                rollback.restore(region, env);
            }
            Err(fault)
        }
    }
}

/// Discards what the loop has published for other regions.
fn fail(region: &mut Region, env: &Env, deferred_before: usize) {
    let state = region.looping.as_mut().expect("only loops get here");
    state.counts.error += 1;
    state.counts.reason = "error";
    state.next_index = 0;
    let n_held = state.held.len() as u64;
    state.held.clear();
    let n_deferred = region.deferred.len().saturating_sub(deferred_before) as u64;
    region.n_published.async_discarded += n_async(&region.deferred[deferred_before..]);
    region.deferred.truncate(deferred_before);
    region.note_loop(env, TraceName::LoopError, 0);
    let state = region.looping.as_mut().expect("it is a loop");
    state.counts.output_discarded += n_held + n_deferred;
    region.n_published.composite_discarded += n_held + n_deferred;
}

/// The state of the members before a transaction.
struct Rollback {
    members: Vec<(Option<Snapshot>, Vec<Message>)>,
    n_writes: usize,
    log_length: usize,
}

impl Rollback {
    fn new(region: &mut Region) -> Self {
        let n_writes = region.writes.len();
        let members = region.nodes.iter_mut().map(|node| {
            // A member that cannot provide a snapshot keeps the state that it has afterwards.
            let snapshot = node.with_body(|node| node.snapshot()).ok().flatten();
            (snapshot, node.last.iter().map(Message::duplicate).collect())
        });
        Self { members: members.collect(), n_writes, log_length: region.log.len() }
    }

    /// Restores the members, and drops their messages to each other, also from the commit log.
    fn restore(self, region: &mut Region, env: &Env) {
        region.writes.truncate(self.n_writes);
        region.log.truncate(self.log_length);
        region.is_repeatable = false;
        for (at, (snapshot, last)) in self.members.into_iter().enumerate() {
            let node = &mut region.nodes[at];
            node.counts.discarded += node.outbox.discard_after(Mark::START) as u64;
            node.last = last;
            if let Some(snapshot) = snapshot
                && let Err(failure) = node.with_body(|node| node.restore(&snapshot))
            {
                let text = format!("{failure}");
                let fault = node.fault(RunPhase::Restore, text, env.epoch, false);
                region.faults.push(fault);
                env.note_fault();
            }
            for index in 0..region.nodes[at].routes.len() {
                if let Target::SameRegion(channel) = region.nodes[at].routes[index].to {
                    while region.channels[channel as usize].pop(env.now_ns).is_some() {
                        region.n_published.composite_discarded += 1;
                    }
                }
            }
        }
    }
}

fn iterate(
    region: &mut Region,
    env: &Env,
    downstream: &mut impl Downstream,
) -> Result<(u32, LoopEnding), Fault> {
    let state = region.looping.as_ref().expect("only loops get here");
    let max = state.spec.max_iterations.max(1);
    // In simulated time an epoch takes no time: the speed of the host must not change a result.
    let is_timed = !env.is_simulated;
    let budget_ns = if is_timed { state.spec.budget_ms.saturating_mul(1_000_000) } else { 0 };
    let begun_ns = if budget_ns > 0 { env.nanos() } else { 0 };
    let (first, is_one_per_epoch) = (state.next_index, state.is_one_per_epoch());
    if first == 0 {
        region.looping.as_mut().expect("it is a loop").digest_before = None;
    }
    let mut n_called = 0;
    for index in first..max {
        if index > 0 && env.is_stopping() {
            return Ok((n_called, LoopEnding::Cancelled));
        }
        let state = region.looping.as_mut().expect("it is a loop");
        state.report = ConvergenceReport::default();
        state.has_report = false;
        state.digest = FNV_OFFSET;
        let first = region.nodes[0].component;
        let span = region.recorder.open(env, downstream.clock(), TraceName::LoopIteration, first);
        let in_this = run_members(region, env, downstream, LoopIteration { index, max });
        region.recorder.close(env, span, index.into());
        let Some(in_this) = in_this? else { return Ok((n_called.max(1), LoopEnding::Failed)) };
        if in_this == 0 {
            region.recorder.forget(span);
            return Ok((n_called, LoopEnding::Exhausted));
        }
        n_called += in_this;
        let state = region.looping.as_mut().expect("it is a loop");
        state.counts.iterations += 1;
        if let Some(reason) = state.has_converged(index) {
            state.counts.reason = reason;
            return Ok((n_called, LoopEnding::Converged));
        }
        state.digest_before = Some(state.digest);
        if budget_ns > 0 && env.nanos().saturating_sub(begun_ns) >= budget_ns {
            if env.logs {
                // A decision of the clock, which a replay could not reproduce.
                commit_log::budget(&mut region.log, region.nodes[0].component, index + 1);
            }
            return Ok((n_called, LoopEnding::Budget));
        }
        if is_one_per_epoch && index + 1 < max {
            region.looping.as_mut().expect("it is a loop").next_index = index + 1;
            return Ok((n_called, LoopEnding::Unfinished));
        }
    }
    Ok((n_called, LoopEnding::Bound))
}

/// One iteration; returns the number of calls, or `None` if a member of a transaction has failed.
fn run_members(
    region: &mut Region,
    env: &Env,
    downstream: &mut impl Downstream,
    iteration: LoopIteration,
) -> Result<Option<u32>, Fault> {
    let state = region.looping.as_ref().expect("only loops get here");
    let (mode, is_transaction) = (state.spec.mode, state.is_transaction());
    let state = region.looping.as_mut().expect("it is a loop");
    if let Some(mut members) = state.members.take() {
        let called = members.call(region, env, downstream, iteration);
        region.looping.as_mut().expect("it is a loop").members = Some(members);
        let n_called = called?;
        commit_all(region, env, downstream);
        return Ok(Some(n_called));
    }
    let mut n_called = 0;
    for at in 0..region.nodes.len() {
        let n_errors = region.nodes[at].counts.errors;
        let called = region.step_node(at, env, downstream, Some(iteration))?;
        n_called += called;
        if is_transaction && region.nodes[at].counts.errors > n_errors {
            return Ok(None);
        }
        if called > 0 && mode == LoopMode::GaussSeidel {
            digest(region, at);
            region.commit(at, env, downstream);
        }
    }
    if mode == LoopMode::Jacobi {
        commit_all(region, env, downstream);
    }
    Ok(Some(n_called))
}

/// Commits what all members have published in a Jacobi iteration.
fn commit_all(region: &mut Region, env: &Env, downstream: &mut impl Downstream) {
    for at in 0..region.nodes.len() {
        digest(region, at);
        region.commit(at, env, downstream);
    }
}

/// Adds what a member is about to publish to the digest of the iteration.
fn digest(region: &mut Region, at: usize) {
    let state = region.looping.as_mut().expect("only loops get here");
    if !state.stops_when_stable() {
        return;
    }
    for staged in region.nodes[at].outbox.staged.as_slice() {
        state.scratch.clear();
        state.scratch.extend_from_slice(&(at as u64).to_le_bytes());
        state.scratch.extend_from_slice(&staged.port.to_le_bytes());
        staged.message.value.encode(&mut state.scratch);
        state.digest = fnv(state.digest, &state.scratch);
    }
}

fn end(
    region: &mut Region,
    env: &Env,
    downstream: &mut impl Downstream,
    ending: LoopEnding,
    deferred_before: usize,
) -> Result<(), Fault> {
    region.record_ending(env, ending);
    let state = region.looping.as_mut().expect("only loops get here");
    state.counts.residual = state.report.residual.or(state.counts.residual);
    match ending {
        LoopEnding::Converged => state.counts.converged += 1,
        LoopEnding::Cancelled => {
            state.counts.cancel_requested += 1;
            state.counts.reason = "cancelled";
        }
        LoopEnding::Budget => {
            state.counts.budget_overrun += 1;
            state.counts.reason = "budget_overrun";
        }
        LoopEnding::Bound => {
            state.counts.max_iterations_hit += 1;
            state.counts.reason = "max_iterations";
        }
        LoopEnding::Exhausted => state.counts.reason = "exhausted",
        LoopEnding::Failed | LoopEnding::Unfinished => unreachable!("they return earlier"),
    }
    state.next_index = 0;
    let is_success = matches!(ending, LoopEnding::Converged | LoopEnding::Exhausted);
    let partial = if is_success { PartialSuccess::CommitOutputs } else { state.partial_success() };
    let mut held = core::mem::take(&mut state.held);
    match partial {
        PartialSuccess::CommitOutputs => {
            for (route, message) in held.drain(..) {
                region.is_repeatable = false;
                region.make_visible(route, message, env, downstream);
            }
        }
        PartialSuccess::DiscardOutputs => {
            let n_held = held.len() as u64;
            held.clear();
            // What members publish for each other in the next epoch stays.
            let n_before = region.deferred.len();
            let n_async_before = n_async(&region.deferred);
            let mut index = 0;
            region.deferred.retain(|one| {
                index += 1;
                index <= deferred_before || matches!(one.to, Target::SameRegion(_))
            });
            region.n_published.async_discarded += n_async_before - n_async(&region.deferred);
            let n_deferred = (n_before - region.deferred.len()) as u64;
            region.n_published.composite_discarded += n_held + n_deferred;
            region.note_loop(env, TraceName::LoopOutputDiscarded, n_held + n_deferred);
            let state = region.looping.as_mut().expect("it is a loop");
            state.counts.output_discarded += n_held + n_deferred;
        }
        PartialSuccess::FailRun => {
            region.n_published.composite_discarded += held.len() as u64;
            let first = &region.nodes[0];
            let text = format!("the loop did not converge: {}", {
                region.looping.as_ref().map_or("", |state| state.counts.reason)
            });
            let mut fault = first.fault(RunPhase::Execute, text, env.epoch, true);
            fault.component = (*region.looping.as_ref().expect("it is a loop").id).into();
            return Err(fault);
        }
    }
    region.looping.as_mut().expect("it is a loop").held = held;
    Ok(())
}

/// How many of these are on `async` edges.
fn n_async(deferred: &[Deferred]) -> u64 {
    deferred.iter().filter(|one| one.kind == EdgeKind::Async).count() as u64
}

impl Region {
    /// Whether it is a loop that continues in the next epoch.
    pub(crate) fn is_under_way(&self) -> bool {
        self.looping.as_ref().is_some_and(|state| state.next_index > 0)
    }

    /// A trace record of the loop, which has the name of its first member.
    #[cold]
    fn note_loop(&mut self, env: &Env, name: TraceName, value: u64) {
        self.recorder.note(env, name, self.nodes[0].component, value);
    }

    fn record_ending(&mut self, env: &Env, ending: LoopEnding) {
        match ending {
            _ if !env.traces => {}
            LoopEnding::Converged => self.note_loop(env, TraceName::LoopConverged, 0),
            LoopEnding::Cancelled => {
                self.note_loop(env, TraceName::LoopCancellationRequested, 0);
                self.note_loop(env, TraceName::LoopCancellationObserved, 0);
            }
            LoopEnding::Budget => self.note_loop(env, TraceName::LoopBudgetOverrun, 0),
            LoopEnding::Bound => self.note_loop(env, TraceName::LoopMaxIterationsHit, 0),
            LoopEnding::Exhausted | LoopEnding::Failed | LoopEnding::Unfinished => {}
        }
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits.
fn fnv(mut hash: u64, bytes: &[u8]) -> u64 {
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}
