//! The views of a system in virtual time.

#[path = "support/look.rs"]
mod look;

use core::time::Duration;

use clockjack_actor::{Actor, Context, DispatcherId, Failure, Mailbox, Next, Props, Strategy};
use clockjack_console::{
    Target, Watcher, inspect,
    query::{ActorQuery, EventsQuery, Filter, Query, Sort, TreeQuery},
    view::{ActorRow, ActorState, Number, Overview, Page, Tag},
};
use clockjack_testkit::ManualTime;
use look::{look, seconds};

/// Fails on `true`.
struct Shop;

impl Actor for Shop {
    type Msg = bool;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, fails: bool) -> Result<Next, Failure> {
        if fails { Err(Failure::msg("out of stock")) } else { Ok(Next::Stay) }
    }
}

/// Spawns this many children at its start.
struct Parent(usize);

impl Actor for Parent {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        for n in 0..self.0 {
            cx.spawn_child(&format!("c{n:04}"), Props::new(|| Shop))?.tell(false)?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

fn query(filter: &str, sort: Sort) -> Query {
    Query { filter: Filter::parse(filter).unwrap(), sort, ..Query::default() }
}

fn paths(page: &Page<ActorRow>) -> Vec<&str> {
    page.rows.iter().map(|row| row.path.as_str()).collect()
}

#[test]
fn without_a_watcher_what_needs_two_looks_is_unknown_and_the_rest_is_exact() {
    let time = ManualTime::start();
    let shop = time.spawn("shop", Props::new(|| Shop).mailbox(Mailbox::bounded(10)));
    time.settle();
    shop.tell(false).unwrap();
    let target = Target::of_system(time.system());
    let page = inspect::actors(&target, &query("shop", Sort::Depth));
    assert_eq!((page.matches, page.has_more, page.sweep), (Number::count(1), false, None));
    let row = &page.rows[0];
    assert_eq!((row.path.as_str(), row.state), ("/user/shop", ActorState::Queued));
    assert_eq!((row.depth, row.capacity), (Number::count(1), Number::count(10)));
    assert!(row.rate.is_unknown() && row.share.is_unknown() && row.wait_ns.is_unknown());
    let overview = inspect::overview(&target);
    assert!(overview.messages_rate.is_unknown() && overview.busy.is_unknown());
    assert_eq!(overview.actors, Number::size(time.system().metrics().live));
    // An unknown number is null, and no zero.
    let json = serde_json::to_value(&overview).unwrap();
    assert!(json["messages_rate"].is_null());
    assert_eq!(serde_json::from_value::<Overview>(json).unwrap(), overview);
}

#[test]
fn rates_are_the_differences_of_two_looks() {
    let time = ManualTime::start();
    let shop = time.spawn("shop", Props::new(|| Shop).mailbox(Mailbox::bounded(1_000)));
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    time.settle();
    look(&watcher);
    for _ in 0..100 {
        shop.tell(false).unwrap();
    }
    time.advance(Duration::from_secs(2));
    look(&watcher);
    let page = inspect::actors(&target, &query("", Sort::Rate));
    assert_eq!(paths(&page)[0], "/user/shop");
    assert_eq!(page.rows[0].rate, Number::exact(50.0));
    assert_eq!(page.rows[0].handled, Number::count(100));
    assert_eq!(page.sweep.map(|sweep| sweep.age_ms), Some(Some(0)));
    let overview = inspect::overview(&target);
    let all: f64 = page.rows.iter().filter_map(|row| row.rate.value).sum();
    assert_eq!(overview.messages_rate, Number::exact(all).tagged(Tag::Swept(0)));
}

#[test]
fn the_waiting_time_is_depth_by_rate() {
    let time = ManualTime::start();
    let shop = time.spawn("shop", Props::new(|| Shop).mailbox(Mailbox::bounded(1_000)));
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    time.settle();
    look(&watcher);
    for _ in 0..100 {
        shop.tell(false).unwrap();
    }
    time.advance(Duration::from_secs(1));
    for _ in 0..10 {
        shop.tell(false).unwrap();
    }
    look(&watcher);
    let page = inspect::actors(&target, &query("shop", Sort::Wait));
    // The walk that was under way did not know this filter.
    assert!(page.sweep.is_none());
    let page = inspect::actors(&target, &query("", Sort::Wait));
    // Ten messages wait, and a hundred leave per second.
    assert_eq!(page.rows[0].wait_ns, Number::exact(1e8));
}

#[test]
fn a_large_system_is_shown_by_its_best_rows() {
    let time = ManualTime::start();
    time.spawn("parent", Props::new(|| Parent(3_000)));
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    seconds(&time, &watcher, 2);
    let first = inspect::actors(&target, &query("", Sort::Depth));
    assert_eq!((first.rows.len(), first.has_more), (200, true));
    assert!(first.matches.or_zero() > 3_000.0);
    let second = inspect::actors(&target, &Query { page: 1, ..query("", Sort::Depth) });
    assert_eq!((second.rows.len(), second.has_more), (56, false));
    let sweep = second.sweep.unwrap();
    assert_eq!(sweep.seen, u64::try_from(time.system().metrics().live).unwrap());
    // A filter finds one of many, after the next walk.
    let one = query("c2999", Sort::Depth);
    let _ = inspect::actors(&target, &one);
    seconds(&time, &watcher, 1);
    let found = inspect::actors(&target, &one);
    assert_eq!(paths(&found), ["/user/parent/c2999"]);
    assert_eq!(found.matches.value, Some(1.0));
}

#[test]
fn the_tree_is_shown_level_by_level_with_sums() {
    let time = ManualTime::start();
    time.spawn("parent", Props::new(|| Parent(450)));
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let at = |at: &str, page| inspect::tree(&target, &TreeQuery { at: at.into(), page });
    time.settle();
    let user = at("/user", 0).unwrap();
    let row = user.rows.iter().find(|row| row.actor.path == "/user/parent").unwrap();
    assert_eq!((row.children, row.below), (Number::count(450), Number::UNKNOWN));
    seconds(&time, &watcher, 1);
    let user = at("/user", 0).unwrap();
    let row = user.rows.iter().find(|row| row.actor.path == "/user/parent").unwrap();
    assert_eq!(row.below.value, Some(450.0));
    let pages: Vec<_> = (0..3).map(|page| at("/user/parent", page).unwrap()).collect();
    assert_eq!(pages.iter().map(|page| page.rows.len()).collect::<Vec<_>>(), [200, 200, 50]);
    assert_eq!(pages.iter().map(|page| page.has_more).collect::<Vec<_>>(), [true, true, false]);
    let mut names: Vec<_> = pages.iter().flat_map(|page| &page.rows).collect();
    names.dedup_by(|a, b| a.actor.path == b.actor.path);
    assert_eq!(names.len(), 450);
    assert!(at("/user/nobody", 0).is_none() && at("user", 0).is_none());
    assert!(at("/", 0).unwrap().rows.iter().any(|row| row.actor.path == "/user"));
}

#[test]
fn clients_that_look_at_other_things_in_turn_let_every_walk_end() {
    let time = ManualTime::start();
    // Several slices of a walk.
    time.spawn("many", Props::new(|| Parent(5_000)));
    let shop = time.spawn("shop", Props::new(|| Parent(3)));
    time.settle();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let below = |at: &str, path: &str| {
        let page = inspect::tree(&target, &TreeQuery { at: at.into(), page: 0 }).unwrap();
        let row = page.rows.into_iter().find(|row| row.actor.path == path).unwrap();
        row.below.value
    };
    let mut known = (None, None);
    for n in 0..40 {
        // So slowly that each new filter takes the place of an old one.
        time.advance(Duration::from_secs(3));
        watcher.sweep(target.now_ns());
        // Two clients at two levels of the tree, and one that types a filter.
        known.0 = known.0.or(below("/user", "/user/shop"));
        known.1 = known.1.or(below("/", "/user"));
        let _page = inspect::actors(&target, &query(&format!("c{n:04}"), Sort::Rate));
    }
    assert!(known.0 == Some(3.0) && known.1.is_some_and(|n| n >= 5_005.0), "{known:?}");
    let page = inspect::actors(&target, &Query::default());
    assert!(page.sweep.is_some_and(|sweep| sweep.age_ms.is_some()), "{known:?}");
    drop(shop);
}

#[test]
fn an_actor_is_shown_in_full_by_path_and_by_pid_and_after_its_end() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let props = Props::new(|| Shop).mailbox(Mailbox::bounded(10)).supervise(Strategy::restart());
    let shop = time.spawn("shop", props);
    time.settle();
    shop.tell(true).unwrap();
    shop.tell(false).unwrap();
    seconds(&time, &watcher, 3);
    let by_path = ActorQuery::Path("/user/shop".into());
    let detail = inspect::actor(&target, &by_path).unwrap();
    seconds(&time, &watcher, 2);
    let again = inspect::actor(&target, &by_path).unwrap();
    assert_eq!(again.depth_history.len(), 2);
    assert_eq!(
        (detail.mailbox.claimed, detail.mailbox.freed),
        (Number::count(2), Number::count(2))
    );
    assert_eq!(detail.failures.len(), 1);
    assert_eq!(detail.failures[0].text, "out of stock");
    let chain: Vec<_> = detail.supervision.iter().map(|row| row.path.as_str()).collect();
    assert_eq!(chain, ["/", "/user", "/user/shop"]);
    // What nobody can read from outside is unknown, and no empty list.
    assert!(detail.timers.is_none() && detail.futures.is_none() && detail.watch.is_none());
    let pid = ActorQuery::Pid(detail.actor.pid.clone());
    assert_eq!(inspect::actor(&target, &pid).unwrap().actor.path, "/user/shop");
    time.system().stop(&shop).unwrap();
    drop(shop);
    time.settle();
    for query in [by_path, pid] {
        let ended = inspect::actor(&target, &query).unwrap();
        assert!(ended.has_ended && ended.actor.path == "/user/shop", "{ended:?}");
        assert_eq!(ended.failures.len(), 1);
    }
    assert!(inspect::actor(&target, &ActorQuery::Pid("nonsense".into())).is_none());
}

#[test]
fn a_view_keeps_no_actor_alive() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let live = time.system().executor().executor().live_len();
    let shop = time.spawn("shop", Props::new(|| Shop));
    seconds(&time, &watcher, 1);
    let _ = inspect::actor(&target, &ActorQuery::Path("/user/shop".into()));
    let _ = inspect::tree(&target, &TreeQuery { at: "/user".into(), page: 0 });
    let _ = inspect::actors(&target, &Query::default());
    time.system().stop(&shop).unwrap();
    drop(shop);
    time.settle();
    assert_eq!(time.system().executor().executor().live_len(), live);
}

#[test]
fn events_have_numbers_and_gaps_are_told() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let shop = time.spawn("shop", Props::new(|| Shop).supervise(Strategy::restart()));
    time.settle();
    for _ in 0..3 {
        shop.tell(true).unwrap();
        time.settle();
    }
    let since = |since, kinds: &[&str]| {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        inspect::events(&target, &EventsQuery { since, kinds })
    };
    let failures = since(0, &["failure"]);
    let first = failures.rows.first().unwrap();
    assert_eq!((first.kind.as_str(), first.path.as_deref()), ("failure", Some("/user/shop")));
    assert!(first.text.contains("out of stock"));
    assert_eq!((failures.gap, failures.lost), (0, Number::count(0)));
    let all = since(0, &[]);
    assert!(all.rows.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
    assert_eq!(since(all.next, &[]).rows, []);
    drop(watcher);
    // Nobody listens any more, and what was kept is gone.
    let gone = since(0, &[]);
    assert_eq!((gone.rows.len(), gone.gap), (0, all.next));
    drop(time.take_failures());
}

#[test]
fn without_a_watcher_nothing_is_left_in_the_system() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let before = time.system().tree();
    let watchers = [Watcher::new(&target), Watcher::new(&target)];
    time.settle();
    assert_eq!(time.system().tree().len(), before.len() + 2);
    let [first, second] = watchers;
    drop(first);
    time.settle();
    assert_eq!(time.system().tree().len(), before.len() + 2, "the other one still looks");
    drop(second);
    time.settle();
    assert_eq!(time.system().tree(), before);
}

#[test]
fn jobs_and_timers_are_shown() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let scheduler = time.system().scheduler().jobs();
    let second = Duration::from_secs(1);
    let job = scheduler.schedule_at_fixed_rate_fn(second, second, DispatcherId::DEFAULT, |_| {});
    assert!(job.is_ok());
    time.settle();
    let page = inspect::jobs(&target, &Query::default());
    let row = page.rows.iter().find(|row| row.mode == "rate").unwrap();
    assert_eq!((row.period_ns, row.due_in_ns), (Number::exact(1e9), Number::exact(1e9)));
    assert!(row.missed.is_unknown() && row.last_run_ns.is_unknown());
    let none = inspect::jobs(&target, &query("mode:delay", Sort::Rate));
    assert_eq!(none.rows, []);
    let timers = inspect::timers(&target);
    assert!(!timers.shards.is_empty());
    for shard in &timers.shards {
        let slots: Vec<usize> = shard.levels.iter().map(Vec::len).collect();
        assert_eq!(slots, [64, 64, 64, 4]);
    }
    assert!(timers.fired_rate.is_unknown());
}

#[test]
fn looking_changes_nothing() {
    let run = |looks: bool| {
        let time = ManualTime::start();
        let out = time.probe::<(u64, u64)>();
        let to = out.actor_ref();
        let props = Props::from_fn(move |cx, n: u64| {
            let at = cx.now().tick().get();
            to.tell((n, at))?;
            Ok(Next::Stay)
        });
        let echo = time.spawn("echo", props);
        let target = Target::of_system(time.system());
        let watcher = looks.then(|| Watcher::new(&target));
        for n in 0..50 {
            echo.tell(n).unwrap();
            time.advance(Duration::from_millis(n * 7));
            if let Some(watcher) = &watcher {
                look(watcher);
                let _ = inspect::overview(&target);
                let _ = inspect::workers(&target);
                let _ = inspect::asks(&target, &Query::default());
                let _ = inspect::deadletters(&target);
                let _ = inspect::actors(&target, &Query::default());
            }
        }
        out.receive_n(50)
    };
    assert_eq!(run(true), run(false));
}
