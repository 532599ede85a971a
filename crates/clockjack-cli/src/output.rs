//! Files that a command writes: whole, or not at all.
//!
//! Whether a file can be written is found out before the work whose result it is to hold. The text
//! then goes into a new file beside it, which takes its name when nothing is missing: a full disk
//! or a killed process leaves what was there. A device or a pipe is written straight.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// A file that can be written, as far as one can know.
#[derive(Debug)]
pub(crate) struct OutputFile {
    /// As the arguments name it.
    path: PathBuf,
    /// Where it really stands.
    target: PathBuf,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// By a new file, which gets these permissions if there was one before.
    Beside(Option<Permissions>),
    /// Into what is there: it is no file, or its directory takes no new ones.
    Straight,
}

impl OutputFile {
    /// The file at this path. Nothing is left there by this alone.
    pub(crate) fn at(path: &Path) -> Result<Self, Failure> {
        Self::find(path).map_err(|error| Failure::file_output(path, error))
    }

    /// Writes it.
    pub(crate) fn write(&self, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.put(bytes.as_ref()).map_err(|error| Failure::file_output(&self.path, error))
    }

    /// As the arguments name it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn find(path: &Path) -> io::Result<Self> {
        let new = |way| Self { path: path.to_owned(), target: path.to_owned(), way };
        let there = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if there.is_file() => there,
            Ok(_) => return Ok(new(Way::Straight)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let output = new(Way::Beside(None));
                output.try_beside()?;
                return Ok(output);
            }
            Err(error) => return Err(error),
        };
        OpenOptions::new().write(true).open(path)?;
        // A link stays one: what it leads to is replaced.
        let target = path.canonicalize()?;
        let mut output = Self { target, ..new(Way::Beside(Some(there.permissions()))) };
        if output.try_beside().is_err() {
            output.way = Way::Straight;
        }
        Ok(output)
    }

    fn put(&self, bytes: &[u8]) -> io::Result<()> {
        let Way::Beside(permissions) = &self.way else { return fs::write(&self.target, bytes) };
        let beside = self.beside()?;
        let written = create(&beside)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| match permissions {
                Some(permissions) => fs::set_permissions(&beside, permissions.clone()),
                None => Ok(()),
            })
            .and_then(|()| fs::rename(&beside, &self.target));
        if written.is_err() {
            // The first error says more than one of tidying up.
            let _removed = fs::remove_file(&beside);
        }
        written
    }

    /// Whether the directory takes a new file.
    fn try_beside(&self) -> io::Result<()> {
        let beside = self.beside()?;
        drop(create(&beside)?);
        fs::remove_file(&beside)
    }

    /// The file that is to take the name: hidden, and of this process alone.
    fn beside(&self) -> io::Result<PathBuf> {
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

/// The first of the files to be written that is one of those to be read, or another of its own
/// kind. What is no file, such as `/dev/null`, may be named as often as one likes.
pub(crate) fn clash<'p>(
    read: &[&Path],
    written: impl IntoIterator<Item = &'p PathBuf>,
) -> Option<&'p Path> {
    let mut known: Vec<PathBuf> = read.iter().map(|path| real(path)).collect();
    for path in written {
        let real = real(path);
        if fs::metadata(&real).is_ok_and(|there| !there.is_file()) {
            continue;
        }
        if known.contains(&real) {
            return Some(path);
        }
        known.push(real);
    }
    None
}

/// Where a path leads to, by whatever way it is written; also that of a file which is not there
/// yet.
fn real(path: &Path) -> PathBuf {
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

    /// An empty directory.
    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("clockjack-{}-{name}", std::process::id()));
        // What an earlier run of this test has left.
        let _removed = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a directory can be made");
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("it is there");
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
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "two");
        assert_eq!(names(&folder), ["a.txt"]);
        fs::remove_dir_all(folder).expect("it can be removed");
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
        // The name of the new file is taken: this write fails half-way, as one to a full disk does.
        fs::create_dir(output.beside().expect("it has a name")).expect("it can be made");
        output.write("new").expect_err("there is something in the way");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "old");
        fs::remove_dir_all(folder).expect("it can be removed");
    }

    #[test]
    fn files_that_would_be_written_over_each_other_are_found() {
        let folder = scratch("clash");
        let (old, new) = (folder.join("old"), folder.join("new"));
        fs::write(&old, "").expect("it can be written");
        let other = folder.join("../").join(folder.file_name().expect("it has one")).join("new");
        assert_eq!(clash(&[&old], [&new]), None);
        assert_eq!(clash(&[&old], [&new, &old]), Some(old.as_path()));
        assert_eq!(clash(&[&old], [&new, &other]), Some(other.as_path()), "by whatever way");
        fs::remove_dir_all(folder).expect("it can be removed");
    }
}
