//! The handlers of the files.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;

use crate::state::Web;

/// `GET` of the style sheet.
pub(crate) async fn style(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.style.response(&headers)
}

/// `GET` of the font.
pub(crate) async fn font(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.font.response(&headers)
}

/// `GET` of the script for live updates.
pub(crate) async fn script(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.script.response(&headers)
}

/// `GET` of the script for the page of a new key.
pub(crate) async fn key(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.key.response(&headers)
}

/// `GET` of the script for the start page.
pub(crate) async fn start(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.start.response(&headers)
}

/// `GET` of the icon.
pub(crate) async fn icon(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.icon.response(&headers)
}

/// `GET` of the start page's capture of a phone.
pub(crate) async fn phone(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.phone.response(&headers)
}

/// `GET` of the start page's capture of a desktop.
pub(crate) async fn picture(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.picture.response(&headers)
}

/// `GET` of the script for copy buttons.
pub(crate) async fn copy(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.copy.response(&headers)
}

/// `GET` of the script of all pages.
pub(crate) async fn site(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.site.response(&headers)
}

/// `GET` of the script of the documentation.
pub(crate) async fn docs(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.docs.response(&headers)
}

/// `GET` of the script that compares images.
pub(crate) async fn compare(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.compare.response(&headers)
}

/// `GET` of the script of the capture form.
pub(crate) async fn capture(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.capture.response(&headers)
}

/// `GET` of the script of the gallery.
pub(crate) async fn gallery(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.gallery.response(&headers)
}

/// `GET` of the script for passkeys.
pub(crate) async fn passkey(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    web.assets.passkey.response(&headers)
}
