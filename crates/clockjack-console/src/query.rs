//! What a client may choose of a view: order, filter, page, place.

mod filter;
mod params;

pub use self::{
    filter::{Filter, FilterError, Filtered},
    params::{Params, QueryError, QueryParams},
};

/// The most rows on a page.
pub const ROWS_MAX: u32 = 200;

/// How many pages a list has at most.
pub const PAGES_MAX: u32 = 5_000;

/// By which figure rows are sorted, the largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Sort {
    /// Messages handled per second.
    #[default]
    Rate,
    /// Messages in the mailbox.
    Depth,
    /// Part of the workers' time.
    Share,
    /// Time that a message waits.
    Wait,
    /// Restarts.
    Restarts,
}

impl Sort {
    /// All orders.
    pub const ALL: &'static [Self] =
        &[Self::Rate, Self::Depth, Self::Share, Self::Wait, Self::Restarts];

    /// The name in a query.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Depth => "depth",
            Self::Share => "share",
            Self::Wait => "wait",
            Self::Restarts => "restarts",
        }
    }

    /// The order with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|sort| sort.name() == name)
    }
}

/// A query of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The order.
    pub sort: Sort,
    /// Which rows.
    pub filter: Filter,
    /// Which page; the first is 0.
    pub page: u32,
    /// How many rows a page has, at most [`ROWS_MAX`].
    pub rows: u32,
}

impl Default for Query {
    fn default() -> Self {
        Self { sort: Sort::default(), filter: Filter::default(), page: 0, rows: ROWS_MAX }
    }
}

/// A query of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeQuery {
    /// The path of the actor whose children are wanted; `/` for the guardians.
    pub at: String,
    /// Which page; the first is 0.
    pub page: u32,
}

impl Default for TreeQuery {
    fn default() -> Self {
        Self { at: "/".to_owned(), page: 0 }
    }
}

/// A query of one actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActorQuery {
    /// The actor at this path.
    Path(String),
    /// The actor with this pid, like `{0|3.1}`.
    Pid(String),
}

/// A query of one graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphQuery {
    /// The name under which the program has shown the graph.
    pub name: String,
}

/// A query of the events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsQuery {
    /// The number of the first event that is wanted.
    pub since: u64,
    /// The kinds that are wanted; all if there are none.
    pub kinds: Vec<String>,
}

/// There is nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoQuery;
