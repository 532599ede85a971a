//! There is no page.

use axum::Router;

pub(super) fn add<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    router
}
