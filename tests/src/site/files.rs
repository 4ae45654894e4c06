//! Files of `tests/site`, by path.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

const HTML: &str = "text/html; charset=utf-8";

macro_rules! files {
    ($($path:literal, $media:expr, $file:literal;)*) => {
        [$(($path, $media, include_bytes!(concat!("../../site/", $file)).as_slice())),*]
    };
}

/// Path, media type and content.
const FILES: [(&str, &str, &[u8]); 16] = files! {
    "/tiny", HTML, "pages/tiny.html";
    "/article", HTML, "pages/article.html";
    "/news", HTML, "pages/news.html";
    "/article/article.css", "text/css", "assets/article.css";
    "/article/article.js", "text/javascript", "assets/article.js";
    "/article/data.json", "application/json", "assets/article-data.json";
    "/dashboard", HTML, "pages/dashboard.html";
    "/dashboard/data.json", "application/json", "assets/dashboard-data.json";
    "/heavy", HTML, "pages/heavy.html";
    "/tall", HTML, "pages/tall.html";
    "/noise", HTML, "pages/noise.html";
    "/gallery-of-scripts", HTML, "pages/gallery-of-scripts.html";
    "/showcase", HTML, "pages/showcase.html";
    "/leaflet.pdf", "application/pdf", "assets/leaflet.pdf";
    "/fonts/dm-serif-display.woff2", "font/woff2", "fonts/dm-serif-display.woff2";
    "/fonts/blocks.woff2", "font/woff2", "fonts/blocks.woff2";
};

pub(super) fn routes() -> Router {
    FILES.into_iter().fold(Router::new(), |router, (path, media, content)| {
        router.route(path, get(move || async move { ([(CONTENT_TYPE, media)], content) }))
    })
}
