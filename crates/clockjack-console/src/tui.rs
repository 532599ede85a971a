//! `clockjack top`: a running program in a terminal.
//!
//! The screen is made as lines of text (`tui/screen.rs`), which a terminal shows in colour and
//! `--once` writes as they are: so what tests read is what people see. Colour is never the only
//! mark. Views come on a thread of their own (`tui/feed.rs`); no key waits for the program.

mod feed;
mod format;
mod keys;
mod screen;
mod state;
mod table;

use core::time::Duration;
use std::{
    io,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event as TerminalEvent},
};

use self::{feed::Feed, state::State};
use crate::client::{Client, ClientError};

pub use self::{
    keys::{Key, pressed},
    screen::Charset,
    state::Tab,
};

/// How often keys and requests to stop are looked for.
const POLL_TIME: Duration = Duration::from_millis(50);

/// What is shown first, and how.
#[derive(Clone, Debug)]
pub struct TopConfig {
    /// The tab.
    pub tab: Tab,
    /// The filter of lists.
    pub filter: String,
    /// Frames per second.
    pub hz: f64,
    /// Whether the reader understands UTF-8.
    pub charset: Charset,
    /// Whether there are colours.
    pub is_painted: bool,
}

impl Default for TopConfig {
    fn default() -> Self {
        Self {
            tab: Tab::Actors,
            filter: String::new(),
            hz: 2.0,
            charset: Charset::Unicode,
            is_painted: true,
        }
    }
}

/// What a screen shows: everything that was received, and what the user has chosen.
#[derive(Debug)]
pub struct Top {
    state: State,
    config: TopConfig,
    client: Client,
    feed: Feed,
}

impl Top {
    /// Subscribes to what the first tab shows.
    #[must_use]
    pub fn new(client: Client, config: TopConfig) -> Self {
        let state = State::new(&client, &config);
        let feed = Feed::start(&client, &state.subscriptions(), config.hz);
        Self { state, config, client, feed }
    }

    /// Waits until the first complete frame has come, and then for as long as rates need to be
    /// known; returns the screen as text.
    ///
    /// # Errors
    ///
    /// If the program does not answer.
    pub fn once(mut self, width: u16, height: u16, wait: Duration) -> Result<String, ClientError> {
        let end = Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.updates().recv_timeout(left) {
                Ok(update) => {
                    self.state.update(update, now_ms());
                    if let Some(error) = self.state.take_failure() {
                        return Err(error);
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.state.is_complete() => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(ClientError::io(io::ErrorKind::TimedOut.into()));
                }
                Err(RecvTimeoutError::Disconnected) if self.state.is_complete() => break,
                // It has said goodbye, and there is nothing to show.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ClientError::io(io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
        let charset = self.config.charset;
        let lines = screen::lines(&self.state, width, height, charset, now_ms());
        let text = lines.iter().map(|line| {
            let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            format!("{}\n", text.trim_end())
        });
        let text: String = text.collect();
        Ok(format!("{}\n", text.trim_end()))
    }

    /// Shows the program in this process's terminal until the user quits, or `is_stopped` returns
    /// true. The terminal is as before afterwards, also after a panic.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be used.
    pub fn run(mut self, is_stopped: impl Fn() -> bool) -> io::Result<()> {
        let mut terminal = ratatui::try_init()?;
        let result = self.run_in(&mut terminal, is_stopped);
        let restored = ratatui::try_restore();
        result.and(restored)
    }

    fn run_in(
        &mut self,
        terminal: &mut DefaultTerminal,
        is_stopped: impl Fn() -> bool,
    ) -> io::Result<()> {
        while !self.state.has_quit() && !is_stopped() {
            while let Ok(update) = self.updates().try_recv() {
                self.state.update(update, now_ms());
            }
            terminal.draw(|frame| screen::draw(&self.state, &self.config, frame, now_ms()))?;
            if !event::poll(POLL_TIME)? {
                continue;
            }
            let before = self.state.subscriptions();
            if let TerminalEvent::Key(key) = event::read()?
                && let Some(key) = pressed(key)
            {
                self.state.press(key);
            }
            if let Some(path) = self.state.take_copied() {
                copy(&path)?;
            }
            let wanted = self.state.subscriptions();
            if wanted != before || self.state.take_reconnect() {
                self.feed = Feed::start(&self.client, &wanted, self.config.hz);
            }
        }
        Ok(())
    }

    fn updates(&self) -> &Receiver<feed::Update> {
        self.feed.updates()
    }
}

/// Asks the terminal to put a text into the clipboard (OSC 52), which works over ssh, too.
fn copy(text: &str) -> io::Result<()> {
    use io::Write as _;
    let mut out = io::stdout();
    write!(out, "\x1b]52;c;{}\x07", format::base64(text.as_bytes()))?;
    out.flush()
}

fn now_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}
