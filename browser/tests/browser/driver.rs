//! A browser that a test drives.

use core::time::Duration;
use std::{fs, panic, path::Path, time::Instant};

use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

/// Longer than anything takes that these tests wait for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a page is asked again.
const POLL: Duration = Duration::from_millis(50);
/// Where the driver listens; `cargo xtask browser` sets it.
const VARIABLE: &str = "CLOCKJACK_WEBDRIVER";
/// Nothing but the page: no sandbox, which a container does not allow, and no request of the
/// browser's own.
const FLAGS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
];

/// A page in a browser of its own.
pub(crate) struct Page {
    client: Client,
}

/// Lets a test drive a new browser without a history, which ends with the test, whether it passes
/// or not.
pub(crate) fn drive(name: &str, test: impl AsyncFnOnce(&Page)) {
    let driver = std::env::var(VARIABLE)
        .unwrap_or_else(|_| panic!("{VARIABLE} is not set: `cargo xtask browser` runs this test"));
    let profile = std::env::temp_dir().join(format!("cj-browser-{}-{name}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a current-thread runtime needs nothing");
    let page = runtime.block_on(Page::new(&driver, &profile));
    let result = panic::catch_unwind(panic::AssertUnwindSafe(|| runtime.block_on(test(&page))));
    let closed = runtime.block_on(page.client.close());
    let removed = fs::remove_dir_all(&profile);
    if let Err(panic) = result {
        panic::resume_unwind(panic);
    }
    closed.expect("the browser is there");
    removed.expect("the browser has used its profile");
}

impl Page {
    async fn new(driver: &str, profile: &Path) -> Self {
        let mut flags: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
        flags.push(format!("--user-data-dir={}", profile.display()));
        let capabilities = json!({
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        });
        let Value::Object(capabilities) = capabilities else { unreachable!("it is an object") };
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        let client = builder.connect(driver).await.expect("the driver starts a browser");
        Self { client }
    }

    /// Goes to an address.
    pub(crate) async fn open(&self, url: &str) {
        self.client.goto(url).await.expect("the browser goes there");
    }

    /// The value of a script, which ends with `return`.
    pub(crate) async fn eval(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| {
            panic!("{script}: {error}");
        })
    }

    /// Waits until a script returns something other than false and null.
    pub(crate) async fn until(&self, what: &str, script: &str) -> Value {
        let start = Instant::now();
        loop {
            let value = self.eval(script).await;
            if value != Value::Null && value != Value::Bool(false) {
                return value;
            }
            assert!(start.elapsed() < PATIENCE, "it has not happened: {what}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// The text of an element, without what surrounds it; empty if there is no such element.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({})?.innerText", json!(selector));
        self.eval(&script).await.as_str().unwrap_or_default().trim().to_owned()
    }

    /// Waits until the text of an element contains this.
    pub(crate) async fn until_text(&self, selector: &str, part: &str) {
        let (selector, part) = (json!(selector), json!(part));
        let script =
            format!("return document.querySelector({selector})?.innerText.includes({part})");
        self.until(&format!("{selector} says {part}"), &script).await;
    }

    /// Waits until the page gets what the program sends.
    pub(crate) async fn until_live(&self) {
        self.until("live", "return document.querySelector('#state')?.innerText === 'live'").await;
    }

    /// What a list of facts says about this one.
    pub(crate) async fn fact(&self, name: &str) -> String {
        let script = format!(
            "const names = [...document.querySelectorAll('main dt')];
             return names.find((dt) => dt.innerText === {})?.nextElementSibling.innerText",
            json!(name)
        );
        let value = self.until(&format!("there is a fact {name}"), &script).await;
        value.as_str().unwrap_or_default().to_owned()
    }
}
