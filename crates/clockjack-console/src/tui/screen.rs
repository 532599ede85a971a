//! The screen as lines of text.

use ratatui::{
    Frame,
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use super::{
    TopConfig, format,
    state::{Detail, Link, State, Tab},
    table::{self, Column},
};
use crate::view::{Finding, Number, Overview, Sweep, Tag};

mod details;
mod lists;

/// Which characters the reader understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Charset {
    /// Those of Unicode.
    Unicode,
    /// Those of ASCII only.
    Ascii,
}

/// After which silence a screen is shown as stale, in milliseconds.
const STALE_MS: u64 = 7_000;
/// Lines above the list.
const HEADER: u16 = 5;

const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const GOOD: Style = Style::new().fg(Color::Green);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().fg(Color::DarkGray);
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// A list, or a page of text.
pub(super) struct Content {
    /// The titles, above the rows; not part of a page of text.
    title: Option<String>,
    rows: Vec<(String, Style)>,
    /// What is below the rows.
    status: String,
    is_list: bool,
}

impl Content {
    fn table(columns: &[Column], rows: Vec<Vec<String>>, width: usize, status: String) -> Self {
        let mut lines = table::lay_out(columns, &rows, width).into_iter();
        let title = lines.next();
        let rows = lines.map(|line| (line, Style::new())).collect();
        Self { title, rows, status, is_list: true }
    }

    fn text(rows: Vec<(String, Style)>, status: String) -> Self {
        Self { title: None, rows, status, is_list: false }
    }

    /// Marks the rows for which this holds.
    fn mark(mut self, mut is_bad: impl FnMut(usize) -> bool) -> Self {
        for (index, (_, style)) in self.rows.iter_mut().enumerate() {
            if is_bad(index) {
                *style = BAD;
            }
        }
        self
    }
}

/// Draws the screen.
pub(super) fn draw(state: &State, config: &TopConfig, frame: &mut Frame<'_>, now_ms: u64) {
    let area = frame.area();
    let lines = lines(state, area.width, area.height, config.charset, now_ms);
    for (line, y) in lines.iter().zip(area.top()..area.bottom()) {
        if config.is_painted {
            frame.buffer_mut().set_line(area.left(), y, line, area.width);
        } else {
            let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            frame.buffer_mut().set_stringn(
                area.left(),
                y,
                text,
                usize::from(area.width),
                Style::new(),
            );
        }
    }
}

/// The lines of the screen.
pub(super) fn lines(
    state: &State,
    width: u16,
    height: u16,
    charset: Charset,
    now_ms: u64,
) -> Vec<Line<'static>> {
    let columns = usize::from(width);
    let overview = state.overview();
    let mut lines = vec![
        title(state, overview.as_ref(), charset, now_ms, columns),
        findings(overview.as_ref(), columns),
        machine(overview.as_ref(), columns),
        tabs(state, columns),
    ];
    let content = if state.has_help { help() } else { content(state, columns) };
    lines.push(Line::styled(format!(" {}", content.title.clone().unwrap_or_default()), STRONG));
    let n_rows = usize::from(height.saturating_sub(HEADER + 1));
    let selected = state.selected.min(content.rows.len().saturating_sub(1));
    let from = if content.is_list {
        selected.saturating_sub(n_rows.saturating_sub(1))
    } else {
        selected.min(content.rows.len().saturating_sub(n_rows))
    };
    for (index, (text, style)) in content.rows.iter().enumerate().skip(from).take(n_rows) {
        let is_selected = content.is_list && index == selected;
        let mark = if is_selected { '>' } else { ' ' };
        let style = if is_selected { style.patch(SELECTED) } else { *style };
        let text = format!("{mark}{text}");
        lines.push(Line::styled(format!("{text:<columns$}"), style));
    }
    while lines.len() + 1 < usize::from(height) {
        lines.push(Line::default());
    }
    lines.truncate(usize::from(height.saturating_sub(1)));
    lines.push(status(state, &content, columns));
    for line in &mut lines {
        fit(line, columns);
    }
    lines
}

/// Cuts off what is beyond the screen.
fn fit(line: &mut Line<'static>, width: usize) {
    let mut room = width;
    for span in &mut line.spans {
        let n = span.content.chars().count();
        if n > room {
            span.content = span.content.chars().take(room).collect::<String>().into();
        }
        room = room.saturating_sub(n);
    }
}

/// Two texts at both ends of a line.
fn ends(left: &str, right: &str, width: usize) -> String {
    let n_left = left.chars().count();
    let n_right = right.chars().count();
    if n_left + n_right + 1 > width {
        return format::head(left, width);
    }
    format!("{left}{right:>room$}", room = width - n_left)
}

fn title(
    state: &State,
    overview: Option<&Overview>,
    charset: Charset,
    now_ms: u64,
    width: usize,
) -> Line<'static> {
    let hello = &state.hello;
    let dot = if charset == Charset::Unicode { " \u{b7} " } else { " - " };
    let mut parts = vec![format::plain(hello.system.as_deref().unwrap_or("?"))];
    parts.extend(hello.pid.map(|pid| format!("pid {pid}")));
    parts.extend(
        hello.started.map(|from| format!("up {}", format::uptime(now_ms.saturating_sub(from)))),
    );
    if let Some(overview) = overview {
        let clock = &overview.clock;
        let tick = format::time(Number::count(clock.resolution_ns));
        let mut text = format!("clock {} {tick}", clock.kind);
        if !clock.drift_ns.is_unknown() {
            text.push_str(&format!(", late {}", format::time(clock.drift_ns)));
        }
        parts.push(text);
        parts.push(format!("{} actors", format::count(overview.actors)));
        parts.extend(overview.recorder.as_ref().map(|rec| {
            let gaps = if rec.gaps.or_zero() == 0.0 {
                "no gaps".into()
            } else {
                format!("{} gaps", format::count(rec.gaps))
            };
            format!("rec {} {gaps}", rec.file)
        }));
    }
    // Whether what is shown is live matters more than the end of the line.
    let right = format!("{} [?] help", link(state, now_ms));
    let room = width.saturating_sub(right.chars().count() + 1);
    let left = format::head(&format!(" {}", parts.join(dot)), room);
    Line::styled(ends(&left, &right, width), STRONG)
}

/// Whether what is shown is what is.
fn link(state: &State, now_ms: u64) -> String {
    let silent_ms = now_ms.saturating_sub(state.last_frame_ms);
    let text = match state.link {
        Link::Connecting => "connecting".to_owned(),
        Link::Ended => "program ended, r reconnects".to_owned(),
        Link::Live if state.is_paused() => "PAUSED".to_owned(),
        Link::Live if silent_ms > STALE_MS => format!("stale since {} s", silent_ms / 1000),
        Link::Live => "live".to_owned(),
    };
    if state.n_skipped == 0 { text } else { format!("{text}, skipped {}", state.n_skipped) }
}

fn findings(overview: Option<&Overview>, width: usize) -> Line<'static> {
    let Some(overview) = overview else { return Line::default() };
    if overview.findings.is_empty() {
        let style = if overview.looked_ms.is_some() { GOOD } else { Style::new() };
        return Line::styled(format::head(&format!(" {}", nothing_found(overview)), width), style);
    }
    let texts = overview.findings.iter().map(finding);
    let text: Vec<String> = texts.map(|text| format!("! {text}")).collect();
    Line::styled(format::head(&format!(" {}", text.join("   ")), width), BAD)
}

/// What the screen says without a finding: that nothing is wrong, or that it is not known.
fn nothing_found(overview: &Overview) -> String {
    if overview.looked_ms.is_none() {
        return "findings unknown".to_owned();
    }
    let codes: Vec<&str> = overview.undecided.iter().map(|one| one.code.as_str()).collect();
    if codes.is_empty() {
        "no findings".to_owned()
    } else {
        format!("no findings, {} undecided", codes.join(" "))
    }
}

/// A finding on one line.
fn finding(finding: &Finding) -> String {
    format::plain(&format!("{} {}", finding.code, finding.text))
}

fn machine(overview: Option<&Overview>, width: usize) -> Line<'static> {
    let Some(one) = overview else { return Line::default() };
    let busy = format::share(one.busy);
    let text = format!(
        " workers {}  busy {} {busy}  queue {}  steals {}  parks {}",
        format::count(one.workers),
        format::bar(one.busy, if width < 100 { 10 } else { 16 }),
        format::count(one.queue),
        format::rate(one.steals_rate),
        format::rate(one.parks_rate),
    );
    let right =
        format!("msgs {}  dead {} ", format::rate(one.messages_rate), format::rate(one.dead_rate));
    // What is wrong with messages tells more than who steals.
    if text.chars().count() + right.chars().count() + 2 > width {
        let workers = format::count(one.workers);
        let bar = format::bar(one.busy, 10);
        let queue = format::count(one.queue);
        let left = format!(" workers {workers}  busy {bar} {busy}  queue {queue}");
        return Line::raw(ends(&left, &right, width));
    }
    Line::raw(ends(&text, &right, width))
}

fn tabs(state: &State, width: usize) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    let mut n = 1;
    let is_narrow = width < 100;
    for (index, tab) in Tab::ALL.into_iter().enumerate() {
        let is_open = tab == state.tab;
        let digit = index + 1;
        let name = if is_narrow { format::head(tab.name(), 8) } else { tab.name().to_owned() };
        let text = if is_open { format!("[{digit} {name}]") } else { format!(" {digit} {name} ") };
        n += text.chars().count();
        spans.push(Span::styled(text, if is_open { STRONG } else { DIM }));
    }
    if matches!(state.tab, Tab::Actors | Tab::Jobs) && !is_narrow {
        let sort = format!("sort: {} ", state.sort.name());
        let room = width.saturating_sub(n);
        spans.push(Span::raw(format!("{sort:>room$}")));
    }
    Line::from(spans)
}

fn content(state: &State, width: usize) -> Content {
    let (view, params) = state.main_view();
    let name = crate::client::subscription(view, &params);
    if let Some(error) = state.errors.get(&name) {
        return Content::text(vec![(error.clone(), BAD)], String::new());
    }
    let shown = match &state.detail {
        Some(Detail::Actor(_)) => details::actor(state, width),
        Some(Detail::Graph(_)) => details::graph(state, width),
        None => match state.tab {
            Tab::Overview => details::overview(state, width),
            Tab::Actors => lists::actors(state, width),
            Tab::Tree => lists::tree(state, width),
            Tab::Timers => details::timers(state, width),
            Tab::Jobs => lists::jobs(state, width),
            Tab::Graphs => lists::graphs(state, width),
            Tab::Events => lists::events(state, width),
            Tab::Workers => lists::workers(state, width),
        },
    };
    shown.unwrap_or_else(|| Content::text(vec![("..".into(), DIM)], String::new()))
}

fn help() -> Content {
    const KEYS: &[(&str, &str)] = &[
        ("1 .. 8, tab", "choose what is shown"),
        ("/", "filter: till  state:stuck,queued  depth>100  type:Till  -path:/system"),
        ("esc", "leave what is open, then remove the filter"),
        ("s", "sort by rate, depth, share of time, wait, restarts"),
        ("up, down, page up, page down", "choose a row"),
        ("n, N", "next page, previous page"),
        ("enter", "open the actor or the graph"),
        ("left, right", "in the tree: to the parent, to the children"),
        ("p", "pause and go on"),
        ("y", "copy the path"),
        ("r", "connect again"),
        ("q", "quit"),
        ("", ""),
        ("~", "an estimate by samples"),
        ("-", "not known"),
        ("+", "a lower bound: entries were lost"),
    ];
    let rows = KEYS.iter().map(|(key, what)| (format!("{key:<30} {what}"), Style::new()));
    Content::text(rows.collect(), "any key goes back".into())
}

fn status(state: &State, content: &Content, width: usize) -> Line<'static> {
    if let Some((text, error)) = &state.input {
        let error = error.as_ref().map_or(String::new(), |error| format!("   {error}"));
        return Line::styled(format::head(&format!(" / {text}_{error}"), width), STRONG);
    }
    if let Some(message) = &state.message {
        return Line::styled(format::head(&format!(" {message}"), width), BAD);
    }
    let keys = if state.detail.is_some() { "esc back " } else { "/ filter  enter detail  q quit " };
    Line::styled(ends(&format!(" {}", content.status), keys, width), DIM)
}

/// How old the rows of a walk are.
fn sweep(sweep: Option<&Sweep>) -> String {
    let age = sweep.and_then(|sweep| sweep.age_ms);
    age.map_or(String::new(), |ms| {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let seconds = ms as f64 / 1000.0;
        format!(", swept {seconds:.1} s ago")
    })
}

/// Whether some of the numbers are estimates.
fn has_estimates(numbers: impl IntoIterator<Item = Number>) -> bool {
    numbers.into_iter().any(|number| matches!(number.tag, Tag::Sampled(_)) && !number.is_unknown())
}

#[cfg(test)]
mod tests;
