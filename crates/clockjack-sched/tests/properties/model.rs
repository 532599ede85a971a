//! What a scheduler does, as a sorted list: slow, and simple enough to be believed.

/// How a job repeats, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Once,
    Rate(u64),
    Delay(u64),
}

/// What a handler does, once it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Nothing,
    /// Takes so many ticks.
    Take(u64),
    /// Cancels the job with this index, itself included; modulo the number of jobs.
    Cancel(usize),
    /// Schedules a one-shot.
    Schedule(u64),
    Fail,
}

/// A job as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) shard: usize,
    pub(crate) delay: u64,
    pub(crate) kind: Kind,
    pub(crate) deed: Deed,
}

/// A call of a handler: job, due, now, runs.
pub(crate) type Call = (usize, u64, u64, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waits,
    Queued,
    Runs,
    Completed,
    Cancelled,
}

struct Job {
    wish: Wish,
    state: State,
    /// When the next run is due that was not handed over.
    due: u64,
    owed: u64,
}

/// One entry of the sorted list: due, order of entry, job.
type Timer = (u64, u64, usize);

/// One clock, and shards with a sorted list each.
pub(crate) struct Model {
    pub(crate) now: u64,
    is_folded: bool,
    is_closing: bool,
    jobs: Vec<Job>,
    timers: Vec<Vec<Timer>>,
    queues: Vec<Vec<usize>>,
    entries: u64,
    /// The job that is being scheduled, and whose handle nobody has yet.
    unknown: Option<usize>,
    pub(crate) calls: Vec<Call>,
    pub(crate) cancels: Vec<(usize, bool)>,
}

impl Model {
    pub(crate) fn new(start: u64, shards: usize, is_folded: bool) -> Self {
        Self {
            now: start,
            is_closing: false,
            is_folded,
            jobs: Vec::new(),
            timers: vec![Vec::new(); shards],
            queues: vec![Vec::new(); shards],
            entries: 0,
            unknown: None,
            calls: Vec::new(),
            cancels: Vec::new(),
        }
    }

    pub(crate) fn n_live(&self) -> usize {
        let is_live = |job: &&Job| !matches!(job.state, State::Completed | State::Cancelled);
        self.jobs.iter().filter(is_live).count()
    }

    pub(crate) fn states(&self) -> impl Iterator<Item = State> + '_ {
        self.jobs.iter().map(|job| job.state)
    }

    /// By a caller outside of a handler: a job without delay runs at once.
    pub(crate) fn schedule(&mut self, wish: Wish) {
        self.accept(wish);
        if wish.delay == 0 {
            let now = self.now;
            self.unknown = Some(self.jobs.len() - 1);
            for shard in 0..self.timers.len() {
                self.run(shard, |_| now);
            }
            self.unknown = None;
        }
    }

    fn accept(&mut self, wish: Wish) {
        let due = self.now + wish.delay;
        self.jobs.push(Job { wish, state: State::Waits, due, owed: 0 });
        self.arm(self.jobs.len() - 1, due);
    }

    fn arm(&mut self, job: usize, due: u64) {
        self.entries += 1;
        self.timers[self.jobs[job].wish.shard].push((due, self.entries, job));
    }

    pub(crate) fn cancel(&mut self, job: usize) {
        let state = self.jobs[job].state;
        let won = match state {
            State::Waits | State::Queued => true,
            State::Runs => self.jobs[job].wish.kind != Kind::Once,
            State::Completed | State::Cancelled => false,
        };
        if won {
            self.jobs[job].state = State::Cancelled;
            self.timers[self.jobs[job].wish.shard].retain(|timer| timer.2 != job);
        }
        self.cancels.push((job, won));
    }

    /// Runs what is due in a shard by a limit that is asked for again before each run.
    pub(crate) fn run(&mut self, shard: usize, limit: impl Fn(&Self) -> u64) {
        loop {
            let limit = limit(self);
            self.expire(shard, limit);
            if self.queues[shard].is_empty() {
                return;
            }
            let job = self.queues[shard].remove(0);
            if self.jobs[job].state != State::Cancelled {
                self.call(job);
            }
        }
    }

    fn expire(&mut self, shard: usize, limit: u64) {
        loop {
            self.timers[shard].sort_unstable();
            match self.timers[shard].first().copied() {
                Some((due, _, job)) if due <= limit => {
                    self.timers[shard].remove(0);
                    self.come_due(job, due, limit);
                }
                _ => return,
            }
        }
    }

    fn come_due(&mut self, job: usize, due: u64, limit: u64) {
        if let Kind::Rate(period) = self.jobs[job].wish.kind {
            let runs = (limit - due) / period + 1;
            self.jobs[job].owed += runs;
            self.arm(job, due + runs * period);
        }
        if self.jobs[job].state == State::Waits {
            self.jobs[job].state = State::Queued;
            self.queues[self.jobs[job].wish.shard].push(job);
        }
    }

    fn call(&mut self, index: usize) {
        let job = &mut self.jobs[index];
        let (wish, due) = (job.wish, job.due);
        job.state = State::Runs;
        let mut runs = 1;
        if let Kind::Rate(period) = wish.kind {
            runs = if self.is_folded { job.owed } else { 1 };
            job.owed -= runs;
            job.due += runs * period;
        }
        let runs = u32::try_from(runs).expect("few are owed");
        self.calls.push((index, due, self.now, runs));
        self.do_deed(index, wish);
        let job = &mut self.jobs[index];
        if job.state == State::Cancelled {
            return;
        }
        if wish.deed == Deed::Fail || wish.kind == Kind::Once {
            job.state = State::Completed;
            self.timers[wish.shard].retain(|timer| timer.2 != index);
            return;
        }
        job.state = State::Waits;
        if let Kind::Delay(delay) = wish.kind {
            job.due = self.now + delay;
            self.arm(index, self.now + delay);
        } else if job.owed > 0 {
            job.state = State::Queued;
            self.queues[wish.shard].push(index);
        }
    }

    fn do_deed(&mut self, index: usize, wish: Wish) {
        match wish.deed {
            Deed::Nothing | Deed::Fail => {}
            Deed::Take(ticks) => self.now += ticks,
            Deed::Cancel(other) => {
                let other = (index + other) % self.jobs.len();
                if self.unknown != Some(other) {
                    self.cancel(other);
                }
            }
            // What a handler schedules once the close has begun is refused.
            Deed::Schedule(_) if self.is_closing => {}
            Deed::Schedule(delay) => {
                self.accept(Wish { delay, kind: Kind::Once, deed: Deed::Nothing, ..wish });
            }
        }
    }

    /// As the manual runner, of one shard: each job at its own time.
    pub(crate) fn advance(&mut self, ticks: u64) {
        let target = self.now + ticks;
        self.run_by(target);
        while let Some(next) = self.timers[0].iter().min().map(|timer| timer.0)
            && next <= target
        {
            self.now = self.now.max(next);
            self.run_by(target);
        }
        self.now = self.now.max(target);
        self.run_by(target);
    }

    fn run_by(&mut self, target: u64) {
        let limit = self.now.min(target);
        self.run(0, |_| limit);
    }

    /// Runs what is due, and cancels the rest.
    pub(crate) fn close(&mut self) {
        let now = self.now;
        self.is_closing = true;
        for shard in 0..self.timers.len() {
            self.run(shard, |_| now);
        }
        for job in &mut self.jobs {
            if !matches!(job.state, State::Completed | State::Cancelled) {
                job.state = State::Cancelled;
            }
        }
    }
}
