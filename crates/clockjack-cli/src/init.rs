//! `clockjack init`: a new project that compiles and passes its tests.
//!
//! A template is a set of files in `init/templates/`, kept inside the command. Between double
//! braces stand the names that differ from project to project. Nothing is written over: the
//! directory must be empty, or not be there yet.

mod error;
mod name;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub(crate) use self::{error::InitError, name::Name};

/// What a project begins as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Template {
    /// Actors on threads.
    Actors,
    /// A graph file with a component of its own.
    ControlLoop,
    /// An actor without std.
    Embedded,
    /// Each kind of test.
    Test,
}

/// Where a file goes, and its text.
type File = (&'static str, &'static str);

/// The files of a template that stand at these paths in its folder.
macro_rules! files {
    ($template:literal: $($path:literal),+) => {
        &[
            ("Cargo.toml", include_str!(concat!("init/templates/", $template, "/manifest.toml"))),
            (".gitignore", include_str!("init/templates/gitignore")),
            $(($path, include_str!(concat!("init/templates/", $template, "/", $path)))),+
        ]
    };
}

impl Template {
    /// All of them, in the order in which they are listed.
    pub(crate) const ALL: [Self; 4] = [Self::Actors, Self::ControlLoop, Self::Embedded, Self::Test];

    /// What the arguments call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Actors => "actors",
            Self::ControlLoop => "control-loop",
            Self::Embedded => "embedded",
            Self::Test => "test",
        }
    }

    /// What it is, in a line.
    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::Actors => "a program with an actor and a timer, tested in virtual time",
            Self::ControlLoop => "a graph file, a component of its own, and all commands for both",
            Self::Embedded => "an actor without std, and what it asks of a board; tested on a PC",
            Self::Test => "a library with an actor, and each kind of test that there is for one",
        }
    }

    const fn files(self) -> &'static [File] {
        match self {
            Self::Actors => {
                files!("actors": "README.md", "src/lib.rs", "src/main.rs", "tests/throttle.rs")
            }
            Self::ControlLoop => files!("control-loop":
                "README.md", "graphs/tank.yaml", "src/lib.rs", "src/main.rs", "tests/tank.rs"),
            Self::Embedded => {
                files!("embedded": "README.md", "src/board.rs", "src/lib.rs", "tests/lamp.rs")
            }
            Self::Test => files!("test": "README.md", "src/lib.rs", "tests/courier.rs"),
        }
    }
}

/// Where a project gets Clockjack from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The registry, in the version of this command.
    Registry,
    /// A checkout: its root, as an absolute path.
    Checkout(PathBuf),
}

impl Origin {
    /// The checkout in this directory.
    pub(crate) fn checkout(dir: &Path) -> Result<Self, InitError> {
        let no_checkout = || InitError::NoCheckout(dir.to_owned());
        let root = std::path::absolute(dir).map_err(|_| no_checkout())?;
        if !is_checkout(&root) {
            return Err(no_checkout());
        }
        Ok(Self::Checkout(root))
    }

    /// The checkout that this command was built in, if it is still there; else the registry. A
    /// command that cargo has installed from the registry was built in no checkout.
    pub(crate) fn of_this_command() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        let root = root.filter(|root| is_checkout(root));
        root.map_or(Self::Registry, |root| Self::Checkout(root.to_owned()))
    }

    /// How a manifest names a crate of ours: what stands between the braces.
    fn dependency(&self, package: &str) -> String {
        match self {
            Self::Registry => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
            Self::Checkout(root) => {
                let path = root.join("crates").join(package);
                format!("path = {}", quoted(&path.to_string_lossy()))
            }
        }
    }
}

fn is_checkout(root: &Path) -> bool {
    root.join("crates/clockjack/Cargo.toml").is_file()
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            char if char.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(char))),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

/// A project to be written.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    /// Where. Its last part is the name.
    pub(crate) dir: PathBuf,
    /// What cargo calls it.
    pub(crate) name: Name,
    /// What it begins as.
    pub(crate) template: Template,
    /// Where it gets Clockjack from.
    pub(crate) origin: Origin,
}

impl Project {
    /// The project in this directory, by whose last part it is called.
    pub(crate) fn new(dir: &Path, template: Template, origin: Origin) -> Result<Self, InitError> {
        Ok(Self { dir: dir.to_owned(), name: Name::of(dir)?, template, origin })
    }

    /// Its files: where each stands in the project, and its text.
    pub(crate) fn files(&self) -> Vec<(&'static str, String)> {
        let fill = |text: &str| {
            text.replace("{{name}}", self.name.as_str())
                .replace("{{crate}}", &self.name.of_crate())
                .replace("{{clockjack}}", &self.origin.dependency("clockjack"))
                .replace("{{clockjack-cli}}", &self.origin.dependency("clockjack-cli"))
        };
        self.template.files().iter().map(|(path, text)| (*path, fill(text))).collect()
    }

    /// Writes it, and says which files there are now.
    pub(crate) fn write(&self) -> Result<Vec<&'static str>, InitError> {
        let cannot = |path: &Path, source| InitError::Write { path: path.to_owned(), source };
        self.refuse_what_is_there()?;
        let mut written = Vec::new();
        for (path, text) in self.files() {
            let to = self.dir.join(path);
            let folder = to.parent().expect("a file of a project stands in its directory");
            fs::create_dir_all(folder).map_err(|error| cannot(folder, error))?;
            fs::write(&to, text).map_err(|error| cannot(&to, error))?;
            written.push(path);
        }
        Ok(written)
    }

    fn refuse_what_is_there(&self) -> Result<(), InitError> {
        match fs::read_dir(&self.dir).map(|mut entries| entries.next().is_none()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(InitError::NotEmpty(self.dir.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Err(InitError::NotEmpty(self.dir.clone()))
            }
            Err(source) => Err(InitError::Write { path: self.dir.clone(), source }),
        }
    }
}
