//! The style sheet, the scripts and the pictures of the pages themselves, under paths that change with their content, so
//! that browsers may keep them for good.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use sha2::{Digest, Sha256};

use crate::Web;

const FOR_GOOD: &str = "public, max-age=31536000, immutable";

/// All of them.
pub(crate) struct Assets {
    pub(crate) style: Asset,
    pub(crate) script: Asset,
    pub(crate) icon: Asset,
    pub(crate) picture: Asset,
    pub(crate) copy: Asset,
}

/// A file that is part of the program.
pub(crate) struct Asset {
    pub(crate) path: String,
    bytes: &'static [u8],
    media_type: &'static str,
}

impl Assets {
    pub(crate) fn load() -> Self {
        let style = include_bytes!("../assets/style.css");
        let script = include_bytes!("../assets/live.js");
        let icon = include_bytes!("../assets/icon.svg");
        let picture = include_bytes!("../assets/picture.webp");
        let copy = include_bytes!("../assets/copy.js");
        Self {
            style: Asset::new("style", "css", "text/css; charset=utf-8", style),
            script: Asset::new("live", "js", "text/javascript; charset=utf-8", script),
            icon: Asset::new("icon", "svg", "image/svg+xml", icon),
            picture: Asset::new("picture", "webp", "image/webp", picture),
            copy: Asset::new("copy", "js", "text/javascript; charset=utf-8", copy),
        }
    }
}

impl Asset {
    fn new(name: &str, extension: &str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        let hash: String = Sha256::digest(bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { path: format!("/assets/{name}.{hash}.{extension}"), bytes, media_type }
    }

    fn answer(&self) -> Response {
        ([(CONTENT_TYPE, self.media_type), (CACHE_CONTROL, FOR_GOOD)], self.bytes).into_response()
    }
}

/// The style sheet.
pub(crate) async fn style(State(web): State<Arc<Web>>) -> Response {
    web.assets.style.answer()
}

/// The script.
pub(crate) async fn script(State(web): State<Arc<Web>>) -> Response {
    web.assets.script.answer()
}

/// The icon.
pub(crate) async fn icon(State(web): State<Arc<Web>>) -> Response {
    web.assets.icon.answer()
}

/// The picture on the start page.
pub(crate) async fn picture(State(web): State<Arc<Web>>) -> Response {
    web.assets.picture.answer()
}

/// The script that copies a new key.
pub(crate) async fn copy(State(web): State<Arc<Web>>) -> Response {
    web.assets.copy.answer()
}
