//! A program that is looked at: clients over a socket and over TCP, streams, and nobody.

#[path = "console/linux.rs"]
mod linux;
#[path = "console/unix.rs"]
mod unix;
#[path = "console/windows.rs"]
mod windows;

use core::time::Duration;
use std::sync::{Arc, mpsc};

use clockjack_console::{
    Address,
    client::{Client, Event},
    frame::Mirror,
    query::{ActorQuery, Filter, NoQuery, Params, Query},
    server::{Bind, Console, Control, Opened},
    view::{ActorDetail, ActorRow, Auth, Overview, Page},
};
use clockjack_rt::{
    Runtime,
    actor::{Context, Failure, Props},
};

fn on_tcp(runtime: &Runtime) -> Opened {
    Console::of(runtime).bind(Bind::Loopback(0)).open().unwrap()
}

/// A program with one actor, and a client of it.
fn house() -> (Runtime, Opened, Client) {
    let runtime = Runtime::new("house").unwrap();
    runtime.spawn("till", Props::from_fn(|_cx, (): ()| ())).unwrap();
    let console = on_tcp(&runtime);
    let client = Client::connect(console.address()).unwrap();
    (runtime, console, client)
}

#[test]
fn a_client_with_the_token_learns_who_answers() {
    let (_runtime, console, client) = house();
    let hello = client.hello();
    assert_eq!(hello.auth, Auth::Token);
    assert_eq!(hello.system.as_deref(), Some("house"));
    assert_eq!(hello.pid, Some(std::process::id()));
    assert!(hello.control.is_empty());
    let overview: Overview = client.get(&NoQuery).unwrap();
    assert_eq!(overview.system, "house");

    let Address::Tcp(at, _) = console.address() else { panic!("it is on TCP") };
    let stranger = Client::connect(&Address::Tcp(*at, None)).unwrap();
    assert_eq!(stranger.hello().system, None);
    let error = stranger.get::<Overview>(&NoQuery).unwrap_err();
    assert!(error.is_not_allowed(), "{error}");
}

#[test]
fn a_program_whose_last_actor_has_failed_ends_although_it_is_looked_at() {
    let runtime = Runtime::new("house").unwrap();
    let fails = Props::from_fn(|_cx, (): ()| Err::<(), _>(Failure::msg("out of paper")));
    let till = runtime.spawn("till", fails).unwrap();
    let console = Console::of(&runtime).bind(Bind::Loopback(0));
    let console = console.health(([127, 0, 0, 1], 0).into()).open().unwrap();
    let client = Client::connect(console.address()).unwrap();
    // The console has subscribed to events and holds all that it ever holds.
    let _overview: Overview = client.get(&NoQuery).unwrap();
    let (ended, end) = mpsc::channel();
    let run = std::thread::spawn(move || ended.send(runtime.run()).expect("somebody waits"));
    till.tell(()).unwrap();
    let report = end.recv_timeout(Duration::from_secs(60)).expect("the run ends");
    assert_eq!(report.failure.unwrap().path.to_string(), "/user/till");
    run.join().unwrap();
    let overview: Overview = client.get(&NoQuery).unwrap();
    assert_eq!(overview.system, "house", "the console outlives the system");
    console.close();
}

#[test]
fn what_does_not_exist_and_what_is_invalid_are_told_apart() {
    let (_runtime, _console, client) = house();
    let nobody = ActorQuery::Path("/user/nobody".into());
    let error = client.get::<ActorDetail>(&nobody).unwrap_err();
    assert!(error.is_not_found(), "{error}");
    let wrong: Params = vec![("filter".into(), "depth>x".into())];
    let error = client.get_json("actors", &wrong).unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("filter"), "{error}");
    let query = Query { filter: Filter::parse("-path:/system").unwrap(), ..Query::default() };
    let _page: Page<ActorRow> = client.get(&query).unwrap();
}

#[test]
fn a_stream_has_the_views_that_were_asked_for_until_the_console_closes() {
    let (_runtime, console, client) = house();
    let views = [("overview", Params::new()), ("workers", Params::new())];
    let mut stream = client.stream(&views, 10.0).unwrap();
    let mut mirrors = [Mirror::default(), Mirror::default()];
    while mirrors.iter().any(|mirror| mirror.value().is_none()) {
        if let Some(Event::Frame(frame)) = stream.next_event().unwrap() {
            let at = views.iter().position(|(view, _)| *view == frame.view).unwrap();
            mirrors[at].apply(frame);
        }
    }
    assert_eq!(mirrors[0].value().unwrap()["system"], "house");
    console.close();
    let is_end = |event: &Option<Event>| matches!(event, None | Some(Event::Bye));
    let mut events = core::iter::from_fn(|| Some(stream.next_event().unwrap()));
    assert_eq!(events.find(is_end).unwrap(), Some(Event::Bye));
    assert!(Client::connect(client.address()).is_err());
}

#[test]
fn eight_clients_look_and_the_ninth_is_told_to_wait() {
    let (_runtime, console, client) = house();
    let view = [("overview", Params::new())];
    let mut streams: Vec<_> = (0..8).map(|_| client.stream(&view, 1.0)).collect();
    // The connection of `hello` may still have been there.
    let n_open = streams.iter().filter(|stream| stream.is_ok()).count();
    assert!(n_open >= 7, "{n_open}");
    streams.retain(Result::is_ok);
    while streams.len() < 8 {
        streams.extend([client.stream(&view, 1.0)].into_iter().filter(Result::is_ok));
    }
    assert_eq!(console.clients(), 8);
    let error = client.get::<Overview>(&NoQuery).unwrap_err();
    assert!(error.is_busy(), "{error}");
}

#[test]
fn the_program_says_what_it_allows() {
    let runtime = Runtime::new("house").unwrap();
    let console = Console::of(&runtime).bind(Bind::Loopback(0)).control(Control::JOBS);
    let console = console.open().unwrap();
    let client = Client::connect(console.address()).unwrap();
    assert_eq!(client.hello().control, ["JOBS"]);
}

#[test]
fn health_names_no_actor_and_needs_no_token() {
    use std::io::{Read as _, Write as _};
    let runtime = Runtime::new("house").unwrap();
    runtime.spawn("secret", Props::from_fn(|_cx, (): ()| ())).unwrap();
    let ready = Arc::new(core::sync::atomic::AtomicBool::new(false));
    let is_ready = ready.clone();
    let console = Console::of(&runtime).bind(Bind::Loopback(0));
    let console = console.health(([127, 0, 0, 1], 0).into());
    let console = console.ready(move || is_ready.load(core::sync::atomic::Ordering::Relaxed));
    let console = console.open().unwrap();
    let get = |path: &str| {
        let mut stream = std::net::TcpStream::connect(console.health_addr().unwrap()).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get("/alive").starts_with("HTTP/1.0 200"));
    assert!(get("/ready").starts_with("HTTP/1.0 503"));
    ready.store(true, core::sync::atomic::Ordering::Relaxed);
    assert!(get("/ready").starts_with("HTTP/1.0 200"));
    let metrics = get("/metrics");
    assert!(metrics.contains("\nclockjack_actors_live "), "{metrics}");
    assert!(!metrics.contains("/user/secret"), "{metrics}");
    assert!(get("/v1/overview").starts_with("HTTP/1.0 404"));
}

/// A sensor, and what shows it.
const CELL: &str = "
schema_version: 1
graph: { name: cell }
lanes:
  main: { type: fixed_rate, period_ms: 100 }
components:
  - id: sensor
    type: input
    execution: { lane: main }
    boundary: { role: input }
    config: { pattern: ramp }
  - id: display
    type: output
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    execution: { lane: main }
    boundary: { role: output }
edges:
  - { id: seen, kind: immediate, from: sensor.out, to: display.in }
";

#[test]
fn a_graph_is_drawn_as_render_draws_it() {
    use std::io::{Read as _, Write as _};

    use clockjack_graph::{
        GraphFile, Registry, RunOptions,
        picture::{Fold, Picture, svg},
    };

    let runtime = Runtime::new("house").unwrap();
    let graph = GraphFile::parse("cell.yaml", CELL).unwrap().compile(&Registry::standard());
    let graph = graph.unwrap_or_else(|faults| panic!("{faults:#?}"));
    let drawing = svg::draw(&Picture::of(graph.plan()), Fold::Auto);
    let run = graph.start(runtime.system(), RunOptions::until_stopped()).unwrap();
    let console = Console::of(&runtime).bind(Bind::Loopback(0)).graph("belt", &run).open().unwrap();
    let Address::Tcp(at, _) = console.address() else { panic!("it is on TCP") };
    let url = console.url().unwrap();
    let (_, token) = url.split_once("#t=").unwrap();
    let get = |name: &str, token: &str| {
        let mut stream = std::net::TcpStream::connect(at).unwrap();
        let head = format!("host: {at}\r\nauthorization: Bearer {token}\r\n\r\n");
        write!(stream, "GET /v1/graph.svg{name} HTTP/1.0\r\n{head}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    // The second answer is made of what the first one has kept.
    for _ in 0..2 {
        let answer = get("?name=belt", token);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.0 200"), "{head}");
        assert!(head.contains("content-type: image/svg+xml"), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
        assert_eq!(body, drawing);
    }
    assert!(get("?name=other", token).starts_with("HTTP/1.0 404"));
    assert!(get("", token).starts_with("HTTP/1.0 400"));
    assert!(get("?name=belt", "wrong").starts_with("HTTP/1.0 401"));
}
#[test]
fn paths_are_shown_as_the_program_wants() {
    use clockjack_rt::actor::{Actor, ActorPath, Next};
    use std::borrow::Cow;

    struct Asker;
    impl Actor for Asker {
        type Msg = ();
        fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
            Ok(Next::Stay)
        }
    }

    fn shown(path: &ActorPath) -> Cow<'_, str> {
        if path.depth() > 1 { "/user/(hidden)".into() } else { path.to_string().into() }
    }
    let runtime = Runtime::new("house").unwrap();
    runtime.spawn("anna", || Asker).unwrap();
    let console = Console::of(&runtime).bind(Bind::Loopback(0)).names(shown).open().unwrap();
    let client = Client::connect(console.address()).unwrap();
    // No question tells which names there are.
    let is_found = |view: &str, name: &str, value: &str| {
        let answer = client.get_json(view, &vec![(name.to_owned(), value.to_owned())]);
        !answer.is_err_and(|error| error.is_not_found())
    };
    assert!(!is_found("actor", "path", "/user/anna") && !is_found("tree", "at", "/user/anna"));
    assert!(is_found("actor", "path", "/user") && is_found("tree", "at", "/user"));
    let matches = |filter: &str| {
        let query = Query { filter: Filter::parse(filter).unwrap(), ..Query::default() };
        client.get::<Page<ActorRow>>(&query).unwrap().rows.len()
    };
    assert_eq!(matches("anna"), 0);
    assert!(matches("hidden") >= 1);
    // What a walk finds for a stream is the same.
    let params: Params = vec![("filter".into(), "anna".into())];
    let hidden: Params = vec![("filter".into(), "hidden".into())];
    let views = [("actors", params), ("actors", hidden)];
    let mut stream = client.stream(&views, 10.0).unwrap();
    let mut mirrors = [Mirror::default(), Mirror::default()];
    let is_walked = |mirror: &Mirror| mirror.value().is_some_and(|value| !value["sweep"].is_null());
    while !mirrors.iter().all(is_walked) {
        if let Some(Event::Frame(frame)) = stream.next_event().unwrap() {
            mirrors[usize::from(frame.view.ends_with("hidden"))].apply(frame);
        }
    }
    assert_eq!(mirrors[0].value().unwrap()["rows"], serde_json::json!([]));
    assert_ne!(mirrors[1].value().unwrap()["rows"], serde_json::json!([]));
    for view in ["actors", "overview", "workers", "events"] {
        let text = client.get_json(view, &Params::new()).unwrap().to_string();
        assert!(!text.contains("anna"), "{view}: {text}");
    }
}
