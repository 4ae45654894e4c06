//! What happens to grabs while their pages are open, as Server-Sent Events: `parts` holds the parts of the page that have
//! changed, `end` says that nothing more will come.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, SelectAll, Stream, StreamExt};
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::GrabId;
use grabd_engine::grabs::{self, Cut};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::list::CardNews;
use super::show::Parts;
use crate::Web;
use crate::form::Form;
use crate::frame::Client;
use crate::problem::Problem;
use crate::team::AtTeam;

/// The field of the query that names a grab.
pub(super) const GRAB: &str = "grab";
/// Grabs that one stream tells of: those of a page, and those that began while it was read.
const MOST: usize = 32;
/// Comments in between keep proxies from closing a quiet connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

type States = Pin<Box<dyn Stream<Item = Result<Arc<Grab>, Cut>> + Send>>;

/// How a changed grab is shown.
type Show = fn(&Grab, &AtTeam) -> askama::Result<String>;

/// What happens to one grab, for its own page.
pub(crate) async fn of_one(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, grab)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let at = enter(&web, client, request.headers(), &team).await?;
    let (grab, caller) = at.find_grab(&web, &grab).await?;
    let states = states(&web, caller, grab.id).await?;
    Ok(told(web, &at, request.headers(), stream::select_all([states]), |grab, at| Parts::of(grab, at).render()))
}

/// What happens to some grabs, for the gallery.
pub(crate) async fn of_many(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let at = enter(&web, client, request.headers(), &team).await?;
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let asked: Vec<&str> = query.fields().iter().filter(|(name, _)| name == GRAB).map(|(_, id)| &**id).collect();
    if asked.len() > MOST {
        return Err(Problem::bad_request("Too many captures", format!("At most {MOST} can be followed at once."), ""));
    }
    let mut all = SelectAll::new();
    for id in asked {
        let (grab, caller) = at.find_grab(&web, id).await?;
        all.push(states(&web, caller, grab.id).await?);
    }
    Ok(told(web, &at, request.headers(), all, |grab, at| CardNews::of(grab, at).render()))
}

async fn enter(web: &Web, client: Client, headers: &HeaderMap, team: &str) -> Result<AtTeam, Problem> {
    web.limits.parts.take(client.0)?;
    web.at_team(headers, team).await?.ok_or_else(Problem::signed_out)
}

async fn states(web: &Web, caller: Caller, grab: GrabId) -> Result<States, Problem> {
    // From the beginning: the page may have been read some time ago.
    Ok(Box::pin(grabs::watch(&web.core, caller, grab, 0).await?))
}

/// The stream. It is dropped with its connection, and owns no work.
fn told(web: Arc<Web>, at: &AtTeam, headers: &HeaderMap, states: SelectAll<States>, show: Show) -> Response {
    let reader = Reader { web, team: at.insider.team.to_string(), headers: headers.clone(), show };
    let events = stream::unfold(Some((reader, states)), async |state| {
        let (reader, mut states) = state?;
        match states.next().await {
            Some(Ok(grab)) => Some((Ok::<_, Infallible>(reader.tell(&grab).await?), Some((reader, states)))),
            // Readers come back by themselves.
            Some(Err(Cut)) => None,
            None => Some((Ok(Event::default().event("end").data("nothing more will come")), None)),
        }
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Who reads a stream.
struct Reader {
    web: Arc<Web>,
    team: String,
    headers: HeaderMap,
    show: Show,
}

impl Reader {
    /// One event; `None` ends the stream. Whoever has signed out or left the team since it began hears nothing more.
    async fn tell(&self, grab: &Grab) -> Option<Event> {
        let at = self.web.at_team(&self.headers, &self.team).await.ok()??;
        match (self.show)(grab, &at) {
            Ok(html) => Some(Event::default().event("parts").data(html)),
            Err(error) => {
                tracing::error!(%error, "a part of a page could not be written");
                None
            }
        }
    }
}
