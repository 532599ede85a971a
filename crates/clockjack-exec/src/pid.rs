//! The name of a process: its node, its place in the table there, and which tenant of that place.
//!
//! A pid is plain data. It keeps nothing alive, and it may name a process that is long gone: the
//! generation tells it from the process that has the place now. Since a generation is never zero,
//! an `Option<Pid>` is as small as a pid. Nothing reads a pid atomically.
//!
//! ```text
//! {3|17.42}          node 3, index 17, generation 42
//! {3@sparrow|17.42}  the same, as written by a system that also tells the host
//! ```

use core::{error::Error, fmt, num::NonZeroU64, str::FromStr};

/// The name of a process, unique for as long as its node runs.
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
    /// The pid of the process that was put as number `generation` into place `index` of a node.
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

    /// The place of the process in the table of its node; used again when the process is gone.
    #[inline]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Tells the processes apart that had the same place.
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
    /// The host is for the reader of a log: it is checked for its form and then lazy_cancels.
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

/// A text that is no pid. The same text will never be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsePidError(Kind);

impl ParsePidError {
    /// Whether braces, bar, dot or the name of the host are missing or misplaced.
    #[must_use]
    pub const fn is_form(self) -> bool {
        matches!(self.0, Kind::Braces | Kind::Bar | Kind::Host | Kind::Dot)
    }

    /// Whether there is something else than decimal digits where a number has to be.
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
        f.write_str("no pid, which is {node|index.generation}: ")?;
        match self.0 {
            Kind::Braces => f.write_str("it is not in braces"),
            Kind::Bar => f.write_str("there is no '|' behind the node"),
            Kind::Host => f.write_str("the host behind '@' is empty or has a '{', '}' or '@'"),
            Kind::Dot => f.write_str("there is no '.' behind the index"),
            Kind::NoNumber(part) => write!(f, "the {} is not in decimal digits", part.name()),
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
    // The parser of the standard library also takes a sign, which would give a pid two texts.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParsePidError(Kind::NoNumber(part)));
    }
    digits.parse().map_err(|_| ParsePidError(Kind::TooLarge(part)))
}
