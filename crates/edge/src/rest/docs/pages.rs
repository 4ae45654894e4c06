//! The pages of the API reference: an overview, the conventions, the operations by group, and the objects.

use serde_json::Value;

use super::super::openapi::errors::{ERROR_CODES, meaning};
use super::super::{error, openapi};
use super::document::{Document, Group, OBJECTS, anchor, path_of, text};
use super::text::{blocks, escape, inline, slug};
use super::{operation, schema};

/// The last part of the path of the page with what all operations have in common.
const CONVENTIONS: &str = "conventions";

/// A page of the API reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencePage {
    /// The last part of its path. Empty for the first page.
    pub slug: String,
    /// Its title.
    pub title: String,
    /// One sentence for lists of pages.
    pub summary: String,
    /// What is below the title.
    pub html: String,
    /// The anchors and texts of its headings of the second level.
    pub headings: Vec<(String, String)>,
    /// What a search finds on it: anchor, heading and text of each passage.
    pub passages: Vec<(String, String, String)>,
}

/// The pages for the service at `origin`, in their order. Apps are authorized at `auth_url`.
pub fn reference_pages(origin: &str, auth_url: &str) -> Vec<ReferencePage> {
    let json = serde_json::to_value(openapi::document(origin, auth_url)).expect("an OpenAPI document has string keys");
    let document = Document::new(&json);
    let base = escape(text(&json["servers"][0]["url"]));
    let groups = document.groups.iter().map(|group| group_page(&document, group, &base));
    let mut pages = vec![overview(&document, &base), conventions(text(&json["info"]["description"]))];
    pages.extend(groups);
    pages.push(objects(&document));
    pages
}

/// The first page: all operations, and all error codes. The `Link` header of errors leads to a code here.
fn overview(document: &Document<'_>, base: &str) -> ReferencePage {
    let mut html = format!(
        "<p>All paths begin with <code>{base}</code>. What all requests have in common is in <a href=\"{}\">Conventions</a>, \
         and the whole API is described in the <a href=\"{base}/openapi.json\">OpenAPI document</a>.</p>\n",
        path_of(CONVENTIONS)
    );
    html.push_str("<h2 id=\"operations\">Operations</h2>\n");
    let mut rows = String::new();
    for (group, operation) in
        document.groups.iter().flat_map(|group| group.operations.iter().map(move |one| (group, one)))
    {
        rows.push_str(&format!(
            "<tr><th scope=\"row\"><a href=\"{}#{}\">{}</a></th><td><span class=\"method {}\">{}</span></td>\
             <td><code>{}</code></td></tr>\n",
            path_of(&group.slug),
            escape(operation.id()),
            escape(operation.summary()),
            operation.method,
            operation.method.to_uppercase(),
            operation::breakable_path(operation.path),
        ));
    }
    html.push_str(&schema::table("Operations", ["Operation", "Method", "Path"], &rows));
    let rows = ERROR_CODES.map(|code| {
        let (status, word) = error::status_and_code(code);
        let name = word.replace('_', "_<wbr>");
        format!(
            "<tr id=\"{word}\"><th scope=\"row\"><code>{name}</code></th><td>{}</td><td>{}</td></tr>\n",
            status.as_u16(),
            inline(meaning(code))
        )
    });
    html.push_str(
        "<h2 id=\"codes\">Error codes</h2>\n<p>What to do about each is in <a href=\"/docs/errors\">Errors</a>.</p>\n",
    );
    html.push_str(&schema::table("Error codes", ["Code", "Status", "Meaning"], &rows.concat()));
    let headings = [("operations", "Operations"), ("codes", "Error codes")];
    ReferencePage {
        slug: String::new(),
        title: "API reference".to_owned(),
        summary: "All operations of the REST API and all error codes.".to_owned(),
        html,
        headings: headings.map(|(anchor, text)| (anchor.to_owned(), text.to_owned())).into(),
        passages: vec![passage("", "API reference", &format!("REST API, OpenAPI, endpoints below {base}"))],
    }
}

/// What all operations have in common. The sections are those of the document's description.
fn conventions(about: &str) -> ReferencePage {
    let heading = |title: &str| format!("<h2 id=\"{}\">{}</h2>\n", slug(title), escape(title));
    let mut sections = about.split("\n\n## ");
    let title = "Conventions";
    let mut passages = vec![passage("", title, sections.next().unwrap_or_default())];
    let mut headings = Vec::new();
    for section in sections {
        let (title, content) = section.split_once('\n').unwrap_or((section, ""));
        headings.push((slug(title), title.to_owned()));
        passages.push(passage(&slug(title), title, content));
    }
    ReferencePage {
        slug: CONVENTIONS.to_owned(),
        title: title.to_owned(),
        summary: "Keys, retries, rate limits, errors and versions of the REST API.".to_owned(),
        html: blocks(about, heading),
        headings,
        passages,
    }
}

fn group_page(document: &Document<'_>, group: &Group<'_>, base: &str) -> ReferencePage {
    let Group { slug, title, about, operations } = group;
    let mut html = if about.is_empty() { String::new() } else { format!("<p>{}</p>\n", inline(about)) };
    html.push_str(&operation::render_all(document, group, base));
    let headings = operations.iter().map(|operation| (operation.id().to_owned(), operation.summary().to_owned()));
    let mut passages = Vec::new();
    for operation in operations {
        let description = text(&operation.json["description"]);
        let about = format!("{} {} {description}", operation.method.to_uppercase(), operation.path);
        passages.push(passage(operation.id(), operation.summary(), &about));
        if let Some(name) = schema::component(operation.body()).filter(|name| document.describes_body(group, name)) {
            passages.push(object_passage(name, document.resolve(operation.body())));
        }
    }
    let summary = match &operations[..] {
        [operation] => format!("{} {}", operation.method.to_uppercase(), operation.path),
        _ => (*about).to_owned(),
    };
    let has_several = operations.len() > 1;
    ReferencePage {
        slug: slug.clone(),
        title: (*title).to_owned(),
        summary,
        html,
        headings: headings.filter(|_| has_several).collect(),
        passages,
    }
}

/// The objects of answers and messages.
fn objects(document: &Document<'_>) -> ReferencePage {
    let place = |name: &str| document.place(name).to_owned();
    let (mut html, mut headings, mut passages) = (String::new(), Vec::new(), Vec::new());
    for (name, schema) in document.objects() {
        html.push_str(&format!(
            "<h2 id=\"{}\">{}</h2>\n<p>{}</p>\n{}",
            anchor(name),
            escape(name),
            inline(text(&schema["description"])),
            schema::members(name, schema, &place)
        ));
        headings.push((anchor(name), name.to_owned()));
        passages.push(object_passage(name, schema));
    }
    ReferencePage {
        slug: OBJECTS.to_owned(),
        title: "Objects".to_owned(),
        summary: "The members of answers and messages.".to_owned(),
        html,
        headings,
        passages,
    }
}

fn object_passage(name: &str, schema: &Value) -> (String, String, String) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let properties = properties.map(|(name, property)| format!("{name}: {}", text(&property["description"])));
    let about = format!("{} {}", text(&schema["description"]), properties.collect::<Vec<_>>().join(" "));
    passage(&anchor(name), name, &about)
}

fn passage(anchor: &str, heading: &str, text: &str) -> (String, String, String) {
    (anchor.to_owned(), heading.to_owned(), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn pages() -> Vec<ReferencePage> {
        reference_pages("https://grabd.example", "https://grabd.example")
    }

    fn attributes<'a>(html: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
        html.match_indices(start).map(move |(at, _)| html[at + start.len()..].split('"').next().unwrap())
    }

    #[test]
    fn links_have_targets_and_anchors_are_unique() {
        let pages = pages();
        let mut ids = BTreeMap::new();
        for page in &pages {
            let all: Vec<&str> = attributes(&page.html, " id=\"").collect();
            let unique: BTreeSet<&str> = all.iter().copied().collect();
            assert_eq!(all.len(), unique.len(), "{}", page.slug);
            let labels: Vec<&str> = attributes(&page.html, " aria-label=\"").collect();
            assert_eq!(labels.len(), labels.iter().collect::<BTreeSet<_>>().len(), "{}: {labels:?}", page.slug);
            ids.insert(path_of(&page.slug), unique);
        }
        let mut count = 0;
        for page in &pages {
            for link in attributes(&page.html, "href=\"").filter(|link| link.starts_with("/docs/api")) {
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let ids = ids.get(path).unwrap_or_else(|| panic!("{}: {link}", page.slug));
                assert!(anchor.is_empty() || ids.contains(anchor), "{}: {link}", page.slug);
                count += 1;
            }
            for (anchor, heading) in &page.headings {
                assert!(ids[&path_of(&page.slug)].contains(anchor.as_str()), "{}: {heading}", page.slug);
            }
            for (anchor, heading, text) in &page.passages {
                let is_known = anchor.is_empty() || ids[&path_of(&page.slug)].contains(anchor.as_str());
                assert!(is_known && !heading.is_empty() && text.len() > 5, "{}: {heading}", page.slug);
            }
        }
        assert!(count > 40, "{count}");
        // Targets of the `Link` header of errors.
        let codes = ERROR_CODES.map(|code| error::status_and_code(code).1);
        assert!(codes.iter().all(|code| ids["/docs/api"].contains(code)));
    }

    #[test]
    fn each_operation_is_on_one_page_with_an_example_command() {
        let pages = pages();
        let html: String = pages.iter().map(|page| page.html.as_str()).collect();
        for line in [
            "curl -sS &#39;https://grabd.example/v1/grabs&#39;",
            "curl -sS -X DELETE &#39;https://grabd.example/v1/grabs/0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44&#39;",
            "curl -sS &#39;https://grabd.example/v1/pricing&#39;",
        ] {
            assert!(html.contains(line), "{line}");
        }
        assert_eq!(html.matches(" class=\"operation\"").count(), html.matches(">Example</h").count());
        assert_eq!(html.matches(" class=\"operation\"").count(), 42);
    }

    #[test]
    fn pages_are_complete_and_not_too_long() {
        let pages = pages();
        let slugs: Vec<&str> = pages.iter().map(|page| page.slug.as_str()).collect();
        assert_eq!(slugs.first().zip(slugs.last()), Some((&"", &"objects")), "{slugs:?}");
        assert_eq!(slugs.iter().collect::<BTreeSet<_>>().len(), slugs.len(), "{slugs:?}");
        for page in &pages {
            assert!(!page.title.is_empty() && page.summary.len() > 5, "{}", page.slug);
            let rows = page.html.matches("<tr").count();
            // The page with all objects is the longest.
            assert!(rows <= 350, "{} has {rows} rows", page.slug);
            assert!(!page.html.contains("<script") && !page.html.contains("style=\""), "{}", page.slug);
        }
        let found = pages.iter().flat_map(|page| &page.passages).find(|(anchor, ..)| anchor == "listGrabs");
        assert!(found.is_some_and(|(_, _, text)| text.contains("GET /grabs")), "{found:?}");
    }
}
