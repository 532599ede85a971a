//! The pages of text: the system, one actor, timers, one graph.

use ratatui::style::Style;

use super::{
    BAD, Column, Content, STRONG, State, finding, format,
    lists::{depth, state_name},
    nothing_found, table,
};
use crate::{
    query::Params,
    view::{ActorDetail, AskRow, DeadLetters, GraphView, Number, Page, TimersView},
};

/// The lines of a page.
#[derive(Default)]
struct Text(Vec<(String, Style)>);

impl Text {
    fn line(&mut self, text: impl Into<String>) {
        self.0.push((text.into(), Style::new()));
    }

    fn heading(&mut self, text: impl Into<String>) {
        if !self.0.is_empty() {
            self.line("");
        }
        self.0.push((text.into(), STRONG));
    }

    fn bad(&mut self, text: impl Into<String>) {
        self.0.push((text.into(), BAD));
    }

    fn table(&mut self, columns: &[Column], rows: &[Vec<String>], width: usize) {
        for line in table::lay_out(columns, rows, width) {
            self.line(line);
        }
    }
}

pub(super) fn overview(state: &State, width: usize) -> Option<Content> {
    let one = state.overview()?;
    let mut text = Text::default();
    text.heading("What is wrong");
    if one.findings.is_empty() {
        text.line(nothing_found(&one));
    }
    for found in &one.findings {
        let long = format!("{}   clockjack explain {}", finding(found), found.code);
        text.bad(format::head(&long, width - 1));
    }
    for open in &one.undecided {
        text.line(format::head(&format!("{} is undecided: {}", open.code, open.why), width - 1));
    }
    text.heading("Actors");
    text.line(format!(
        "{} live, {} messages, {} failures, {} restarts, {} refused",
        format::count(one.actors),
        format::rate(one.messages_rate),
        format::count(one.failures),
        format::count(one.restarts),
        format::count(one.refused),
    ));
    if let Some(blocking) = &one.blocking {
        text.line(format!(
            "blocking threads: {} of {} run, {} wait",
            format::count(blocking.running),
            format::count(blocking.threads_max),
            format::count(blocking.queued),
        ));
    }
    text.line(format!("{} timers, {} jobs", format::count(one.timers), format::count(one.jobs)));
    if let Some(asks) = state.view::<Page<AskRow>>(&Params::new()) {
        text.heading(format!("Asks without an answer: {}", asks.rows.len()));
        for ask in asks.rows.iter().take(8) {
            let cycle = if ask.is_in_cycle { "   CYCLE" } else { "" };
            let line = format!("{} waits for {}{cycle}", ask.from, ask.to);
            text.line(format::head(&format::plain(&line), width - 1));
        }
    }
    if let Some(dead) = state.main::<DeadLetters>() {
        text.heading(format!("Dead letters, {}", format::rate(one.dead_rate)));
        dead_letters(&dead, &mut text, width);
    }
    let console = &one.console;
    text.heading("This console");
    text.line(format!(
        "{} clients, {} bytes, {} frames skipped, {} events and {} samples lost",
        format::count(console.clients),
        format::count(console.bytes),
        format::count(console.frames_skipped),
        format::count(console.events_lost),
        format::count(console.samples_lost),
    ));
    Some(Content::text(text.0, String::new()))
}

fn dead_letters(dead: &DeadLetters, text: &mut Text, width: usize) {
    let columns = [
        Column::path("RECIPIENT"),
        Column::left("REASON", 20),
        Column::right("COUNT", 9),
        Column::right("RATE", 9),
        Column::left("MESSAGE", 18).from(100),
    ];
    let rows: Vec<Vec<String>> = dead
        .rows
        .iter()
        .take(10)
        .map(|row| {
            vec![
                format::plain(&row.recipient),
                row.reason.clone(),
                format::count(row.count),
                format::rate(row.rate),
                format::type_name(&row.message_type),
            ]
        })
        .collect();
    text.table(&columns, &rows, width);
}

/// A line of so many small bars: the largest number has a full one.
fn history(numbers: &[Number]) -> String {
    const STEPS: [char; 6] = [' ', '.', ':', '+', '#', '@'];
    let max = numbers.iter().map(Number::or_zero).fold(0.0, f64::max);
    let step = |number: &Number| {
        let part = if max > 0.0 { number.or_zero() / max } else { 0.0 };
        let index = (1..STEPS.len()).filter(|n| part * 5.0 >= *n as f64).count();
        if number.is_unknown() { '-' } else { STEPS[index] }
    };
    numbers.iter().map(step).collect()
}

pub(super) fn actor(state: &State, width: usize) -> Option<Content> {
    let one: ActorDetail = state.main()?;
    let row = &one.actor;
    let mut text = Text::default();
    text.heading(format::plain(&row.path));
    text.line(format!("pid {}   type {}", row.pid, format::plain(&row.type_name)));
    if one.has_ended {
        let why = one.ended_because.as_deref().unwrap_or("stopped");
        text.bad(format!("has ended: {}", format::plain(why)));
    }
    text.line(format!(
        "{}   {} handled, {}   {} of the time   {} restarts",
        state_name(row.state),
        format::count(row.handled),
        format::rate(row.rate),
        format::share(row.share),
        format::count(row.restarts),
    ));
    if let Some(handling) = &one.handling {
        text.bad(format!(
            "handles a {} for {} on worker {}",
            format::type_name(&handling.message_type),
            format::time(handling.for_ns),
            format::count(handling.worker),
        ));
    }
    text.heading("Mailbox");
    let mailbox = &one.mailbox;
    text.line(format!(
        "{} messages, {} have come, {} have left, {} refused; a message waits {}",
        depth(mailbox.depth, mailbox.capacity),
        format::count(mailbox.claimed),
        format::count(mailbox.freed),
        format::count(mailbox.refused),
        format::time(row.wait_ns),
    ));
    if !one.depth_history.is_empty() {
        text.line(format!("last minute  [{}]", history(&one.depth_history)));
    }
    supervision(&one, &mut text, width);
    waiting(&one, &mut text, width);
    text.heading(format!("Children: {}", format::count(one.children)));
    Some(Content::text(text.0, String::new()))
}

fn supervision(one: &ActorDetail, text: &mut Text, width: usize) {
    if !one.supervision.is_empty() {
        text.heading("Supervision");
    }
    for row in &one.supervision {
        let strategy = row.strategy.as_deref().unwrap_or("-");
        let left = if row.remainder.is_unknown() {
            String::new()
        } else {
            format!(", {} failures left", format::count(row.remainder))
        };
        let line = format!("{}  {}  {strategy}{left}", row.path, state_name(row.state));
        text.line(format::head(&format::plain(&line), width - 1));
    }
    if !one.failures.is_empty() {
        text.heading("Last failures");
    }
    for row in &one.failures {
        let line = format!("{}: {}", row.decision, row.text);
        text.bad(format::head(&format::plain(&line), width - 1));
    }
}

fn waiting(one: &ActorDetail, text: &mut Text, width: usize) {
    if !one.asks.is_empty() {
        text.heading("Asks");
    }
    for ask in &one.asks {
        let cycle = if ask.is_in_cycle { "   CYCLE" } else { "" };
        let line = format!("{} waits for {}{cycle}", ask.from, ask.to);
        text.line(format::head(&format::plain(&line), width - 1));
    }
    if let Some(timers) = one.timers.as_ref().filter(|timers| !timers.is_empty()) {
        text.heading("Timers");
        for timer in timers {
            let due = format::time(timer.due_in_ns);
            let period = format::time(timer.period_ns);
            text.line(format!("{}  due in {due}, period {period}", format::plain(&timer.key)));
        }
    }
    if let Some(futures) = one.futures.as_ref().filter(|futures| !futures.is_empty()) {
        text.heading("Futures");
        for future in futures {
            let at = future.waits_at.as_deref().unwrap_or("-");
            text.line(format!("{}  waits at {at}", format::type_name(&future.type_name)));
        }
    }
    if let Some(watch) = &one.watch {
        text.heading("Time per message, watched");
        let (p50, p99) = (format::time(watch.p50_ns), format::time(watch.p99_ns));
        text.line(format!("p50 {p50}  p99 {p99}  of {} messages", format::count(watch.count)));
    }
}

pub(super) fn timers(state: &State, width: usize) -> Option<Content> {
    let one: TimersView = state.main()?;
    let mut text = Text::default();
    text.line(format!(
        "{} armed   {} armed, {} fired, {} cancelled",
        format::count(one.pending),
        format::rate(one.armed_rate),
        format::rate(one.fired_rate),
        format::rate(one.cancelled_rate),
    ));
    let late = format!(
        "late: p99 {} ticks, at most {} ticks",
        format::count(one.late_p99_ticks),
        format::count(one.late_max_ticks),
    );
    if one.late_p99_ticks.or_zero() > 10.0 {
        text.bad(late)
    } else {
        text.line(late)
    }
    let names = (0..one.by_lateness.len()).map(|n| match n {
        0 => "in time".to_owned(),
        1 => "1".to_owned(),
        n => format!("{}..{}", 1_u64 << (n - 1), (1_u64 << n) - 1),
    });
    let shown = names.zip(&one.by_lateness).filter(|(_, number)| number.or_zero() > 0.0);
    let shown: Vec<String> =
        shown.map(|(name, number)| format!("{name}: {}", format::count(*number))).collect();
    text.line(format::head(&format!("by ticks late: {}", shown.join("   ")), width - 1));
    for shard in &one.shards {
        text.heading(format!(
            "{} shard {}: {} pending, next due in {} ticks, {} beyond the wheel",
            format::plain(&shard.pool),
            shard.shard,
            format::count(shard.pending),
            format::count(shard.next_due_ticks),
            format::count(shard.overflow),
        ));
        for (slots, ticks) in shard.levels.iter().zip(&shard.slot_ticks) {
            let map: String = slots.iter().map(|n| if *n > 0 { '#' } else { '.' }).collect();
            text.line(format::head(&format!("{ticks:>8} ticks  {map}"), width - 1));
        }
    }
    Some(Content::text(text.0, String::new()))
}

pub(super) fn graph(state: &State, width: usize) -> Option<Content> {
    let one: GraphView = state.main()?;
    let mut text = Text::default();
    let row = &one.graph;
    text.heading(format::plain(&row.name));
    let (epochs, calls) = (format::rate(row.epochs_rate), format::rate(row.calls_rate));
    text.line(format!("epochs {epochs}, calls {calls}, {} drops", format::count(row.drops)));
    if !one.lanes.is_empty() {
        text.line("");
        let columns = [
            Column::rest("LANE"),
            Column::right("TICKS", 9),
            Column::right("CALLS", 9),
            Column::right("OVERRUNS", 8),
            Column::right("SKIPPED", 8),
            Column::right("DROPS", 8),
        ];
        let rows = one.lanes.iter().map(|lane| {
            vec![
                format::plain(&lane.lane),
                format::rate(lane.ticks_rate),
                format::rate(lane.calls_rate),
                format::count(lane.overruns),
                format::count(lane.skipped),
                format::count(lane.drops),
            ]
        });
        text.table(&columns, &rows.collect::<Vec<_>>(), width);
    }
    text.line("");
    let columns = [
        Column::rest("COMPONENT"),
        Column::left("LANE", 12),
        Column::right("CALLS", 9),
        Column::right("P50", 8),
        Column::right("P99", 8),
        Column::right("ERRORS", 7),
    ];
    let rows = one.components.iter().map(|component| {
        vec![
            format::plain(&component.component),
            format::plain(&component.lane),
            format::rate(component.calls_rate),
            format::time(component.p50_ns),
            format::time(component.p99_ns),
            format::count(component.errors),
        ]
    });
    text.table(&columns, &rows.collect::<Vec<_>>(), width);
    edges(&one, &mut text, width);
    Some(Content::text(text.0, String::new()))
}

fn edges(one: &GraphView, text: &mut Text, width: usize) {
    text.line("");
    let columns = [
        Column::rest("EDGE"),
        Column::right("RATE", 9),
        Column::right("DEPTH", 9),
        Column::right("DROPS", 7),
        Column::right("REJECTED", 8),
        Column::right("STALE", 7),
        Column::right("AGE", 8),
    ];
    let rows = one.edges.iter().map(|edge| {
        vec![
            format::plain(&edge.edge),
            format::rate(edge.rate),
            depth(edge.depth, edge.capacity),
            format::count(edge.drops),
            format::count(edge.rejected),
            format::count(edge.stale),
            format::time(edge.age_ns),
        ]
    });
    text.table(&columns, &rows.collect::<Vec<_>>(), width);
}
