//! As much of HTTP/1.1 as a client of our own server needs: one request per connection, and bodies
//! with a length or in chunks.

use core::time::Duration;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;

use super::ClientError;
use crate::Address;

/// The longest head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 64;
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The longest line that announces a chunk.
const CHUNK_LINE_MAX: u64 = 64;

/// An answer.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Body,
}

/// A connection.
#[derive(Debug)]
pub(super) enum Connection {
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
    Tcp(TcpStream),
}

impl Connection {
    fn open(to: &Address, silence_max: Duration) -> io::Result<Self> {
        match to {
            #[cfg(unix)]
            Address::Socket(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path)?;
                stream.set_read_timeout(Some(silence_max))?;
                stream.set_write_timeout(Some(CONNECT_TIME))?;
                Ok(Self::Unix(stream))
            }
            #[cfg(not(unix))]
            Address::Socket(_) => Err(io::ErrorKind::Unsupported.into()),
            Address::Tcp(at, _) => {
                let stream = TcpStream::connect_timeout(at, CONNECT_TIME)?;
                stream.set_read_timeout(Some(silence_max))?;
                stream.set_write_timeout(Some(CONNECT_TIME))?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// The same connection once more.
    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            #[cfg(unix)]
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
        })
    }

    /// Ends the connection, also for a thread that waits in a read.
    pub(super) fn shut_down(&self) {
        use std::net::Shutdown;
        // One that has ended already is as good.
        let _shut = match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tcp(stream) => stream.write_all(bytes),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buf),
            Self::Tcp(stream) => stream.read(buf),
        }
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Body {
    connection: BufReader<Connection>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// So many bytes are left.
    Length(u64),
    /// So many bytes are left of this chunk; its end has been read if there are none.
    Chunks(u64),
    /// The last chunk was read.
    Ended,
}

impl Body {
    /// The connection over which it comes.
    pub(super) fn connection(&self) -> io::Result<Connection> {
        self.connection.get_ref().try_clone()
    }

    /// The whole body.
    pub(super) fn text(self, bytes_max: u64) -> Result<String, ClientError> {
        let mut text = String::new();
        let n = self.take(bytes_max + 1).read_to_string(&mut text).map_err(ClientError::io)?;
        if n as u64 > bytes_max {
            return Err(ClientError::malformed("it is too long".into()));
        }
        Ok(text)
    }

    fn next_chunk(&mut self) -> io::Result<u64> {
        let mut line = Vec::new();
        let mut limited = (&mut self.connection).take(CHUNK_LINE_MAX);
        limited.read_until(b'\n', &mut line)?;
        match httparse::parse_chunk_size(&line) {
            Ok(httparse::Status::Complete((_, size))) => Ok(size),
            _ if line.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl Read for Body {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.form == Form::Chunks(0) {
            self.form = match self.next_chunk()? {
                0 => Form::Ended,
                size => Form::Chunks(size),
            };
        }
        let (Form::Length(left) | Form::Chunks(left)) = self.form else { return Ok(0) };
        let n_max = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        let n = self.connection.read(&mut buf[..n_max])?;
        if n == 0 && n_max > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let left = left - n as u64;
        self.form = match self.form {
            Form::Chunks(_) if left == 0 => {
                // The end of the line after a chunk.
                self.connection.read_exact(&mut [0; 2])?;
                Form::Chunks(0)
            }
            Form::Chunks(_) => Form::Chunks(left),
            _ => Form::Length(left),
        };
        Ok(n)
    }
}

/// Requests a path.
pub(super) fn get(
    to: &Address,
    path: &str,
    silence_max: Duration,
) -> Result<Response, ClientError> {
    send(to, &format!("GET {path}"), "\r\n", silence_max)
}

/// Sends JSON to a path.
pub(super) fn post(
    to: &Address,
    path: &str,
    json: &str,
    silence_max: Duration,
) -> Result<Response, ClientError> {
    let length = json.len();
    let rest = format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n{json}");
    send(to, &format!("POST {path}"), &rest, silence_max)
}

/// Sends a request: its line up to the path, and further headers with the body.
fn send(
    to: &Address,
    line: &str,
    rest: &str,
    silence_max: Duration,
) -> Result<Response, ClientError> {
    let mut connection = Connection::open(to, silence_max).map_err(ClientError::io)?;
    let (host, authorization) = match to {
        Address::Socket(_) => ("localhost".to_owned(), String::new()),
        Address::Tcp(at, None) => (at.to_string(), String::new()),
        Address::Tcp(at, Some(token)) => {
            (at.to_string(), format!("authorization: Bearer {}\r\n", token.secret()))
        }
    };
    let request =
        format!("{line} HTTP/1.1\r\nhost: {host}\r\n{authorization}connection: close\r\n{rest}");
    // A program without room answers before it reads, and closes: its answer counts.
    let sent = connection.send(request.as_bytes());
    let mut connection = BufReader::new(connection);
    match read_head(&mut connection) {
        Ok((status, form)) => Ok(Response { status, body: Body { connection, form } }),
        Err(error) => Err(sent.map_or_else(ClientError::io, |()| error)),
    }
}

/// Reads the head of an answer; returns its status and the form of the body.
fn read_head(connection: &mut BufReader<Connection>) -> Result<(u16, Form), ClientError> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let room = HEAD_BYTES_MAX.saturating_sub(head.len()) as u64;
        let n = connection.take(room).read_until(b'\n', &mut head).map_err(ClientError::io)?;
        if n == 0 {
            return Err(ClientError::io(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(&head).map_err(|error| ClientError::malformed(error.to_string()))?;
    let value = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| core::str::from_utf8(header.value).ok())
    };
    let is_chunked = value("transfer-encoding").is_some_and(|form| form.contains("chunked"));
    let length = value("content-length").and_then(|length| length.parse().ok());
    let form = if is_chunked { Form::Chunks(0) } else { Form::Length(length.unwrap_or(0)) };
    Ok((response.code.unwrap_or(0), form))
}
