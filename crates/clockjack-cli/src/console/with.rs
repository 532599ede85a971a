//! The console of a run: `--console`.

use clockjack_console::server::{Bind, Console, Control, Opened};
use clockjack_graph::GraphRun;
use clockjack_rt::Runtime;

use crate::{failure::Failure, run::Allowed};

/// An open console, on 127.0.0.1 and with a new token.
#[derive(Debug)]
pub(crate) struct RunConsole(Opened);

impl RunConsole {
    /// Opens a console that shows no graph yet.
    pub(crate) fn open(runtime: &Runtime, allowed: Allowed) -> Result<Self, Failure> {
        let control = match allowed {
            Allowed::Inspect => Control::INSPECT,
            Allowed::Graphs => Control::INSPECT.and(Control::GRAPHS),
        };
        let console = Console::of(runtime).bind(Bind::Loopback(0)).control(control);
        console.open().map(Self).map_err(Failure::no_console)
    }

    /// Shows the graph; returns what to tell the user.
    pub(crate) fn show(&self, name: &str, run: &GraphRun) -> String {
        self.0.add_graph(name, run);
        let url = self.0.url().unwrap_or_default();
        format!("console: {url}  (for this machine; closes with the run)")
    }

    /// Closes it.
    pub(crate) fn close(self) {
        self.0.close();
    }
}
