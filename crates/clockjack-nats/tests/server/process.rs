//! A server, and nodes in processes of their own. Each is killed when it is dropped.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
};

use crate::{PATIENCE, until};

/// A `nats-server` on 127.0.0.1, with its data in a directory of its own.
pub(crate) struct Server {
    child: Child,
    dir: PathBuf,
    port: u16,
    args: Vec<String>,
}

impl Server {
    /// A server with JetStream.
    pub(crate) fn start() -> Self {
        Self::with(&["-js"])
    }

    pub(crate) fn with(args: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let dir =
            std::env::temp_dir().join(format!("clockjack-nats-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).expect("the directory of the server");
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        // The operating system chooses the port, and the server writes it to a file.
        let child = spawn(&dir, "-1", &args);
        let mut server = Self { child, dir, port: 0, args };
        server.port = until("the server listens", || {
            let ports = server.ports()?;
            let (_, rest) = ports.split_once("127.0.0.1:")?;
            rest.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
        });
        server
    }

    /// A server with a configuration file of this text.
    pub(crate) fn with_config(text: &str, args: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("clockjack-nats-{}-{number}.conf", std::process::id());
        let file = std::env::temp_dir().join(name);
        fs::write(&file, text).expect("the settings of the server");
        let path = file.to_str().expect("a path").to_owned();
        let server = Self::with(&[args, &["-c", &path]].concat());
        // It is read when the server starts, also for the second time.
        let kept = server.dir.join("server.conf");
        fs::rename(&file, &kept).expect("both are temporary");
        let mut server = server;
        if let Some(last) = server.args.last_mut() {
            *last = kept.to_str().expect("a path").to_owned();
        }
        server
    }

    /// What the server has written about the ports that it listens to.
    pub(crate) fn ports(&self) -> Option<String> {
        let file = self.dir.join(format!("nats-server_{}.ports", self.child.id()));
        fs::read_to_string(file).ok()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What the server has written to its log file.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.join("server.log")).unwrap_or_default()
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Stops the server in the middle of whatever it does, or lets it go on.
    pub(crate) fn signal(&self, signal: &str) {
        signal_process(&self.child, signal);
    }

    /// Kills the server, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Starts it again with another configuration file, after it was killed.
    pub(crate) fn restart_with_config(&mut self, text: &str) {
        fs::write(self.dir.join("server.conf"), text).expect("the settings of the server");
        self.restart();
    }

    /// Starts it again, with its data, on the same port.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.dir, &self.port.to_string(), &self.args);
    }
}

fn spawn(dir: &PathBuf, port: &str, args: &[String]) -> Child {
    let program = std::env::var_os("CLOCKJACK_NATS_SERVER")
        .expect("CLOCKJACK_NATS_SERVER is the path of a nats-server; `cargo xtask nats` sets it");
    Command::new(program)
        .args(["-a", "127.0.0.1", "-p", port])
        .arg("-sd")
        .arg(dir.join("data"))
        .arg("--ports_file_dir")
        .arg(dir)
        .arg("-l")
        .arg(dir.join("server.log"))
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed before.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.dir));
    }
}

/// Sends a signal, such as `STOP` or `CONT`.
pub(crate) fn signal_process(child: &Child, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "{signal} is sent");
}

/// The program of an example, which `cargo xtask nats` has built.
pub(crate) fn example(name: &str) -> PathBuf {
    let here = std::env::current_exe().expect("the path of this test");
    let target = here.parent().and_then(|deps| deps.parent()).expect("target/PROFILE/deps");
    let program = target.join("examples").join(name);
    assert!(program.is_file(), "{} is not built", program.display());
    program
}

/// A process of the example `two_machines`.
pub(crate) struct NodeProcess {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl NodeProcess {
    pub(crate) fn start(what: &str, url: &str) -> Self {
        let mut child = Command::new(example("two_machines"))
            .args([what, url])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the node starts");
        let out = child.stdout.take().expect("it is a pipe");
        let (to, lines) = mpsc::channel();
        // It ends with the process.
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if to.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    #[track_caller]
    pub(crate) fn expect(&self, line: &str) {
        assert_eq!(self.lines.recv_timeout(PATIENCE).as_deref(), Ok(line));
    }

    /// Kills the node, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// All further lines, when the process has ended by itself.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let status = until("the node ends", || self.child.try_wait().expect("it was started"));
        assert!(status.success(), "{status}");
        self.lines.iter().collect()
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // It may have ended before.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
