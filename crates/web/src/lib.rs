//! The pages and the OAuth endpoints: faces for people, who sign in, and for the programs they let act for them.
//!
//! A page is a folder or file named after its path, with a template of that name in `templates/`. To add one, give it a
//! line in `routes`, a struct for its template, and a place in the checks of `tests/tests/it/pages`. What every page has
//! comes from `page` and `frame`, fields and notices from `templates/parts`, and there is one sheet, `assets/style.css`.
//!
//! A form is answered in this order: the limit of its address, where it came from, its token, its fields, the use-case.
//!
//! *Invariant:* no SQL and no gRPC in here. What is allowed is decided by the engine's use-cases; this crate reads forms,
//! shows pages and sends people on. Nothing from elsewhere on any page, and no script but `assets/live.js`, which only shows
//! sooner what the page would show when it is loaded again.

mod accounts;
mod apps;
mod assets;
mod cookies;
mod forgery;
mod form;
mod frame;
mod grabs;
mod limits;
mod moment;
mod next;
mod number;
mod oauth;
mod page;
mod problem;
mod session;
mod start;
mod team;

use std::net::IpAddr;
use std::sync::Arc;

use axum::routing::{MethodRouter, get, post};
use axum::{Router, middleware};
use grabd_engine::Core;

use assets::Assets;
use cookies::Cookies;
use limits::Limits;

/// The address to count a request under, as whoever listens knows it. A layer around [`router`] puts it into the
/// extensions of every request; those without are counted together.
#[derive(Clone, Copy, Debug)]
pub struct Address(pub IpAddr);

/// What every request shares.
struct Web {
    core: Core,
    assets: Assets,
    cookies: Cookies,
    limits: Limits,
}

/// Everything that is served to people, and the endpoints of OAuth. An address may make so many requests per minute to
/// pages, and again to the endpoints of programs; at least 1.
pub fn router(core: Core, requests_per_minute: u32) -> Router {
    let web = Arc::new(Web {
        assets: Assets::load(),
        cookies: Cookies::of(&core.oauth().issuer),
        limits: Limits::new(requests_per_minute),
        core,
    });
    let pages = routes(&web)
        .into_iter()
        .fold(Router::new(), |router, (path, allowed, methods)| router.route(&path, frame::only(allowed, methods)));
    let pages = pages.layer(middleware::from_fn_with_state(Arc::clone(&web), frame::frame));
    oauth::programs(&web).merge(pages).with_state(web)
}

/// A path, the methods it answers as `Allow` names them, and who answers.
type Route = (String, &'static str, MethodRouter<Arc<Web>>);

const READ: &str = "GET, HEAD, OPTIONS";
const FORM: &str = "GET, HEAD, POST, OPTIONS";
const WRITE: &str = "POST, OPTIONS";

/// Everything that people see. What programs ask is in [`oauth::programs`].
fn routes(web: &Web) -> Vec<Route> {
    let authorize = get(oauth::authorize::show).post(oauth::authorize::decide);
    vec![
        (oauth::authorize_path(&web.core.oauth().issuer), FORM, authorize),
        (accounts::SIGN_IN.to_owned(), FORM, get(accounts::sign_in::show).post(accounts::sign_in::submit)),
        (accounts::SIGN_UP.to_owned(), FORM, get(accounts::sign_up::show).post(accounts::sign_up::submit)),
        ("/sign-out".to_owned(), WRITE, post(accounts::sign_out::submit)),
        (apps::PATH.to_owned(), READ, get(apps::list::show)),
        ("/apps/{grant}/disconnect".to_owned(), WRITE, post(apps::disconnect::submit)),
        (start::PATH.to_owned(), FORM, get(start::show).post(start::submit)),
        (grabs::PATH.to_owned(), READ, get(grabs::home::show)),
        (grabs::CAPTURE.to_owned(), FORM, get(grabs::capture::show).post(grabs::capture::submit)),
        (grabs::LIST.to_owned(), READ, get(grabs::list::show)),
        (grabs::LIST_EVENTS.to_owned(), READ, get(grabs::events::of_many)),
        (grabs::ONE.to_owned(), READ, get(grabs::show::show)),
        (grabs::EVENTS.to_owned(), READ, get(grabs::events::of_one)),
        (grabs::THUMBNAIL.to_owned(), READ, get(grabs::thumbnail::show)),
        (grabs::DELETE.to_owned(), FORM, get(grabs::delete::show).post(grabs::delete::submit)),
        (web.assets.style.path.clone(), READ, get(assets::style)),
        (web.assets.script.path.clone(), READ, get(assets::script)),
        (web.assets.icon.path.clone(), READ, get(assets::icon)),
        (web.assets.picture.path.clone(), READ, get(assets::picture)),
    ]
}
