//! `clockjack top` in a real pseudo-terminal: keys, a resize, a quit, and SIGTERM, after each of
//! which the terminal is as before.

#![cfg(target_os = "linux")]

use core::time::Duration;
use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::fs::DirBuilderExt as _},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Instant,
};

use clockjack_console::server::{Bind, Console, Opened};
use clockjack_rt::{Runtime, actor::Props};
use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal as UnixSignal, kill_process},
    pty::{self, OpenptFlags},
    termios::{self, Winsize},
};

/// The longest time until a screen must show something, on a machine under load.
const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal with `clockjack top` in it.
struct Terminal {
    child: Child,
    keys: File,
    slave: OwnedFd,
    before: String,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Terminal {
    fn open(program: &str) -> Self {
        let master = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&master).unwrap();
        pty::unlockpt(&master).unwrap();
        let name = pty::ptsname(&master, Vec::new()).unwrap();
        let slave = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        resize(&slave, 24, 80);
        let before = mode_of(&slave);
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_clockjack"));
        command.args(["top", program, "--hz", "10"]).env("TERM", "xterm");
        command.env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let child = command.spawn().unwrap();
        let keys = File::from(master);
        let mut reader = keys.try_clone().unwrap();
        let (sender, output) = mpsc::channel();
        thread::Builder::new()
            .spawn(move || {
                let mut bytes = vec![0; 4096];
                while let Ok(n @ 1..) = reader.read(&mut bytes) {
                    if sender.send(bytes[..n].to_vec()).is_err() {
                        return;
                    }
                }
            })
            .unwrap();
        let screen = vt100::Parser::new(24, 80, 0);
        Self { child, keys, slave, before, output, screen }
    }

    /// Waits until the screen is as wanted.
    fn wait(&mut self, what: &str, is_wanted: impl Fn(&vt100::Screen) -> bool) {
        let begin = Instant::now();
        while !is_wanted(self.screen.screen()) {
            // A screen that changes again and again is not patient for ever.
            let more = self.output.recv_timeout(PATIENCE.saturating_sub(begin.elapsed()));
            let shown = self.screen.screen().contents();
            let more = more.unwrap_or_else(|_| panic!("no {what:?} in\n{shown}"));
            self.screen.process(&more);
        }
    }

    /// Waits until the screen shows this text.
    fn expect(&mut self, text: &str) {
        self.wait(text, |screen| screen.contents().contains(text));
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        resize(&self.slave, rows, columns);
        self.screen.screen_mut().set_size(rows, columns);
        // The terminal's own process would be told by the kernel; this one has no terminal.
        kill_process(Pid::from_child(&self.child), UnixSignal::WINCH).unwrap();
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the command has ended, and checks that it has cleaned up.
    fn end(mut self) -> ExitStatus {
        self.wait("the screen of before", |screen| !screen.alternate_screen());
        let status = self.child.wait().unwrap();
        assert_eq!(mode_of(&self.slave), self.before, "the mode is that of before");
        status
    }
}

fn resize(slave: &OwnedFd, ws_row: u16, ws_col: u16) {
    let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
    termios::tcsetwinsize(slave, size).unwrap();
}

fn mode_of(slave: &OwnedFd) -> String {
    let mode = termios::tcgetattr(slave).unwrap();
    format!("{:?} {:?} {:?}", mode.input_modes, mode.output_modes, mode.local_modes)
}

/// A program with one actor.
fn house(name: &str) -> (Runtime, Opened) {
    let directory = std::env::temp_dir().join(format!("cj-top-{}-{name}", std::process::id()));
    let _removed = fs::remove_dir_all(&directory);
    fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    let runtime = Runtime::new("house").unwrap();
    runtime.spawn("till", Props::from_fn(|_cx, (): ()| ())).unwrap();
    let bind = Bind::SocketAt(directory.join("house.sock"));
    let console = Console::of(&runtime).bind(bind).open().unwrap();
    (runtime, console)
}

#[test]
fn a_screen_follows_keys_and_the_size_of_its_terminal_and_leaves_no_trace() {
    let (_runtime, console) = house("keys");
    let mut terminal = Terminal::open(&console.address().to_string());
    terminal.expect("house");
    terminal.expect("[2 Actors]");
    terminal.press("8");
    terminal.expect("[8 Workers]");
    terminal.press("?");
    terminal.expect("choose what is shown");
    terminal.press("x");
    terminal.expect("RUNS NOW");
    terminal.resize(40, 120);
    terminal.press("2");
    terminal.expect("sort: depth");
    terminal.press("q");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn a_terminal_is_restored_after_sigterm() {
    let (_runtime, console) = house("sigterm");
    let mut terminal = Terminal::open(&console.address().to_string());
    terminal.expect("[2 Actors]");
    kill_process(Pid::from_child(&terminal.child), UnixSignal::TERM).unwrap();
    assert_eq!(terminal.end().code(), Some(143));
}

#[test]
fn the_end_of_the_program_is_shown_and_what_was_received_stays() {
    let (_runtime, console) = house("end");
    let mut terminal = Terminal::open(&console.address().to_string());
    terminal.expect("live [?] help");
    console.close();
    terminal.expect("program ended");
    terminal.press("q");
    assert_eq!(terminal.end().code(), Some(0));
}
