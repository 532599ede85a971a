//! The recording of an observed run: a directory with one file per part, and a manifest that lists
//! the files. It contains no HTML page: existing trace viewers open the trace.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::failure::Failure;

/// The schema version of the manifest.
const SCHEMA_VERSION: &str = "1";
const MANIFEST: &str = "manifest.json";
/// All events, including those that are not printed.
pub(crate) const EVENTS: &str = "observe.ndjson";

/// The directory of a recording.
#[derive(Debug)]
pub(crate) struct Artifact {
    directory: PathBuf,
    files: Vec<Value>,
}

impl Artifact {
    /// Creates the directory. Fails if it already contains a recording.
    pub(crate) fn create(directory: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(directory).map_err(|error| Failure::file_output(directory, error))?;
        let manifest = directory.join(MANIFEST);
        if manifest.exists() {
            let there = io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the directory already contains a recording",
            );
            return Err(Failure::file_output(&manifest, there));
        }
        Ok(Self { directory: directory.to_owned(), files: Vec::new() })
    }

    /// Opens a file that is written during the run.
    pub(crate) fn open(&mut self, name: &str, what: &str) -> Result<(PathBuf, fs::File), Failure> {
        let path = self.directory.join(name);
        let file = fs::File::create(&path).map_err(|error| Failure::file_output(&path, error))?;
        self.files.push(json!({"name": name, "what": what}));
        Ok((path, file))
    }

    /// Writes a file.
    pub(crate) fn put(
        &mut self,
        name: &str,
        what: &str,
        bytes: impl AsRef<[u8]>,
    ) -> Result<(), Failure> {
        let path = self.directory.join(name);
        fs::write(&path, bytes).map_err(|error| Failure::file_output(&path, error))?;
        self.files.push(json!({"name": name, "what": what}));
        Ok(())
    }

    /// Writes the manifest last: a directory without a manifest is incomplete.
    pub(crate) fn finish(mut self, mut about: Value) -> Result<(), Failure> {
        about["record_schema_version"] = SCHEMA_VERSION.into();
        about["files"] = core::mem::take(&mut self.files).into();
        self.put(MANIFEST, "", format!("{about:#}\n"))
    }
}
