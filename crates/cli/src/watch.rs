//! `grab watch`: follows a capture by Server-Sent Events, across broken connections.

use eventsource_stream::Eventsource;
use futures::StreamExt;
use reqwest::{Method, StatusCode};

use crate::api::{Api, Grab};
use crate::failure::{Exit, Failure};
use crate::{list, output};

/// How often a stream may end without having told anything new before that is a failure.
const MAX_EMPTY: u32 = 5;

/// Follows a capture to its end, and tells each state as it comes.
pub(crate) async fn watch(api: &Api, json: bool, id: &str) -> Result<Exit, Failure> {
    let path = format!("{}/events", list::path("grabs", id)?);
    let (mut seen, mut empty) = (String::new(), 0);
    loop {
        let call = api.call(Method::GET, &path).header("accept", "text/event-stream")?;
        let call = if seen.is_empty() { call } else { call.header("last-event-id", &seen)? };
        let response = call.stream().await?;
        // Nothing is left to tell: the end was seen, or came while nobody listened.
        if response.status() == StatusCode::NO_CONTENT {
            return ended(api, json, &list::fetch(api, id).await?);
        }
        let url = response.url().clone();
        let mut events = response.bytes_stream().eventsource();
        empty += 1;
        // A stream that breaks is resumed, as one that the service ends.
        while let Some(Ok(event)) = events.next().await {
            let grab = serde_json::from_str(&event.data).ok().and_then(Grab::parse);
            let grab = grab.ok_or_else(|| Failure::Foreign { url: url.clone(), status: StatusCode::OK })?;
            (seen, empty) = (event.id, 0);
            if grab.has_ended() {
                return ended(api, json, &grab);
            }
            match json {
                true => output::line(&grab.whole.to_string())?,
                false => output::line(&format!("{:12} {}", "status", grab.read.status))?,
            }
        }
        if empty == MAX_EMPTY {
            return Err(Failure::Foreign { url, status: StatusCode::OK });
        }
    }
}

fn ended(api: &Api, json: bool, grab: &Grab) -> Result<Exit, Failure> {
    list::tell(api, json, grab)?;
    Ok(if grab.read.status == "done" { Exit::Done } else { Exit::Failed })
}
