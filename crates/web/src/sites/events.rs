//! Server-Sent Events of a job: `parts` has its state when that has changed, `end` closes the stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream, StreamExt};
use grabd_domain::permissions::Permission;
use grabd_domain::site::Site;
use grabd_engine::sites;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::view::SiteView;
use crate::access::Access;
use crate::extract::TeamPart;
use crate::problem::Problem;
use crate::state::Web;

/// Interval of comments that keep proxies from closing an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Who may still see the changes when one is sent.
const ACCESS: Access = Access::With(Permission::ViewCaptures);
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

type States = Pin<Box<dyn Stream<Item = Site> + Send>>;

/// The state of a job, as an update of its page.
#[derive(Template)]
#[template(path = "site_state.html")]
struct StateUpdate {
    site: SiteView,
}

/// Streams the changes of one job. The stream spawns no task, so closing the connection drops everything.
pub(crate) async fn watch(
    State(web): State<Arc<Web>>,
    TeamPart(at): TeamPart,
    Path((_, site)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (site, caller) = at.find_site(&web, &site).await?;
    let states: States = Box::pin(sites::watch(&web.core, caller, site.id));
    let subscriber = Subscriber { web, team: at.team_member.team.to_string(), headers, is_ended: false };
    let events = stream::unfold(Some((subscriber, states)), async |state| {
        let (mut subscriber, mut states) = state?;
        match states.next().await {
            Some(site) => {
                let event = subscriber.event(&site).await?;
                Some((Ok::<_, Infallible>(event), Some((subscriber, states))))
            }
            None if subscriber.is_ended => {
                Some((Ok(Event::default().event("end").data("nothing more will come")), None))
            }
            // The browser reconnects by itself.
            None => None,
        }
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

/// The client of a stream.
struct Subscriber {
    web: Arc<Web>,
    team: String,
    headers: HeaderMap,
    /// Whether the last state was sent.
    is_ended: bool,
}

impl Subscriber {
    /// Renders one event. `None` ends the stream: the user has signed out, left the team, or got another role since it began.
    async fn event(&mut self, site: &Site) -> Option<Event> {
        let at = self.web.team_context(&self.headers, &self.team, ACCESS).await.ok()??;
        self.is_ended = site.finished_at.is_some();
        match (StateUpdate { site: SiteView::of(site, &at) }).render() {
            Ok(html) => Some(Event::default().event("parts").data(html)),
            Err(error) => {
                tracing::error!(%error, "failed to render a part of a page");
                None
            }
        }
    }
}
