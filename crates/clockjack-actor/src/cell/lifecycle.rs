//! The life of an actor: how it starts, is made anew and ends.

use clockjack_exec::Failure;
use clockjack_sync::{mail::Pop, mutant, prim::hint};

use super::{
    Budget, Cell, Outcome, PENDING, Pending, Sleep, Stage, TurnOf, WAS_STARTED, pop, see_empty,
};
use crate::{
    Actor, Next, Signal,
    base::{ENDED, FAILED, REPORTS, RESTART, RESUME, STOP, Tell},
    control::Control,
    envelope::Envelope,
    events::{DeadLetterReason, LifecycleStep, SystemEvent},
    notes::{self, Item, Note, Renewal, Tick},
};

/// How often one that is ended by force looks for a message that is being put into its mailbox:
/// some milliseconds long.
const PATIENCE: u32 = 1 << 16;

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Makes the actor, and lets it start.
    pub(super) fn start(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let path = &turn.front().core.path;
        let Self { actor, factory, state } = self;
        let layers = state.extra.as_mut().map(|extra| &mut extra.layers);
        let layers = layers.map_or(&mut [][..], |layers| &mut layers[..]);
        let made = turn.guarded(&mut || {
            layers.iter_mut().for_each(|layer| layer.before_start(path));
            *actor = Some(factory());
        });
        let mut result = match made {
            Ok(()) => {
                self.state.stage = Stage::Running;
                match self.guarded(turn, A::started) {
                    Ok(Next::Unhandled) => Err(Failure::msg("`started` was left unhandled")),
                    result => result,
                }
            }
            Err(caught) => {
                let failure = super::of_panic(&caught);
                turn.discard(caught);
                Err(failure)
            }
        };
        let is_first = !self.state.has(WAS_STARTED);
        if result.is_ok() && !is_first {
            result = self.restarted(turn).and(result);
        }
        match result {
            Ok(next) => {
                self.state.set(WAS_STARTED, true);
                let step = if is_first { LifecycleStep::Started } else { LifecycleStep::Restarted };
                self.tell_step(turn, step);
                if self.state.extra.as_ref().is_some_and(|extra| extra.unstash > 0) {
                    self.state.put_back();
                }
                if next == Next::Stop {
                    self.stop(turn, None);
                }
            }
            Err(failure) => {
                // It has not started, so it is told neither of a restart nor of its end.
                let actor = self.actor.take();
                self.drop_told(turn, actor);
                self.fail(turn, failure, None);
            }
        }
    }

    /// A restart has come to a good end, unless a hook does not think so.
    fn restarted(&mut self, turn: &TurnOf<'_, A::Msg>) -> Result<(), Failure> {
        let core = &turn.front().core;
        let now = turn.nanos();
        let extra = self.state.extra();
        let layers = &mut extra.layers;
        let told = turn.guarded(&mut || {
            for layer in &mut *layers {
                layer.restarted(now);
                layer.after_restart(&core.path);
            }
        });
        if let Err(caught) = told {
            let failure = super::of_panic(&caught);
            turn.discard(caught);
            return Err(failure);
        }
        extra.restarts = extra.restarts.saturating_add(1);
        extra.last_restart_nanos = Some(now);
        let is_ordered = core::mem::take(&mut extra.is_ordered);
        let tells = is_ordered && !mutant!("actor-restart-untold");
        if let (true, Some(parent)) = (tells, &core.parent) {
            let me = crate::actor_ref::untyped(turn.me());
            drop(parent.news(&me, |news| news.restarted_nanos = Some(now)));
        }
        self.let_children_go_on(turn, Waiting::Restart);
        Ok(())
    }

    /// Children that were kept, and suspended because this actor has failed, go on; those whose
    /// failure it has left to who is above get what became of that.
    pub(super) fn let_children_go_on(&mut self, turn: &TurnOf<'_, A::Msg>, waiting: Waiting) {
        self.release_children(turn);
        let Some(extra) = &mut self.state.extra else { return };
        for child in core::mem::take(&mut extra.suspended).into_values() {
            child.lower(FAILED);
            child.order(match waiting {
                Waiting::Resume => RESUME,
                Waiting::Restart => RESTART,
                Waiting::Stop => STOP,
            });
        }
    }

    /// Drops something of the user's; a panic in that changes nothing, but is told.
    pub(crate) fn drop_told<T>(&mut self, turn: &TurnOf<'_, A::Msg>, value: T) {
        let mut value = Some(value);
        if let Err(caught) = turn.guarded(&mut || drop(value.take())) {
            let failure = super::of_panic(&caught);
            turn.discard(caught);
            self.tell_of_hook(turn, failure);
        }
    }

    fn tell_step(&self, turn: &TurnOf<'_, A::Msg>, step: LifecycleStep) {
        let core = &turn.front().core;
        core.system().stepped(turn.pid(), core, step);
    }

    /// Begins to stop: nothing more is taken, and the children go first.
    pub(super) fn stop(&mut self, turn: &TurnOf<'_, A::Msg>, failure: Option<Failure>) {
        if self.state.is_ending() {
            return;
        }
        if let Some(failure) = failure {
            let report = self.report_of(turn, &failure);
            turn.drop_contained(failure);
            self.state.extra().reason = Some(report);
        }
        self.state.stage = Stage::Stopping;
        turn.front().core.lower(FAILED);
        // Who waits for an answer that will not come is to find out why.
        if turn.front().core.peek() & STOP == 0 {
            turn.front().core.raise(STOP);
        }
        turn.front().mail.close();
        Self::refuse_waiters(turn);
        self.end_incarnation(turn);
        if let Some(children) = turn.front().core.children() {
            children.with(|children| children.is_closed = true);
        }
        self.stop_children(turn);
    }

    /// What belongs to this value of the actor ends with it: timers, futures and adapters.
    pub(super) fn end_incarnation(&mut self, turn: &TurnOf<'_, A::Msg>) {
        self.end_timers(turn);
        self.end_futures(turn);
        if let Some(extra) = &mut self.state.extra {
            extra.backoff = 0;
            if let Some(timer) = extra.backoff_timer.take()
                && !mutant!("actor-backoff-timer-stays")
            {
                timer.cancel();
            }
            for adapter in core::mem::take(&mut extra.adapters) {
                self.drop_told(turn, adapter);
            }
        }
    }

    /// Begins to stop the children, unless that has begun.
    fn stop_children(&mut self, turn: &TurnOf<'_, A::Msg>) {
        if self.state.extra.as_ref().is_none_or(|extra| extra.awaited.is_none()) {
            self.stop_next_child(turn);
        }
    }

    /// Tells the child that was started last to stop; when it has ended comes the one before.
    pub(super) fn stop_next_child(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let Some(children) = turn.front().core.children() else { return };
        let Some(next) = children.with(|children| children.next_to_stop()) else {
            if let Some(extra) = &mut self.state.extra {
                extra.awaited = None;
                extra.patience = extra.patience.wrapping_add(1);
                if let Some(timer) = extra.patience_timer.take() {
                    timer.cancel();
                }
            }
            return;
        };
        next.order(STOP);
        if mutant!("actor-stops-children-at-once") {
            Self::children(turn).iter().for_each(|child| child.order(STOP));
        }
        let extra = self.state.extra();
        extra.awaited = Some(next);
        extra.patience = extra.patience.wrapping_add(1);
        if extra.patience_timer.is_none() {
            self.be_patient(turn);
        }
    }

    /// Looks again at the child that is waited for, after a while.
    fn be_patient(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let system = turn.front().core.system();
        let me = crate::actor_ref::untyped(turn.me());
        let extra = self.state.extra();
        let tick = Tick::Patience(extra.patience);
        extra.patience_timer = system.after(system.patience(), me, tick);
    }

    /// A while has passed since the wait of this number was begun, or one before it.
    pub(super) fn patience_over(&mut self, turn: &TurnOf<'_, A::Msg>, wait: u32) {
        let extra = self.state.extra();
        extra.patience_timer = None;
        let Some(straggler) = &extra.awaited else { return };
        if extra.patience == wait {
            let path = straggler.path.clone();
            let events = turn.front().core.system().events();
            events.publish(&SystemEvent::Straggler(path));
            self.stop_next_child(turn);
        } else {
            self.be_patient(turn);
        }
    }

    pub(super) fn has_no_children(&self, turn: &TurnOf<'_, A::Msg>) -> bool {
        let children = turn.front().core.children();
        children.is_none_or(|children| children.with(|children| children.is_empty()))
    }

    /// Makes the actor anew, as soon as its children have ended and, if there is one, the delay.
    pub(super) fn restart(&mut self, turn: &TurnOf<'_, A::Msg>, renewal: Renewal) {
        if self.state.settings.as_ref().is_some_and(|settings| settings.is_once) {
            self.stop(turn, Some(Failure::msg("it was to be restarted, and cannot be made again")));
            return;
        }
        self.state.stage = Stage::Restarting;
        turn.front().core.lower(FAILED);
        self.end_incarnation(turn);
        let told = self.guarded(turn, |actor, cx| actor.signal(cx, Signal::PreRestart));
        // Nothing that the hook has asked for outlives the value.
        self.end_incarnation(turn);
        if let Err(failure) = told {
            self.tell_of_hook(turn, failure);
        }
        let actor = self.actor.take();
        self.drop_told(turn, actor);
        let extra = self.state.extra();
        extra.keeps_children = renewal.keeps_children;
        extra.room = renewal.stash;
        // What was stashed is older than what is kept of an earlier restart.
        let later = core::mem::take(&mut extra.replay);
        extra.unstash = 0;
        extra.replay.append(&mut extra.unstashed);
        extra.replay.append(&mut extra.stash);
        extra.replay.extend(later);
        self.state.set(PENDING, true);
        if !renewal.keeps_children {
            self.forget_children(turn);
            self.stop_children(turn);
        }
        if let Some(delay) = renewal.delay {
            self.back_off(turn, delay);
        }
    }

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
                        extra.replay.push_back(envelope);
                    } else {
                        tell_lost::<A::Msg>(turn, DeadLetterReason::StashFull);
                        self.drop_told(turn, envelope);
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

    /// Whether nothing stands in the way of a restart any more.
    pub(super) fn may_restart(&mut self, turn: &TurnOf<'_, A::Msg>) -> bool {
        let extra = self.state.extra();
        let keeps_children = extra.keeps_children;
        extra.backoff == 0 && (keeps_children || self.has_no_children(turn))
    }

    /// All children have ended: the last that the actor does.
    pub(super) fn finish(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let told = self.guarded(turn, |actor, cx| actor.signal(cx, Signal::PostStop));
        self.end_incarnation(turn);
        if let Err(failure) = told {
            self.tell_of_hook(turn, failure);
        }
        let actor = self.actor.take();
        self.drop_told(turn, actor);
        self.state.stage = Stage::Draining;
    }

    /// Makes dead letters of what is left; the end, unless somebody is about to put in more.
    pub(super) fn drain(&mut self, turn: &TurnOf<'_, A::Msg>) -> Outcome {
        if !self.empty_mailbox(turn) {
            return Outcome::Again;
        }
        self.let_go(turn);
        Outcome::End
    }

    /// Makes dead letters of what is in the mailbox, which is closed. False if somebody is about to
    /// put in more.
    pub(super) fn empty_mailbox(&mut self, turn: &TurnOf<'_, A::Msg>) -> bool {
        loop {
            match pop(turn.front()) {
                Pop::Item(envelope) => self.lose(turn, envelope),
                Pop::Empty => return true,
                Pop::Busy => return mutant!("actor-drain-forgets-claims"),
            }
        }
    }

    /// Ends what others know of the actor, and tells them.
    fn let_go(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let core = &turn.front().core;
        let mut watchers = alloc::collections::BTreeMap::new();
        if let Some(mut extra) = self.state.extra.take() {
            watchers = core::mem::take(&mut extra.watchers);
            let put_back = extra.unstashed.drain(..).chain(extra.stash.drain(..));
            for envelope in put_back.chain(extra.replay.drain(..)) {
                self.lose(turn, envelope);
            }
            while let Some(envelope) = extra.ranks.pop() {
                self.lose(turn, envelope);
            }
            for item in extra.control.drain(..) {
                self.lose_control(turn, item);
            }
            for pending in extra.signals.drain(..) {
                if let Pending::Message(_, envelope) = pending {
                    self.lose(turn, envelope);
                }
            }
            self.say_last_words(turn, extra.reason.take());
            turn.drop_contained(extra);
        }
        core.raise(ENDED);
        for item in core.notes.close::<A::Msg>() {
            match item {
                Item::Note(Note::Watch { watcher }, spare) => {
                    watchers.insert(watcher.pid(), (watcher, spare));
                }
                Item::Note(Note::Unwatch { watcher }, _) => {
                    watchers.remove(&watcher);
                }
                Item::Note(note, _) => turn.drop_contained(note),
                Item::Control(item) => self.lose_control(turn, item),
                Item::News(news) => turn.drop_contained(news),
                Item::Ticks(_) => {}
            }
        }
        self.tell_step(turn, LifecycleStep::Stopped);
        for (watcher, spare) in watchers.into_values() {
            // One that has ended too does not want to know.
            drop(watcher.note_in(spare, notes::terminated(turn.pid(), core.path.clone())));
        }
        match &core.parent {
            Some(parent) => {
                let is_first = parent.report(crate::actor_ref::untyped(turn.me()));
                // Whoever was first tells of all.
                let bits = if is_first { parent.raise(REPORTS) } else { parent.peek() | REPORTS };
                if bits & ENDED != 0 {
                    // Ended by force before its children: nobody else takes them off its lists, and
                    // they would keep each other. Either this sees that it has ended, or its end
                    // sees the report: both change one word. And it empties its table after that,
                    // so who is put there later sees it too.
                    drop(parent.take_reports());
                    let me = crate::actor_ref::untyped(turn.me());
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

    fn lose(&mut self, turn: &TurnOf<'_, A::Msg>, envelope: Envelope<A::Msg>) {
        // One that was cancelled nobody misses.
        if !envelope.is_cancelled() {
            tell_lost::<A::Msg>(turn, DeadLetterReason::Stopped);
        }
        self.drop_told(turn, envelope);
    }

    fn lose_control(&mut self, turn: &TurnOf<'_, A::Msg>, item: Control<A::Msg>) {
        match item {
            Control::Message(envelope) => self.lose(turn, envelope),
            // Its timer was cancelled.
            Control::Fire(_) | Control::Idle(_) => {}
        }
    }

    /// The executor has ended the process by force.
    pub(super) fn cut_short(&mut self, turn: &TurnOf<'_, A::Msg>) {
        if self.state.stage == Stage::Draining && turn.front().core.is_ended() {
            return;
        }
        turn.front().mail.close();
        Self::refuse_waiters(turn);
        self.end_timers(turn);
        self.end_futures(turn);
        let actor = self.actor.take();
        self.drop_told(turn, actor);
        self.drop_mail(turn);
        self.let_go(turn);
        let core = &turn.front().core;
        drop(core.take_reports());
        // Children that are there end by force too, and would be kept here.
        while let Some(children) = core.children()
            && let Some(child) = children.with(|children| {
                children.is_closed = true;
                let last = children.newest_first().next().cloned()?;
                children.remove(&last)
            })
        {
            drop(child);
        }
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Makes dead letters of what is in the mailbox, which is closed; there is no other turn.
    fn drop_mail(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let mut patience = PATIENCE;
        loop {
            match pop(turn.front()) {
                Pop::Item(envelope) => {
                    tell_lost::<A::Msg>(turn, DeadLetterReason::Stopped);
                    self.drop_told(turn, envelope);
                }
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

/// What becomes of children whose failure was left to who is above.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    Resume,
    Restart,
    Stop,
}

/// Calls something of the user's; a panic of it is none of the actor's affair.
pub(super) fn contain<M: 'static>(turn: &TurnOf<'_, M>, call: &mut dyn FnMut()) {
    if let Err(caught) = turn.guarded(call) {
        turn.discard(caught);
    }
}

/// Tells of a message that will not be handled.
pub(super) fn tell_lost<M: 'static>(turn: &TurnOf<'_, M>, reason: DeadLetterReason) {
    let core = &turn.front().core;
    core.system().dead_letter::<M>(&core.path, reason);
}
