//! The programs that are looked at.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
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
    /// The program of this package, on a port that is free.
    pub(crate) fn house() -> Self {
        Self::house_at(0)
    }

    /// As [`house`](Self::house), on this port.
    pub(crate) fn house_at(port: u16) -> Self {
        let mut command = Command::new(HOUSE);
        command.arg(port.to_string()).env("CLOCKJACK_TOKEN", TOKEN);
        Self::start(&mut command)
    }

    /// The shop of the examples with this illness.
    pub(crate) fn shop(illness: &str) -> Self {
        // It was built into the directory of the program of this package.
        let shop = Path::new(HOUSE).with_file_name("shop");
        assert!(shop.is_file(), "build it: `cargo build -p clockjack-shop --bins`");
        Self::start(Command::new(shop).args(["--ill", illness, "--console", "browser"]))
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

    /// The port of its page.
    pub(crate) fn port(&self) -> u16 {
        let host = self.url.strip_prefix("http://127.0.0.1:").expect("it is on this machine");
        host.split('/').next().and_then(|port| port.parse().ok()).expect("it has a port")
    }

    /// Its origin: what all requests of its page begin with.
    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port())
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
