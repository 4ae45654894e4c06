//! The web app and the OAuth endpoints.
//!
//! Each page is a folder or file named after its path, with a template of the same name in `templates/`. To add one,
//! add a line in `routes.rs`, a struct for its template, and checks in `tests/tests/it/pages`. The modules `page` and
//! `response` have what all pages share, `templates/parts` has the fields and notices, and `assets/style.css` is the
//! only style sheet.
//!
//! Handlers get the signed-in user, the team and the form from the extractors in `extract`, which make the checks. A
//! form submission is checked in this order: rate limit of the address, origin, token, fields, use-case.
//!
//! *Invariant:* no SQL and no gRPC in this crate. The engine's use-cases decide what is allowed; this crate reads
//! forms, renders pages and redirects. Pages load nothing from other hosts. The only scripts are `assets/live.js`,
//! which shows changes without a reload, `assets/capture.js` and `assets/result.js` of the capture form,
//! `assets/gallery.js`, which shows new captures, `assets/copy.js`, which copies text that can also be selected by hand,
//! `assets/docs.js` for the documentation, `assets/code.js` and `assets/start.js`, with which code follows a form,
//! `assets/compare.js`, which lays two images over each other and hides outlines, `assets/passkey.js`, which creates and
//! uses passkeys, and `assets/site.js` of all pages.

mod access;
mod account;
mod apps;
mod assets;
mod bars;
mod billing;
mod client_ip;
mod confirm;
mod connect;
mod cookies;
mod docs;
mod environments;
mod extract;
mod fields;
mod form;
mod grabs;
mod invitation;
mod keys;
mod line_breaks;
mod monitors;
mod next;
mod number;
mod oauth;
mod offers;
mod operator;
mod page;
mod paths;
mod problem;
mod proxies;
mod qr;
mod rate_limits;
mod requests;
mod response;
mod routes;
mod samples;
mod secret_row;
mod session;
mod sign_in;
mod sites;
mod start;
mod state;
mod team;
mod teams;
mod text_diff;
mod time_format;
mod trail;
mod used_forms;
mod user_agent;
mod webhooks;

pub use billing::PAGE as TOP_UP;
pub use client_ip::Address;
pub use docs::{ClientPackages, ReferencePage};
pub use routes::{form_paths, methods_and_paths, not_found_page, router};
pub use state::Options;
