//! What the actors of a scenario leave behind.

use alloc::{string::String, vec::Vec};
use core::fmt::{self, Write as _};

use clockjack_sync::{Arc, spin_lock::SpinLock};

/// How much is reserved at first: about as much as the scenario leaves, so that few hosts grow it.
const ENTRIES: usize = 96;

/// Who has left an entry, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the actor of that name in the plant, or beside it")]
pub enum Who {
    Plant,
    Metronome,
    Gauge,
    Pump,
    Valve,
    Clerk,
    Cell,
    Fuse,
    /// What takes failures that have come up to the root.
    Sink,
    /// What the system does at its end.
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

/// What came to an actor.
#[derive(Clone, Copy, Debug)]
struct Entry {
    who: Who,
    what: &'static str,
    /// What the message says, if it says a number.
    number: Option<u32>,
    /// When it was due, in milliseconds of the plant's own time; none for what has no time.
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

/// A trace that all actors write; clones are the same tape.
#[derive(Clone, Debug)]
pub struct Tape(Arc<SpinLock<Vec<Entry>>>);

impl Tape {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(SpinLock::new(Vec::with_capacity(ENTRIES))))
    }

    /// Writes down something that has no time and no number.
    pub(crate) fn note(&self, who: Who, what: &'static str) {
        self.push(Entry { who, what, number: None, due_ms: None });
    }

    /// Writes down a number.
    pub(crate) fn count(&self, who: Who, what: &'static str, number: u32) {
        self.push(Entry { who, what, number: Some(number), due_ms: None });
    }

    /// Writes down what was due.
    pub(crate) fn due(&self, who: Who, what: &'static str, due_ms: u32) {
        self.push(Entry { who, what, number: None, due_ms: Some(due_ms) });
    }

    /// Writes down a number that was due.
    pub(crate) fn due_count(&self, who: Who, what: &'static str, number: u32, due_ms: u32) {
        self.push(Entry { who, what, number: Some(number), due_ms: Some(due_ms) });
    }

    fn push(&self, entry: Entry) {
        self.0.with(|entries| entries.push(entry));
    }

    /// The logical trace: for each actor what came to it, in order.
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

    /// Everything in the order in which it was written down.
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
    // A `String` takes everything.
    let _ = writeln!(text, "{what}");
}

/// A number that tells two texts apart at a glance: 64-bit FNV-1a, the same on every processor.
#[must_use]
pub fn digest(text: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
