//! Pages that want to hold a capture up, wear it out or lead it astray, and the answer that each deserves.
//!
//! `scripts` are pages that do it by themselves, `sites` those whose server takes part, and `answers` what such servers
//! send. To add a page, add a row to one of the two tables; tests and the soak go through both.

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::{Value, json};

use super::behaviour::{GREEN, css};

mod answers;
mod scripts;
mod sites;

/// A hostile page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// What it does; pages with a body of their own are below `/hostile/` by this name.
    pub name: &'static str,
    /// Where and how it is captured.
    pub body: Body,
    /// What the caller is told.
    pub answer: Answer,
    /// How long that takes.
    pub length: Length,
}

/// What a page is made of.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A green page with this script in it.
    Script(&'static str),
    /// A green page with this in its body.
    Html(&'static str),
    /// A green page with this in its body, captured as a whole.
    Whole(&'static str),
    /// A green page with this script in it, of which `#target` is captured.
    Element(&'static str),
    /// Whatever is at this path of the site.
    At(&'static str),
}

/// What the caller of a page is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A picture, green all over.
    Green,
    /// A picture, of whatever there is to see.
    Picture,
    /// `render_failed`, with this in its message.
    Failed(&'static str),
    /// `render_blocked`, with this in its message.
    Blocked(&'static str),
    /// A green picture or `render_failed`: the machine's size and speed decide.
    GreenOrFailed,
    /// A picture or `render_failed`, as before.
    PictureOrFailed,
}

/// How long a page keeps a browser busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Seconds.
    Short,
    /// Until a limit of the capture ends it, without work for the processor.
    Waiting,
    /// Until a limit of the capture ends it, at full speed.
    Working,
    /// Until a limit of the capture ends it, and no page of the same browser is drawn meanwhile.
    Stalling,
}

impl Page {
    const fn new(name: &'static str, body: Body, answer: Answer) -> Self {
        Self { name, body, answer, length: Length::Short }
    }

    const fn waiting(self) -> Self {
        Self { length: Length::Waiting, ..self }
    }

    const fn working(self) -> Self {
        Self { length: Length::Working, ..self }
    }

    const fn stalling(self) -> Self {
        Self { length: Length::Stalling, ..self }
    }

    /// Its path on the site.
    pub fn path(&self) -> String {
        match self.body {
            Body::At(path) => path.to_owned(),
            Body::Script(_) | Body::Html(_) | Body::Whole(_) | Body::Element(_) => format!("/hostile/{}", self.name),
        }
    }

    /// What a create asks for beside the address.
    pub fn options(&self) -> Value {
        match self.body {
            Body::Script(_) | Body::Html(_) | Body::At(_) => json!({}),
            Body::Whole(_) => json!({ "full_page": true, "format": "jpeg" }),
            Body::Element(_) => json!({ "selector": "#target", "format": "jpeg" }),
        }
    }

    fn html(&self) -> Option<Html<String>> {
        let body = match self.body {
            Body::Script(script) | Body::Element(script) => format!("<script>{PRELUDE}{script}</script>"),
            Body::Html(html) | Body::Whole(html) => html.to_owned(),
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

/// Words that the scripts share. Every name that ends in `.example` must lead to the site.
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
    pages().fold(answers::routes(), |router, page| match page.html() {
        Some(html) => router.route(&page.path(), get(move || async move { html })),
        None => router,
    })
}
