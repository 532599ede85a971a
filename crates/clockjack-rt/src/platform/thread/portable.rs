//! Thread settings on systems where only std is available: none.

use std::io;

use clockjack_actor::system::RealtimeClass;

pub(crate) fn sleep_precisely() -> bool {
    false
}

/// Unknown: a thread cannot choose among CPUs either.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    Vec::new()
}

pub(crate) fn pin_to_cpu(_cpu: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn run_on(_cpus: &[u32]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn set_niceness(_niceness: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn set_realtime(_class: RealtimeClass, _priority: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// See [`backoff`](clockjack_sync::backoff).
pub(crate) fn wait_for_other_thread(_n_failed: u32) {
    std::thread::yield_now();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_is_refused_as_not_supported() {
        assert_eq!(pin_to_cpu(0).unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert!(allowed_cpus().is_empty() && !sleep_precisely());
    }

    #[test]
    fn policies_are_refused_as_not_supported() {
        let answers =
            [run_on(&[0]), set_niceness(1), set_realtime(RealtimeClass::Fifo, 1)].into_iter();
        for answer in answers {
            assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::Unsupported);
        }
    }

    #[test]
    fn a_thread_that_waits_lets_another_one_run() {
        let other = std::thread::spawn(|| ());
        while !other.is_finished() {
            wait_for_other_thread(0);
        }
        other.join().unwrap();
    }
}
