//! A host whose time is an atomic that tests move, and whose pollers are the tests themselves.
//!
//! Nothing in it is loom's, so that in a model it adds no order of its own: there, time stands
//! where a test puts it before the threads start.

use alloc::sync::Arc;
use core::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst},
};
use std::{panic::catch_unwind, sync::Mutex};

use clockjack_sched::{DispatchedRun, DispatcherId, PanicPayload, SchedulerHost};
use clockjack_time::{ClockKind, Resolution, Tick, TimerInstant};

#[cfg(loom)]
use loom::thread;
#[cfg(not(loom))]
use std::thread;

/// With ticks of a millisecond. Clones are one host; what is set by a `bool` is set before.
#[derive(Clone, Default)]
pub(crate) struct Host {
    /// The tick.
    pub(crate) now: Arc<AtomicU64>,
    /// How often a poller was woken.
    pub(crate) calls: Arc<AtomicU32>,
    /// How often a thread has waited for a guard.
    pub(crate) waits: Arc<AtomicU32>,
    /// The shard in which jobs are registered.
    pub(crate) shard: Arc<AtomicU32>,
    /// Whether each registration moves it on.
    pub(crate) takes_shards_in_turn: bool,
    /// Whether the caller has interrupted somebody.
    pub(crate) is_interrupt: Arc<AtomicBool>,
    /// Whether it catches panics.
    pub(crate) is_guarding: bool,
    /// Whether it has every dispatcher, or none but the first.
    pub(crate) has_dispatchers: bool,
    /// What was handed to dispatchers; without it nothing can be.
    pub(crate) works: Option<Arc<Mutex<Vec<DispatchedRun>>>>,
}

impl SchedulerHost for Host {
    fn now(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(self.now.load(SeqCst)), Resolution::MILLI)
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::RealtimeHost
    }

    fn name(&self) -> &'static str {
        "test"
    }

    fn shard(&self) -> usize {
        self.shard.fetch_add(u32::from(self.takes_shards_in_turn), SeqCst) as usize
    }

    fn wake_poller(&self, _shard: usize) {
        self.calls.fetch_add(1, SeqCst);
    }

    fn relax(&self) {
        self.waits.fetch_add(1, SeqCst);
        thread::yield_now();
    }

    fn can_wait(&self) -> bool {
        !self.is_interrupt.load(SeqCst)
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        if self.is_guarding {
            return guard(call);
        }
        call();
        Ok(())
    }

    fn has_dispatcher(&self, dispatcher: DispatcherId) -> bool {
        self.has_dispatchers || dispatcher == DispatcherId::DEFAULT
    }

    fn dispatch(
        &self,
        _dispatcher: DispatcherId,
        work: DispatchedRun,
    ) -> Result<(), DispatchedRun> {
        let Some(works) = &self.works else { return Err(work) };
        works.lock().expect("no holder panics").push(work);
        Ok(())
    }
}

/// Catches a panic.
pub(crate) fn guard(call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
    catch_unwind(AssertUnwindSafe(call)).map_err(PanicPayload::new)
}
