//! Pages that try to block, exhaust or mislead a capture, and the expected outcome of each.
//!
//! `scripts` are pages that attack by themselves, `sites` are pages whose server takes part, and `responses` is what
//! such servers send. To add a page, add a row to one of the two tables. The tests and the soak benchmark use both
//! tables.

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::{Value, json};

use super::behaviour::{GREEN, css};

mod responses;
mod scripts;
mod sites;

/// The time limit of pages that keep the processor busy until it ends their capture. It is longer than the time after which
/// a page that does not respond is given up.
const BUSY_LIMIT_MS: u32 = 13_000;

/// A hostile page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The name of the attack. Pages with a body of their own are served below `/hostile/` under this name.
    pub name: &'static str,
    /// The content, and how it is captured.
    pub body: Body,
    /// The expected outcome.
    pub expected: ExpectedOutcome,
    /// How long the capture takes, and what it costs.
    pub load: CaptureLoad,
}

/// The content of a page.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A green page with this script in it.
    Script(&'static str),
    /// A green page with this HTML in its body.
    Html(&'static str),
    /// A green page with this HTML in its body, captured as a full page.
    FullPage(&'static str),
    /// A green page with this script in it, of which `#target` is captured.
    Element(&'static str),
    /// The response at this path of the site.
    At(&'static str),
}

/// The expected outcome of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedOutcome {
    /// A completely green image.
    Green,
    /// An image with any content.
    Image,
    /// `render_failed`, with this in its message.
    Failed(&'static str),
    /// `render_blocked`, with this in its message.
    Blocked(&'static str),
    /// A green image or `render_failed`, depending on the size and speed of the machine.
    GreenOrFailed,
    /// An image or `render_failed`, depending on the size and speed of the machine.
    ImageOrFailed,
}

/// How a page loads a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureLoad {
    /// The capture ends within seconds.
    Short,
    /// A time limit ends the capture. The processor is idle.
    Waiting,
    /// A time limit ends the capture. The processor is busy.
    Working,
    /// A time limit ends the capture. Meanwhile no other page of the same browser is drawn.
    Stalling,
}

impl Page {
    const fn new(name: &'static str, body: Body, expected: ExpectedOutcome) -> Self {
        Self { name, body, expected, load: CaptureLoad::Short }
    }

    const fn waiting(self) -> Self {
        Self { load: CaptureLoad::Waiting, ..self }
    }

    const fn working(self) -> Self {
        Self { load: CaptureLoad::Working, ..self }
    }

    const fn stalling(self) -> Self {
        Self { load: CaptureLoad::Stalling, ..self }
    }

    /// The path on the site.
    pub fn path(&self) -> String {
        match self.body {
            Body::At(path) => path.to_owned(),
            Body::Script(_) | Body::Html(_) | Body::FullPage(_) | Body::Element(_) => format!("/hostile/{}", self.name),
        }
    }

    /// The members of the create request besides the URL.
    pub fn options(&self) -> Value {
        let mut options = match self.body {
            Body::Script(_) | Body::Html(_) | Body::At(_) => json!({}),
            Body::FullPage(_) => json!({ "full_page": true, "format": "jpeg" }),
            Body::Element(_) => json!({ "selector": "#target", "format": "jpeg" }),
        };
        match self.load {
            CaptureLoad::Short | CaptureLoad::Waiting => {}
            CaptureLoad::Working | CaptureLoad::Stalling => options["timeout_ms"] = json!(BUSY_LIMIT_MS),
        }
        options
    }

    fn html(&self) -> Option<Html<String>> {
        let body = match self.body {
            Body::Script(script) | Body::Element(script) => format!("<script>{PRELUDE}{script}</script>"),
            Body::Html(html) | Body::FullPage(html) => html.to_owned(),
            Body::At(_) => return None,
        };
        let green = css(GREEN);
        Some(Html(format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Fixture</title>\
             <link rel=\"icon\" href=\"data:,\"><style>html,body{{margin:0;background:{green}}}</style></head>\
             <body>{body}</body></html>"
        )))
    }
}

/// Helpers of the scripts. Names below `.example` must resolve to the site.
const PRELUDE: &str = "
    const elsewhere = (path, name = 'elsewhere') => `http://${name}.example:${location.port}${path}`;
    const add = (tag, members) => document.body.appendChild(Object.assign(document.createElement(tag), members));
    const whenLoaded = (then) => addEventListener('load', then);
    const megabytes = (count) => 'A'.repeat(count << 20);
";

/// Every hostile page.
pub fn pages() -> impl Iterator<Item = Page> + Clone {
    scripts::PAGES.iter().chain(sites::PAGES).copied()
}

pub(super) fn routes() -> Router {
    pages().fold(responses::routes(), |router, page| match page.html() {
        Some(html) => router.route(&page.path(), get(move || async move { html })),
        None => router,
    })
}
