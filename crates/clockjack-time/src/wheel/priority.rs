//! Timer priorities: which timers a full wheel drops first.

use core::fmt;

/// The priority of a timer when there is no room for all.
///
/// [`insert`](super::Wheel::insert) makes timers of priority [`Normal`](TimerPriority::Normal).
/// When there is no room, `Low` is dropped before `Normal` and `Normal` before `High`; a timer
/// never replaces one of the same priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TimerPriority {
    /// Dropped first.
    Low = 1,
    /// The default.
    #[default]
    Normal = 2,
    /// Dropped last: the runtime's own timers.
    High = 3,
}

impl TimerPriority {
    /// All priorities, in the order in which timers are dropped.
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
