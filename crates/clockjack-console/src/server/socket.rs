//! The unix socket: its directory, its permissions, and who is at the other end.
//!
//! Who may connect is decided by the directory, which only this user can enter: the mode of the
//! socket alone is not checked on all systems, and a socket is born with the mode of the umask.

use std::{
    fs, io,
    os::unix::{
        fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use super::{OpenError, connections::Listener};
use crate::{Address, address};

/// Removes the file of a socket when the console closes.
#[derive(Debug)]
pub(super) struct Removal {
    path: PathBuf,
    inode: u64,
}

impl Drop for Removal {
    fn drop(&mut self) {
        // Another program may have made a new one at this path.
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            // A socket that cannot be removed is removed by `clockjack ps`.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

/// The directory for new sockets, which is made if there is none.
pub(super) fn directory() -> Result<PathBuf, OpenError> {
    let path = address::directories().swap_remove(0);
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(path),
        Err(error) => Err(OpenError::no_directory(&path, error)),
    }
}

/// Refuses a directory that is not this user's, or that others can enter.
fn check_directory(path: &Path) -> Result<(), OpenError> {
    let why = address::why_insecure(path);
    match why.map_err(|error| OpenError::no_directory(path, error))? {
        Some(why) => Err(OpenError::insecure(path, &why)),
        None => Ok(()),
    }
}

/// Listens at a path.
pub(super) fn listen(path: PathBuf) -> Result<(Listener, Address, Removal), OpenError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    check_directory(parent.unwrap_or(Path::new(".")))?;
    remove_stale(&path)?;
    let listener = UnixListener::bind(&path).map_err(OpenError::listen)?;
    let open = || {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        fs::symlink_metadata(&path)
    };
    let found = open().map_err(OpenError::listen)?;
    let removal = Removal { path: path.clone(), inode: found.ino() };
    Ok((Listener::Unix(listener), Address::Socket(path), removal))
}

/// Removes the socket of a program that was killed, and nothing else.
fn remove_stale(path: &Path) -> Result<(), OpenError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() || !is_stale(path) {
        return Err(OpenError::in_use(path));
    }
    fs::remove_file(path).map_err(OpenError::listen)
}

/// Whether nobody listens at this socket.
fn is_stale(path: &Path) -> bool {
    let connected = UnixStream::connect(path);
    connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Whether a user may connect.
pub(super) fn may_connect(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new directory with this mode.
    fn scratch(name: &str, mode: u32) -> PathBuf {
        let pid = std::process::id();
        let path = std::env::temp_dir().join(format!("clockjack-test-{pid}-{name}"));
        let _removed = fs::remove_dir_all(&path);
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused() {
        for mode in [0o755, 0o770, 0o711, 0o750] {
            let path = scratch("open", mode);
            let error = listen(path.join("x.sock")).map(|_| ()).unwrap_err();
            assert!(error.is_insecure(), "{mode:o}: {error}");
            assert!(error.to_string().contains(&format!("mode {mode:o}")), "{error}");
            fs::remove_dir_all(path).unwrap();
        }
    }

    #[test]
    fn a_link_to_a_directory_is_refused() {
        let path = scratch("linked", 0o700);
        let link = path.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(listen(link.join("x.sock")).map(|_| ()).unwrap_err().is_insecure());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_path_is_freed_of_a_stale_socket_and_of_nothing_else() {
        let path = scratch("stale", 0o700);
        let file = path.join("file.sock");
        fs::write(&file, "mine").unwrap();
        assert!(listen(file.clone()).map(|_| ()).unwrap_err().is_in_use());
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");

        let socket = path.join("x.sock");
        drop(UnixListener::bind(&socket).unwrap()); // as after `kill -9`
        let open = listen(socket.clone()).unwrap();
        assert_eq!(fs::symlink_metadata(&socket).unwrap().mode() & 0o777, 0o600);
        assert!(listen(socket.clone()).map(|_| ()).unwrap_err().is_in_use(), "it is in use");
        drop(open);
        assert!(!socket.exists(), "who closes removes the file");
        fs::remove_dir_all(path).unwrap();
    }
}
