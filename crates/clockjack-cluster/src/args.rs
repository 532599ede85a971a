//! The arguments.

use core::{net::SocketAddr, time::Duration};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clockjack_nats::{
    Auth, NatsConfig, Tls,
    tools::{Inspector, Role},
};

use crate::failure::Failure;

/// The variable with the password of the user.
const PASSWORD: &str = "CLOCKJACK_NATS_PASSWORD";
/// The variable with a token.
const TOKEN: &str = "CLOCKJACK_NATS_TOKEN";

const EXAMPLES: &str = "\
Examples:
  nats-server -c \"$(clockjack cluster init-server --data ./nats)\"   start a server
  clockjack cluster status                                          who is a member
  clockjack cluster events --follow                                 the log, as it grows
  clockjack cluster doctor                                          check servers and log
  clockjack cluster permissions --role worker                       rules for a node

Exit codes:
  0    success, also if the reader of the output closed the pipe early
  1    a check failed, the log cannot be read, or a file or the output could not be written
  2    the arguments are invalid or missing; nothing was done
  8    no server was reached, or it refused the connection";

/// Show and check a cluster of nodes on NATS servers
#[derive(Debug, Parser)]
#[command(name = "clockjack cluster", bin_name = "clockjack cluster", version,
    after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the members, the log and the servers that store it
    Status(StatusArgs),
    /// Show the members
    Members(StatusArgs),
    /// Print the log as text: members that join and end, services that come and go
    Events(EventsArgs),
    /// Check the servers, the log and the members, and say what a failure would lose
    Doctor(DoctorArgs),
    /// Write the configuration of a server, and print the path of the file
    InitServer(InitServerArgs),
    /// Print the permissions of a user of the server, as an account of its configuration
    Permissions(PermissionsArgs),
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    Human,
    /// JSON objects, one per line.
    Json,
}

/// How the servers are reached.
#[derive(Args, Debug)]
pub(crate) struct ConnectArgs {
    /// A server; can be repeated: one that answers is enough.
    #[arg(long, value_name = "URL", default_value = "nats://127.0.0.1:4222")]
    server: Vec<String>,

    /// The name of the cluster; default: the only one that the server has.
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,

    /// The name of the user; the password is in the variable CLOCKJACK_NATS_PASSWORD. Without it, a
    /// token in CLOCKJACK_NATS_TOKEN is used if there is one.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// A file with the credentials, as `nsc` writes it.
    #[arg(long, value_name = "FILE", conflicts_with = "user")]
    creds: Option<PathBuf>,

    /// A file with the certificates of the authorities that sign those of the servers.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Allow a server on another machine without credentials.
    #[arg(long)]
    insecure: bool,

    /// How long to wait for an answer of a server, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

impl ConnectArgs {
    fn config(&self, cluster: &str) -> NatsConfig {
        let auth = match (&self.creds, &self.user, std::env::var(TOKEN)) {
            (Some(file), _, _) => Auth::CredsFile(file.clone()),
            (None, Some(user), _) => {
                let password = std::env::var(PASSWORD).unwrap_or_default();
                Auth::UserPassword { user: user.clone(), password }
            }
            (None, None, Ok(token)) => Auth::Token(token),
            (None, None, Err(_)) => Auth::None,
        };
        let name = self.user.as_deref().unwrap_or("clockjack-cluster");
        NatsConfig {
            urls: self.server.clone(),
            auth,
            tls: Tls::IfOffered,
            ca_file: self.ca.clone(),
            insecure: self.insecure,
            connect_timeout: Duration::from_secs(self.timeout),
            ..NatsConfig::new("", cluster, name)
        }
    }

    /// Connects, and returns the name of the cluster.
    pub(crate) fn connect(&self) -> Result<(String, Inspector), Failure> {
        if let Some(cluster) = &self.cluster {
            return Ok((cluster.clone(), Inspector::connect(&self.config(cluster))?));
        }
        let clusters = Inspector::connect(&self.config(""))?.clusters()?;
        match clusters.as_slice() {
            [cluster] => Ok((cluster.clone(), Inspector::connect(&self.config(cluster))?)),
            [] => Err(Failure::failed("no cluster", "no node has joined at this server")),
            several => {
                let several = several.join(", ");
                Err(Failure::usage(format!("name one with --cluster: the server has {several}")))
            }
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Args, Debug)]
pub(crate) struct EventsArgs {
    /// Wait for new entries and print them, until the program is stopped.
    #[arg(long)]
    pub(crate) follow: bool,

    /// Also print renewals of leases.
    #[arg(long)]
    pub(crate) renewals: bool,

    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Where the server answers requests about itself (`http` in its configuration), to find out
    /// when it writes to its disk.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) monitor: Option<SocketAddr>,

    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Args, Debug)]
pub(crate) struct InitServerArgs {
    /// The directory for the configuration and the data of the server. It is created.
    #[arg(long, value_name = "DIR", default_value = "nats")]
    pub(crate) data: PathBuf,

    /// Where clients connect.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4222")]
    pub(crate) listen: SocketAddr,

    /// Where the server answers requests about itself; anybody who reaches the port may read it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8222")]
    pub(crate) monitor: SocketAddr,

    /// The name of the server, if there are several.
    #[arg(long, value_name = "NAME", requires = "routes_listen")]
    pub(crate) name: Option<String>,

    /// Where the other servers connect.
    #[arg(long, value_name = "ADDRESS", requires = "name")]
    pub(crate) routes_listen: Option<SocketAddr>,

    /// Another server, such as nats://10.0.0.8:6222; can be repeated.
    #[arg(long, value_name = "URL", requires = "name")]
    pub(crate) route: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct PermissionsArgs {
    /// What the user is for.
    #[arg(long, value_enum)]
    pub(crate) role: RoleArg,

    /// The name of the cluster.
    #[arg(long, value_name = "NAME", default_value = "CLUSTER")]
    pub(crate) cluster: String,

    /// The name of the node, which is that of the user.
    #[arg(long, value_name = "NAME", default_value = "NODE")]
    pub(crate) node: String,
}

/// See [`Role`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    /// A node of the cluster.
    Worker,
    /// Somebody who reads the log: `status`, `members`, `events` and `doctor`.
    Observer,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Worker => Self::Worker,
            RoleArg::Observer => Self::Observer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
