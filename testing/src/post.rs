//! Tracked messages: each must be handled, returned to its sender, or dropped with its receiver.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Counts the tracked messages by outcome.
#[derive(Debug, Default)]
pub struct Post {
    written: AtomicUsize,
    handled: AtomicUsize,
    returned: AtomicUsize,
    discarded: AtomicUsize,
}

impl Post {
    /// Creates a tracked message.
    pub fn write<T>(self: &Arc<Self>, text: T) -> Letter<T> {
        self.written.fetch_add(1, SeqCst);
        Letter { text, post: Arc::clone(self), is_settled: false }
    }

    /// How many messages were dropped without being handled or returned.
    #[must_use]
    pub fn discarded(&self) -> usize {
        self.discarded.load(SeqCst)
    }

    /// Checks, when no message is left, that this many were created and that each had exactly one
    /// outcome.
    ///
    /// # Panics
    ///
    /// If the counts differ.
    #[track_caller]
    pub fn assert_conserved(&self, n_written: usize) {
        assert_eq!(self.written.load(SeqCst), n_written, "letters that were written");
        let ends = [&self.handled, &self.returned, &self.discarded].map(|count| count.load(SeqCst));
        let settled: usize = ends.iter().sum();
        assert_eq!(settled, n_written, "handled, returned and discarded are {ends:?}");
    }
}

/// A tracked message. If it is dropped, it counts as discarded.
#[derive(Debug)]
pub struct Letter<T> {
    /// The contents.
    pub text: T,
    post: Arc<Post>,
    is_settled: bool,
}

impl<T> Letter<T> {
    /// Counts the message as handled by its receiver.
    pub fn handle(self) {
        self.settle(|post| &post.handled);
    }

    /// Counts the message as returned to its sender.
    pub fn come_back(self) {
        self.settle(|post| &post.returned);
    }

    fn settle(mut self, count: impl Fn(&Post) -> &AtomicUsize) {
        self.is_settled = true;
        count(&self.post).fetch_add(1, SeqCst);
    }
}

impl<T> Drop for Letter<T> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.post.discarded.fetch_add(1, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_has_one_end() {
        let post = Arc::new(Post::default());
        post.write(1).handle();
        post.write(2).come_back();
        drop(post.write(3));
        post.assert_conserved(3);
        assert_eq!(post.discarded(), 1);
    }

    #[test]
    #[should_panic(expected = "handled, returned and discarded are [1, 0, 0]")]
    fn a_letter_that_is_lost_is_missed() {
        let post = Arc::new(Post::default());
        post.write(1).handle();
        core::mem::forget(post.write(2));
        post.assert_conserved(2);
    }
}
