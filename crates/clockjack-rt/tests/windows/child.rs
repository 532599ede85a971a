//! A test as its own process, on a console of its own, since an event is for every process on a
//! console. `support/child.rs` has the same interface, for the tests that both run.
//!
//! A parent is not on the console of its child, so it asks the child to send an event to itself.
//! Ctrl-C goes to the console. No call sends most other events, and Wine 8 sends no Ctrl-Break: for
//! each, the child starts a thread at the function of Windows at which Windows itself starts one.
//!
//! Wine holds a lock while handlers run. So no event can come after one whose handler does not
//! return, as that of a closed console.
#![expect(unsafe_code, reason = "std has no call that sends a console event")]

use core::{
    ffi::{c_char, c_int, c_void},
    iter, mem, ptr,
    time::Duration,
};
use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::windows::process::CommandExt as _,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
};

/// Far beyond what a loaded machine needs.
const LONG: Duration = Duration::from_secs(60);

/// Says in the environment what the child is to do.
const ROLE: &str = "CLOCKJACK_TEST_ROLE";

/// The child has a console of its own, without a window.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;
/// All processes on the console of the sender.
const EVERYBODY: u32 = 0;
const TRUE: c_int = 1;
const FALSE: c_int = 0;

/// What SIGINT is here: Ctrl-C.
pub(crate) const SIGINT: u32 = 0;
pub(crate) const CTRL_BREAK: u32 = 1;
/// What SIGTERM is here: the console is closed.
pub(crate) const SIGTERM: u32 = 2;
pub(crate) const LOGOFF: u32 = 5;

type Handler = extern "system" fn(event: u32) -> c_int;
type ThreadStart = unsafe extern "system" fn(*mut c_void) -> u32;

#[link(name = "kernel32")]
unsafe extern "system" {
    /// Has no precondition.
    safe fn GenerateConsoleCtrlEvent(event: u32, group: u32) -> c_int;
    /// The handler is a function that the system may call on a thread of its own from now on.
    fn SetConsoleCtrlHandler(handler: Option<Handler>, is_added: c_int) -> c_int;
    /// The name ends with a zero byte.
    fn GetModuleHandleA(name: *const c_char) -> *mut c_void;
    /// The module is loaded, and the name ends with a zero byte.
    fn GetProcAddress(module: *mut c_void, name: *const c_char) -> *const c_void;
}

/// The role of this process, if it is a child. A child sends itself the events that its parent
/// asks for from now on.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
pub(crate) fn role() -> Option<String> {
    let role = std::env::var(ROLE).ok()?;
    // SAFETY: the handler is a function of this program, and it can be called on any thread at any
    // time.
    let is_added = unsafe { SetConsoleCtrlHandler(Some(next_handler), TRUE) };
    assert_ne!(is_added, FALSE, "{}", io::Error::last_os_error());
    thread::spawn(|| {
        for line in io::stdin().lines().map_while(Result::ok) {
            raise(line.parse().expect("the number of an event"));
        }
        // A child does not outlive its parent.
        std::process::exit(1);
    });
    // The harness has begun a line with the name of the test.
    println!();
    Some(role)
}

/// The handler behind those that are installed later. It has an event that they leave alone; and
/// one that comes before they are there, which then comes again.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
extern "system" fn next_handler(event: u32) -> c_int {
    if event == LOGOFF {
        println!("left alone");
    } else {
        raise(event);
    }
    TRUE
}

/// Sends an event to this process.
fn raise(event: u32) {
    if event == SIGINT {
        let sent = GenerateConsoleCtrlEvent(event, EVERYBODY);
        assert_ne!(sent, FALSE, "{}", io::Error::last_os_error());
        return;
    }
    // SAFETY: the name ends with a zero byte.
    let library = unsafe { GetModuleHandleA(c"kernel32.dll".as_ptr()) };
    // SAFETY: each process has loaded this library, and the name ends with a zero byte.
    let routine = unsafe { GetProcAddress(library, c"CtrlRoutine".as_ptr()) };
    assert!(!routine.is_null(), "it is there since Windows 7");
    // SAFETY: the function is the start of a thread, and so has this type.
    let routine = unsafe { mem::transmute::<*const c_void, ThreadStart>(routine) };
    thread::spawn(move || {
        let event = ptr::without_provenance_mut(event as usize);
        // SAFETY: this is the beginning of a thread, and the argument is an event.
        unsafe { routine(event) }
    });
}

/// A process that runs one test of this binary.
pub(crate) struct Process {
    child: KilledOnDrop,
    lines: mpsc::Receiver<String>,
    err: BufReader<ChildStderr>,
}

/// A child that does not outlive a test that has failed.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Process {
    /// Starts a test in a role.
    pub(crate) fn start(test: &str, role: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .creation_flags(CREATE_NO_WINDOW)
            .spawn();
        let mut child = KilledOnDrop(child.unwrap());
        let out = BufReader::new(child.0.stdout.take().unwrap());
        let err = BufReader::new(child.0.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines, err }
    }

    /// Reads standard output until a line ends so; returns that line.
    pub(crate) fn read_until(&mut self, end: &str) -> String {
        let mut lines = iter::from_fn(|| self.lines.recv_timeout(LONG).ok());
        if let Some(line) = lines.find(|line| line.trim_end().ends_with(end)) {
            return line;
        }
        drop(self.child.0.kill());
        let mut err = String::new();
        self.err.read_to_string(&mut err).unwrap();
        panic!("the child has not said {end}: {err}");
    }

    /// Reads a line of standard error, which `wait` then does not return.
    pub(crate) fn read_error(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).unwrap();
        line
    }

    /// There is nothing to wait for: an event that comes before the handlers comes again.
    pub(crate) fn wait_for_handlers(&self, _: &[u32]) {}

    /// Requests that the child sends this event to itself.
    pub(crate) fn send(&self, event: u32) {
        let mut stdin = self.child.0.stdin.as_ref().expect("it is piped");
        // An event before this one may have ended the child.
        let _written = writeln!(stdin, "{event}");
    }

    /// Waits for the end; returns the status and standard error.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let mut err = String::new();
        self.err.read_to_string(&mut err).unwrap();
        (self.child.0.wait().unwrap(), err)
    }

    /// Waits for the end, which was a success; returns standard error.
    pub(crate) fn wait_for_success(self) -> String {
        let (status, err) = self.wait();
        assert!(status.success(), "{status}: {err}");
        err
    }
}
