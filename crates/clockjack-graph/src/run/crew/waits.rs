//! Who waits for whom, in positions of a domain.

/// What is known of a job before any epoch.
pub(crate) struct JobSpec {
    /// The jobs that it waits for: those that come before it in compiled order count.
    pub(crate) before: Vec<usize>,
    /// It waits for all before it.
    pub(crate) is_gated: bool,
    pub(crate) lane: usize,
    pub(crate) rank: u8,
}

/// What is known of a lane.
#[derive(Clone, Copy)]
pub(crate) struct LaneSpec {
    /// How many jobs of it at once.
    pub(crate) n_at_once: usize,
    /// It has its own thread.
    pub(crate) is_isolated: bool,
    /// How often a job is passed over before it goes first; never if zero.
    pub(crate) aging: u32,
}

/// Who waits for whom, in positions of the domain.
pub(crate) struct Waits {
    /// For each job, how many it waits for.
    pub(super) n_before: Vec<u32>,
    /// For each job, who waits for it.
    pub(super) after: Vec<Vec<u32>>,
    /// It waits for all before it.
    pub(super) is_gated: Vec<bool>,
    /// Its lane.
    pub(super) lane: Vec<usize>,
    pub(super) rank: Vec<u8>,
    pub(super) lanes: Vec<LaneSpec>,
}

impl Waits {
    /// Those of jobs in compiled order.
    pub(crate) fn of(jobs: impl Iterator<Item = JobSpec>, lanes: Vec<LaneSpec>) -> Self {
        let mut waits = Self {
            n_before: Vec::new(),
            after: Vec::new(),
            is_gated: Vec::new(),
            lane: Vec::new(),
            rank: Vec::new(),
            lanes,
        };
        for (at, mut job) in jobs.enumerate() {
            job.before.retain(|one| *one < at);
            job.before.sort_unstable();
            job.before.dedup();
            waits.n_before.push(number(job.before.len()));
            waits.after.push(Vec::new());
            for one in job.before {
                waits.after[one].push(number(at));
            }
            waits.is_gated.push(job.is_gated);
            waits.lane.push(job.lane);
            waits.rank.push(job.rank);
        }
        waits
    }

    /// How many jobs there are.
    pub(super) fn n_jobs(&self) -> usize {
        self.n_before.len()
    }
}

/// A position as the board keeps it.
pub(super) fn number(position: usize) -> u32 {
    u32::try_from(position).expect("a plan has fewer parts than that")
}
