//! The arguments of `inspect`.

use core::time::Duration;

use clap::{Args, builder::PossibleValuesParser};
use clockjack_console::{
    query::{ActorQuery, Filter, Query, QueryParams as _, Sort},
    view::VIEWS,
};

use super::{Streams, exit_codes, write_result};
use crate::{failure::Failure, format::Format, live, span};

const EXAMPLES: &str = "\
Examples:
  clockjack inspect house                                       the system at a glance
  clockjack inspect house /user/shop/till --format json         one actor in full
  clockjack inspect house --view actors --filter 'depth>100'    the fullest mailboxes
  clockjack inspect 4711 --view workers                         by process id

The program is named by its process id, the name of its system, the path of its socket, or a URL.";

/// Show what a running program does: the system, one actor, or another view
#[derive(Debug, Args)]
#[command(after_help = exit_codes(EXAMPLES, &[0, 2, 8, 13]))]
pub(super) struct InspectArgs {
    /// The program.
    program: String,

    /// The path of an actor, such as `/user/shop/till`, or its pid, such as `{0|3.1}`.
    #[arg(conflicts_with = "view")]
    actor: Option<String>,

    /// The view; default: overview, or actor if one is named.
    #[arg(long, value_name = "VIEW", value_parser = PossibleValuesParser::new(VIEWS))]
    view: Option<String>,

    /// Which rows: `till`, `state:stuck,queued`, `depth>100`, `type:Till`, `-path:/system`.
    #[arg(long, value_name = "FILTER", default_value = "")]
    filter: String,

    /// The order of rows: rate, depth, share, wait or restarts.
    #[arg(long, value_name = "FIGURE", default_value = "depth")]
    sort: String,

    /// The name of a graph, for the view `graph`.
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,

    /// How long to look before the answer: rates need two looks.
    #[arg(long = "for", value_name = "DURATION", default_value = "1s", value_parser = span::parse)]
    wait: Duration,

    /// Output format: an outline, or one JSON object on one line.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl InspectArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let sort = Sort::of_name(&self.sort);
        let sort = sort.ok_or_else(|| Failure::usage(format!("--sort: no '{}'", self.sort)))?;
        let filter = Filter::parse(&self.filter);
        let filter = filter.map_err(|error| Failure::usage(format!("--filter: {error}")))?;
        let (view, params) = match &self.actor {
            Some(pid) if pid.starts_with('{') => {
                ("actor", ActorQuery::Pid(pid.clone()).to_params())
            }
            Some(path) => ("actor", ActorQuery::Path(path.clone()).to_params()),
            None => {
                let view = self.view.as_deref().unwrap_or("overview");
                let mut params = Query { sort, filter, ..Query::default() }.to_params();
                params.extend(self.graph.iter().map(|name| ("name".to_owned(), name.clone())));
                (view, params)
            }
        };
        let client = live::connect(&self.program)?;
        let value = live::look(&client, view, &params, self.wait)?;
        let text = match self.format {
            Format::Human => live::outline(&value),
            Format::Json | Format::Ndjson => format!("{value}\n"),
        };
        write_result(streams, &text)
    }
}
