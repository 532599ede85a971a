//! The dependency graph of the jobs of a domain. Jobs are named by their position in compiled
//! order.

/// What is known about a job before any epoch.
pub(crate) struct JobSpec {
    /// The jobs that must be done first. Positions that are not before the job are ignored.
    pub(crate) dependencies: Vec<usize>,
    /// All jobs before it must be done first.
    pub(crate) waits_for_all: bool,
    pub(crate) lane: usize,
    pub(crate) rank: u8,
}

/// What is known about a lane.
#[derive(Clone, Copy)]
pub(crate) struct LaneSpec {
    /// How many of its jobs may run at the same time.
    pub(crate) n_at_once: usize,
    /// The lane has its own thread.
    pub(crate) is_isolated: bool,
    /// How many jobs may be taken before a waiting job of a lower rank runs first; zero: no limit.
    pub(crate) aging: u32,
}

/// The dependencies of all jobs of a domain.
pub(crate) struct Dependencies {
    /// For each job, how many jobs it depends on.
    pub(super) n_dependencies: Vec<u32>,
    /// For each job, the jobs that depend on it.
    pub(super) dependents: Vec<Vec<u32>>,
    /// For each job, whether all jobs before it must be done first.
    pub(super) waits_for_all: Vec<bool>,
    /// For each job, its lane.
    pub(super) lane: Vec<usize>,
    /// For each job, its rank: jobs of a higher rank go first.
    pub(super) rank: Vec<u8>,
    pub(super) lanes: Vec<LaneSpec>,
}

impl Dependencies {
    /// `jobs` in compiled order.
    pub(crate) fn from_jobs(jobs: impl Iterator<Item = JobSpec>, lanes: Vec<LaneSpec>) -> Self {
        let mut all = Self {
            n_dependencies: Vec::new(),
            dependents: Vec::new(),
            waits_for_all: Vec::new(),
            lane: Vec::new(),
            rank: Vec::new(),
            lanes,
        };
        for (at, mut job) in jobs.enumerate() {
            job.dependencies.retain(|one| *one < at);
            job.dependencies.sort_unstable();
            job.dependencies.dedup();
            all.n_dependencies.push(to_u32(job.dependencies.len()));
            all.dependents.push(Vec::new());
            for one in job.dependencies {
                all.dependents[one].push(to_u32(at));
            }
            all.waits_for_all.push(job.waits_for_all);
            all.lane.push(job.lane);
            all.rank.push(job.rank);
        }
        all
    }

    /// How many jobs there are.
    pub(super) fn n_jobs(&self) -> usize {
        self.n_dependencies.len()
    }
}

/// A position as the ready queue stores it.
pub(super) fn to_u32(position: usize) -> u32 {
    u32::try_from(position).expect("the limits of a description bound the number of regions")
}
