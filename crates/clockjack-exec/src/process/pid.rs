//! The identifier of a process: its node, its index in the registry there, and its generation.
//!
//! A pid is plain data. It keeps nothing alive, and it may identify a process that has ended long
//! ago: the generation distinguishes that process from the one that has the index now. A generation
//! is never zero, so an `Option<Pid>` is as small as a pid. Nothing reads a pid atomically.
//!
//! ```text
//! {3|17.42}          node 3, index 17, generation 42
//! {3@sparrow|17.42}  the same, as written by a system that also writes the host
//! ```

use core::{error::Error, fmt, num::NonZeroU64, str::FromStr};

/// The identifier of a process, unique for as long as its node runs.
///
/// The order is that of node, index and generation, and says nothing about age.
///
/// # Examples
///
/// ```
/// use clockjack_exec::pid::Pid;
///
/// let pid: Pid = "{3|17.42}".parse()?;
/// assert_eq!((pid.node(), pid.index(), pid.generation().get()), (3, 17, 42));
/// assert_eq!(pid.to_string(), "{3|17.42}");
/// assert_eq!("{3@sparrow|17.42}".parse(), Ok(pid));
/// # Ok::<(), clockjack_exec::pid::ParsePidError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid {
    node: u32,
    index: u32,
    generation: NonZeroU64,
}

const _: () = assert!(size_of::<Pid>() == 16);
const _: () = assert!(size_of::<Option<Pid>>() == 16);

impl Pid {
    /// The pid of the process that was the `generation`-th at `index` of a node.
    #[inline]
    #[must_use]
    pub const fn new(node: u32, index: u32, generation: NonZeroU64) -> Self {
        Self { node, index, generation }
    }

    /// The node that the process runs on.
    #[inline]
    #[must_use]
    pub const fn node(self) -> u32 {
        self.node
    }

    /// The index of the process in the registry of its node; used again after the process has
    /// ended.
    #[inline]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Distinguishes the processes that had the same index.
    #[inline]
    #[must_use]
    pub const fn generation(self) -> NonZeroU64 {
        self.generation
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}|{}.{}}}", self.node, self.index, self.generation)
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pid{self}")
    }
}

impl FromStr for Pid {
    type Err = ParsePidError;

    /// Reads `{node|index.generation}` or `{node@host|index.generation}`, all three in decimal.
    ///
    /// The host is for the reader of a log: its form is checked, and then it is ignored.
    fn from_str(text: &str) -> Result<Self, ParsePidError> {
        let inner = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
            .ok_or(ParsePidError(Kind::Braces))?;
        let (origin, place) = inner.split_once('|').ok_or(ParsePidError(Kind::Bar))?;
        let node = match origin.split_once('@') {
            None => origin,
            Some((_, host)) if !is_host(host) => return Err(ParsePidError(Kind::Host)),
            Some((node, _)) => node,
        };
        let (index, generation) = place.split_once('.').ok_or(ParsePidError(Kind::Dot))?;

        let node = number(node, Part::Node)?;
        let index = number(index, Part::Index)?;
        let generation: u64 = number(generation, Part::Generation)?;
        let generation = NonZeroU64::new(generation).ok_or(ParsePidError(Kind::Zero))?;
        Ok(Self { node, index, generation })
    }
}

/// A text that is not a pid. The error is permanent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsePidError(Kind);

impl ParsePidError {
    /// Whether the braces, the bar, the dot or the name of the host are missing or misplaced.
    #[must_use]
    pub const fn is_form(self) -> bool {
        matches!(self.0, Kind::Braces | Kind::Bar | Kind::Host | Kind::Dot)
    }

    /// Whether something other than decimal digits is in the place of a number.
    #[must_use]
    pub const fn is_no_number(self) -> bool {
        matches!(self.0, Kind::NoNumber(_))
    }

    /// Whether a number is greater than any that a pid can have.
    #[must_use]
    pub const fn is_too_large(self) -> bool {
        matches!(self.0, Kind::TooLarge(_))
    }

    /// Whether the generation is zero, which no process has.
    #[must_use]
    pub const fn is_zero_generation(self) -> bool {
        matches!(self.0, Kind::Zero)
    }
}

impl fmt::Display for ParsePidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a pid of the form {node|index.generation}: ")?;
        match self.0 {
            Kind::Braces => f.write_str("it is not in braces"),
            Kind::Bar => f.write_str("there is no '|' after the node"),
            Kind::Host => f.write_str("the host after '@' is empty or has a '{', '}' or '@'"),
            Kind::Dot => f.write_str("there is no '.' after the index"),
            Kind::NoNumber(part) => write!(f, "the {} is not a decimal number", part.name()),
            Kind::TooLarge(part) => write!(f, "the {} is too large", part.name()),
            Kind::Zero => f.write_str("the generation is zero"),
        }
    }
}

impl Error for ParsePidError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Braces,
    Bar,
    Host,
    Dot,
    NoNumber(Part),
    TooLarge(Part),
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Node,
    Index,
    Generation,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Index => "index",
            Self::Generation => "generation",
        }
    }
}

fn is_host(host: &str) -> bool {
    !host.is_empty() && !host.contains(['{', '}', '@'])
}

fn number<N: FromStr>(digits: &str, part: Part) -> Result<N, ParsePidError> {
    // The parser of the standard library also accepts a sign, which would give a pid two texts.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParsePidError(Kind::NoNumber(part)));
    }
    digits.parse().map_err(|_| ParsePidError(Kind::TooLarge(part)))
}
