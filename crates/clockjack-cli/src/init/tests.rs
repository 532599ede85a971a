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
fn the_checkout_of_this_command_is_found() {
    let Origin::Checkout(root) = Origin::default_origin() else {
        panic!("a test is built in a checkout")
    };
    assert_eq!(Origin::checkout(&root).expect("it is one"), Origin::Checkout(root));
    let nowhere = Origin::checkout(Path::new("no/such/place")).expect_err("there is none");
    assert_eq!(nowhere.exit_code(), crate::exit_code::USAGE);
}
