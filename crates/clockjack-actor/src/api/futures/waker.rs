//! The waker of one of an actor's futures.
//!
//! Its data is the address of the future's [wake flag](super::wake), so the owner of a waker can be
//! found from the waker alone.
#![expect(unsafe_code, reason = "makes wakers out of counted references")]

use core::{
    mem::ManuallyDrop,
    ptr::NonNull,
    task::{RawWaker, RawWakerVTable, Waker},
};

use super::wake::{Notify, WakeFlag, WakeFlagRef};
use crate::cell::header::{AnyActor, FUTURES, SystemSend};

impl Notify for AnyActor {
    fn notify(&self) {
        self.wake_with(FUTURES);
    }
}

/// The bit of a label which says that the actor waits for this future and takes no user messages.
pub(super) const EXCLUSIVE: u32 = 1 << 31;

static WAKER: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

/// The actor that a waker wakes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'w> {
    /// The actor.
    pub(crate) actor: &'w AnyActor,
    /// Whether it waits for this future: then it takes no user messages in the meantime.
    pub(crate) is_exclusive: bool,
}

/// The actor whose future is polled with this waker, if it is one.
pub(crate) fn owner_of(waker: &Waker) -> Option<Owner<'_>> {
    if !core::ptr::eq(waker.vtable(), &raw const WAKER) {
        return None;
    }
    // SAFETY: a waker with this vtable has a wake flag as its data, and a reference to it, or is
    // borrowed from one; both live as long as the waker.
    let flag = unsafe { &*waker.data().cast::<WakeFlag<AnyActor>>() };
    Some(Owner { actor: flag.owner(), is_exclusive: flag.label() & EXCLUSIVE != 0 })
}

/// A waker for a flag, borrowed from a reference that outlives it.
pub(super) fn borrowed(flag: &WakeFlagRef<AnyActor>) -> ManuallyDrop<Waker> {
    let raw = RawWaker::new(flag.as_raw().as_ptr().cast_const().cast(), &WAKER);
    // SAFETY: the functions fulfil the contract of `RawWaker`: they are thread-safe, and count a
    // reference for each clone. This first one counts none and is never dropped.
    ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
}

/// The reference that a waker has, or is borrowed from; not to be dropped by the caller.
///
/// # Safety
///
/// The data is that of one of our wakers, which outlives the result.
unsafe fn flag_of(data: *const ()) -> ManuallyDrop<WakeFlagRef<AnyActor>> {
    let raw = data.cast::<WakeFlag<AnyActor>>().cast_mut();
    // SAFETY: it is the address of a wake flag, hence not null.
    let raw = unsafe { NonNull::new_unchecked(raw) };
    // SAFETY: it came from `into_raw`, or `borrowed`; its reference is not released here.
    ManuallyDrop::new(unsafe { WakeFlagRef::from_raw(raw) })
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the data of our wakers.
    let flag = unsafe { flag_of(data) };
    let cloned = WakeFlagRef::clone(&flag).into_raw();
    RawWaker::new(cloned.as_ptr().cast_const().cast(), &WAKER)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the data of our wakers; this one is consumed.
    let flag = ManuallyDrop::into_inner(unsafe { flag_of(data) });
    flag.wake();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the data of our wakers.
    unsafe { flag_of(data) }.wake();
}

unsafe fn release(data: *const ()) {
    // SAFETY: the data of our wakers; this one is consumed.
    drop(ManuallyDrop::into_inner(unsafe { flag_of(data) }));
}

#[cfg(test)]
mod tests {
    use alloc::{sync::Arc, vec::Vec};
    use core::{future::poll_fn, task::Poll};
    use std::sync::Mutex;

    use clockjack_testing::toolbox::ByHand;
    use clockjack_time::Resolution;

    use super::*;
    use crate::{ActorSystem, Next, Props, RootContext};

    #[test]
    fn a_waker_tells_whose_future_it_wakes_and_whether_the_actor_waits_for_it_alone() {
        let (hands, _clock) = ByHand::new(Resolution::MILLI);
        let mut root = RootContext::new(hands, ActorSystem::builder("t")).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&seen);
        let props = Props::from_fn(move |cx, is_exclusive: bool| {
            let to = Arc::clone(&to);
            let look = poll_fn(move |cx| {
                let owner = owner_of(cx.waker());
                to.lock().unwrap().push(owner.map(|it| (it.actor.pid(), it.is_exclusive)));
                Poll::Ready(())
            });
            if is_exclusive {
                cx.wait(look, |_, _, ()| Ok(Next::Stay))?;
            } else {
                cx.spawn_future(look, |_, _, ()| Ok(Next::Stay))?;
            }
            Ok(Next::Stay)
        });
        let actor = root.spawn("a", props).unwrap();
        actor.tell(true).unwrap();
        actor.tell(false).unwrap();
        root.run_until_idle();
        let pid = actor.pid();
        assert_eq!(*seen.lock().unwrap(), [Some((pid, true)), Some((pid, false))]);
        assert!(owner_of(Waker::noop()).is_none());
    }
}
