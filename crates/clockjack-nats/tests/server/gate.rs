//! [`Gate`]: a way to a server that can be closed, as a network can be partitioned.
//!
//! While the gate is closed, no byte passes, and no connection ends: what was sent waits in the
//! buffers of the operating system, as it does while packets are lost and sent again. A gate can
//! also lose bytes: then the connections end, as that is the only way in which TCP loses anything.

use core::{
    sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst},
    time::Duration,
};
use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

/// How often a thread looks whether the gate is open.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// See the [module](self). Its threads end with their connections.
pub(crate) struct Gate {
    port: u16,
    state: Arc<AtomicU8>,
}

/// Bytes pass.
const OPEN: u8 = 0;
/// Bytes wait.
const CLOSED: u8 = 1;
/// Bytes are lost.
const LOSING: u8 = 2;
/// Connections end.
const ENDING: u8 = 3;

impl Gate {
    pub(crate) fn new(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let state = Arc::new(AtomicU8::new(OPEN));
        let states = state.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = states.clone();
                thread::spawn(move || {
                    wait(&state);
                    // A server that is away refuses, and so does the gate.
                    let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { return };
                    let both = (client.try_clone(), server.try_clone());
                    let (Ok(from_client), Ok(from_server)) = both else { return };
                    let (back, over) = (state.clone(), Arc::new(AtomicBool::new(false)));
                    let is_over = over.clone();
                    thread::spawn(move || forward(from_server, client, &back, &over));
                    forward(from_client, server, &state, &is_over);
                });
            }
        });
        Self { port, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn set_closed(&self, is_closed: bool) {
        self.state.store(if is_closed { CLOSED } else { OPEN }, SeqCst);
    }

    /// Loses all bytes for a while, and then the connections.
    pub(crate) fn lose(&self, during: Duration) {
        self.state.store(LOSING, SeqCst);
        thread::sleep(during);
        self.state.store(ENDING, SeqCst);
        // Longer than each thread takes to notice.
        thread::sleep(LOOK_EVERY * 20);
        self.state.store(OPEN, SeqCst);
    }
}

fn wait(state: &AtomicU8) {
    while state.load(SeqCst) == CLOSED {
        thread::sleep(LOOK_EVERY);
    }
}

/// Forwards in one direction, until one of both is over.
fn forward(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8, is_over: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    // An error is the end of the connection as well.
    drop(from.set_read_timeout(Some(LOOK_EVERY)));
    loop {
        wait(state);
        if state.load(SeqCst) == ENDING || is_over.load(SeqCst) {
            break;
        }
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                // What was read before the gate closed waits here.
                wait(state);
                let is_lost = state.load(SeqCst) == LOSING;
                if !is_lost && to.write_all(&buffer[..n]).is_err() {
                    break;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    is_over.store(true, SeqCst);
}
