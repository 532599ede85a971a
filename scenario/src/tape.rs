//! The trace that the actors of a scenario write.

use alloc::{string::String, vec::Vec};
use core::fmt::{self, Write as _};

use clockjack_sync::{Arc, spin_lock::SpinLock};

/// The initial capacity: about the size of the whole trace, so that it seldom grows.
const ENTRIES: usize = 96;

/// Who wrote an entry, in the order of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the actor of that name in the plant, or next to it")]
pub enum Who {
    Plant,
    Metronome,
    Gauge,
    Pump,
    Valve,
    Clerk,
    Cell,
    Fuse,
    /// The sink of failures that reach the root.
    Sink,
    /// The shutdown of the system.
    Shutdown,
}

impl Who {
    /// All of them, in order.
    pub const ALL: [Self; 10] = [
        Self::Plant,
        Self::Metronome,
        Self::Gauge,
        Self::Pump,
        Self::Valve,
        Self::Clerk,
        Self::Cell,
        Self::Fuse,
        Self::Sink,
        Self::Shutdown,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Plant => "plant",
            Self::Metronome => "metronome",
            Self::Gauge => "gauge",
            Self::Pump => "pump",
            Self::Valve => "valve",
            Self::Clerk => "clerk",
            Self::Cell => "cell",
            Self::Fuse => "fuse",
            Self::Sink => "sink",
            Self::Shutdown => "shutdown",
        }
    }
}

/// One event of an actor.
#[derive(Clone, Copy, Debug)]
struct Entry {
    who: Who,
    what: &'static str,
    /// The number in the message, if it has one.
    number: Option<u32>,
    /// When the event was due, in milliseconds of the plant's nominal time; `None` for events
    /// without a time.
    due_ms: Option<u32>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if let Some(number) = self.number {
            write!(f, " {number}")?;
        }
        if let Some(due_ms) = self.due_ms {
            write!(f, " @{due_ms}")?;
        }
        Ok(())
    }
}

/// A trace that all actors write; clones share the same entries.
#[derive(Clone, Debug)]
pub struct Tape(Arc<SpinLock<Vec<Entry>>>);

impl Tape {
    /// An empty trace.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(SpinLock::new(Vec::with_capacity(ENTRIES))))
    }

    /// Records an event without time and number.
    pub(crate) fn note(&self, who: Who, what: &'static str) {
        self.push(Entry { who, what, number: None, due_ms: None });
    }

    /// Records an event with a number.
    pub(crate) fn count(&self, who: Who, what: &'static str, number: u32) {
        self.push(Entry { who, what, number: Some(number), due_ms: None });
    }

    /// Records an event with its nominal time.
    pub(crate) fn due(&self, who: Who, what: &'static str, due_ms: u32) {
        self.push(Entry { who, what, number: None, due_ms: Some(due_ms) });
    }

    /// Records an event with its nominal time and a number.
    pub(crate) fn due_count(&self, who: Who, what: &'static str, number: u32, due_ms: u32) {
        self.push(Entry { who, what, number: Some(number), due_ms: Some(due_ms) });
    }

    fn push(&self, entry: Entry) {
        self.0.with(|entries| entries.push(entry));
    }

    /// The logical trace: the events of each actor, in order.
    #[must_use]
    pub fn by_actor(&self) -> String {
        let entries = self.entries();
        let mut text = String::new();
        for who in Who::ALL {
            line(&mut text, format_args!("{}:", who.name()));
            for entry in entries.iter().filter(|entry| entry.who == who) {
                line(&mut text, format_args!("  {entry}"));
            }
        }
        text
    }

    /// All events in the order in which they were recorded.
    #[must_use]
    pub fn in_order(&self) -> String {
        let mut text = String::new();
        for entry in self.entries() {
            line(&mut text, format_args!("{}: {entry}", entry.who.name()));
        }
        text
    }

    fn entries(&self) -> Vec<Entry> {
        self.0.with(|entries| entries.clone())
    }
}

impl Default for Tape {
    fn default() -> Self {
        Self::new()
    }
}

fn line(text: &mut String, what: fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{what}");
}

/// A hash to compare two texts quickly: 64-bit FNV-1a (Fowler, Noll, Vo), the same on every
/// processor.
#[must_use]
pub fn digest(text: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
