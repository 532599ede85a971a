//! A pool with a reactor: sockets, sleeps, tasks, and the end of all of them.

use core::{panic::AssertUnwindSafe, time::Duration};
use std::{panic::catch_unwind, sync::mpsc, thread};

use clockjack_rt::{
    PoolConfig, WorkerPool,
    exec::{Commands, Event, Events, Failure, JoinHandle, Payload, Process, StepOutput},
};
use clockjack_testing::{InTime, keeps_deadline};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime::Handle,
    sync::oneshot,
    time::Instant,
};

use crate::in_time::ShutdownInTime as _;
use crate::{LONG, one_thread, two_threads};

fn pool(tokio: usize) -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(2), tokio, ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).expect("a pool of a few threads starts");
    InTime::new(pool, PoolConfig::DEFAULT.drop_timeout)
}

/// The name of the thread that asks.
fn here() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

async fn echo_once(listener: TcpListener) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept().await?;
    let mut word = [0; 5];
    stream.read_exact(&mut word).await?;
    stream.write_all(&word).await
}

#[test]
fn futures_of_a_pool_talk_over_sockets() {
    let pool = pool(1);
    let talk = pool.spawn_future(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let server = clockjack_rt::spawn_future(echo_once(listener));
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"hello").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        server.await.expect("the server does not panic")?;
        Ok::<_, std::io::Error>((answer, here()))
    });
    let (answer, thread) = pool.block_on(talk).unwrap().unwrap();
    assert_eq!(answer, "hello");
    assert!(thread.starts_with("cj-worker"), "it ran on {thread}");
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn tokio_tasks_run_on_as_many_threads_as_were_asked_for() {
    let pool = pool(3);
    // Each waits for the others, without giving up its thread.
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(3));
    let names = pool.block_on(async {
        let tasks = [(); 3].map(|()| {
            let barrier = std::sync::Arc::clone(&barrier);
            tokio::spawn(async move {
                barrier.wait();
                here()
            })
        });
        let mut names = Vec::new();
        for task in tasks {
            names.push(task.await.expect("it does not panic"));
        }
        names
    });
    assert!(names.iter().all(|name| name == "cj-tokio-worker"), "{names:?}");
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn more_tokio_threads_than_there_can_be_are_refused() {
    let config = PoolConfig { tokio: 1025, ..PoolConfig::DEFAULT };
    let refused = WorkerPool::new(config, Commands::new()).expect_err("too many");
    assert!(refused.to_string().contains("1025 threads are more than 1024"), "{refused}");
}

#[test]
fn a_thread_that_waits_for_a_future_has_the_reactor_meanwhile() {
    let pool = pool(1);
    let listener = pool.block_on(TcpListener::bind(("127.0.0.1", 0))).unwrap();
    let address = listener.local_addr().unwrap();
    let server = pool.spawn_future(echo_once(listener));
    let mut answer = [0; 5];
    pool.block_on(async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"hello").await?;
        stream.read_exact(&mut answer).await
    })
    .unwrap();
    assert_eq!(&answer, b"hello");
    pool.block_on(server).unwrap().unwrap();
    assert!(Handle::try_current().is_err(), "it had it for as long as it waited");
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

/// Opens a socket in a step, which needs a reactor there.
struct Opens;

impl Process for Opens {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        match events.next() {
            Some(Event::Message(())) => {
                let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
                listener.set_nonblocking(true).unwrap();
                let listener = TcpListener::from_std(listener).unwrap();
                out.done(Payload::new(listener));
            }
            _ => out.idle(),
        }
        Ok(())
    }
}

#[test]
fn a_process_opens_a_socket_that_others_wait_for() {
    let pool = pool(1);
    let opens = pool.submit(Opens).unwrap();
    let socket = opens.join();
    opens.tell(()).unwrap();
    let listener = pool.block_on(socket).unwrap().downcast::<TcpListener>().unwrap();
    let address = listener.local_addr().unwrap();
    let server = pool.spawn_future(echo_once(listener));
    // A runtime of the caller's own is at the other end.
    let answer = one_thread().block_on(async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"other").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    });
    assert_eq!(answer.unwrap(), "other");
    pool.block_on(server).unwrap().unwrap();
}

#[test]
fn a_tokio_sleep_in_a_pool_ends_and_not_early() {
    let pool = pool(1);
    let slept = pool.spawn_future(async {
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_millis(5)).await;
        begun.elapsed()
    });
    assert!(pool.block_on(slept).unwrap() >= Duration::from_millis(5));
}

#[test]
fn a_tokio_task_runs_on_the_reactor_thread_and_is_awaited_by_a_future() {
    let pool = pool(1);
    let names =
        pool.spawn_future(async { (tokio::spawn(async { here() }).await.unwrap(), here()) });
    let (task, future) = pool.block_on(names).unwrap();
    assert_eq!(task, "cj-tokio");
    assert!(future.starts_with("cj-worker"), "it ran on {future}");
}

#[test]
fn workers_that_come_later_have_the_reactor_too() {
    let pool = pool(1);
    pool.resize(1).unwrap();
    pool.resize(4).unwrap();
    let joins: Vec<JoinHandle<bool>> =
        (0..64).map(|_| pool.spawn_future(async { Handle::try_current().is_ok() })).collect();
    for join in joins {
        assert!(pool.block_on(join).unwrap());
    }
}

#[test]
fn a_pool_that_did_not_ask_has_no_reactor() {
    let pool = pool(0);
    assert!(pool.block_on(pool.spawn_future(async { Handle::try_current().is_err() })).unwrap());
}

#[test]
fn a_join_is_awaited_by_a_tokio_task() {
    let pool = pool(0);
    let join = pool.spawn_future(async {
        clockjack_rt::sleep(Duration::from_millis(2)).await.unwrap();
        42
    });
    let answer = two_threads().block_on(async { tokio::spawn(join).await });
    assert_eq!(answer.unwrap().unwrap(), 42);
}

#[test]
fn a_pool_is_made_used_and_dropped_inside_a_runtime() {
    for runtime in [one_thread(), two_threads()] {
        let used = runtime.block_on(async {
            let task = tokio::spawn(async {
                let pool = pool(1);
                let nap = pool.spawn_future(async {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    here()
                });
                let name = nap.await.unwrap();
                keeps_deadline(PoolConfig::DEFAULT.drop_timeout, || drop(pool));
                name
            });
            task.await
        });
        assert!(used.expect("nothing panicked").starts_with("cj-worker"));
    }
}

/// Starts a task on the pool's reactor that never ends; who receives learns of its drop.
fn endless_task(pool: &WorkerPool) -> mpsc::Receiver<()> {
    let (alive, dropped) = mpsc::channel();
    let spawned = pool.spawn_future(async move {
        tokio::spawn(async move {
            let _alive: mpsc::Sender<()> = alive;
            core::future::pending::<()>().await;
        });
    });
    pool.block_on(spawned).unwrap();
    dropped
}

#[test]
fn the_reactor_ends_with_its_pool() {
    let pool = pool(1);
    let dropped = endless_task(&pool);
    assert_eq!(dropped.try_recv(), Err(mpsc::TryRecvError::Empty));
    let report = pool.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(dropped.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_tokio_task_that_blocks_does_not_delay_the_end_of_its_pool() {
    let pool = pool(1);
    let (hold, held) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    pool.block_on(async {
        tokio::spawn(async move {
            begin.send(()).unwrap();
            let _ = held.recv();
        });
    });
    begun.recv_timeout(LONG).unwrap();
    assert!(pool.shutdown_in_time(Duration::from_millis(20)).is_clean());
    drop(hold);
}

#[test]
fn the_reactor_ends_if_the_pool_is_dropped_by_a_panic() {
    let pool = pool(1);
    let dropped = endless_task(&pool);
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _pool = pool;
        panic!("with a pool in hand");
    }));
    assert!(unwound.is_err());
    assert_eq!(dropped.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_task_of_the_reactor_may_drop_the_pool_that_it_belongs_to() {
    for (threads, name) in [(1, "cj-tokio"), (2, "cj-tokio-worker")] {
        let pool = pool(threads);
        let dropped = endless_task(&pool);
        let (give, take) = oneshot::channel::<InTime<WorkerPool>>();
        let (report, reported) = mpsc::channel();
        let spawned = pool.spawn_future(async move {
            tokio::spawn(async move {
                drop(take.await);
                report.send(here()).unwrap();
            });
        });
        pool.block_on(spawned).unwrap();
        give.send(pool).unwrap();
        assert_eq!(reported.recv_timeout(LONG).as_deref(), Ok(name));
        assert_eq!(dropped.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected));
    }
}

#[test]
fn a_future_that_cleans_up_at_the_end_still_has_its_reactor() {
    struct CleansUp(mpsc::Sender<bool>);
    impl Drop for CleansUp {
        fn drop(&mut self) {
            let is_served = Handle::try_current().is_ok() && here() != "cj-tokio";
            self.0.send(is_served).unwrap();
        }
    }
    let pool = pool(1);
    let (report, reported) = mpsc::channel();
    let (begin, begun) = oneshot::channel();
    let waits = pool.spawn_future(async move {
        let _cleans_up = CleansUp(report);
        begin.send(()).unwrap();
        core::future::pending::<()>().await;
    });
    pool.block_on(begun).unwrap();
    drop(pool.shutdown_in_time(LONG));
    assert!(reported.recv_timeout(LONG).unwrap());
    drop(waits);
}
