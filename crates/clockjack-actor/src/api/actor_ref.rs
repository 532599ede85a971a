//! [`ActorRef`]: a reference to an actor in one machine word, typed by the messages of the actor.
//!
//! ```text
//!   63 ........................ 1   0
//!  [ address of the cell          | 0 ]   the actor itself
//!  [ address of a mapped block    | 1 ]   an actor behind a function: see `map`
//! ```
//!
//! In a system whose messages have spans, every reference is mapped: its block adds the current
//! span of the sender to the envelope.
//!
//! A cell begins with its header, and the offset of the typed part follows from `M` alone. So a
//! push needs no table of functions; only a mapped ref has one.
#![expect(unsafe_code, reason = "packs two kinds of pointers into one word")]

use alloc::boxed::Box;
use core::{any::Any, fmt, hash, marker::PhantomData, mem::ManuallyDrop, ptr::NonNull};

use clockjack_exec::{Pid, SendError, custom_task::CustomTaskRef};
use clockjack_sync::primitive::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::{
    ActorPath, Overflow, SystemMessage,
    carried_span::{CarriedSpan, has_spans},
    cell::{
        envelope::Envelope,
        header::{ActorHeader, AnyActor, MAILBOX_FULL, SYSTEM_QUEUE, SystemSend as _},
        shared::{Accepted, ActorShared},
    },
    events::DeadLetterReason,
    mailbox::{control::Control, system_queue::InternalMessage},
    send::{DeferredMessage, Enqueued, MappedMessage, MessageInSpan, WaitingMessage},
};

const MAPPED: usize = 1;

/// A reference to an actor that receives messages of type `M`. Dropping a reference does not stop
/// the actor.
///
/// `Send` and `Sync` if and only if `M` is `Send`.
pub struct ActorRef<M> {
    raw: NonNull<()>,
    _message: PhantomData<fn(M)>,
}

const _: () = assert!(size_of::<Option<ActorRef<u8>>>() == size_of::<usize>(), "one word");

// SAFETY: a message that is sent through the reference moves to the thread that runs the actor, so
// `M: Send` is required. The rest is a reference-counted pointer to data that is made for sharing.
unsafe impl<M: Send> Send for ActorRef<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for ActorRef<M> {}

/// What the pointer of a ref refers to.
enum Target<'r, M> {
    Cell(&'r ManuallyDrop<CustomTaskRef<ActorShared<M>>>),
    /// The header, for its table, and the pointer to the whole block, for the functions of the
    /// table.
    Mapped(&'r MappedHeader<M>, NonNull<MappedHeader<M>>),
}

/// The kind of message; control messages overtake user messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    User,
    Control,
}

/// The header of every mapped block for messages of type `N`, with its function table.
///
/// The functions get the pointer to the block, not a reference to its header: the header is only a
/// part of what they access, and a pointer that is derived from a reference to a part must not be
/// used for the rest.
#[repr(C)]
struct MappedHeader<N> {
    count: AtomicUsize,
    /// The reference to the actor, if the block keeps the message as it is.
    plain: PlainFn<N>,
    push: PushFn<N>,
    wait_for_room: WaitForRoomFn<N>,
    any: unsafe fn(NonNull<MappedHeader<N>>) -> NonNull<AnyActor>,
    len: unsafe fn(NonNull<MappedHeader<N>>) -> usize,
    free: unsafe fn(NonNull<MappedHeader<N>>),
}

type PlainFn<N> = unsafe fn(NonNull<MappedHeader<N>>) -> Option<NonNull<ActorRef<N>>>;

type PushFn<N> = unsafe fn(
    NonNull<MappedHeader<N>>,
    MessageKind,
    &mut dyn FnMut() -> Envelope<N>,
) -> Result<(), Refusal>;

type WaitForRoomFn<N> = unsafe fn(
    NonNull<MappedHeader<N>>,
    Box<dyn DeferredMessage<N>>,
    bool,
    &mut dyn Any,
) -> Enqueued;

/// A reference to an actor, and what happens to the messages on their way there.
#[repr(C)]
struct Mapped<N, M, C> {
    header: MappedHeader<N>,
    inner: ActorRef<M>,
    conversion: C,
}

/// What a mapped reference does with a message.
trait Conversion<N, M>: 'static {
    /// The inner reference, if the message stays the same, so that a refused one is returned.
    fn plain(inner: &ActorRef<M>) -> Option<&ActorRef<N>>;

    /// Makes the message that the actor gets, on the thread of the sender.
    fn convert(&self, envelope: Envelope<N>, receiver: &AnyActor) -> Envelope<M>;

    /// The same for a message that waits for room: it is converted when there is room.
    fn defer(
        &self,
        from: Box<dyn DeferredMessage<N>>,
        receiver: &AnyActor,
    ) -> Box<dyn DeferredMessage<M>>;
}

/// Converts by a function of the user.
struct ByFn<F>(F);

impl<N: 'static, M: 'static, F: Fn(N) -> M + Clone + 'static> Conversion<N, M> for ByFn<F> {
    fn plain(_: &ActorRef<M>) -> Option<&ActorRef<N>> {
        None
    }

    fn convert(&self, envelope: Envelope<N>, _: &AnyActor) -> Envelope<M> {
        envelope.map(&self.0)
    }

    fn defer(
        &self,
        from: Box<dyn DeferredMessage<N>>,
        _: &AnyActor,
    ) -> Box<dyn DeferredMessage<M>> {
        Box::new(MappedMessage { from, f: self.0.clone() })
    }
}

/// Adds the current span of the sender.
struct InSpan;

impl<M: 'static> Conversion<M, M> for InSpan {
    fn plain(inner: &ActorRef<M>) -> Option<&ActorRef<M>> {
        Some(inner)
    }

    fn convert(&self, envelope: Envelope<M>, receiver: &AnyActor) -> Envelope<M> {
        envelope.in_current_span(receiver)
    }

    fn defer(
        &self,
        from: Box<dyn DeferredMessage<M>>,
        receiver: &AnyActor,
    ) -> Box<dyn DeferredMessage<M>> {
        let span = CarriedSpan::current(receiver);
        if span.is_none() {
            return from;
        }
        Box::new(MessageInSpan { from, receiver: receiver.clone(), span })
    }
}

/// Why a message was refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    Stopped,
    /// The mailbox was full, and its overflow rule stops the actor.
    Overflowed,
}

impl Refusal {
    fn with<M>(self, msg: M) -> SendError<M> {
        match self {
            Self::Full => SendError::full(msg),
            Self::Stopped | Self::Overflowed => SendError::stopped(msg),
        }
    }
}

impl<M: 'static> ActorRef<M> {
    /// A reference to an actor; a [mapped](Mapped) one if the messages of the actor have spans.
    pub(crate) fn from_cell(cell: CustomTaskRef<ActorShared<M>>) -> Self {
        let has_spans = has_spans(&cell.header);
        let plain = Self { raw: cell.into_raw(), _message: PhantomData };
        if has_spans { Self::from_block(Mapped::new(plain, InSpan)) } else { plain }
    }

    /// A reference to a block.
    fn from_block<T: 'static, C: Conversion<M, T>>(block: Mapped<M, T, C>) -> Self {
        let raw = Box::into_raw(Box::new(block)).cast::<()>().map_addr(|addr| addr | MAPPED);
        // A box is not null.
        Self { raw: NonNull::new(raw).expect("a box is not null"), _message: PhantomData }
    }

    #[inline]
    fn target(&self) -> Target<'_, M> {
        if self.raw.as_ptr().addr() & MAPPED == 0 {
            // SAFETY: a `CustomTaskRef` consists of one pointer and zero-sized markers, so a borrow
            // of the pointer is a valid borrow of a `CustomTaskRef`.
            Target::Cell(unsafe { &*(&raw const self.raw).cast() })
        } else {
            let block = self.raw.as_ptr().map_addr(|addr| addr & !MAPPED);
            let block = NonNull::new(block.cast::<MappedHeader<M>>()).expect("a box is not null");
            // SAFETY: the tag bit says that the pointer refers to a mapped block, and this ref
            // keeps the block alive.
            Target::Mapped(unsafe { block.as_ref() }, block)
        }
    }

    /// The untyped handle of the actor.
    pub(crate) fn any(&self) -> &AnyActor {
        match self.target() {
            // SAFETY: the shared part begins with its header, at the same alignment.
            Target::Cell(cell) => unsafe { &*core::ptr::from_ref(cell).cast::<AnyActor>() },
            Target::Mapped(header, block) => {
                // SAFETY: this ref keeps the block alive, and the function comes from its table.
                let any = unsafe { (header.any)(block) };
                // SAFETY: the handle is in the block.
                unsafe { any.as_ref() }
            }
        }
    }

    /// Sends a message. Never waits.
    ///
    /// # Errors
    ///
    /// Returns the message to the caller if the mailbox is full and its [overflow
    /// rule](crate::Overflow) refuses the message, or if the actor has stopped.
    #[inline]
    pub fn tell(&self, msg: M) -> Result<(), SendError<M>> {
        self.offer(msg).map_err(|refused| self.counted(refused))
    }

    /// As [`tell`](Self::tell), for callers that do something else with a refused message than
    /// return it: the refusal is not counted.
    #[inline]
    pub(crate) fn offer(&self, msg: M) -> Result<(), SendError<M>> {
        match self.target() {
            Target::Cell(cell) => {
                match cell.push(msg) {
                    Ok(Accepted::NoWake) => Ok(()),
                    Ok(Accepted::MustWake) => {
                        // SAFETY: the push has ended the idle state of the cell, so this thread has
                        // to queue the cell.
                        unsafe { cell.schedule() };
                        Ok(())
                    }
                    Err(refused) => {
                        wake_on_overflow(cell);
                        Err(refused)
                    }
                }
            }
            Target::Mapped(..) => self.tell_mapped(MessageKind::User, msg),
        }
    }

    /// Sends a message that overtakes all messages sent by [`tell`](Self::tell). The message needs
    /// no room in the mailbox.
    ///
    /// # Errors
    ///
    /// Returns the message to the caller if the actor has stopped.
    pub fn tell_control(&self, msg: M) -> Result<(), SendError<M>> {
        let sent = match self.target() {
            Target::Cell(cell) => Self::push_control(cell, Envelope::new(msg)),
            Target::Mapped(..) => self.tell_mapped(MessageKind::Control, msg),
        };
        sent.map_err(|refused| self.counted(refused))
    }

    /// Counts a refusal that the sender learns of.
    #[cold]
    pub(crate) fn counted(&self, refused: SendError<M>) -> SendError<M> {
        let actor = self.any();
        actor.system().refused(actor, refused.is_full());
        refused
    }

    /// The actor that this reference points to, if the reference only adds a span.
    fn plain(&self) -> Option<&Self> {
        let Target::Mapped(header, block) = self.target() else { return None };
        // SAFETY: this ref keeps the block alive, and the function comes from its table.
        let plain = unsafe { (header.plain)(block) }?;
        // SAFETY: the reference is in the block.
        Some(unsafe { plain.as_ref() })
    }

    /// Puts a message with attachments into the mailbox.
    fn push_envelope(
        cell: &CustomTaskRef<ActorShared<M>>,
        envelope: Envelope<M>,
    ) -> Result<(), SendError<M>> {
        match cell.push_envelope(envelope) {
            Ok(Accepted::NoWake) => Ok(()),
            Ok(Accepted::MustWake) => {
                // SAFETY: the push has ended the idle state of the cell, so this thread has to
                // queue the cell.
                unsafe { cell.schedule() };
                Ok(())
            }
            Err(refused) => {
                wake_on_overflow(cell);
                Err(cell.send_error(refused))
            }
        }
    }

    fn push_control(
        cell: &CustomTaskRef<ActorShared<M>>,
        envelope: Envelope<M>,
    ) -> Result<(), SendError<M>> {
        let item = Control::Message(envelope);
        // SAFETY: the queue belongs to an actor with this message type.
        match unsafe { cell.header.system_queue.push_control(item) } {
            Ok(()) => {
                cell.header.set_flags(SYSTEM_QUEUE);
                cell.wake();
                Ok(())
            }
            Err(Control::Message(envelope)) => Err(SendError::stopped(envelope.msg)),
            Err(_) => unreachable!("a refused message is returned"),
        }
    }

    #[cold]
    fn tell_mapped(&self, kind: MessageKind, msg: M) -> Result<(), SendError<M>> {
        if let Some(plain) = self.plain()
            && let Target::Cell(cell) = plain.target()
        {
            let envelope = Envelope::new(msg).in_current_span(plain.any());
            return match kind {
                MessageKind::User => Self::push_envelope(cell, envelope),
                MessageKind::Control => Self::push_control(cell, envelope),
            };
        }
        let mut msg = Some(msg);
        let pushed = self.push_lazy(kind, &mut || Envelope::new(msg.take().expect("called once")));
        match (pushed, msg) {
            (Ok(()), _) => Ok(()),
            (Err(refusal), Some(msg)) => Err(refusal.with(msg)),
            (Err(_), None) => unreachable!("a message that was made is not refused"),
        }
    }

    /// Pushes a message that `make` constructs if there is room for it. `make` runs user code, and
    /// runs before the message has a position in the mailbox.
    fn push_lazy(
        &self,
        kind: MessageKind,
        make: &mut dyn FnMut() -> Envelope<M>,
    ) -> Result<(), Refusal> {
        match self.target() {
            Target::Mapped(header, block) => {
                // SAFETY: this ref keeps the block alive, and the function comes from its table.
                unsafe { (header.push)(block, kind, make) }
            }
            Target::Cell(cell) => cell.push_lazy(cell, kind, make),
        }
    }

    /// Sends a system message, which overtakes all other messages. For hosts.
    ///
    /// # Errors
    ///
    /// Returns the message to the caller if the actor has stopped.
    #[expect(clippy::result_large_err, reason = "for hosts; a refused message is returned")]
    pub fn try_send_system(&self, msg: SystemMessage) -> Result<(), SendError<SystemMessage>> {
        match self.any().send_internal(InternalMessage::System(Box::new(msg))) {
            Ok(()) => Ok(()),
            Err(InternalMessage::System(msg)) => Err(SendError::stopped(*msg)),
            Err(_) => unreachable!("a refused message is returned"),
        }
    }

    /// Wraps a message that has to wait for room.
    pub(crate) fn waiting_message(&self, msg: M) -> WaitingMessage<M> {
        match self.target() {
            Target::Cell(_) => WaitingMessage::Ready(msg),
            Target::Mapped(..) => WaitingMessage::Mapped(WaitingMessage::deferred(msg)),
        }
    }

    /// Queues a message until the mailbox has room. If that is refused, the original message is
    /// stored in `back`, which has to be an `Option` of the message's type.
    pub(crate) fn wait_for_room(
        &self,
        message: WaitingMessage<M>,
        is_request: bool,
        back: &mut dyn Any,
    ) -> Enqueued {
        match self.target() {
            Target::Cell(cell) => {
                let waiters = cell.waiters_or_new();
                // SAFETY: called only after a claim has ended the idle state of the cell.
                let queue = || unsafe { cell.schedule() };
                waiters.wait_for_room(message, is_request, back, &|| cell.wake(), &queue)
            }
            // SAFETY: this ref keeps the block alive, and the function comes from its table.
            Target::Mapped(header, block) => unsafe {
                (header.wait_for_room)(block, message.boxed(), is_request, back)
            },
        }
    }

    /// Sends a message with its metadata, by the rules of the mailbox. `make` is called only if
    /// there is room; then the message is accepted.
    pub(crate) fn push_with(&self, make: &mut dyn FnMut() -> Envelope<M>) -> Result<(), Refusal> {
        self.push_lazy(MessageKind::User, make)
    }

    /// Sends a message. If the message is refused, it becomes a dead letter.
    pub fn tell_or_dead_letter(&self, msg: M) {
        if let Err(refused) = self.tell(msg) {
            let reason = if refused.is_full() {
                DeadLetterReason::MailboxFull
            } else {
                DeadLetterReason::Stopped
            };
            let header: &ActorHeader = self.any();
            header.system().dead_letter::<M>(&header.path, reason);
        }
    }

    /// A reference to the same actor for messages of another type. `f` converts each message into
    /// one of the actor's messages. It runs on the thread of the sender, after the mailbox was
    /// found to have room: a refused message is returned unconverted. The message takes its place
    /// in the order when `f` has returned. While `f` runs, the actor handles other messages, and
    /// may stop; if it has stopped, the converted message is a dead letter. If other senders have
    /// filled the mailbox meanwhile, the mailbox accepts the converted message beyond its capacity;
    /// in a sealed system the message is a dead letter then.
    ///
    /// `f` may capture values; it is shared by all clones of the new reference, and cloned for each
    /// message that [waits](Self::send) for room.
    ///
    /// # Examples
    ///
    /// ```
    /// # use clockjack_actor::ActorRef;
    /// enum Msg {
    ///     Tick,
    ///     Line(String),
    /// }
    ///
    /// fn lines(actor: &ActorRef<Msg>) -> (ActorRef<String>, ActorRef<()>) {
    ///     (actor.map(Msg::Line), actor.map(|()| Msg::Tick))
    /// }
    ///
    /// fn numbered(actor: &ActorRef<Msg>, number: u32) -> ActorRef<String> {
    ///     actor.map(move |line: String| Msg::Line(format!("{number}: {line}")))
    /// }
    /// ```
    ///
    /// The messages of the actor must be `Send`: the new reference may move to another thread if
    /// `N` is `Send`, and makes an `M` there.
    #[must_use]
    pub fn map<N: 'static>(&self, f: impl Fn(N) -> M + Clone + Send + Sync + 'static) -> ActorRef<N>
    where
        M: Send,
    {
        ActorRef::from_block(Mapped::new(self.clone(), ByFn(f)))
    }

    /// The process id of the actor. An actor that is later started at the same path has a different
    /// id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.any().pid()
    }

    /// The path of the actor.
    #[must_use]
    pub fn path(&self) -> ActorPath {
        self.any().path.clone()
    }

    /// The approximate number of messages in the mailbox.
    pub(crate) fn mailbox_len(&self) -> usize {
        match self.target() {
            Target::Cell(cell) => cell.mail.len(),
            // SAFETY: this ref keeps the block alive, and the function comes from its table.
            Target::Mapped(header, block) => unsafe { (header.len)(block) },
        }
    }

    /// How many messages were returned to their senders because the mailbox was full.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.any().refused()
    }

    /// Whether the actor has stopped. Once true, it stays true.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.any().is_stopped()
    }
}

impl<M: 'static> ActorShared<M> {
    fn push_lazy(
        &self,
        cell: &CustomTaskRef<Self>,
        kind: MessageKind,
        make: &mut dyn FnMut() -> Envelope<M>,
    ) -> Result<(), Refusal> {
        if kind == MessageKind::Control {
            // The control queue accepts every message until the actor has stopped. A message that
            // loses the race against the stop becomes a dead letter.
            if self.header.is_stopped() {
                return Err(Refusal::Stopped);
            }
            if ActorRef::push_control(cell, make()).is_err() {
                self.header.system().dead_letter::<M>(&self.header.path, DeadLetterReason::Stopped);
            }
            return Ok(());
        }
        match self.mail.check_room() {
            Ok(()) => {
                self.push_made(cell, make());
                Ok(())
            }
            Err(refused) if refused.is_full() => self.push_lazy_full(cell, make),
            Err(_) => Err(Refusal::Stopped),
        }
    }

    #[cold]
    fn push_lazy_full(
        &self,
        cell: &CustomTaskRef<Self>,
        make: &mut dyn FnMut() -> Envelope<M>,
    ) -> Result<(), Refusal> {
        self.header.set_flags(MAILBOX_FULL);
        match self.header.overflow {
            Overflow::Fail => Err(Refusal::Full),
            Overflow::StopActor => {
                self.overflow();
                wake_on_overflow(cell);
                Err(Refusal::Overflowed)
            }
            // The two accept the message.
            Overflow::DropNewest | Overflow::DropOldest => {
                self.push_made(cell, make());
                Ok(())
            }
        }
    }

    /// Pushes a message for which there was room before the sender made it.
    ///
    /// The sender holds no claim while it makes the message, because the function of a mapped
    /// reference may run for long: meanwhile the actor takes messages of other senders, and stops.
    /// So the room may be taken by now, and the mailbox accepts the message beyond its capacity.
    /// A sealed system has no memory for that, and an actor that has stopped takes nothing: then
    /// the message, which cannot be returned, becomes a dead letter.
    fn push_made(&self, cell: &CustomTaskRef<Self>, envelope: Envelope<M>) {
        let is_late = self.header.overflow == Overflow::Fail && !self.header.system().is_sealed();
        let pushed = if is_late {
            let pushed = self.mail.push_late(envelope);
            pushed.map(|it| if it.wake { Accepted::MustWake } else { Accepted::NoWake })
        } else {
            self.push_envelope(envelope)
        };
        match pushed {
            // SAFETY: the push has ended the idle state of the cell, so this thread has to queue
            // the cell.
            Ok(Accepted::MustWake) => unsafe { cell.schedule() },
            Ok(Accepted::NoWake) => {}
            Err(refused) => {
                wake_on_overflow(cell);
                self.discard_refused(refused);
            }
        }
    }
}

/// Called after a message was refused. If the overflow rule stops the actor, wakes the actor, also
/// if it does not read its mailbox at present.
#[cold]
fn wake_on_overflow<M: 'static>(cell: &CustomTaskRef<ActorShared<M>>) {
    if cell.header.overflow == Overflow::StopActor {
        cell.wake();
    }
}

impl<N: 'static, M: 'static, C: Conversion<N, M>> Mapped<N, M, C> {
    fn new(inner: ActorRef<M>, conversion: C) -> Self {
        Self { header: Self::header(), inner, conversion }
    }

    /// The header of a block with this conversion.
    fn header() -> MappedHeader<N> {
        MappedHeader {
            count: AtomicUsize::new(1),
            plain: |block| {
                // SAFETY: the caller keeps the block alive, the function is called with the block
                // it belongs to, whose first field is the header, and the pointer is that of the
                // box that `from_block` has made.
                let block = unsafe { block.cast::<Self>().as_ref() };
                C::plain(&block.inner).map(NonNull::from)
            },
            push: |block, kind, make| {
                // SAFETY: as above.
                let block = unsafe { block.cast::<Self>().as_ref() };
                let receiver = block.inner.any();
                let convert = &mut || block.conversion.convert(make(), receiver);
                block.inner.push_lazy(kind, convert)
            },
            wait_for_room: |block, from, is_request, back| {
                // SAFETY: as above.
                let block = unsafe { block.cast::<Self>().as_ref() };
                let unsent = block.conversion.defer(from, block.inner.any());
                block.inner.wait_for_room(WaitingMessage::Mapped(unsent), is_request, back)
            },
            any: |block| {
                // SAFETY: as above.
                NonNull::from(unsafe { block.cast::<Self>().as_ref() }.inner.any())
            },
            len: |block| {
                // SAFETY: as above.
                unsafe { block.cast::<Self>().as_ref() }.inner.mailbox_len()
            },
            free: |header| {
                // SAFETY: `from_block` boxed the block, and its last ref is being dropped.
                drop(unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) });
            },
        }
    }
}

impl<M> ActorRef<M> {
    /// The mapped block, if this ref points to one.
    fn block(&self) -> Option<NonNull<MappedHeader<M>>> {
        let addr = self.raw.as_ptr().addr();
        (addr & MAPPED != 0).then(|| {
            let block = self.raw.as_ptr().map_addr(|addr| addr & !MAPPED);
            NonNull::new(block.cast()).expect("a box is not null")
        })
    }
}

/// Converts a typed reference into an untyped one.
pub(crate) fn untyped<M: 'static>(cell: CustomTaskRef<ActorShared<M>>) -> AnyActor {
    // SAFETY: the shared part begins with its header, at the same alignment.
    unsafe { AnyActor::from_raw(cell.into_raw()) }
}

impl<M> Clone for ActorRef<M> {
    #[inline]
    fn clone(&self) -> Self {
        match self.block() {
            None => {
                // SAFETY: the pointer is the address of a cell, of which this ref owns a reference.
                let held = ManuallyDrop::new(unsafe { CustomTaskRef::<()>::from_raw(self.raw) });
                // Increments the reference count for the new ref; neither handle is dropped here.
                let _: ManuallyDrop<CustomTaskRef<()>> = ManuallyDrop::clone(&held);
            }
            Some(block) => {
                // SAFETY: this ref keeps the block alive.
                let count = unsafe { &block.as_ref().count };
                // Relaxed: `self` keeps the block alive.
                let before = count.fetch_add(1, Relaxed);
                assert!(before <= isize::MAX.cast_unsigned(), "too many refs");
            }
        }
        Self { raw: self.raw, _message: PhantomData }
    }
}

impl<M> Drop for ActorRef<M> {
    #[inline]
    fn drop(&mut self) {
        let Some(block) = self.block() else {
            // SAFETY: the pointer is the address of a cell, and this ref's reference is released
            // here. Only the reference count is touched, so the type of the typed part does not
            // matter.
            drop(unsafe { CustomTaskRef::<()>::from_raw(self.raw) });
            return;
        };
        // SAFETY: this ref keeps the block alive until the decrement below.
        let header = unsafe { block.as_ref() };
        let free = header.free;
        // Release: pairs with the Acquire load by the thread that drops the last ref.
        if header.count.fetch_sub(1, Release) == 1 {
            // Acquire: a load and not a fence, because ThreadSanitizer does not support fences.
            header.count.load(Acquire);
            // SAFETY: this was the last ref, and the function comes from the table of this block.
            unsafe { free(block) };
        }
    }
}

impl<M: 'static> PartialEq for ActorRef<M> {
    /// Whether both refer to the same actor, mapped or not.
    fn eq(&self, other: &Self) -> bool {
        self.any().ptr_eq(other.any())
    }
}

impl<M: 'static> Eq for ActorRef<M> {}

impl<M: 'static> hash::Hash for ActorRef<M> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.any().as_raw().hash(state);
    }
}

impl<M: 'static> fmt::Debug for ActorRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorRef({} {})", *self.any().path, self.pid())
    }
}

impl<M: 'static> fmt::Display for ActorRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.any().path, f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use clockjack_exec::Toolbox;
    use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, TickDriver};

    use super::*;
    use crate::{ActorSystem, Next, Props, RootContext};

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

    #[test]
    fn messages_behind_a_claim_that_lasts_too_long_are_dead_letters_of_a_killed_actor() {
        let resolution = Resolution::MILLI;
        let bench =
            Bench { clock: ManualClock::new(resolution), driver: ManualDriver::new(resolution) };
        let mut root = RootContext::new(bench, ActorSystem::builder("t")).expect("there is room");
        let actor =
            root.spawn("a", Props::from_fn(|_cx, _: u8| Next::Stay)).expect("there is room");
        root.run_until_idle();
        let system = root.system().clone();
        let Target::Cell(cell) = actor.target() else { panic!("it is not mapped") };
        // The first message has queued the actor, so the owner of the claim need not do that.
        actor.tell(1).expect("there is room");
        let claim = cell.mail.claim().expect("there is room");
        actor.tell(2).expect("there is room");
        drop(root);
        assert_eq!(system.metrics().dead_letters(DeadLetterReason::Stopped), 3);
        drop(claim);
    }
}
