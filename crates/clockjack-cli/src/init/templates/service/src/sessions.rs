//! The actors: [`Sessions`] finds or starts the session of a name, and each session is an actor.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use clockjack::{
    exec::Pid,
    observe::samples::{Sample, SampleSet},
    prelude::*,
};

/// The maximum number of sessions.
pub const SESSIONS_MAX: usize = 10_000;
/// The maximum number of notes in a session.
pub const NOTES_MAX: usize = 100;
/// A session without requests ends after this time.
pub const IDLE_MAX: Duration = Duration::from_secs(10 * 60);
/// How many requests of one session may wait.
const REQUESTS_WAITING_MAX: usize = 32;

/// A request to a session.
pub enum Request {
    /// Adds a note and answers with the number of notes. Starts the session if there is none.
    Add {
        text: String,
        reply_to: ReplyTo<Result<usize, Refusal>>,
    },
    /// Answers with all notes.
    List {
        reply_to: ReplyTo<Result<Vec<String>, Refusal>>,
    },
}

impl Request {
    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Add { reply_to, .. } => reply_to.reply(Err(refusal)),
            Self::List { reply_to } => reply_to.reply(Err(refusal)),
        }
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no session with this name.
    NoSession,
    /// The session has too many notes.
    SessionFull,
    /// There are too many sessions, or too many requests wait for this one.
    Busy,
}

/// The messages of [`Sessions`].
pub enum Msg {
    /// A request to the session with this name.
    To { name: String, request: Request },
    /// Asks for the number of sessions.
    Count(ReplyTo<usize>),
}

/// Finds or starts the session of a name, and forwards requests to it.
pub struct Sessions {
    sessions: HashMap<String, ActorRef<Request>>,
    names: HashMap<Pid, String>,
    sessions_max: usize,
    n_started: u64,
    figures: Arc<Figures>,
}

impl Sessions {
    /// No sessions yet.
    #[must_use]
    pub fn new(sessions_max: usize, figures: Arc<Figures>) -> Self {
        Self {
            sessions: HashMap::new(),
            names: HashMap::new(),
            sessions_max,
            n_started: 0,
            figures,
        }
    }

    fn forward(
        &mut self,
        cx: &mut Context<'_, Self>,
        name: String,
        mut request: Request,
    ) -> Result<(), Failure> {
        if let Some(session) = self.sessions.get(&name) {
            let Err(returned) = session.tell(request) else {
                return Ok(());
            };
            let is_full = returned.is_full();
            request = returned.into_inner();
            if is_full {
                request.refuse(Refusal::Busy);
                return Ok(());
            }
            // The session has just ended, and its `Terminated` is on its way.
            self.sessions.remove(&name);
        }
        if let Request::List { .. } = request {
            request.refuse(Refusal::NoSession);
        } else if self.sessions.len() >= self.sessions_max {
            request.refuse(Refusal::Busy);
        } else {
            self.start(cx, name)?.tell(request)?;
        }
        Ok(())
    }

    fn start(
        &mut self,
        cx: &mut Context<'_, Self>,
        name: String,
    ) -> Result<ActorRef<Request>, Failure> {
        self.n_started += 1;
        let figures = Arc::clone(&self.figures);
        let session = Props::new(move || Session::new(Arc::clone(&figures)))
            .mailbox(Mailbox::bounded(REQUESTS_WAITING_MAX));
        // The number makes the path unique: the last session of this name may not be gone yet.
        let session = cx.spawn_child(&format!("{name}-{}", self.n_started), session)?;
        cx.watch(&session)?;
        self.names.insert(session.pid(), name.clone());
        self.sessions.insert(name, session.clone());
        Ok(session)
    }
}

impl Actor for Sessions {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::To { name, request } => self.forward(cx, name, request)?,
            Msg::Count(reply_to) => reply_to.reply(self.sessions.len()),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let Signal::Terminated(ended) = signal else {
            return Ok(Next::Unhandled);
        };
        if let Some(name) = self.names.remove(&ended.pid) {
            // There may be a new session of this name already.
            let is_ended = |it: &ActorRef<Request>| it.pid() == ended.pid;
            if self.sessions.get(&name).is_some_and(is_ended) {
                self.sessions.remove(&name);
            }
        }
        Ok(Next::Stay)
    }
}

/// The notes of one name.
struct Session {
    notes: Vec<String>,
    figures: Arc<Figures>,
}

impl Session {
    fn new(figures: Arc<Figures>) -> Self {
        figures.sessions_started.fetch_add(1, Relaxed);
        Self {
            notes: Vec::new(),
            figures,
        }
    }
}

impl Actor for Session {
    type Msg = Request;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.set_receive_timeout(IDLE_MAX);
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, request: Request) -> Result<Next, Failure> {
        match request {
            Request::Add { reply_to, .. } if self.notes.len() >= NOTES_MAX => {
                reply_to.reply(Err(Refusal::SessionFull));
            }
            Request::Add { text, reply_to } => {
                self.notes.push(text);
                self.figures.notes_added.fetch_add(1, Relaxed);
                reply_to.reply(Ok(self.notes.len()));
            }
            Request::List { reply_to } => reply_to.reply(Ok(self.notes.clone())),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            // It never fires while a request waits.
            Signal::ReceiveTimeout => Ok(Next::Stop),
            // A service that stores its notes would do it here: the drain waits for this signal.
            Signal::PostStop => {
                tracing::debug!(session = %cx.path(), notes = self.notes.len(), "session ended");
                Ok(Next::Stay)
            }
            _ => Ok(Next::Unhandled),
        }
    }
}

/// However a session ends, also by a failure, it is counted.
impl Drop for Session {
    fn drop(&mut self) {
        self.figures.sessions_ended.fetch_add(1, Relaxed);
    }
}

/// What the service counts, for `/metrics`.
#[derive(Debug, Default)]
pub struct Figures {
    sessions_started: AtomicU64,
    sessions_ended: AtomicU64,
    notes_added: AtomicU64,
}

impl Figures {
    /// Adds the figures to a page of metrics.
    pub fn add_to(&self, set: &mut SampleSet) {
        for (name, figure, help) in [
            (
                "service.sessions_started",
                &self.sessions_started,
                "Sessions that were started.",
            ),
            (
                "service.sessions_ended",
                &self.sessions_ended,
                "Sessions that have ended.",
            ),
            (
                "service.notes_added",
                &self.notes_added,
                "Notes that were added.",
            ),
        ] {
            set.push(&Sample::counter(name, figure.load(Relaxed)).help(help));
        }
    }
}
