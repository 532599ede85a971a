//! `clockjack init`: creates a new project that compiles and passes its tests.
//!
//! A template is a set of files in `init/templates/`, embedded in the command. Names in double
//! braces are placeholders that differ between projects. Nothing is overwritten: the directory must
//! be empty or must not exist yet.

mod name;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{ValueEnum, builder::PossibleValue};

pub(crate) use self::name::Name;
use crate::failure::Failure;

/// The template of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Template {
    /// Actors on threads.
    Actors,
    /// A graph file with a custom component.
    ControlLoop,
    /// A `no_std` actor.
    Embedded,
    /// A server with HTTP, metrics and a drain.
    Service,
    /// Every kind of test.
    Test,
}

/// The path of a file and its text.
type File = (&'static str, &'static str);

/// The files of a template with these paths in its folder.
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
    /// All templates in display order.
    pub(crate) const ALL: [Self; 5] =
        [Self::Actors, Self::ControlLoop, Self::Embedded, Self::Service, Self::Test];

    /// The name of the template in the arguments.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Actors => "actors",
            Self::ControlLoop => "control-loop",
            Self::Embedded => "embedded",
            Self::Service => "service",
            Self::Test => "test",
        }
    }

    /// A one-line description.
    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::Actors => "a program with an actor and a timer, tested in virtual time",
            Self::ControlLoop => {
                "a graph file with a custom component, and a program with all commands for both"
            }
            Self::Embedded => {
                "a no_std actor and the services that it needs from a board; tested on a PC"
            }
            Self::Service => {
                "an HTTP server with an actor per session, metrics, a log and a drain on SIGTERM"
            }
            Self::Test => "a library with an actor and every kind of test for it",
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
            Self::Service => files!("service":
                ".dockerignore", "Dockerfile", "README.md", "deploy/systemd.service",
                "src/http.rs", "src/lib.rs", "src/main.rs", "src/sessions.rs",
                "tests/http.rs", "tests/sessions.rs"),
            Self::Test => files!("test": "README.md", "src/lib.rs", "tests/courier.rs"),
        }
    }

    /// The crates that the template uses, in addition to Clockjack. A project with such a name
    /// could not use the crate.
    const fn dependencies(self) -> &'static [&'static str] {
        match self {
            Self::Service => &["axum", "tokio", "tower", "tracing", "tracing_subscriber"],
            Self::Actors | Self::ControlLoop | Self::Embedded | Self::Test => &[],
        }
    }
}

/// The value of the argument.
impl ValueEnum for Template {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let mut help = self.about().to_owned();
        help[..1].make_ascii_uppercase();
        Some(PossibleValue::new(self.name()).help(help))
    }
}

/// The source of the Clockjack dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The registry, with the version of this command.
    Registry,
    /// A checkout; its root as an absolute path.
    Checkout(PathBuf),
}

impl Origin {
    /// The checkout in this directory.
    pub(crate) fn checkout(dir: &Path) -> Result<Self, Failure> {
        let no_checkout = || {
            let dir = dir.display();
            Failure::usage(format!(
                "'{dir}' is not a checkout of Clockjack: crates/clockjack is missing"
            ))
        };
        let root = std::path::absolute(dir).map_err(|_| no_checkout())?;
        if !is_checkout(&root) {
            return Err(no_checkout());
        }
        Ok(Self::Checkout(root))
    }

    /// The checkout that this command was built from, if it still exists; otherwise the registry. A
    /// command that cargo installed from the registry was not built from a checkout.
    pub(crate) fn default_origin() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        let root = root.filter(|root| is_checkout(root));
        root.map_or(Self::Registry, |root| Self::Checkout(root.to_owned()))
    }

    /// The dependency specification of a Clockjack crate in a manifest, without the braces.
    fn dependency(&self, package: &str) -> String {
        match self {
            Self::Registry => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
            Self::Checkout(root) => {
                let path = below(root, &format!("crates/{package}"));
                format!("path = {}", quoted(&path))
            }
        }
    }

    /// The lines of a Dockerfile that bring Clockjack into the image of the build.
    fn docker_copy(&self) -> String {
        match self {
            Self::Registry => String::new(),
            Self::Checkout(root) => {
                let manifest = quoted(&below(root, "Cargo.toml"));
                let crates = quoted(&below(root, "crates/"));
                format!(
                    "# Cargo.toml has Clockjack as a path, so the build needs the same path.\n\
                     COPY --from=clockjack [\"Cargo.toml\", {manifest}]\n\
                     COPY --from=clockjack [\"crates\", {crates}]\n"
                )
            }
        }
    }

    /// The command that builds the image of a project.
    fn docker_build(&self, name: &Name) -> String {
        let context = match self {
            Self::Registry => String::new(),
            Self::Checkout(root) => {
                let root = root.to_string_lossy().replace('\'', r"'\''");
                format!("--build-context clockjack='{root}' ")
            }
        };
        format!("docker build {context}--tag {} .", name.as_str())
    }
}

/// A path below the root of a checkout, as files have it that other systems read, too: with slashes
/// on every system.
fn below(root: &Path, path: &str) -> String {
    let root = root.to_string_lossy();
    format!("{}/{path}", root.strip_suffix('/').unwrap_or(&root))
}

fn is_checkout(root: &Path) -> bool {
    root.join("crates/clockjack/Cargo.toml").is_file()
}

/// A TOML string.
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

/// A project that can be written.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    /// The directory. Its last part is the name of the project.
    pub(crate) dir: PathBuf,
    /// The package name.
    pub(crate) name: Name,
    /// The template.
    pub(crate) template: Template,
    /// The source of the Clockjack dependency.
    pub(crate) origin: Origin,
}

impl Project {
    /// A project in this directory, named after its last part.
    pub(crate) fn new(dir: &Path, template: Template, origin: Origin) -> Result<Self, Failure> {
        let name = Name::of(dir)?;
        if template.dependencies().contains(&name.crate_name().as_str()) {
            let (name, template) = (name.as_str(), template.name());
            return Err(Failure::usage(format!(
                "'{name}' is not a valid project name: the template '{template}' uses a crate with \
                 that name"
            )));
        }
        Ok(Self { dir: dir.to_owned(), name, template, origin })
    }

    /// The files of the project: their paths and texts.
    pub(crate) fn files(&self) -> Vec<(&'static str, String)> {
        let fill = |text: &str| {
            text.replace("{{name}}", self.name.as_str())
                .replace("{{crate}}", &self.name.crate_name())
                .replace("{{clockjack}}", &self.origin.dependency("clockjack"))
                .replace("{{clockjack-cli}}", &self.origin.dependency("clockjack-cli"))
                .replace("{{docker-clockjack}}", &self.origin.docker_copy())
                .replace("{{docker-build}}", &self.origin.docker_build(&self.name))
        };
        self.template.files().iter().map(|(path, text)| (*path, fill(text))).collect()
    }

    /// Writes the project and returns the paths of its files.
    pub(crate) fn write(&self) -> Result<Vec<&'static str>, Failure> {
        self.check_is_empty()?;
        let mut written = Vec::new();
        for (path, text) in self.files() {
            let to = self.dir.join(path);
            let folder = to.parent().expect("every file is inside the project directory");
            fs::create_dir_all(folder).map_err(|error| Failure::file_output(folder, error))?;
            fs::write(&to, text).map_err(|error| Failure::file_output(&to, error))?;
            written.push(path);
        }
        Ok(written)
    }

    fn check_is_empty(&self) -> Result<(), Failure> {
        let dir = self.dir.display();
        let not_empty = || {
            Failure::usage(format!("'{dir}' already exists and is not empty; nothing was written"))
        };
        match fs::read_dir(&self.dir).map(|mut entries| entries.next().is_none()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(not_empty()),
            // Not every system says that a file is no directory.
            Err(_) if self.dir.is_file() => Err(not_empty()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(not_empty()),
            Err(error) => Err(Failure::file_output(&self.dir, error)),
        }
    }
}
