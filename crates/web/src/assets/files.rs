//! The files that are compiled into the binary. Paths contain a content hash, so that browsers can cache them forever.

use std::io::Write;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue};
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
    /// The captures of the start page: of a desktop, and of a phone.
    pub(crate) picture: Asset,
    pub(crate) phone: Asset,
    pub(crate) copy: Asset,
    pub(crate) docs: Asset,
    pub(crate) site: Asset,
    pub(crate) compare: Asset,
    /// The scripts of code and of fields to copy in one file, for the pages of new keys and of secrets.
    pub(crate) key: Asset,
    /// The scripts of code and of the start page in one file.
    pub(crate) start: Asset,
    /// The scripts of code, live updates, the capture form and its result in one file, to save requests.
    pub(crate) capture: Asset,
    /// The scripts of live updates and of the gallery in one file.
    pub(crate) gallery: Asset,
    pub(crate) passkey: Asset,
}

/// A file that is compiled into the binary.
pub(crate) struct Asset {
    pub(crate) path: String,
    bytes: Bytes,
    /// The same, compressed. Only of text.
    gzip: Option<Bytes>,
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
        let phone = include_bytes!("../../assets/phone.webp");
        let copy = include_bytes!("../../assets/copy.js");
        let docs = include_bytes!("../../assets/docs.js");
        let site = include_bytes!("../../assets/site.js");
        let compare = include_bytes!("../../assets/compare.js");
        let form = include_bytes!("../../assets/capture.js");
        let result = include_bytes!("../../assets/result.js");
        let code = include_bytes!("../../assets/code.js");
        let capture = [docs.as_slice(), script, code, form, result].concat();
        let key = [docs.as_slice(), copy].concat();
        let start = [docs.as_slice(), code, include_bytes!("../../assets/start.js")].concat();
        let gallery = [script.as_slice(), include_bytes!("../../assets/gallery.js")].concat();
        let passkey = include_bytes!("../../assets/passkey.js");
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
            phone: file("phone", "webp", "image/webp", phone),
            copy: file("copy", "js", "text/javascript; charset=utf-8", copy),
            docs: file("docs", "js", "text/javascript; charset=utf-8", docs),
            site: file("site", "js", "text/javascript; charset=utf-8", site),
            compare: file("compare", "js", "text/javascript; charset=utf-8", compare),
            key: Asset::new("key", "js", "text/javascript; charset=utf-8", key.into()),
            start: Asset::new("start", "js", "text/javascript; charset=utf-8", start.into()),
            capture: Asset::new("capture", "js", "text/javascript; charset=utf-8", capture.into()),
            gallery: Asset::new("gallery", "js", "text/javascript; charset=utf-8", gallery.into()),
            passkey: file("passkey", "js", "text/javascript; charset=utf-8", passkey),
        }
    }
}

impl Asset {
    fn new(name: &str, extension: &str, media_type: &'static str, bytes: Bytes) -> Self {
        let hash: String = Sha256::digest(&bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let gzip = media_type.starts_with("text/").then(|| gzip(&bytes)).flatten();
        Self { path: format!("/assets/{name}.{hash}.{extension}"), bytes, gzip, media_type }
    }

    /// The file, with a header to cache it forever, in the encoding that the request accepts.
    pub(super) fn response(&self, request: &HeaderMap) -> Response {
        let headers = [(CONTENT_TYPE, self.media_type), (CACHE_CONTROL, IMMUTABLE)];
        let Some(gzip) = &self.gzip else { return (headers, self.bytes.clone()).into_response() };
        let vary = [(VARY, "accept-encoding")];
        match accepts_gzip(request) {
            true => (headers, vary, [(CONTENT_ENCODING, "gzip")], gzip.clone()).into_response(),
            false => (headers, vary, self.bytes.clone()).into_response(),
        }
    }
}

/// Compresses at start; `None` if that fails, which it does not in memory.
fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    Some(encoder.finish().ok()?.into())
}

/// Whether a request accepts gzip (RFC 9110, section 12.5.3).
fn accepts_gzip(request: &HeaderMap) -> bool {
    let values = request.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value: &HeaderValue| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = quality.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
        name.trim().eq_ignore_ascii_case("gzip") && quality.is_ok_and(|quality| quality > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn accepting(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))])
    }

    #[test]
    fn gzip_is_sent_only_to_those_who_accept_it() {
        for (value, expected) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip;q=x", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(&accepting(value)), expected, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn compressed_text_is_the_same_text() {
        let assets = Assets::load();
        let response = assets.style.response(&accepting("gzip"));
        assert_eq!(
            (&response.headers()[CONTENT_ENCODING], &response.headers()[VARY]),
            (&HeaderValue::from_static("gzip"), &HeaderValue::from_static("accept-encoding"))
        );
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&*body).read_to_end(&mut text).unwrap();
        assert!(text == assets.style.bytes && body.len() * 3 < text.len());
        // Compression would not make the font smaller.
        assert!(!assets.font.response(&accepting("gzip")).headers().contains_key(CONTENT_ENCODING));
    }
}
