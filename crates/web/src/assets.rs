//! The style sheet and the icon, under paths that change with their content, so that browsers may keep them for good.

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
    pub(crate) icon: Asset,
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
        let icon = include_bytes!("../assets/icon.svg");
        Self {
            style: Asset::new("style", "css", "text/css; charset=utf-8", style),
            icon: Asset::new("icon", "svg", "image/svg+xml", icon),
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

/// The icon.
pub(crate) async fn icon(State(web): State<Arc<Web>>) -> Response {
    web.assets.icon.answer()
}
