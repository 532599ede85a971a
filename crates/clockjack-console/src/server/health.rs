//! `/alive`, `/ready` and `/metrics`, for the probes of an orchestrator: without a token, and
//! without anything that names an actor.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::get,
};
use clockjack_actor::{ActorSystem, system::UncountedSystem};
use clockjack_rt::RuntimeMetrics;

use super::ReadyFn;

/// What the probes ask.
#[derive(Clone)]
pub(crate) struct Health {
    system: UncountedSystem,
    metrics: Option<RuntimeMetrics>,
    ready: Option<Arc<ReadyFn>>,
}

impl Health {
    pub(super) fn new(
        system: &ActorSystem,
        metrics: Option<RuntimeMetrics>,
        ready: Option<Arc<ReadyFn>>,
    ) -> Self {
        Self { system: system.uncounted(), metrics, ready }
    }

    pub(super) fn router(self) -> Router {
        Router::new()
            .route("/alive", get(alive))
            .route("/ready", get(ready))
            .route("/metrics", get(metrics))
            .with_state(self)
    }

    fn is_running(&self) -> bool {
        !self.system.executor().is_stopping()
    }
}

async fn alive() -> &'static str {
    "alive\n"
}

async fn ready(State(health): State<Health>) -> (StatusCode, &'static str) {
    let is_ready = health.is_running() && health.ready.is_none_or(|is_ready| is_ready());
    if is_ready {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

async fn metrics(State(health): State<Health>) -> Response {
    let Some(metrics) = &health.metrics else { return StatusCode::NOT_FOUND.into_response() };
    match metrics.prometheus() {
        Ok(text) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            ([(CONTENT_TYPE, kind)], without_actors(&text)).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Leaves out the metrics of single actors, whose labels are paths.
fn without_actors(text: &str) -> String {
    let is_shown = |line: &&str| {
        let line = line.strip_prefix("# HELP ").or(line.strip_prefix("# TYPE ")).unwrap_or(line);
        !line.starts_with("clockjack_actor_") && !line.contains("path=\"")
    };
    text.lines().filter(is_shown).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_single_actors_are_left_out() {
        let text = "# HELP clockjack_actor_handled Messages.\n\
            # TYPE clockjack_actor_handled gauge\n\
            clockjack_actor_handled{path=\"/user/secret\"} 3\n# TYPE clockjack_actors_live gauge\n\
            clockjack_actors_live 7\n";
        let shown = "# TYPE clockjack_actors_live gauge\nclockjack_actors_live 7\n";
        assert_eq!(without_actors(text), shown);
    }
}
