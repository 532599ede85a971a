//! TCP: a future accepts connections, another one reads from each, and an actor writes to each.

use std::{io, sync::Arc};

use clockjack::{
    prelude::*,
    rt::{sleep, spawn_future, timeout},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use crate::{
    device, devices,
    figures::{Figures, count},
    protocol::{self, LINE_LEN_MAX, Line},
};

/// How long a connection may take to say `hello`.
const HELLO_MAX: Duration = Duration::from_secs(5);
/// How long one write may take.
const WRITE_MAX: Duration = Duration::from_secs(5);
/// How long a connection waits for its actor.
const JOIN_MAX: Duration = Duration::from_secs(5);
/// The pause after a connection could not be accepted, for example because there are too many open
/// files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How many lines wait for a device. One that does not read is disconnected.
const LINES_WAITING_MAX: usize = 256;

/// What the gateway sends to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Out {
    /// A line.
    Line(String),
    /// The end of the connection, after the lines that were sent before.
    Close,
}

/// Writes lines to a connection. It closes the connection when it stops.
#[derive(Debug)]
struct Writer {
    socket: OwnedWriteHalf,
    is_closing: bool,
}

impl Actor for Writer {
    type Msg = Out;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Out) -> Result<Next, Failure> {
        match msg {
            // It may overtake lines, so the actor stops when no line arrives any more.
            Out::Close => {
                self.is_closing = true;
                cx.set_receive_timeout(Duration::from_millis(1));
            }
            Out::Line(mut line) => {
                line.push('\n');
                cx.wait_mut(move |me| {
                    Box::pin(async move {
                        let written = timeout(WRITE_MAX, me.socket.write_all(line.as_bytes()));
                        // A peer that is gone, or does not read, is nothing that fails.
                        if let Ok(Ok(())) = written.await { Next::Stay } else { Next::Stop }
                    })
                })?;
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            // It never fires while a line waits.
            Signal::ReceiveTimeout if self.is_closing => Ok(Next::Stop),
            _ => Ok(Next::Unhandled),
        }
    }
}

/// Accepts connections until `stop` changes.
pub async fn accept(
    system: ActorSystem,
    listener: TcpListener,
    devices: ActorRef<devices::Msg>,
    figures: Arc<Figures>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        match accepted {
            Ok((socket, _)) => {
                count(&figures.connections);
                let (system, devices) = (system.clone(), devices.clone());
                let (figures, stop) = (Arc::clone(&figures), stop.clone());
                drop(spawn_future(async move {
                    if serve(&system, socket, &devices, stop).await.is_err() {
                        count(&figures.connections_invalid);
                    }
                }));
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                if sleep(ACCEPT_PAUSE).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// A connection that was closed because of what it sent, or did not send.
struct Invalid;

/// Serves a connection: introduces its device, and tells it each line.
async fn serve(
    system: &ActorSystem,
    socket: TcpStream,
    devices: &ActorRef<devices::Msg>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Invalid> {
    // Answers are short and must not wait for each other.
    let _ = socket.set_nodelay(true);
    let (read, write) = socket.into_split();
    let mut lines = Lines { read: BufReader::new(read), bytes: Vec::new() };
    let writer = Props::once(Writer { socket: write, is_closing: false })
        .mailbox(Mailbox::bounded(LINES_WAITING_MAX));
    let Ok(writer) = system.spawn_anonymous(writer) else { return Ok(()) };
    let close = |why: &str| {
        let _ = writer.tell(Out::Line(format!("error {why}")));
        let _ = writer.tell(Out::Close);
    };
    let first = tokio::select! {
        first = timeout(HELLO_MAX, lines.next()) => first,
        _ = stop.changed() => {
            close("the gateway is stopping");
            return Ok(());
        }
    };
    let name = match first.map_err(|_| "no hello in time") {
        Ok(Ok(Some(Ok(Line::Hello(name))))) => name,
        Ok(Ok(None) | Err(_)) => {
            close("no hello");
            return Err(Invalid);
        }
        Ok(Ok(Some(Ok(_)))) => {
            close("the first line is not hello");
            return Err(Invalid);
        }
        Ok(Ok(Some(Err(why)))) | Err(why) => {
            close(why);
            return Err(Invalid);
        }
    };
    let (to, back) = (devices, writer.clone());
    let join = |reply_to| devices::Msg::Join { name, writer: back, reply_to };
    let device = match to.ask(join, JOIN_MAX).await {
        Ok(Ok(device)) => device,
        Ok(Err(why)) => {
            close(why);
            return Ok(());
        }
        Err(_) => {
            close("busy");
            return Ok(());
        }
    };
    let mut stopped = system.when_stopped(&device);
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            _ = &mut stopped => return Ok(()),
        };
        let told = match line {
            // Waits for room: a device that sends faster than its actor works is slowed by TCP.
            Ok(Some(Ok(line))) => device.send(device::Msg::Line(line)).await.is_ok(),
            Ok(None) | Err(_) => {
                let _ = device.send(device::Msg::Close).await;
                return Ok(());
            }
            Ok(Some(Err(why))) => {
                close(why);
                return Err(Invalid);
            }
        };
        if !told {
            return Ok(());
        }
    }
}

/// Reads lines of a bounded length.
struct Lines {
    read: BufReader<OwnedReadHalf>,
    bytes: Vec<u8>,
}

impl Lines {
    /// The next line; `None` at the end. If the future is dropped, nothing is lost.
    async fn next(&mut self) -> io::Result<Option<Result<Line, &'static str>>> {
        let room = (LINE_LEN_MAX + 1).saturating_sub(self.bytes.len());
        let mut limited = (&mut self.read).take(room as u64);
        limited.read_until(b'\n', &mut self.bytes).await?;
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let line = if self.bytes.last() == Some(&b'\n') {
            str::from_utf8(&self.bytes).map_err(|_| "not UTF-8").and_then(protocol::parse)
        } else if self.bytes.len() > LINE_LEN_MAX {
            Err("the line is too long")
        } else {
            Err("the last line has no end")
        };
        self.bytes.clear();
        Ok(Some(line))
    }
}
