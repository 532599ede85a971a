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

const STYLE: &str = "text/css; charset=utf-8";

/// The path, the type and the contents of each file.
const FILES: [(&str, &str, &[u8]); 16] = [
    ("/", "text/html; charset=utf-8", include_bytes!("../page/index.html")),
    ("/style.css", STYLE, include_bytes!("../page/style.css")),
    ("/app.js", SCRIPT, include_bytes!("../page/app.js")),
    ("/chart.js", SCRIPT, include_bytes!("../page/chart.js")),
    ("/connection.js", SCRIPT, include_bytes!("../page/connection.js")),
    ("/drawing.js", SCRIPT, include_bytes!("../page/drawing.js")),
    ("/follow.js", SCRIPT, include_bytes!("../page/follow.js")),
    ("/format.js", SCRIPT, include_bytes!("../page/format.js")),
    ("/mirror.js", SCRIPT, include_bytes!("../page/mirror.js")),
    ("/place.js", SCRIPT, include_bytes!("../page/place.js")),
    ("/table.js", SCRIPT, include_bytes!("../page/table.js")),
    ("/timeline.js", SCRIPT, include_bytes!("../page/timeline.js")),
    ("/views.js", SCRIPT, include_bytes!("../page/views.js")),
    // htm 3.1.1 with preact, and uPlot 1.6.32, as published; their licences are next to them.
    ("/preact-htm.js", SCRIPT, include_bytes!("../page/vendor/preact-htm.js")),
    ("/uplot.js", SCRIPT, include_bytes!("../page/vendor/uplot.js")),
    ("/uplot.css", STYLE, include_bytes!("../page/vendor/uplot.css")),
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
            // Where uPlot comes from, in a comment.
            let text = text.replace("https://github.com/leeoniya/uPlot ", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{path}");
            assert!(!text.contains("eval("), "{path}");
            assert!(!kind.starts_with("text/html") || !text.contains("<style"), "{path}");
        }
    }
}
