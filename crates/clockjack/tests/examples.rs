//! Each program in `examples/` says what stands beside it in `examples/golden/`, and ends.
//!
//! The programs are built by another cargo, into the directory of this test and by its profile, so
//! that what a user would run is what is run here: `main`, in a process of its own.
#![cfg(not(loom))]

use core::time::Duration;
use std::{
    env::current_exe,
    ffi::OsStr,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
};

/// How long one of them may take on a machine that is busy. They take a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(60);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The programs that the manifest declares: the file's name without its end, and what cargo calls
/// it. They stand in the order of the files.
fn declared() -> Vec<(String, String)> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("there is a manifest");
    let value = |section: &str, key: &str| -> Option<String> {
        let line = section.lines().find(|line| line.starts_with(key))?;
        line.split('"').nth(1).map(str::to_owned)
    };
    let sections = manifest.split("[[example]]").skip(1);
    let named = sections.map(|section| {
        let path = value(section, "path = ").expect("an example has a path");
        let name = value(section, "name = ").expect("an example has a name");
        (stem(Path::new(&path)), name)
    });
    named.collect()
}

/// The names, without their ends, of the files of a directory that end in this.
fn files(directory: &Path, end: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("there is such a directory");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let mut stems: Vec<String> = paths
        .filter(|path| path.extension() == Some(OsStr::new(end)))
        .map(|path| stem(&path))
        .collect();
    stems.sort();
    stems
}

fn stem(path: &Path) -> String {
    path.file_stem().expect("a file has a name").to_string_lossy().into_owned()
}

/// Builds all of them, and says where they are.
fn build() -> PathBuf {
    let test = current_exe().expect("a test knows its file");
    // `target/debug/deps/examples-0123`, or with the name of a platform behind `target`.
    let built = test.ancestors().nth(2).expect("it stands in a directory of a profile");
    let profile = match stem(built).as_str() {
        "debug" => "dev".to_owned(),
        other => other.to_owned(),
    };
    let above = built.parent().expect("it stands in a target directory");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["build", "--quiet", "--package", "clockjack"]);
    cargo.args(["--examples", "--all-features", "--profile", &profile]);
    if above.join(".rustc_info.json").exists() {
        cargo.arg("--target-dir").arg(above);
    } else {
        let target = above.parent().expect("a platform's directory stands in the target directory");
        cargo.arg("--target").arg(stem(above)).arg("--target-dir").arg(target);
    }
    assert!(cargo.status().expect("cargo starts").success(), "{cargo:?}");
    built.join("examples")
}

/// What a program says. It is killed, and this fails, if it does not end by itself.
fn output(program: &Path) -> String {
    let mut child = Command::new(program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .env("RUST_BACKTRACE", "0") // one of them panics, and means it
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut stdout = child.stdout.take().expect("it is piped");
    let (said, heard) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut text = String::new();
            let is_read = stdout.read_to_string(&mut text);
            // Nobody hears it if the time is over.
            drop(said.send(is_read.map(|_| text)));
        });
        let text = heard.recv_timeout(PATIENCE);
        if text.is_err() {
            child.kill().expect("it is ours to kill");
        }
        let status = child.wait().expect("it is ours to wait for");
        let text = text.unwrap_or_else(|_| panic!("{} does not end", program.display()));
        assert!(status.success(), "{}: {status}", program.display());
        text.expect("it speaks UTF-8")
    })
}

#[test]
fn every_example_is_declared_and_has_a_golden_text() {
    let examples = files(&root().join("examples"), "rs");
    assert_eq!(
        examples,
        declared().into_iter().map(|(file, _)| file).collect::<Vec<_>>(),
        "in Cargo.toml"
    );
    assert_eq!(examples, files(&root().join("examples/golden"), "txt"), "in examples/golden");
}

#[test]
fn every_example_says_what_its_golden_text_says() {
    let built = build();
    let mut wrong = Vec::new();
    for (file, name) in declared() {
        let program = built.join(name).with_extension(std::env::consts::EXE_EXTENSION);
        let said = output(&program);
        let golden = root().join("examples/golden").join(&file).with_extension("txt");
        let golden = fs::read_to_string(&golden).unwrap_or_default();
        if said != golden {
            wrong.push(format!("--- {file}, golden\n{golden}--- {file}, said\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
