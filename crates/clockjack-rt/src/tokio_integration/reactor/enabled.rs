//! A tokio runtime on its own thread, for the workers of one pool.
//!
//! # Roles
//!
//! * The *reactor thread* creates the runtime, drives it and drops it. The runtime never leaves
//!   this thread: tokio forbids dropping a runtime where blocking is forbidden, and a pool may be
//!   dropped there.
//! * The *workers* have entered tokio's handle. A socket or a sleep that is created on a worker
//!   registers with the reactor thread, which wakes the task when it is ready; tasks of
//!   `tokio::spawn` run on the reactor thread.
//! * The *owner* is the [`Reactor`] in the pool. Its drop stops the thread.
//!
//! # Shutdown
//!
//! 1. The pool drops its reactor after its workers have left, so that processes can still use
//!    their sockets while they clean up.
//! 2. The owner leaves a permit in `stop`, which is kept if the thread does not wait yet. The
//!    thread stops driving the runtime and drops the remaining tokio tasks.
//! 3. The owner waits at most [`JOIN_TIMEOUT`] for the thread, which holds the other end of the
//!    channel `exited` as long as it runs. If a task blocks the thread for longer, the thread is
//!    abandoned.
//! 4. A thread that would wait for itself does not wait: a worker, and the reactor thread, whose
//!    tasks may own the pool.

use core::time::Duration;
use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
};

use clockjack_exec::StartError;
use tokio::{
    runtime::{Builder, EnterGuard, Handle, Runtime},
    sync::Notify,
};

use crate::{
    pool::host,
    thread::{self, ThreadConfig},
};

/// How long the drop of a pool waits for the reactor thread.
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the reactor thread waits for closures of `tokio::task::spawn_blocking`.
const BLOCKING_JOIN_TIMEOUT: Duration = Duration::from_millis(200);

/// The reactor of a pool, if it has one.
#[derive(Debug)]
pub(crate) struct Reactor(Option<Running>);

/// The handle that a worker enters.
#[derive(Clone, Debug)]
pub(crate) struct ReactorHandle(Option<Handle>);

#[derive(Debug)]
struct Running {
    handle: Handle,
    stop: Arc<Notify>,
    /// `Some` until the drop. Never locked: the mutex makes the reactor, and so the pool, `Sync`.
    thread: Mutex<Option<ReactorThread>>,
}

#[derive(Debug)]
struct ReactorThread {
    /// Disconnects after the thread has dropped the runtime.
    exited: mpsc::Receiver<()>,
    join: JoinHandle<()>,
}

impl Reactor {
    /// Starts the thread, if a reactor is requested.
    pub(crate) fn start(is_wanted: bool) -> Result<Self, StartError> {
        if !is_wanted {
            return Ok(Self(None));
        }
        let stop = Arc::new(Notify::new());
        let (report, reported) = mpsc::channel();
        let (running, exited) = mpsc::channel();
        let config = ThreadConfig { name: "cj-tokio".into(), ..ThreadConfig::DEFAULT };
        let started = thread::start(&config, {
            let stop = Arc::clone(&stop);
            move || {
                thread::sleep_precisely();
                let runtime = Builder::new_current_thread().enable_all().build();
                let is_heard = report.send(runtime.as_ref().map(handle_of).map_err(text_of));
                if let (Ok(runtime), Ok(())) = (runtime, is_heard) {
                    runtime.block_on(stop.notified());
                    runtime.shutdown_timeout(BLOCKING_JOIN_TIMEOUT);
                }
                drop(running);
            }
        });
        let join = started.map_err(|refused| StartError::thread(&refused))?;
        match reported.recv() {
            Ok(Ok(handle)) => {
                let thread = Mutex::new(Some(ReactorThread { exited, join }));
                Ok(Self(Some(Running { handle, stop, thread })))
            }
            Ok(Err(refused)) => Err(StartError::thread(&refused)),
            Err(_) => Err(StartError::thread(&"the tokio reactor thread panicked")),
        }
    }

    pub(crate) fn handle(&self) -> ReactorHandle {
        ReactorHandle(self.0.as_ref().map(|running| running.handle.clone()))
    }
}

impl ReactorHandle {
    /// Makes this thread's tokio resources use the reactor, until the guard is dropped.
    pub(crate) fn enter(&self) -> Option<EnterGuard<'_>> {
        self.0.as_ref().map(Handle::enter)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.notify_one();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(ReactorThread { exited, join }) = thread.take() else { return };
        let is_self = join.thread().id() == std::thread::current().id();
        if is_self || host::is_worker() {
            return;
        }
        // Nothing is ever sent: the channel disconnects, or the timeout passes.
        if exited.recv_timeout(JOIN_TIMEOUT) == Err(mpsc::RecvTimeoutError::Disconnected) {
            // The thread has nothing left to do; if it panicked, the panic hook has reported it.
            drop(join.join());
        }
    }
}

fn handle_of(runtime: &Runtime) -> Handle {
    runtime.handle().clone()
}

fn text_of(refused: &std::io::Error) -> String {
    refused.to_string()
}

// A pool is shared between threads, with and without a reactor.
const fn is_shared<T: Send + Sync>() {}
const _: () = is_shared::<Reactor>();
