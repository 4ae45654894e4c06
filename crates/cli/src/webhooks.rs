//! `grab webhooks`: where messages about finished captures go.

use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::args::Webhooks;
use crate::failure::{Exit, Failure};
use crate::{list, output};

/// Does what was asked.
pub(crate) async fn run(api: &Api, json: bool, verb: &Webhooks) -> Result<Exit, Failure> {
    let path = |id: &str| list::path("webhooks", id);
    let call = match verb {
        Webhooks::List => api.call(Method::GET, "webhooks"),
        Webhooks::Create { url, events, description } => {
            let mut body = Map::from_iter([("url".to_owned(), json!(url)), ("events".to_owned(), json!(events))]);
            body.extend(description.as_ref().map(|text| ("description".to_owned(), json!(text))));
            api.call(Method::POST, "webhooks").body(Value::Object(body))
        }
        Webhooks::Show { id } => api.call(Method::GET, &path(id)?),
        Webhooks::Update { id, url, events, description, enable, disable } => {
            let status = if *enable { Some("enabled") } else { disable.then_some("disabled") };
            let changes = [
                ("url", url.as_ref().map(|url| json!(url))),
                ("events", (!events.is_empty()).then(|| json!(events))),
                ("description", description.as_ref().map(|text| json!(text))),
                ("status", status.map(|status| json!(status))),
            ];
            let changes = changes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            let body: Map<String, Value> = changes.collect();
            if body.is_empty() {
                return Err(Failure::Usage("say what to change: `grab webhooks update --help` lists it".to_owned()));
            }
            api.call(Method::PATCH, &path(id)?).body(Value::Object(body))
        }
        Webhooks::Delete { id } => api.call(Method::DELETE, &path(id)?),
        Webhooks::RotateSecret { id } => api.call(Method::POST, &format!("{}/rotate_secret", path(id)?)),
        Webhooks::Test { id } => api.call(Method::POST, &format!("{}/test", path(id)?)),
        Webhooks::Deliveries { id } => api.call(Method::GET, &format!("{}/deliveries", path(id)?)),
        Webhooks::Redeliver { id, delivery } => {
            let delivery = list::path("deliveries", delivery)?;
            api.call(Method::POST, &format!("{}/{delivery}/redeliver", path(id)?))
        }
    };
    let body = call.send().await?.body;
    tell(json, verb, &body)?;
    Ok(Exit::Done)
}

fn tell(json: bool, verb: &Webhooks, body: &Value) -> Result<(), Failure> {
    match (verb, body) {
        (Webhooks::Delete { id }, _) => {
            eprintln!("The webhook {id} is gone.");
            Ok(())
        }
        (Webhooks::List | Webhooks::Deliveries { .. }, _) => {
            let rows = body["data"].as_array().map(Vec::as_slice).unwrap_or_default();
            if json {
                return rows.iter().try_for_each(|row| output::line(&row.to_string()));
            }
            let columns: &[&str] = match verb {
                Webhooks::List => &["id", "status", "events", "url", "description"],
                Webhooks::Create { .. }
                | Webhooks::Show { .. }
                | Webhooks::Update { .. }
                | Webhooks::Delete { .. }
                | Webhooks::RotateSecret { .. }
                | Webhooks::Test { .. }
                | Webhooks::Deliveries { .. }
                | Webhooks::Redeliver { .. } => &["id", "type", "status", "attempt", "status_code", "attempted_at"],
            };
            let rows: Vec<Vec<String>> =
                rows.iter().map(|row| columns.iter().map(|column| text(&row[*column])).collect()).collect();
            let head: Vec<String> = columns.iter().map(|column| column.to_uppercase().replace('_', " ")).collect();
            output::table(&head.iter().map(String::as_str).collect::<Vec<_>>(), &rows)
        }
        (_, Value::Object(members)) if !json => {
            members.iter().try_for_each(|(name, value)| output::line(&format!("{name:16} {}", text(value))))
        }
        (_, body) => output::line(&body.to_string()),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
