//! The files that are compiled into the binary. Paths contain a content hash, so that browsers can cache them forever.

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use sha2::{Digest, Sha256};

const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// The text in the style sheet that is replaced with the path of the font.
const FONT_PLACEHOLDER: &str = "FONT_PATH";

/// All assets.
pub(crate) struct Assets {
    pub(crate) style: Asset,
    pub(crate) font: Asset,
    pub(crate) script: Asset,
    pub(crate) icon: Asset,
    pub(crate) picture: Asset,
    pub(crate) copy: Asset,
    pub(crate) docs: Asset,
    pub(crate) site: Asset,
    pub(crate) compare: Asset,
}

/// A file that is compiled into the binary.
pub(crate) struct Asset {
    pub(crate) path: String,
    bytes: Bytes,
    media_type: &'static str,
}

impl Assets {
    pub(crate) fn load() -> Self {
        let style = include_str!("../../assets/style.css");
        // Inter 5.3, variable weight, Latin characters; its licence is beside it.
        let font = include_bytes!("../../assets/inter.woff2");
        let script = include_bytes!("../../assets/live.js");
        let icon = include_bytes!("../../assets/icon.svg");
        let picture = include_bytes!("../../assets/picture.webp");
        let copy = include_bytes!("../../assets/copy.js");
        let docs = include_bytes!("../../assets/docs.js");
        let site = include_bytes!("../../assets/site.js");
        let compare = include_bytes!("../../assets/compare.js");
        let file =
            |name, extension, media_type, bytes| Asset::new(name, extension, media_type, Bytes::from_static(bytes));
        let font = file("inter", "woff2", "font/woff2", font);
        let style = style.replace(FONT_PLACEHOLDER, &font.path);
        Self {
            style: Asset::new("style", "css", "text/css; charset=utf-8", style.into()),
            font,
            script: file("live", "js", "text/javascript; charset=utf-8", script),
            icon: file("icon", "svg", "image/svg+xml", icon),
            picture: file("picture", "webp", "image/webp", picture),
            copy: file("copy", "js", "text/javascript; charset=utf-8", copy),
            docs: file("docs", "js", "text/javascript; charset=utf-8", docs),
            site: file("site", "js", "text/javascript; charset=utf-8", site),
            compare: file("compare", "js", "text/javascript; charset=utf-8", compare),
        }
    }
}

impl Asset {
    fn new(name: &str, extension: &str, media_type: &'static str, bytes: Bytes) -> Self {
        let hash: String = Sha256::digest(&bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { path: format!("/assets/{name}.{hash}.{extension}"), bytes, media_type }
    }

    /// The file, with a header to cache it forever.
    pub(super) fn response(&self) -> Response {
        ([(CONTENT_TYPE, self.media_type), (CACHE_CONTROL, IMMUTABLE)], self.bytes.clone()).into_response()
    }
}
