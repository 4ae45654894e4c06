//! All routes of the web app, and the router.

use std::sync::Arc;

use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router, middleware};
use grabd_domain::permissions::Permission;
use grabd_engine::Core;
use grabd_engine::oauth::DEVICE_PATH;

use crate::access::Access;
use crate::assets::{self, Assets};
use crate::docs::ClientPackages;
use crate::page::Layout;
use crate::problem::Problem;
use crate::response::{self, FORM, READ, WRITE};
use crate::state::{Options, Web};
use crate::{
    account, apps, billing, connect, docs, grabs, invitation, keys, monitors, oauth, operator, paths, proxies,
    requests, samples, sign_in, sites, start, teams, webhooks,
};

/// The router of the web app and the OAuth endpoints.
pub fn router(core: Core, options: Options) -> Router {
    let web = Arc::new(Web::new(core, options));
    let pages = routes(&web).into_iter().fold(Router::new(), |router, (path, allowed, access, methods)| {
        router.route(&path, response::only(allowed, methods).layer(Extension(access)))
    });
    let pages = pages.merge(operator::router(&web));
    let pages = pages.layer(middleware::from_fn_with_state(Arc::clone(&web), response::finish));
    oauth::router(&web).merge(pages).with_state(web)
}

/// The paths that accept forms, with parameters in braces. A test sends a forged form to each of them.
pub fn form_paths(core: Core) -> Vec<String> {
    let web = unserved(core);
    let accepts_forms = |(path, allowed): (String, &str)| [FORM, WRITE].contains(&allowed).then_some(path);
    let pages = routes(&web).into_iter().map(|(path, allowed, ..)| (path, allowed));
    let operator_pages = operator::routes().into_iter().map(|(path, allowed, _)| (path.to_owned(), allowed));
    pages.chain(operator_pages).filter_map(accepts_forms).collect()
}

/// The methods and paths of all pages, with parameters in braces: `GET` for those that are read, `POST` for those that take a
/// form. A test calls those of a team with each role.
pub fn methods_and_paths(core: Core) -> Vec<(&'static str, String)> {
    let web = unserved(core);
    let methods = |allowed: &str| -> &'static [&'static str] {
        match allowed {
            READ => &["GET"],
            WRITE => &["POST"],
            _ => &["GET", "POST"],
        }
    };
    let pages = routes(&web).into_iter().map(|(path, allowed, ..)| (path, allowed));
    let operator_pages = operator::routes().into_iter().map(|(path, allowed, _)| (path.to_owned(), allowed));
    pages
        .chain(operator_pages)
        .flat_map(|(path, allowed)| methods(allowed).iter().map(move |method| (*method, path.clone())))
        .collect()
}

/// The state from which the routes are listed without serving them.
fn unserved(core: Core) -> Web {
    let options = Options {
        requests_per_minute: 1,
        hides_self_hosting: false,
        reference: Box::new(Vec::new),
        packages: ClientPackages::default(),
    };
    Web::new(core, options)
}

/// Renders the page for paths that do not exist. It is the same for everybody, so it costs no look-up.
pub fn not_found_page(core: Core) -> impl Fn() -> Response + Clone {
    let assets = Arc::new(Assets::load());
    move || {
        let problem = Problem::not_found("Check the URL, or start from one of these pages.");
        let mut response = problem.render(Layout::plain(&assets, &core));
        response::add_headers(response.headers_mut());
        response
    }
}

/// A path, its `Allow` header, the members of a team that may use it, and its handlers.
type Route = (String, &'static str, Access, MethodRouter<Arc<Web>>);

/// The routes of the web app. The OAuth endpoints for programs are in [`oauth::router`].
fn routes(web: &Web) -> Vec<Route> {
    let outside = routes_outside_teams(web).into_iter();
    outside
        .map(|(path, allowed, methods)| (path, allowed, Access::OutsideTeams, methods))
        .chain(routes_of_teams())
        .collect()
}

/// The routes of teams, and which members may use them.
fn routes_of_teams() -> Vec<Route> {
    vec![
        (
            grabs::CAPTURE.to_owned(),
            FORM,
            Access::With(Permission::Capture),
            get(grabs::capture::show).post(grabs::capture::submit),
        ),
        (grabs::CODE.to_owned(), WRITE, Access::With(Permission::Capture), post(grabs::capture::code)),
        (grabs::LIST.to_owned(), READ, Access::With(Permission::ViewCaptures), get(grabs::list::show)),
        (grabs::LIST_EVENTS.to_owned(), READ, Access::With(Permission::ViewCaptures), get(grabs::events::watch_many)),
        (grabs::FIRST_STEPS.to_owned(), WRITE, Access::With(Permission::Capture), post(grabs::first_steps::hide)),
        (grabs::NEW.to_owned(), READ, Access::With(Permission::ViewCaptures), get(grabs::fresh::show)),
        (grabs::DOWNLOAD.to_owned(), READ, Access::With(Permission::ViewCaptures), get(grabs::download::show)),
        (grabs::COMPARE.to_owned(), READ, Access::With(Permission::ViewCaptures), get(grabs::compare::show)),
        (
            grabs::DELETE_SELECTED.to_owned(),
            FORM,
            Access::With(Permission::Capture),
            get(grabs::delete_selected::show).post(grabs::delete_selected::submit),
        ),
        (grabs::ONE.to_owned(), READ, Access::With(Permission::ViewCaptures), get(grabs::show::show)),
        (grabs::EVENTS.to_owned(), READ, Access::With(Permission::ViewCaptures), get(grabs::events::watch_one)),
        (grabs::THUMBNAIL.to_owned(), READ, Access::With(Permission::ViewCaptures), get(grabs::thumbnail::show)),
        (grabs::AGAIN.to_owned(), WRITE, Access::With(Permission::Capture), post(grabs::retake::submit)),
        (
            grabs::DELETE.to_owned(),
            FORM,
            Access::With(Permission::Capture),
            get(grabs::delete::show).post(grabs::delete::submit),
        ),
        ("/teams/{team}".to_owned(), READ, Access::Members, get(teams::users::redirect_to_page)),
        ("/teams/{team}/people".to_owned(), READ, Access::Members, get(teams::users::show)),
        ("/teams/{team}/settings".to_owned(), READ, Access::With(Permission::ManageTeam), get(teams::settings::show)),
        (
            "/teams/{team}/name".to_owned(),
            FORM,
            Access::With(Permission::ManageTeam),
            get(teams::settings::redirect_to_page).post(teams::rename::submit),
        ),
        (
            "/teams/{team}/delete".to_owned(),
            FORM,
            Access::With(Permission::ManageTeam),
            get(teams::delete::show).post(teams::delete::submit),
        ),
        ("/teams/{team}/export".to_owned(), READ, Access::With(Permission::ManageTeam), get(teams::export::download)),
        ("/teams/{team}/leave".to_owned(), FORM, Access::Members, get(teams::leave::show).post(teams::leave::submit)),
        (
            "/teams/{team}/invitations".to_owned(),
            FORM,
            Access::With(Permission::ManageMembers),
            get(teams::users::redirect_to_page).post(teams::invite::submit),
        ),
        (
            "/teams/{team}/invitations/{invitation}/withdraw".to_owned(),
            WRITE,
            Access::With(Permission::ManageMembers),
            post(teams::invite::withdraw),
        ),
        (
            "/teams/{team}/members/{user}/role".to_owned(),
            WRITE,
            Access::With(Permission::ManageMembers),
            post(teams::members::set_role),
        ),
        (
            "/teams/{team}/members/{user}/remove".to_owned(),
            FORM,
            Access::With(Permission::ManageMembers),
            get(teams::members::confirm_removal).post(teams::members::remove),
        ),
        ("/teams/{team}/audit".to_owned(), READ, Access::With(Permission::ManageTeam), get(teams::trail::show)),
        ("/teams/{team}/audit.csv".to_owned(), READ, Access::With(Permission::ManageTeam), get(teams::trail::download)),
        ("/teams/{team}/secrets".to_owned(), READ, Access::With(Permission::ManageKeys), get(teams::secrets::show)),
        (
            "/teams/{team}/keys".to_owned(),
            FORM,
            Access::With(Permission::ManageKeys),
            get(keys::list::show).post(keys::create::submit),
        ),
        (
            "/teams/{team}/keys/{key}/link".to_owned(),
            FORM,
            Access::With(Permission::ManageKeys),
            get(keys::link::show).post(keys::link::submit),
        ),
        (
            "/teams/{team}/keys/{key}/link/replace".to_owned(),
            FORM,
            Access::With(Permission::ManageKeys),
            get(keys::replace_link::show).post(keys::replace_link::submit),
        ),
        (
            "/teams/{team}/keys/{key}/revoke".to_owned(),
            FORM,
            Access::With(Permission::ManageKeys),
            get(keys::revoke::show).post(keys::revoke::submit),
        ),
        (requests::LIST.to_owned(), READ, Access::With(Permission::ViewRequests), get(requests::list::show)),
        (requests::ONE.to_owned(), READ, Access::With(Permission::ViewRequests), get(requests::show::show)),
        (monitors::LIST.to_owned(), READ, Access::With(Permission::ViewCaptures), get(monitors::list::show)),
        (
            monitors::NEW.to_owned(),
            FORM,
            Access::With(Permission::Capture),
            get(monitors::create::show).post(monitors::create::submit),
        ),
        (monitors::ONE.to_owned(), READ, Access::With(Permission::ViewCaptures), get(monitors::show::show)),
        (
            monitors::CHANGE.to_owned(),
            FORM,
            Access::With(Permission::Capture),
            get(monitors::change::show).post(monitors::change::submit),
        ),
        (monitors::PAUSE.to_owned(), WRITE, Access::With(Permission::Capture), post(monitors::switch::pause)),
        (monitors::RESUME.to_owned(), WRITE, Access::With(Permission::Capture), post(monitors::switch::resume)),
        (monitors::ACCEPT.to_owned(), WRITE, Access::With(Permission::Capture), post(monitors::accept::submit)),
        (monitors::FEED.to_owned(), WRITE, Access::With(Permission::Capture), post(monitors::feed_address::open)),
        (monitors::FEED_OFF.to_owned(), WRITE, Access::With(Permission::Capture), post(monitors::feed_address::close)),
        (monitors::HISTORY.to_owned(), READ, Access::With(Permission::ViewCaptures), get(monitors::history::download)),
        (
            monitors::DELETE.to_owned(),
            FORM,
            Access::With(Permission::Capture),
            get(monitors::delete::show).post(monitors::delete::submit),
        ),
        (sites::LIST.to_owned(), READ, Access::With(Permission::ViewCaptures), get(sites::list::show)),
        (
            sites::NEW.to_owned(),
            FORM,
            Access::With(Permission::Capture),
            get(sites::create::show).post(sites::create::submit),
        ),
        (sites::ONE.to_owned(), READ, Access::With(Permission::ViewCaptures), get(sites::show::show)),
        (sites::EVENTS.to_owned(), READ, Access::With(Permission::ViewCaptures), get(sites::events::watch)),
        (sites::DOWNLOAD.to_owned(), READ, Access::With(Permission::ViewCaptures), get(sites::download::show)),
        (
            sites::CANCEL.to_owned(),
            FORM,
            Access::With(Permission::Capture),
            get(sites::cancel::show).post(sites::cancel::submit),
        ),
        (
            sites::DELETE.to_owned(),
            FORM,
            Access::With(Permission::Capture),
            get(sites::delete::show).post(sites::delete::submit),
        ),
        (webhooks::LIST.to_owned(), READ, Access::With(Permission::ManageWebhooks), get(webhooks::list::show)),
        (
            webhooks::NEW.to_owned(),
            FORM,
            Access::With(Permission::ManageWebhooks),
            get(webhooks::create::show).post(webhooks::create::submit),
        ),
        (webhooks::ONE.to_owned(), READ, Access::With(Permission::ManageWebhooks), get(webhooks::show::show)),
        (
            webhooks::CHANGE.to_owned(),
            FORM,
            Access::With(Permission::ManageWebhooks),
            get(webhooks::change::show).post(webhooks::change::submit),
        ),
        (
            webhooks::SECRET.to_owned(),
            FORM,
            Access::With(Permission::ManageWebhooks),
            get(webhooks::secret::show).post(webhooks::secret::submit),
        ),
        (
            webhooks::OFF.to_owned(),
            FORM,
            Access::With(Permission::ManageWebhooks),
            get(webhooks::switch::confirm_off).post(webhooks::switch::off),
        ),
        (webhooks::ON.to_owned(), WRITE, Access::With(Permission::ManageWebhooks), post(webhooks::switch::on)),
        (
            webhooks::DELETE.to_owned(),
            FORM,
            Access::With(Permission::ManageWebhooks),
            get(webhooks::delete::show).post(webhooks::delete::submit),
        ),
        (webhooks::KEEP.to_owned(), WRITE, Access::With(Permission::ManageWebhooks), post(webhooks::keep::submit)),
        (webhooks::TEST.to_owned(), WRITE, Access::With(Permission::ManageWebhooks), post(webhooks::send::test)),
        (webhooks::DELIVERY.to_owned(), READ, Access::With(Permission::ManageWebhooks), get(webhooks::delivery::show)),
        (webhooks::AGAIN.to_owned(), WRITE, Access::With(Permission::ManageWebhooks), post(webhooks::send::again)),
        (proxies::LIST.to_owned(), READ, Access::With(Permission::ManageTeam), get(proxies::list::show)),
        (
            proxies::NEW.to_owned(),
            FORM,
            Access::With(Permission::ManageTeam),
            get(proxies::create::show).post(proxies::create::submit),
        ),
        (
            proxies::CHANGE.to_owned(),
            FORM,
            Access::With(Permission::ManageTeam),
            get(proxies::change::show).post(proxies::change::submit),
        ),
        (
            proxies::LOGIN.to_owned(),
            FORM,
            Access::With(Permission::ManageTeam),
            get(proxies::login::show).post(proxies::login::submit),
        ),
        (
            proxies::DELETE.to_owned(),
            FORM,
            Access::With(Permission::ManageTeam),
            get(proxies::delete::show).post(proxies::delete::submit),
        ),
        (billing::PAGE.to_owned(), READ, Access::With(Permission::ViewUsage), get(billing::show::show)),
        (billing::LEDGER.to_owned(), READ, Access::With(Permission::ViewUsage), get(billing::ledger::show)),
        (billing::EXPORT.to_owned(), READ, Access::With(Permission::ViewUsage), get(billing::export::download)),
        (billing::CHECKOUT.to_owned(), WRITE, Access::With(Permission::BuyCredits), post(billing::checkout::submit)),
        (billing::ALERT.to_owned(), WRITE, Access::With(Permission::ManageAlerts), post(billing::alert::submit)),
        (
            billing::RECIPIENTS.to_owned(),
            WRITE,
            Access::With(Permission::ManageAlerts),
            post(billing::recipients::submit),
        ),
        (billing::PAID.to_owned(), READ, Access::With(Permission::ViewUsage), get(billing::paid::show)),
    ]
}

/// All other routes, whose handlers decide who may use them.
fn routes_outside_teams(web: &Web) -> Vec<(String, &'static str, MethodRouter<Arc<Web>>)> {
    let authorize = get(oauth::authorize::show).post(oauth::authorize::decide);
    vec![
        (oauth::authorize_path(&web.core.oauth().issuer), FORM, authorize),
        (paths::SIGN_IN.to_owned(), FORM, get(sign_in::with_password::show).post(sign_in::with_password::submit)),
        (paths::SIGN_IN_CODE.to_owned(), FORM, get(sign_in::code::show).post(sign_in::code::submit)),
        (
            paths::SIGN_IN_PASSKEY.to_owned(),
            FORM,
            get(sign_in::passkey::redirect_to_page).post(sign_in::passkey::submit),
        ),
        (paths::PASSKEY_CHALLENGE.to_owned(), READ, get(sign_in::passkey::challenge)),
        (DEVICE_PATH.to_owned(), FORM, get(oauth::device::show).post(oauth::device::submit)),
        (sign_in::SIGN_UP.to_owned(), FORM, get(sign_in::sign_up::show).post(sign_in::sign_up::submit)),
        ("/sign-out".to_owned(), WRITE, post(sign_in::sign_out::submit)),
        (apps::PATH.to_owned(), READ, get(apps::list::show)),
        ("/apps/{grant}/disconnect".to_owned(), WRITE, post(apps::disconnect::submit)),
        (paths::CONNECT.to_owned(), READ, get(connect::show)),
        (start::PATH.to_owned(), FORM, get(start::show).post(start::submit)),
        (start::CODE.to_owned(), READ, get(start::code)),
        (samples::PATH.to_owned(), READ, get(samples::image)),
        (monitors::ATOM.to_owned(), READ, get(monitors::feed::atom)),
        (monitors::BADGE.to_owned(), READ, get(monitors::feed::badge)),
        (grabs::PATH.to_owned(), READ, get(grabs::home::show)),
        (paths::NEW_CAPTURE.to_owned(), READ, get(grabs::home::capture)),
        (sign_in::FORGOTTEN.to_owned(), FORM, get(sign_in::forgotten::show).post(sign_in::forgotten::submit)),
        (
            sign_in::verify_email::PATH.to_owned(),
            FORM,
            get(sign_in::verify_email::show).post(sign_in::verify_email::submit),
        ),
        (sign_in::verify_email::SEND.to_owned(), WRITE, post(sign_in::verify_email::send)),
        ("/new-password".to_owned(), FORM, get(sign_in::new_password::show).post(sign_in::new_password::submit)),
        (account::PATH.to_owned(), READ, get(account::show::show)),
        ("/account/password".to_owned(), FORM, get(account::show::redirect_to_page).post(account::password::submit)),
        (account::delete::DELETE.to_owned(), FORM, get(account::delete::show).post(account::delete::submit)),
        (
            paths::SECOND_FACTOR.to_owned(),
            FORM,
            get(account::second_factor::show::show).post(account::second_factor::show::submit),
        ),
        (
            account::second_factor::APP.to_owned(),
            FORM,
            get(account::second_factor::app::show).post(account::second_factor::app::submit),
        ),
        (
            account::second_factor::CODES.to_owned(),
            FORM,
            get(account::second_factor::codes::show).post(account::second_factor::codes::submit),
        ),
        (
            account::second_factor::OFF.to_owned(),
            FORM,
            get(account::second_factor::off::show).post(account::second_factor::off::submit),
        ),
        (paths::PASSKEYS.to_owned(), READ, get(account::passkeys::list::show)),
        (
            account::passkeys::NEW.to_owned(),
            FORM,
            get(account::passkeys::add::show).post(account::passkeys::add::confirm),
        ),
        (
            account::passkeys::ADD.to_owned(),
            FORM,
            get(account::passkeys::add::redirect_to_start).post(account::passkeys::add::submit),
        ),
        (account::passkeys::ONE.to_owned(), READ, get(account::passkeys::one::show)),
        (
            account::passkeys::NAME.to_owned(),
            FORM,
            get(account::passkeys::one::redirect_to_page).post(account::passkeys::one::rename),
        ),
        (
            account::passkeys::REMOVE.to_owned(),
            FORM,
            get(account::passkeys::one::redirect_to_page).post(account::passkeys::one::remove),
        ),
        ("/account/sessions/end".to_owned(), WRITE, post(account::sessions::end)),
        (invitation::PATH.to_owned(), FORM, get(invitation::show).post(invitation::submit)),
        (keys::PATH.to_owned(), READ, get(keys::show)),
        (paths::TEAMS.to_owned(), FORM, get(teams::list::show).post(teams::create::submit)),
        (requests::FIND.to_owned(), READ, get(requests::find::show)),
        (web.assets.copy.path.clone(), READ, get(assets::copy)),
        (web.assets.docs.path.clone(), READ, get(assets::docs)),
        (web.assets.site.path.clone(), READ, get(assets::site)),
        (web.assets.compare.path.clone(), READ, get(assets::compare)),
        (web.assets.gallery.path.clone(), READ, get(assets::gallery)),
        (web.assets.capture.path.clone(), READ, get(assets::capture)),
        (web.assets.key.path.clone(), READ, get(assets::key)),
        (web.assets.start.path.clone(), READ, get(assets::start)),
        (web.assets.passkey.path.clone(), READ, get(assets::passkey)),
        (docs::PATH.to_owned(), READ, get(docs::home)),
        (docs::SEARCH.to_owned(), READ, get(docs::search)),
        (docs::ONE.to_owned(), READ, get(docs::show)),
        (docs::ONE_OF_REFERENCE.to_owned(), READ, get(docs::show_reference)),
        (docs::PACKAGE.to_owned(), READ, get(docs::package)),
        (docs::LLMS.to_owned(), READ, get(docs::llms)),
        (billing::HOME.to_owned(), READ, get(billing::home::show)),
        (web.assets.style.path.clone(), READ, get(assets::style)),
        (web.assets.font.path.clone(), READ, get(assets::font)),
        (web.assets.script.path.clone(), READ, get(assets::script)),
        (web.assets.icon.path.clone(), READ, get(assets::icon)),
        (web.assets.picture.path.clone(), READ, get(assets::picture)),
        (web.assets.phone.path.clone(), READ, get(assets::phone)),
    ]
}
