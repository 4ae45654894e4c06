//! The HTML page: introduction, operations, objects and error codes, with a table of contents.

use serde_json::Value;

use super::super::error;
use super::super::openapi::errors::{ERROR_CODES, meaning};
use super::schema::{self, Document};
use super::text::{blocks, escape, inline, slug};

const STYLE: &str = include_str!("style.css");
/// The mark of the service, as on the pages of the web app.
const MARK: &str = "<svg viewBox=\"0 0 32 32\" aria-hidden=\"true\" focusable=\"false\">\
    <path d=\"M3 11V3h8M21 3h8v8M29 21v8h-8M11 29H3v-8\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"4\"/>\
    <circle cx=\"16\" cy=\"16\" r=\"5\" fill=\"currentColor\"/></svg>";
const METHODS: [&str; 5] = ["post", "get", "patch", "put", "delete"];

/// Renders an OpenAPI document as a page.
pub(super) fn render(json: &Value) -> String {
    let document = Document(json);
    let info = &json["info"];
    let (title, version) = (escape(text(&info["title"])), escape(text(&info["version"])));
    let about = text(&info["description"]);
    let heading = |title: &str| format!("<h2 id=\"{}\">{}</h2>\n", slug(title), escape(title));
    let base = escape(text(&json["servers"][0]["url"]));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title} API reference</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#content\">Skip to the reference</a>\n\
         <header><p class=\"name\"><a href=\"/\">{MARK}{title}</a></p>\
         <p class=\"facts\"><a href=\"/docs\">Docs</a> <a href=\"/docs/api\" aria-current=\"page\">API reference</a> \
         <a href=\"{base}/openapi.json\">OpenAPI {version}</a></p></header>\n\
         <nav aria-label=\"Reference\">\n{}</nav>\n<main id=\"content\">\n<h1>{title} API</h1>\n\
         <p>All paths begin with <code>{base}</code>.</p>\n{}{}{}{}</main>\n</body>\n</html>\n",
        contents(json, about),
        blocks(about, heading),
        operations(document, &base),
        objects(document),
        errors(),
    )
}

fn contents(json: &Value, about: &str) -> String {
    let item = |anchor: &str, name: &str| format!("<li><a href=\"#{anchor}\">{name}</a></li>\n");
    let guide =
        about.lines().filter_map(|line| line.strip_prefix("## ")).map(|title| item(&slug(title), &escape(title)));
    let mut html = format!("<h2>Guide</h2><ul>{}</ul>\n", guide.collect::<String>());
    for tag in tags(json) {
        let items = operations_with_tag(json, tag).map(|(method, path, operation)| {
            let name =
                format!("<span class=\"method {method}\">{}</span> {}", method.to_uppercase(), breakable_path(path));
            item(text(&operation["operationId"]), &name)
        });
        html.push_str(&format!(
            "<h2>{}</h2><ul class=\"operations\">{}</ul>\n",
            escape(tag),
            items.collect::<String>()
        ));
    }
    let schemas = json["components"]["schemas"].as_object().into_iter().flatten();
    let objects = schemas.map(|(name, _)| item(&format!("schema-{}", name.to_ascii_lowercase()), &escape(name)));
    html.push_str(&format!("<h2>Objects</h2><ul>{}</ul>\n", objects.collect::<String>()));
    html.push_str(&format!("<h2>Codes</h2><ul>{}</ul>\n", item("codes", "Error codes")));
    html
}

fn operations(document: Document<'_>, base: &str) -> String {
    let json = document.0;
    let mut html = String::new();
    for (tag, about) in
        json["tags"].as_array().into_iter().flatten().map(|tag| (text(&tag["name"]), &tag["description"]))
    {
        html.push_str(&format!("<h2 id=\"tag-{}\">{}</h2>\n<p>{}</p>\n", slug(tag), escape(tag), inline(text(about))));
        for (method, path, operation) in operations_with_tag(json, tag) {
            html.push_str(&self::operation(document, base, method, path, operation));
        }
    }
    html
}

fn operation(document: Document<'_>, base: &str, method: &str, path: &str, operation: &Value) -> String {
    let id = escape(text(&operation["operationId"]));
    let open = operation["security"] == serde_json::json!([{}]);
    let key = if open { "Needs no key." } else { "Needs a key." };
    let mut html = format!(
        "<section class=\"operation\" aria-labelledby=\"{id}\">\n<h3 id=\"{id}\">{}</h3>\n\
         <p class=\"line\"><span class=\"method {method}\">{}</span> <code>{}</code> <span class=\"key\">{key}</span></p>\n{}",
        escape(text(&operation["summary"])),
        method.to_uppercase(),
        breakable_path(path),
        blocks(text(&operation["description"]), escape),
    );
    html.push_str(&parameters(operation));
    let body = &operation["requestBody"]["content"]["application/json"];
    if let Some(name) = schema::component(&body["schema"]) {
        html.push_str(&format!("<h4>Body, <a href=\"#schema-{}\">{name}</a></h4>\n", name.to_ascii_lowercase()));
        html.push_str(&schema::members(document.resolve(&body["schema"])));
    }
    html.push_str(&format!(
        "<h4>Example</h4>\n<pre tabindex=\"0\"><code>{}</code></pre>\n",
        escape(&curl(base, method, path, operation, open))
    ));
    html.push_str("<h4>Answers</h4>\n<div class=\"answers\">\n");
    let responses = operation["responses"].as_object().into_iter().flatten();
    html.extend(responses.map(|(status, response)| self::response(document, status, response)));
    html.push_str("</div>\n</section>\n");
    html
}

fn parameters(operation: &Value) -> String {
    let rows: String = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|parameter| {
            let about = format!(
                "{} (in the {})",
                text(&parameter["description"]).trim_end_matches('.'),
                text(&parameter["in"])
            );
            let required = parameter["required"] == true;
            schema::row_with_description(text(&parameter["name"]), &parameter["schema"], required, &format!("{about}."))
        })
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "<h4>Parameters</h4>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\">Name</th>\
             <th scope=\"col\">Type</th><th scope=\"col\">Meaning</th></tr></thead><tbody>{rows}</tbody></table></div>\n"
        ),
    }
}

/// Example command.
fn curl(base: &str, method: &str, path: &str, operation: &Value, open: bool) -> String {
    let mut lines = vec![match method {
        "get" | "post" => format!("curl -sS '{base}{}'", example_path(path, operation)),
        method => format!("curl -sS -X {} '{base}{}'", method.to_uppercase(), example_path(path, operation)),
    }];
    if !open {
        lines.push("-H \"Authorization: Bearer $GRAB_API_KEY\"".to_owned());
    }
    let body = &operation["requestBody"]["content"]["application/json"]["example"];
    if !body.is_null() {
        lines.push("-H 'Content-Type: application/json'".to_owned());
        lines.push(format!("-d '{body}'"));
    } else if method == "post" {
        lines.push("-X POST".to_owned());
    }
    lines.join(" \\\n  ")
}

/// The path with example values of its parameters.
fn example_path(path: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "path");
    parameters
        .fold(path.to_owned(), |path, one| path.replace(&format!("{{{}}}", text(&one["name"])), text(&one["example"])))
}

/// One response: its status and description, with headers and an example in the collapsed part.
fn response(document: Document<'_>, status: &str, response: &Value) -> String {
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
        if let Some(name) = schema::component(&content["schema"]) {
            html.push_str(&format!(
                "<p><a href=\"#schema-{}\">{}</a> as <code>{}</code>.</p>\n",
                name.to_ascii_lowercase(),
                escape(name),
                escape(media_type)
            ));
        }
        let first = || content["examples"].as_object()?.values().next().map(|one| &one["value"]);
        let example = Some(&content["example"]).filter(|example| !example.is_null()).or_else(first);
        if let Some(example) = example {
            let pretty = || serde_json::to_string_pretty(example).expect("JSON values serialize without errors");
            let shown = example.as_str().map_or_else(pretty, str::to_owned);
            html.push_str(&format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(shown.trim_end())));
        }
    }
    if let Some(headers) = response["headers"].as_object() {
        html.push_str(&schema::headers(document, headers));
    }
    html.push_str("</details>\n");
    html
}

fn objects(document: Document<'_>) -> String {
    let mut html = "<h2 id=\"objects\">Objects</h2>\n".to_owned();
    for (name, schema) in document.0["components"]["schemas"].as_object().into_iter().flatten() {
        html.push_str(&format!(
            "<h3 id=\"schema-{}\">{}</h3>\n<p>{}</p>\n{}",
            name.to_ascii_lowercase(),
            escape(name),
            inline(text(&schema["description"])),
            schema::members(schema)
        ));
    }
    html
}

/// Every code with its own anchor, the target of the `Link` header of error responses.
fn errors() -> String {
    let rows = ERROR_CODES.map(|code| {
        let (status, word) = error::status_and_code(code);
        let meaning = inline(meaning(code));
        format!(
            "<tr id=\"{word}\"><th scope=\"row\"><code>{}</code></th><td>{}</td><td>{meaning}</td></tr>\n",
            word.replace('_', "_<wbr>"),
            status.as_u16()
        )
    });
    format!(
        "<h2 id=\"codes\">Error codes</h2>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\">Code</th>\
         <th scope=\"col\">Status</th><th scope=\"col\">Meaning</th></tr></thead><tbody>{}</tbody></table></div>\n",
        rows.concat()
    )
}

fn tags(json: &Value) -> impl Iterator<Item = &str> {
    json["tags"].as_array().into_iter().flatten().map(|tag| text(&tag["name"]))
}

/// The operations of a tag with their method and path.
fn operations_with_tag<'a>(json: &'a Value, tag: &'a str) -> impl Iterator<Item = (&'static str, &'a str, &'a Value)> {
    let paths = json["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| METHODS.iter().map(move |method| (*method, path.as_str(), &item[*method])));
    all.filter(move |(_, _, operation)| operation["tags"][0] == tag)
}

/// A path with line break opportunities before its slashes.
fn breakable_path(path: &str) -> String {
    escape(path).replace('/', "<wbr>/")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::openapi;
    use super::*;

    fn page() -> String {
        render(&serde_json::to_value(openapi::document("https://grabd.example", "https://grabd.example")).unwrap())
    }

    fn attributes<'a>(page: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
        page.match_indices(start).map(move |(at, _)| page[at + start.len()..].split('"').next().unwrap())
    }

    #[test]
    fn internal_links_have_targets_and_anchors_are_unique() {
        let page = page();
        let ids: Vec<&str> = attributes(&page, " id=\"").collect();
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len());
        let links: Vec<&str> = attributes(&page, "href=\"#").collect();
        assert!(links.len() > 25, "{}", links.len());
        for link in links {
            assert!(unique.contains(link), "{link}");
        }
        // Targets of the `Link` header of errors.
        assert!(ERROR_CODES.iter().all(|code| unique.contains(error::status_and_code(*code).1)));
        assert!(unique.contains("errors"));
    }

    #[test]
    fn page_loads_no_external_resources() {
        let page = page();
        assert!(!page.contains("<script") && !page.contains("src=\"") && !page.contains("@import"));
        let external = attributes(&page, "href=\"").filter(|link| !link.starts_with('#') && *link != "data:,");
        assert_eq!(external.collect::<Vec<_>>(), ["/", "/docs", "/docs/api", "https://grabd.example/v1/openapi.json"]);
    }

    #[test]
    fn every_operation_has_an_example_command() {
        let page = page();
        for line in [
            "curl -sS &#39;https://grabd.example/v1/grabs&#39;",
            "curl -sS -X DELETE &#39;https://grabd.example/v1/grabs/0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44&#39;",
            "curl -sS &#39;https://grabd.example/v1/pricing&#39;",
        ] {
            assert!(page.contains(line), "{line}");
        }
        assert_eq!(page.matches("<section class=\"operation\"").count(), page.matches("<h4>Example</h4>").count());
    }
}
