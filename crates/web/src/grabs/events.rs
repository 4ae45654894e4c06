//! Server-Sent Events for open pages: `parts` contains the changed parts of the page, `end` closes the stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, SelectAll, Stream, StreamExt};
use grabd_domain::credentials::Caller;
use grabd_domain::ids::GrabId;
use grabd_domain::permissions::Permission;
use grabd_engine::grabs::{self, Follow, GrabUpdate, WatchInterrupted};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::card::CardUpdate;
use super::result::{PART_FIELD, RESULT, ResultParts};
use super::show::ChangedParts;
use super::{MAX_WATCHED, WATCHED};
use crate::access::Access;
use crate::extract::{QueryForm, TeamPart};
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// Interval of comments that keep proxies from closing an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Who may still see the changes when one is sent.
const ACCESS: Access = Access::With(Permission::ViewCaptures);
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

type States = Pin<Box<dyn Stream<Item = Result<GrabUpdate, WatchInterrupted>> + Send>>;

/// Renders the changed parts of a grab.
type RenderFn = fn(&GrabUpdate, &TeamContext) -> askama::Result<String>;

/// Streams the changes of one grab, for its page, or with `part=result` for the pane beside the capture form.
pub(crate) async fn watch_one(
    State(web): State<Arc<Web>>,
    TeamPart(at): TeamPart,
    Path((_, grab)): Path<(String, String)>,
    QueryForm(query): QueryForm,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (grab, caller) = at.find_grab(&web, &grab).await?;
    let states = states(&web, caller, grab.id, Follow::Stages).await?;
    let render: RenderFn = match query.get(PART_FIELD) {
        RESULT => |update, at| ResultParts::of(&update.grab, &update.stages, at).render(),
        _ => |update, at| ChangedParts::of(&update.grab, &update.stages, at).render(),
    };
    Ok(event_stream(web, &at, headers, stream::select_all([states]), render))
}

/// Streams the changes of several grabs, for the gallery.
pub(crate) async fn watch_many(
    State(web): State<Arc<Web>>,
    TeamPart(at): TeamPart,
    QueryForm(query): QueryForm,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let ids: Vec<&str> = query.fields().iter().filter(|(name, _)| name == WATCHED).map(|(_, id)| &**id).collect();
    if ids.len() > MAX_WATCHED {
        return Err(Problem::bad_request(
            "Too many captures",
            format!("At most {MAX_WATCHED} captures can be followed at once."),
            "",
        ));
    }
    let mut all = SelectAll::new();
    for id in ids {
        let (grab, caller) = at.find_grab(&web, id).await?;
        all.push(states(&web, caller, grab.id, Follow::Revisions).await?);
    }
    Ok(event_stream(web, &at, headers, all, |update, at| CardUpdate::of(&update.grab, at).render()))
}

async fn states(web: &Web, caller: Caller, grab: GrabId, follow: Follow) -> Result<States, Problem> {
    // From the first state: the grab may have changed since the page was rendered.
    Ok(Box::pin(grabs::watch(&web.core, caller, grab, 0, follow).await?))
}

/// The event stream. It spawns no task, so closing the connection drops everything.
fn event_stream(
    web: Arc<Web>,
    at: &TeamContext,
    headers: HeaderMap,
    states: SelectAll<States>,
    render: RenderFn,
) -> Response {
    let subscriber = Subscriber { web, team: at.team_member.team.to_string(), headers, render };
    let events = stream::unfold(Some((subscriber, states)), async |state| {
        let (subscriber, mut states) = state?;
        match states.next().await {
            Some(Ok(update)) => {
                Some((Ok::<_, Infallible>(subscriber.event(&update).await?), Some((subscriber, states))))
            }
            // The browser reconnects by itself.
            Some(Err(WatchInterrupted)) => None,
            None => Some((Ok(Event::default().event("end").data("nothing more will come")), None)),
        }
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// The client of a stream.
struct Subscriber {
    web: Arc<Web>,
    team: String,
    headers: HeaderMap,
    render: RenderFn,
}

impl Subscriber {
    /// Renders one event. `None` ends the stream: the user has signed out, left the team, or got another role since it began.
    async fn event(&self, update: &GrabUpdate) -> Option<Event> {
        let at = self.web.team_context(&self.headers, &self.team, ACCESS).await.ok()??;
        match (self.render)(update, &at) {
            Ok(html) => Some(Event::default().event("parts").data(html)),
            Err(error) => {
                tracing::error!(%error, "failed to render a part of a page");
                None
            }
        }
    }
}
