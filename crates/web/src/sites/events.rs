//! Server-Sent Events of a job: `parts` has its state when that has changed, `end` closes the stream.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use grabd_domain::permissions::Permission;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::view::SiteView;
use crate::access::Access;
use crate::extract::TeamPart;
use crate::problem::Problem;
use crate::state::Web;

/// How often the state is read.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long one stream lasts. The browser opens another one then.
const MAX_READS: u32 = 450;
/// Interval of comments that keep proxies from closing an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Who may still see the changes when one is sent.
const ACCESS: Access = Access::With(Permission::ViewCaptures);
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

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
    Path((team, site)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    at.find_site(&web, &site).await?;
    let subscriber = Subscriber { web, team, site, headers, shown: String::new(), reads: 0, is_ended: false };
    let events = stream::unfold(subscriber, async |mut subscriber| {
        let event = subscriber.next().await?;
        Some((Ok::<_, Infallible>(event), subscriber))
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

/// The client of a stream.
struct Subscriber {
    web: Arc<Web>,
    team: String,
    site: String,
    headers: HeaderMap,
    /// What was sent last.
    shown: String,
    reads: u32,
    /// Whether the last state was sent.
    is_ended: bool,
}

impl Subscriber {
    /// The next event. `None` ends the stream: it lasts long enough, or the user has signed out, left the team or got another
    /// role, or the job was deleted.
    async fn next(&mut self) -> Option<Event> {
        if self.is_ended {
            return self.end();
        }
        while self.reads < MAX_READS {
            if self.reads > 0 {
                tokio::time::sleep(INTERVAL).await;
            }
            self.reads += 1;
            let at = self.web.team_context(&self.headers, &self.team, ACCESS).await.ok()??;
            let (site, _) = at.find_site(&self.web, &self.site).await.ok()?;
            let site = SiteView::of(&site, &at);
            self.is_ended = !site.is_open;
            let html = StateUpdate { site }
                .render()
                .inspect_err(|error| tracing::error!(%error, "failed to render a part of a page"))
                .ok()?;
            if html != self.shown {
                self.shown.clone_from(&html);
                return Some(Event::default().event("parts").data(html));
            }
            if self.is_ended {
                return self.end();
            }
        }
        None
    }

    /// The last event, once.
    fn end(&mut self) -> Option<Event> {
        let is_first = self.reads <= MAX_READS;
        self.reads = MAX_READS + 1;
        is_first.then(|| Event::default().event("end").data("nothing more will come"))
    }
}
