//! Memory does not grow while somebody looks, however many actors come and go, and whatever the
//! client does not read. One test, because the allocator counts all threads. On a unix socket,
//! because the operating system keeps megabytes for a client on TCP that does not read.

#![cfg(target_os = "linux")]

use core::time::Duration;
use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::{fs::DirBuilderExt as _, net::UnixStream},
    path::Path,
    thread,
    time::Instant,
};

use clockjack_console::server::{Bind, Console};
use clockjack_rt::{
    Runtime,
    actor::{Next, Props},
};
use clockjack_testing::allocation::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// How long the server may take to drop a client that does not read.
const PATIENCE: Duration = Duration::from_secs(60);
/// Actors that come and go at a time.
const ROUND: u64 = 1_000;

/// Starts and stops so many actors, each of which dies of its first message and leaves dead letters
/// and entries in the log behind.
fn churn(runtime: &Runtime, n: u64, next: &mut u64) {
    for _ in 0..n / ROUND {
        for _ in 0..ROUND {
            let name = format!("session-{next}");
            *next += 1;
            let actor = runtime.spawn(&name, Props::from_fn(|_cx, (): ()| Next::Stop)).unwrap();
            actor.tell(()).unwrap();
            // The second one is too late, or a dead letter.
            let _late = actor.tell(());
        }
        while runtime.system().metrics().live > 200 {
            thread::yield_now();
        }
    }
}

/// A client that subscribes to all tables, and has read nothing yet.
fn subscribe(path: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(path).unwrap();
    let views = "view=actors&view=overview&view=events&view=deadletters&view=tree%3Fat%3D/user";
    write!(stream, "GET /v1/stream?{views}&hz=10 HTTP/1.1\r\nhost: shop\r\n\r\n").unwrap();
    stream
}

#[test]
fn console_is_bounded() {
    let runtime = Runtime::new("shop").unwrap();
    let directory = std::env::temp_dir().join(format!("cj-bounded-{}", std::process::id()));
    fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    let path = directory.join("shop.sock");
    let console = Console::of(&runtime).bind(Bind::SocketAt(path.clone())).open().unwrap();
    let never = subscribe(&path);
    let mut slow = subscribe(&path);
    let reader = thread::spawn(move || {
        let mut buffer = [0; 512];
        let mut n_bytes = 0;
        // It ends with the console.
        while let Ok(n @ 1..) = slow.read(&mut buffer) {
            n_bytes += n;
            thread::park_timeout(Duration::from_millis(2));
        }
        n_bytes
    });
    let mut next = 0;
    churn(&runtime, 10_000, &mut next);
    let before = ALLOCATOR.used_bytes();
    churn(&runtime, 50_000, &mut next);
    let after = ALLOCATOR.used_bytes();
    // 10,000 actors fill every table; five times as many need no more. One entry that is kept for
    // each actor would be several times as much.
    let grown = after.saturating_sub(before);
    assert!(grown < 2 << 20, "{grown} bytes more than {before}");

    let begin = Instant::now();
    while console.clients() > 1 {
        assert!(begin.elapsed() < PATIENCE, "a client that never reads is still there");
        thread::yield_now();
    }
    drop(never);
    drop(console);
    assert!(reader.join().unwrap() > 0, "the slow one has read something");
    fs::remove_dir(directory).unwrap();
}
