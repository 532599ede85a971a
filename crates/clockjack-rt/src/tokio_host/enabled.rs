//! A tokio runtime on a thread of its own, for the workers of one pool.
//!
//! # Roles
//!
//! * The *reactor thread* makes the runtime, drives it and drops it. The runtime never leaves it: a
//!   runtime may not be dropped where tokio forbids to block, and a pool may well be.
//! * The *workers* hold tokio's handle entered. A socket or a sleep made on a worker registers with
//!   the reactor thread, which wakes the process when it is ready; what `tokio::spawn` starts runs
//!   on the reactor thread.
//! * The *owner* is the [`Reactor`] in the pool. Its drop ends the thread.
//!
//! # The end
//!
//! 1. The pool drops its reactor after its workers have left, so that processes which clean up
//!    still have their sockets.
//! 2. The owner leaves a permit in `stop`: it is kept if the thread does not wait yet. The thread
//!    comes back from driving, and drops what is still spawned.
//! 3. The owner waits for the thread, which holds the other end of `gone` as long as it runs, for
//!    at most [`JOIN_TIMEOUT`]. A task that blocks it for longer is left behind with the thread.
//! 4. A thread that the end itself would wait for does not wait: a worker, and the reactor thread,
//!    whose tasks may own the pool.

use core::time::Duration;
use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
};

use clockjack_exec::StartError;
use clockjack_sync::mutant;
use tokio::{
    runtime::{Builder, EnterGuard, Handle, Runtime},
    sync::Notify,
};

use crate::{
    host,
    thread::{self, ThreadConfig},
};

/// How long the end of a pool waits for the reactor thread.
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the reactor thread waits for closures of `tokio::task::spawn_blocking`.
const BLOCKING_JOIN_TIMEOUT: Duration = Duration::from_millis(200);

/// The reactor of a pool, if it has one.
#[derive(Debug)]
pub(crate) struct Reactor(Option<Running>);

/// What a worker enters.
#[derive(Clone, Debug)]
pub(crate) struct ReactorHandle(Option<Handle>);

#[derive(Debug)]
struct Running {
    handle: Handle,
    stop: Arc<Notify>,
    /// There until the drop. Never locked: it makes the reactor, and so the pool, `Sync`.
    thread: Mutex<Option<ReactorThread>>,
}

#[derive(Debug)]
struct ReactorThread {
    /// Hangs up when the thread has dropped the runtime.
    exited: mpsc::Receiver<()>,
    join: JoinHandle<()>,
}

impl Reactor {
    /// Starts the thread, if it is wanted.
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
            Err(_) => Err(StartError::thread(&"the thread of tokio's reactor panicked")),
        }
    }

    pub(crate) fn handle(&self) -> ReactorHandle {
        ReactorHandle(self.0.as_ref().map(|running| running.handle.clone()))
    }
}

impl ReactorHandle {
    /// Makes tokio's resources of this thread belong to the reactor, until the guard is dropped.
    pub(crate) fn enter(&self) -> Option<EnterGuard<'_>> {
        self.0.as_ref().map(Handle::enter)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !mutant!("tokio-reactor-left-running") {
            self.stop.notify_one();
        }
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(ReactorThread { exited, join }) = thread.take() else { return };
        let is_self = join.thread().id() == std::thread::current().id();
        if is_self || host::is_worker() {
            return;
        }
        // Nothing is ever sent: it is over, or the time is.
        if exited.recv_timeout(JOIN_TIMEOUT) == Err(mpsc::RecvTimeoutError::Disconnected) {
            // It has nothing left to do but to end, and if it panicked it has said so.
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

// A pool is shared between threads, with a reactor as without.
const fn is_shared<T: Send + Sync>() {}
const _: () = is_shared::<Reactor>();
