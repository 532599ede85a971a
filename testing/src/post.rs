//! Letters that are accounted for: each is handled, comes back, or is dropped with its receiver.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// What became of all letters.
#[derive(Debug, Default)]
pub struct Post {
    written: AtomicUsize,
    handled: AtomicUsize,
    returned: AtomicUsize,
    discarded: AtomicUsize,
}

impl Post {
    /// A letter that is on its way.
    pub fn write<T>(self: &Arc<Self>, text: T) -> Letter<T> {
        self.written.fetch_add(1, SeqCst);
        Letter { text, post: Arc::clone(self), is_settled: false }
    }

    /// How many were dropped by one who neither handled them nor got them back.
    #[must_use]
    pub fn discarded(&self) -> usize {
        self.discarded.load(SeqCst)
    }

    /// The law, when nobody has any letters any more: so many were written, and each had one end.
    ///
    /// # Panics
    ///
    /// If it does not hold.
    #[track_caller]
    pub fn assert_conserved(&self, n_written: usize) {
        assert_eq!(self.written.load(SeqCst), n_written, "letters that were written");
        let ends = [&self.handled, &self.returned, &self.discarded].map(|count| count.load(SeqCst));
        let settled: usize = ends.iter().sum();
        assert_eq!(settled, n_written, "handled, returned and discarded are {ends:?}");
    }
}

/// Counts what becomes of it. One that is dropped is discarded.
#[derive(Debug)]
pub struct Letter<T> {
    /// What it says.
    pub text: T,
    post: Arc<Post>,
    is_settled: bool,
}

impl<T> Letter<T> {
    /// Its receiver has done what it says.
    pub fn handle(self) {
        self.settle(|post| &post.handled);
    }

    /// Its sender has it again.
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
