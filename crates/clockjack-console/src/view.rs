//! The views: what a client asks for and what it gets, as data.
//!
//! The same types are written by a program, read by clients, and returned by [`inspect`].
//!
//! [`inspect`]: crate::inspect

mod actors;
mod graphs;
mod machine;
mod messages;
mod number;
mod overview;
mod params;

use serde::{Serialize, de::DeserializeOwned};

pub use self::{
    actors::{
        ActorDetail, ActorRow, ActorState, ActorTimerRow, AskRow, FailureRow, FutureRow, Handling,
        MailboxDetail, Page, SupervisionRow, TreeRow, WatchDetail,
    },
    graphs::{ComponentRow, EdgeRow, GraphRow, GraphView, Graphs, LaneRow, LoopRow},
    machine::{JobRow, Running, TimerShardRow, TimersView, WorkerRow, Workers},
    messages::{DeadLetterRow, DeadLetters, EventRow, Events},
    number::{Number, Tag},
    overview::{
        Auth, BlockingRow, ClockRow, ConsoleRow, Evidence, Finding, Findings, Hello, Overview,
        RecorderRow, SCHEMA, Sweep, Undecided,
    },
    params::{Param, ParamChange},
};
use crate::query::{ActorQuery, EventsQuery, GraphQuery, NoQuery, Query, QueryParams, TreeQuery};

/// A view with its query.
pub trait View: Serialize + DeserializeOwned {
    /// What a client may choose.
    type Query: QueryParams;
    /// The last part of its address: `/v1/` and this name.
    const NAME: &'static str;
}

macro_rules! views {
    ($($view:ty, $query:ty, $name:literal;)*) => {
        $(impl View for $view {
            type Query = $query;
            const NAME: &'static str = $name;
        })*

        /// The names of all views.
        pub const VIEWS: &[&str] = &[$($name),*];
    };
}

views! {
    Hello, NoQuery, "hello";
    Overview, NoQuery, "overview";
    Page<ActorRow>, Query, "actors";
    Page<TreeRow>, TreeQuery, "tree";
    ActorDetail, ActorQuery, "actor";
    Workers, NoQuery, "workers";
    TimersView, NoQuery, "timers";
    Page<JobRow>, Query, "jobs";
    Page<AskRow>, Query, "asks";
    DeadLetters, NoQuery, "deadletters";
    Graphs, NoQuery, "graphs";
    GraphView, GraphQuery, "graph";
    Events, EventsQuery, "events";
    Findings, NoQuery, "findings";
}
