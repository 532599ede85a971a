//! The programs of this user that can be looked at.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Client, ConnectError};
use crate::{
    Address,
    address::{directories, parse_socket_name, why_insecure},
};

/// A program that can be looked at.
#[derive(Debug)]
#[non_exhaustive]
pub struct Program {
    /// Its process id.
    pub pid: u32,
    /// The name of its system, as in the name of the socket.
    pub system: String,
    /// Its socket.
    pub path: PathBuf,
    /// A client that is connected, or why there is none.
    pub client: Result<Client, ConnectError>,
}

/// All programs of this user that have a socket in the usual directories, by pid. Removes the
/// sockets of programs that were killed.
///
/// # Errors
///
/// If a directory exists and cannot be read, or if others than this user can reach the one in which
/// programs make their sockets.
pub fn list() -> io::Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (pid, system, path) in sockets()? {
        let client = Client::connect(&Address::Socket(path.clone()));
        if client.as_ref().is_err_and(ConnectError::is_stale) {
            remove(&path);
            continue;
        }
        programs.push(Program { pid, system, path, client });
    }
    Ok(programs)
}

fn sockets() -> io::Result<Vec<(u32, String, PathBuf)>> {
    sockets_in(&directories())
}

/// The sockets in these directories. A directory in which others can make sockets is not read:
/// a socket there may be that of another user, who would learn what is asked, and whose answers
/// nobody should believe. If it is the first one, in which programs make theirs, that is an error;
/// a further one only this user would have made, so it contains nothing of this user.
fn sockets_in(directories: &[PathBuf]) -> io::Result<Vec<(u32, String, PathBuf)>> {
    let mut found = Vec::new();
    for (index, directory) in directories.iter().enumerate() {
        match why_insecure(directory) {
            Ok(None) => {}
            Ok(Some(why)) if index == 0 => {
                let what = format!("'{}' {why}", directory.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
            }
            Err(error) if index == 0 && error.kind() != io::ErrorKind::NotFound => {
                return Err(error);
            }
            Ok(Some(_)) | Err(_) => continue,
        }
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            if let Some((pid, system)) = parse_socket_name(&path) {
                found.push((pid, system.to_owned(), path));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Removes the socket of a program that was killed, if it is this user's.
#[cfg(unix)]
fn remove(path: &Path) {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let uid = rustix::process::geteuid().as_raw();
    let is_ours = |file: fs::Metadata| file.file_type().is_socket() && file.uid() == uid;
    if fs::symlink_metadata(path).is_ok_and(is_ours) {
        // The next one may remove it.
        let _removed = fs::remove_file(path);
    }
}

#[cfg(not(unix))]
fn remove(_: &Path) {}

/// The address of a program that is named by its pid, the name of its system, the path of its
/// socket, or a URL.
///
/// # Errors
///
/// If there is no such program, or more than one.
pub fn resolve(name: &str) -> Result<Address, ConnectError> {
    if let Ok(address) = name.parse() {
        return Ok(address);
    }
    let sockets = sockets();
    let sockets = sockets.map_err(|error| ConnectError::no_program(error.to_string()))?;
    let is_meant =
        |(pid, system, _): &&(u32, String, PathBuf)| name.parse() == Ok(*pid) || name == system;
    // A socket whose program was killed is not meant by the name of a system.
    let is_alive = |path: &Path| {
        let client = Client::connect(&Address::Socket(path.to_owned()));
        !client.is_err_and(|error| error.is_stale())
    };
    let meant = sockets.iter().filter(is_meant).filter(|(_, _, path)| is_alive(path));
    let meant: Vec<&(u32, String, PathBuf)> = meant.collect();
    match meant[..] {
        [(_, _, path)] => Ok(Address::Socket(path.clone())),
        [] => {
            let what = format!("no running program `{name}` has a console; `clockjack ps` lists");
            Err(ConnectError::no_program(format!("{what} those that have")))
        }
        _ => {
            let pids: Vec<String> = meant.iter().map(|(pid, ..)| pid.to_string()).collect();
            let what = format!("`{name}` are several programs; name one by its pid");
            Err(ConnectError::no_program(format!("{what}: {}", pids.join(", "))))
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn sockets_in_a_directory_of_others_are_not_believed() {
        let root = std::env::temp_dir().join(format!("clockjack-list-{}", std::process::id()));
        let _removed = fs::remove_dir_all(&root);
        let [own, open, none] = ["own", "open", "none"].map(|name| root.join(name));
        for (directory, mode) in [(&own, 0o700), (&open, 0o777)] {
            fs::create_dir_all(directory).unwrap();
            fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
            drop(std::os::unix::net::UnixListener::bind(directory.join("7-house.sock")).unwrap());
        }
        let found = |all: &[&PathBuf]| {
            let all: Vec<PathBuf> = all.iter().map(|one| (*one).clone()).collect();
            sockets_in(&all)
                .map(|found| found.into_iter().map(|(.., path)| path).collect::<Vec<PathBuf>>())
        };
        let only_own: Vec<PathBuf> = vec![own.join("7-house.sock")];
        for directories in [&[&own, &open][..], &[&none, &own], &[&own, &none]] {
            assert_eq!(found(directories).unwrap(), only_own, "{directories:?}");
        }
        let link = root.join("link");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        for directory in [&open, &link] {
            let error: io::Error = found(&[directory]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        }
        fs::remove_dir_all(root).unwrap();
    }
}
