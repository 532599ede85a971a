//! How an actor is spawned: its name, its position in the tree, its cell.
#![expect(unsafe_code, reason = "promises that what may change threads is `Send`")]

use alloc::{format, vec::Vec};
use core::{any::TypeId, mem};

use clockjack_exec::{
    Handle,
    custom_task::{self, CustomStartError, CustomTaskRef},
};
use clockjack_sched::DispatcherId;
use clockjack_sync::{Arc, mail::CAPACITY_MAX, spin_lock::SpinLock};

use crate::{
    Actor, ActorRef, IntoProps, MsgOf, Scope, SpawnError,
    carried_span::{HAS_SPANS, has_spans},
    cell::{
        Cell,
        children::{self, Children, Direction, NotReserved, Start, read_some},
        header::{ActorHeader, AnyActor, STOP, SystemSend},
        shared::ActorShared,
    },
    error::SpawnErrorKind,
    escalation::{ESCALATIONS_MAX, Escalations},
    mailbox::system_queue::InternalMessage,
    path, props,
};

/// Where an actor runs.
pub(crate) enum Placement {
    /// On the dispatcher that its props name: everything that is spawned is `Send`.
    Dispatcher,
    /// On the executor of this thread.
    Here(Handle),
    /// On the executor of another thread, which creates it and drops it.
    On(Handle),
}

/// Spawns an actor that may change threads.
pub(crate) fn spawn_send<P>(
    parent: &AnyActor,
    supervises: bool,
    name: &str,
    props: P,
) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
where
    P: IntoProps,
    P::Actor: Send,
    P::Factory: Send,
    MsgOf<P>: Send,
{
    // SAFETY: everything is `Send`.
    unsafe { spawn(parent, supervises, Placement::Dispatcher, name, props) }
}

/// Spawns an actor on the executor that polls the caller.
pub(crate) fn spawn_here<P: IntoProps>(
    parent: &AnyActor,
    supervises: bool,
    executor: Handle,
    name: &str,
    props: P,
) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>> {
    // SAFETY: the executor polls the caller, so this is its thread.
    unsafe { spawn(parent, supervises, Placement::Here(executor), name, props) }
}

/// Spawns an actor below `parent`, with a name that the system chooses.
pub(crate) fn spawn_anonymous<P>(
    parent: &AnyActor,
    supervises: bool,
    props: P,
) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
where
    P: IntoProps,
    P::Actor: Send,
    P::Factory: Send,
    MsgOf<P>: Send,
{
    let name = format!("${}", parent.system().next_name());
    // SAFETY: by the bounds.
    unsafe { spawn_named(parent, supervises, Placement::Dispatcher, &name, props) }
}

/// Spawns an actor below `parent`.
///
/// # Safety
///
/// For [`Placement::Dispatcher`] actor, factory and messages are `Send`; for [`Placement::Here`]
/// this is the thread of the executor, if it has only one; for [`Placement::On`] factory and
/// messages are `Send`, and the executor has one thread.
pub(crate) unsafe fn spawn<P: IntoProps>(
    parent: &AnyActor,
    supervises: bool,
    placement: Placement,
    name: &str,
    props: P,
) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>> {
    if let Err(reason) = path::check_name(name) {
        let name = name.chars().take(path::NAME_LEN_MAX).collect();
        return Err(SpawnError::new(SpawnErrorKind::InvalidName { name, reason }, props));
    }
    // SAFETY: by the contract.
    unsafe { spawn_named(parent, supervises, placement, name, props) }
}

/// As [`spawn`], for names that only the system may use.
///
/// # Safety
///
/// As there.
pub(crate) unsafe fn spawn_named<P: IntoProps>(
    parent: &AnyActor,
    supervises: bool,
    placement: Placement,
    name: &str,
    props: P,
) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>> {
    let system = parent.system();
    let (chosen, dispatcher) = match choose_executor(parent, placement, &props) {
        Ok(chosen) => chosen,
        Err(kind) => return Err(SpawnError::new(kind, props)),
    };
    // A clone of the default executor's handle would be an unnecessary reference count.
    let executor = chosen.as_ref().unwrap_or_else(|| system.default_executor());
    let path = parent.path.child_in(name, system.memory());
    let Some(children) = parent.children_or_new() else {
        return Err(SpawnError::new(SpawnErrorKind::Stopping, props));
    };
    let reserved = match children::reserve(children, &path) {
        Ok(index) => NameReservation { parent, children, index },
        Err(refused) => return Err(SpawnError::new(kind_of(refused, path), props)),
    };
    if parent.has_hooks {
        drop(parent.send_internal(InternalMessage::Starting(path.clone())));
    }
    let (mut props, mut is_closed) = (Some(props), false);
    // SAFETY: by the contract. Before its first poll the cell has no actor, only factory and
    // settings; all polls, and the drop of an actor that was created, happen on the executor's
    // thread.
    let started = unsafe {
        custom_task::start::<Cell<P::Actor, P::Factory>>(
            executor.executor(),
            || {
                let props = props.take().expect("it is asked for once").into_props();
                build_cell(parent, supervises, executor, path, props)
            },
            |cell| {
                let child = crate::actor_ref::untyped(cell.clone());
                let in_order = parent.starts_children_in_order;
                let fill = |all: &mut Children| all.fill(reserved.index, child, in_order);
                (is_closed, _) = children.with(fill);
            },
        )
    };
    match started {
        Ok(cell) => {
            mem::forget(reserved);
            system.spawned(cell.pid());
            system.actor_started_on(dispatcher);
            let cell = ActorRef::from_cell(cell);
            if is_closed {
                // The parent may have missed it when it stopped its children.
                cell.any().wake_with(STOP);
            }
            Ok(cell)
        }
        Err(refused) => {
            drop(reserved);
            let kind = match refused {
                CustomStartError::Full => SpawnErrorKind::Full,
                CustomStartError::Stopping => SpawnErrorKind::Stopping,
            };
            Err(SpawnError::new(kind, props.expect("nothing was made of it")))
        }
    }
}

/// A name that is reserved for a child which is being created. Its drop releases the name, for
/// example if user code that creates the child panics.
struct NameReservation<'p> {
    parent: &'p AnyActor,
    children: &'p SpinLock<Children>,
    index: u32,
}

impl Drop for NameReservation<'_> {
    fn drop(&mut self) {
        let cancel = |children: &mut Children| (children.cancel(self.index), children.is_closed);
        let (_, is_closed) = self.children.with(cancel);
        if is_closed {
            // The parent may wait for this name to be released.
            self.parent.wake();
        }
    }
}

fn kind_of(refused: NotReserved, path: crate::ActorPath) -> SpawnErrorKind {
    match refused {
        NotReserved::Taken => SpawnErrorKind::NameTaken(path),
        NotReserved::Closed => SpawnErrorKind::Stopping,
        NotReserved::Full => SpawnErrorKind::Full,
    }
}

/// The executor that the actor runs on, none if that is the default one, and the number of its
/// dispatcher, if one was chosen.
fn choose_executor<P: IntoProps>(
    parent: &AnyActor,
    placement: Placement,
    props: &P,
) -> Result<(Option<Handle>, DispatcherId), SpawnErrorKind> {
    let system = parent.system();
    let settings = props.peek_settings();
    let dispatcher = settings.as_ref().map_or(DispatcherId::DEFAULT, |one| one.dispatcher);
    if let Some(why) = settings.and_then(|settings| settings.invalid) {
        return Err(SpawnErrorKind::InvalidProps(why));
    }
    let chosen = match placement {
        Placement::Here(handle) if !handle.is_local() => return Err(SpawnErrorKind::NotLocal),
        Placement::Here(handle) | Placement::On(handle) => (Some(handle), DispatcherId::DEFAULT),
        Placement::Dispatcher if dispatcher == DispatcherId::DEFAULT => (None, dispatcher),
        Placement::Dispatcher => {
            let handle = system.executor(dispatcher).ok_or(SpawnErrorKind::NoDispatcher)?;
            (Some(handle), dispatcher)
        }
    };
    if system.is_sealed() { Err(SpawnErrorKind::Sealed) } else { Ok(chosen) }
}

fn build_cell<A: Actor, F: FnMut() -> A + 'static>(
    parent: &AnyActor,
    supervises: bool,
    executor: &Handle,
    path: crate::ActorPath,
    props: props::Props<A, F>,
) -> (ActorShared<A::Msg>, Cell<A, F>) {
    let (factory, settings) = props.into_parts();
    let mailbox = settings.as_ref().map_or(props::Mailbox::DEFAULT, |settings| settings.mailbox);
    let limit = executor.limits().messages_max();
    let capacity = mailbox.capacity().map_or(limit, |capacity| capacity.min(limit));
    let capacity = capacity.clamp(1, CAPACITY_MAX);
    // SAFETY: the new cell keeps the parent's cell alive.
    let mut header = unsafe {
        ActorHeader::new(path, Some(parent.clone()), parent.system_ptr(), mailbox.on_overflow())
    };
    let mut settings = settings;
    if let Some(settings) = &mut settings {
        let children = settings.children.as_ref();
        header.has_hooks = children.is_some_and(|(_, strategy)| strategy.has_hooks());
        header.may_restart_children = children.is_some_and(|(_, strategy)| strategy.may_restart());
        // The children of a guardian are independent of each other, unless its scope says that
        // they are not. Its parent is the root.
        header.starts_children_in_order = children
            .is_some_and(|(scope, _)| *scope != Scope::OneForOne || parent.parent.is_some());
        if let Some(sink) = settings.sink.take() {
            let sink = Arc::new(Escalations::new(sink, ESCALATIONS_MAX));
            let children = header.children_or_new().expect("it has not begun to stop");
            children.with(|children| children.sink = Some(sink));
        }
    }
    if parent.may_restart_children {
        // The child sends a report if it fails, and must not need memory for that.
        header.parent_link_or_new();
    }
    let mut cell = Cell::new(factory, settings, supervises);
    cell.state.set(HAS_SPANS, has_spans(&header));
    (ActorShared::new(header, capacity), cell)
}

/// The same actor, if it accepts messages of this type.
pub(crate) fn typed<M: 'static>(actor: &AnyActor) -> Option<ActorRef<M>> {
    if actor.kind() != Some(TypeId::of::<M>()) {
        return None;
    }
    // SAFETY: its kind is the type of its messages, so its shared part is of this type.
    let cell = unsafe { CustomTaskRef::<ActorShared<M>>::from_raw(actor.clone().into_raw()) };
    Some(ActorRef::from_cell(cell))
}

/// The actor at a path below `top`, by the names from there on.
pub(crate) fn find(top: &AnyActor, names: &[&str]) -> Option<AnyActor> {
    let mut found = top.clone();
    for name in names {
        let next = found.children()?.with(|children| children.get(name)?.child().cloned())?;
        found = next;
    }
    Some(found)
}

/// An actor and all of its descendants, for reports.
pub(crate) fn descendants(top: &AnyActor) -> Vec<AnyActor> {
    first_descendants(top, usize::MAX)
}

/// As [`descendants`], but at most `actors_max` of them.
pub(crate) fn first_descendants(top: &AnyActor, actors_max: usize) -> Vec<AnyActor> {
    let mut all = Vec::new();
    let mut open = Vec::from([top.clone()]);
    while all.len() < actors_max
        && let Some(next) = open.pop()
    {
        if let Some(children) = next.children() {
            let rest = actors_max - all.len();
            let mut found = read_some(children, Direction::OldestFirst, Start::Begin, rest);
            found.reverse();
            open.append(&mut found);
        }
        all.push(next);
    }
    all
}
