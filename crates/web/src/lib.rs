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
//! sooner what the page would show when it is loaded again, and `assets/copy.js`, which copies what can be selected by hand.

mod account;
mod accounts;
mod agent;
mod apps;
mod assets;
mod billing;
mod confirm;
mod cookies;
mod forgery;
mod form;
mod frame;
mod grabs;
mod invitation;
mod keys;
mod limits;
mod moment;
mod next;
mod number;
mod oauth;
mod operator;
mod page;
mod problem;
mod sent;
mod session;
mod start;
mod team;
mod teams;
mod webhooks;

use std::net::IpAddr;
use std::sync::Arc;

use axum::routing::{MethodRouter, get, post};
use axum::{Router, middleware};
use grabd_engine::Core;

use assets::Assets;
pub use billing::PAGE as TOP_UP;
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
    let pages = pages.merge(operator::router(&web));
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
        (accounts::FORGOTTEN.to_owned(), FORM, get(accounts::forgotten::show).post(accounts::forgotten::submit)),
        ("/new-password".to_owned(), FORM, get(accounts::new_password::show).post(accounts::new_password::submit)),
        (account::PATH.to_owned(), READ, get(account::show::show)),
        ("/account/password".to_owned(), FORM, get(account::show::show_again).post(account::password::submit)),
        ("/account/sessions/end".to_owned(), WRITE, post(account::sessions::end)),
        (invitation::PATH.to_owned(), FORM, get(invitation::show).post(invitation::submit)),
        (keys::PATH.to_owned(), READ, get(keys::show)),
        (teams::PATH.to_owned(), FORM, get(teams::list::show).post(teams::found::submit)),
        ("/teams/{team}".to_owned(), READ, get(teams::people::show_again)),
        ("/teams/{team}/people".to_owned(), READ, get(teams::people::show)),
        ("/teams/{team}/name".to_owned(), FORM, get(teams::people::show_again).post(teams::rename::submit)),
        ("/teams/{team}/leave".to_owned(), FORM, get(teams::leave::show).post(teams::leave::submit)),
        ("/teams/{team}/invitations".to_owned(), FORM, get(teams::people::show_again).post(teams::invite::submit)),
        ("/teams/{team}/invitations/{invitation}/withdraw".to_owned(), WRITE, post(teams::invite::withdraw)),
        ("/teams/{team}/members/{user}/role".to_owned(), WRITE, post(teams::members::appoint)),
        (
            "/teams/{team}/members/{user}/remove".to_owned(),
            FORM,
            get(teams::members::ask_to_remove).post(teams::members::remove),
        ),
        ("/teams/{team}/keys".to_owned(), FORM, get(keys::list::show).post(keys::make::submit)),
        ("/teams/{team}/keys/{key}/revoke".to_owned(), FORM, get(keys::revoke::show).post(keys::revoke::submit)),
        (webhooks::LIST.to_owned(), READ, get(webhooks::list::show)),
        (webhooks::MAKE.to_owned(), FORM, get(webhooks::make::show).post(webhooks::make::submit)),
        (webhooks::ONE.to_owned(), READ, get(webhooks::show::show)),
        (webhooks::CHANGE.to_owned(), FORM, get(webhooks::change::show).post(webhooks::change::submit)),
        (webhooks::SECRET.to_owned(), FORM, get(webhooks::secret::show).post(webhooks::secret::submit)),
        (webhooks::OFF.to_owned(), FORM, get(webhooks::switch::ask_to_end).post(webhooks::switch::off)),
        (webhooks::ON.to_owned(), WRITE, post(webhooks::switch::on)),
        (webhooks::DELETE.to_owned(), FORM, get(webhooks::delete::show).post(webhooks::delete::submit)),
        (webhooks::TEST.to_owned(), WRITE, post(webhooks::send::test)),
        (webhooks::DELIVERY.to_owned(), READ, get(webhooks::delivery::show)),
        (webhooks::AGAIN.to_owned(), WRITE, post(webhooks::send::again)),
        (web.assets.copy.path.clone(), READ, get(assets::copy)),
        (billing::PAGE.to_owned(), READ, get(billing::show::show)),
        (billing::LEDGER.to_owned(), READ, get(billing::ledger::show)),
        (billing::EXPORT.to_owned(), READ, get(billing::export::download)),
        (billing::CHECKOUT.to_owned(), WRITE, post(billing::checkout::submit)),
        (billing::PAID.to_owned(), READ, get(billing::paid::show)),
        (web.assets.style.path.clone(), READ, get(assets::style)),
        (web.assets.script.path.clone(), READ, get(assets::script)),
        (web.assets.icon.path.clone(), READ, get(assets::icon)),
        (web.assets.picture.path.clone(), READ, get(assets::picture)),
    ]
}
