//! A tokio runtime on its own threads, for the workers of one pool.
//!
//! # Roles
//!
//! * The *reactor thread* creates the runtime, drives it and drops it. The runtime never leaves
//!   this thread: tokio forbids dropping a runtime where blocking is forbidden, and a pool may be
//!   dropped there. With one thread, it runs all of tokio (`current_thread`); with several, it
//!   waits, and tokio's own threads do the work (`multi_thread`).
//! * The *workers* have entered tokio's handle. A socket or a sleep that is created on a worker
//!   registers with the runtime, which wakes the task when it is ready; tasks of `tokio::spawn` run
//!   on the threads of the runtime.
//! * The *owner* is the [`Reactor`] in the pool. The shutdown of the pool, or else its drop, stops
//!   the thread.
//!
//! # Shutdown
//!
//! 1. The pool stops its reactor after its workers have left, so that processes can still use
//!    their sockets while they clean up.
//! 2. The owner leaves a permit in `stop`, which is kept if the thread does not wait yet. The
//!    thread stops driving the runtime and drops the remaining tokio tasks.
//! 3. The owner waits for the thread, which holds the other end of the channel `exited` as long as
//!    it runs: at most [`JOIN_TIMEOUT`], and in a shutdown not beyond its deadline. If a task
//!    blocks the thread for longer, the thread is abandoned.
//! 4. A thread that would wait for itself does not wait: a worker, and every thread of tokio, whose
//!    tasks may own the pool.

use core::{cell::Cell, time::Duration};
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
    OsInstant,
    pool::host,
    thread::{self, ThreadConfig},
};

/// How long a shutdown or a drop of a pool waits for the reactor thread at most.
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the reactor thread waits for closures of `tokio::task::spawn_blocking`.
const BLOCKING_JOIN_TIMEOUT: Duration = Duration::from_millis(200);

/// The most threads of a runtime, as for the workers of a pool.
const THREADS_MAX: usize = 1024;

thread_local! {
    /// Whether a reactor has started this thread.
    static IS_TOKIO: Cell<bool> = const { Cell::new(false) };
}

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
    /// `Some` until somebody waits for the thread.
    thread: Mutex<Option<ReactorThread>>,
}

#[derive(Debug)]
struct ReactorThread {
    /// Disconnects after the thread has dropped the runtime.
    exited: mpsc::Receiver<()>,
    join: JoinHandle<()>,
}

impl Reactor {
    /// Starts a runtime with this many threads; none if the number is 0.
    pub(crate) fn start(threads: usize) -> Result<Self, StartError> {
        if threads == 0 {
            return Ok(Self(None));
        }
        if threads > THREADS_MAX {
            let text = format_args!("tokio: {threads} threads are more than {THREADS_MAX}");
            return Err(StartError::thread(&text));
        }
        let stop = Arc::new(Notify::new());
        let (report, reported) = mpsc::channel();
        let (running, exited) = mpsc::channel();
        let config = ThreadConfig { name: "cj-tokio".into(), ..ThreadConfig::DEFAULT };
        thread::check_can_wait().map_err(|refused| StartError::thread(&refused))?;
        let started = thread::start(&config, {
            let stop = Arc::clone(&stop);
            move || {
                begin_thread();
                let runtime = build(threads);
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

    /// Stops the thread, and waits for it until then. For the shutdown of the pool.
    pub(crate) fn stop(&self, until: OsInstant) {
        if let Some(running) = &self.0 {
            running.stop(until.saturating_since(OsInstant::now()));
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

impl Running {
    fn stop(&self, timeout: Duration) {
        self.stop.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ReactorThread { exited, join }) = thread else { return };
        // While a thread exits, its marks are gone: then it has nothing to wait for.
        if IS_TOKIO.try_with(Cell::get).unwrap_or(true) || host::is_worker() {
            return;
        }
        // Nothing is ever sent: the channel disconnects, or the timeout passes.
        let left = exited.recv_timeout(timeout.min(JOIN_TIMEOUT));
        if left == Err(mpsc::RecvTimeoutError::Disconnected) {
            // The thread has nothing left to do; if it panicked, the panic hook has reported it.
            thread::join_or_detach(join);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop(JOIN_TIMEOUT);
    }
}

/// Builds the runtime on the reactor thread.
fn build(threads: usize) -> std::io::Result<Runtime> {
    if threads == 1 {
        return Builder::new_current_thread().enable_all().build();
    }
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("cj-tokio-worker").on_thread_start(begin_thread);
    builder.enable_all().build()
}

/// Called at the start of each thread of the runtime.
fn begin_thread() {
    thread::sleep_precisely();
    IS_TOKIO.set(true);
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
