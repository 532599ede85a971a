//! Checks the files that are written, without building them: `cargo xtask init` builds them.

use std::collections::BTreeSet;

use super::*;

fn project(template: Template) -> Project {
    let origin = Origin::Checkout(PathBuf::from("/a \"b\"\\c"));
    Project::new(Path::new("night-watch"), template, origin).expect("the name is right")
}

#[test]
fn no_placeholder_is_left_in_what_is_written() {
    for template in Template::ALL {
        for (path, text) in project(template).files() {
            assert!(!text.contains("{{") && !text.contains("}}"), "{path} of {template:?}");
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{path} of {template:?}");
        }
    }
}

#[test]
fn each_template_has_a_manifest_a_readme_code_and_tests() {
    for template in Template::ALL {
        let files = project(template).files();
        let paths: BTreeSet<&str> = files.iter().map(|(path, _)| *path).collect();
        assert_eq!(paths.len(), files.len(), "{template:?} has a file twice");
        for path in ["Cargo.toml", ".gitignore", "README.md", "src/lib.rs"] {
            assert!(paths.contains(path), "{template:?} has no {path}");
        }
        assert!(paths.iter().any(|path| path.starts_with("tests/")), "{template:?} has no tests");
        let text = |wanted: &str| {
            let found = files.iter().find(|(path, _)| *path == wanted);
            found.map(|(_, text)| text.as_str()).unwrap_or_default()
        };
        assert!(text("Cargo.toml").contains("name = \"night-watch\"\n"), "{template:?}");
        assert!(text("README.md").starts_with("# night-watch\n"), "{template:?}");
    }
}

#[test]
fn every_file_of_the_folder_belongs_to_a_template() {
    fn count(dir: &Path) -> usize {
        let entries = fs::read_dir(dir).expect("there is such a folder");
        let paths = entries.map(|entry| entry.expect("it can be listed").path());
        paths.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/init/templates");
    // All templates share one `.gitignore`.
    let n_known: usize = Template::ALL.iter().map(|template| template.files().len() - 1).sum();
    assert_eq!(count(&folder), n_known + 1);
}

#[test]
fn a_checkout_is_named_by_its_path_and_the_registry_by_a_version() {
    let checkout = Origin::Checkout(PathBuf::from("/a \"b\"\\c"));
    assert_eq!(checkout.dependency("clockjack"), r#"path = "/a \"b\"\\c/crates/clockjack""#);
    let version = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
    assert_eq!(Origin::Registry.dependency("clockjack"), version);
}

#[test]
fn an_image_is_built_with_the_checkout_or_from_the_registry() {
    let image = |root: Option<&str>| {
        let origin = root.map_or(Origin::Registry, |root| Origin::Checkout(PathBuf::from(root)));
        let project = Project::new(Path::new("watch"), Template::Service, origin);
        let files = project.expect("the name is right").files();
        let text = |wanted: &str| {
            let found = files.iter().find(|(path, _)| *path == wanted);
            found.map(|(_, text)| text.clone()).unwrap_or_default()
        };
        (text("Dockerfile"), text("README.md"))
    };
    let (dockerfile, readme) = image(Some("/a b"));
    assert!(dockerfile.contains("\nCOPY --from=clockjack [\"Cargo.toml\", \"/a b/Cargo.toml\"]\n"));
    assert!(
        dockerfile.contains("\nCOPY --from=clockjack [\"crates\", \"/a b/crates/\"]\nCOPY . .\n")
    );
    assert!(readme.contains("`docker build --build-context clockjack='/a b' --tag watch .`"));
    let (dockerfile, readme) = image(None);
    assert!(dockerfile.contains("\nWORKDIR /src\nCOPY . .\n"));
    assert!(readme.contains("`docker build --tag watch .`"));
}

#[test]
fn a_project_cannot_be_called_like_a_crate_that_it_uses() {
    let manifest = include_str!("templates/service/manifest.toml");
    let lines = manifest.lines().filter_map(|line| line.split_once(" = { "));
    let mut used: BTreeSet<String> = lines.map(|(name, _)| name.replace('-', "_")).collect();
    assert!(used.remove("clockjack"), "{used:?}");
    assert_eq!(used, Template::Service.dependencies().iter().map(|&it| it.to_owned()).collect());
    for name in ["tokio", "tracing-subscriber"] {
        let project = |template| Project::new(Path::new(name), template, Origin::Registry);
        let refused = project(Template::Service).expect_err("the template uses this crate");
        assert!(refused.to_string().contains("uses a crate with that name"), "{refused}");
        assert!(project(Template::Actors).is_ok(), "this template does not");
    }
}

#[test]
fn the_checkout_of_this_command_is_found() {
    let Origin::Checkout(root) = Origin::default_origin() else {
        panic!("a test is built in a checkout")
    };
    let absolute = std::path::absolute(&root).expect("it has a path");
    assert_eq!(Origin::checkout(&root).expect("it is one"), Origin::Checkout(absolute));
    let nowhere = Origin::checkout(Path::new("no/such/place")).expect_err("there is none");
    assert_eq!(nowhere.exit_code(), crate::exit_code::USAGE);
}
