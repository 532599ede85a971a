//! `clockjack bench`: repeats a run, each time with loading, checking and setup.

use core::time::Duration;

use serde_json::{Value, json};

/// The measurements of all runs.
#[derive(Debug)]
pub(crate) struct BenchResult {
    pub(crate) graph: String,
    pub(crate) graph_hash: u64,
    pub(crate) steps: u64,
    pub(crate) calls: u64,
    pub(crate) n_ok: usize,
    /// The duration of each run, in order.
    pub(crate) times: Vec<Duration>,
}

/// FNV-1a, 64 bits. Not cryptographic: it only shows whether two measurements used the same file.
pub(crate) fn fnv1a64(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

impl BenchResult {
    /// The duration that `percent` percent of the runs do not exceed (nearest rank).
    fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or_default()
    }

    /// Component calls per second over all runs.
    fn throughput(&self) -> f64 {
        let total: Duration = self.times.iter().sum();
        if total.is_zero() {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate is shown with three digits")]
        let calls = self.calls as f64;
        calls / total.as_secs_f64()
    }

    pub(crate) fn json(&self) -> Value {
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        let threads = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        json!({
            "benchmark_schema_version": "2",
            "case": self.graph,
            "graph_hash": format!("fnv1a64:{:016x}", self.graph_hash),
            "steps": self.steps,
            "runs": self.times.len(),
            "ok_runs": self.n_ok,
            "tick_calls": self.calls,
            "elapsed_ms": ms(&self.times.iter().sum()),
            "run_ms": self.times.iter().map(ms).collect::<Vec<_>>(),
            "p50_ms": ms(&self.percentile(50)),
            "p95_ms": ms(&self.percentile(95)),
            "p99_ms": ms(&self.percentile(99)),
            "calls_per_second": self.throughput(),
            "environment": {
                "os": std::env::consts::OS,
                "arch": std::env::consts::ARCH,
                "threads": threads,
                "build": crate::BUILD,
                "version": env!("CARGO_PKG_VERSION"),
            },
        })
    }

    pub(crate) fn text(&self) -> String {
        let n = self.times.len();
        format!(
            "{}: {n} runs of {} epochs, {} ok\n  p50 {:?}, p95 {:?}, p99 {:?}\n  \
             {:.0} calls per second{}\n",
            self.graph,
            self.steps,
            self.n_ok,
            self.percentile(50),
            self.percentile(95),
            self.percentile(99),
            self.throughput(),
            crate::slow_build_note(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_published_test_vectors() {
        assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let times = (1..=4).rev().map(Duration::from_millis).collect();
        let measured = BenchResult {
            graph: String::new(),
            graph_hash: 0,
            steps: 1,
            calls: 10,
            n_ok: 4,
            times,
        };
        let ms: Vec<_> = [50, 75, 95, 99].map(|p| measured.percentile(p).as_millis()).into();
        assert_eq!(ms, [2, 3, 4, 4]);
        assert!((measured.throughput() - 1000.0).abs() < 1e-6);
    }
}
