//! `grab usage` and `pricing`.

use std::borrow::Cow;

use grabd_api::{Counts, Credits, Usage};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::api::Api;
use crate::failure::{Exit, Failure};
use crate::output;

/// Prints credits, plan and recent usage.
pub(crate) async fn usage(api: &Api, json: bool) -> Result<Exit, Failure> {
    let body = api.call(Method::GET, "usage").send().await?.body;
    if json {
        output::line(&body.to_string())?;
        return Ok(Exit::Done);
    }
    let usage = Usage::deserialize(&body)
        .map_err(|_| Failure::UnexpectedResponse { url: api.base().clone(), status: StatusCode::OK })?;
    let Usage { credits, plan, usage, environment, top_up } = usage;
    let Credits { subscription, prepaid, total, held: _ } = credits;
    let Counts { grabs_last_30d: all, live_grabs_last_30d: live } = usage;
    let rows = [
        ("environment", Some(environment.into_owned())),
        ("credits", Some(format!("{total} ({subscription} from the subscription, {prepaid} prepaid)"))),
        ("plan", Some(format!("{}, {}", plan.name, plan.status))),
        ("term ends", plan.expires_at.map(Cow::into_owned)),
        ("last 30 days", Some(format!("{all} captures, {live} of them live"))),
        ("buy more", Some(top_up.into_owned())),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            output::line(&format!("{name:12} {value}"))?;
        }
    }
    Ok(Exit::Done)
}

/// Prints the prices.
pub(crate) async fn pricing(api: &Api, json: bool, provider: Option<&str>, full: bool) -> Result<Exit, Failure> {
    let mut call = api.call(Method::GET, "pricing").query("detail", if full { "full" } else { "summary" });
    if let Some(provider) = provider {
        call = call.query("provider", provider);
    }
    let body = call.send().await?.body;
    if json {
        output::line(&body.to_string())?;
        return Ok(Exit::Done);
    }
    let pricing = &body["pricing"];
    let currency = text(&pricing["currency"]);
    output::line(&format!("{:14} {} {currency}, charged on success", "one capture", pricing["per_grab_usd"]))?;
    let annual = &pricing["annual"];
    let year = format!("{} credits for {} {currency}", annual["credits_per_year"], annual["price_usd"]);
    output::line(&format!("{:14} {year}", "a year"))?;
    for package in pricing["prepaid_packages"].as_array().into_iter().flatten() {
        let name = text(&package["name"]);
        output::line(&format!("{name:14} {} credits for {} {currency}", package["credits"], package["price_usd"]))?;
    }
    let rows: Vec<Vec<String>> = body["comparison"]["providers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|provider| ["name", "plan", "per_grab", "billing"].map(|member| text(&provider[member])).to_vec())
        .collect();
    if !rows.is_empty() {
        output::line("")?;
        output::table(&["PROVIDER", "PLAN", "PER CAPTURE", "BILLING"], &rows)?;
    }
    Ok(Exit::Done)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
