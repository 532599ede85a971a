//! Output files, written completely or not at all.
//!
//! A command checks that a file can be written before it starts its work. It then writes the result
//! to a temporary file in the same directory and renames the temporary file: a full disk or a
//! killed process leaves the old contents intact. A device or a pipe is written directly.

use core::sync::atomic::{AtomicBool, Ordering};
use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{failure::Failure, file_id::file_id};

/// A file that was writable when it was checked.
#[derive(Debug)]
pub(crate) struct OutputFile {
    /// The path in the arguments.
    path: PathBuf,
    /// The path with symbolic links resolved.
    target: PathBuf,
    mode: WriteMode,
}

#[derive(Debug)]
enum WriteMode {
    /// Write a temporary file and rename it; it gets these permissions if the file existed before.
    TempAndRename(Option<Permissions>),
    /// Write directly: the target is not a regular file, or its directory rejects new files.
    Direct,
}

impl OutputFile {
    /// Checks that the file at this path can be written. Leaves nothing behind.
    pub(crate) fn at(path: &Path) -> Result<Self, Failure> {
        Self::find(path).map_err(|error| Failure::file_output(path, error))
    }

    /// Writes the file.
    pub(crate) fn write(&self, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.write_bytes(bytes.as_ref()).map_err(|error| Failure::file_output(&self.path, error))
    }

    /// The path in the arguments.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn find(path: &Path) -> io::Result<Self> {
        let new = |mode| Self { path: path.to_owned(), target: path.to_owned(), mode };
        let metadata = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => return Ok(new(WriteMode::Direct)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let output = new(WriteMode::TempAndRename(None));
                output.probe_temp_file()?;
                return Ok(output);
            }
            Err(error) => return Err(error),
        };
        OpenOptions::new().write(true).open(path)?;
        // A symbolic link is kept: its target is replaced.
        let target = path.canonicalize()?;
        let mut output =
            Self { target, ..new(WriteMode::TempAndRename(Some(metadata.permissions()))) };
        if output.probe_temp_file().is_err() {
            output.mode = WriteMode::Direct;
        }
        Ok(output)
    }

    fn write_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let WriteMode::TempAndRename(permissions) = &self.mode else {
            return fs::write(&self.target, bytes);
        };
        let temp = self.temp_path()?;
        let written = create(&temp)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| match permissions {
                Some(permissions) => fs::set_permissions(&temp, permissions.clone()),
                None => Ok(()),
            })
            .and_then(|()| fs::rename(&temp, &self.target));
        if written.is_err() {
            // The first error is more useful than an error of the cleanup.
            let _removed = fs::remove_file(&temp);
        }
        written
    }

    /// Checks that the directory accepts a new file.
    fn probe_temp_file(&self) -> io::Result<()> {
        let temp = self.temp_path()?;
        drop(create(&temp)?);
        fs::remove_file(&temp)
    }

    /// The temporary file: hidden, and unique to this process.
    fn temp_path(&self) -> io::Result<PathBuf> {
        let name = self.target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        Ok(self.target.with_file_name(hidden))
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Says that the next flush of a [`ClosingWriter`] is the last one. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastFlush(Arc<AtomicBool>);

impl LastFlush {
    /// The next flush is the last one.
    pub(crate) fn is_next(&self) {
        // Release: pairs with the load in `flush`.
        self.0.store(true, Ordering::Release);
    }
}

/// A file that ends with its last flush: a run that was abandoned may still write, and must not
/// leave a part of a record behind.
#[derive(Debug)]
pub(crate) struct ClosingWriter<W> {
    to: W,
    last_flush: LastFlush,
    is_closed: bool,
}

impl<W> ClosingWriter<W> {
    pub(crate) fn new(to: W, last_flush: &LastFlush) -> Self {
        Self { to, last_flush: last_flush.clone(), is_closed: false }
    }
}

impl<W: io::Write> io::Write for ClosingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed { Ok(bytes.len()) } else { self.to.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        // Acquire: pairs with the store in `is_next`.
        self.is_closed = self.last_flush.0.load(Ordering::Acquire);
        self.to.flush()
    }
}

/// Creates a file that is written while the command runs, and locks it until it is closed. A file
/// that another command is writing is left alone, and so is one about which `check` returns an
/// error. On Windows nobody else can read the file either, as long as it is locked.
pub(crate) fn create_locked(
    path: &Path,
    check: impl FnOnce() -> io::Result<()>,
) -> Result<File, Failure> {
    let create = || {
        // The contents are dropped only under the lock: they may belong to the other command.
        let (file, is_regular) = open_locked(path)?;
        check()?;
        if is_regular {
            file.set_len(0)?;
        }
        Ok(file)
    };
    create().map_err(|error| Failure::file_output(path, error))
}

/// Opens a file for writing and locks it; returns whether it is a regular one. Its contents stay.
fn open_locked(path: &Path) -> io::Result<(File, bool)> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    let is_regular = file.metadata()?.is_file();
    // Not every file system has locks, and a device or a pipe needs none.
    if is_regular && matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        let text = "another command is writing this file";
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
    }
    Ok((file, is_regular))
}

/// Files that are written together while the command runs, each under its lock. All of them keep
/// their contents until something is written to one of them, so that a command that is refused
/// before it has anything to write loses nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogFiles(Arc<Mutex<Vec<File>>>);

impl LogFiles {
    /// Opens and locks a further file. A file that another command is writing is left alone.
    pub(crate) fn open(&self, path: &Path) -> Result<LogFile, Failure> {
        let open = || {
            let (file, is_regular) = open_locked(path)?;
            if is_regular {
                lock(&self.0).push(file.try_clone()?);
            }
            Ok(LogFile { file, all: self.clone() })
        };
        open().map_err(|error| Failure::file_output(path, error))
    }

    /// Drops the old contents of all files, at the first call.
    fn begin(&self) -> io::Result<()> {
        // The lock is held meanwhile: no other file of these is written before.
        let mut old = lock(&self.0);
        old.drain(..).try_for_each(|file| file.set_len(0))
    }
}

fn lock(files: &Mutex<Vec<File>>) -> MutexGuard<'_, Vec<File>> {
    // No panic leaves the list inconsistent.
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of several [`LogFiles`].
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    all: LogFiles,
}

impl io::Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.all.begin()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The first output file that is also an input file or another output file, under whichever of its
/// names. A target that is not a regular file, such as `/dev/null`, can be named any number of
/// times.
pub(crate) fn first_conflict<'p>(
    read: &[&Path],
    written: impl IntoIterator<Item = &'p PathBuf>,
) -> Option<&'p Path> {
    let id_of = |path: &Path| fs::metadata(path).ok().and_then(|metadata| file_id(&metadata));
    let known = |path: &&Path| (canonical(path), id_of(path));
    let mut known: Vec<(PathBuf, Option<(u64, u64)>)> = read.iter().map(known).collect();
    for path in written {
        let (real, id) = (canonical(path), id_of(path));
        if fs::metadata(&real).is_ok_and(|metadata| !metadata.is_file()) {
            continue;
        }
        // A hard link is another path of the same file.
        if known.iter().any(|(path, of)| *path == real || (id.is_some() && *of == id)) {
            return Some(path);
        }
        known.push((real, id));
    }
    None
}

/// The canonical path, also for a file that does not exist yet.
fn canonical(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new(".")).canonicalize();
    match (folder, path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates an empty directory.
    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("clockjack-{}-{name}", std::process::id()));
        // Removes the directory that an earlier test run left.
        let _removed = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a directory can be made");
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the file exists");
        let names = entries.map(|entry| entry.expect("it can be listed").file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_file_is_there_when_it_is_whole_and_nothing_beside_it() {
        let folder = scratch("whole");
        let path = folder.join("a.txt");
        let output = OutputFile::at(&path).expect("it can be written");
        assert!(names(&folder).is_empty(), "nothing is left before there is a text");
        output.write("one").expect("it is written");
        OutputFile::at(&path).and_then(|output| output.write("two")).expect("it is written again");
        assert_eq!(fs::read_to_string(&path).expect("the file exists"), "two");
        assert_eq!(names(&folder), ["a.txt"]);
        fs::remove_dir_all(folder).expect("it can be removed");
    }

    #[test]
    fn nothing_is_written_after_the_last_flush() {
        let (mut bytes, last_flush) = (Vec::new(), LastFlush::default());
        let mut log = ClosingWriter::new(&mut bytes, &last_flush);
        log.write_all(b"one").and_then(|()| log.flush()).expect("it is written");
        log.write_all(b" two").expect("it is written");
        last_flush.is_next();
        log.write_all(b" three").and_then(|()| log.flush()).expect("the record is whole");
        log.write_all(b" fo").and_then(|()| log.flush()).expect("it is no error");
        drop(log);
        assert_eq!(bytes, b"one two three");
    }

    #[test]
    fn what_cannot_be_written_is_found_out_before_the_work() {
        let folder = scratch("before");
        let kind = |path: &Path| OutputFile::find(path).expect_err("it cannot be written").kind();
        assert_eq!(kind(&folder), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&folder.join("no/such/a.txt")), io::ErrorKind::NotFound);
        fs::remove_dir_all(folder).expect("it can be removed");
    }

    #[test]
    fn a_text_that_could_not_be_written_leaves_what_was_there() {
        let folder = scratch("failed");
        let path = folder.join("a.txt");
        fs::write(&path, "old").expect("it can be written");
        let output = OutputFile::at(&path).expect("it can be written");
        // The name of the temporary file is taken, so this write fails half-way, like a write to a
        // full disk.
        fs::create_dir(output.temp_path().expect("it has a name")).expect("it can be made");
        output.write("new").expect_err("there is something in the way");
        assert_eq!(fs::read_to_string(&path).expect("the file exists"), "old");
        fs::remove_dir_all(folder).expect("it can be removed");
    }

    #[test]
    fn files_that_would_be_written_over_each_other_are_found() {
        let folder = scratch("clash");
        let (old, new) = (folder.join("old"), folder.join("new"));
        fs::write(&old, "").expect("it can be written");
        let other = folder.join("../").join(folder.file_name().expect("it has one")).join("new");
        assert_eq!(first_conflict(&[&old], [&new]), None);
        assert_eq!(first_conflict(&[&old], [&new, &old]), Some(old.as_path()));
        assert_eq!(
            first_conflict(&[&old], [&new, &other]),
            Some(other.as_path()),
            "by whatever way"
        );
        fs::remove_dir_all(folder).expect("it can be removed");
    }
}
