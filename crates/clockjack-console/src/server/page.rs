//! The page: files that are part of the program. Nothing comes from another host.
//!
//! The files need no token: they contain nothing of the program. They are behind the guard all the
//! same, so that no page of another site can read from their answer that a console is here.

use axum::{
    Router,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
    routing::get,
};

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The path, the type and the contents of each file.
const FILES: [(&str, &str, &[u8]); 6] = [
    ("/", "text/html; charset=utf-8", include_bytes!("../page/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_bytes!("../page/style.css")),
    ("/app.js", SCRIPT, include_bytes!("../page/app.js")),
    ("/format.js", SCRIPT, include_bytes!("../page/format.js")),
    ("/mirror.js", SCRIPT, include_bytes!("../page/mirror.js")),
    // htm 3.1.1 with preact, as published; their licences are next to it.
    ("/preact-htm.js", SCRIPT, include_bytes!("../page/vendor/preact-htm.js")),
];

/// Adds the files to the routes.
pub(super) fn add<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    FILES.into_iter().fold(router, |router, (path, kind, bytes)| {
        router.route(path, get(move || async move { file(kind, bytes) }))
    })
}

fn file(kind: &'static str, bytes: &'static [u8]) -> Response {
    ([(CONTENT_TYPE, kind)], bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_names_no_other_host() {
        let n_bytes: usize = FILES.iter().map(|(_, _, bytes)| bytes.len()).sum();
        assert!(n_bytes < 220_000, "{n_bytes} bytes");
        for (path, kind, bytes) in FILES {
            let text = core::str::from_utf8(bytes).unwrap();
            // XML's name of SVG is a name, not an address.
            let text = text.replace("http://www.w3.org/", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{path}");
            assert!(!text.contains("eval("), "{path}");
            assert!(!kind.starts_with("text/html") || !text.contains("<style"), "{path}");
        }
    }
}
