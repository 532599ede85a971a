//! What the command `clockjack cluster` needs: reading the log without being a member, and the
//! texts that configure a server.

mod inspect;
mod rules;
mod server_file;

pub use inspect::{InspectError, Inspector, LogReport, Logged, Replica, ServerReport};
pub use rules::{Role, Rules};
pub use server_file::{ServerFile, SyncInterval};
