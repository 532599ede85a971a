//! The task of a process: its mailbox, its events, its step.
#![expect(unsafe_code, reason = "the runner has the body of the cell to itself")]

use alloc::{boxed::Box, collections::VecDeque};
use core::{any::type_name, fmt, mem::ManuallyDrop, ptr::NonNull};

use clockjack_sync::{
    mail::{Mailbox, Pop},
    primitive::UnsafeCell,
};
use clockjack_time::TimerInstant;

use super::{
    AfterDispatch, Header, HeaderRef, JoinableHeader, PollOutcome, TaskRef, TaskResult, VTable,
};
use crate::{
    command::Request,
    error::SendError,
    executor::ExecutorShared,
    executor_ref::ExecutorRef,
    exit::JoinError,
    failure::{Failure, StaticError},
    payload::Payload,
    pid::Pid,
    process::links::{self, ReceivedSignal},
    process::{ErasedProcess, Event, Process, Status, StepOutput, Upgrade},
    registry::Slot,
    state::WaitKind,
};

/// After how many events a step reads the clock to check its time budget.
const EVENTS_PER_CLOCK_READ: usize = 8;

/// A process was to be upgraded to one that has another message type.
pub(crate) static OTHER_MESSAGE_TYPE: StaticError =
    StaticError::new(9, "the new process has another message type");

/// The part of a process's cell that is reachable with the message type alone.
#[repr(C)]
pub(crate) struct ProcessShared<M> {
    joinable: JoinableHeader,
    mailbox: Mailbox<M>,
}

impl<M> ProcessShared<M> {
    /// # Safety
    ///
    /// The header is that of a process with this message type.
    unsafe fn of(header: HeaderRef<'_>) -> &Self {
        // SAFETY: by the contract; the shared part is the first field of the `repr(C)` cell, and
        // the pointer is that of the whole cell.
        unsafe { header.as_ptr().cast::<Self>().as_ref() }
    }

    /// Appends a message and wakes the process.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of).
    unsafe fn push(header: HeaderRef<'_>, message: M) -> Result<(), SendError<M>> {
        // SAFETY: by the contract.
        match unsafe { Self::of(header) }.mailbox.push(message) {
            // The state of the task decides who queues it, and not the mailbox: a process is also
            // woken by signals, and its mailbox is never asked to report a wake-up.
            Ok(_) => {
                header.wake();
                Ok(())
            }
            Err(refused) if refused.is_full() => Err(SendError::full(refused.into_inner())),
            Err(refused) => Err(SendError::stopped(refused.into_inner())),
        }
    }
}

/// The cell of a process.
#[repr(C)]
struct ProcessCell<P: Process> {
    shared: ProcessShared<P::Message>,
    body: UnsafeCell<ProcessBody<P>>,
}

struct ProcessBody<P: Process> {
    process: CurrentProcess<P>,
    out: StepOutput,
    /// Signals that the process has not taken yet.
    received: VecDeque<ReceivedSignal>,
    /// Commands of the last step; taken one by one.
    requests: VecDeque<Request>,
    result: Option<Result<Payload, JoinError>>,
}

enum CurrentProcess<P: Process> {
    Original(P),
    Upgraded(Box<dyn ErasedProcess<P::Message>>),
    Dropped,
}

impl<P: Process> CurrentProcess<P> {
    fn step(
        &mut self,
        events: &mut Events<'_, P::Message>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        match self {
            Self::Original(process) => process.step(events, out),
            Self::Upgraded(process) => process.step(events, out),
            Self::Dropped => Ok(()),
        }
    }

    fn close(&mut self) {
        match self {
            Self::Original(process) => process.close(),
            Self::Upgraded(process) => process.close(),
            Self::Dropped => {}
        }
    }
}

/// Creates the cell of a process; its references are not counted yet.
pub(crate) fn new<P: Process>(
    executor: ExecutorRef,
    slot: NonNull<Slot>,
    process: P,
    messages_max: usize,
) -> NonNull<Header> {
    let header = Header::new(executor, slot, VTableOf::<P>::TABLE, false);
    let body = UnsafeCell::new(ProcessBody {
        process: CurrentProcess::Original(process),
        out: StepOutput::default(),
        received: VecDeque::new(),
        requests: VecDeque::new(),
        result: None,
    });
    let shared = ProcessShared {
        joinable: JoinableHeader::new(header),
        mailbox: Mailbox::new(messages_max),
    };
    NonNull::from(Box::leak(Box::new(ProcessCell { shared, body }))).cast()
}

/// Sends a message.
///
/// # Safety
///
/// The cell is that of a process with this message type.
pub(crate) unsafe fn tell<M: 'static>(task: &TaskRef, message: M) -> Result<(), SendError<M>> {
    // SAFETY: by the contract.
    unsafe { ProcessShared::push(task.header(), message) }
}

struct VTableOf<P>(P);

impl<P: Process> VTableOf<P> {
    const TABLE: &'static VTable = &VTable {
        poll: poll::<P>,
        next_request: next_request::<P>,
        close: close::<P>,
        drop_body: drop_body::<P>,
        store: store::<P>,
        drop_output: keep_output,
        take_output: take_output::<P>,
        deliver: deliver::<P>,
        free: free::<P>,
        name: type_name::<P>,
        is_future: false,
        on_panic: None,
        custom: None,
    };
}

/// # Safety
///
/// The header is that of a `ProcessCell<P>`.
unsafe fn cell<P: Process>(header: HeaderRef<'_>) -> &ProcessCell<P> {
    // SAFETY: the header is the first field of the first field of a `repr(C)` cell of this type,
    // and the pointer is that of the whole cell.
    unsafe { header.as_ptr().cast::<ProcessCell<P>>().as_ref() }
}

/// # Safety
///
/// The header is that of a `ProcessCell<P>`, and the state lets the caller, and nobody else, touch
/// the body; the borrow ends before that changes.
unsafe fn body<P: Process>(header: HeaderRef<'_>) -> &mut ProcessBody<P> {
    // SAFETY: by the contract.
    let task = unsafe { cell::<P>(header) };
    // SAFETY: the caller is the only one that touches the body.
    task.body.with_mut(|body| unsafe { &mut *body })
}

unsafe fn poll<P: Process>(header: NonNull<Header>, executor: &ExecutorShared) -> PollOutcome {
    // SAFETY: the runner holds the task's own reference, also after this.
    let header = unsafe { HeaderRef::new(header) };
    // SAFETY: the caller is the runner.
    let body = unsafe { body::<P>(header) };
    let mut has_more_signals = false;
    if links::has_signals(header) {
        let received = &mut body.received;
        match links::take_signals(header, executor, |event| received.push_back(event)) {
            Ok(has_more) => has_more_signals = has_more,
            Err(error) => return PollOutcome::Finished(TaskResult::Error(error)),
        }
    }
    // SAFETY: the caller gave a header of this type.
    let mailbox = unsafe { &cell::<P>(header).shared.mailbox };
    let mut events = Events {
        received: &mut body.received,
        mailbox,
        header,
        executor,
        left: executor.limits().throughput_max(),
        until: None,
        is_truncated: false,
    };
    body.out.status = Status::Continue;
    let stepped = body.process.step(&mut events, &mut body.out);
    let is_truncated = events.is_truncated || has_more_signals;
    // An idle mailbox takes its next message into the inline slot: a process that handles one
    // message at a time needs no heap memory for messages. It does not matter whether this
    // succeeds.
    // SAFETY: the runner is the only consumer.
    let _ = unsafe { mailbox.try_idle() };
    if let Some(traps) = body.out.trap_links.take() {
        links::trap_links(header, traps);
    }
    let mut requests = core::mem::take(&mut body.out.requests);
    if let Err(failure) = stepped {
        // Dropped with the rest of the body, one by one.
        body.requests.extend(requests);
        return PollOutcome::Finished(TaskResult::Error(JoinError::failed(failure)));
    }
    let status = core::mem::take(&mut body.out.status);
    match status {
        Status::Done(result) => {
            body.requests.extend(requests);
            return PollOutcome::Finished(TaskResult::Output(result));
        }
        Status::Upgrade(upgrade) => {
            requests.into_iter().for_each(|request| executor.drop_catching_panic(request));
            return upgrade_process(header, executor, body, upgrade);
        }
        _ => {}
    }
    if !requests.is_empty() {
        body.requests.extend(requests.drain(..));
        // The next step reuses the allocation.
        body.out.requests = requests;
        return PollOutcome::DispatchCommands(if is_truncated {
            AfterDispatch::PollAgain
        } else {
            AfterDispatch::Wait
        });
    }
    body.out.requests = requests;
    match status {
        // The budget, or a sender in the middle of its push, has kept events or signals from the
        // process. They are still there, and nobody notifies a second time about them.
        _ if is_truncated => PollOutcome::PollAgain,
        Status::Wait => PollOutcome::Wait(WaitKind::Blocked),
        Status::Idle => PollOutcome::Wait(WaitKind::Idle),
        _ => PollOutcome::PollAgain,
    }
}

fn upgrade_process<P: Process>(
    header: HeaderRef<'_>,
    executor: &ExecutorShared,
    body: &mut ProcessBody<P>,
    upgrade: Upgrade,
) -> PollOutcome {
    let Upgrade { process, method, input } = upgrade;
    let Ok(mut process) = process.downcast::<Box<dyn ErasedProcess<P::Message>>>() else {
        return PollOutcome::Finished(TaskResult::Error(JoinError::failed(
            OTHER_MESSAGE_TYPE.failure(),
        )));
    };
    // Taken out first, so that it is closed once, even if that panics.
    let mut old = core::mem::replace(&mut body.process, CurrentProcess::Dropped);
    old.close();
    drop(old);
    header.state.upgrade();
    for received in core::mem::take(&mut body.received) {
        match received {
            // This completion was for the old process.
            ReceivedSignal::Complete { result, .. } => executor.drop_catching_panic(result),
            received => body.received.push_back(received),
        }
    }
    let result = process.init(header.pid(), method, input);
    body.process = CurrentProcess::Upgraded(process);
    match result {
        Ok(()) => PollOutcome::PollAgain,
        Err(failure) => PollOutcome::Finished(TaskResult::Error(JoinError::failed(failure))),
    }
}

unsafe fn next_request<P: Process>(header: HeaderRef<'_>) -> Option<Request> {
    // SAFETY: the caller is the runner.
    unsafe { body::<P>(header) }.requests.pop_front()
}

unsafe fn close<P: Process>(header: HeaderRef<'_>) {
    // SAFETY: the caller gave a header of this type.
    unsafe { cell::<P>(header) }.shared.mailbox.close();
    // SAFETY: the caller is the runner.
    unsafe { body::<P>(header) }.process.close();
}

unsafe fn drop_body<P: Process>(header: HeaderRef<'_>) {
    // SAFETY: the caller is the runner.
    let body = unsafe { body::<P>(header) };
    body.process = CurrentProcess::Dropped;
    // One by one: if two values panicked in one drop, the second panic would abort the program.
    while body.received.pop_front().is_some() {}
    while body.requests.pop_front().is_some() {}
    while body.out.requests.pop().is_some() {}
    body.out = StepOutput::default();
    // SAFETY: the caller gave a header of this type.
    let mailbox = unsafe { &cell::<P>(header).shared.mailbox };
    mailbox.close();
    // A message whose sender is about to finish its push is dropped with the cell. Messages that
    // are not `Send` are pushed by this thread only, so none of those is left.
    // SAFETY: the runner is the only consumer.
    while let Pop::Item(message) = unsafe { mailbox.pop() } {
        drop(message);
    }
}

unsafe fn store<P: Process>(header: HeaderRef<'_>, ending: TaskResult) {
    let result = match ending {
        TaskResult::Stored => return,
        TaskResult::Output(result) => Ok(result),
        TaskResult::Error(error) => Err(error),
    };
    // SAFETY: the caller is the runner.
    unsafe { body::<P>(header) }.result = Some(result);
}

/// The result of a process is kept until the last reference is released: a caller may ask for it at
/// any time.
unsafe fn keep_output(_: HeaderRef<'_>) {}

unsafe fn take_output<P: Process>(header: HeaderRef<'_>, into: *mut ()) {
    let into = into.cast::<Option<Result<Payload, JoinError>>>();
    // SAFETY: the caller owns the output.
    let result = unsafe { body::<P>(header) }.result.take();
    // SAFETY: the caller gave the address of such an option.
    unsafe { *into = result };
}

unsafe fn deliver<P: Process>(
    header: HeaderRef<'_>,
    message: Payload,
) -> Result<(), SendError<Payload>> {
    let message = message.downcast::<P::Message>().map_err(SendError::wrong_type)?;
    // SAFETY: the caller gave a header of this type.
    let pushed = unsafe { ProcessShared::push(header, message) };
    // SAFETY: the message came out of a payload, so its type is `Send`.
    pushed.map_err(|refused| refused.map(|m| unsafe { Payload::new_unchecked(m) }))
}

unsafe fn free<P: Process>(header: NonNull<Header>) -> ExecutorRef {
    // SAFETY: the caller has the last reference, so the cell is alive.
    let last = unsafe { HeaderRef::new(header) };
    // SAFETY: the cell is of this type, and this thread has it to itself.
    unsafe { drop_remaining::<P>(last) };
    // SAFETY: `new` boxed the cell with this type, and the caller has its last reference.
    let mut cell = unsafe { Box::from_raw(header.cast::<ProcessCell<P>>().as_ptr()) };
    debug_assert!(cell.shared.joinable.header.state.is_complete(), "a live task was freed");
    // SAFETY: the cell is dropped without using the field again.
    unsafe { ManuallyDrop::take(&mut cell.shared.joinable.header.executor) }
}

/// Drops the result that nobody took, and messages whose senders were in the middle of their push
/// when the process ended.
///
/// # Safety
///
/// The header is that of a `ProcessCell<P>`, and the caller has its last reference.
unsafe fn drop_remaining<P: Process>(header: HeaderRef<'_>) {
    // SAFETY: nobody else has the cell any more.
    if let Some(result) = unsafe { body::<P>(header) }.result.take() {
        header.executor.drop_catching_panic(result);
    }
    // SAFETY: the caller gave a header of this type.
    let mailbox = unsafe { &cell::<P>(header).shared.mailbox };
    // SAFETY: nobody else has the cell any more, so this is the only consumer.
    while let Pop::Item(message) = unsafe { mailbox.pop() } {
        header.executor.drop_catching_panic(message);
    }
}

/// The events of a process since its last step: an iterator that returns them one by one.
///
/// Events that a step does not take stay, in order, for the next step. The iterator ends after as
/// many events as the executor's limits allow in one step, or when the time for a step is used up;
/// then the process is stepped again soon.
pub struct Events<'e, M> {
    received: &'e mut VecDeque<ReceivedSignal>,
    mailbox: &'e Mailbox<M>,
    header: HeaderRef<'e>,
    executor: &'e ExecutorShared,
    left: usize,
    /// When the time for this step is over; `None` until the clock is first read.
    until: Option<u64>,
    is_truncated: bool,
}

impl<M> Events<'_, M> {
    /// The pid of the process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.header.pid()
    }

    /// The time, read now.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.executor.now()
    }

    /// How many events wait, approximately: others may send in the meantime.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.received.len() + self.mailbox.len()
    }

    /// Whether the step may take another event.
    fn has_time(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        if self.left.is_multiple_of(EVENTS_PER_CLOCK_READ) {
            let now = self.executor.nanos();
            match self.until {
                None => self.until = Some(now.saturating_add(self.executor.step_budget_nanos())),
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
        if self.received.is_empty() && self.mailbox.is_empty() {
            return None;
        }
        if !self.has_time() {
            self.is_truncated = true;
            return None;
        }
        if let Some(received) = self.received.pop_front() {
            self.left -= 1;
            return Some(received.into());
        }
        // SAFETY: the iterator exists only during a step, so this is the runner, the only consumer.
        match unsafe { self.mailbox.pop() } {
            Pop::Item(message) => {
                self.left -= 1;
                Some(Event::Message(message))
            }
            Pop::Empty => None,
            Pop::Retry => {
                // The sender may be one that this thread has preempted.
                clockjack_sync::backoff::wait(1);
                self.is_truncated = true;
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

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::{sync::Arc, vec, vec::Vec};
    use std::sync::Mutex;

    use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, TickDriver};

    use super::*;
    use crate::{Commands, Limits, LocalExecutor, State, Toolbox};

    struct Bench {
        clock: ManualClock,
        driver: ManualDriver,
    }

    impl Toolbox for Bench {
        fn clock(&self) -> &dyn MonotonicClock {
            &self.clock
        }

        fn driver(&self) -> &dyn TickDriver {
            &self.driver
        }
    }

    /// Writes the messages of each step.
    struct Reader(Arc<Mutex<Vec<Vec<u32>>>>);

    impl Process for Reader {
        type Message = u32;

        fn step(
            &mut self,
            events: &mut Events<'_, u32>,
            out: &mut StepOutput,
        ) -> Result<(), Failure> {
            let message = |event| if let Event::Message(n) = event { Some(n) } else { None };
            self.0.lock().expect("nobody panics").push(events.filter_map(message).collect());
            out.idle();
            Ok(())
        }
    }

    /// The sender is suspended between its claim and its write: the process neither waits for it
    /// nor falls asleep, and takes what is behind the claim as soon as it can.
    #[test]
    fn a_push_that_is_under_way_causes_another_step_and_hides_nothing() {
        let resolution = Resolution::MILLI;
        let bench =
            Bench { clock: ManualClock::new(resolution), driver: ManualDriver::new(resolution) };
        let mut executor =
            LocalExecutor::new(bench, Limits::SMALL, Commands::new()).expect("there is room");
        let steps = Arc::new(Mutex::new(Vec::new()));
        let it = executor.submit(Reader(Arc::clone(&steps))).expect("there is room");
        executor.run_until_idle();
        let take = || core::mem::take(&mut *steps.lock().expect("nobody panics"));
        assert_eq!(take(), [[0_u32; 0]]);
        let handle = executor.handle();
        let task = handle.executor().get(it.pid()).expect("it is live");
        // SAFETY: the messages of this process are numbers.
        let mailbox = unsafe { &ProcessShared::<u32>::of(task.header()).mailbox };
        it.tell(1).expect("there is room");
        let claim = mailbox.claim().expect("there is room");
        it.tell(3).expect("there is room");
        for expected in [vec![1], vec![], vec![]] {
            assert!(executor.step_one(), "it is still scheduled");
            assert_eq!(it.state(), State::Ready);
            assert_eq!(take(), [expected]);
        }
        let _ = claim.write(2);
        executor.run_until_idle();
        assert_eq!(take(), [[2, 3]]);
        assert_eq!(it.state(), State::Idle);
    }
}
