//! The outbox of a component: publications that are staged and not visible yet.
//!
//! A publication is admitted or refused when it is made. Every edge that may refuse has a count of
//! free room, which is set at a time that does not depend on threads: at the start of the
//! component's step for immediate edges, at the start of the epoch for all others. So a commit of
//! an admitted value finds room, and a refused value goes back to its publisher. The counters named
//! `failed_commit` show if that were ever broken; tests expect them to be zero.

use super::{
    blackboard::Write,
    message::{Message, Meta},
};
use crate::{
    data::{Data, Value, value::PayloadCache},
    describe::EdgeOverflow,
};

/// The outputs of one component, with what is staged.
pub(crate) struct Outbox {
    ports: Vec<OutPort>,
    edges: Vec<OutEdge>,
    pub(crate) staged: StagedList,
    /// Writes to the blackboard.
    pub(crate) writes: Vec<Write>,
    /// An edge with `fail_fast` has refused a publication.
    pub(crate) is_fatal: bool,
    is_guarded: bool,
}

#[derive(Debug)]
struct OutPort {
    number: u16,
    /// Its part of `edges`.
    first: u32,
    end: u32,
    /// At least one of its edges may refuse.
    is_guarded: bool,
    /// Its only edge moves the value.
    is_moved: bool,
    places: PayloadCache,
}

/// How an edge carries a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carriage {
    /// The reader is the only one and may take it.
    Single,
    /// The reader owns it.
    Moved,
    /// There are other readers, or other calls of the same reader.
    Shared,
}

/// One end of an edge.
#[derive(Debug)]
pub(crate) struct OutEdge {
    pub(crate) edge: u32,
    pub(crate) overflow: EdgeOverflow,
    /// How many more may be published on it; [`Self::ANY`] if it never refuses.
    pub(crate) room: u32,
    /// How many publications it refused.
    pub(crate) n_refused: u64,
    /// How many publications it lost because another edge of the same output refused them.
    pub(crate) n_withheld: u64,
    /// How many publications it lost because the call that made them failed.
    pub(crate) n_discarded: u64,
}

impl OutEdge {
    /// It never refuses.
    pub(crate) const ANY: u32 = u32::MAX;

    /// Whether a full edge evicts its oldest message.
    fn evicts(&self) -> bool {
        self.overflow.evicts()
    }
}

/// Publications in order. The entries are reused and written in place: only the first `len` count,
/// the others hold no value.
#[derive(Debug, Default)]
pub(crate) struct StagedList {
    places: Vec<Staged>,
    len: usize,
}

impl StagedList {
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

    /// The entry, if there is exactly one; removes it. The caller takes its value.
    #[inline(always)]
    fn take_only(&mut self) -> Option<&mut Staged> {
        if self.len != 1 {
            return None;
        }
        self.len = 0;
        self.places.first_mut()
    }

    /// Removes all entries after the first `kept`, in order.
    pub(crate) fn drain_after(&mut self, kept: usize) -> impl Iterator<Item = Staged> {
        let n_taken = self.len - kept;
        self.len = kept;
        self.places[kept..kept + n_taken].iter_mut().map(|place| {
            let value = core::mem::replace(&mut place.message.value, Value::UNIT);
            Staged { message: Message { value, meta: place.message.meta }, ..*place }
        })
    }

    /// Appends an entry to be written to.
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

/// Admission of one publication.
pub(crate) struct Admitted<'a> {
    to: &'a mut OutPort,
    staged: &'a mut Staged,
}

impl Admitted<'_> {
    /// Publishes.
    #[inline(always)]
    pub(crate) fn put<T: Data>(self, value: T, meta: Meta) {
        let Self { to, staged } = self;
        (staged.port, staged.first, staged.end) = (to.number, to.first, to.end);
        let value = if to.is_moved {
            Value::recycled_owned(value, &mut to.places)
        } else {
            Value::recycled(value, &mut to.places)
        };
        staged.message.put(value, meta);
    }
}

/// A publication.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) port: u16,
    /// The range of its edges.
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// The message as it will be in the channel, except for the fields that the channel sets.
    pub(crate) message: Message,
}

/// A mark in an outbox: how much was staged.
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
    /// The port is not bound to this component.
    Unbound,
    /// An edge has no room.
    Full,
}

impl Outbox {
    /// `ports`: the edges of each output, and how they treat and carry payloads.
    pub(crate) fn new(ports: &[Vec<(u32, EdgeOverflow, Carriage)>]) -> Self {
        let mut outbox = Self {
            ports: Vec::with_capacity(ports.len()),
            edges: Vec::new(),
            staged: StagedList::default(),
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
                n_withheld: 0,
                n_discarded: 0,
            }));
            outbox.ports.push(OutPort {
                number: u16::try_from(outbox.ports.len())
                    .expect("the compiler bounds the number of ports"),
                first,
                end: count(outbox.edges.len()),
                is_guarded: false,
                is_moved: matches!(port.as_slice(), [(_, _, Carriage::Moved)]),
                places: PayloadCache::new(matches!(
                    port.as_slice(),
                    [.., (_, _, Carriage::Single)]
                )),
            });
        }
        outbox
    }

    /// An empty outbox for the same outputs.
    pub(crate) fn empty_like(&self) -> Self {
        let port = |port: &OutPort| OutPort {
            places: PayloadCache::new(port.places.is_single()),
            ..*port
        };
        let edge =
            |edge: &OutEdge| OutEdge { n_refused: 0, n_withheld: 0, n_discarded: 0, ..*edge };
        Self {
            ports: self.ports.iter().map(port).collect(),
            edges: self.edges.iter().map(edge).collect(),
            staged: StagedList::default(),
            writes: Vec::new(),
            is_fatal: false,
            is_guarded: self.is_guarded,
        }
    }

    /// Copies the free room of another outbox of the same outputs.
    pub(crate) fn take_rooms(&mut self, of: &Self) {
        for (mine, theirs) in self.edges.iter_mut().zip(&of.edges) {
            mine.room = theirs.room;
        }
    }

    /// Moves what another outbox of the same outputs has staged into this one, as far as there is
    /// room.
    pub(crate) fn absorb(&mut self, other: &mut Self) {
        self.is_fatal |= core::mem::take(&mut other.is_fatal);
        self.writes.append(&mut other.writes);
        for (mine, theirs) in self.edges.iter_mut().zip(&mut other.edges) {
            mine.n_refused += core::mem::take(&mut theirs.n_refused);
            mine.n_withheld += core::mem::take(&mut theirs.n_withheld);
            mine.n_discarded += core::mem::take(&mut theirs.n_discarded);
        }
        for staged in other.staged.drain_after(0) {
            let port = &self.ports[usize::from(staged.port)];
            let edges = &mut self.edges[port.first as usize..port.end as usize];
            // Each overlapping invocation knew only its own publications.
            if !take_room(edges, &mut self.is_fatal) {
                continue;
            }
            *self.staged.add() = staged;
        }
    }

    /// The publication, if it is all there is to commit; removes it. The caller takes its value.
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

    /// Sets how many messages may be published on an edge.
    pub(crate) fn set_room(&mut self, edge_at: usize, room: u32) {
        self.edges[edge_at].room = room;
        if room != OutEdge::ANY {
            self.is_guarded = true;
            for port in &mut self.ports {
                port.is_guarded |= (port.first as usize..port.end as usize).contains(&edge_at);
            }
        }
    }

    /// All edges.
    pub(crate) fn edges(&self) -> &[OutEdge] {
        &self.edges
    }

    /// Admits a publication at an output; `None` if the output has no edge.
    #[inline(always)]
    pub(crate) fn admit(&mut self, port: Option<u16>) -> Result<Option<Admitted<'_>>, Refused> {
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
        Ok(Some(Admitted { to, staged: self.staged.add() }))
    }

    /// A mark at the end of what is staged.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark { n_staged: self.staged.len(), n_writes: self.writes.len() }
    }

    /// Gives all publications after a mark the number of the call that made them; returns how many
    /// there are.
    pub(crate) fn set_call_after(&mut self, kept: Mark, call: u64) -> usize {
        let StagedList { places, len } = &mut self.staged;
        let staged = &mut places[kept.n_staged..*len];
        staged.iter_mut().for_each(|one| one.message.meta.received_ns = call);
        staged.len()
    }

    /// Discards everything after a mark and returns its room to the edges; returns how many
    /// publications that were.
    pub(crate) fn discard_after(&mut self, kept: Mark) -> usize {
        self.writes.truncate(kept.n_writes);
        let n_discarded = self.staged.len() - kept.n_staged;
        for staged in self.staged.drain_after(kept.n_staged) {
            let port = &self.ports[usize::from(staged.port)];
            for edge in &mut self.edges[port.first as usize..port.end as usize] {
                edge.n_discarded += 1;
                if edge.room != OutEdge::ANY {
                    edge.room += 1;
                }
            }
        }
        n_discarded
    }
}

/// Takes one unit of room on each edge that may refuse. Returns false if an edge has none, and
/// counts the refusal.
fn take_room(edges: &mut [OutEdge], is_fatal: &mut bool) -> bool {
    if let Some(full_at) = edges.iter().position(|edge| edge.room == 0 && !edge.evicts()) {
        *is_fatal |= edges[full_at].overflow == EdgeOverflow::FailFast;
        for (at, edge) in edges.iter_mut().enumerate() {
            edge.n_refused += u64::from(at == full_at);
            edge.n_withheld += u64::from(at != full_at);
        }
        return false;
    }
    for edge in edges.iter_mut().filter(|edge| edge.room != OutEdge::ANY) {
        edge.room = edge.room.saturating_sub(1);
    }
    true
}

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("the limits of a description bound the number of edges")
}
