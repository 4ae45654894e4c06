//! `/teams/{team}/grabs`: all captures of a team in one environment, the newest first.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Grab, Status};
use grabd_engine::grabs::{self, ListRequest, Listed, THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH};
use http::StatusCode;

use super::ENVIRONMENTS;
use super::options::ENVIRONMENT;
use super::view::{Stands, View, status_name};
use crate::Web;
use crate::apps::list::environment_name;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::page::{Frame, Rights, page_with};
use crate::problem::Problem;
use crate::session::sign_in_first_at;
use crate::team::AtTeam;

/// Grabs on a page. It fills rows of two, three and four.
const PAGE: usize = 24;
const STATUSES: [Status; 4] = [Status::Pending, Status::Processing, Status::Done, Status::Failed];
const AFTER: &str = "starting_after";
const BEFORE: &str = "ending_before";

#[derive(Template)]
#[template(path = "grabs.html")]
struct GrabsPage {
    frame: Frame,
    team: String,
    environments: Vec<Filter>,
    statuses: Vec<Filter>,
    cards: Vec<Card>,
    /// Where news of what is open comes from, if anything is.
    events: Option<String>,
    /// The words of the filter, when there is nothing for it.
    wanted: Option<&'static str>,
    everything: String,
    capture: String,
    newer: Option<String>,
    older: Option<String>,
}

/// A filter as a link.
struct Filter {
    path: String,
    label: &'static str,
    is_here: bool,
}

/// One grab of the gallery.
pub(super) struct Card {
    view: View,
    width: u32,
    height: u32,
}

/// One card that has changed, and the news for those who do not see it.
#[derive(Template)]
#[template(path = "card_news.html")]
pub(super) struct CardNews {
    card: Card,
}

impl CardNews {
    pub(super) fn of(grab: &Grab, at: &AtTeam) -> Self {
        Self { card: Card::of(grab, at) }
    }
}

impl Card {
    fn of(grab: &Grab, at: &AtTeam) -> Self {
        Self { view: View::of(grab, at), width: THUMBNAIL_WIDTH, height: THUMBNAIL_HEIGHT }
    }
}

/// What a query asks for.
struct Wanted {
    environment: Option<Environment>,
    status: Option<Status>,
    after: Option<String>,
    before: Option<String>,
}

impl Wanted {
    fn of(query: &Form) -> Result<Self, Problem> {
        let word = |name| Some(query.one(name)).filter(|word| !word.is_empty());
        let environment = word(ENVIRONMENT).map(|word| {
            ENVIRONMENTS.into_iter().find(|environment| environment.as_str() == word).ok_or_else(no_such_filter)
        });
        let status = word("status").map(|word| Status::parse(word).ok_or_else(no_such_filter));
        Ok(Self {
            environment: environment.transpose()?,
            status: status.transpose()?,
            after: word(AFTER).map(str::to_owned),
            before: word(BEFORE).map(str::to_owned),
        })
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

/// The gallery. Without an environment it shows the first one in which there is something.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.at_team(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_first_at(request.uri())));
    };
    let wanted = Wanted::of(&Form::parse(request.uri().query().unwrap_or_default().as_bytes()))?;
    let mut environment = wanted.environment.unwrap_or(Environment::Live);
    let mut listed = list(&web, &at, environment, &wanted).await?;
    if wanted.environment.is_none() && listed.grabs.is_empty() {
        let test = list(&web, &at, Environment::Test, &wanted).await?;
        if !test.grabs.is_empty() {
            (environment, listed) = (Environment::Test, test);
        }
    }
    let template = gallery(&web, &at, environment, &wanted, &listed);
    let rights = Rights { script: template.events.is_some(), ..Rights::default() };
    Ok(page_with(rights, StatusCode::OK, &template))
}

async fn list(web: &Web, at: &AtTeam, environment: Environment, wanted: &Wanted) -> Result<Listed, Problem> {
    let caller = at.insider.enter(&web.core, environment)?;
    match grabs::list(&web.core, caller, &wanted.request()).await {
        Ok(listed) => Ok(listed),
        Err(Fault::BadRequest(_)) => Err(Problem::bad_request(
            "There is no such place in the list",
            "The address names a capture that is not in this list.",
            "Begin at the newest one.",
        )),
        Err(fault) => Err(fault.into()),
    }
}

fn gallery(web: &Web, at: &AtTeam, environment: Environment, wanted: &Wanted, listed: &Listed) -> GrabsPage {
    let Listed { grabs, has_more } = listed;
    let link = |environment: Environment, status: Option<Status>, cursor: Option<(&str, &Grab)>| {
        let id = cursor.map(|(_, grab)| grab.id.to_string());
        let mut query = vec![(ENVIRONMENT, environment.as_str())];
        query.extend(status.map(|status| ("status", status.as_str())));
        query.extend(cursor.zip(id.as_deref()).map(|((name, _), id)| (name, id)));
        format!("{}?{}", at.path("grabs"), Form::from_iter(query).to_query())
    };
    let status_filter = |status: Option<Status>| Filter {
        path: link(environment, status, None),
        label: status.map_or("All", status_name),
        is_here: status == wanted.status,
    };
    let environment_filter = |other: Environment| Filter {
        path: link(other, wanted.status, None),
        label: environment_name(other),
        is_here: other == environment,
    };
    let is_backwards = wanted.before.is_some();
    let has_newer = if is_backwards { *has_more } else { wanted.after.is_some() };
    let has_older = is_backwards || *has_more;
    let open: Vec<&Grab> = grabs.iter().filter(|grab| !grab.status().is_terminal()).collect();
    let events = (!open.is_empty()).then(|| {
        let ids: Vec<String> = open.iter().map(|grab| grab.id.to_string()).collect();
        let query = Form::from_iter(ids.iter().map(|id| (super::events::GRAB, &**id))).to_query();
        format!("{}?{query}", at.path("grabs/events"))
    });
    let script = events.as_ref().map(|_| web.assets.script.path.clone());
    GrabsPage {
        frame: Frame { script, ..web.team_frame(at, "grabs") },
        team: at.insider.team_name.clone(),
        environments: ENVIRONMENTS.map(environment_filter).into(),
        statuses: std::iter::once(None).chain(STATUSES.map(Some)).map(status_filter).collect(),
        cards: grabs.iter().map(|grab| Card::of(grab, at)).collect(),
        events,
        wanted: wanted.status.map(status_name),
        everything: link(environment, None, None),
        capture: format!("{}?{ENVIRONMENT}={}", at.path("capture"), environment.as_str()),
        newer: grabs.first().filter(|_| has_newer).map(|first| link(environment, wanted.status, Some((BEFORE, first)))),
        older: grabs.last().filter(|_| has_older).map(|last| link(environment, wanted.status, Some((AFTER, last)))),
    }
}

fn no_such_filter() -> Problem {
    Problem::bad_request("There is no such filter", "The address asks for captures of a kind that there is not.", "")
}
