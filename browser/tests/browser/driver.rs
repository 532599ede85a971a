//! A browser that a test drives.

use core::time::Duration;
use std::{fs, panic, path::Path, time::Instant};

use fantoccini::{
    Client, ClientBuilder, Locator,
    actions::{InputSource as _, MOUSE_BUTTON_LEFT, MouseActions, PointerAction},
    wd::WebDriverCompatibleCommand,
};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use url::{ParseError, Url};

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

/// Rules of accessibility: axe-core 4.14.1, as published; its licence is next to it.
const AXE: &str = include_str!("../../vendor/axe.min.js");

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
    if result.is_err() {
        runtime.block_on(page.report(name));
    }
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

    /// The value that a script gives to its first argument.
    pub(crate) async fn eval_async(&self, script: &str) -> Value {
        self.client.execute_async(script, Vec::new()).await.unwrap_or_else(|error| {
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
        let script = format!(
            "const found = document.querySelector({selector});
             return (found?.innerText ?? found?.textContent)?.includes({part})"
        );
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

    /// Goes to a place of the page, such as `actors?sort=depth`.
    pub(crate) async fn go(&self, place: &str) {
        self.eval(&format!("location.hash = {}", json!(format!("#/{place}")))).await;
        let name = place.split('?').next().unwrap_or(place);
        // What shows that the program has answered.
        let shown = "table, dl, form";
        let script = format!(
            "return Boolean(document.querySelector('main#view-{name}')?.querySelector('{shown}'))"
        );
        self.until(&format!("{place} is shown"), &script).await;
    }

    /// The rows of the first table of the view whose caption contains this.
    pub(crate) async fn rows(&self, caption: &str) -> Vec<Vec<String>> {
        let script = format!(
            "const tables = [...document.querySelectorAll('main table')];
             const table = tables.find((one) => one.caption.innerText.includes({}));
             const rows = [...(table?.tBodies[0].rows ?? [])];
             return rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim()))",
            json!(caption)
        );
        serde_json::from_value(self.eval(&script).await).expect("rows of texts")
    }

    /// Chooses the colours of the page.
    pub(crate) async fn choose(&self, theme: &str) {
        for _ in 0..3 {
            if self.text("#colours").await == format!("colours: {theme}") {
                return;
            }
            self.press("c").await;
        }
        panic!("the page has no colours {theme}");
    }

    /// Presses a key, wherever the focus is.
    pub(crate) async fn press(&self, key: &str) {
        let element = self.client.active_element().await.expect("something has the focus");
        element.send_keys(key).await.expect("it takes a key");
    }

    /// Writes what is seen to `target/browser/NAME.png`.
    pub(crate) async fn picture(&self, name: &str) {
        let picture = self.client.screenshot().await.expect("the browser draws");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../browser");
        fs::create_dir_all(&folder).expect("target can be written");
        fs::write(folder.join(format!("{name}.png")), picture).expect("target can be written");
    }

    /// Waits until the first table whose caption contains this has rows that are as wanted.
    pub(crate) async fn until_rows(
        &self,
        caption: &str,
        is_wanted: impl Fn(&[Vec<String>]) -> bool,
    ) -> Vec<Vec<String>> {
        let start = Instant::now();
        loop {
            let rows = self.rows(caption).await;
            if is_wanted(&rows) {
                return rows;
            }
            assert!(start.elapsed() < PATIENCE, "`{caption}` does not become as wanted: {rows:?}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Clicks on the first element that is so, as soon as there is one.
    pub(crate) async fn click(&self, selector: &str) {
        let element = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(selector));
        let element = element.await.unwrap_or_else(|_| panic!("there is no {selector}"));
        element.click().await.unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// Drags the mouse over an element, between two parts of its width.
    pub(crate) async fn brush(&self, selector: &str, from: f64, to: f64) {
        let script = format!(
            "const r = document.querySelector({}).getBoundingClientRect();
             return [r.left + r.width * {from}, r.left + r.width * {to}, r.top + r.height / 2]",
            json!(selector)
        );
        let places = serde_json::from_value(self.eval(&script).await);
        let [from, to, y]: [f64; 3] = places.expect("three numbers");
        let to_x = |x| PointerAction::MoveTo { duration: None, x, y };
        let actions = MouseActions::new("mouse".to_owned())
            .then(to_x(from))
            .then(PointerAction::Down { button: MOUSE_BUTTON_LEFT })
            .then(to_x(to))
            .then(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
        self.client.perform_actions(actions).await.expect("there is a mouse");
    }

    /// Loads the page again, as F5 does.
    pub(crate) async fn reload(&self) {
        self.client.refresh().await.expect("the browser loads it again");
    }

    /// A command of Chromium's protocol for tools.
    pub(crate) async fn devtools(&self, command: &'static str, params: Value) {
        let command = Devtools(command, params);
        self.client.issue_cmd(command).await.expect("Chromium knows the command");
    }

    /// What axe-core has against the view, one line for each rule.
    pub(crate) async fn axe(&self) -> Vec<String> {
        let is_there = self.eval("return Boolean(window.axe)").await;
        if is_there != Value::Bool(true) {
            self.eval(AXE).await;
        }
        let script = "const done = arguments[0];
            const line = (one) =>
                `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`)}`;
            const lines = ({ passes, violations }) =>
                passes.length > 0 ? violations.map(line) : ['nothing was checked'];
            axe.run().then((found) => done(lines(found)), (error) => done([`${error}`]))";
        serde_json::from_value(self.eval_async(script).await).expect("lines")
    }

    /// The entries of one of the browser's logs: of the console, or of all requests.
    pub(crate) async fn log(&self, kind: &'static str) -> Vec<Value> {
        let entries = self.client.issue_cmd(TakeLog(kind)).await.expect("the driver keeps logs");
        serde_json::from_value(entries).expect("a list of entries")
    }

    /// Says what a test that has failed leaves behind.
    #[expect(clippy::print_stderr, reason = "the harness shows it")]
    async fn report(&self, name: &str) {
        self.picture(&format!("failed-{name}")).await;
        eprintln!("the page says: {}", self.text("body").await);
        for entry in self.log("browser").await {
            eprintln!("the browser says: {}", entry["message"]);
        }
    }
}

/// Takes the entries of a log since the last time: a command of Chromium's driver.
#[derive(Debug)]
struct TakeLog(&'static str);

impl WebDriverCompatibleCommand for TakeLog {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/se/log", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "type": self.0 }).to_string()))
    }
}

/// A command of Chromium's protocol for tools, through its driver.
#[derive(Debug)]
struct Devtools(&'static str, Value);

impl WebDriverCompatibleCommand for Devtools {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "cmd": self.0, "params": self.1 }).to_string()))
    }
}
