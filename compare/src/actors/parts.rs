//! The parts of the loads.

use alloc::sync::Arc;

use super::actor_counts::{ActorCounts, Member};
use super::part::{Next, Part};
use super::subject::{Side, Subject};

/// Sums the first words of messages of `WORDS` words, and is finished after `goal` of them.
#[derive(Debug)]
pub(crate) struct Counter<const WORDS: usize> {
    member: Member,
    n_seen: u64,
    goal: u64,
    sum: u64,
}

impl<const WORDS: usize> Counter<WORDS> {
    pub(crate) fn new(counts: &Arc<ActorCounts>, goal: u64) -> Self {
        Self { member: Member::of(counts), n_seen: 0, goal, sum: 0 }
    }
}

impl<S: Subject, const WORDS: usize> Part<S> for Counter<WORDS> {
    type Message = [u64; WORDS];
    type Question = ();

    fn member(&self) -> &Member {
        &self.member
    }

    fn receive(&mut self, message: [u64; WORDS]) -> Next<'_, S, Self> {
        self.sum += message[0];
        self.n_seen += 1;
        if self.n_seen == self.goal {
            self.member.finish(self.sum);
        }
        Next::Stay
    }

    fn answer(&mut self, (): ()) -> u64 {
        self.sum += 1;
        self.sum
    }
}

/// An idle actor with one word of state.
#[derive(Debug)]
pub(crate) struct Idler {
    member: Member,
}

impl Idler {
    pub(crate) fn new(counts: &Arc<ActorCounts>) -> Self {
        Self { member: Member::of(counts) }
    }
}

impl<S: Subject> Part<S> for Idler {
    type Message = u64;
    type Question = ();

    fn member(&self) -> &Member {
        &self.member
    }

    fn receive(&mut self, _message: u64) -> Next<'_, S, Self> {
        Next::Stay
    }

    fn answer(&mut self, (): ()) -> u64 {
        1
    }
}

/// Passes a ball on to its neighbour, until the ball was passed `goal` times.
pub(crate) struct Player<S: Subject> {
    member: Member,
    neighbour: Option<S::Ref<Self>>,
    goal: u64,
    n_seen: u64,
}

/// A message to a player.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ball {
    /// The ball, with the number of passes so far.
    Pass(u64),
    Quit,
}

impl<S: Subject> Player<S> {
    pub(crate) fn new(counts: &Arc<ActorCounts>, goal: u64) -> Self {
        Self { member: Member::of(counts), neighbour: None, goal, n_seen: 0 }
    }
}

impl<S: Subject> Part<S> for Player<S> {
    type Message = Ball;
    /// The neighbour, or `None` to ask only for the number of passes seen, which is the answer in
    /// both cases.
    type Question = Option<S::Ref<Self>>;

    fn member(&self) -> &Member {
        &self.member
    }

    fn receive(&mut self, message: Ball) -> Next<'_, S, Self> {
        match (message, &self.neighbour) {
            (Ball::Pass(n_passed), Some(neighbour)) => {
                self.n_seen += 1;
                if n_passed == self.goal {
                    self.member.finish(0);
                    return Next::Stay;
                }
                Next::Tell(neighbour, Ball::Pass(n_passed + 1))
            }
            (Ball::Pass(_), None) => Next::Stay,
            (Ball::Quit, _) => Next::Leave,
        }
    }

    fn answer(&mut self, question: Option<S::Ref<Self>>) -> u64 {
        if question.is_some() {
            self.neighbour = question;
        }
        self.n_seen
    }
}

/// An actor of `big`: pings each of the others in turn, the next one after the answer of the last.
pub(crate) struct Chatter<S: Subject> {
    member: Member,
    index: u32,
    crowd: Option<Arc<[S::Ref<Self>]>>,
    /// The number of pings that are still to be sent.
    n_left: u64,
    n_seen: u64,
}

/// A message to an actor of `big`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chat {
    Start,
    /// With the index of the sender.
    Ping(u32),
    Pong,
    Quit,
}

impl<S: Subject> Chatter<S> {
    pub(crate) fn new(counts: &Arc<ActorCounts>, index: u32, n_pings: u64) -> Self {
        Self { member: Member::of(counts), index, crowd: None, n_left: n_pings, n_seen: 0 }
    }
}

impl<S: Subject> Part<S> for Chatter<S> {
    type Message = Chat;
    /// All actors, or `None` to ask only for the number of pings and pongs seen, which is the
    /// answer in both cases.
    type Question = Option<Arc<[S::Ref<Self>]>>;

    fn member(&self) -> &Member {
        &self.member
    }

    fn receive(&mut self, message: Chat) -> Next<'_, S, Self> {
        let Some(crowd) = &self.crowd else { return Next::Stay };
        match message {
            Chat::Ping(from) => {
                self.n_seen += 1;
                return Next::Tell(&crowd[from as usize], Chat::Pong);
            }
            Chat::Pong => self.n_seen += 1,
            Chat::Start => {}
            Chat::Quit => return Next::Leave,
        }
        if self.n_left == 0 {
            self.member.finish(0);
            return Next::Stay;
        }
        self.n_left -= 1;
        // From the next neighbour around to the previous one, and then again.
        let n_others = crowd.len() - 1;
        let step = 1 + usize::try_from(self.n_left).expect("a few thousand pings") % n_others;
        let whom = (self.index as usize + step) % crowd.len();
        Next::Tell(&crowd[whom], Chat::Ping(self.index))
    }

    fn answer(&mut self, question: Option<Arc<[S::Ref<Self>]>>) -> u64 {
        if question.is_some() {
            self.crowd = question;
        }
        self.n_seen
    }
}

/// Children of a node.
pub(crate) const N_BRANCHES: u64 = 10;

/// A node of a tree that adds up the numbers of its leaves.
pub(crate) struct Node<S: Subject> {
    member: Member,
    parent: Option<S::Ref<Self>>,
    own: Option<S::Ref<Self>>,
    /// The number of the first leaf below, and how many there are.
    first: u64,
    n_leaves: u64,
    n_missing: u64,
    sum: u64,
}

/// A message to a node.
pub(crate) enum Growth<R> {
    /// Start, with the node's own reference.
    Go(R),
    /// The sum of a child.
    Sum(u64),
}

impl<S: Subject> Node<S> {
    pub(crate) fn root(counts: &Arc<ActorCounts>, n_leaves: u64) -> Self {
        Self::new(Member::of(counts), None, 0, n_leaves)
    }

    const fn new(member: Member, parent: Option<S::Ref<Self>>, first: u64, n_leaves: u64) -> Self {
        Self { member, parent, own: None, first, n_leaves, n_missing: N_BRANCHES, sum: 0 }
    }

    /// Sends the sum to the parent and stops.
    fn hand_up(&self, sum: u64) -> Next<'_, S, Self> {
        match &self.parent {
            Some(parent) => Next::TellAndLeave(parent, Growth::Sum(sum)),
            None => {
                self.member.finish(sum);
                Next::Leave
            }
        }
    }
}

impl<S: Subject> Part<S> for Node<S> {
    type Message = Growth<S::Ref<Self>>;
    type Question = ();

    fn member(&self) -> &Member {
        &self.member
    }

    fn receive(&mut self, message: Self::Message) -> Next<'_, S, Self> {
        match message {
            Growth::Go(_) if self.n_leaves == 1 => self.hand_up(self.first),
            Growth::Go(own) => {
                self.own = Some(own);
                Next::Spawn(N_BRANCHES)
            }
            Growth::Sum(sum) => {
                self.sum += sum;
                self.n_missing -= 1;
                if self.n_missing > 0 {
                    return Next::Stay;
                }
                self.hand_up(self.sum)
            }
        }
    }

    fn answer(&mut self, (): ()) -> u64 {
        self.sum
    }

    fn child(&mut self, index: u64) -> (Self, Side) {
        // The root distributes its branches over the threads; each branch stays on one thread.
        let side = if self.parent.is_none() { Side::alternating(index) } else { Side::Here };
        let n_leaves = self.n_leaves / N_BRANCHES;
        let member = Member::of(self.member.counts());
        let first = self.first + index * n_leaves;
        (Self::new(member, self.own.clone(), first, n_leaves), side)
    }

    fn greeting(&self, child: &S::Ref<Self>) -> Self::Message {
        Growth::Go(child.clone())
    }
}
