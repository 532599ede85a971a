//! Actions, which change something, and the settings that they change.
//!
//! An action passes these checks, in this order: its sender may look (`guard.rs`), the program
//! allows the class of the action, this version carries it out, and the client requests control.
//! Every action is an event with who has asked, also a refused one.

use core::{fmt, time::Duration};
use std::sync::Arc;

use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use clockjack_graph::{
    Plan, Stopper,
    describe::ConfigValue,
    run::{Committing, ConfigRefused},
};
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinError,
    time::timeout,
};

use super::{
    Control,
    guard::Access,
    routes::{Shared, answer, check_access, params, refusal},
};
use crate::{
    Target,
    state::log::ACTION,
    view::{Param, ParamChange},
};

/// For how long a client waits for a change: shorter than a client of ours waits for an answer.
const COMMIT_TIME: Duration = Duration::from_secs(5);
/// Changes that wait for an epoch at the same time.
const WAITING_MAX: usize = 64;
/// The longest part of an event's text, in characters, that is written by a client.
const PART_MAX: usize = 80;
/// The most names that a refusal lists.
const NAMES_MAX: usize = 12;

/// Who is at the other end of a connection, by the operating system.
#[derive(Clone, Debug)]
pub(super) struct Asker(Arc<str>);

impl Asker {
    pub(super) fn new(name: &str) -> Self {
        Self(name.into())
    }
}

/// Room for changes that wait for an epoch.
#[derive(Clone, Debug)]
pub(super) struct Waiting(Arc<Semaphore>);

impl Default for Waiting {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(WAITING_MAX)))
    }
}

impl Waiting {
    fn enter(&self) -> Result<OwnedSemaphorePermit, Refused> {
        Arc::clone(&self.0).try_acquire_owned().map_err(|_| {
            let what = format!("{WAITING_MAX} changes wait for an epoch already");
            Refused::new(StatusCode::CONFLICT, what)
        })
    }
}

/// Why a request is refused.
struct Refused {
    status: StatusCode,
    what: String,
    /// What the program does not allow, or the client has not requested.
    missing: Option<String>,
}

impl Refused {
    fn new(status: StatusCode, what: impl Into<String>) -> Self {
        Self { status, what: what.into(), missing: None }
    }

    fn invalid(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, what)
    }

    fn unknown(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    fn missing(class: &str, what: impl Into<String>) -> Self {
        let missing = Some(class.to_owned());
        Self { missing, ..Self::new(StatusCode::FORBIDDEN, what) }
    }

    /// The run has refused a change.
    fn by_run(refused: &ConfigRefused) -> Self {
        let is_of_run = refused.component().is_empty();
        let status = if is_of_run { StatusCode::CONFLICT } else { StatusCode::BAD_REQUEST };
        Self::new(status, refused.to_string())
    }

    fn response(self) -> Response {
        match self.missing {
            None => refusal(self.status, self.what),
            Some(class) => answer(self.status, &json!({ "error": self.what, "missing": class })),
        }
    }
}

/// Tells what came of an action as an event.
#[derive(Clone)]
struct Teller {
    target: Target,
    asker: Asker,
    action: String,
}

impl Teller {
    fn tell(&self, what: impl fmt::Display) {
        let text = format!("{}: {}: {what}", self.asker.0, self.action);
        let now_ns = self.target.now_ns();
        self.target.log().push(ACTION, None, &text, now_ns);
    }

    fn refuse(&self, refused: &Refused) {
        self.tell(format_args!("refused: {}", refused.what));
    }
}

/// Carries out an action.
pub(super) async fn act(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(asker): Extension<Asker>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Response> {
    check_access(access)?;
    // A page of another site can send a form without asking, but no JSON.
    if headers.get(CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
        let what = "the body must be `application/json`";
        return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
    }
    let bad = |what: String| refusal(StatusCode::BAD_REQUEST, what);
    let body: Value = serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
    let action = body["do"].as_str().ok_or_else(|| bad("the member `do` is missing".into()))?;
    let target = shared.source.target().clone();
    let teller = Teller { target, asker, action: title(action, &body) };
    let begun = check(&shared, action, &body)
        .and_then(|()| shared.waiting.enter())
        .and_then(|permit| Ok((Change::begin(&teller.target, &body)?, permit)));
    let (change, permit) = begun.map_err(|refused| {
        teller.refuse(&refused);
        refused.response()
    })?;
    change.finish(teller, permit).await.map_err(Refused::response)
}

/// An action in the text of an event. What the client has written is cut.
fn title(action: &str, body: &Value) -> String {
    let mut title = cut(action);
    let members = [("setting", " "), ("value", " = "), ("graph", " of "), ("path", " ")];
    for (name, before) in members {
        match body.get(name) {
            None => {}
            // A value that is a text keeps its quotes.
            Some(Value::String(text)) if name != "value" => {
                title += &(before.to_owned() + &cut(text))
            }
            Some(value) => title += &(before.to_owned() + &cut(&value.to_string())),
        }
    }
    title
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(PART_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}..", &text[..end]),
    }
}

/// The class of an action; `None` if there is no such action.
fn class_of(action: &str) -> Option<Control> {
    Some(match action {
        "stop" | "restart" | "suspend" | "resume" => Control::ACTORS,
        "cancel-job" => Control::JOBS,
        "set" | "step" | "stop-run" => Control::GRAPHS,
        "watch" | "keep" | "mark" | "trace" => Control::INSPECT,
        "level" => Control::LEVELS,
        _ => return None,
    })
}

/// Whether the client may have the action carried out.
fn check(shared: &Shared, action: &str, body: &Value) -> Result<(), Refused> {
    let class = class_of(action);
    let class = class.ok_or_else(|| Refused::invalid(format!("unknown action `{action}`")))?;
    let name = class.names().concat();
    if !shared.source.hello().control.contains(&name) {
        let what = format!("the program does not allow the class {name}");
        return Err(Refused::missing(&name, what));
    }
    if action != "set" {
        let what = format!("`{action}` is not carried out by this version");
        return Err(Refused::new(StatusCode::NOT_IMPLEMENTED, what));
    }
    if body["control"] != true {
        let what = "a client must request control: `\"control\": true`";
        return Err(Refused::missing("control", what));
    }
    Ok(())
}

/// A change of a setting that its run has accepted, or refuses soon.
struct Change {
    graph: String,
    setting: String,
    old: Value,
    new: Value,
    committing: Committing,
}

impl Change {
    fn begin(target: &Target, body: &Value) -> Result<Self, Refused> {
        let text = |name: &str| match body.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(Refused::invalid(format!("the member `{name}` must be a text"))),
        };
        let missing = |name: &str| Refused::invalid(format!("the member `{name}` is missing"));
        let setting = text("setting")?.ok_or_else(|| missing("setting"))?;
        let new = body.get("value").ok_or_else(|| missing("value"))?;
        let (graph, run) = find_graph(target, text("graph")?)?;
        check_setting(run.plan(), setting)?;
        let value = to_config(new)?;
        let old = run.get(setting).map_or(Value::Null, to_json);
        let committing = run.set(setting, value);
        Ok(Self { graph, setting: setting.to_owned(), old, new: new.clone(), committing })
    }

    /// Waits until the change is in force or refused.
    ///
    /// A task of its own waits, so that the event is recorded even if the client has gone, or the
    /// run begins no epoch in time.
    async fn finish(
        self,
        teller: Teller,
        permit: OwnedSemaphorePermit,
    ) -> Result<Response, Refused> {
        let Self { graph, setting, old, new, committing } = self;
        let late = teller.clone();
        let mut finished = tokio::spawn(async move {
            let result = committing.await.map_err(|refused| Refused::by_run(&refused));
            drop(permit);
            match &result {
                Ok(_) => teller.tell(format_args!("done, was {}", cut(&old.to_string()))),
                Err(refused) => teller.refuse(refused),
            }
            result.map(|version| ParamChange { graph, setting, old, new, version })
        });
        let Ok(finished) = timeout(COMMIT_TIME, &mut finished).await else {
            let what = "the run has begun no epoch for 5 s; the change waits for the next one";
            late.tell(what);
            return Err(Refused::new(StatusCode::GATEWAY_TIMEOUT, what));
        };
        let broken =
            |error: JoinError| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
        finished.map_err(broken)?.map(|change| answer(StatusCode::OK, &json!(change)))
    }
}

/// Shows a setting of a graph.
pub(super) async fn param(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    check_access(access)?;
    let params = params(query.as_deref());
    let get = |name: &str| params.iter().find(|(key, _)| key == name).map(|(_, it)| it.as_str());
    let param = read(shared.source.target(), get("graph"), get("setting"));
    param.map(|param| answer(StatusCode::OK, &json!(param))).map_err(Refused::response)
}

fn read(target: &Target, graph: Option<&str>, setting: Option<&str>) -> Result<Param, Refused> {
    let missing = || Refused::invalid("the parameter `setting` is missing");
    let setting = setting.ok_or_else(missing)?;
    let (graph, run) = find_graph(target, graph)?;
    check_setting(run.plan(), setting)?;
    let value = run.get(setting);
    let is_default = value.is_none();
    let value = value.map_or(Value::Null, to_json);
    Ok(Param { graph, setting: setting.to_owned(), value, is_default })
}

/// The graph of this name, or the only one.
fn find_graph(target: &Target, name: Option<&str>) -> Result<(String, Stopper), Refused> {
    let mut graphs = target.graphs();
    let at = match name {
        Some(name) => graphs.iter().position(|(one, _)| one == name),
        None if graphs.len() > 1 => {
            let names = listed(graphs.iter().map(|(name, _)| name.as_str()));
            let what = format!("the program shows several graphs, so one must be named: {names}");
            return Err(Refused::invalid(what));
        }
        None => (!graphs.is_empty()).then_some(0),
    };
    if let Some(at) = at {
        return Ok(graphs.swap_remove(at));
    }
    let there_is_no = name.map_or(String::new(), |name| format!("there is no graph `{name}`; "));
    let names = listed(graphs.iter().map(|(name, _)| name.as_str()));
    Err(Refused::unknown(format!("{there_is_no}the program shows the graphs: {names}")))
}

/// Checks that a component has a setting of this name, or takes any.
fn check_setting(plan: &Plan, setting: &str) -> Result<(), Refused> {
    let Some((id, field)) = setting.rsplit_once('.') else {
        let what = format!("`{setting}` is no setting: it is written as `component.field`");
        return Err(Refused::invalid(what));
    };
    let Some(component) = plan.components.iter().find(|one| one.spec.id == id) else {
        let names = listed(plan.components.iter().map(|one| one.spec.id.as_str()));
        let what = format!("there is no component `{id}`; the graph has: {names}");
        return Err(Refused::unknown(what));
    };
    let of = &component.descriptor;
    if of.open_config || of.config.iter().any(|one| one.name == field) {
        return Ok(());
    }
    let names = listed(of.config.iter().map(|one| one.name.as_str()));
    let what = format!("`{}` has no setting `{field}`; it has: {names}", of.component_type);
    Err(Refused::unknown(what))
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => "none".to_owned(),
        n if n > NAMES_MAX => {
            format!("{} and {} others", names[..NAMES_MAX].join(", "), n - NAMES_MAX)
        }
        _ => names.join(", "),
    }
}

fn to_config(value: &Value) -> Result<ConfigValue, Refused> {
    Ok(match value {
        Value::Null => ConfigValue::Null,
        Value::Bool(is_true) => (*is_true).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(float)) if number.is_f64() => float.into(),
            _ => return Err(Refused::invalid(format!("{number} is larger than any setting"))),
        },
        Value::String(text) => text.as_str().into(),
        nested => ConfigValue::Nested(nested.to_string()),
    })
}

fn to_json(value: ConfigValue) -> Value {
    match value {
        ConfigValue::Null => Value::Null,
        ConfigValue::Bool(is_true) => is_true.into(),
        ConfigValue::Int(number) => number.into(),
        // JSON has no name for what is not finite.
        ConfigValue::Float(float) if !float.is_finite() => float.to_string().into(),
        ConfigValue::Float(float) => float.into(),
        ConfigValue::Text(text) => text.into(),
        ConfigValue::Nested(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}
