//! `grab webhooks`: manages the endpoints that receive messages about finished captures.

use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::args::WebhookCommand;
use crate::failure::{Exit, Failure};
use crate::login::Credential;
use crate::{list, output};

/// Runs a webhook command.
pub(crate) async fn run(api: &Api, json: bool, command: &WebhookCommand) -> Result<Exit, Failure> {
    let path = |id: &str| list::path("webhooks", id);
    let call = match command {
        WebhookCommand::List => api.call(Method::GET, "webhooks"),
        WebhookCommand::Create { url, events, description } => {
            let mut body = Map::from_iter([("url".to_owned(), json!(url)), ("events".to_owned(), json!(events))]);
            body.extend(description.as_ref().map(|text| ("description".to_owned(), json!(text))));
            api.call(Method::POST, "webhooks").body(Value::Object(body))
        }
        WebhookCommand::Show { id } => api.call(Method::GET, &path(id)?),
        WebhookCommand::Update { id, url, events, description, enable, disable } => {
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
                return Err(Failure::Usage(
                    "nothing to change; `grab webhooks update --help` lists the options".to_owned(),
                ));
            }
            api.call(Method::PATCH, &path(id)?).body(Value::Object(body))
        }
        WebhookCommand::Delete { id } => api.call(Method::DELETE, &path(id)?),
        WebhookCommand::RotateSecret { id } => api.call(Method::POST, &format!("{}/rotate_secret", path(id)?)),
        WebhookCommand::Test { id } => api.call(Method::POST, &format!("{}/test", path(id)?)),
        WebhookCommand::Deliveries { id } => api.call(Method::GET, &format!("{}/deliveries", path(id)?)),
        WebhookCommand::Redeliver { id, delivery } => {
            let delivery = list::path("deliveries", delivery)?;
            api.call(Method::POST, &format!("{}/{delivery}/redeliver", path(id)?))
        }
    };
    let body = call.send().await?.body;
    print(json, command, &body)?;
    if matches!((command, api.credential()), (WebhookCommand::Create { .. }, Credential::SignIn(_))) {
        eprintln!(
            "Note: this webhook belongs to your sign-in, and is deleted when that ends: with `grab logout` or another \
             `grab login`, or after 30 days without use. Create one that stays with an API key, or in the web app."
        );
    }
    Ok(Exit::Done)
}

fn print(json: bool, command: &WebhookCommand, body: &Value) -> Result<(), Failure> {
    match (command, body) {
        (WebhookCommand::Delete { id }, _) => {
            eprintln!("Deleted the webhook {id}.");
            Ok(())
        }
        (WebhookCommand::List | WebhookCommand::Deliveries { .. }, _) => {
            let rows = body["data"].as_array().map(Vec::as_slice).unwrap_or_default();
            if json {
                return rows.iter().try_for_each(|row| output::line(&row.to_string()));
            }
            let columns: &[&str] = match command {
                WebhookCommand::List => &["id", "status", "events", "url", "description"],
                WebhookCommand::Create { .. }
                | WebhookCommand::Show { .. }
                | WebhookCommand::Update { .. }
                | WebhookCommand::Delete { .. }
                | WebhookCommand::RotateSecret { .. }
                | WebhookCommand::Test { .. }
                | WebhookCommand::Deliveries { .. }
                | WebhookCommand::Redeliver { .. } => {
                    &["id", "type", "status", "attempt", "status_code", "attempted_at"]
                }
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
