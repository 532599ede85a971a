//! What the command's exit codes mean. Numbers stay what they are; new ones may come.
//!
//! A command that does not run a graph and is interrupted by Ctrl-C ends by its signal and has no
//! code of its own; shells show 130 then, too.

/// All went well; also if the reader of the output went away before its end, and for `--help` and
/// `--version`.
pub const OK: u8 = 0;

/// Something that must not happen: a check of the simulation did not hold, a run was not the one it
/// was compared with, or the output could not be written. Standard error says which.
pub const FAILED: u8 = 1;

/// The arguments are wrong, or there are none, or a file that they name cannot be read; nothing was
/// done. Standard error says what is wrong and which values are allowed.
pub const USAGE: u8 = 2;

/// The graph is not one that can run; nothing was run. The report tells all of its faults.
pub const INVALID_GRAPH: u8 = 3;

/// The graph ran, and failed: a component did, or what it wrote was refused.
pub const RUN_FAILED: u8 = 5;

/// A replay parted from its recording. No command replays yet; the number is kept for it.
pub const REPLAY_DIVERGED: u8 = 6;

/// More ticks came too late than were allowed.
pub const OVERRUN: u8 = 7;

/// There is nobody at the other end. No command connects yet; the number is kept for it.
pub const CANNOT_CONNECT: u8 = 8;

/// All ran, and something that was asserted about it does not hold.
pub const ASSERTION_FAILED: u8 = 9;

/// Ctrl-C: what was under way was drained, and the report is that of the part that ran.
pub const INTERRUPTED: u8 = 130;

/// All of them with a word on each, as the help shows them.
pub const ALL: [(u8, &str); 10] = [
    (OK, "all went well, also if the reader of the output went away"),
    (
        FAILED,
        "a check did not hold, runs that were compared differ, or output could not be written",
    ),
    (USAGE, "wrong arguments, or none, or a file that cannot be read: nothing was done"),
    (INVALID_GRAPH, "the graph is not valid: all faults are told, nothing was run"),
    (RUN_FAILED, "the run failed"),
    (REPLAY_DIVERGED, "a replay parted from its recording; reserved, no command replays yet"),
    (OVERRUN, "more ticks came too late than --max-overruns allows"),
    (CANNOT_CONNECT, "cannot connect; reserved, no command connects yet"),
    (ASSERTION_FAILED, "an assertion about the run or the plan does not hold"),
    (INTERRUPTED, "interrupted by Ctrl-C; what was under way was drained"),
];
