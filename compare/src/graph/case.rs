//! The cases of the suite: names, units and sizes. The documentation of the suite defines them.

use crate::selection::Effort;

/// A case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Case {
    /// A head and eight segments of a body and a foot.
    Caterpillar,
    /// Nodes in a row.
    Chain,
    /// One node with 16 readers.
    #[value(name = "fan_out")]
    FanOut,
    /// One node that reads 16 others.
    #[value(name = "fan_in")]
    FanIn,
    /// Eight branches with 10 microseconds of work each.
    #[value(name = "parallel_10us")]
    Parallel10us,
    /// Eight branches with a millisecond of work each.
    #[value(name = "parallel_1ms")]
    Parallel1ms,
    /// The largest file is read, checked and ordered.
    #[value(name = "compile_4096")]
    Compile4096,
    /// The caterpillar with a trace.
    Trace,
    /// Allocations per epoch.
    Allocs,
}

impl Case {
    pub(crate) const ALL: [Self; 9] = [
        Self::Caterpillar,
        Self::Chain,
        Self::FanOut,
        Self::FanIn,
        Self::Parallel10us,
        Self::Parallel1ms,
        Self::Compile4096,
        Self::Trace,
        Self::Allocs,
    ];

    /// The name in tables and JSON, the same as on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Caterpillar => "caterpillar",
            Self::Chain => "chain",
            Self::FanOut => "fan_out",
            Self::FanIn => "fan_in",
            Self::Parallel10us => "parallel_10us",
            Self::Parallel1ms => "parallel_1ms",
            Self::Compile4096 => "compile_4096",
            Self::Trace => "trace",
            Self::Allocs => "allocs",
        }
    }

    /// The unit of its figures.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Parallel10us | Self::Parallel1ms => "us",
            Self::Compile4096 => "ms",
            Self::Allocs => "allocs",
            _ => "ns",
        }
    }

    /// Whether branches run in parallel.
    pub(crate) const fn is_parallel(self) -> bool {
        matches!(self, Self::Parallel10us | Self::Parallel1ms)
    }

    /// Whether other subjects than Clockjack support it.
    pub(crate) const fn is_compared(self) -> bool {
        !matches!(self, Self::Compile4096 | Self::Trace | Self::Allocs)
    }

    /// The default number of epochs.
    pub(crate) const fn size(self, effort: Effort) -> u32 {
        match (self, effort) {
            (Self::Parallel10us, Effort::Quick) => 200,
            (Self::Parallel10us, Effort::Full) => 2_000,
            (Self::Parallel1ms, Effort::Quick) => 10,
            (Self::Parallel1ms, Effort::Full) => 50,
            (_, Effort::Quick) => 10_000,
            (_, Effort::Full) => 100_000,
        }
    }

    /// Warm-up epochs: enough to learn the duration of calls and until every queue has its final
    /// size.
    pub(crate) const fn n_warm_up(self) -> u64 {
        match self {
            Self::Parallel1ms => 8,
            _ => 128,
        }
    }

    /// Timed rounds. An odd number, so that the median is a measured value.
    pub(crate) const fn n_rounds(self, effort: Effort) -> u32 {
        match (self, effort) {
            (Self::Compile4096, Effort::Quick) => 3,
            (_, Effort::Quick) => 5,
            (_, Effort::Full) => 21,
        }
    }
}
