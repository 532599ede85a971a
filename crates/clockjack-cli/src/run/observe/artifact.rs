//! What is kept of an observed run in a directory: all that was known of it, each part in a file of
//! its own, and a manifest that lists them. There is no page for a browser among them: the trace
//! opens in those that exist.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::failure::Failure;

/// The version of the manifest.
const SCHEMA_VERSION: &str = "1";
const MANIFEST: &str = "manifest.json";
/// The lines that were printed, and those that were not.
pub(crate) const EVENTS: &str = "observe.ndjson";

/// A directory that is filled.
#[derive(Debug)]
pub(crate) struct Artifact {
    directory: PathBuf,
    files: Vec<Value>,
}

impl Artifact {
    /// A new one. One that holds a recording already is left alone.
    pub(crate) fn create(directory: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(directory).map_err(|error| Failure::file_output(directory, error))?;
        let manifest = directory.join(MANIFEST);
        if manifest.exists() {
            let there =
                io::Error::new(io::ErrorKind::AlreadyExists, "a recording is there already");
            return Err(Failure::file_output(&manifest, there));
        }
        Ok(Self { directory: directory.to_owned(), files: Vec::new() })
    }

    /// A file of it that is written as the run goes on.
    pub(crate) fn open(&mut self, name: &str, what: &str) -> Result<(PathBuf, fs::File), Failure> {
        let path = self.directory.join(name);
        let file = fs::File::create(&path).map_err(|error| Failure::file_output(&path, error))?;
        self.files.push(json!({"name": name, "what": what}));
        Ok((path, file))
    }

    /// One more file.
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

    /// Writes the manifest, which comes last: a directory without one is not whole.
    pub(crate) fn finish(mut self, mut about: Value) -> Result<(), Failure> {
        about["record_schema_version"] = SCHEMA_VERSION.into();
        about["files"] = core::mem::take(&mut self.files).into();
        self.put(MANIFEST, "", format!("{about:#}\n"))
    }
}
