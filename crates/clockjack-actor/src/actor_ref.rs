//! The address of an actor: one word, and typed by what it takes.
//!
//! ```text
//!   63 ........................ 1   0
//!  [ address of the cell          | 0 ]   the actor itself
//!  [ address of a mapped block    | 1 ]   an actor behind a function: see `map`
//! ```
//!
//! The cell begins with its head, and the part that knows the messages stands at a place that
//! follows from `M` alone. So a push needs no table of functions; only a mapped ref has one.
#![expect(unsafe_code, reason = "packs two kinds of pointers into one word")]

use alloc::boxed::Box;
use core::{any::Any, fmt, hash, marker::PhantomData, mem::ManuallyDrop, ptr::NonNull};

use clockjack_exec::{Pid, SendError, custom::CustomRef};
use clockjack_sync::{
    mutant,
    prim::atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use crate::{
    ActorPath, SystemMessage,
    base::{AnyActor, Core, NOTES, Tell as _},
    control::Control,
    envelope::Envelope,
    events::DeadLetterReason,
    front::{Front, Sent},
    notes::Note,
    send::{Letter, Lined, Through, Unsent},
};

const MAPPED: usize = 1;

/// An address of an actor that takes messages of type `M`. Dropping it stops nothing.
///
/// `Send` and `Sync` exactly if `M` is `Send`.
pub struct ActorRef<M> {
    raw: NonNull<()>,
    _message: PhantomData<fn(M)>,
}

const _: () = assert!(size_of::<Option<ActorRef<u8>>>() == size_of::<usize>(), "one word");

// SAFETY: messages that are sent go to the thread that runs the actor, so `M: Send` is needed; the
// rest is a counted reference to what is made for sharing.
unsafe impl<M: Send> Send for ActorRef<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for ActorRef<M> {}

/// What a ref points to.
enum Target<'r, M> {
    Cell(&'r ManuallyDrop<CustomRef<Front<M>>>),
    Mapped(&'r MappedHead<M>),
}

/// How a message goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    User,
    Control,
}

/// What all mapped blocks of a message type begin with.
#[repr(C)]
struct MappedHead<N> {
    count: AtomicUsize,
    push: PushMade<N>,
    line_up: LineUp<N>,
    any: unsafe fn(&MappedHead<N>) -> &AnyActor,
    len: unsafe fn(&MappedHead<N>) -> usize,
    free: unsafe fn(NonNull<MappedHead<N>>),
}

type PushMade<N> =
    unsafe fn(&MappedHead<N>, Way, &mut dyn FnMut() -> Envelope<N>) -> Result<(), Refusal>;

type LineUp<N> = unsafe fn(&MappedHead<N>, Box<dyn Unsent<N>>, bool, &mut dyn Any) -> Lined;

#[repr(C)]
struct Mapped<N, M> {
    head: MappedHead<N>,
    inner: ActorRef<M>,
    f: fn(N) -> M,
}

/// Why a message was not taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    Stopped,
    /// The mailbox was full, and the actor is stopped for it.
    Overflown,
}

impl Refusal {
    fn with<M>(self, msg: M) -> SendError<M> {
        match self {
            Self::Full => SendError::full(msg),
            Self::Stopped | Self::Overflown => SendError::stopped(msg),
        }
    }
}

impl<M: 'static> ActorRef<M> {
    pub(crate) fn from_cell(cell: CustomRef<Front<M>>) -> Self {
        Self { raw: cell.into_raw(), _message: PhantomData }
    }

    #[inline]
    fn target(&self) -> Target<'_, M> {
        if self.raw.as_ptr().addr() & MAPPED == 0 {
            // SAFETY: a `CustomRef` is its address, transparently enough: it holds one pointer and
            // markers, so a borrow of the word is a borrow of one.
            Target::Cell(unsafe { &*(&raw const self.raw).cast() })
        } else {
            let block = self.raw.as_ptr().map_addr(|addr| addr & !MAPPED);
            // SAFETY: the tag says that it is such a block, and this ref keeps it alive.
            Target::Mapped(unsafe { &*block.cast::<MappedHead<M>>() })
        }
    }

    /// The untyped part of the actor behind it.
    pub(crate) fn any(&self) -> &AnyActor {
        match self.target() {
            // SAFETY: the front begins with its core, at the same alignment.
            Target::Cell(cell) => unsafe { &*core::ptr::from_ref(cell).cast::<AnyActor>() },
            // SAFETY: the functions are those of the block.
            Target::Mapped(block) => unsafe { (block.any)(block) },
        }
    }

    /// Sends a message. It never waits.
    ///
    /// # Errors
    ///
    /// The message comes back: if the mailbox is full and its overflow says so, or after the actor
    /// has stopped.
    #[inline]
    pub fn tell(&self, msg: M) -> Result<(), SendError<M>> {
        match self.target() {
            Target::Cell(cell) => {
                match cell.push(msg) {
                    Ok(Sent::Quiet) => Ok(()),
                    Ok(Sent::Wake) => {
                        // SAFETY: the push has ended its sleep.
                        unsafe { cell.queue() };
                        Ok(())
                    }
                    Err(refused) => {
                        tell_overflow(cell);
                        Err(refused)
                    }
                }
            }
            Target::Mapped(block) => Self::tell_mapped(block, Way::User, msg),
        }
    }

    /// Sends a message that overtakes all that came by [`tell`](Self::tell). It needs no room in
    /// the mailbox.
    ///
    /// # Errors
    ///
    /// The message comes back if the actor has stopped.
    pub fn tell_control(&self, msg: M) -> Result<(), SendError<M>> {
        match self.target() {
            Target::Cell(cell) => Self::control(cell, Envelope::new(msg)),
            Target::Mapped(block) => Self::tell_mapped(block, Way::Control, msg),
        }
    }

    fn control(cell: &CustomRef<Front<M>>, envelope: Envelope<M>) -> Result<(), SendError<M>> {
        let item = Control::Message(envelope);
        // SAFETY: the lane is that of an actor with this message type.
        match unsafe { cell.core.notes.push_control(item) } {
            Ok(()) => {
                cell.core.raise(NOTES);
                cell.wake();
                Ok(())
            }
            Err(Control::Message(envelope)) => Err(SendError::stopped(envelope.msg)),
            Err(_) => unreachable!("what is refused comes back"),
        }
    }

    #[cold]
    fn tell_mapped(block: &MappedHead<M>, way: Way, msg: M) -> Result<(), SendError<M>> {
        let mut msg = Some(msg);
        let mut make = || Envelope::new(msg.take().expect("it is asked for once"));
        // SAFETY: the functions are those of the block.
        let pushed = unsafe { (block.push)(block, way, &mut make) };
        match (pushed, msg) {
            (Ok(()), _) => Ok(()),
            (Err(refusal), Some(msg)) => Err(refusal.with(msg)),
            (Err(_), None) => unreachable!("a message is made only if there is room for it"),
        }
    }

    /// Makes a message when there is room for it.
    fn push_made(&self, way: Way, make: &mut dyn FnMut() -> Envelope<M>) -> Result<(), Refusal> {
        match self.target() {
            Target::Mapped(block) => {
                // SAFETY: the functions are those of the block.
                unsafe { (block.push)(block, way, make) }
            }
            Target::Cell(cell) => cell.push_made(cell, way, make),
        }
    }

    /// Says something to the actor as the system does, ahead of all other mail; for hosts.
    ///
    /// # Errors
    ///
    /// The message comes back if the actor has stopped.
    #[expect(clippy::result_large_err, reason = "for hosts, and what is refused comes back")]
    pub fn try_send_system(&self, msg: SystemMessage) -> Result<(), SendError<SystemMessage>> {
        match self.any().note(Note::System(Box::new(msg))) {
            Ok(()) => Ok(()),
            Err(Note::System(msg)) => Err(SendError::stopped(*msg)),
            Err(_) => unreachable!("what comes back is what was left"),
        }
    }

    /// A message as it waits for room.
    pub(crate) fn letter(&self, msg: M) -> Letter<M> {
        match self.target() {
            Target::Cell(_) => Letter::Plain(msg),
            Target::Mapped(_) => Letter::Mapped(Letter::unsent(msg)),
        }
    }

    /// Lets a message wait for room; if that is refused, what it was made of is put into `back`,
    /// an `Option` of that.
    pub(crate) fn line_up(&self, letter: Letter<M>, is_request: bool, back: &mut dyn Any) -> Lined {
        match self.target() {
            Target::Cell(cell) => {
                let waiters = cell.waiters_or_new();
                // SAFETY: it is called if a claim has ended the sleep.
                let queue = || unsafe { cell.queue() };
                waiters.line_up(letter, is_request, back, &|| cell.wake(), &queue)
            }
            // SAFETY: the functions are those of the block.
            Target::Mapped(block) => unsafe {
                (block.line_up)(block, letter.boxed(), is_request, back)
            },
        }
    }

    /// Sends a message with what comes along with it, by the rules of the mailbox; it is asked for
    /// if there is room.
    pub(crate) fn push_with(&self, make: &mut dyn FnMut() -> Envelope<M>) -> Result<(), Refusal> {
        self.push_made(Way::User, make)
    }

    /// Sends a message, or makes a dead letter of it.
    pub fn tell_or_dead_letter(&self, msg: M) {
        if let Err(refused) = self.tell(msg) {
            let reason = if refused.is_full() {
                DeadLetterReason::MailboxFull
            } else {
                DeadLetterReason::Stopped
            };
            let core: &Core = self.any();
            core.system().dead_letter::<M>(&core.path, reason);
        }
    }

    /// An address of the same actor for messages of another type, each of which `f` turns into one
    /// of the actor's. It runs at the sender, once there is room: what is refused comes back as it
    /// was, and order is kept.
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
    /// ```
    ///
    /// The messages of the actor must be `Send`: the new address may go to other threads if `N`
    /// may, and there makes an `M`.
    #[must_use]
    pub fn map<N: 'static>(&self, f: fn(N) -> M) -> ActorRef<N>
    where
        M: Send,
    {
        let head = Mapped::<N, M>::head();
        let block = Box::into_raw(Box::new(Mapped { head, inner: self.clone(), f }));
        let raw = block.cast::<()>().map_addr(|addr| addr | MAPPED);
        // A box is not null.
        let raw = NonNull::new(raw).expect("it was boxed");
        ActorRef { raw, _message: PhantomData }
    }

    /// Which actor it is, this incarnation of it and no later one.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.any().pid()
    }

    /// Where the actor stands.
    #[must_use]
    pub fn path(&self) -> ActorPath {
        self.any().path.clone()
    }

    /// How many messages wait, at about this time.
    pub(crate) fn mailbox_len(&self) -> usize {
        match self.target() {
            Target::Cell(cell) => cell.mail.len(),
            // SAFETY: the functions are those of the block.
            Target::Mapped(block) => unsafe { (block.len)(block) },
        }
    }

    /// Whether it takes no more messages. Once true, it stays so.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.any().is_ended()
    }
}

impl<M: 'static> Front<M> {
    fn push_made(
        &self,
        cell: &CustomRef<Self>,
        way: Way,
        make: &mut dyn FnMut() -> Envelope<M>,
    ) -> Result<(), Refusal> {
        if way == Way::Control {
            // The lane takes everything until the end, and what comes then is a dead letter.
            if self.core.is_ended() {
                return Err(Refusal::Stopped);
            }
            if ActorRef::control(cell, make()).is_err() {
                self.core.system().dead_letter::<M>(&self.core.path, DeadLetterReason::Stopped);
            }
            return Ok(());
        }
        match self.mail.claim() {
            Ok(permit) => {
                // Whoever has the permit has the duty to wake, also if the function panics.
                let duty = permit.wakes().then(|| WakeOnDrop(cell));
                let envelope = make();
                let _ = permit.write(envelope);
                drop(duty);
                Ok(())
            }
            Err(refused) if refused.is_full() => self.push_made_full(cell, make),
            Err(_) => Err(Refusal::Stopped),
        }
    }

    #[cold]
    fn push_made_full(
        &self,
        cell: &CustomRef<Self>,
        make: &mut dyn FnMut() -> Envelope<M>,
    ) -> Result<(), Refusal> {
        match self.core.overflow {
            crate::Overflow::Fail => return Err(Refusal::Full),
            crate::Overflow::StopActor if !mutant!("actor-overflow-takes-mapped") => {
                self.overflow();
                tell_overflow(cell);
                return Err(Refusal::Overflown);
            }
            _ => {}
        }
        // The other answers take the message.
        match self.push_envelope(make()) {
            // SAFETY: the push has ended its sleep.
            Ok(Sent::Wake) => unsafe { cell.queue() },
            Ok(Sent::Quiet) => {}
            Err(_) => {
                tell_overflow(cell);
                self.core.system().dead_letter::<M>(&self.core.path, DeadLetterReason::Stopped);
            }
        }
        Ok(())
    }
}

/// A message was refused: one whose overflow stops the actor makes it look, also if it does not
/// look at its mailbox now.
#[cold]
fn tell_overflow<M: 'static>(cell: &CustomRef<Front<M>>) {
    if cell.core.overflow == crate::Overflow::StopActor {
        cell.wake();
    }
}

struct WakeOnDrop<'c, M: 'static>(&'c CustomRef<Front<M>>);

impl<M> Drop for WakeOnDrop<'_, M> {
    fn drop(&mut self) {
        // SAFETY: the claim has ended its sleep.
        unsafe { self.0.queue() };
    }
}

impl<N: 'static, M: 'static> Mapped<N, M> {
    fn head() -> MappedHead<N> {
        MappedHead {
            count: AtomicUsize::new(1),
            push: |head, way, make| {
                // SAFETY: called with its own block, of which the head is the first field.
                let block = unsafe { &*core::ptr::from_ref(head).cast::<Self>() };
                block.inner.push_made(way, &mut || make().map(block.f))
            },
            line_up: |head, from, is_request, back| {
                // SAFETY: as above.
                let block = unsafe { &*core::ptr::from_ref(head).cast::<Self>() };
                let unsent = Box::new(Through { from, f: block.f });
                block.inner.line_up(Letter::Mapped(unsent), is_request, back)
            },
            any: |head| {
                // SAFETY: as above.
                unsafe { &*core::ptr::from_ref(head).cast::<Self>() }.inner.any()
            },
            len: |head| {
                // SAFETY: as above.
                unsafe { &*core::ptr::from_ref(head).cast::<Self>() }.inner.mailbox_len()
            },
            free: |head| {
                // SAFETY: the block was boxed by `map`, and its last ref is gone.
                drop(unsafe { Box::from_raw(head.cast::<Self>().as_ptr()) });
            },
        }
    }
}

impl<M> ActorRef<M> {
    /// The mapped block, if it is one.
    fn block(&self) -> Option<NonNull<MappedHead<M>>> {
        let addr = self.raw.as_ptr().addr();
        (addr & MAPPED != 0).then(|| {
            let block = self.raw.as_ptr().map_addr(|addr| addr & !MAPPED);
            NonNull::new(block.cast()).expect("it was boxed")
        })
    }
}

/// The same actor, of which less is known.
pub(crate) fn untyped<M: 'static>(cell: CustomRef<Front<M>>) -> AnyActor {
    // SAFETY: the front begins with its core, at the same alignment.
    unsafe { AnyActor::from_raw(cell.into_raw()) }
}

impl<M> Clone for ActorRef<M> {
    #[inline]
    fn clone(&self) -> Self {
        match self.block() {
            None => {
                // SAFETY: the word is the address of a cell that this ref holds.
                let held = ManuallyDrop::new(unsafe { CustomRef::<()>::from_raw(self.raw) });
                // Counted once more, for the new ref; neither is dropped here.
                let _: ManuallyDrop<CustomRef<()>> = ManuallyDrop::clone(&held);
            }
            Some(block) => {
                // SAFETY: this ref keeps the block alive.
                let count = unsafe { &block.as_ref().count };
                // Relaxed: made from one that keeps the block alive.
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
            // SAFETY: the word is the address of a cell, whose count is given back here. Only the
            // count is touched, so what the front is does not matter.
            drop(unsafe { CustomRef::<()>::from_raw(self.raw) });
            return;
        };
        // SAFETY: this ref keeps the block alive until it has counted down.
        let head = unsafe { block.as_ref() };
        let free = head.free;
        // Release: pairs with the load of the one that comes last.
        if head.count.fetch_sub(1, Release) == 1 {
            // Acquire: a load and not a fence, because ThreadSanitizer does not know fences.
            head.count.load(Acquire);
            // SAFETY: it was the last ref, and the functions are those of the block.
            unsafe { free(block) };
        }
    }
}

impl<M: 'static> PartialEq for ActorRef<M> {
    /// Whether both lead to the same actor, mapped or not.
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
