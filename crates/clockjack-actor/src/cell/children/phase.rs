//! How far children are in what their parent does with several of them together; see
//! [`group`](crate::cell::group) for the protocol.

use super::{ChildEntry, Children, PAGE_LEN, Search};
use crate::{cell::header::AnyActor, room::NONE};

/// How far a child is in what its parent does with several children together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildPhase {
    /// Belongs to no group.
    Single,
    /// Has not made its first attempt to start; only for a parent that starts its children in
    /// order.
    Unstarted,
    /// As `Unstarted`, and the child sleeps until the sibling before it has started.
    AwaitsTurn,
    /// As `Single`, and those after it look for the sibling before it: it was faster than a
    /// sibling that another thread was creating.
    PassedOver,
    /// Stops without an attempt to start, before its turn. Nobody depends on it, so it has left
    /// its place in the order, and is before the oldest one.
    Withdrawn,
    /// Is to restart with its group, and has not been ordered to yet.
    ToRestart,
    /// Is to stop with its group, and has not been ordered to yet.
    ToStop,
    /// Was ordered to end its incarnation and to wait.
    Ending,
    /// Was ordered to stop.
    Stopping,
    /// Its incarnation has ended, and it waits for its start.
    Down,
    /// Was ordered to start.
    Starting,
}

impl ChildPhase {
    /// Whether the group waits for the child to end or to stop.
    fn is_ending(self) -> bool {
        matches!(self, Self::Ending | Self::Stopping)
    }

    /// Whether the child is to end, or has ended, together with its group: its own failures no
    /// longer matter.
    pub(crate) fn ends_with_group(self) -> bool {
        matches!(self, Self::ToRestart | Self::ToStop | Self::Ending | Self::Stopping | Self::Down)
    }

    fn is_unstarted(self) -> bool {
        matches!(self, Self::Unstarted | Self::AwaitsTurn)
    }
}

impl Children {
    pub(super) fn set_phase(&mut self, index: u32, phase: ChildPhase) {
        let Some(entry) = self.entry_mut(index) else { return };
        let before = core::mem::replace(&mut entry.phase, phase);
        self.n_ending -= u32::from(before.is_ending());
        self.n_ending += u32::from(phase.is_ending());
    }

    /// How far the child is; none if it is no child.
    pub(crate) fn phase_of(&mut self, child: &AnyActor) -> Option<ChildPhase> {
        self.entry_of(child).map(|entry| entry.phase)
    }

    /// Changes the phase of a child that is in the first phase; false if it is not.
    pub(crate) fn change_phase(
        &mut self,
        child: &AnyActor,
        from: ChildPhase,
        to: ChildPhase,
    ) -> bool {
        let Some(index) = self.find_child(child) else { return false };
        let is_there = self.entry(index).is_some_and(|entry| entry.phase == from);
        if is_there {
            self.set_phase(index, to);
        }
        is_there
    }

    /// Puts a child into the group: it is to restart, or to stop. Those that join together do it
    /// from young to old: a child that has not joined finds that the one after it waits. The search
    /// for those that are to end begins with the youngest.
    pub(crate) fn join_group(&mut self, child: &AnyActor, stops: bool) {
        let Some(index) = self.find_child(child) else { return };
        let Some(entry) = self.entry(index) else { return };
        let phase = match (entry.phase, stops) {
            // It stops, and nobody depends on it.
            (ChildPhase::Withdrawn, _) => return,
            (phase @ (ChildPhase::ToStop | ChildPhase::Stopping), _)
            | (phase @ (ChildPhase::Ending | ChildPhase::Down), false) => phase,
            (_, false) => ChildPhase::ToRestart,
            (_, true) => ChildPhase::ToStop,
        };
        self.set_phase(index, phase);
        // Also for a child that came after the first one of them has joined.
        (self.cursor, self.cursor_ascends) = (self.last, false);
    }

    /// The youngest member of the group that is to end, and whether it stops. It is marked as
    /// ordered.
    pub(crate) fn next_to_end(&mut self) -> Search<(AnyActor, bool)> {
        if self.cursor_ascends {
            // All have got their order.
            return Search::End;
        }
        for _ in 0..PAGE_LEN {
            let Some(entry) = self.entry(self.cursor) else { return Search::End };
            let (index, prev) = (self.cursor, entry.prev);
            let told = match entry.phase {
                ChildPhase::ToRestart => Some(ChildPhase::Ending),
                ChildPhase::ToStop => Some(ChildPhase::Stopping),
                _ => None,
            };
            let found = told.and_then(|told| Some((entry.child.clone()?, told)));
            self.cursor = prev;
            if let Some((child, told)) = found {
                self.set_phase(index, told);
                return Search::Found((child, told == ChildPhase::Stopping));
            }
        }
        Search::Continue
    }

    /// Whether a member of the group has been ordered to end, and has not ended.
    pub(crate) fn has_ending(&self) -> bool {
        self.n_ending > 0
    }

    /// The oldest member of the group that waits for its start; it is marked as ordered.
    pub(crate) fn next_to_start(&mut self) -> Search<AnyActor> {
        if !core::mem::replace(&mut self.cursor_ascends, true) {
            self.cursor = self.oldest;
        }
        for _ in 0..PAGE_LEN {
            let Some(entry) = self.entry(self.cursor) else { return Search::End };
            let index = self.cursor;
            let found = if entry.phase == ChildPhase::Down { entry.child.clone() } else { None };
            self.cursor = entry.next;
            if let Some(child) = found {
                self.set_phase(index, ChildPhase::Starting);
                return Search::Found(child);
            }
        }
        Search::Continue
    }

    /// Takes a child out of the group: the parent stops all of its children.
    pub(crate) fn leave_group(&mut self, child: &AnyActor) {
        let index = self.find_child(child);
        let stays = |entry: &ChildEntry| entry.phase == ChildPhase::Withdrawn;
        if let Some(index) = index.filter(|at| !self.entry(*at).is_some_and(stays)) {
            self.set_phase(index, ChildPhase::Single);
        }
    }

    /// Whether a new child may make its first attempt to start. If not, it is woken by
    /// [`made_attempt`](Self::made_attempt) of the sibling before it, or by the order of its group.
    pub(crate) fn may_start(&mut self, child: &AnyActor) -> bool {
        let Some(entry) = self.entry_of(child) else { return true };
        let (prev, phase) = (entry.prev, entry.phase);
        if !phase.is_unstarted() {
            // A member of a group is about to be ordered to end, and then to start in its place.
            // Any other child has made its attempt, which has failed: nobody would wake it, because
            // an elder sibling that another thread has added since then finds no mark.
            return !phase.ends_with_group();
        }
        let waits = self.has_unstarted_before(prev);
        if waits {
            self.change_phase(child, ChildPhase::Unstarted, ChildPhase::AwaitsTurn);
        }
        !waits
    }

    /// Whether the nearest child that counts, from this entry on towards the oldest, has not made
    /// its first attempt to start.
    fn has_unstarted_before(&self, mut at: u32) -> bool {
        while let Some(entry) = self.entry(at).filter(|entry| entry.is_passed_over()) {
            at = entry.prev;
        }
        self.entry(at).is_some_and(|entry| entry.phase.is_unstarted())
    }

    /// A new child has made its first attempt to start, or stops before that. Returns the sibling
    /// that may start now, if it sleeps until then.
    pub(crate) fn made_attempt(&mut self, child: &AnyActor, stops: bool) -> Option<AnyActor> {
        let index = self.find_child(child)?;
        let entry = self.entry(index)?;
        let (prev, mut next, phase) = (entry.prev, entry.next, entry.phase);
        if phase.is_unstarted() {
            if self.has_unstarted_before(prev) {
                // Out of turn: those after it wait for the one before it, which finds them.
                if stops {
                    self.withdraw(index);
                } else {
                    self.set_phase(index, ChildPhase::PassedOver);
                }
                return None;
            }
            self.set_phase(index, ChildPhase::Single);
        }
        while let Some(entry) = self.entry(next).filter(|entry| entry.is_passed_over()) {
            let (passed, is_there) = (next, entry.child.is_some());
            next = entry.next;
            if is_there && phase.is_unstarted() {
                // No elder sibling waits any more, so nobody has to look behind it again.
                self.set_phase(passed, ChildPhase::Single);
            }
        }
        let next = self.entry(next).filter(|entry| entry.phase == ChildPhase::AwaitsTurn)?;
        next.child().cloned()
    }

    pub(super) fn withdraw(&mut self, index: u32) {
        self.set_phase(index, ChildPhase::Withdrawn);
        self.unlink(index);
        self.link_between(NONE, index, self.first);
    }
}
