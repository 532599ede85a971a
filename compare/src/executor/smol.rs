//! smol's executor, run by our own threads.
//!
//! The executor is a static, as in smol's documentation, and each thread runs it within
//! `smol::block_on`, as smol's own global threads do: a thread without tasks drives the timers.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::thread::{self, JoinHandle};

use smol::channel::{Receiver, Sender, unbounded};
use smol::{Executor, Task, Timer};

use super::subject::{N_WORKERS, Subject};
use crate::failure::Failure;
use crate::report::{Facts, Standing};

static EXECUTOR: Executor<'static> = Executor::new();

pub(crate) struct TwoThreads {
    /// The threads run until this is dropped.
    alive: Sender<()>,
    threads: Vec<JoinHandle<()>>,
}

impl Subject for TwoThreads {
    const FACTS: Facts = Facts {
        name: "smol",
        package: Some("smol"),
        standing: Standing::Rival,
        note: "a static `smol::Executor` run by two threads in `smol::block_on`; its timers use \
               a separate thread",
    };

    type Join<T: Send + 'static> = Task<T>;

    fn start() -> Result<Self, Failure> {
        let (alive, ended) = unbounded::<()>();
        let mut threads = Vec::with_capacity(N_WORKERS);
        for index in 0..N_WORKERS {
            let ended: Receiver<()> = ended.clone();
            let thread = thread::Builder::new().name(format!("smol-{index}"));
            let thread = thread.spawn(move || {
                let end = smol::block_on(EXECUTOR.run(ended.recv()));
                assert!(end.is_err(), "nobody sends anything");
            });
            threads.push(thread.map_err(|source| Failure::start(Self::FACTS.name, source))?);
        }
        Ok(Self { alive, threads })
    }

    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        // Not `smol::block_on`: that would drive the timers on this thread.
        smol::future::block_on(EXECUTOR.spawn(root))
    }

    fn spawn<F>(task: F) -> Task<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        EXECUTOR.spawn(task)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        smol::future::yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        Sleep(Timer::after(duration))
    }

    fn stop(self) {
        drop(self.alive);
        for thread in self.threads {
            thread.join().expect("a thread of the executor only exits by the channel");
        }
    }
}

/// The timer without the instant that it returns.
struct Sleep(Timer);

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(drop)
    }
}
