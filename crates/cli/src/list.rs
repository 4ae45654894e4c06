//! `grab list`, `show` and `delete`.

use std::path::Path;

use reqwest::Method;
use serde_json::Value;

use crate::api::{Api, Grab};
use crate::args::{Format, ListArgs, Status};
use crate::capture::download;
use crate::failure::{Exit, Failure};
use crate::output;

/// The API's maximum page size.
pub(crate) const MAX_PAGE: u32 = 100;

/// Lists captures, newest first, reading as many pages as needed.
pub(crate) async fn list(api: &Api, json: bool, args: &ListArgs) -> Result<Exit, Failure> {
    let ListArgs { limit, status, after, url, from, until } = args;
    let (mut rows, mut left, mut after) = (Vec::new(), *limit, after.clone());
    while left > 0 {
        let mut call = api.call(Method::GET, "grabs").query("limit", &left.min(MAX_PAGE).to_string());
        let status = status.map(Status::as_str);
        let filters =
            [("status", status), ("url", url.as_deref()), ("from", from.as_deref()), ("until", until.as_deref())];
        for (name, value) in filters.into_iter().chain([("starting_after", after.as_deref())]) {
            if let Some(value) = value {
                call = call.query(name, value);
            }
        }
        let mut body = call.send().await?.body;
        let has_more = body["has_more"].as_bool().unwrap_or(false);
        let page: Vec<Value> = body["data"].as_array_mut().map(std::mem::take).unwrap_or_default();
        left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(u32::MAX));
        let (before, next) = (after.clone(), body["next"].as_str().map(str::to_owned));
        for grab in page.into_iter().filter_map(Grab::parse) {
            after = Some(grab.fields.id.to_string());
            match json {
                true => output::line(&grab.json.to_string())?,
                false => rows.push(row(&grab)),
            }
        }
        // A search goes on after the last capture that was read, which need not be on the page.
        after = next.or(after);
        if !has_more || after == before {
            break;
        }
    }
    if !json {
        output::table(&["ID", "CREATED", "STATUS", "SIZE", "PAGE"], &rows)?;
    }
    Ok(Exit::Done)
}

/// Reads as many pages of another list than that of captures as needed.
pub(crate) async fn read_rows(api: &Api, path: &str, limit: u32) -> Result<Vec<Value>, Failure> {
    let (mut rows, mut left) = (Vec::new(), limit);
    let mut after: Option<String> = None;
    while left > 0 {
        let mut call = api.call(Method::GET, path).query("limit", &left.min(MAX_PAGE).to_string());
        if let Some(after) = &after {
            call = call.query("starting_after", after);
        }
        let mut body = call.send().await?.body;
        let has_more = body["has_more"].as_bool().unwrap_or(false);
        let page: Vec<Value> = body["data"].as_array_mut().map(std::mem::take).unwrap_or_default();
        left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(u32::MAX));
        let last = page.last().and_then(cursor);
        rows.extend(page);
        if !has_more || last.is_none() || last == after {
            break;
        }
        after = last;
    }
    Ok(rows)
}

/// What a list goes on after: the id of its last entry, or its number if it has none, as the pages of a site.
fn cursor(entry: &Value) -> Option<String> {
    let number = || entry["number"].as_u64().map(|number| number.to_string());
    entry["id"].as_str().map(str::to_owned).or_else(number)
}

/// Prints the rows as a table, or each as a line of JSON.
pub(crate) fn print_rows(
    json: bool,
    head: &[&str],
    rows: &[Value],
    cells: fn(&Value) -> Vec<String>,
) -> Result<Exit, Failure> {
    if json {
        rows.iter().try_for_each(|row| output::line(&row.to_string()))?;
    } else {
        output::table(head, &rows.iter().map(cells).collect::<Vec<_>>())?;
    }
    Ok(Exit::Done)
}

fn row(grab: &Grab) -> Vec<String> {
    let fields = &grab.fields;
    vec![
        fields.id.to_string(),
        output::moment(&fields.created_at),
        fields.status.to_string(),
        output::or_dash(fields.bytes.map(output::size)),
        fields.target_url.to_string(),
    ]
}

/// Shows one capture; opens or downloads its image if requested.
pub(crate) async fn show(api: &Api, json: bool, id: &str, open: bool, output: Option<&Path>) -> Result<Exit, Failure> {
    let grab = fetch(api, id).await?;
    match output {
        Some(path) if path.as_os_str() == "-" => {
            download::to_stdout(api, &grab).await?;
            return Ok(Exit::Done);
        }
        Some(path) => {
            let format = grab.fields.format.as_deref().and_then(Format::from_extension);
            Format::check_extension(path, format)?;
            download::to_file(api, &grab, path).await?;
        }
        None => {}
    }
    print(api, json, &grab)?;
    if open {
        let image = grab.image(api).ok_or_else(|| download::no_image(&grab))?;
        open::that_detached(image.as_str()).map_err(Failure::file(image.as_str()))?;
    }
    Ok(Exit::Done)
}

/// Reads one capture.
pub(crate) async fn fetch(api: &Api, id: &str) -> Result<Grab, Failure> {
    let call = api.call(Method::GET, &path("grabs", id)?);
    Grab::from_response(api, call.send().await?)
}

/// The path of one resource. Rejects ids that are not a single path segment.
pub(crate) fn path(kind: &str, id: &str) -> Result<String, Failure> {
    let is_plain = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    match is_plain {
        true => Ok(format!("{kind}/{id}")),
        false => {
            Err(Failure::Usage(format!("{id:?} is not a valid id; ids look like 01990a1b-2c3d-7e4f-8a5b-6c7d8e9f0a1b")))
        }
    }
}

/// Prints a capture as text or JSON.
pub(crate) fn print(api: &Api, json: bool, grab: &Grab) -> Result<(), Failure> {
    if json {
        return output::line(&grab.json.to_string());
    }
    let fields = &grab.fields;
    let pixels =
        fields.image_width.zip(fields.image_height).map(|(width, height)| format!("{width} x {height} pixels"));
    let image = match grab.image(api) {
        Some(url) => Some(url.to_string()),
        None => (fields.status == "done").then(|| "deleted".to_owned()),
    };
    let rows = [
        ("id", Some(fields.id.to_string())),
        ("status", Some(fields.status.to_string())),
        ("page", Some(fields.target_url.to_string())),
        ("image", image),
        ("created", Some(fields.created_at.to_string())),
        ("format", fields.format.clone().zip(pixels).map(|(format, pixels)| format!("{format}, {pixels}"))),
        ("size", fields.bytes.map(output::size)),
        ("rendered in", fields.execution_ms.map(|ms| format!("{ms} ms"))),
        ("error", (fields.status == "failed").then(|| grab.error().to_string())),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            output::line(&format!("{name:12} {value}"))?;
        }
    }
    Ok(())
}

/// Deletes the images of captures.
pub(crate) async fn delete(api: &Api, ids: &[String]) -> Result<Exit, Failure> {
    for id in ids {
        api.call(Method::DELETE, &path("grabs", id)?).send().await?;
        eprintln!("The image of {id} will be deleted within a minute.");
    }
    Ok(Exit::Done)
}
