//! The workspace as cargo describes it: its root, its packages and their dependencies.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::process::Cmd;

/// The parsed output of `cargo metadata --no-deps`.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// The target directory of cargo, unless a command sets another one.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
    #[serde(rename = "workspace_default_members")]
    default_members: Vec<String>,
}

/// One package of the workspace.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) version: String,
    /// `Some([])` if the package is never published.
    pub(crate) publish: Option<Vec<String>>,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One entry of a dependency table.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for an ordinary dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
    pub(crate) optional: bool,
    /// The platform or `cfg(..)` that the dependency is limited to.
    pub(crate) target: Option<String>,
    /// The required versions; `*` if the manifest names none.
    #[serde(default)]
    pub(crate) req: String,
    /// The folder of a package of the workspace.
    pub(crate) path: Option<PathBuf>,
}

impl Package {
    /// Whether users can get this package from a registry.
    pub(crate) fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }

    /// The package's folder.
    pub(crate) fn dir(&self) -> &Path {
        self.manifest_path.parent().expect("a manifest is in a folder")
    }
}

impl Workspace {
    /// Loads the workspace around the current directory, from cargo.
    pub(crate) fn load() -> Result<Self> {
        Self::load_at(&root()?)
    }

    /// Loads the workspace with this root, from cargo.
    pub(crate) fn load_at(root: &Path) -> Result<Self> {
        let cmd = Cmd::cargo().words("metadata --no-deps --format-version 1").dir(root);
        let finished = cmd.capture()?;
        anyhow::ensure!(finished.is_success(), "{}", cmd.failure(&finished));
        let json = finished.output.lines().find(|line| line.starts_with('{'));
        serde_json::from_str(json.context("cargo metadata printed no JSON")?)
            .context("cargo metadata printed JSON that cannot be parsed")
    }

    /// The package with this id or name.
    pub(crate) fn package(&self, id_or_name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.id == id_or_name || package.name == id_or_name)
    }

    /// Packages that a plain `cargo test` at the root would test.
    pub(crate) fn default_members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.default_members.contains(&package.id))
    }

    /// Packages with this file in their folder, by name.
    pub(crate) fn with_file(&self, file: &str) -> Vec<&Package> {
        let mut packages: Vec<&Package> =
            self.packages.iter().filter(|package| package.dir().join(file).is_file()).collect();
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        packages
    }

    /// The path of a command's log.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.root.join("target/xtask").join(name)
    }
}

/// The root of the workspace around the current directory.
///
/// # Errors
///
/// If the current directory is in no checkout of the project.
pub(crate) fn root() -> Result<PathBuf> {
    let here = std::env::current_dir().context("the current directory is gone")?;
    here.ancestors()
        .find(|dir| dir.join("xtask/Cargo.toml").is_file() && dir.join("Cargo.toml").is_file())
        .map(Path::to_owned)
        .with_context(|| format!("{} is not inside a checkout of Clockjack", here.display()))
}
