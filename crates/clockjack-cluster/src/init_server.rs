//! `init-server`: the configuration of a server, in a file.

use std::{fs, io, path::PathBuf};

use clockjack_nats::tools::ServerFile;

use crate::{args::InitServerArgs, failure::Failure, write_result};

/// The name of the file.
const FILE: &str = "nats-server.conf";

pub(crate) fn run(args: InitServerArgs) -> Result<(), Failure> {
    let cannot = |path: &PathBuf| {
        let path = path.display().to_string();
        move |error: io::Error| Failure::failed(&format!("cannot write '{path}'"), error)
    };
    fs::create_dir_all(&args.data).map_err(cannot(&args.data))?;
    // The server may be started in another directory.
    let data = args.data.canonicalize().map_err(cannot(&args.data))?;
    let path = data.join(FILE);
    let file = ServerFile {
        monitor: Some(args.monitor),
        name: args.name,
        routes_listen: args.routes_listen,
        routes: args.route,
        ..ServerFile::new(data, args.listen)
    };
    let text = file.to_string();
    match fs::read_to_string(&path) {
        // The command stands in a line that starts the server, for the second time, too.
        Ok(there) if there == text => {}
        Ok(_) => {
            let path = path.display();
            return Err(Failure::usage(format!(
                "'{path}' has other settings; remove it, or start the server with it"
            )));
        }
        Err(_) => fs::write(&path, &text).map_err(cannot(&path))?,
    }
    write_result(&format!("{}\n", path.display()))
}
