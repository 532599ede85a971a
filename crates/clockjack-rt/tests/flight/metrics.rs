//! The metrics of a runtime as Prometheus reads them: the text is well-formed, and its values are
//! what happened.

use core::time::Duration;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, mpsc},
};

use clockjack_observe::samples::Sample;
use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{ActorSystem, Failure, Mailbox, Next, Props, Scope, StaticError, Strategy},
    sleep, spawn_future, yield_now,
};
use clockjack_testing::{InTime, keeps_deadline};

use super::eventually;
use crate::in_time::ShutdownInTime as _;

static BROKEN: StaticError = StaticError::new(1, "broken");

/// The values by series, as in the text: `name{label="value"}`.
type Series = BTreeMap<String, f64>;

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    starts && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Takes the labels off the front of `rest`, behind the opening brace; returns what follows the
/// closing one.
fn labels<'t>(mut rest: &'t str, names: &mut BTreeSet<String>) -> &'t str {
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label has a quoted value");
        assert!(is_name(name) && !name.starts_with("__"), "{name}");
        assert!(names.insert(name.to_owned()), "label {name} occurs twice");
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("the value has an end") {
                (_, '\\') => {
                    let (_, escaped) = chars.next().expect("something is escaped");
                    assert!("\\\"n".contains(escaped), "\\{escaped}");
                }
                (at, '"') => break at,
                (_, c) => assert_ne!(c, '\n'),
            }
        };
        rest = &after[end + 1..];
        match rest.as_bytes() {
            [b',', ..] => rest = &rest[1..],
            [b'}', ..] => return &rest[1..],
            _ => panic!("after a label: {rest}"),
        }
    }
}

/// Reads the text as strictly as the format is defined.
fn parse(text: &str) -> Series {
    assert!(text.ends_with('\n'), "the last line has an end");
    let mut series = Series::new();
    let (mut families, mut helped) = (BTreeSet::new(), BTreeSet::new());
    let (mut family, mut kind) = (String::new(), String::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a text");
            assert!(!help.is_empty() && helped.insert(name.to_owned()), "{line}");
            continue;
        }
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, of) = typed.split_once(' ').expect("a type");
            assert!(["counter", "gauge", "summary"].contains(&of), "{line}");
            assert!(families.insert(name.to_owned()), "twice: {line}");
            assert!(helped.contains(name), "without a description: {line}");
            assert!(is_name(name) && name.starts_with("clockjack_"), "{line}");
            assert_eq!(of == "counter", name.ends_with("_total"), "{line}");
            (family, kind) = (name.to_owned(), of.to_owned());
            continue;
        }
        let end = line.find(['{', ' ']).expect("a value");
        let (name, rest) = line.split_at(end);
        let of_summary = name.strip_suffix("_sum").or_else(|| name.strip_suffix("_count"));
        let own = if kind == "summary" { of_summary.unwrap_or(name) } else { name };
        assert_eq!(own, family, "a series belongs to the family before it: {line}");
        let value = match rest.strip_prefix('{') {
            Some(rest) => labels(rest, &mut BTreeSet::new()),
            None => rest,
        };
        let key = line[..line.len() - value.len()].to_owned();
        let value = value.strip_prefix(' ').expect("one space");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(kind != "counter" || value >= 0.0, "{line}");
        assert!(series.insert(key, value).is_none(), "twice: {line}");
    }
    assert_eq!(families, helped, "each description has a type");
    series
}

fn start(name: &'static str) -> InTime<Runtime> {
    let config = RuntimeConfig { workers: Some(2), name: name.into(), ..RuntimeConfig::DEFAULT };
    let system =
        ActorSystem::builder("metrics").supervise_users(Scope::OneForOne, Strategy::restart());
    InTime::new(Runtime::start_with(system, config).unwrap(), RuntimeConfig::DEFAULT.drop_timeout)
}

fn read(rt: &Runtime) -> Series {
    parse(&rt.prometheus().unwrap())
}

#[test]
fn the_text_is_well_formed_and_says_what_happened() {
    let rt = start("we\"ird\\pool\n");
    let before = read(&rt);
    assert_eq!(before["clockjack_messages_refused_total{reason=\"full\"}"], 0.0);

    // One handler blocks, its mailbox is full, and a third message is refused three times.
    let (go, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let (entered, has_entered) = mpsc::channel();
    let slow = Props::from_fn(move |_, _: u32| {
        entered.send(())?;
        gate.lock().unwrap().recv()?;
        Ok::<_, Failure>(Next::Stay)
    });
    let slow = rt.spawn("slow", slow.mailbox(Mailbox::bounded(2))).unwrap();
    slow.tell(0).unwrap();
    has_entered.recv().unwrap();
    let n_refused = (0..5).filter(|n| slow.tell(*n).is_err()).count();
    // Another one fails twice, and stops by itself.
    let failing = Props::from_fn(
        |_, is_failing: bool| {
            if is_failing { Err(BROKEN.failure()) } else { Ok(Next::Stop) }
        },
    );
    let failing = rt.spawn("failing", failing).unwrap();
    for is_failing in [true, true, false] {
        failing.tell(is_failing).unwrap();
    }
    eventually("it has stopped", || failing.is_stopped());
    // The step that stops the actor counts that after it has announced it.
    eventually("that is counted", || rt.system().metrics().stopped == 1);
    failing.tell(true).unwrap_err();
    let work = rt.spawn_blocking(|| ()).unwrap();
    rt.block_on(work).unwrap();
    // Its thread counts that after it has passed the value on.
    eventually("the closure is counted", || read(&rt)["clockjack_blocking_finished_total"] == 1.0);

    let now = read(&rt);
    let of = |name: &str| now[&format!("clockjack_{name}")];
    assert_eq!(of("actors_live"), before["clockjack_actors_live"] + 1.0);
    assert_eq!((of("actors_failures_total"), of("actors_restarts_total")), (2.0, 2.0));
    assert_eq!(of("messages_refused_total{reason=\"full\"}"), n_refused as f64);
    assert_eq!(of("messages_refused_total{reason=\"stopped\"}"), 1.0);
    assert_eq!(of("blocking_finished_total"), 1.0);
    assert_eq!(of("actor_messages_refused_total{path=\"/user/slow\"}"), n_refused as f64);
    assert_eq!(of("actor_mailbox_capacity{path=\"/user/slow\"}"), 2.0);
    let depth = of("actor_mailbox_length{path=\"/user/slow\"}");
    assert!(depth >= 2.0, "two wait: {depth}");
    assert_eq!(of("scheduler_lateness_seconds_count"), 0.0);
    let pool = r#"pool="we\"ird\\pool\n""#;
    assert!(of(&format!("executor_polls_total{{{pool}}}")) > 0.0);
    let polls = |worker: u32| of(&format!("worker_polls_total{{{pool},worker=\"{worker}\"}}"));
    assert!(polls(0) + polls(1) > 0.0);

    // The sampler sees the handler that does not return.
    let busy = || read(&rt)["clockjack_actor_busy_seconds_total{path=\"/user/slow\"}"];
    eventually("time was counted", || busy() > 0.0);
    // The others of its messages.
    for _ in n_refused..5 {
        go.send(()).unwrap();
        has_entered.recv().unwrap();
    }
    go.send(()).unwrap();
    assert!(rt.shutdown_in_time(Duration::from_secs(60)).is_clean());
}

#[test]
fn restarts_of_an_actor_are_counted_at_its_path() {
    let rt = start("pool");
    let failing = Props::from_fn(|_, _: u32| Err::<Next, _>(BROKEN.failure()));
    let failing = rt.spawn("failing", failing).unwrap();
    (0..3).for_each(|n| failing.tell(n).unwrap());
    eventually("it was restarted three times", || rt.system().metrics().restarts == 3);
    assert_eq!(read(&rt)["clockjack_actor_restarts_total{path=\"/user/failing\"}"], 3.0);
}

#[test]
fn a_page_has_a_bounded_number_of_actors() {
    let rt = start("pool");
    let actors: Vec<_> = (0..300)
        .map(|n| rt.spawn(&format!("a{n}"), Props::from_fn(|_, _: u32| Ok(Next::Stay))).unwrap())
        .collect();
    for (last, actor) in (0_u32..).zip(&actors) {
        (0..=last).for_each(|n| actor.tell(n).unwrap());
    }
    let n_sent = |stats: &[usize]| stats.iter().sum::<usize>();
    eventually("all were handled", || {
        let taken: Vec<_> =
            rt.system().actor_stats(1000).iter().map(|it| it.messages_taken).collect();
        n_sent(&taken) >= 300 * 301 / 2
    });
    let page = read(&rt);
    assert!(page["clockjack_actors_sampled"] >= 300.0);
    let lines: Vec<_> =
        page.keys().filter(|key| key.starts_with("clockjack_actor_messages_total{")).collect();
    assert!((10..=50).contains(&lines.len()), "{lines:?}");
    assert_eq!(page["clockjack_actor_messages_total{path=\"/user/a299\"}"], 300.0);
    // The next page is about what has happened since.
    actors[0].tell(7).unwrap();
    eventually("the one that is at work is on the page", || {
        read(&rt).contains_key("clockjack_actor_messages_total{path=\"/user/a0\"}")
            || actors[0].tell(7).is_err()
    });
}

#[test]
fn a_program_adds_metrics_and_a_conflict_is_an_error() {
    let rt = start("pool");
    let metrics = rt.metrics();
    metrics.add_source(|set| {
        let labels = [("shop", "a\"b\\c\nd")];
        set.push(&Sample::gauge("orders_open", 3).help("Open\norders.").labels(&labels));
    });
    let page = read(&rt);
    assert_eq!(page[r#"clockjack_orders_open{shop="a\"b\\c\nd"}"#], 3.0);
    metrics.add_source(|set| set.push(&Sample::gauge("actors.live", 3)));
    assert!(rt.prometheus().unwrap_err().is_conflict());
    keeps_deadline(RuntimeConfig::DEFAULT.drop_timeout, || drop(rt));
    assert!(!metrics.samples().is_empty(), "a handle outlives its runtime");
}

#[test]
fn each_worker_says_how_many_tasks_wait_how_long_polls_take_and_how_late_its_timers_were() {
    const LATE_TICKS: u64 = 10;
    let config = RuntimeConfig { workers: Some(1), name: "one".into(), ..RuntimeConfig::DEFAULT };
    let rt = InTime::new(
        Runtime::start_with(ActorSystem::builder("metrics"), config).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let (begin, begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let holder = rt.spawn_future(async move {
        let sleeper = spawn_future(async { sleep(Duration::from_millis(1)).await });
        // The sleeper arms its timer in between.
        yield_now().await;
        let waits = spawn_future(async {});
        begin.send(()).unwrap();
        released.recv().unwrap_err();
        (sleeper, waits)
    });
    begun.recv().unwrap();
    let of_worker = |series: &Series, name: &str| {
        let key = format!("clockjack_worker_{name}{{pool=\"one\",worker=\"0\"}}");
        *series.get(&key).unwrap_or_else(|| panic!("no {key} in {series:#?}"))
    };
    let busy = read(&rt);
    assert_eq!(of_worker(&busy, "queue_length"), 1.0);
    let now = || rt.pool().handle().now().ticks;
    let begun_at = now();
    eventually("the timer is late", || now() > begun_at + LATE_TICKS);
    drop(release);
    let (sleeper, waits) = rt.block_on(holder).unwrap();
    rt.block_on(sleeper).unwrap().unwrap();
    rt.block_on(waits).unwrap();
    eventually("the worker has counted the timer", || {
        let series = read(&rt);
        // The timer was armed before `begun_at`, for the second tick after that at the latest.
        let is_late = of_worker(&series, "timer_lateness_max_ticks") >= (LATE_TICKS - 2) as f64;
        is_late && of_worker(&series, "timers_late_total") >= 1.0
    });
    eventually("the worker has polled", || of_worker(&read(&rt), "poll_mean_seconds") > 0.0);
}
