//! The programs that are looked at.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
};

const HOUSE: &str = env!("CARGO_BIN_EXE_house");
/// A token is known to the test, so that the program can be started again with the same one.
const TOKEN: &str = "0123456789abcdefghjkmnpqrs";

/// A program that runs until this is dropped.
pub(crate) struct Program {
    process: Child,
    url: String,
}

impl Program {
    /// The program of this package, on a port that was free a moment ago.
    pub(crate) fn house() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        Self::house_at(port)
    }

    /// As [`house`](Self::house), on this port.
    pub(crate) fn house_at(port: u16) -> Self {
        let mut command = Command::new(HOUSE);
        command.arg(port.to_string()).env("CLOCKJACK_TOKEN", TOKEN);
        Self::start(&mut command)
    }

    fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the program was built");
        let mut line = String::new();
        let output = process.stdout.take().expect("it has a pipe");
        BufReader::new(output).read_line(&mut line).expect("it writes text");
        let url = line.trim().strip_prefix("look at ").expect("it says where it is").to_owned();
        Self { process, url }
    }

    /// Where its page is, with the token.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // By SIGKILL: a browser has to live with that.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
