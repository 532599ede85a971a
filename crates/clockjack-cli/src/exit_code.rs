//! The exit codes of the command. A code never changes its meaning; new codes may be added.
//!
//! If a signal interrupts a command that does not run a graph, the signal stops the process and the
//! command sets no exit code; shells then also show 130 or 143.

/// Success; also if the reader of the output closed the pipe early, and for `--help` and
/// `--version`.
pub const OK: u8 = 0;

/// A failure: a check failed, or the output could not be written. Standard error says which.
pub const FAILED: u8 = 1;

/// The arguments are invalid or missing, or a file that they name cannot be read; nothing was run.
/// Standard error says what is wrong and which values are allowed.
pub const USAGE: u8 = 2;

/// The graph is invalid and nothing was run. The report lists every error.
pub const INVALID_GRAPH: u8 = 3;

/// The run failed: a component failed, or a value that it wrote was rejected.
pub const RUN_FAILED: u8 = 5;

/// More ticks were late than allowed, or data was late and must not be.
pub const OVERRUN: u8 = 7;

/// No connection to a running program or a server, or it speaks another major version.
pub const NOT_CONNECTED: u8 = 8;

/// The run completed, but an assertion about it failed, or it lost a message and must not;
/// or something is wrong in a running program (`doctor --of`).
pub const ASSERTION_FAILED: u8 = 9;

/// The running program does not allow the request: the token is missing or wrong, or it does not
/// allow actions of this class.
pub const NOT_ALLOWED: u8 = 13;

/// SIGINT (Ctrl-C): the work in progress was completed, and the report covers the part that ran.
/// After a second signal or the drain time-out the work in progress was abandoned; all files are
/// complete nevertheless.
/// A third signal exits at once.
pub const INTERRUPTED: u8 = 130;

/// SIGTERM; otherwise as [`INTERRUPTED`].
pub const TERMINATED: u8 = 143;

/// Every exit code with its description, as the help shows it.
pub const ALL: [(u8, &str); 11] = [
    (OK, "success, also if the reader of the output closed the pipe early"),
    (FAILED, "a check failed, or the output could not be written"),
    (USAGE, "the arguments are invalid or missing, or a file cannot be read; nothing was run"),
    (INVALID_GRAPH, "the graph is invalid; every error is reported and nothing was run"),
    (RUN_FAILED, "the run failed"),
    (OVERRUN, "more ticks were late than --max-overruns allows, or --deny-late found late data"),
    (NOT_CONNECTED, "no connection to the program or server, or it speaks another major version"),
    (
        ASSERTION_FAILED,
        "an assertion about the run or the plan failed, --deny-loss found a lost message, or \
         doctor --of found a problem",
    ),
    (
        NOT_ALLOWED,
        "the program does not allow the request: the token is missing or wrong, or it allows no \
         actions of this class",
    ),
    (INTERRUPTED, "interrupted by Ctrl-C; the work in progress was completed"),
    (TERMINATED, "interrupted by SIGTERM; the work in progress was completed"),
];
