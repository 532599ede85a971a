//! Tests of `clockjack init` as its user sees it. `cargo xtask init` shows that the created
//! projects compile and pass their tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clockjack_cli::{Streams, run};
use clockjack_graph::Registry;

/// The exit code, standard output and standard error.
fn clockjack(args: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams::new(&mut out, &mut err);
    let code = run(&Registry::new(), ["clockjack", "init"].iter().chain(args), &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("the command writes text");
    (code, text(out), text(err))
}

/// A path at which nothing exists.
fn place(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("init").join(name);
    if path.exists() {
        fs::remove_dir_all(&path).expect("it is ours");
    }
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn a_project_is_written_and_named_like_its_directory() {
    let root = root();
    for template in ["actors", "control-loop", "embedded", "service", "test"] {
        let dir = place(&format!("whole-{template}"));
        let args = [text(&dir), "--template", template, "--clockjack-path", text(&root)];
        let (code, out, err) = clockjack(&args);
        assert_eq!((code, err.as_str()), (0, ""), "{template}");
        assert!(out.contains("cargo test"), "{out}");
        for file in ["Cargo.toml", "README.md", ".gitignore", "src/lib.rs"] {
            let file = dir.join(file);
            assert!(file.is_file() && out.contains(text(&file)), "{template}: {}", file.display());
        }
        let manifest = fs::read_to_string(dir.join("Cargo.toml")).expect("the file exists");
        assert!(manifest.contains(&format!("name = \"whole-{template}\"")), "{manifest}");
        assert!(manifest.contains("crates/clockjack\""), "by path: {manifest}");
    }
}

#[test]
fn a_directory_that_is_not_empty_is_refused_and_left_as_it_is() {
    let dir = place("taken");
    fs::create_dir_all(&dir).expect("the directory can be created");
    let empty = clockjack(&[text(&dir)]);
    assert_eq!(empty.0, 0, "an empty directory may be there: {}", empty.2);
    let before = fs::read_to_string(dir.join("src/main.rs")).expect("the file exists");
    let (code, out, err) = clockjack(&[text(&dir), "--template", "test"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("already exists and is not empty; nothing was written"), "{err}");
    assert_eq!(fs::read_to_string(dir.join("src/main.rs")).expect("the file exists"), before);
    assert!(!dir.join("tests/courier.rs").exists());
    let file = dir.join("file");
    fs::write(&file, "").expect("the file can be written");
    assert_eq!(clockjack(&[text(&file)]).0, 2, "a file cannot be a project directory");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let dir = place("refused");
    let none = place("no-checkout");
    let (first, other) = (dir.join("1st"), dir.join("x"));
    let cases: [(&[&str], &str); 5] = [
        (&[], "<NAME>"),
        (&["--list", "x"], "cannot be used with"),
        (&[text(&first)], "must start with a letter"),
        (&[text(&other), "--clockjack-path", text(&none)], "is not a checkout of Clockjack"),
        (
            &["x", "--template", "robot"],
            "possible values: actors, control-loop, embedded, service, test",
        ),
    ];
    for (args, message) in cases {
        let (code, out, err) = clockjack(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        assert!(err.contains(message), "{args:?} says {err}");
    }
    assert!(!dir.exists());
}

#[test]
fn templates_are_listed_for_people_and_for_programs() {
    let (code, out, _) = clockjack(&["--list"]);
    assert_eq!((code, out.lines().count()), (0, 5));
    assert!(out.starts_with("actors        a program with an actor"), "{out}");
    let (_, json, _) = clockjack(&["--list", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["templates"][1]["name"], "control-loop");
    assert_eq!(clockjack(&["--list", "--format", "ndjson"]).1.lines().count(), 5);
}

#[test]
fn what_was_written_is_told_to_programs() {
    let dir = place("told");
    let (code, out, _) = clockjack(&[text(&dir), "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &json["name"]), (0, &"told".into()));
    for file in json["files"].as_array().expect("a list") {
        assert!(dir.join(file.as_str().expect("a path")).is_file(), "{file}");
    }
}
