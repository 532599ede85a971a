//! The recording of an observed run: a directory with one file per part, and a manifest that lists
//! the files. It contains no HTML page: existing trace viewers open the trace.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{failure::Failure, output};

/// The schema version of the manifest.
const SCHEMA_VERSION: &str = "1";
const MANIFEST: &str = "manifest.json";
/// All events, including those that are not printed.
const EVENTS: &str = "observe.ndjson";

/// The directory of a recording.
#[derive(Debug)]
pub(crate) struct Artifact {
    directory: PathBuf,
    files: Vec<Value>,
}

impl Artifact {
    /// Creates the directory, and the file of its events, which is written during the run. Fails if
    /// the directory already contains a recording or other files, or another command is recording
    /// there.
    pub(crate) fn create(directory: &Path) -> Result<(Self, (PathBuf, fs::File)), Failure> {
        fs::create_dir_all(directory).map_err(|error| Failure::file_output(directory, error))?;
        let path = directory.join(EVENTS);
        if !path.exists() {
            // Nothing is left behind in a directory of somebody else.
            check_directory(directory).map_err(|error| Failure::file_output(directory, error))?;
        }
        let events = output::create_locked(&path, || check_directory(directory))?;
        let files = vec![json!({"name": EVENTS, "what": "events, one per line"})];
        Ok((Self { directory: directory.to_owned(), files }, (path, events)))
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

/// Fails if a part of the recording could overwrite a file.
fn check_directory(directory: &Path) -> io::Result<()> {
    let refused = |text| Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    if directory.join(MANIFEST).exists() {
        return refused("the directory already contains a recording");
    }
    for entry in fs::read_dir(directory)? {
        if entry?.file_name() != EVENTS {
            return refused("the directory contains other files");
        }
    }
    Ok(())
}
