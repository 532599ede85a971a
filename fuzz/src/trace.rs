//! The reader of replay traces.

use clockjack_sched::log::ReplayTrace;

/// Reads a trace. A valid trace is written as the same text and does not diverge from itself; a
/// refusal names the position.
pub fn trace(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match ReplayTrace::parse(text) {
        Ok(trace) => {
            let written = trace.to_string();
            let again = ReplayTrace::parse(&written).expect("what is written can be read");
            assert_eq!(trace.first_divergence(&again), None);
            assert_eq!(written, again.to_string());
        }
        Err(refused) => assert!(!refused.to_string().is_empty(), "refused without a message"),
    }
}
