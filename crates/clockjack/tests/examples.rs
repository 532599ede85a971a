//! Each program in `examples/` prints the contents of its file in `examples/golden/`, and exits.
//!
//! Another cargo builds the programs into the directory of this test, with its profile, so that the
//! test runs what a user would run: `main`, in a separate process. Where no cargo can be started,
//! as in Wine, the variable `CLOCKJACK_EXAMPLES` names the directory of programs that are built.
#![cfg(not(loom))]

use core::time::Duration;
use std::{
    env::{self, current_exe},
    ffi::OsStr,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
};

/// The timeout of one program on a busy machine. A program takes a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(60);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The programs that the manifest declares: the file name without its extension, and cargo's name
/// for it, in the order of the files.
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

/// The names, without the extension, of the files in a directory with this extension.
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

/// Builds all programs unless they are built, and returns their directory.
fn build() -> PathBuf {
    if let Some(directory) = env::var_os("CLOCKJACK_EXAMPLES") {
        return directory.into();
    }
    let test = current_exe().expect("a test knows its file");
    // `target/debug/deps/examples-0123`, or with the name of a platform behind `target`.
    let built = test.ancestors().nth(2).expect("the test is in the directory of a profile");
    let profile = match stem(built).as_str() {
        "debug" => "dev".to_owned(),
        other => other.to_owned(),
    };
    let above = built.parent().expect("the profile is in a target directory");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["build", "--quiet", "--package", "clockjack"]);
    cargo.args(["--examples", "--all-features", "--profile", &profile]);
    if above.join(".rustc_info.json").exists() {
        cargo.arg("--target-dir").arg(above);
    } else {
        let target = above.parent().expect("a platform's directory is in the target directory");
        cargo.arg("--target").arg(stem(above)).arg("--target-dir").arg(target);
    }
    assert!(cargo.status().expect("cargo starts").success(), "{cargo:?}");
    built.join("examples")
}

/// The output of a program. If the program does not exit by itself, it is killed and the test
/// fails.
fn output(program: &Path) -> String {
    let mut child = Command::new(program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .env("RUST_BACKTRACE", "0") // one of them panics on purpose
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut stdout = child.stdout.take().expect("it is piped");
    let (said, heard) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut text = String::new();
            let is_read = stdout.read_to_string(&mut text);
            // The receiver is gone if the timeout has passed.
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
        let program = built.join(name).with_extension(env::consts::EXE_EXTENSION);
        let said = output(&program);
        let golden = root().join("examples/golden").join(&file).with_extension("txt");
        let golden = fs::read_to_string(&golden).unwrap_or_default();
        if said != golden {
            wrong.push(format!("--- {file}, golden\n{golden}--- {file}, said\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
