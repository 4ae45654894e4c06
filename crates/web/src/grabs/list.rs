//! `/teams/{team}/grabs`: the gallery, all captures of a team in one environment.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::{GrabId, KeyId};
use grabd_domain::permissions::Permission;
use grabd_domain::{Day, Fault};
use grabd_engine::grabs::{self, ListedGrabs};
use grabd_engine::{Error, accounts};
use http::StatusCode;

use super::card::Card;
use super::first_steps::{self, Step};
use super::menus::{Listing, Menu};
use super::query::{AFTER, BEFORE, ListQuery, MAX_SEARCH};
use super::view::{ImageState, status_name};
use super::{MAX_WATCHED, WATCHED};
use crate::environments::ENVIRONMENT;
use crate::extract::{QueryForm, TeamPage};
use crate::form::Form;
use crate::page::{CspOptions, Layout, page_with};
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

#[derive(Template)]
#[template(path = "grabs.html")]
struct GrabsPage {
    layout: Layout,
    team: String,
    form_token: String,
    /// The first steps of the team, if some are left and the reader has not hidden them.
    steps: Vec<Step>,
    steps_path: String,
    menus: Vec<Menu>,
    /// How many of the menus differ from their defaults.
    set_menus: usize,
    cards: Vec<Card>,
    /// The path of the event stream, if any grab is open.
    events: Option<String>,
    /// How the page finds new captures, if they can be inserted.
    fresh: Option<Fresh>,
    search: SearchForm,
    /// The selected status, or the name of the selected key.
    filtered_by: Option<String>,
    everything: String,
    /// The form for a new capture. `None`: the reader may not capture.
    capture: Option<String>,
    /// Where the selected captures are compared, downloaded and deleted.
    compare: String,
    download: String,
    delete: String,
    /// How many images were just deleted.
    deleted: Option<usize>,
    previous: Option<String>,
    next: Option<String>,
}

/// How the script finds new captures.
struct Fresh {
    path: String,
    /// The id of the newest grab that is shown. Empty if there is none.
    since: String,
    /// The path of the event stream, without the grabs.
    events: String,
}

/// The form that searches captures by their URL and day.
struct SearchForm {
    /// Where the form leads.
    path: String,
    url: String,
    from: String,
    until: String,
    max_length: usize,
    /// What else was chosen.
    hidden: Vec<(&'static str, String)>,
    /// Whether anything is searched for.
    is_active: bool,
    /// Whether the list lacks some captures of its environment.
    is_filtered: bool,
    oldest_first: bool,
}

/// Shows the gallery. Without an environment it shows live captures, or test captures if there are no live ones.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let query = ListQuery::of(&query)?;
    let mut environment = query.environment.unwrap_or(Environment::Live);
    let mut listed = list(&web, &at, environment, &query).await?;
    if query.environment.is_none() && listed.grabs.is_empty() {
        let test = list(&web, &at, Environment::Test, &query).await?;
        if !test.grabs.is_empty() {
            (environment, listed) = (Environment::Test, test);
        }
    }
    let steps = match query.is_plain() {
        true => first_steps::steps(&web, &at).await?,
        false => Vec::new(),
    };
    let keys = accounts::key_names(&web.core, at.team_member.team, environment).await?;
    let template = GrabsPage { steps, ..gallery(&web, &at, environment, &query, &listed, &keys) };
    let csp = CspOptions { connects: template.layout.script.is_some(), ..CspOptions::default() };
    Ok(page_with(csp, StatusCode::OK, &template))
}

async fn list(
    web: &Web,
    at: &TeamContext,
    environment: Environment,
    query: &ListQuery,
) -> Result<ListedGrabs, Problem> {
    let caller = at.team_member.admit(&web.core, environment).await?;
    let listed = match query.is_search() {
        true => grabs::search(&web.core, caller, &query.search_request()).await.map(|found| ListedGrabs {
            has_more: found.next.is_some(),
            next: found.next,
            grabs: found.grabs,
        }),
        false => grabs::list(&web.core, caller, &query.request()).await,
    };
    match listed.map_err(Error::into_fault) {
        Ok(listed) => Ok(listed),
        Err(Fault::BadRequest(_)) => Err(Problem::bad_request(
            "Invalid page link",
            "The link refers to a capture that is not in this list.",
            "Go back to the first page.",
        )),
        Err(fault) => Err(fault.into()),
    }
}

fn gallery(
    web: &Web,
    at: &TeamContext,
    environment: Environment,
    query: &ListQuery,
    listed: &ListedGrabs,
    keys: &[(KeyId, String)],
) -> GrabsPage {
    let ListedGrabs { grabs, has_more, next } = listed;
    let is_search = query.is_search();
    let path = at.path("grabs");
    let link = |cursor: (&str, GrabId)| format!("{path}?{}", query.link(environment, Some(cursor)));
    let is_backwards = query.before.is_some();
    let has_previous = !is_search && if is_backwards { *has_more } else { query.after.is_some() };
    let next = match is_search {
        true => *next,
        false => grabs.last().filter(|_| is_backwards || *has_more).map(|last| last.id),
    };
    let previous = grabs.first().filter(|_| has_previous).map(|first| first.id);
    let events = events_path(at, grabs);
    let fresh = query.begins_with_newest().then(|| Fresh {
        path: format!("{}?{}", at.path("grabs/new"), query.link(environment, None)),
        since: grabs.first().map(|newest| newest.id.to_string()).unwrap_or_default(),
        events: at.path("grabs/events"),
    });
    let is_live = events.is_some() || fresh.is_some();
    let script = is_live.then(|| web.assets.gallery.path.clone());
    let listing = Listing { path: &path, query, environment, today: Day::of(web.core.now()), keys };
    let menus = listing.menus();
    let key_name = listing.key_name().map(str::to_owned);
    GrabsPage {
        layout: Layout { script, ..web.team_layout(at, "grabs") },
        team: at.team_member.team_name.clone(),
        form_token: at.form_token().to_owned(),
        steps: Vec::new(),
        steps_path: at.path("first-steps"),
        set_menus: menus.iter().filter(|menu| menu.is_set).count(),
        menus,
        cards: grabs.iter().map(|grab| Card::of(grab, at)).collect(),
        events,
        fresh,
        filtered_by: query.status.map(|status| status_name(status).to_owned()).or(key_name),
        everything: format!("{path}?{ENVIRONMENT}={}", environment.as_str()),
        search: SearchForm::of(query, &path, environment),
        capture: at
            .may(Permission::Capture)
            .then(|| format!("{}?{ENVIRONMENT}={}", at.path("capture"), environment.as_str())),
        compare: at.path("grabs/compare"),
        download: at.path("grabs/download"),
        delete: at.path("grabs/delete"),
        deleted: query.deleted,
        previous: previous.map(|first| link((BEFORE, first))),
        next: next.map(|last| link((AFTER, last))),
    }
}

/// The path of the event stream of the grabs that are open, as far as one stream can follow them.
fn events_path(at: &TeamContext, grabs: &[Grab]) -> Option<String> {
    let open = grabs.iter().filter(|grab| !grab.status().is_terminal()).take(MAX_WATCHED);
    let ids: Vec<String> = open.map(|grab| grab.id.to_string()).collect();
    let query = Form::from_iter(ids.iter().map(|id| (WATCHED, &**id))).to_query();
    (!ids.is_empty()).then(|| format!("{}?{query}", at.path("grabs/events")))
}

impl SearchForm {
    fn of(query: &ListQuery, path: &str, environment: Environment) -> Self {
        let [from, until] = [query.from, query.until].map(|day| day.map(|day| day.to_string()).unwrap_or_default());
        Self {
            path: path.to_owned(),
            url: query.url.clone(),
            from,
            until,
            max_length: MAX_SEARCH,
            hidden: query.hidden_fields(environment),
            is_active: query.is_search(),
            is_filtered: query.is_filtered(),
            oldest_first: query.oldest_first,
        }
    }
}
