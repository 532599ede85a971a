//! The life of an actor: how it starts, is made anew and ends.

use core::time::Duration;

use clockjack_exec::Failure;
use clockjack_sync::{mail::Pop, mutant, prim::hint};

use super::{
    AnyTurn, Budget, Cell, Outcome, PENDING, Pending, Sleep, Stage, TurnOf, Typed, WAS_STARTED,
    Watchers, any,
    attend::children_of,
    pop,
    priority::rank,
    see_empty,
    supervise::{report_of, say_last_words, tell_of_hook},
};
use crate::{
    Actor, FailureReport, Next, Signal,
    base::{ENDED, FAILED, REPORTS, RESUME, STOP, Tell},
    control::Control,
    envelope::Envelope,
    events::{DeadLetterReason, LifecycleStep, SystemEvent},
    notes::{self, Item, Note, Renewal, Tick},
};

/// How often one that is ended by force looks for a message that is being put into its mailbox:
/// some milliseconds long.
const PATIENCE: u32 = 1 << 16;

impl dyn Typed + '_ {
    /// Makes the actor, and lets it start.
    pub(super) fn start(&mut self, turn: &AnyTurn<'_>) {
        let path = &turn.front().path;
        let mut made = Ok(());
        if let Some(life) = self.life_mut()
            && !life.layers.is_empty()
        {
            made = guarded(turn, &mut || {
                life.layers.iter_mut().for_each(|layer| layer.before_start(path));
            });
        }
        let mut result = match made.and_then(|()| self.make()) {
            Ok(()) => {
                self.mark_mut().stage = Stage::Running;
                match self.started() {
                    Ok(Next::Unhandled) => Err(Failure::msg("`started` was left unhandled")),
                    result => result,
                }
            }
            Err(failure) => Err(failure),
        };
        let is_first = !self.mark().has(WAS_STARTED);
        if result.is_ok() && !is_first {
            result = self.restarted(turn).and(result);
        }
        match result {
            Ok(next) => {
                self.mark_mut().set(WAS_STARTED, true);
                let step = if is_first { LifecycleStep::Started } else { LifecycleStep::Restarted };
                self.tell_step(turn, step);
                if self.life().is_some_and(|life| life.unstash > 0) {
                    self.put_back();
                }
                if next == Next::Stop {
                    self.stop(turn, None);
                }
            }
            Err(failure) => {
                // It has not started, so it is told neither of a restart nor of its end.
                self.drop_actor();
                self.fail(turn, failure, None);
            }
        }
    }

    /// A restart has come to a good end, unless a hook does not think so.
    fn restarted(&mut self, turn: &AnyTurn<'_>) -> Result<(), Failure> {
        let core = turn.front();
        let now = turn.nanos();
        let life = self.life_or_new();
        let layers = &mut life.layers;
        guarded(turn, &mut || {
            for layer in &mut *layers {
                layer.restarted(now);
                layer.after_restart(&core.path);
            }
        })?;
        life.restarts = life.restarts.saturating_add(1);
        life.last_restart_nanos = Some(now);
        let is_ordered = core::mem::take(&mut life.is_ordered);
        let tells = is_ordered && !mutant!("actor-restart-untold");
        if let (true, Some(parent)) = (tells, &core.parent) {
            let me = turn.me();
            drop(parent.news(&me, |news| news.restarted_nanos = Some(now)));
        }
        self.let_children_go_on(turn, Waiting::Restart);
        Ok(())
    }

    /// Children that were kept, and suspended because this actor has failed, go on; those whose
    /// failure it has left to who is above get what became of that.
    pub(super) fn let_children_go_on(&mut self, turn: &AnyTurn<'_>, waiting: Waiting) {
        self.release_children(turn);
        let Some(life) = self.life_mut() else { return };
        for child in core::mem::take(&mut life.suspended).into_values() {
            match waiting {
                Waiting::Restart => self.restart_child(turn, &child, Renewal::PLAIN),
                Waiting::Resume | Waiting::Stop => {
                    child.lower(FAILED);
                    child.order(if waiting == Waiting::Resume { RESUME } else { STOP });
                }
            }
        }
    }

    fn tell_step(&self, turn: &AnyTurn<'_>, step: LifecycleStep) {
        let core = turn.front();
        core.system().stepped(turn.pid(), core, step);
    }

    /// Begins to stop: nothing more is taken, and the children go first.
    pub(super) fn stop(&mut self, turn: &AnyTurn<'_>, failure: Option<Failure>) {
        if self.mark().is_ending() {
            return;
        }
        if let Some(failure) = failure {
            let report = report_of(turn, &failure);
            turn.drop_contained(failure);
            self.life_or_new().reason = Some(report);
        }
        self.mark_mut().stage = Stage::Stopping;
        turn.front().lower(FAILED);
        // Who waits for an answer that will not come is to find out why.
        if turn.front().peek() & STOP == 0 {
            turn.front().raise(STOP);
        }
        self.close_mail();
        self.end_incarnation();
        turn.front().close_children();
        self.stop_children(turn);
    }

    /// What belongs to this value of the actor ends with it: timers, futures and adapters.
    fn end_incarnation(&mut self) {
        self.end_belongings(true);
        if let Some(life) = self.life_mut() {
            life.backoff = 0;
            if let Some(timer) = life.backoff_timer.take()
                && !mutant!("actor-backoff-timer-stays")
            {
                timer.cancel();
            }
        }
    }

    /// Begins to stop the children, unless that has begun.
    fn stop_children(&mut self, turn: &AnyTurn<'_>) {
        if self.life().is_none_or(|life| life.awaited.is_none()) {
            self.stop_next_child(turn);
        }
    }

    /// Tells the child that was started last to stop; when it has ended comes the one before.
    pub(super) fn stop_next_child(&mut self, turn: &AnyTurn<'_>) {
        let Some(children) = turn.front().children() else { return };
        let Some(next) = children.with(|children| children.next_to_stop()) else {
            if let Some(life) = self.life_mut() {
                life.awaited = None;
                life.patience = life.patience.wrapping_add(1);
                if let Some(timer) = life.patience_timer.take() {
                    timer.cancel();
                }
            }
            return;
        };
        next.order(STOP);
        if mutant!("actor-stops-children-at-once") {
            children_of(turn).iter().for_each(|child| child.order(STOP));
        }
        let life = self.life_or_new();
        life.awaited = Some(next);
        life.patience = life.patience.wrapping_add(1);
        if life.patience_timer.is_none() {
            self.be_patient(turn);
        }
    }

    /// Looks again at the child that is waited for, after a while.
    fn be_patient(&mut self, turn: &AnyTurn<'_>) {
        self.be_patient_for(turn, turn.front().system().patience());
    }

    fn be_patient_for(&mut self, turn: &AnyTurn<'_>, time: Duration) {
        let me = turn.me();
        let life = self.life_or_new();
        let tick = Tick::Patience(life.patience);
        life.patience_timer = turn.front().system().after(time, me, tick);
    }

    /// A while has passed since the wait of this number was begun, or one before it.
    pub(super) fn patience_over(&mut self, turn: &AnyTurn<'_>, wait: u32) {
        let life = self.life_or_new();
        let rest = turn.front().system().rest_of(life.patience_timer.take());
        let Some(straggler) = &life.awaited else { return };
        if life.patience != wait {
            self.be_patient(turn);
        } else if let Some(rest) = rest {
            self.be_patient_for(turn, rest);
        } else {
            let path = straggler.path.clone();
            let events = turn.front().system().events();
            events.publish(&SystemEvent::Straggler(path));
            self.stop_next_child(turn);
        }
    }

    pub(super) fn has_no_children(&self, turn: &AnyTurn<'_>) -> bool {
        let children = turn.front().children();
        children.is_none_or(|children| children.with(|children| children.is_empty()))
    }

    /// Makes the actor anew, as soon as its children have ended and, if there is one, the delay.
    pub(super) fn restart(&mut self, turn: &AnyTurn<'_>, renewal: Renewal) {
        if self.is_once() {
            self.stop(turn, Some(Failure::msg("it was to be restarted, and cannot be made again")));
            return;
        }
        self.mark_mut().stage = Stage::Restarting;
        turn.front().lower(FAILED);
        self.end_incarnation();
        let told = self.tell(Signal::PreRestart);
        // Nothing that the hook has asked for outlives the value.
        self.end_incarnation();
        if let Err(failure) = told {
            tell_of_hook(turn, failure);
        }
        self.drop_actor();
        let n_kept = self.keep_messages();
        let n_kept = if mutant!("actor-room-each-restart") { 0 } else { n_kept };
        let life = self.life_or_new();
        life.keeps_children = renewal.keeps_children;
        life.room = renewal.stash.saturating_sub(n_kept);
        life.unstash = 0;
        self.mark_mut().set(PENDING, true);
        if !renewal.keeps_children {
            self.forget_children(turn);
            self.stop_children(turn);
        }
        if let Some(delay) = renewal.delay {
            self.back_off(turn, delay);
        }
    }

    /// Whether nothing stands in the way of a restart any more.
    pub(super) fn may_restart(&mut self, turn: &AnyTurn<'_>) -> bool {
        let life = self.life_or_new();
        let keeps_children = life.keeps_children;
        life.backoff == 0 && (keeps_children || self.has_no_children(turn))
    }

    /// All children have ended: the last that the actor does.
    pub(super) fn finish(&mut self, turn: &AnyTurn<'_>) {
        let told = self.tell(Signal::PostStop);
        self.end_incarnation();
        if let Err(failure) = told {
            tell_of_hook(turn, failure);
        }
        self.drop_actor();
        self.mark_mut().stage = Stage::Draining;
    }

    /// Makes dead letters of what is left; the end, unless somebody is about to put in more.
    pub(super) fn drain(&mut self, turn: &AnyTurn<'_>) -> Outcome {
        if !self.empty_mailbox() {
            return Outcome::Again;
        }
        self.let_go(turn);
        Outcome::End
    }

    /// Ends what others know of the actor, and tells them.
    fn let_go(&mut self, turn: &AnyTurn<'_>) {
        let core = turn.front();
        let (mut watchers, reason) = self.lose_all();
        if let Some(report) = reason {
            say_last_words(turn, report);
        }
        core.raise(ENDED);
        self.close_notes(&mut watchers);
        self.tell_step(turn, LifecycleStep::Stopped);
        for (watcher, spare) in watchers.into_values() {
            // One that has ended too does not want to know.
            drop(watcher.note_in(spare, notes::terminated(turn.pid(), core.path.clone())));
        }
        match &core.parent {
            Some(parent) => {
                let is_first = parent.report(turn.me());
                // Whoever was first tells of all.
                let bits = if is_first { parent.raise(REPORTS) } else { parent.peek() | REPORTS };
                if bits & ENDED != 0 {
                    // Ended by force before its children: nobody else takes them off its lists, and
                    // they would keep each other. Either this sees that it has ended, or its end
                    // sees the report: both change one word. And it empties its table after that,
                    // so who is put there later sees it too.
                    drop(parent.take_reports());
                    let me = turn.me();
                    let children = parent.children();
                    drop(children.and_then(|children| children.with(|all| all.remove(&me))));
                } else if bits & REPORTS == 0 {
                    // Not at once: others may be about to end too.
                    parent.wake_last();
                }
            }
            None => {
                core.system().retry_escalations(&|call| contain(turn, call));
                core.system().root_ended();
            }
        }
    }

    /// The executor has ended the process by force.
    pub(super) fn cut_short(&mut self, turn: &AnyTurn<'_>) {
        if self.mark().stage == Stage::Draining && turn.front().is_ended() {
            return;
        }
        self.close_mail();
        self.end_belongings(false);
        self.drop_actor();
        self.drop_mail();
        self.let_go(turn);
        let core = turn.front();
        drop(core.take_reports());
        // Children that are there end by force too, and would be kept here.
        core.close_children();
        while let Some(children) = core.children()
            && let Some(child) = children.with(|children| {
                let last = children.newest_first().next().cloned()?;
                children.remove(&last)
            })
        {
            drop(child);
        }
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Takes messages out of the mailbox while a restart is waited for, and keeps them.
    pub(super) fn keep_mail(&mut self, turn: &TurnOf<'_, A::Msg>, budget: &mut Budget) -> Outcome {
        let front = turn.front();
        loop {
            if !budget.take(turn) {
                return Outcome::Again;
            }
            match pop(front) {
                Pop::Item(envelope) => {
                    let extra = self.state.extra();
                    if extra.room > 0 || mutant!("actor-keeps-all-mail") {
                        extra.room = extra.room.saturating_sub(1);
                        self.keep(turn, envelope);
                    } else {
                        lose_for(turn, envelope, DeadLetterReason::StashFull);
                    }
                }
                Pop::Empty => {
                    let idle = see_empty(front).map(Sleep::Idle);
                    return idle.map_or(Outcome::Again, Outcome::Sleep);
                }
                Pop::Busy => return Outcome::Again,
            }
        }
    }

    /// Keeps a message for the value that is to come: behind those that are older, or by its rank.
    fn keep(&mut self, turn: &TurnOf<'_, A::Msg>, envelope: Envelope<A::Msg>) {
        match self.state.priority() {
            Some(priority) => {
                let rank = rank(turn, priority, &envelope);
                self.state.extra().ranks.push_kept(rank, envelope);
            }
            None => self.state.extra().replay.push_back(envelope),
        }
    }

    /// Makes dead letters of what waits, in the mailbox, which is closed, or before it. False if
    /// somebody is about to put in more.
    pub(super) fn empty_mailbox(&mut self, turn: &TurnOf<'_, A::Msg>) -> bool {
        if !mutant!("actor-stop-keeps-ranks") {
            self.lose_queued(turn);
        }
        loop {
            match pop(turn.front()) {
                Pop::Item(envelope) => lose(turn, envelope),
                Pop::Empty => return true,
                Pop::Busy => return mutant!("actor-drain-forgets-claims"),
            }
        }
    }

    /// Makes dead letters of the messages that wait before the mailbox. What the actor itself has
    /// put aside is there for its last hook.
    fn lose_queued(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let Some(queued) = self.state.extra.as_deref_mut() else { return };
        while let Some(envelope) = queued.replay.pop_front() {
            lose(turn, envelope);
        }
        while let Some(envelope) = queued.ranks.pop() {
            lose(turn, envelope);
        }
        while let Some(item) = queued.control.pop_front() {
            lose_control(turn, item);
        }
    }

    /// Makes dead letters of what it has kept. Gives who wants to know of the end, and why it ends.
    pub(super) fn lose_all(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
    ) -> (Watchers, Option<FailureReport>) {
        let Some(kept) = self.state.extra.as_deref_mut() else { return (Watchers::new(), None) };
        for queue in [&mut kept.unstashed, &mut kept.stash] {
            while let Some(envelope) = queue.pop_front() {
                lose(turn, envelope);
            }
        }
        self.lose_queued(turn);
        let Some(mut extra) = self.state.extra.take() else { return (Watchers::new(), None) };
        while let Some(pending) = extra.signals.pop_front() {
            if let Pending::Message(_, message) = pending {
                tell_lost::<A::Msg>(&any(turn), DeadLetterReason::Stopped);
                drop_told(&any(turn), message);
            }
        }
        let left = (core::mem::take(&mut extra.watchers), extra.reason.take());
        turn.drop_contained(extra);
        left
    }

    /// Takes no more notes. Of those that have come, watches and the like count.
    pub(super) fn close_notes(&mut self, turn: &TurnOf<'_, A::Msg>, watchers: &mut Watchers) {
        for item in turn.front().core.notes.close::<A::Msg>() {
            match item {
                Item::Note(Note::Watch { watcher }, spare) => {
                    watchers.insert(watcher.pid(), (watcher, spare));
                }
                Item::Note(Note::Unwatch { watcher }, _) => {
                    watchers.remove(&watcher);
                }
                Item::Note(note, _) => turn.drop_contained(note),
                Item::Control(item) => lose_control(turn, item),
                Item::News(news) => turn.drop_contained(news),
                Item::Ticks(_) => {}
            }
        }
    }

    /// Before a restart: what was stashed is older than what is kept of an earlier one. Gives how
    /// many are.
    pub(super) fn keep_messages(&mut self) -> usize {
        let extra = self.state.extra();
        let n_kept = extra.replay.len() + extra.ranks.n_kept();
        extra.stash.append(&mut extra.replay);
        extra.unstashed.append(&mut extra.stash);
        core::mem::swap(&mut extra.replay, &mut extra.unstashed);
        n_kept
    }

    /// Makes dead letters of what is in the mailbox, which is closed; there is no other turn.
    pub(super) fn drop_mail(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let mut patience = PATIENCE;
        loop {
            match pop(turn.front()) {
                Pop::Item(envelope) => lose(turn, envelope),
                Pop::Empty => return,
                // Somebody is between its claim and its message. What it leaves nobody would find,
                // and a request would keep the cell for ever. Not without end: it may be further
                // down on this stack, in the function of a mapped ref.
                Pop::Busy if patience > 0 && !mutant!("actor-force-leaves-mail") => {
                    patience -= 1;
                    hint::spin_loop();
                }
                Pop::Busy => return,
            }
        }
    }
}

/// A message that will not be handled, because the actor ends.
fn lose<M: 'static>(turn: &TurnOf<'_, M>, envelope: Envelope<M>) {
    lose_for(turn, envelope, DeadLetterReason::Stopped);
}

fn lose_for<M: 'static>(turn: &TurnOf<'_, M>, envelope: Envelope<M>, reason: DeadLetterReason) {
    // One that was cancelled nobody misses.
    if !envelope.is_cancelled() {
        tell_lost::<M>(&any(turn), reason);
    }
    drop_told(&any(turn), envelope);
}

fn lose_control<M: 'static>(turn: &TurnOf<'_, M>, item: Control<M>) {
    match item {
        Control::Message(envelope) => lose(turn, envelope),
        // Its timer was cancelled.
        Control::Fire(_) | Control::Idle(_) => {}
    }
}

/// What becomes of children whose failure was left to who is above.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    Resume,
    Restart,
    Stop,
}

/// Calls something of the user's; a panic of it is none of the actor's affair.
pub(super) fn contain(turn: &AnyTurn<'_>, call: &mut dyn FnMut()) {
    if let Err(caught) = turn.guarded(call) {
        turn.discard(caught);
    }
}

/// Calls something of the user's. A panic of it is a failure.
pub(super) fn guarded(turn: &AnyTurn<'_>, call: &mut dyn FnMut()) -> Result<(), Failure> {
    turn.guarded(call).map_err(|caught| {
        let failure = super::of_panic(&caught);
        turn.discard(caught);
        failure
    })
}

/// Drops something of the user's; a panic in that changes nothing, but is told.
pub(crate) fn drop_told<T>(turn: &AnyTurn<'_>, value: T) {
    let mut value = Some(value);
    drop_told_by(turn, &mut || drop(value.take()));
}

fn drop_told_by(turn: &AnyTurn<'_>, drop: &mut dyn FnMut()) {
    if let Err(failure) = guarded(turn, drop) {
        tell_of_hook(turn, failure);
    }
}

/// Tells of a message that will not be handled.
pub(super) fn tell_lost<M: 'static>(turn: &AnyTurn<'_>, reason: DeadLetterReason) {
    let core = turn.front();
    core.system().dead_letter::<M>(&core.path, reason);
}
