//! [`Feed`]: frames of the subscribed views, received on a thread of its own.

use core::{error::Error as _, fmt, time::Duration};
use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
};

use crate::{
    client::{Client, ClientError, Closer, Event, Stream},
    query::Params,
};

/// How many updates may wait for the screen; the program skips frames of a client that is slower.
const UPDATES_MAX: usize = 64;

/// How often a program without room is asked again, and after which time.
const BUSY_MAX: u32 = 20;
const BUSY_TIME: Duration = Duration::from_millis(100);

/// A view with its parameters.
pub(super) type Subscription = (&'static str, Params);

/// What a feed reports.
pub(super) enum Update {
    /// From now on the views are those that were subscribed to last.
    Connected,
    Event(Event),
    /// The stream has ended, for this reason if there is one.
    Ended(Option<ClientError>),
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connected => "Connected",
            Self::Event(_) => "Event",
            Self::Ended(_) => "Ended",
        })
    }
}

/// A subscription. Dropping it ends the subscription at once: a program has room for eight clients,
/// and eight keys may be pressed before the next frame comes.
#[derive(Debug)]
pub(super) struct Feed {
    updates: Receiver<Update>,
    link: Arc<Link>,
}

/// What the thread of a feed and its owner share.
#[derive(Debug, Default)]
struct Link {
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum Stage {
    /// There is no stream yet.
    #[default]
    Opening,
    Open(Closer),
    Dropped,
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, Stage> {
        // The stage is replaced as a whole.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the owner close the stream; returns whether the owner still wants it.
    fn open(&self, closer: Closer) -> bool {
        let mut stage = self.lock();
        let is_wanted = !matches!(*stage, Stage::Dropped);
        if is_wanted {
            *stage = Stage::Open(closer);
        }
        is_wanted
    }

    fn drop_it(&self) {
        let before = core::mem::replace(&mut *self.lock(), Stage::Dropped);
        if let Stage::Open(closer) = before {
            closer.close();
        }
        self.changed.notify_all();
    }

    /// Waits for a while, or until the owner has dropped the feed; returns whether it has not.
    fn rest(&self, time: Duration) -> bool {
        let is_open = |stage: &mut Stage| !matches!(stage, Stage::Dropped);
        let waited = self.changed.wait_timeout_while(self.lock(), time, is_open);
        let (stage, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !matches!(*stage, Stage::Dropped)
    }
}

impl Feed {
    pub(super) fn start(client: &Client, views: &[Subscription], hz: f64) -> Self {
        let (sender, updates) = mpsc::sync_channel(UPDATES_MAX);
        let link = Arc::new(Link::default());
        let (client, views, other) = (client.clone(), views.to_vec(), link.clone());
        let end = sender.clone();
        let work = move || {
            let result = receive(&client, &views, hz, &sender, &other);
            // The screen that would hear of the end may be gone.
            let _sent = sender.send(Update::Ended(result.err()));
        };
        if thread::Builder::new().name("clockjack-feed".into()).spawn(work).is_err() {
            // There is room in a new channel.
            let _sent = end.try_send(Update::Ended(None));
        }
        Self { updates, link }
    }

    pub(super) fn updates(&self) -> &Receiver<Update> {
        &self.updates
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.link.drop_it();
    }
}

fn receive(
    client: &Client,
    views: &[Subscription],
    hz: f64,
    updates: &SyncSender<Update>,
    link: &Link,
) -> Result<(), ClientError> {
    let Some(mut stream) = open(client, views, hz, link)? else { return Ok(()) };
    let mut is_open = link.open(stream.closer()?) && updates.send(Update::Connected).is_ok();
    while is_open {
        let Some(event) = stream.next_event()? else { return Ok(()) };
        if event == Event::Bye {
            return Ok(());
        }
        is_open = updates.send(Update::Event(event)).is_ok();
    }
    Ok(())
}

/// Whether the program may only have no room now: it has said so, or it has closed the connection
/// at once, as it does when it has no room for that answer either.
fn may_pass(error: &ClientError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    let is_cut =
        |cause: &io::Error| matches!(cause.kind(), BrokenPipe | ConnectionReset | UnexpectedEof);
    error.is_busy() || cause.is_some_and(is_cut)
}

/// The stream; `None` if nobody wants it any more. A program without room has some again soon: it
/// takes a moment until it notices that the stream before has ended.
fn open(
    client: &Client,
    views: &[Subscription],
    hz: f64,
    link: &Link,
) -> Result<Option<Stream>, ClientError> {
    for _ in 0..BUSY_MAX {
        match client.stream(views, hz) {
            Err(error) if may_pass(&error) => {}
            opened => return opened.map(Some),
        }
        if !link.rest(BUSY_TIME) {
            return Ok(None);
        }
    }
    client.stream(views, hz).map(Some)
}
