//! The arguments of `clockjack init`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{Streams, exit_codes, write_result};
use crate::{
    failure::Failure,
    format::Format,
    init::{Origin, Project, Template},
};

const INIT_EXAMPLES: &str = "\
Examples:
  clockjack init --list                                list the templates
  clockjack init night-watch                           a program with an actor and its tests
  clockjack init tank --template control-loop          a graph file with a custom component
  clockjack init notes --template service              an HTTP server that drains on SIGTERM
  clockjack init lamp --template embedded --clockjack-path ../clockjack";

/// Create a new project that compiles and passes its tests
#[derive(Debug, Args)]
#[command(after_help = exit_codes(INIT_EXAMPLES, &[0, 2]))]
pub(super) struct InitArgs {
    /// The directory of the project; its last part is the name of the project. An existing
    /// directory must be empty.
    #[arg(value_name = "NAME", required_unless_present = "list")]
    dir: Option<PathBuf>,

    /// The template of the project.
    #[arg(long, value_enum, default_value_t = Template::Actors)]
    template: Template,

    /// Depend on the Clockjack checkout in this directory. Default: the checkout that this command
    /// was built from; if that no longer exists, the registry.
    #[arg(long, value_name = "DIR", alias = "path-to-workspace")]
    clockjack_path: Option<PathBuf>,

    /// List the templates and create nothing.
    #[arg(long, conflicts_with_all = ["dir", "template", "clockjack_path"])]
    list: bool,

    /// Output format: text, one JSON object, or one JSON object per line.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl InitArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let Some(dir) = &self.dir else {
            return write_result(streams, list(self.format));
        };
        let origin = match &self.clockjack_path {
            Some(path) => Origin::checkout(path)?,
            None => Origin::default_origin(),
        };
        let project = Project::new(dir, self.template, origin)?;
        let written = project.write()?;
        write_result(streams, created(&project, &written, self.format))
    }
}

/// The templates.
fn list(format: Format) -> String {
    let about = |template: &Template| json!({ "name": template.name(), "about": template.about() });
    let line = |template: &Template| format!("{:<14}{}\n", template.name(), template.about());
    format.list("templates", Template::ALL.iter().map(about), || {
        Template::ALL.iter().map(line).collect()
    })
}

/// The files that were created and the next steps.
fn created(project: &Project, written: &[&str], format: Format) -> String {
    let dir = project.dir.display();
    if format != Format::Human {
        let (name, template) = (project.name.as_str(), project.template.name());
        let checkout = match &project.origin {
            Origin::Checkout(root) => Some(root.to_string_lossy()),
            Origin::Registry => None,
        };
        let report = json!({
            "name": name,
            "dir": dir.to_string(),
            "template": template,
            "clockjack_path": checkout,
            "files": written,
        });
        return format!("{report}\n");
    }
    let mut out = String::new();
    for path in written {
        out.push_str(&format!("{}\n", project.dir.join(path).display()));
    }
    out.push_str(&format!(
        "\nnext: `cd {dir}`, then `cargo test`; see README.md for an overview\n"
    ));
    out
}
