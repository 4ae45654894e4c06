//! `grab list`, `show` and `delete`.

use std::path::Path;

use reqwest::Method;
use serde_json::Value;

use crate::api::{Api, Grab};
use crate::args::Status;
use crate::capture::download;
use crate::failure::{Exit, Failure};
use crate::output;

/// The largest page of a list.
const PAGE: u32 = 100;

/// Lists captures, the newest first, over as many pages as it takes.
pub(crate) async fn list(
    api: &Api,
    json: bool,
    limit: u32,
    status: Option<Status>,
    after: Option<String>,
) -> Result<Exit, Failure> {
    let (mut rows, mut left, mut after) = (Vec::new(), limit, after);
    while left > 0 {
        let mut call = api.call(Method::GET, "grabs").query("limit", &left.min(PAGE).to_string());
        if let Some(status) = status {
            call = call.query("status", status.as_str());
        }
        if let Some(after) = &after {
            call = call.query("starting_after", after);
        }
        let mut body = call.send().await?.body;
        let has_more = body["has_more"].as_bool().unwrap_or(false);
        let page: Vec<Value> = body["data"].as_array_mut().map(std::mem::take).unwrap_or_default();
        left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(u32::MAX));
        for grab in page.into_iter().filter_map(Grab::parse) {
            after = Some(grab.read.id.clone());
            match json {
                true => output::line(&grab.whole.to_string())?,
                false => rows.push(row(&grab)),
            }
        }
        if !has_more {
            break;
        }
    }
    if !json {
        output::table(&["ID", "CREATED", "STATUS", "SIZE", "PAGE"], &rows)?;
    }
    Ok(Exit::Done)
}

fn row(grab: &Grab) -> Vec<String> {
    let read = &grab.read;
    let created = read.created_at.get(..19).unwrap_or(&read.created_at).replace('T', " ");
    vec![
        read.id.clone(),
        created,
        read.status.clone(),
        output::or_dash(read.bytes.map(output::size)),
        read.target_url.clone(),
    ]
}

/// Shows one capture; opens or fetches its picture where that is asked.
pub(crate) async fn show(api: &Api, json: bool, id: &str, opens: bool, output: Option<&Path>) -> Result<Exit, Failure> {
    let grab = fetch(api, id).await?;
    match output {
        Some(path) if path.as_os_str() == "-" => {
            download::to_stdout(api, &grab).await?;
            return Ok(Exit::Done);
        }
        Some(path) => download::to_file(api, &grab, path).await?,
        None => {}
    }
    tell(api, json, &grab)?;
    if opens {
        let picture = grab.image(api).ok_or_else(|| Failure::NotCaptured {
            message: format!("capture {id} is {} and has no picture", grab.read.status),
        })?;
        open::that_detached(picture.as_str()).map_err(Failure::file(picture.as_str()))?;
    }
    Ok(Exit::Done)
}

/// One capture.
pub(crate) async fn fetch(api: &Api, id: &str) -> Result<Grab, Failure> {
    let call = api.call(Method::GET, &path("grabs", id)?);
    Grab::of(api, call.send().await?)
}

/// The path of one thing of a kind. An id is one segment, whatever somebody pasted.
pub(crate) fn path(kind: &str, id: &str) -> Result<String, Failure> {
    let is_plain = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    match is_plain {
        true => Ok(format!("{kind}/{id}")),
        false => Err(Failure::Usage(format!("{id:?} is no id; ids look like 01990a1b-2c3d-7e4f-8a5b-6c7d8e9f0a1b"))),
    }
}

/// Tells a capture to people, or as JSON.
pub(crate) fn tell(api: &Api, json: bool, grab: &Grab) -> Result<(), Failure> {
    if json {
        return output::line(&grab.whole.to_string());
    }
    let read = &grab.read;
    let pixels = read.image_width.zip(read.image_height).map(|(width, height)| format!("{width} x {height} pixels"));
    let picture = grab.image(api).map(|url| url.to_string());
    let facts = [
        ("id", Some(read.id.clone())),
        ("status", Some(read.status.clone())),
        ("page", Some(read.target_url.clone())),
        ("picture", picture),
        ("created", Some(read.created_at.clone())),
        ("format", read.format.clone().zip(pixels).map(|(format, pixels)| format!("{format}, {pixels}"))),
        ("size", read.bytes.map(output::size)),
        ("rendered in", read.execution_ms.map(|ms| format!("{ms} ms"))),
        ("error", read.error_message.clone()),
    ];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            output::line(&format!("{name:12} {fact}"))?;
        }
    }
    Ok(())
}

/// Deletes the pictures of captures.
pub(crate) async fn delete(api: &Api, ids: &[String]) -> Result<Exit, Failure> {
    for id in ids {
        api.call(Method::DELETE, &path("grabs", id)?).send().await?;
        eprintln!("The picture of {id} is gone within a minute.");
    }
    Ok(Exit::Done)
}
