//! `/feeds/{secret}/feed.atom` and `…/badge.svg`: the newest runs of a monitor, and its state, for whoever knows the address.
//!
//! Neither has texts or addresses of the captured page.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::monitor::{MonitorState, Run, RunOutcome};
use grabd_engine::monitors::{self, Feed};
use grabd_http::{etag_of_bytes, with_etag};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::view::{found, outcome_name};
use crate::client_ip::ClientIp;
use crate::problem::Problem;
use crate::state::Web;

const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
const ATOM: &str = "application/atom+xml; charset=utf-8";
const SVG: &str = "image/svg+xml";
/// The width of a letter of the badge, and the space beside its text, in pixels.
const LETTER: usize = 7;
const SPACE: usize = 14;

/// The feed.
pub(crate) async fn atom(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(secret): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let feed = find(&web, client, &secret).await?;
    let address = format!("{}/feeds/{secret}/feed.atom", web.core.public_url());
    Ok(answer(atom_of(&feed, web.core.public_url(), &address), ATOM, &headers))
}

/// The badge.
pub(crate) async fn badge(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(secret): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let feed = find(&web, client, &secret).await?;
    Ok(answer(badge_of(&feed), SVG, &headers))
}

/// What the address shows. Strangers open it, so that its requests are limited by address.
async fn find(web: &Web, client: ClientIp, secret: &str) -> Result<Feed, Problem> {
    web.limits.parts.take(client.0)?;
    let found = monitors::find_feed(&web.core, secret).await?;
    found.ok_or_else(|| Problem::not_found("This feed does not exist, was turned off, or has another address now."))
}

/// The answer, or 304 if the client has it already.
fn answer(text: String, content_type: &'static str, request: &HeaderMap) -> Response {
    let tag = etag_of_bytes(text.as_bytes());
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
    with_etag(response, tag, request)
}

/// The runs that have ended, newest first.
fn ended(feed: &Feed) -> impl Iterator<Item = &Run> {
    feed.runs.iter().filter(|run| run.outcome != RunOutcome::Running)
}

fn atom_of(feed: &Feed, public_url: &str, address: &str) -> String {
    let monitor = &feed.monitor;
    let updated = ended(feed).map(|run| run.finished_at.unwrap_or(run.due_at)).max().unwrap_or(monitor.created_at);
    let page = format!("{public_url}/teams/{}/monitors/{}", monitor.team, monitor.id);
    let entries: String = ended(feed).map(|run| entry(run, &page)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <id>urn:uuid:{}</id>\n<title>{}</title>\n<updated>{updated}</updated>\n<author><name>grabd</name></author>\n\
         <link rel=\"self\" href=\"{}\"/>\n<link rel=\"alternate\" href=\"{}\"/>\n{entries}</feed>\n",
        monitor.id,
        escape(&monitor.spec.name),
        escape(address),
        escape(&page),
    )
}

fn entry(run: &Run, page: &str) -> String {
    let summary = match run.outcome {
        RunOutcome::Failed | RunOutcome::Missed => {
            run.error.as_ref().map_or_else(|| "Nothing was captured.".to_owned(), |error| format!("{}.", error.code))
        }
        RunOutcome::Running | RunOutcome::First | RunOutcome::Same | RunOutcome::Changed => found(run),
    };
    format!(
        "<entry>\n<id>urn:uuid:{}</id>\n<title>{}</title>\n<updated>{}</updated>\n<link href=\"{}\"/>\n\
         <summary>{}</summary>\n</entry>\n",
        run.id,
        outcome_name(run.outcome),
        run.finished_at.unwrap_or(run.due_at),
        escape(page),
        escape(&summary),
    )
}

fn badge_of(feed: &Feed) -> String {
    let is_failing = ended(feed).next().is_some_and(|run| run.outcome == RunOutcome::Failed);
    let (state, colour) = match feed.monitor.state {
        MonitorState::Paused => ("paused", "#57606a"),
        MonitorState::OutOfCredits => ("out of credits", "#cf222e"),
        MonitorState::Active if is_failing => ("failing", "#cf222e"),
        MonitorState::Active => ("active", "#1a7f37"),
    };
    let change = feed.last_change.map_or_else(
        || "no change".to_owned(),
        |at| format!("changed {}", at.to_string().split('T').next().unwrap_or_default()),
    );
    let text = format!("{state}, {change}");
    let width = text.len() * LETTER + SPACE;
    let middle = width / 2;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"20\" role=\"img\" aria-label=\"{text}\">\
         <title>{text}</title><rect width=\"{width}\" height=\"20\" rx=\"3\" fill=\"{colour}\"/>\
         <text x=\"{middle}\" y=\"14\" fill=\"#fff\" font-family=\"Verdana,sans-serif\" font-size=\"11\" \
         text-anchor=\"middle\">{text}</text></svg>"
    )
}

/// A text in XML, which cannot have U+FFFE and U+FFFF. Names have no control characters.
fn escape(text: &str) -> String {
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grabd_domain::Timestamp;
    use grabd_domain::capture::CaptureRequest;
    use grabd_domain::credentials::{Environment, Principal};
    use grabd_domain::ids::{KeyId, MonitorId, RunId, TeamId};
    use grabd_domain::monitor::{Change, Monitor, MonitorRequest, MonitorSpec, Progress, RunError};

    use super::*;

    const ID: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

    fn run(outcome: RunOutcome, error: Option<RunError>) -> Run {
        Run {
            id: ID.parse::<RunId>().unwrap(),
            monitor: ID.parse::<MonitorId>().unwrap(),
            due_at: Timestamp::from_ms(0),
            outcome,
            grab: None,
            compared_to: None,
            difference_ppm: Some(21_000),
            changes: vec![Change::Image],
            text_changes: Vec::new(),
            element_changes: Vec::new(),
            is_alerted: false,
            finished_at: Some(Timestamp::from_ms(1000)),
            error,
        }
    }

    fn feed(runs: Vec<Run>) -> Feed {
        let url = Some("https://example.com/?token=hidden".into());
        let capture = Some(CaptureRequest { url, ..CaptureRequest::default() });
        let name = Some("Tea & <Cake>\u{ffff}".into());
        let request = MonitorRequest { name, capture, every: Some("1h".into()), ..MonitorRequest::default() };
        let at = Timestamp::from_ms(0);
        let monitor = Monitor {
            id: ID.parse::<MonitorId>().unwrap(),
            team: ID.parse::<TeamId>().unwrap(),
            environment: Environment::Live,
            creator: Principal::Key(ID.parse::<KeyId>().unwrap()),
            spec: MonitorSpec::parse(&request, Duration::ZERO).unwrap(),
            state: MonitorState::Active,
            progress: Progress::default(),
            created_at: at,
            updated_at: at,
            next_run_at: None,
            baseline: None,
            has_feed: true,
            last_run: None,
        };
        Feed { monitor, runs, last_change: None }
    }

    #[test]
    fn feed_has_ended_runs_without_what_pages_and_errors_say() {
        let error = RunError::new("render_failed", &"https://example.com/?token=hidden did not load.");
        let runs =
            vec![run(RunOutcome::Running, None), run(RunOutcome::Failed, Some(error)), run(RunOutcome::Changed, None)];
        let atom = atom_of(&feed(runs), "https://grabd.example", "https://grabd.example/feeds/x/feed.atom");
        assert!(!atom.contains("hidden") && atom.contains("<title>Tea &amp; &lt;Cake&gt;</title>"), "{atom}");
        assert_eq!(atom.matches("<entry>").count(), 2);
        assert!(atom.contains("<summary>render_failed.</summary>"), "{atom}");
        assert!(atom.contains("<title>Changed</title>") && atom.contains("2.1 % of the image differs."), "{atom}");
        assert!(atom.contains("<updated>1970-01-01T00:00:01.000Z</updated>"), "{atom}");
    }

    #[test]
    fn badge_has_the_state_and_the_day_of_the_last_change() {
        let failed = RunError::new("render_failed", &"It did not load.");
        for (runs, last_change, expected) in [
            (vec![], None, "active, no change"),
            // The change may be older than the runs of the feed.
            (vec![run(RunOutcome::Same, None)], Some(Timestamp::from_ms(0)), "active, changed 1970-01-01"),
            (vec![run(RunOutcome::Failed, Some(failed))], None, "failing, no change"),
        ] {
            let svg = badge_of(&Feed { last_change, ..feed(runs) });
            assert!(svg.contains(&format!("<title>{expected}</title>")), "{svg}");
        }
    }
}
