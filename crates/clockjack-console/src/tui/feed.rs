//! [`Feed`]: frames of the subscribed views, received on a thread of its own.

use core::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};
use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
};

use crate::{
    client::{Client, ClientError, Event},
    query::Params,
};

/// How many updates may wait for the screen; the program skips frames of a client that is slower.
const UPDATES_MAX: usize = 64;

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

/// A subscription. Dropping it ends the subscription with the next frame.
#[derive(Debug)]
pub(super) struct Feed {
    updates: Receiver<Update>,
    is_dropped: Arc<AtomicBool>,
}

impl Feed {
    pub(super) fn start(client: &Client, views: &[Subscription], hz: f64) -> Self {
        let (sender, updates) = mpsc::sync_channel(UPDATES_MAX);
        let is_dropped = Arc::new(AtomicBool::new(false));
        let (client, views, flag) = (client.clone(), views.to_vec(), is_dropped.clone());
        let end = sender.clone();
        let work = move || {
            let result = receive(&client, &views, hz, &sender, &flag);
            // The screen that would hear of the end may be gone.
            let _sent = sender.send(Update::Ended(result.err()));
        };
        if thread::Builder::new().name("clockjack-feed".into()).spawn(work).is_err() {
            // There is room in a new channel.
            let _sent = end.try_send(Update::Ended(None));
        }
        Self { updates, is_dropped }
    }

    pub(super) fn updates(&self) -> &Receiver<Update> {
        &self.updates
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // Relaxed: the flag publishes nothing, and a late look costs one more frame.
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

fn receive(
    client: &Client,
    views: &[Subscription],
    hz: f64,
    updates: &SyncSender<Update>,
    is_dropped: &AtomicBool,
) -> Result<(), ClientError> {
    let mut stream = client.stream(views, hz)?;
    let mut is_open = updates.send(Update::Connected).is_ok();
    while is_open && !is_dropped.load(Ordering::Relaxed) {
        let Some(event) = stream.next_event()? else { return Ok(()) };
        if event == Event::Bye {
            return Ok(());
        }
        is_open = updates.send(Update::Event(event)).is_ok();
    }
    Ok(())
}
