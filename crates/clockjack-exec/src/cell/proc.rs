//! A process in its cell: mail, events, the step.
#![expect(unsafe_code, reason = "the runner has the body of the cell to itself")]

use alloc::{boxed::Box, collections::VecDeque};
use core::{any::type_name, fmt, mem::ManuallyDrop, ptr::NonNull};

use clockjack_sync::{
    mpsc::{Boxed, Node, Pop, Queue},
    mutant,
    prim::UnsafeCell,
};
use clockjack_time::TimerInstant;

use super::{CellRef, Ending, Head, Joinable, Next, VTable, Verdict};
use crate::{
    command::Request,
    engine::Engine,
    engine_ref::EngineRef,
    error::SendError,
    exit::Exit,
    failure::{Coded, Failure},
    payload::Payload,
    pid::Pid,
    process::{ErasedProcess, Event, Process, Status, StepOutput, Upgrade},
    registry::Slot,
    state::Waiting,
    ties::{self, Told},
};

/// After how many events the time that a step has used is looked at.
const EVENTS_PER_LOOK: usize = 8;

/// The process that was to go on as another one has another message type.
pub(crate) static OTHER_MESSAGES: Coded =
    Coded::new(9, "the process to go on as has another message type");

/// The front of a process's cell: what whoever knows the message type can reach.
#[repr(C)]
pub(crate) struct Front<M> {
    front: Joinable,
    mail: Queue<Boxed<M>>,
}

/// The cell of a process.
#[repr(C)]
struct ProcCell<P: Process> {
    front: Front<P::Message>,
    body: UnsafeCell<Body<P>>,
}

struct Body<P: Process> {
    process: Current<P>,
    out: StepOutput,
    /// What the system told and the process has not taken yet.
    told: VecDeque<Told>,
    /// Commands of the last step; taken one by one.
    requests: VecDeque<Request>,
    result: Option<Result<Payload, Exit>>,
}

enum Current<P: Process> {
    First(P),
    Later(Box<dyn ErasedProcess<P::Message>>),
    Gone,
}

impl<P: Process> Current<P> {
    fn step(
        &mut self,
        events: &mut Events<'_, P::Message>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        match self {
            Self::First(process) => process.step(events, out),
            Self::Later(process) => process.step(events, out),
            Self::Gone => Ok(()),
        }
    }

    fn close(&mut self) {
        match self {
            Self::First(process) => process.close(),
            Self::Later(process) => process.close(),
            Self::Gone => {}
        }
    }
}

/// Makes the cell of a process; its references are not counted yet.
pub(crate) fn new<P: Process>(
    engine: EngineRef,
    slot: NonNull<Slot>,
    process: P,
    messages_max: usize,
) -> NonNull<Head> {
    let head = Head::new(engine, slot, Table::<P>::TABLE, false);
    let body = UnsafeCell::new(Body {
        process: Current::First(process),
        out: StepOutput::default(),
        told: VecDeque::new(),
        requests: VecDeque::new(),
        result: None,
    });
    let front = Front { front: Joinable::new(head), mail: Queue::bounded(messages_max) };
    NonNull::from(Box::leak(Box::new(ProcCell { front, body }))).cast()
}

/// Sends a message.
///
/// # Safety
///
/// The cell is that of a process with this message type.
pub(crate) unsafe fn tell<M: 'static>(cell: &CellRef, message: M) -> Result<(), SendError<M>> {
    // SAFETY: by the contract; the front is the first field of the `repr(C)` cell.
    let front = unsafe { cell.as_ptr().cast::<Front<M>>().as_ref() };
    match front.mail.push(Node::new(message)) {
        Ok(()) => {
            front.front.head.wake();
            Ok(())
        }
        Err(refused) if refused.is_full() => {
            Err(SendError::full(refused.into_inner().into_value()))
        }
        Err(refused) => Err(SendError::stopped(refused.into_inner().into_value())),
    }
}

struct Table<P>(P);

impl<P: Process> Table<P> {
    const TABLE: &'static VTable = &VTable {
        step: step::<P>,
        next_request: next_request::<P>,
        close: close::<P>,
        drop_body: drop_body::<P>,
        store: store::<P>,
        drop_output: keep_output,
        take_output: take_output::<P>,
        deliver: deliver::<P>,
        free: free::<P>,
        name: type_name::<P>,
        panicked: None,
        custom: None,
    };
}

/// # Safety
///
/// The head is that of a `ProcCell<P>`.
unsafe fn cell<P: Process>(head: &Head) -> &ProcCell<P> {
    // SAFETY: the head is the first field of the first field of a `repr(C)` cell of this type.
    unsafe { &*core::ptr::from_ref(head).cast::<ProcCell<P>>() }
}

/// # Safety
///
/// The head is that of a `ProcCell<P>`, and the caller is the one that the state word lets touch
/// the body; the borrow ends before anybody else is.
#[expect(clippy::mut_from_ref, reason = "the state word says whose the body is")]
unsafe fn body<P: Process>(head: &Head) -> &mut Body<P> {
    // SAFETY: by the contract.
    let cell = unsafe { cell::<P>(head) };
    // SAFETY: the caller is the only one that touches the body.
    cell.body.with_mut(|body| unsafe { &mut *body })
}

unsafe fn step<P: Process>(head: NonNull<Head>, engine: &Engine) -> Verdict {
    // SAFETY: the runner has the life of the process, also after this.
    let head = unsafe { head.as_ref() };
    // SAFETY: the caller is the runner.
    let body = unsafe { body::<P>(head) };
    if !head.lane.is_empty() {
        let told = &mut body.told;
        if let Err(exit) = ties::take_signals(head, engine, |event| told.push_back(event)) {
            return Verdict::End(Ending::Exit(exit));
        }
    }
    // SAFETY: the caller gave a head of this type.
    let mail = unsafe { &cell::<P>(head).front.mail };
    let mut events = Events {
        told: &mut body.told,
        mail,
        head,
        engine,
        left: engine.limits().throughput_max(),
        until: None,
        is_cut: false,
    };
    body.out.status = Status::Continue;
    let stepped = body.process.step(&mut events, &mut body.out);
    let is_cut = events.is_cut;
    if let Some(traps) = body.out.trap_links.take() {
        ties::trap_links(head, traps);
    }
    let mut requests = core::mem::take(&mut body.out.requests);
    if let Err(failure) = stepped {
        // Dropped with the rest of the body, one by one.
        body.requests.extend(requests);
        return Verdict::End(Ending::Exit(Exit::failed(failure)));
    }
    let status = core::mem::take(&mut body.out.status);
    match status {
        Status::Done(result) => {
            body.requests.extend(requests);
            return Verdict::End(Ending::Result(result));
        }
        Status::Upgrade(upgrade) => {
            requests.into_iter().for_each(|request| engine.drop_contained(request));
            return go_on_as(head, engine, body, upgrade);
        }
        _ => {}
    }
    if !requests.is_empty() {
        body.requests.extend(requests.drain(..));
        // The room is used again by the next step.
        body.out.requests = requests;
        return Verdict::Dispatch(if is_cut { Next::Again } else { Next::Wait });
    }
    body.out.requests = requests;
    match status {
        // What the budget, or a sender in the middle of its push, kept from the process is still
        // there, and nobody notifies a second time about it.
        _ if is_cut => Verdict::Again,
        Status::Wait => Verdict::Wait(Waiting::Blocked),
        Status::Idle => Verdict::Wait(Waiting::Idle),
        _ => Verdict::Again,
    }
}

fn go_on_as<P: Process>(
    head: &Head,
    engine: &Engine,
    body: &mut Body<P>,
    upgrade: Upgrade,
) -> Verdict {
    let Upgrade { process, method, input } = upgrade;
    let Ok(mut process) = process.downcast::<Box<dyn ErasedProcess<P::Message>>>() else {
        return Verdict::End(Ending::Exit(Exit::failed(OTHER_MESSAGES.failure())));
    };
    // Taken out first, so that it is closed once, whatever it does then.
    let mut old = core::mem::replace(&mut body.process, Current::Gone);
    old.close();
    drop(old);
    head.word.upgrade();
    for told in core::mem::take(&mut body.told) {
        match told {
            // Was meant for the old process.
            Told::Complete { result, .. } => engine.drop_contained(result),
            told => body.told.push_back(told),
        }
    }
    let result = process.init(head.pid(), method, input);
    body.process = Current::Later(process);
    match result {
        Ok(()) => Verdict::Again,
        Err(failure) => Verdict::End(Ending::Exit(Exit::failed(failure))),
    }
}

unsafe fn next_request<P: Process>(head: &Head) -> Option<Request> {
    // SAFETY: the caller is the runner.
    unsafe { body::<P>(head) }.requests.pop_front()
}

unsafe fn close<P: Process>(head: &Head) {
    // SAFETY: the caller gave a head of this type.
    unsafe { cell::<P>(head) }.front.mail.close();
    // SAFETY: the caller is the runner.
    unsafe { body::<P>(head) }.process.close();
}

unsafe fn drop_body<P: Process>(head: &Head) {
    // SAFETY: the caller is the runner.
    let body = unsafe { body::<P>(head) };
    if mutant!("proc-closes-twice") {
        body.process.close();
    }
    body.process = Current::Gone;
    // One by one: of two that panic in one drop the second would abort.
    while body.told.pop_front().is_some() {}
    while body.requests.pop_front().is_some() {}
    while body.out.requests.pop().is_some() {}
    body.out = StepOutput::default();
    // SAFETY: the caller gave a head of this type.
    let mail = unsafe { &cell::<P>(head).front.mail };
    mail.close();
    // What a sender is about to finish pushing is dropped with the cell. Messages that are not
    // `Send` are pushed by this thread only, so none of those is left.
    // SAFETY: the runner is the only consumer.
    while let Pop::Item(message) = unsafe { mail.pop() } {
        drop(message);
    }
}

unsafe fn store<P: Process>(head: &Head, ending: Ending) {
    let result = match ending {
        Ending::Kept => return,
        Ending::Result(result) => Ok(result),
        Ending::Exit(exit) => Err(exit),
    };
    // SAFETY: the caller is the runner.
    unsafe { body::<P>(head) }.result = Some(result);
}

/// A result of a process stays until the last reference goes: it may be asked for at any time.
unsafe fn keep_output(_: &Head) {}

unsafe fn take_output<P: Process>(head: &Head, into: *mut ()) {
    let into = into.cast::<Option<Result<Payload, Exit>>>();
    // SAFETY: the output is the caller's.
    let result = unsafe { body::<P>(head) }.result.take();
    // SAFETY: the caller gave the address of such an option.
    unsafe { *into = result };
}

unsafe fn deliver<P: Process>(head: &Head, message: Payload) -> Result<(), SendError<Payload>> {
    let message = message.downcast::<P::Message>().map_err(SendError::wrong_type)?;
    // SAFETY: the caller gave a head of this type.
    let front = unsafe { &cell::<P>(head).front };
    match front.mail.push(Node::new(message)) {
        Ok(()) => {
            head.wake();
            Ok(())
        }
        Err(refused) => {
            let is_full = refused.is_full();
            let message = refused.into_inner().into_value();
            // SAFETY: the message came out of a payload, so its type is `Send`.
            let message = unsafe { Payload::new_unchecked(message) };
            Err(if is_full { SendError::full(message) } else { SendError::stopped(message) })
        }
    }
}

unsafe fn free<P: Process>(head: NonNull<Head>) -> EngineRef {
    // SAFETY: the caller has the last reference, so the cell is alive.
    let last = unsafe { head.as_ref() };
    // SAFETY: the cell is of this type, and this thread's alone.
    unsafe { drop_rest::<P>(last) };
    // SAFETY: the cell was boxed by `new` with this type, and the caller has its last reference.
    let mut cell = unsafe { Box::from_raw(head.cast::<ProcCell<P>>().as_ptr()) };
    debug_assert!(cell.front.front.head.word.is_complete(), "a process that is alive was freed");
    // SAFETY: the cell is dropped without looking at the field again.
    unsafe { ManuallyDrop::take(&mut cell.front.front.head.engine) }
}

/// Drops the result that nobody took, and messages whose senders were in the middle of their push
/// when the process ended.
///
/// # Safety
///
/// The head is that of a `ProcCell<P>`, and the caller has its last reference.
unsafe fn drop_rest<P: Process>(head: &Head) {
    // SAFETY: nobody else has the cell any more.
    if let Some(result) = unsafe { body::<P>(head) }.result.take() {
        head.engine.drop_contained(result);
    }
    // SAFETY: the caller gave a head of this type.
    let mail = unsafe { &cell::<P>(head).front.mail };
    // SAFETY: nobody else has the cell any more, so this is the only consumer.
    while let Pop::Item(message) = unsafe { mail.pop() } {
        head.engine.drop_contained(message);
    }
}

/// What has happened to a process since its last step: a cursor that hands events out one by one.
///
/// What is not taken stays, in order, for the next step. It ends after as many events as the
/// executor's limits allow in one step, or when the time for a step is used up; then the process
/// is stepped again soon.
pub struct Events<'e, M> {
    told: &'e mut VecDeque<Told>,
    mail: &'e Queue<Boxed<M>>,
    head: &'e Head,
    engine: &'e Engine,
    left: usize,
    /// When the time for this step is over; not known before it is looked at.
    until: Option<u64>,
    is_cut: bool,
}

impl<M> Events<'_, M> {
    /// The process that is stepped.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.head.pid()
    }

    /// The time, read now.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.engine.now()
    }

    /// How many events wait, about: others may send meanwhile.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.told.len() + self.mail.len()
    }

    /// Whether the step may go on.
    fn has_time(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        if self.left.is_multiple_of(EVENTS_PER_LOOK) {
            let now = self.engine.nanos();
            match self.until {
                None => self.until = Some(now.saturating_add(self.engine.step_budget_nanos())),
                Some(until) if now >= until => return false,
                Some(_) => {}
            }
        }
        true
    }
}

impl<M> Iterator for Events<'_, M> {
    type Item = Event<M>;

    fn next(&mut self) -> Option<Event<M>> {
        if self.told.is_empty() && self.mail.is_empty() {
            return None;
        }
        if !self.has_time() {
            self.is_cut = true;
            return None;
        }
        if let Some(told) = self.told.pop_front() {
            self.left -= 1;
            return Some(told.into());
        }
        // SAFETY: the cursor exists only during a step, so this is the runner, the only consumer.
        match unsafe { self.mail.pop() } {
            Pop::Item(message) => {
                self.left -= 1;
                Some(Event::Message(message.into_value()))
            }
            Pop::Empty => None,
            Pop::Busy => {
                self.is_cut = true;
                None
            }
        }
    }
}

impl<M> fmt::Debug for Events<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}
