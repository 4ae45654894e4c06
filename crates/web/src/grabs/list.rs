//! `/teams/{team}/grabs`: the gallery, all captures of a team in one environment, newest first.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Grab, Status};
use grabd_domain::ids::GrabId;
use grabd_domain::{Day, Fault};
use grabd_engine::grabs::{self, GrabList, ListRequest, SearchRequest, THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH};
use http::StatusCode;

use super::WATCHED;
use super::view::{ImageState, View, status_name};
use crate::environments::{ENVIRONMENT, ENVIRONMENTS, environment_name};
use crate::extract::{QueryForm, TeamPage};
use crate::form::Form;
use crate::page::{CspOptions, Layout, page_with};
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// Grabs per page. A multiple of two, three and four, so that rows are full.
pub(super) const PAGE: usize = 24;
const STATUSES: [Status; 4] = [Status::Pending, Status::Processing, Status::Done, Status::Failed];
/// The longest text to search for, in characters.
const MAX_SEARCH: usize = 256;
const SEARCH: &str = "q";
const FROM: &str = "from";
const UNTIL: &str = "until";
const AFTER: &str = "starting_after";
const BEFORE: &str = "ending_before";

#[derive(Template)]
#[template(path = "grabs.html")]
struct GrabsPage {
    layout: Layout,
    team: String,
    environments: Vec<Filter>,
    statuses: Vec<Filter>,
    cards: Vec<Card>,
    /// The path of the event stream, if any grab is open.
    events: Option<String>,
    search: SearchForm,
    /// The name of the selected status.
    filtered_by: Option<&'static str>,
    everything: String,
    capture: String,
    /// Where the selected captures are compared and deleted.
    compare: String,
    delete: String,
    /// How many images were just deleted.
    deleted: Option<usize>,
    newer: Option<String>,
    older: Option<String>,
}

/// The form that searches captures.
struct SearchForm {
    /// Where the form leads.
    path: String,
    url: String,
    from: String,
    until: String,
    max_length: usize,
    environment: &'static str,
    status: Option<&'static str>,
    /// Whether anything is searched for.
    is_active: bool,
}

/// A link that selects a filter.
struct Filter {
    path: String,
    label: &'static str,
    is_here: bool,
}

/// A grab in the gallery.
pub(super) struct Card {
    view: View,
    width: u32,
    height: u32,
}

/// A changed card, and a status message for screen readers.
#[derive(Template)]
#[template(path = "card_update.html")]
pub(super) struct CardUpdate {
    card: Card,
}

impl CardUpdate {
    pub(super) fn of(grab: &Grab, at: &TeamContext) -> Self {
        Self { card: Card::of(grab, at) }
    }
}

impl Card {
    fn of(grab: &Grab, at: &TeamContext) -> Self {
        Self { view: View::of(grab, at), width: THUMBNAIL_WIDTH, height: THUMBNAIL_HEIGHT }
    }
}

/// The parsed query.
struct ListQuery {
    environment: Option<Environment>,
    status: Option<Status>,
    /// Text that the URL contains.
    url: String,
    from: Option<Day>,
    until: Option<Day>,
    after: Option<String>,
    before: Option<String>,
    /// How many images were just deleted.
    deleted: Option<usize>,
}

/// A page of the gallery.
struct Listed {
    grabs: Vec<Grab>,
    /// Whether there are more in the direction of the page.
    has_more: bool,
    /// The grab after which a search continues.
    next: Option<GrabId>,
}

impl ListQuery {
    fn of(query: &Form) -> Result<Self, Problem> {
        let word = |name| Some(query.get(name)).filter(|word| !word.is_empty());
        let environment = word(ENVIRONMENT).map(|word| {
            ENVIRONMENTS.into_iter().find(|environment| environment.as_str() == word).ok_or_else(no_such_filter)
        });
        let status = word("status").map(|word| Status::parse(word).ok_or_else(no_such_filter));
        let day = |name| match query.get(name) {
            "" => Ok(None),
            text => Day::parse(text).map(Some).ok_or_else(no_such_day),
        };
        Ok(Self {
            environment: environment.transpose()?,
            status: status.transpose()?,
            url: query.get(SEARCH).trim().chars().take(MAX_SEARCH).collect(),
            from: day(FROM)?,
            until: day(UNTIL)?,
            after: word(AFTER).map(str::to_owned),
            before: word(BEFORE).map(str::to_owned),
            deleted: word("deleted").and_then(|count| count.parse().ok()).filter(|count| (1..=PAGE).contains(count)),
        })
    }

    fn is_search(&self) -> bool {
        !self.url.is_empty() || self.from.is_some() || self.until.is_some()
    }

    fn search_request(&self) -> SearchRequest {
        SearchRequest {
            url: self.url.clone(),
            status: self.status,
            from: self.from,
            until: self.until,
            after: self.after.clone(),
            limit: PAGE,
        }
    }

    fn request(&self) -> ListRequest {
        ListRequest {
            limit: i64::try_from(PAGE).ok(),
            status: self.status,
            starting_after: self.after.clone(),
            ending_before: self.before.clone(),
            unparsed: Vec::new(),
        }
    }
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
    let template = gallery(&web, &at, environment, &query, &listed);
    let csp = CspOptions { connects: template.events.is_some(), ..CspOptions::default() };
    Ok(page_with(csp, StatusCode::OK, &template))
}

async fn list(web: &Web, at: &TeamContext, environment: Environment, query: &ListQuery) -> Result<Listed, Problem> {
    let caller = at.team_member.admit(&web.core, environment).await?;
    let listed =
        match query.is_search() {
            true => grabs::search(&web.core, caller, &query.search_request()).await.map(|found| Listed {
                has_more: found.next.is_some(),
                next: found.next,
                grabs: found.grabs,
            }),
            false => grabs::list(&web.core, caller, &query.request())
                .await
                .map(|GrabList { grabs, has_more }| Listed { grabs, has_more, next: None }),
        };
    match listed {
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
    list_query: &ListQuery,
    listed: &Listed,
) -> GrabsPage {
    let Listed { grabs, has_more, next } = listed;
    let is_search = list_query.is_search();
    let [from, until] =
        [list_query.from, list_query.until].map(|day| day.map_or_else(String::new, |day| day.to_string()));
    let link = |environment: Environment, status: Option<Status>, cursor: Option<(&str, GrabId)>| {
        let id = cursor.map(|(_, id)| id.to_string());
        let mut query = vec![(ENVIRONMENT, environment.as_str())];
        query.extend(status.map(|status| ("status", status.as_str())));
        let search = [(SEARCH, &list_query.url), (FROM, &from), (UNTIL, &until)];
        query.extend(search.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, text.as_str())));
        query.extend(cursor.zip(id.as_deref()).map(|((name, _), id)| (name, id)));
        format!("{}?{}", at.path("grabs"), Form::from_iter(query).to_query())
    };
    let status_filter = |status: Option<Status>| Filter {
        path: link(environment, status, None),
        label: status.map_or("All", status_name),
        is_here: status == list_query.status,
    };
    let environment_filter = |other: Environment| Filter {
        path: link(other, list_query.status, None),
        label: environment_name(other),
        is_here: other == environment,
    };
    let is_backwards = list_query.before.is_some();
    let has_newer = !is_search && if is_backwards { *has_more } else { list_query.after.is_some() };
    let older = match is_search {
        true => *next,
        false => grabs.last().filter(|_| is_backwards || *has_more).map(|last| last.id),
    };
    let open: Vec<&Grab> = grabs.iter().filter(|grab| !grab.status().is_terminal()).collect();
    let events = (!open.is_empty()).then(|| {
        let ids: Vec<String> = open.iter().map(|grab| grab.id.to_string()).collect();
        let query = Form::from_iter(ids.iter().map(|id| (WATCHED, &**id))).to_query();
        format!("{}?{query}", at.path("grabs/events"))
    });
    let script = events.as_ref().map(|_| web.assets.script.path.clone());
    GrabsPage {
        layout: Layout { script, ..web.team_layout(at, "grabs") },
        team: at.team_member.team_name.clone(),
        environments: ENVIRONMENTS.map(environment_filter).into(),
        statuses: std::iter::once(None).chain(STATUSES.map(Some)).map(status_filter).collect(),
        cards: grabs.iter().map(|grab| Card::of(grab, at)).collect(),
        events,
        filtered_by: list_query.status.map(status_name),
        everything: format!("{}?{ENVIRONMENT}={}", at.path("grabs"), environment.as_str()),
        search: SearchForm {
            path: at.path("grabs"),
            url: list_query.url.clone(),
            max_length: MAX_SEARCH,
            environment: environment.as_str(),
            status: list_query.status.map(Status::as_str),
            is_active: is_search,
            from: from.clone(),
            until: until.clone(),
        },
        capture: format!("{}?{ENVIRONMENT}={}", at.path("capture"), environment.as_str()),
        compare: at.path("grabs/compare"),
        delete: at.path("grabs/delete"),
        deleted: list_query.deleted,
        newer: grabs
            .first()
            .filter(|_| has_newer)
            .map(|first| link(environment, list_query.status, Some((BEFORE, first.id)))),
        older: older.map(|last| link(environment, list_query.status, Some((AFTER, last)))),
    }
}

fn no_such_day() -> Problem {
    Problem::bad_request("Invalid date", "A date must be a day such as 2026-11-21.", "Correct the date.")
}

fn no_such_filter() -> Problem {
    Problem::bad_request("Unknown filter", "The link contains an unknown filter.", "")
}
