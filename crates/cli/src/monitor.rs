//! `grab monitor`: watches pages by a schedule.

use grabd_options::Rectangle;
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::capture::{complete_url, download};
use crate::failure::{Exit, Failure};
use crate::login::Credential;
use crate::monitor_args::{CreateMonitorArgs, MonitorCommand};
use crate::values::{members, moment, text};
use crate::{list, output};

/// Runs a monitor command.
pub(crate) async fn run(api: &Api, json: bool, command: &MonitorCommand) -> Result<Exit, Failure> {
    let path = |id: &str| list::path("monitors", id);
    let call = match command {
        MonitorCommand::List { limit } => {
            let rows = list::read_rows(api, "monitors", *limit).await?;
            return list::print_rows(json, &HEAD, &rows, monitor_row);
        }
        MonitorCommand::Runs { id, limit } => {
            let rows = list::read_rows(api, &format!("{}/runs", path(id)?), *limit).await?;
            return list::print_rows(
                json,
                &["DUE", "OUTCOME", "CHANGED", "ALERTED", "CAPTURE", "ERROR"],
                &rows,
                run_row,
            );
        }
        MonitorCommand::Delete { id } => {
            api.call(Method::DELETE, &path(id)?).send().await?;
            eprintln!("Deleted the monitor {id}. Its captures stay.");
            return Ok(Exit::Done);
        }
        MonitorCommand::Feed { id, off: true } => {
            api.call(Method::DELETE, &format!("{}/feed", path(id)?)).send().await?;
            eprintln!("The addresses of the feed and the badge of the monitor {id} do not work any more.");
            return Ok(Exit::Done);
        }
        MonitorCommand::Feed { id, off: false } => {
            let addresses = api.call(Method::POST, &format!("{}/feed", path(id)?)).send().await?.body;
            match json {
                true => output::line(&addresses.to_string())?,
                false => {
                    output::line(&text(&addresses["feed_url"]))?;
                    output::line(&text(&addresses["badge_url"]))?;
                }
            }
            return Ok(Exit::Done);
        }
        MonitorCommand::History { id, output } => {
            let response = api.call(Method::GET, &format!("{}/history.zip", path(id)?)).stream().await?;
            download::save_body(response, output).await?;
            output::line(&output.display().to_string())?;
            return Ok(Exit::Done);
        }
        MonitorCommand::Create(args) if args.urls.len() > 1 => {
            let mut body = api.call(Method::POST, "monitors/batch").body(request(args)?).send().await?.body;
            let created: Vec<Value> = body["monitors"].as_array_mut().map(std::mem::take).unwrap_or_default();
            let exit = list::print_rows(json, &HEAD, &created, monitor_row)?;
            note_owner(api, "these monitors belong to your sign-in, and are deleted when that ends");
            return Ok(exit);
        }
        MonitorCommand::Create(args) => api.call(Method::POST, "monitors").body(request(args)?),
        MonitorCommand::Show { id } => api.call(Method::GET, &path(id)?),
        MonitorCommand::Pause { id } => api.call(Method::PATCH, &path(id)?).body(json!({ "paused": true })),
        MonitorCommand::Resume { id } => api.call(Method::PATCH, &path(id)?).body(json!({ "paused": false })),
        MonitorCommand::Accept { id, grab } => {
            let body = Map::from_iter(grab.iter().map(|grab| ("grab_id".to_owned(), json!(grab))));
            api.call(Method::POST, &format!("{}/accept", path(id)?)).body(Value::Object(body))
        }
    };
    let monitor = call.send().await?.body;
    match json {
        true => output::line(&monitor.to_string())?,
        false => print(&monitor)?,
    }
    if matches!(command, MonitorCommand::Create(_)) {
        note_owner(api, "this monitor belongs to your sign-in, and is deleted when that ends");
    }
    Ok(Exit::Done)
}

/// The columns of a list of monitors.
const HEAD: [&str; 6] = ["ID", "STATE", "SCHEDULE", "LAST RUN", "NEXT RUN", "NAME"];

/// Says what becomes of what a sign-in has created.
fn note_owner(api: &Api, what: &str) {
    if matches!(api.credential(), Credential::SignIn(_)) {
        eprintln!(
            "Note: {what}: with `grab logout` or another `grab login`, or after 30 days without use. Create one that stays \
             with an API key, or in the web app."
        );
    }
}

/// The request body: for a page, or for several. Members that are not set are left out, so that the service's defaults apply.
fn request(args: &CreateMonitorArgs) -> Result<Value, Failure> {
    let CreateMonitorArgs { every, cron, cron_time_zone, name, alert_after, no_webhook, no_email, keep, .. } = args;
    let urls = args.urls.iter().cloned().map(complete_url).collect::<Result<Vec<_>, _>>()?;
    let (page, pages) = match <[String; 1]>::try_from(urls) {
        Ok([url]) => (Some(("url".to_owned(), json!(url))), None),
        Err(urls) => (None, Some(json!(urls))),
    };
    let mut capture = Map::from_iter(page);
    capture.extend(args.format.map(|format| ("format".to_owned(), json!(format.as_str()))));
    capture.extend(args.options.0.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    let notify = (*no_webhook || *no_email).then(|| json!({ "webhook": !no_webhook, "email": !no_email }));
    Ok(members([
        ("name", name.as_ref().map(|name| json!(name))),
        ("urls", pages),
        ("capture", (!capture.is_empty()).then_some(Value::Object(capture))),
        ("every", every.as_ref().map(|every| json!(every))),
        ("cron", cron.as_ref().map(|cron| json!(cron))),
        ("time_zone", cron_time_zone.as_ref().map(|zone| json!(zone))),
        ("compare", compare(args)),
        ("alert_after", alert_after.map(|number| json!(number))),
        ("notify", notify),
        ("keep", keep.map(|number| json!(number))),
        ("quiet", quiet(args)),
    ]))
}

/// When no alerts are sent. None if no argument says it.
fn quiet(args: &CreateMonitorArgs) -> Option<Value> {
    let (from, to) = args.quiet_hours.as_ref()?;
    Some(members([
        ("from", Some(json!(from))),
        ("to", Some(json!(to))),
        ("time_zone", args.quiet_time_zone.as_ref().map(|zone| json!(zone))),
    ]))
}

/// A selector, or a rectangle as `x,y,width,height`.
fn ignored(text: &str) -> Value {
    match Rectangle::parse(text) {
        Some(area) => json!(area),
        None => json!(text),
    }
}

/// What is compared. None if no argument says it.
fn compare(args: &CreateMonitorArgs) -> Option<Value> {
    let CreateMonitorArgs { threshold, ignore, baseline, no_compare_image, compare_status, .. } = args;
    let patterns = &args.ignore_pattern;
    let image = members([
        ("threshold_ratio", threshold.map(|ratio| json!(ratio))),
        ("ignore", (!ignore.is_empty()).then(|| ignore.iter().map(|part| ignored(part)).collect())),
        ("min_region_px", args.min_region.map(|pixels| json!(pixels))),
    ]);
    let text = members([("ignore_patterns", (!patterns.is_empty()).then(|| json!(patterns)))]);
    let of_image = threshold.is_some() || !ignore.is_empty() || args.min_region.is_some();
    let is_set = *compare_status || args.compare_text || args.compare_elements || of_image || baseline.is_some();
    is_set.then(|| {
        members([
            ("image", (!no_compare_image).then_some(image)),
            ("status", compare_status.then(|| json!(true))),
            ("text", args.compare_text.then_some(text)),
            ("elements", args.compare_elements.then(|| json!(true))),
            ("baseline", baseline.as_ref().map(|word| json!(word))),
        ])
    })
}

fn monitor_row(monitor: &Value) -> Vec<String> {
    vec![
        text(&monitor["id"]),
        text(&monitor["state"]),
        schedule(monitor),
        text(&monitor["last_run"]["outcome"]),
        moment(&monitor["next_run_at"]),
        text(&monitor["name"]),
    ]
}

fn run_row(run: &Value) -> Vec<String> {
    let alerted = if run["alerted"] == true { "yes" } else { "no" };
    let error = &run["error"]["message"];
    vec![
        moment(&run["due_at"]),
        text(&run["outcome"]),
        change(run).unwrap_or_else(|| "-".to_owned()),
        alerted.to_owned(),
        text(&run["grab_id"]),
        text(error),
    ]
}

/// Prints a monitor.
fn print(monitor: &Value) -> Result<(), Failure> {
    let last = &monitor["last_run"];
    let last_run = last["outcome"].as_str().map(|outcome| {
        let change = change(last).map(|change| format!(", {change}")).unwrap_or_default();
        format!("{outcome}{change}, {}", moment(&last["due_at"]))
    });
    let page = monitor["capture"]["url"].as_str().unwrap_or("an HTML document").to_owned();
    let rows = [
        ("id", Some(text(&monitor["id"]))),
        ("name", Some(text(&monitor["name"]))),
        ("page", Some(page)),
        ("schedule", Some(schedule(monitor))),
        ("state", Some(text(&monitor["state"]))),
        ("next run", monitor["next_run_at"].as_str().map(|_| moment(&monitor["next_run_at"]))),
        ("last run", last_run),
        ("baseline", monitor["baseline_grab_id"].as_str().map(str::to_owned)),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            output::line(&format!("{name:12} {value}"))?;
        }
    }
    let quiet = &monitor["quiet"];
    if quiet.is_object() {
        let hours = format!("{} to {} ({})", text(&quiet["from"]), text(&quiet["to"]), text(&quiet["time_zone"]));
        output::line(&format!("{:12} {hours}", "no alerts"))?;
    }
    text_changes(last).iter().try_for_each(|line| output::line(line))?;
    element_changes(last).iter().try_for_each(|line| output::line(line))?;
    Ok(())
}

/// The schedule in words, such as `every 6h`.
fn schedule(monitor: &Value) -> String {
    match (&monitor["every"], &monitor["cron"], &monitor["time_zone"]) {
        (Value::String(every), ..) => format!("every {every}"),
        (_, Value::String(cron), Value::String(zone)) => format!("{cron} ({zone})"),
        (_, cron, _) => text(cron),
    }
}

/// What a run found, such as `image 2.1 %, status`. None if nothing was compared.
fn change(run: &Value) -> Option<String> {
    let ratio = run["difference_ratio"].as_f64().map(|ratio| match ratio {
        0.0 => "0 %".to_owned(),
        // Never rounded to nothing.
        ..0.001 => "less than 0.1 %".to_owned(),
        _ => format!("{:.1} %", ratio * 100.0),
    });
    let kinds: Vec<&str> = run["what_changed"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if kinds.is_empty() {
        return ratio;
    }
    let with_ratio = |kind: &str| match (&ratio, kind) {
        (Some(ratio), "image") => format!("image {ratio}"),
        (_, kind) => kind.to_owned(),
    };
    Some(kinds.into_iter().map(with_ratio).collect::<Vec<_>>().join(", "))
}

/// The lines of the text that a run found changed, such as `- 5 €` and `+ 6 €`.
fn text_changes(run: &Value) -> Vec<String> {
    let changes = run["text_changes"].as_array().into_iter().flatten();
    let lines = changes.flat_map(|change| [("-", &change["before"]), ("+", &change["after"])]);
    lines.filter_map(|(sign, line)| Some(format!("{sign} {}", line.as_str()?))).collect()
}

/// The elements that a run found changed, such as `changed button Order: Buy -> Order`.
fn element_changes(run: &Value) -> Vec<String> {
    let line = |change: &Value| {
        let [kind, role, name] = ["change", "role", "name"].map(|member| text(&change[member]));
        match (change["before"].as_str(), change["after"].as_str()) {
            (Some(before), Some(after)) => format!("{kind} {role} {name}: {before} -> {after}"),
            (_, _) => format!("{kind} {role} {name}"),
        }
    };
    run["element_changes"].as_array().into_iter().flatten().map(line).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    fn body(args: &[&str]) -> Value {
        let args = Args::try_parse_from([&["grab", "monitor", "create"], args].concat()).unwrap();
        match args.command {
            Some(Command::Monitor(MonitorCommand::Create(args))) => request(&args).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_is_set_is_sent() {
        let capture = json!({ "url": "https://a.example/" });
        assert_eq!(body(&["https://a.example/", "--every", "6h"]), json!({ "capture": capture, "every": "6h" }));
        let args = ["a.example", "--cron", "0 8 * * 1-5", "--cron-time-zone", "Europe/Vienna", "--width", "800"];
        let expected = json!({
            "capture": { "url": "https://a.example", "width": 800 },
            "cron": "0 8 * * 1-5",
            "time_zone": "Europe/Vienna",
        });
        assert_eq!(body(&args), expected);
        assert_eq!(
            body(&["a.example", "--every", "1d", "--no-email"])["notify"],
            json!({ "webhook": true, "email": false })
        );
    }

    #[test]
    fn several_pages_are_one_request() {
        let urls = json!(["https://a.example", "https://b.example/c"]);
        let args = ["a.example", "https://b.example/c", "--every", "6h"];
        assert_eq!(body(&args), json!({ "urls": urls, "every": "6h" }));
        let args = ["a.example", "--every", "6h", "--width", "800", "https://b.example/c", "--ignore", ".ad"];
        let image = json!({ "ignore": [".ad"] });
        let expected =
            json!({ "urls": urls, "capture": { "width": 800 }, "every": "6h", "compare": { "image": image } });
        assert_eq!(body(&args), expected);
    }

    #[test]
    fn comparison_is_made_of_its_flags() {
        let compare = |args: &[&str]| body(&[&["a.example", "--every", "1d"], args].concat())["compare"].clone();
        assert_eq!(compare(&[]), Value::Null);
        let image = json!({ "threshold_ratio": 0.01, "ignore": [".ad", ".clock"] });
        assert_eq!(
            compare(&["--threshold", "0.01", "--ignore", ".ad", "--ignore", ".clock"]),
            json!({ "image": image })
        );
        assert_eq!(compare(&["--compare-status", "--no-compare-image"]), json!({ "status": true }));
        assert_eq!(
            compare(&["--compare-status", "--baseline", "accepted"]),
            json!({ "image": {}, "status": true, "baseline": "accepted" })
        );
        assert_eq!(
            compare(&["--compare-text", "--ignore-pattern", "[0-9]+ views", "--no-compare-image"]),
            json!({ "text": { "ignore_patterns": ["[0-9]+ views"] } })
        );
        assert_eq!(compare(&["--compare-text"]), json!({ "image": {}, "text": {} }));
        assert_eq!(compare(&["--compare-elements", "--no-compare-image"]), json!({ "elements": true }));
        let area = json!({ "x": 0, "y": 10, "width": 300, "height": 20 });
        assert_eq!(
            compare(&["--ignore", "0,10,300,20", "--ignore", "h1, h2", "--min-region", "400"]),
            json!({ "image": { "ignore": [area, "h1, h2"], "min_region_px": 400 } })
        );
        let quiet = |args: &[&str]| body(&[&["a.example", "--every", "1d"], args].concat())["quiet"].clone();
        assert_eq!(quiet(&["--quiet-hours", "22:00-07:00"]), json!({ "from": "22:00", "to": "07:00" }));
        let zone = json!({ "from": "22:00", "to": "07:00", "time_zone": "UTC" });
        assert_eq!(quiet(&["--quiet-hours", "22:00-07:00", "--quiet-time-zone", "UTC"]), zone);
    }

    #[test]
    fn schedule_is_required_and_stated_once() {
        for args in [
            &["a.example"] as &[&str],
            &["a.example", "--every", "1d", "--cron", "0 8 * * *"],
            &["a.example", "--every", "1d", "--cron-time-zone", "UTC"],
            &["a.example", "--every", "1d", "--threshold", "2"],
            &["a.example", "--every", "1d", "--baseline", "last"],
            &["a.example", "--every", "1d", "--no-compare-image"],
            &["a.example", "--every", "1d", "--ignore-pattern", "a"],
            &["a.example", "--every", "1d", "--quiet-hours", "22:00"],
            &["a.example", "--every", "1d", "--quiet-time-zone", "UTC"],
        ] {
            assert!(Args::try_parse_from([&["grab", "monitor", "create"], args].concat()).is_err(), "{args:?}");
        }
    }

    #[test]
    fn changed_lines_are_listed() {
        let run = json!({ "text_changes": [{ "before": "5 €", "after": "6 €" }, { "before": null, "after": "New" }] });
        assert_eq!(text_changes(&run), ["- 5 €", "+ 6 €", "+ New"]);
        assert_eq!(text_changes(&json!({})), [] as [&str; 0]);
        let added = json!({ "change": "added", "role": "link", "name": "New", "before": null, "after": null });
        let changed =
            json!({ "change": "changed", "role": "button", "name": "Order", "before": "Buy", "after": "Order" });
        let run = json!({ "element_changes": [added, changed] });
        assert_eq!(element_changes(&run), ["added link New", "changed button Order: Buy -> Order"]);
    }

    #[test]
    fn change_is_described_in_words() {
        for (ratio, kinds, expected) in [
            (json!(null), json!([]), None),
            (json!(0), json!([]), Some("0 %")),
            (json!(0.000_01), json!([]), Some("less than 0.1 %")),
            (json!(0.021), json!(["image", "status"]), Some("image 2.1 %, status")),
            (json!(null), json!(["status"]), Some("status")),
        ] {
            let run = json!({ "difference_ratio": ratio, "what_changed": kinds });
            assert_eq!(change(&run).as_deref(), expected);
        }
    }
}
