//! `grab watch`: follows a capture through Server-Sent Events and reconnects when the stream breaks.

use std::time::Duration;

use eventsource_stream::Eventsource;
use futures::StreamExt;
use reqwest::{Method, Response, StatusCode};
use tokio::time::Instant;

use crate::api::{Api, Grab, is_rate_limited};
use crate::failure::{Exit, Failure};
use crate::{list, output};

/// Consecutive streams without an event after which watching fails.
const MAX_EMPTY_STREAMS: u32 = 5;

/// How long the limit of waits is waited for until a stream can be opened.
const LIMIT_WAIT: Duration = Duration::from_secs(30 * 60);

/// The name of the event of a stage. Others are of a new status.
const STAGE: &str = "stage";

/// Follows a capture until it ends, and prints each status change and each stage.
pub(crate) async fn watch(api: &Api, json: bool, id: &str) -> Result<Exit, Failure> {
    let path = format!("{}/events", list::path("grabs", id)?);
    let (mut last_event_id, mut empty_streams) = (String::new(), 0);
    loop {
        let response = open(api, &path, &last_event_id).await?;
        // No events are left: the capture ended, possibly while the stream was disconnected.
        if response.status() == StatusCode::NO_CONTENT {
            return finish(api, json, &list::fetch(api, id).await?);
        }
        let url = response.url().clone();
        let mut events = response.bytes_stream().eventsource();
        empty_streams += 1;
        // A broken stream is resumed like one that the service closed.
        while let Some(Ok(event)) = events.next().await {
            let grab = serde_json::from_str(&event.data).ok().and_then(Grab::parse);
            let grab = grab.ok_or_else(|| Failure::UnexpectedResponse { url: url.clone(), status: StatusCode::OK })?;
            (last_event_id, empty_streams) = (event.id, 0);
            let stage = grab.fields.stages.as_ref().and_then(|stages| stages.last()).filter(|_| event.event == STAGE);
            if grab.has_ended() {
                return finish(api, json, &grab);
            }
            match (json, stage) {
                (true, _) => output::line(&grab.json.to_string())?,
                (false, Some(reached)) => {
                    output::line(&format!("{:12} {} after {} ms", "stage", reached.stage, reached.ms))?;
                }
                (false, None) => output::line(&format!("{:12} {}", "status", grab.fields.status))?,
            }
        }
        if empty_streams == MAX_EMPTY_STREAMS {
            return Err(Failure::UnexpectedResponse { url, status: StatusCode::OK });
        }
    }
}

/// Opens a stream of the events after the last one.
async fn open(api: &Api, path: &str, last_event_id: &str) -> Result<Response, Failure> {
    let until = Instant::now() + LIMIT_WAIT;
    loop {
        let call = api.call(Method::GET, path).waiting_until(until).header("accept", "text/event-stream")?;
        let call = if last_event_id.is_empty() { call } else { call.header("last-event-id", last_event_id)? };
        match call.stream().await {
            // What the service asked for was waited for already.
            Err(failure) if is_rate_limited(&failure) && Instant::now() < until => {}
            opened => return opened,
        }
    }
}

fn finish(api: &Api, json: bool, grab: &Grab) -> Result<Exit, Failure> {
    list::print(api, json, grab)?;
    Ok(if grab.fields.status == "done" { Exit::Done } else { Exit::Failed })
}
