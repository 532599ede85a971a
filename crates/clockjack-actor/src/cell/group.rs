//! Several children that restart or stop together, because one of them has failed; and the order in
//! which new children start.
//!
//! The rules are those of OTP's `supervisor`. A *group* consists of the children in the scope of a
//! decision. The parent ends the incarnations of the members one after another, the youngest first,
//! and waits for each. When all have ended, it starts the members one after another, the oldest
//! first, and waits for each. So a child never runs next to an older incarnation of a child that
//! was started before it, and finds what it depends on started.
//!
//! # Protocol
//!
//! The parent's entry of each member says how far the member is ([`ChildPhase`]). Only the parent's
//! runner changes it, except for the order of first starts (below). The parent acts when a report
//! arrives, in [`advance_group`](CellVTable), by the first of these rules that applies:
//!
//! 1. It waits for the member that it has ordered to end, at most for the stop timeout of the
//!    system. A member that takes longer is published as a straggler, and the next one is ordered
//!    to end.
//! 2. It tells the youngest member in `ToRestart` to end its incarnation (RESTART with
//!    [`RestartPart::End`]), or the youngest in `ToStop` to stop (STOP).
//! 3. It waits for stragglers: nobody starts before all have ended.
//! 4. It waits for the member that it has ordered to start.
//! 5. It tells the oldest member in `Down` to start (RESTART with [`RestartPart::Start`]). The
//!    first one waits for the delay of the decision before.
//! 6. The group is done.
//!
//! A member that has ended its incarnation, and whose children have stopped, reports `is_down` and
//! waits ([`Hold`]). A member that has started reports `restarted_nanos`. A member that stops for
//! any reason is on the list of stopped children. So each wait of the parent ends by a report,
//! except if user code does not return, or a descendant does not stop.
//!
//! # What happens in between
//!
//! * A member that has not been ordered to start may fail: its failure is reported and changes
//!   nothing, because the member ends anyway.
//! * The start of a member fails: the strategy decides about this member alone. A restart is
//!   another attempt of the same member; those that have started are left alone, and those after it
//!   wait. (OTP does the same under rest-for-one; under one-for-all it ends the others again.)
//! * Any other child fails, or a member that has started: the children in the scope of that
//!   decision join the group, and rule 2 applies again. A member that was ordered to start is
//!   ordered to end; it reports, whatever it has done in between, because a later command
//!   overwrites an earlier one.
//! * The parent stops, or restarts without keeping its children: it dissolves the group and stops
//!   all children.
//!
//! # First starts
//!
//! The children of a supervisor make their first attempt to start in the order in which they were
//! spawned. A new child whose elder sibling has not made its attempt marks its entry `AwaitsTurn`
//! and parks. The sibling, after its attempt, or when it stops without one, finds the mark and
//! wakes the child. Both do so under the lock of the table, so one of them sees the other: either
//! the child finds that the attempt was made, or the sibling finds the mark.
//!
//! * A child that stops without an attempt, before its turn, is `Withdrawn`, and moved out of the
//!   way to the oldest end: those after it wait for the sibling before it.
//! * A child that has started while another thread was creating the sibling before it is marked
//!   `PassedOver`: those after it wait for that sibling, which finds them behind the mark.
//! * A child that has made its attempt waits for nobody, even if the attempt has failed and the
//!   child makes another one: its entry cannot be marked any more.
//! * A child that joins a group before its first attempt makes none until the group starts it.

use core::time::Duration;

use super::{
    AnyPoll, CellVTable,
    children::{ChildPhase, Children, Direction, Search, Start, read_all, read_some, search},
};
use crate::{
    Scope,
    cell::header::{AnyActor, FAILED, RESTART, STOP, SystemSend},
    mailbox::system_queue::{RestartOptions, RestartPart, SupervisionCommand},
    strategy::StrategyState,
};

/// What a parent does with several children together; see the [module](self).
pub(crate) struct Group {
    /// How the members restart.
    options: RestartOptions,
    /// The delay before the first start.
    delay: Option<Duration>,
    /// The member that was ordered to start.
    starting: Option<AnyActor>,
}

/// Whether a restart waits for the group, on the side of the child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It does not.
    #[default]
    Free,
    /// It waits, and reports when the incarnation has ended.
    Held,
    /// It waits, and has reported.
    Reported,
}

impl Hold {
    pub(super) fn of(part: RestartPart) -> Self {
        if part == RestartPart::End { Self::Held } else { Self::Free }
    }
}

impl dyn CellVTable + '_ {
    /// The children in the scope of a decision restart, or stop, together.
    pub(super) fn act_on_group(
        &mut self,
        poll: &AnyPoll<'_>,
        (scope, failed): (Scope, &AnyActor),
        restart: Option<RestartOptions>,
    ) {
        let oldest = (scope == Scope::RestForOne).then_some(failed);
        join_group(poll, oldest, restart.is_none());
        let rare = self.rare_or_new();
        let group = rare.group.get_or_insert(Group {
            options: RestartOptions::DEFAULT,
            delay: None,
            starting: None,
        });
        if let Some(options) = restart {
            group.options = options;
            group.delay = options.delay;
        }
        let phase_of = |child: &AnyActor| with_children(poll, |children| children.phase_of(child));
        // The next decision about those that have joined is that of the group.
        group.starting.take_if(|child| phase_of(child).flatten() != Some(ChildPhase::Starting));
        rare.suspended
            .retain(|_, child| !phase_of(child).flatten().is_some_and(ChildPhase::ends_with_group));
        let is_told = |child: &mut AnyActor| {
            let phase = phase_of(child).flatten();
            matches!(phase, Some(ChildPhase::Ending | ChildPhase::Stopping))
        };
        rare.stopping_child.take_if(|child| !is_told(child));
        self.advance_group(poll);
    }

    /// Takes the next step of the group, unless it waits for a child.
    fn advance_group(&mut self, poll: &AnyPoll<'_>) {
        let Some(rare) = self.rare_mut() else { return };
        let (Some(group), None) = (&mut rare.group, &rare.stopping_child) else { return };
        let options = RestartOptions { delay: None, part: RestartPart::End, ..group.options };
        if let Some((child, stops)) = search_children(poll, Children::next_to_end) {
            child.clear_flags(FAILED);
            if stops {
                child.wake_with(STOP);
            } else {
                child.wake_with_command(RESTART, SupervisionCommand::Restart(options));
            }
            self.wait_for_stop(poll, child);
            return;
        }
        let waits = with_children(poll, |children| children.has_ending()).unwrap_or(false);
        if waits || group.starting.is_some() {
            return;
        }
        if let Some(child) = search_children(poll, Children::next_to_start) {
            group.starting = Some(child.clone());
            let delay = group.delay.take();
            self.all_have_stopped();
            let part = RestartPart::Start;
            self.restart_child(poll, &child, RestartOptions { delay, part, ..options });
            return;
        }
        rare.group = None;
        self.all_have_stopped();
    }

    /// The wait for a child that was ordered to stop, or to end its incarnation, is over.
    pub(super) fn after_stop(&mut self, poll: &AnyPoll<'_>) {
        let rare = self.rare_or_new();
        rare.stopping_child = None;
        if rare.group.is_some() {
            self.advance_group(poll);
        } else {
            self.stop_next_child(poll);
        }
    }

    /// A child reports that its incarnation has ended, and waits.
    pub(super) fn member_is_down(&mut self, poll: &AnyPoll<'_>, child: &AnyActor) {
        let (from, to) = (ChildPhase::Ending, ChildPhase::Down);
        let is_awaited = with_children(poll, |children| children.change_phase(child, from, to));
        if is_awaited != Some(true) {
            return;
        }
        let rare = self.rare_or_new();
        rare.stopping_child.take_if(|one| one.ptr_eq(child));
        self.advance_group(poll);
    }

    /// A child reports that it has started.
    pub(super) fn member_has_started(&mut self, poll: &AnyPoll<'_>, child: &AnyActor) {
        let (from, to) = (ChildPhase::Starting, ChildPhase::Single);
        let is_awaited = with_children(poll, |children| children.change_phase(child, from, to));
        if is_awaited == Some(true) {
            self.member_has_gone(poll, child);
        }
    }

    /// The group no longer waits for this child.
    pub(super) fn member_has_gone(&mut self, poll: &AnyPoll<'_>, child: &AnyActor) {
        let Some(group) = self.rare_mut().and_then(|rare| rare.group.as_mut()) else { return };
        group.starting.take_if(|one| one.ptr_eq(child));
        self.advance_group(poll);
    }

    /// All children stop, so there is no group any more.
    pub(super) fn dissolve_group(&mut self, poll: &AnyPoll<'_>) {
        let Some(rare) = self.rare_mut() else { return };
        if rare.group.take().is_some() {
            rare.stopping_child = None;
            let Some(children) = poll.shared().children() else { return };
            for child in read_all(children, Direction::NewestFirst) {
                children.with(|children| children.leave_group(&child));
            }
        }
    }

    /// How far a child is in the group.
    pub(super) fn phase_of(&self, poll: &AnyPoll<'_>, child: &AnyActor) -> ChildPhase {
        let phase = with_children(poll, |children| children.phase_of(child)).flatten();
        phase.unwrap_or(ChildPhase::Single)
    }
}

impl dyn CellVTable + '_ {
    /// The parent has commanded a part of the restart that is pending.
    pub(super) fn restart_in_part(&mut self, poll: &AnyPoll<'_>, options: RestartOptions) {
        match options.part {
            RestartPart::Whole => {}
            RestartPart::End => {
                let rare = self.rare_or_new();
                rare.is_commanded = true;
                rare.hold = Hold::Held;
                // The group has its own delay.
                rare.backoff = 0;
                let timer = rare.backoff_timer.take();
                rare.strategies.iter_mut().for_each(StrategyState::reset);
                if let Some(timer) = timer {
                    timer.cancel();
                }
            }
            RestartPart::Start => {
                self.rare_or_new().hold = Hold::Free;
                if let Some(delay) = options.delay {
                    self.back_off(poll, delay);
                }
            }
        }
    }

    /// Whether the restart of this actor, whose incarnation has ended, waits for its group. Reports
    /// the end to the parent.
    pub(super) fn waits_for_group(&mut self, poll: &AnyPoll<'_>) -> bool {
        let rare = self.rare_or_new();
        if rare.hold == Hold::Held {
            rare.hold = Hold::Reported;
            if let Some(parent) = &poll.shared().parent {
                drop(parent.send_child_report(&poll.self_ref(), |report| report.is_down = true));
            }
        }
        rare.hold != Hold::Free
    }

    /// This actor has made its first attempt to start, or stops without one: the sibling that was
    /// spawned after it may start.
    pub(super) fn pass_turn(&self, poll: &AnyPoll<'_>, stops: bool) {
        let Some(parent) = starts_in_order(poll) else { return };
        let me = poll.self_ref();
        let children = parent.children();
        let next = children.and_then(|children| children.with(|all| all.made_attempt(&me, stops)));
        if let Some(next) = next {
            next.wake();
        }
    }
}

/// Whether this actor may make its first attempt to start. If not, it is woken when it may.
pub(super) fn is_its_turn(poll: &AnyPoll<'_>) -> bool {
    let Some(parent) = starts_in_order(poll) else { return true };
    let me = poll.self_ref();
    parent.children().is_none_or(|children| children.with(|all| all.may_start(&me)))
}

/// The parent of this actor, if it starts its children in order.
fn starts_in_order<'p>(poll: &'p AnyPoll<'_>) -> Option<&'p AnyActor> {
    poll.shared().parent.as_ref().filter(|parent| parent.starts_children_in_order)
}

/// Puts children into the group of their parent: all, or one and those after it.
fn join_group(poll: &AnyPoll<'_>, oldest: Option<&AnyActor>, stops: bool) {
    let Some(children) = poll.shared().children() else { return };
    let start = oldest.map_or(Start::Begin, Start::At);
    let joining = read_some(children, Direction::OldestFirst, start, usize::MAX);
    for child in joining.iter().rev() {
        children.with(|children| children.join_group(child, stops));
    }
}

fn search_children<T>(
    poll: &AnyPoll<'_>,
    part: impl FnMut(&mut Children) -> Search<T>,
) -> Option<T> {
    search(poll.shared().children()?, part)
}

fn with_children<R>(poll: &AnyPoll<'_>, act: impl FnOnce(&mut Children) -> R) -> Option<R> {
    poll.shared().children().map(|children| children.with(act))
}
