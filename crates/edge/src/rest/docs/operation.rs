//! One operation as HTML: its parameters, body, example and answers.

use serde_json::{Value, json};

use super::document::{Document, Group, Operation, anchor, text};
use super::schema::{self, component};
use super::text::{blocks, escape, inline};

/// Renders the operations of a group below the title of its page. If there is only one, its title is that of the page.
pub(super) fn render_all(document: &Document<'_>, group: &Group<'_>, base: &str) -> String {
    match &group.operations[..] {
        [operation] => {
            let (line, parts) = parts(document, group, *operation, base, "h2");
            format!("<div class=\"operation\" id=\"{}\">{line}</div>\n{parts}", escape(operation.id()))
        }
        operations => operations.iter().map(|operation| section(document, group, *operation, base)).collect(),
    }
}

/// An operation with its heading.
fn section(document: &Document<'_>, group: &Group<'_>, operation: Operation<'_>, base: &str) -> String {
    let id = escape(operation.id());
    let (line, parts) = parts(document, group, operation, base, "h3");
    format!(
        "<section class=\"operation\" aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>\n{line}{parts}</section>\n",
        escape(operation.summary())
    )
}

/// The line with method and path, and what is below it, with headings of a level.
fn parts(
    document: &Document<'_>,
    group: &Group<'_>,
    operation: Operation<'_>,
    base: &str,
    heading: &str,
) -> (String, String) {
    let Operation { method, path, json } = operation;
    let is_open = json["security"] == json!([{}]);
    let line = format!(
        "<p class=\"endpoint\"><span class=\"method {method}\">{}</span> <code>{}</code> <span class=\"soft\">{}</span></p>\n",
        method.to_uppercase(),
        breakable_path(path),
        if is_open { "Needs no key." } else { "Needs a key." },
    );
    let mut html = blocks(text(&json["description"]), escape);
    html.push_str(&parameters(document, operation, heading));
    html.push_str(&body(document, group, operation, heading));
    html.push_str(&format!("<{heading}>Example</{heading}>\n"));
    html.push_str(&code("Shell", &curl(base, operation, is_open)));
    html.push_str(&format!("<{heading}>Answers</{heading}>\n<div class=\"answers\">\n"));
    let responses = json["responses"].as_object().into_iter().flatten();
    html.extend(responses.map(|(status, response)| self::response(document, status, response)));
    html.push_str("</div>\n");
    (line, html)
}

fn parameters(document: &Document<'_>, operation: Operation<'_>, heading: &str) -> String {
    let place = |name: &str| document.place(name).to_owned();
    let parameters = operation.json["parameters"].as_array().into_iter().flatten();
    let row = |parameter: &Value| {
        let about = text(&parameter["description"]).trim_end_matches('.');
        let about = format!("{about} (in the {}).", text(&parameter["in"]));
        let (name, is_required) = (text(&parameter["name"]), parameter["required"] == true);
        schema::row_with_description(name, &parameter["schema"], is_required, &about, &place)
    };
    let rows: String = parameters.map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let name = format!("Parameters of {}", operation.summary());
    format!("<{heading}>Parameters</{heading}>\n{}", schema::table(&name, ["Name", "Type", "Meaning"], &rows))
}

/// The members of the body, or a link to them if an earlier operation has the same body.
fn body(document: &Document<'_>, group: &Group<'_>, operation: Operation<'_>, heading: &str) -> String {
    let Some(name) = component(operation.body()) else { return String::new() };
    if !document.describes_body(group, name) {
        let link = format!("<a href=\"{}\">{}</a>", escape(document.place(name)), escape(name));
        return format!("<{heading}>Body</{heading}>\n<p>{link}</p>\n");
    }
    let place = |name: &str| document.place(name).to_owned();
    let members = schema::members(name, document.resolve(operation.body()), &place);
    format!("<{heading} id=\"{}\">Body: {}</{heading}>\n{members}", anchor(name), escape(name))
}

/// A block of code with the name of its language.
fn code(language: &str, text: &str) -> String {
    let text = escape(text);
    format!(
        "<figure class=\"code\"><figcaption>{language}</figcaption><pre tabindex=\"0\"><code>{text}</code></pre></figure>\n"
    )
}

/// Example command.
fn curl(base: &str, operation: Operation<'_>, is_open: bool) -> String {
    let (method, path) = (operation.method, example_path(operation));
    let mut lines = vec![match method {
        "get" | "post" => format!("curl -sS '{base}{path}'"),
        method => format!("curl -sS -X {} '{base}{path}'", method.to_uppercase()),
    }];
    if !is_open {
        lines.push("-H \"Authorization: Bearer $GRAB_API_KEY\"".to_owned());
    }
    let body = &operation.json["requestBody"]["content"]["application/json"]["example"];
    if !body.is_null() {
        lines.push("-H 'Content-Type: application/json'".to_owned());
        lines.push(format!("-d '{body}'"));
    } else if method == "post" {
        lines.push("-X POST".to_owned());
    }
    lines.join(" \\\n  ")
}

/// The path with example values of its parameters.
fn example_path(operation: Operation<'_>) -> String {
    let parameters = operation.json["parameters"].as_array().into_iter().flatten();
    parameters.filter(|one| one["in"] == "path").fold(operation.path.to_owned(), |path, one| {
        path.replace(&format!("{{{}}}", text(&one["name"])), text(&one["example"]))
    })
}

/// One response: its status and description, with headers and an example in the collapsed part.
fn response(document: &Document<'_>, status: &str, response: &Value) -> String {
    let about = text(&response["description"]);
    let kind = if status.starts_with(['4', '5']) { "error" } else { "good" };
    let codes: Vec<&str> = about.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next()).collect();
    let summary = match codes.is_empty() {
        true => inline(about),
        false => codes.iter().map(|code| format!("<code>{}</code>", escape(code))).collect::<Vec<_>>().join(" "),
    };
    let mut html = format!(
        "<details><summary><span class=\"status {kind}\">{}</span> <span>{summary}</span></summary>\n",
        escape(status)
    );
    if !codes.is_empty() {
        html.push_str(&blocks(about, escape));
    }
    for (media_type, content) in response["content"].as_object().into_iter().flatten() {
        if let Some(name) = component(&content["schema"]) {
            let (place, name, media_type) = (escape(document.place(name)), escape(name), escape(media_type));
            html.push_str(&format!("<p><a href=\"{place}\">{name}</a> as <code>{media_type}</code>.</p>\n"));
        }
        let first = || content["examples"].as_object()?.values().next().map(|one| &one["value"]);
        let example = Some(&content["example"]).filter(|example| !example.is_null()).or_else(first);
        if let Some(example) = example {
            let pretty = || serde_json::to_string_pretty(example).expect("JSON values serialize without errors");
            let shown = example.as_str().map_or_else(pretty, str::to_owned);
            html.push_str(&code(if example.is_string() { "Text" } else { "JSON" }, shown.trim_end()));
        }
    }
    if let Some(headers) = response["headers"].as_object() {
        html.push_str(&schema::headers(headers, |header| document.resolve(header)));
    }
    html.push_str("</details>\n");
    html
}

/// A path with line break opportunities before its slashes.
pub(super) fn breakable_path(path: &str) -> String {
    escape(path).replace('/', "<wbr>/")
}
