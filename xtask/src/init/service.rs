//! Runs the program of the service template as a service manager does: starts it on a free port of
//! the loopback interface, requests its pages, sends SIGTERM and waits for the drain.

use core::{net::SocketAddr, time::Duration};
use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    console::Line,
    process::{self, Cmd},
};

/// How long each step may take: far longer than any of them takes on a busy machine.
const STEP_MAX: Duration = Duration::from_secs(30);
/// How often a state that nobody reports is polled.
const POLL: Duration = Duration::from_millis(10);
/// The exit status for wrong arguments.
const USAGE: i32 = 2;
/// The end of the last line of the log after a clean drain.
const DRAINED: &str = "runtime shut down (SIGTERM): clean";

/// Checks a service, and returns what it did. Its log is appended to `log`.
pub(super) fn check(program: &Path, line: &Line, log: &Path) -> Result<String> {
    if cfg!(not(unix)) {
        return Ok("not run: this system has no SIGTERM".to_owned());
    }
    line.tick("wrong arguments");
    for wrong in ["nonsense", "127.0.0.1"] {
        let refused = Cmd::new(program).arg(wrong).limit(STEP_MAX).capture()?;
        let code = refused.status.and_then(|status| status.code());
        ensure!(code == Some(USAGE), "`{wrong}` exited with {code:?}: {}", refused.output);
        ensure!(refused.output.contains("usage: "), "`{wrong}` printed {}", refused.output);
    }
    let mut service = Service::start(program)?;
    let checked = pages_and_drain(&mut service, line);
    let service_log = service.finish();
    let before = std::fs::read_to_string(log).unwrap_or_default();
    process::write(log, &format!("{before}$ {}\n{service_log}", program.display()))?;
    checked.with_context(|| format!("the log of the service:\n{service_log}"))
}

fn pages_and_drain(service: &mut Service, line: &Line) -> Result<String> {
    line.tick("waits for the service");
    let address = service.address()?;
    line.tick("requests the pages");
    let mut n_pages = 0;
    let mut page = |request: &str, status: u16, text: &str| {
        n_pages += 1;
        let response = exchange(address, request).with_context(|| format!("{request:?}"))?;
        let is_as_expected = response.starts_with(&format!("HTTP/1.1 {status} "));
        ensure!(is_as_expected && response.contains(text), "{request:?} got {response}");
        Ok(())
    };
    page(&post("ann", "milk"), 200, "\r\n\r\nnote 1\n")?;
    page(&post("ann", "bread"), 200, "\r\n\r\nnote 2\n")?;
    page(&get("/sessions/ann"), 200, "\r\n\r\nmilk\nbread\n")?;
    page(&get("/sessions/bob"), 404, "no such session")?;
    page(&get("/health"), 200, "ok, 1 sessions")?;
    page(&get("/metrics"), 200, "\nclockjack_actors_live ")?;
    page(&get("/metrics"), 200, "\nclockjack_service_notes_added_total 2\n")?;

    // A request that has begun before the signal is completed after it.
    line.tick("sends SIGTERM during a request");
    let request = post("ann", "eggs");
    let (begin, rest) = request.split_at(request.len() - 2);
    let mut client = connect(address)?;
    // The first request shows that the connection was accepted: only such connections are drained.
    client.write_all(get("/health").replace("close", "keep-alive").as_bytes())?;
    read_until(&mut client, "ok, 1 sessions\n")?;
    client.write_all(begin.as_bytes()).context("cannot send the first half of a request")?;
    service.terminate()?;
    let since = Instant::now();
    while TcpStream::connect_timeout(&address, STEP_MAX).is_ok() {
        ensure!(since.elapsed() < STEP_MAX, "the service still accepts connections");
        thread::sleep(POLL);
    }
    client.write_all(rest.as_bytes()).context("cannot send the rest of a request")?;
    let mut response = String::new();
    client.read_to_string(&mut response).context("cannot read a response during the drain")?;
    ensure!(response.contains("\r\n\r\nnote 3\n"), "during the drain: {response:?}");

    line.tick("waits for the drain");
    let (status, took) = (service.wait()?, since.elapsed());
    ensure!(status.success(), "after SIGTERM, the service exited with {status}");
    let lines = service.rest_of_log();
    let last = lines.last().map_or("", String::as_str);
    ensure!(last.ends_with(DRAINED), "the log ends with {last:?}, not with {DRAINED:?}");
    Ok(format!("{n_pages} pages served, drained in {} ms", took.as_millis()))
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
}

fn post(session: &str, text: &str) -> String {
    let length = text.len();
    format!(
        "POST /sessions/{session} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{text}"
    )
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let client = TcpStream::connect_timeout(&address, STEP_MAX).context("cannot connect")?;
    client.set_read_timeout(Some(STEP_MAX))?;
    client.set_write_timeout(Some(STEP_MAX))?;
    Ok(client)
}

/// Sends a request, and returns the response.
fn exchange(address: SocketAddr, request: &str) -> Result<String> {
    let mut client = connect(address)?;
    client.write_all(request.as_bytes()).context("cannot send a request")?;
    io::read_to_string(client).context("cannot read a response")
}

/// Reads until the text ends with `end`.
fn read_until(client: &mut TcpStream, end: &str) -> Result<()> {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(end.as_bytes()) {
        client
            .read_exact(&mut byte)
            .with_context(|| format!("no {end:?} after {:?}", String::from_utf8_lossy(&text)))?;
        text.extend(byte);
    }
    Ok(())
}

/// A running service. Dropping it kills it.
struct Service {
    child: Child,
    lines: Receiver<String>,
    log: Vec<String>,
}

impl Service {
    fn start(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("127.0.0.1:0").stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped()).env_remove("LOG");
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let stderr = child.stderr.take().expect("standard error is a pipe");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || read_lines(stderr, &sender));
        Ok(Self { child, lines, log: Vec::new() })
    }

    /// The address in the first line of the log.
    fn address(&mut self) -> Result<SocketAddr> {
        let since = Instant::now();
        while let Some(left) = STEP_MAX.checked_sub(since.elapsed()) {
            let Ok(text) = self.lines.recv_timeout(left) else { break };
            self.log.push(text.clone());
            if let Some((_, address)) = text.split_once("listening on http://") {
                return address.trim().parse().with_context(|| format!("no address in {text:?}"));
            }
        }
        bail!("the service does not say where it listens")
    }

    fn terminate(&self) -> Result<()> {
        let kill = Cmd::new("sh").arg("-c").arg("kill -TERM \"$1\"").arg("kill");
        let sent = kill.arg(self.child.id().to_string()).limit(STEP_MAX).capture()?;
        ensure!(sent.is_success(), "cannot send SIGTERM: {}", sent.output);
        Ok(())
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let since = Instant::now();
        while since.elapsed() < STEP_MAX {
            if let Some(status) = self.child.try_wait().context("cannot wait for the service")? {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        bail!("the service has not exited {} s after SIGTERM", STEP_MAX.as_secs())
    }

    /// The whole log. The service has exited, so the log has an end.
    fn rest_of_log(&mut self) -> &[String] {
        self.log.extend(self.lines.iter());
        &self.log
    }

    /// Kills the service if it still runs, and returns its log.
    fn finish(mut self) -> String {
        self.kill();
        let mut text = self.rest_of_log().join("\n");
        text.push('\n');
        text
    }

    fn kill(&mut self) {
        // Both fail only if the service has exited and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_lines(stderr: ChildStderr, sender: &mpsc::Sender<String>) {
    for text in BufReader::new(stderr).lines().map_while(Result::ok) {
        if sender.send(text).is_err() {
            return;
        }
    }
}
