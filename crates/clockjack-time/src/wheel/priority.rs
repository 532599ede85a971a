//! Classes of importance: what a full wheel gives up first.

use core::fmt;

/// How much a timer matters when there is no room for all.
///
/// A timer of class [`Normal`](TimerPriority::Normal) is what [`insert`](super::Wheel::insert) makes. Under
/// pressure `Low` goes before `Normal` and `Normal` before `High`; between equals nobody is
/// displaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TimerPriority {
    /// Given up first.
    Low = 1,
    /// What timers are unless said otherwise.
    #[default]
    Normal = 2,
    /// Given up last: the runtime's own timers.
    High = 3,
}

impl TimerPriority {
    /// All classes, in the order in which they are given up.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    #[inline(always)]
    pub(crate) const fn code(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    pub(crate) const fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::Low),
            2 => Some(Self::Normal),
            3 => Some(Self::High),
            _ => None,
        }
    }
}

impl fmt::Display for TimerPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        })
    }
}
