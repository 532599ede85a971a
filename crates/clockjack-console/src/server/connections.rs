//! Connections: how many, how large, how slow.
//!
//! The bounds are kept here, per connection: the length of a head and the time in which it must
//! arrive, the time in which a client must read. A connection above the limit is answered with 503
//! and closed.

use core::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll},
    time::Duration,
};
use std::{io, net::TcpListener as StdTcpListener, sync::Arc};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpListener,
    sync::watch,
    task::JoinSet,
    time::{Sleep, sleep, timeout},
};

use super::{CONNECTIONS_MAX, Source, act::Asker, guard::Guard, health::Health, routes};

/// The longest head of a request, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// In which time a head must arrive. A connection without a request is closed after it, too.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// For how long a client may not read anything.
const READ_TIME: Duration = Duration::from_secs(10);
/// For how long a refused client gets time to read why.
const LINGER: Duration = Duration::from_secs(1);
/// For how long a console that closes goes on, so that its clients learn that it does.
const GOODBYE: Duration = Duration::from_millis(100);
/// Connections that are being refused at the same time; further ones are closed without an answer.
const REFUSED_MAX: usize = 8;
/// The pause after the operating system has no room for another connection.
const RETRY: Duration = Duration::from_millis(100);

const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\
    content-length: 42\r\n\r\nthere are eight other connections already\n";
const SLOW: &str = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\
    content-length: 0\r\n\r\n";

/// What listens.
#[derive(Debug)]
pub(crate) enum Listener {
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener),
    Tcp(StdTcpListener),
}

/// What is served, and to whom.
pub(super) struct Served {
    pub(super) source: Arc<dyn Source>,
    pub(super) guard: Guard,
    pub(super) n_clients: Arc<AtomicUsize>,
}

/// A client's connection.
trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

/// Serves until the sender of `stopped` is dropped.
pub(super) async fn run(
    listener: Listener,
    served: Served,
    health: Option<(StdTcpListener, Health)>,
    mut stopped: watch::Receiver<()>,
) {
    let n_clients = served.n_clients.clone();
    let n_open = n_clients.clone();
    let router = routes::router(served, &stopped);
    let console = async {
        match listener {
            #[cfg(unix)]
            Listener::Unix(listener) => serve_unix(listener, router, n_clients).await,
            Listener::Tcp(listener) => serve_tcp(listener, router, n_clients).await,
        }
    };
    let health = async {
        let Some((listener, health)) = health else { return core::future::pending().await };
        if listener.set_nonblocking(true).is_ok() {
            serve_tcp(listener, health.router(), Arc::default()).await;
        }
    };
    let mut serve = pin!(async { tokio::join!(console, health) });
    tokio::select! {
        _ = &mut serve => {}
        _ = stopped.changed() => {
            // The streams say goodbye.
            if n_open.load(Ordering::Relaxed) > 0 {
                let _served = timeout(GOODBYE, serve).await;
            }
        }
    }
}

#[cfg(unix)]
async fn serve_unix(
    listener: std::os::unix::net::UnixListener,
    router: Router,
    n_clients: Arc<AtomicUsize>,
) {
    let Ok(listener) = tokio::net::UnixListener::from_std(listener) else { return };
    let mut connections = Connections::new(router, n_clients);
    loop {
        match connections.work_until(listener.accept()).await {
            // A client that is gone already has no credentials.
            Ok((io, _)) => match io.peer_cred() {
                Ok(peer) if super::socket::may_connect(peer.uid()) => {
                    let pid = peer.pid().map_or(String::new(), |pid| format!(", pid {pid}"));
                    connections.add(io, Asker::new(&format!("uid {}{pid}", peer.uid())));
                }
                _ => drop(io),
            },
            Err(_) => sleep(RETRY).await,
        }
    }
}

async fn serve_tcp(listener: StdTcpListener, router: Router, n_clients: Arc<AtomicUsize>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut connections = Connections::new(router, n_clients);
    loop {
        match connections.work_until(listener.accept()).await {
            Ok((io, from)) => {
                // Frames are small, and their reader waits for them.
                let _set = io.set_nodelay(true);
                connections.add(io, Asker::new(&from.to_string()));
            }
            Err(_) => sleep(RETRY).await,
        }
    }
}

/// The connections of one listener.
struct Connections {
    router: Router,
    n_clients: Arc<AtomicUsize>,
    open: JoinSet<()>,
    refused: JoinSet<()>,
}

impl Connections {
    fn new(router: Router, n_clients: Arc<AtomicUsize>) -> Self {
        Self { router, n_clients, open: JoinSet::new(), refused: JoinSet::new() }
    }

    /// Takes leave of connections that have ended, until the future is ready.
    async fn work_until<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                biased;
                Some(_) = self.open.join_next(), if !self.open.is_empty() => {
                    self.count();
                }
                Some(_) = self.refused.join_next(), if !self.refused.is_empty() => {}
                output = &mut future => return output,
            }
        }
    }

    fn count(&self) {
        // Relaxed: the number publishes nothing.
        self.n_clients.store(self.open.len(), Ordering::Relaxed);
    }

    fn add(&mut self, io: impl Io, asker: Asker) {
        if self.open.len() < CONNECTIONS_MAX {
            let router = self.router.clone().layer(Extension(asker));
            self.open.spawn(serve(Patient { io, late: None }, router));
            self.count();
        } else if self.refused.len() < REFUSED_MAX {
            self.refused.spawn(async move {
                // A client that does not read the answer is closed all the same.
                let _answered = timeout(LINGER, refuse(io, BUSY)).await;
            });
        }
    }
}

/// Serves one connection to its end.
async fn serve(io: impl Io, router: Router) {
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    builder.max_buf_size(HEAD_BYTES_MAX).max_header_size(HEAD_BYTES_MAX);
    let mut connection = builder.serve_connection(TokioIo::new(io), service);
    let result = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    let parts = connection.into_parts();
    let io = parts.io.into_inner();
    let answer = match result {
        Err(error) if error.is_timeout() => SLOW,
        _ => "",
    };
    // A client that does not read the answer is closed all the same.
    let _answered = timeout(LINGER, refuse(io, answer)).await;
}

/// Writes an answer and waits until the client has read it: a connection that is closed with
/// unread bytes is reset, and the client would lose the answer.
async fn refuse(mut io: impl Io, answer: &str) -> io::Result<()> {
    io.write_all(answer.as_bytes()).await?;
    io.shutdown().await?;
    let mut rest = [0; 1024];
    while io.read(&mut rest).await? > 0 {}
    Ok(())
}

/// A connection whose client must read in time.
struct Patient<T> {
    io: T,
    /// Runs out [`READ_TIME`] after the first write that found no room.
    late: Option<Pin<Box<Sleep>>>,
}

impl<T: Io> Patient<T> {
    /// The result of a write: an error if the client has read nothing for too long.
    fn check<R>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if result.is_ready() {
            self.late = None;
            return result;
        }
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(READ_TIME)));
        late.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: Io> AsyncRead for Patient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: Io> AsyncWrite for Patient<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.io).poll_write(cx, buf);
        self.check(cx, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.io).poll_flush(cx);
        self.check(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_answers_say_how_long_they_are() {
        for answer in [BUSY, SLOW] {
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
        }
    }
}
