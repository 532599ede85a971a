//! What a component has published and nobody sees yet.
//!
//! A publication is admitted or refused when it is made: every edge that may refuse has a number of
//! free places, set at a moment that does not depend on threads (the start of the component's step
//! for immediate edges, the start of the epoch for the others). So a commit never fails, and a
//! refused value goes back to who published it.

use clockjack_sync::mutant;

use super::{
    blackboard::Write,
    message::{Message, Meta},
};
use crate::{
    data::{Data, Value, value::PayloadCache},
    describe::{CopyPolicy, Overflow},
};

/// Outputs of one component, with what is staged.
pub(crate) struct Outbox {
    ports: Vec<OutPort>,
    edges: Vec<OutEdge>,
    pub(crate) staged: Stage,
    /// Writes to the blackboard.
    pub(crate) writes: Vec<Write>,
    /// An edge that fails the run has refused something.
    pub(crate) is_fatal: bool,
    is_guarded: bool,
}

#[derive(Debug)]
struct OutPort {
    number: u16,
    /// Its part of `edges`.
    first: u32,
    end: u32,
    /// Some edge of it may refuse.
    is_guarded: bool,
    /// Its one edge moves the value.
    is_moved: bool,
    places: PayloadCache,
}

/// One end of an edge.
#[derive(Debug)]
pub(crate) struct OutEdge {
    pub(crate) edge: u32,
    pub(crate) overflow: Overflow,
    /// How many more may be published on it; [`Self::ANY`] if it never refuses.
    pub(crate) room: u32,
    /// What was refused.
    pub(crate) n_refused: u64,
}

impl OutEdge {
    /// It never refuses.
    pub(crate) const ANY: u32 = u32::MAX;

    /// Whether the oldest goes when it is full.
    fn evicts(&self) -> bool {
        matches!(self.overflow, Overflow::Overwrite | Overflow::DropOldest)
    }
}

/// Publications in their order. Their places are used again and again, and written where they are:
/// only the first so many count, and the others hold no value.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    places: Vec<Staged>,
    len: usize,
}

impl Stage {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn as_slice(&self) -> &[Staged] {
        &self.places[..self.len]
    }

    /// The only one, if it is; none is left then. Who asks takes its value.
    #[inline(always)]
    fn take_only(&mut self) -> Option<&mut Staged> {
        if self.len != 1 {
            return None;
        }
        self.len = 0;
        self.places.first_mut()
    }

    /// Takes all after the first so many, in order.
    pub(crate) fn drain_after(&mut self, kept: usize) -> impl Iterator<Item = Staged> {
        let n_taken = self.len - kept;
        self.len = kept;
        self.places[kept..kept + n_taken].iter_mut().map(|place| {
            let value = core::mem::replace(&mut place.message.value, Value::UNIT);
            Staged { message: Message { value, meta: place.message.meta }, ..*place }
        })
    }

    /// Another place, to be written to.
    #[inline(always)]
    fn add(&mut self) -> &mut Staged {
        let at = self.len;
        if at >= self.places.len() {
            return self.grow();
        }
        self.len = at + 1;
        &mut self.places[at]
    }

    #[cold]
    fn grow(&mut self) -> &mut Staged {
        self.len += 1;
        self.places.push_mut(Staged { port: 0, first: 0, end: 0, message: Message::none() })
    }
}

/// Room for a publication.
pub(crate) struct Room<'a> {
    to: &'a mut OutPort,
    staged: &'a mut Staged,
}

impl Room<'_> {
    /// Publishes.
    #[inline(always)]
    pub(crate) fn put<T: Data>(self, value: T, meta: Meta) {
        let Self { to, staged } = self;
        (staged.port, staged.first, staged.end) = (to.number, to.first, to.end);
        let value =
            if to.is_moved { Value::owned(value) } else { Value::recycled(value, &mut to.places) };
        staged.message.put(value, meta);
    }
}

/// A publication.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) port: u16,
    /// Which of the edges begin there.
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// As it will be in the channel, but for what the channel gives it.
    pub(crate) message: Message,
}

/// How much there was in an outbox.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    n_staged: usize,
    n_writes: usize,
}

impl Mark {
    /// Nothing.
    pub(crate) const START: Self = Self { n_staged: 0, n_writes: 0 };
}

/// Why a publication was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The key is of no port.
    Unbound,
    /// An edge has no room.
    Full,
}

impl Outbox {
    /// `ports`: the edges of each output, and how they treat what they carry.
    pub(crate) fn new(ports: &[Vec<(u32, Overflow, CopyPolicy)>]) -> Self {
        let mut outbox = Self {
            ports: Vec::with_capacity(ports.len()),
            edges: Vec::new(),
            staged: Stage::default(),
            writes: Vec::new(),
            is_fatal: false,
            is_guarded: false,
        };
        for port in ports {
            let first = count(outbox.edges.len());
            outbox.edges.extend(port.iter().map(|(edge, overflow, _)| OutEdge {
                edge: *edge,
                overflow: *overflow,
                room: OutEdge::ANY,
                n_refused: 0,
            }));
            outbox.ports.push(OutPort {
                number: u16::try_from(outbox.ports.len()).expect("ports are few"),
                first,
                end: count(outbox.edges.len()),
                is_guarded: false,
                is_moved: matches!(port.as_slice(), [(_, _, CopyPolicy::MoveOnly)]),
                places: PayloadCache::default(),
            });
        }
        outbox
    }

    /// Another one for the same outputs, with nothing in it.
    pub(crate) fn empty_like(&self) -> Self {
        let port = |port: &OutPort| OutPort { places: PayloadCache::default(), ..*port };
        let edge = |edge: &OutEdge| OutEdge { n_refused: 0, ..*edge };
        Self {
            ports: self.ports.iter().map(port).collect(),
            edges: self.edges.iter().map(edge).collect(),
            staged: Stage::default(),
            writes: Vec::new(),
            is_fatal: false,
            is_guarded: self.is_guarded,
        }
    }

    /// Takes the rooms of another one of the same outputs.
    pub(crate) fn take_rooms(&mut self, of: &Self) {
        for (mine, theirs) in self.edges.iter_mut().zip(&of.edges) {
            mine.room = theirs.room;
        }
    }

    /// Takes what another one of the same outputs has staged, as far as there is room.
    pub(crate) fn absorb(&mut self, other: &mut Self) {
        self.is_fatal |= core::mem::take(&mut other.is_fatal);
        self.writes.append(&mut other.writes);
        for (mine, theirs) in self.edges.iter_mut().zip(&mut other.edges) {
            mine.n_refused += core::mem::take(&mut theirs.n_refused);
        }
        for staged in other.staged.drain_after(0) {
            let port = &self.ports[usize::from(staged.port)];
            let edges = &mut self.edges[port.first as usize..port.end as usize];
            // Each invocation knew of its own publications only.
            if !take_room(edges, &mut self.is_fatal) {
                continue;
            }
            *self.staged.add() = staged;
        }
    }

    /// All there is to commit, if that is one publication; nothing is left then. Who asks takes its
    /// value.
    #[inline(always)]
    pub(crate) fn take_only(&mut self) -> Option<&mut Staged> {
        if self.writes.is_empty() { self.staged.take_only() } else { None }
    }

    /// Whether there is nothing to commit.
    #[inline]
    pub(crate) fn has_nothing(&self) -> bool {
        self.staged.is_empty() && self.writes.is_empty()
    }

    /// Whether some edge may refuse.
    #[inline]
    pub(crate) fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    /// Sets how many may be published on an edge.
    pub(crate) fn set_room(&mut self, edge_at: usize, room: u32) {
        self.edges[edge_at].room = room;
        if room != OutEdge::ANY {
            self.is_guarded = true;
            for port in &mut self.ports {
                port.is_guarded |= (port.first as usize..port.end as usize).contains(&edge_at);
            }
        }
    }

    /// All ends of edges.
    pub(crate) fn edges(&self) -> &[OutEdge] {
        &self.edges
    }

    /// Room for a publication at an output; `None` if nobody is there to see it.
    #[inline(always)]
    pub(crate) fn admit(&mut self, port: Option<u16>) -> Result<Option<Room<'_>>, Refused> {
        let Some(port) = port else { return Err(Refused::Unbound) };
        let Some(to) = self.ports.get_mut(usize::from(port)) else { return Err(Refused::Unbound) };
        if to.first == to.end {
            return Ok(None);
        }
        if to.is_guarded {
            let edges = &mut self.edges[to.first as usize..to.end as usize];
            if !take_room(edges, &mut self.is_fatal) {
                return Err(Refused::Full);
            }
        }
        Ok(Some(Room { to, staged: self.staged.add() }))
    }

    /// How much there is in it.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark { n_staged: self.staged.len(), n_writes: self.writes.len() }
    }

    /// Throws away what came after a mark, and gives the room back; how many publications.
    pub(crate) fn discard_after(&mut self, kept: Mark) -> usize {
        let n_writes = if mutant!("outbox-forgets-all-writes") { 0 } else { kept.n_writes };
        self.writes.truncate(n_writes);
        let n_discarded = self.staged.len() - kept.n_staged;
        for staged in self.staged.drain_after(kept.n_staged) {
            let port = &self.ports[usize::from(staged.port)];
            for edge in &mut self.edges[port.first as usize..port.end as usize] {
                if edge.room != OutEdge::ANY {
                    edge.room += 1;
                }
            }
        }
        n_discarded
    }
}

/// Takes a place on each edge that may refuse. False if one has none, which is counted.
fn take_room(edges: &mut [OutEdge], is_fatal: &mut bool) -> bool {
    if let Some(full) = edges.iter_mut().find(|edge| edge.room == 0 && !edge.evicts()) {
        full.n_refused += 1;
        *is_fatal |= full.overflow == Overflow::FailFast;
        return false;
    }
    for edge in edges.iter_mut().filter(|edge| edge.room != OutEdge::ANY) {
        edge.room = edge.room.saturating_sub(1);
    }
    true
}

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("edges are counted by the limits of a description")
}
