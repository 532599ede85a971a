//! What a thread sets for itself where std is all that is known: nothing.

use std::io;

pub(crate) fn sleep_precisely() -> bool {
    false
}

pub(crate) fn pin_to_cpu(_cpu: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_is_refused_as_not_supported() {
        assert_eq!(pin_to_cpu(0).unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert!(!sleep_precisely());
    }
}
