//! [`Source`]: what a server shows. A running system, or the console of another program.

use core::{fmt, time::Duration};

use clockjack_rt::FlightRecording;
use serde_json::Value;

use super::timeline::Traced;
use crate::{
    Target,
    query::{Params, QueryError},
    view::Hello,
};

/// What a server shows.
pub(crate) trait Source: Send + Sync + 'static {
    /// What the server says about itself. Its `auth` is overwritten.
    fn hello(&self) -> Hello;

    /// A view as JSON.
    fn view(&self, name: &str, params: &Params) -> Result<Value, ViewError>;

    /// The drawing of a graph as SVG; it is the same for as long as the graph is shown.
    fn graph_svg(&self, params: &Params) -> Result<String, ViewError>;

    /// What actions are about.
    fn target(&self) -> &Target;

    /// Records every poll until the owner is dropped, if the program allows it.
    fn trace(&self) -> Option<Traced>;

    /// What the workers have recorded within the last `last`; `None` if nobody records.
    fn flight_recording(&self, last: Duration) -> Option<FlightRecording>;

    /// A client subscribes: from the first one on, the source is looked at continuously.
    fn subscribe(&self);

    /// The client of an earlier [`subscribe`](Self::subscribe) has gone.
    fn unsubscribe(&self);

    /// Counts frames that a client did not read in time.
    fn count_skipped(&self, n: u64);
}

/// Why there is no view.
#[derive(Debug)]
pub(crate) enum ViewError {
    /// There is no view of this name.
    NoView,
    /// What the query names does not exist.
    NotFound,
    /// The query is invalid.
    Query(QueryError),
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoView => f.write_str("there is no such view"),
            Self::NotFound => f.write_str("there is nothing of this name"),
            Self::Query(error) => error.fmt(f),
        }
    }
}
