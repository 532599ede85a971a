//! [`Client`]: asks the console of a program, over a socket or TCP. It blocks.
//!
//! Each request has a connection of its own: there are few, and a program has room for eight.

mod errors;
mod http;
mod list;

use core::time::Duration;
use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use self::http::{Body, Connection, Response};
pub use self::{
    errors::{ClientError, ConnectError},
    list::{Program, list, resolve},
};
use crate::{
    Address,
    frame::Frame,
    query::{Params, QueryParams as _},
    view::{Hello, Param, ParamChange, SCHEMA, View},
};

/// After which silence a stream is dead: a program sends something every five seconds.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// In which time a view must come.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// The longest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Asks the console of one program.
#[derive(Clone, Debug)]
pub struct Client {
    address: Address,
    hello: Hello,
    is_in_control: bool,
}

impl Client {
    /// Connects, and checks that both speak the same major version.
    ///
    /// # Errors
    ///
    /// If nobody listens there, if the answer is not that of a console, or of one with another
    /// major version.
    pub fn connect(to: &Address) -> Result<Self, ConnectError> {
        let (address, hello) = (to.clone(), Hello::default());
        let mut client = Self { address, hello, is_in_control: false };
        let value = client.get_json("hello", &Vec::new());
        let value = value.map_err(|error| ConnectError::request(to, error))?;
        let hello: Hello =
            serde_json::from_value(value).map_err(|_| ConnectError::no_console(to))?;
        if !hello.schema.starts_with("clockjack.console/") {
            return Err(ConnectError::no_console(to));
        }
        if hello.schema != SCHEMA {
            return Err(ConnectError::other_version(to, &hello.schema));
        }
        client.hello = hello;
        Ok(client)
    }

    /// What the program says about itself.
    #[must_use]
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Where the program listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Gets a view.
    ///
    /// # Errors
    ///
    /// If the program does not answer, refuses, or has nothing of this name.
    pub fn get<V: View>(&self, query: &V::Query) -> Result<V, ClientError> {
        let value = self.get_json(V::NAME, &query.to_params())?;
        serde_json::from_value(value).map_err(|error| ClientError::malformed(error.to_string()))
    }

    /// Gets a view as JSON.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn get_json(&self, view: &str, params: &Params) -> Result<Value, ClientError> {
        read_json(self.request(&address_of(view, params), ANSWER_TIME)?)
    }

    /// Requests control. Without it a client only looks: the program refuses its actions. With it
    /// the program still refuses those of a class that it does not allow.
    #[must_use]
    pub fn with_control(self) -> Self {
        Self { is_in_control: true, ..self }
    }

    /// Gets a setting of a component, written as `component.field`, of the graph of this name. The
    /// only graph of a program need not be named.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and if there is no such graph, component or setting.
    pub fn param(&self, graph: Option<&str>, setting: &str) -> Result<Param, ClientError> {
        let graph = graph.map(|graph| ("graph".to_owned(), graph.to_owned()));
        let mut params: Params = graph.into_iter().collect();
        params.push(("setting".to_owned(), setting.to_owned()));
        let value = self.get_json("param", &params)?;
        serde_json::from_value(value).map_err(|error| ClientError::malformed(error.to_string()))
    }

    /// Changes a setting of a component, as [`param`](Self::param) names it, and waits until the
    /// new value is in force: from the next epoch of the run on.
    ///
    /// # Errors
    ///
    /// If the client has not [requested control](Self::with_control), if the program does not allow
    /// the class `GRAPHS`, if there is no such graph, component or setting, if the run or the
    /// component refuses the value, if the run has ended, or if it begins no epoch for five
    /// seconds; the change is then made as soon as it begins one.
    pub fn set_param(
        &self,
        graph: Option<&str>,
        setting: &str,
        value: &Value,
    ) -> Result<ParamChange, ClientError> {
        let mut body = json!({
            "do": "set", "control": self.is_in_control, "setting": setting, "value": value,
        });
        if let Some(graph) = graph {
            body["graph"] = graph.into();
        }
        let response = http::post(&self.address, "/v1/act", &body.to_string(), ANSWER_TIME)?;
        let change = read_json(accepted(response)?)?;
        serde_json::from_value(change).map_err(|error| ClientError::malformed(error.to_string()))
    }

    /// Subscribes to views, each with its parameters, at this many frames per second.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn stream(&self, views: &[(&str, Params)], hz: f64) -> Result<Stream, ClientError> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (view, params) in views {
            query.append_pair("view", &subscription(view, params));
        }
        query.append_pair("hz", &hz.to_string());
        let path = format!("/v1/stream?{}", query.finish());
        let response = self.request(&path, SILENCE_MAX)?;
        Ok(Stream { body: BufReader::new(response.body) })
    }

    fn request(&self, path: &str, silence_max: Duration) -> Result<Response, ClientError> {
        accepted(http::get(&self.address, path, silence_max)?)
    }
}

/// The answer, if the request was not refused.
fn accepted(response: Response) -> Result<Response, ClientError> {
    if response.status == 200 {
        return Ok(response);
    }
    let status = response.status;
    // The reason is a nicety; the status alone tells, too.
    let text = response.body.text(ANSWER_BYTES_MAX).unwrap_or_default();
    let reason = serde_json::from_str::<Value>(&text).ok();
    let reason = reason.as_ref().and_then(|value| value["error"].as_str()).unwrap_or("");
    Err(ClientError::refused(status, reason))
}

fn read_json(response: Response) -> Result<Value, ClientError> {
    let text = response.body.text(ANSWER_BYTES_MAX)?;
    serde_json::from_str(&text).map_err(|error| ClientError::malformed(error.to_string()))
}

/// The name under which the frames of a view come.
#[must_use]
pub fn subscription(view: &str, params: &Params) -> String {
    if params.is_empty() { view.to_owned() } else { format!("{view}?{}", encode(params)) }
}

fn address_of(view: &str, params: &Params) -> String {
    format!("/v1/{}", subscription(view, params))
}

fn encode(params: &Params) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish()
}

/// What comes on a stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// What changed in a view.
    Frame(Frame),
    /// So many frames were left out, because they were not read in time. The next one is complete.
    Skipped(u64),
    /// Nothing has changed.
    Alive,
    /// The program has closed its console.
    Bye,
}

/// Frames of the views that a client has subscribed to.
#[derive(Debug)]
pub struct Stream {
    body: BufReader<Body>,
}

/// Ends a stream from another thread, which may wait for the next event.
#[derive(Debug)]
pub struct Closer(Connection);

impl Closer {
    /// Closes the connection of the stream, so that the program has room for another client.
    pub fn close(&self) {
        self.0.shut_down();
    }
}

impl Stream {
    /// What can end this stream from another thread.
    ///
    /// # Errors
    ///
    /// If the operating system refuses another handle of the connection.
    pub fn closer(&self) -> Result<Closer, ClientError> {
        self.body.get_ref().connection().map(Closer).map_err(ClientError::io)
    }

    /// Waits for the next event; `None` if the program has gone.
    ///
    /// # Errors
    ///
    /// If nothing comes for 15 seconds, or if what comes is no event.
    pub fn next_event(&mut self) -> Result<Option<Event>, ClientError> {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).map_err(ClientError::io)? == 0 {
                return Ok(None);
            }
            let line = line.trim_end_matches(['\n', '\r']);
            if let Some(rest) = line.strip_prefix("event: ") {
                rest.clone_into(&mut name);
            } else if let Some(rest) = line.strip_prefix("data: ") {
                rest.clone_into(&mut data);
            } else if line.is_empty() {
                return event(&name, &data).map(Some);
            }
        }
    }
}

fn event(name: &str, data: &str) -> Result<Event, ClientError> {
    let malformed = |error: serde_json::Error| ClientError::malformed(error.to_string());
    Ok(match name {
        "frame" => Event::Frame(serde_json::from_str(data).map_err(malformed)?),
        "skipped" => {
            let value: Value = serde_json::from_str(data).map_err(malformed)?;
            Event::Skipped(value["n"].as_u64().unwrap_or(0))
        }
        "bye" => Event::Bye,
        // A comment, or an event of a later version.
        _ => Event::Alive,
    })
}
