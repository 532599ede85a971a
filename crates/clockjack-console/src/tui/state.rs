//! What the screen shows and what the user has chosen: keys and frames change it, nothing else.

use core::fmt;
use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    TopConfig,
    feed::{Subscription, Update},
    keys::Key,
};
use crate::{
    client::{Client, ClientError, Event, subscription},
    frame::Mirror,
    query::{ActorQuery, Filter, GraphQuery, Params, Query, QueryParams as _, Sort, TreeQuery},
    view::{ActorRow, Graphs, Hello, Overview, Page, TreeRow, View},
};

/// A tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tab {
    /// What is wrong, and the system as a whole.
    Overview,
    /// All actors.
    Actors,
    /// The actors by parent.
    Tree,
    /// Timers.
    Timers,
    /// Jobs of the scheduler.
    Jobs,
    /// Dataflow graphs.
    Graphs,
    /// What has happened.
    Events,
    /// The worker threads.
    Workers,
}

impl Tab {
    /// All tabs, in the order of their digits.
    pub const ALL: [Self; 8] = [
        Self::Overview,
        Self::Actors,
        Self::Tree,
        Self::Timers,
        Self::Jobs,
        Self::Graphs,
        Self::Events,
        Self::Workers,
    ];

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Actors => "Actors",
            Self::Tree => "Tree",
            Self::Timers => "Timers",
            Self::Jobs => "Jobs",
            Self::Graphs => "Graphs",
            Self::Events => "Events",
            Self::Workers => "Workers",
        }
    }

    /// The tab with this name, in lower case.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tab| tab.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Tab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is open above a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Detail {
    /// The actor with this pid.
    Actor(String),
    /// The graph of this name.
    Graph(String),
}

/// Whether frames come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Connecting,
    Live,
    /// The program has closed its console, or ended.
    Ended,
}

/// See the module.
#[derive(Debug)]
pub(super) struct State {
    pub(super) hello: Hello,
    pub(super) tab: Tab,
    pub(super) sort: Sort,
    pub(super) filter: Filter,
    pub(super) page: u32,
    pub(super) tree_at: String,
    pub(super) selected: usize,
    pub(super) detail: Option<Detail>,
    /// What is shown during a pause.
    frozen: Option<BTreeMap<String, Mirror>>,
    pub(super) has_help: bool,
    /// The text of the filter while it is edited, and what is wrong with it.
    pub(super) input: Option<(String, Option<String>)>,
    pub(super) link: Link,
    pub(super) last_frame_ms: u64,
    pub(super) n_skipped: u64,
    /// Why a view cannot be shown.
    pub(super) errors: BTreeMap<String, String>,
    pub(super) message: Option<String>,
    views: BTreeMap<String, Mirror>,
    failure: Option<ClientError>,
    copied: Option<String>,
    has_quit: bool,
    reconnects: bool,
}

/// Rows that one press of a page key moves.
const PAGE_ROWS: usize = 15;
/// How many rows are asked for.
const ROWS: u32 = 100;

impl State {
    pub(super) fn new(client: &Client, config: &TopConfig) -> Self {
        Self::of_hello(client.hello().clone(), config)
    }

    pub(super) fn of_hello(hello: Hello, config: &TopConfig) -> Self {
        let filter = Filter::parse(&config.filter);
        let message = filter.as_ref().err().map(|error| format!("filter: {error}"));
        Self {
            hello,
            tab: config.tab,
            sort: Sort::Depth,
            filter: filter.unwrap_or_default(),
            page: 0,
            tree_at: "/".into(),
            selected: 0,
            detail: None,
            frozen: None,
            has_help: false,
            input: None,
            link: Link::Connecting,
            last_frame_ms: 0,
            n_skipped: 0,
            errors: BTreeMap::new(),
            message,
            views: BTreeMap::new(),
            failure: None,
            copied: None,
            has_quit: false,
            reconnects: false,
        }
    }

    fn query(&self) -> Params {
        let filter = self.filter.clone();
        Query { sort: self.sort, filter, page: self.page, rows: ROWS }.to_params()
    }

    /// The view below the header, with its parameters.
    pub(super) fn main_view(&self) -> Subscription {
        match &self.detail {
            Some(Detail::Actor(pid)) => ("actor", ActorQuery::Pid(pid.clone()).to_params()),
            Some(Detail::Graph(name)) => ("graph", GraphQuery { name: name.clone() }.to_params()),
            None => match self.tab {
                Tab::Overview => ("deadletters", Params::new()),
                Tab::Actors => ("actors", self.query()),
                Tab::Tree => {
                    let query = TreeQuery { at: self.tree_at.clone(), page: self.page };
                    ("tree", query.to_params())
                }
                Tab::Timers => ("timers", Params::new()),
                Tab::Jobs => ("jobs", self.query()),
                Tab::Graphs => ("graphs", Params::new()),
                Tab::Events => ("events", Params::new()),
                Tab::Workers => ("workers", Params::new()),
            },
        }
    }

    /// What the screen needs.
    pub(super) fn subscriptions(&self) -> Vec<Subscription> {
        let mut views = vec![("overview", Params::new()), self.main_view()];
        if self.tab == Tab::Overview && self.detail.is_none() {
            views.push(("asks", Params::new()));
        }
        views
    }

    /// Whether all that is subscribed to has come.
    pub(super) fn is_complete(&self) -> bool {
        self.subscriptions().iter().all(|(view, params)| {
            let name = subscription(view, params);
            self.views.contains_key(&name) || self.errors.contains_key(&name)
        })
    }

    /// The view as it was received last.
    pub(super) fn view<V: View>(&self, params: &Params) -> Option<V> {
        let value = self.value(V::NAME, params)?;
        serde_json::from_value(value).ok()
    }

    /// What is not part of a pause, because it was opened later, is shown as it is.
    fn value(&self, view: &str, params: &Params) -> Option<Value> {
        let name = subscription(view, params);
        let frozen = self.frozen.as_ref().and_then(|views| views.get(&name));
        frozen.or(self.views.get(&name)).and_then(Mirror::value)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    /// The main view as it was received last.
    pub(super) fn main<V: View>(&self) -> Option<V> {
        self.view(&self.main_view().1)
    }

    pub(super) fn overview(&self) -> Option<Overview> {
        self.view(&Params::new())
    }

    pub(super) fn update(&mut self, update: Update, now_ms: u64) {
        match update {
            Update::Connected => {
                self.link = Link::Live;
                self.views.clear();
                self.errors.clear();
            }
            Update::Event(event) => self.event(event, now_ms),
            Update::Ended(why) => {
                self.link = Link::Ended;
                if let Some(why) = why {
                    self.message = Some(why.to_string());
                    self.failure = Some(why);
                }
            }
        }
    }

    fn event(&mut self, event: Event, now_ms: u64) {
        self.last_frame_ms = now_ms;
        match event {
            Event::Skipped(n) => self.n_skipped += n,
            Event::Frame(frame) => match &frame.error {
                Some(error) => {
                    self.errors.insert(frame.view.clone(), error.clone());
                }
                // During a pause as well: a mirror that misses a frame would be wrong.
                None => {
                    self.errors.remove(&frame.view);
                    self.views.entry(frame.view.clone()).or_default().apply(frame);
                }
            },
            Event::Alive | Event::Bye => {}
        }
    }

    /// A view for a test, or for a program that has no stream.
    #[cfg(test)]
    pub(super) fn put(&mut self, view: &str, params: &Params, value: Value) {
        let mut encoder = crate::frame::Encoder::new(&subscription(view, params), view);
        let frame = encoder.next(value).expect("the first frame");
        self.link = Link::Live;
        self.event(Event::Frame(frame), self.last_frame_ms);
    }

    pub(super) fn has_quit(&self) -> bool {
        self.has_quit
    }

    pub(super) fn take_failure(&mut self) -> Option<ClientError> {
        self.failure.take()
    }

    pub(super) fn take_copied(&mut self) -> Option<String> {
        self.copied.take()
    }

    pub(super) fn take_reconnect(&mut self) -> bool {
        core::mem::take(&mut self.reconnects)
    }

    pub(super) fn press(&mut self, key: Key) {
        self.message = None;
        if key == Key::Quit {
            self.has_quit = true;
        } else if self.input.is_some() {
            self.edit(key);
        } else if self.has_help {
            self.has_help = false;
        } else {
            self.command(key);
        }
    }

    fn edit(&mut self, key: Key) {
        let Some((text, error)) = &mut self.input else { return };
        match key {
            Key::Char(c) => text.push(c),
            Key::Erase => {
                text.pop();
            }
            Key::Back => {
                self.input = None;
                return;
            }
            Key::Enter => {
                if let Ok(filter) = Filter::parse(text) {
                    self.filter = filter;
                    self.input = None;
                    self.first();
                    return;
                }
            }
            _ => {}
        }
        *error = Filter::parse(text).err().map(|error| error.to_string());
    }

    fn command(&mut self, key: Key) {
        match key {
            Key::Char('q') => self.has_quit = true,
            Key::Char('?' | 'h') => self.has_help = true,
            Key::Char('/') => self.input = Some((self.filter.to_string(), None)),
            Key::Char('p') => {
                self.frozen = if self.is_paused() { None } else { Some(self.views.clone()) };
            }
            Key::Char('r') => self.reconnects = true,
            Key::Char('s') => {
                let at = Sort::ALL.iter().position(|sort| *sort == self.sort).unwrap_or(0);
                self.sort = Sort::ALL[(at + 1) % Sort::ALL.len()];
                self.first();
            }
            Key::Char('y') => self.copied = self.path(),
            Key::Char('n') => self.turn_page(1),
            Key::Char('N') => self.turn_page(-1),
            Key::Char(c @ '1'..='8') => {
                let digit = c.to_digit(10).unwrap_or(1) as usize;
                self.open_tab(Tab::ALL[digit - 1]);
            }
            Key::Tab => self.next_tab(1),
            Key::Left if self.tab == Tab::Tree && self.detail.is_none() => self.leave_level(),
            Key::Right if self.tab == Tab::Tree && self.detail.is_none() => self.enter_level(),
            Key::Left => self.next_tab(Tab::ALL.len() - 1),
            Key::Right => self.next_tab(1),
            Key::Up | Key::Char('k') => self.selected = self.selected.saturating_sub(1),
            Key::Down | Key::Char('j') => self.selected += 1,
            Key::PageUp => self.selected = self.selected.saturating_sub(PAGE_ROWS),
            Key::PageDown => self.selected += PAGE_ROWS,
            Key::Home => self.selected = 0,
            Key::End => self.selected = usize::MAX,
            Key::Enter => self.open(),
            Key::Back | Key::Erase => self.close(),
            Key::Char(_) | Key::Quit => {}
        }
        self.selected = self.selected.min(self.n_rows().saturating_sub(1));
    }

    fn first(&mut self) {
        (self.selected, self.page) = (0, 0);
    }

    fn open_tab(&mut self, tab: Tab) {
        self.tab = tab;
        self.detail = None;
        self.first();
    }

    fn next_tab(&mut self, by: usize) {
        let at = Tab::ALL.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        self.open_tab(Tab::ALL[(at + by) % Tab::ALL.len()]);
    }

    fn turn_page(&mut self, by: i32) {
        let has_more = match self.tab {
            Tab::Actors => self.main::<Page<ActorRow>>().is_some_and(|page| page.has_more),
            Tab::Tree => self.main::<Page<TreeRow>>().is_some_and(|page| page.has_more),
            _ => false,
        };
        if by < 0 || has_more {
            self.page = self.page.saturating_add_signed(by);
            self.selected = 0;
        }
    }

    /// How many rows the list has.
    fn n_rows(&self) -> usize {
        let (view, params) = self.main_view();
        let value = self.value(view, &params);
        let rows = value.as_ref().and_then(|value| value["rows"].as_array());
        let n_rows = rows.map_or(0, Vec::len);
        // What has no rows is scrolled by lines.
        if n_rows == 0 && self.detail.is_some() { usize::MAX } else { n_rows }
    }

    /// A member of the selected row.
    fn selected_member(&self, member: &str) -> Option<String> {
        let (view, params) = self.main_view();
        let value = self.value(view, &params)?;
        let text = match &self.detail {
            Some(_) => &value[member],
            None => &value["rows"][self.selected][member],
        };
        text.as_str().map(str::to_owned)
    }

    fn path(&self) -> Option<String> {
        ["path", "recipient", "from", "name"].iter().find_map(|name| self.selected_member(name))
    }

    fn open(&mut self) {
        if self.detail.is_some() {
            return;
        }
        match self.tab {
            Tab::Actors | Tab::Tree => {
                self.detail = self.selected_member("pid").map(Detail::Actor);
            }
            Tab::Graphs => {
                let graphs = self.main::<Graphs>().unwrap_or_default();
                let row = graphs.rows.get(self.selected);
                self.detail = row.map(|row| Detail::Graph(row.name.clone()));
            }
            _ => {}
        }
    }

    fn close(&mut self) {
        if self.detail.take().is_some() {
            return;
        }
        if self.tab == Tab::Tree && self.tree_at != "/" {
            self.leave_level();
        } else if !self.filter.is_empty() {
            self.filter = Filter::default();
            self.first();
        }
    }

    fn enter_level(&mut self) {
        if let Some(path) = self.selected_member("path") {
            self.tree_at = path;
            self.first();
        }
    }

    fn leave_level(&mut self) {
        let parent = self.tree_at.rsplit_once('/').map_or("", |(parent, _)| parent);
        self.tree_at = if parent.is_empty() { "/".into() } else { parent.to_owned() };
        self.first();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state() -> State {
        let mut state = State::of_hello(Hello::default(), &TopConfig::default());
        let rows: Vec<Value> = (0..30)
            .map(|n| json!({ "pid": format!("{{0|{n}.1}}"), "path": format!("/user/a{n}") }))
            .collect();
        let params = state.main_view().1;
        state.put("actors", &params, json!({ "rows": rows, "has_more": true }));
        state
    }

    fn press(state: &mut State, keys: &str) {
        for c in keys.chars() {
            state.press(if c == '\n' { Key::Enter } else { Key::Char(c) });
        }
    }

    #[test]
    fn keys_move_and_open_and_leave() {
        let mut state = state();
        press(&mut state, "jjk");
        assert_eq!(state.selected, 1);
        state.press(Key::End);
        assert_eq!(state.selected, 29);
        state.press(Key::Down);
        assert_eq!(state.selected, 29, "the last row is the last");
        press(&mut state, "y");
        assert_eq!(state.take_copied().as_deref(), Some("/user/a29"));
        press(&mut state, "\n");
        assert_eq!(state.detail, Some(Detail::Actor("{0|29.1}".into())));
        assert_eq!(state.main_view().0, "actor");
        state.press(Key::Back);
        assert_eq!(state.detail, None);
        press(&mut state, "q");
        assert!(state.has_quit());
    }

    #[test]
    fn a_filter_is_applied_when_it_is_valid() {
        let mut state = state();
        press(&mut state, "/depth>x\n");
        assert!(state.input.as_ref().is_some_and(|(_, error)| error.is_some()));
        state.press(Key::Erase);
        press(&mut state, "100\n");
        assert!(state.input.is_none());
        let (_, params) = state.main_view();
        assert!(params.contains(&("filter".into(), "depth>100".into())), "{params:?}");
        state.press(Key::Back);
        assert!(state.filter.is_empty(), "one key removes the filter");
    }

    #[test]
    fn the_tree_is_walked_level_by_level() {
        let mut state = state();
        press(&mut state, "3");
        let params = state.main_view().1;
        state.put("tree", &params, json!({ "rows": [{ "pid": "{0|1.1}", "path": "/user" }] }));
        state.press(Key::Right);
        assert_eq!(state.tree_at, "/user");
        state.press(Key::Left);
        assert_eq!(state.tree_at, "/");
    }
}
