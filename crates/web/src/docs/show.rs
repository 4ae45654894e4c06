//! The handlers of the documentation: its pages, the search and the list for language models.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};

use super::library::{DocPage, Library};
use super::markdown::Heading;
use super::search::{MAX_QUERY, Match};
use super::{PATH, pages};
use crate::client_ip::ClientIp;
use crate::form::Form;
use crate::page::{self, Layout};
use crate::problem::Problem;
use crate::state::Web;

/// How long browsers may keep a page. It changes only with the service.
const CACHED: &str = "public, max-age=300";

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage<'a> {
    layout: Layout,
    query: &'a str,
    sections: Vec<Section<'a>>,
    page: &'a DocPage,
    previous: Option<&'a DocPage>,
    next: Option<&'a DocPage>,
}

#[derive(Template)]
#[template(path = "docs_search.html")]
struct SearchPage<'a> {
    layout: Layout,
    query: &'a str,
    sections: Vec<Section<'a>>,
    matches: Vec<Match<'a>>,
    /// The page has no headings to navigate to.
    outline: [Heading; 0],
}

/// A section of the navigation.
struct Section<'a> {
    title: &'static str,
    links: Vec<Link<'a>>,
}

/// A page in the navigation.
struct Link<'a> {
    path: &'a str,
    title: &'a str,
    is_here: bool,
}

/// `/docs`: the first page.
pub(crate) async fn home(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show_page(&web, client, &headers, web.docs.first()).await
}

/// One page, or its Markdown if its name ends in `.md`.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = name.as_str();
    let slug = name.strip_suffix(".md").unwrap_or(name);
    let Some(page) = web.docs.find(slug) else {
        let moved = web.docs.moved(slug).map(|path| Redirect::permanent(&path).into_response());
        return moved.ok_or_else(|| Problem::not_found("Look for the page in the documentation."));
    };
    if slug == name {
        return show_page(&web, client, &headers, page).await;
    }
    web.limits.pages.take(client.0)?;
    Ok(text("text/markdown; charset=utf-8", page.markdown.clone()))
}

/// A package of a client library.
pub(crate) async fn package(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let response = web.packages.response(&name, &headers);
    response.ok_or_else(|| Problem::not_found("The packages of this service are listed at /docs/sdks."))
}

/// The search. It needs no script, and nothing outside this service.
pub(crate) async fn search(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let form = Form::parse(query.unwrap_or_default().as_bytes());
    let query: String = form.get("q").trim().chars().take(MAX_QUERY).collect();
    let matches = web.docs.search(&query);
    let layout = layout(&web, &headers).await?;
    let sections = sections(&web.docs, None);
    let page = SearchPage { layout, query: &query, sections, matches, outline: [] };
    Ok(page::page(StatusCode::OK, &page))
}

/// `/llms.txt`.
pub(crate) async fn llms(State(web): State<Arc<Web>>, client: ClientIp) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    Ok(text("text/plain; charset=utf-8", web.docs.llms_txt(web.core.public_url())))
}

async fn show_page(web: &Web, client: ClientIp, headers: &HeaderMap, page: &DocPage) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let layout = layout(web, headers).await?;
    let (previous, next) = web.docs.neighbours(page);
    let page = DocsPage { layout, query: "", sections: sections(&web.docs, Some(page)), page, previous, next };
    Ok(page::page(StatusCode::OK, &page))
}

/// The layout of the signed-in user, or that of visitors.
async fn layout(web: &Web, headers: &HeaderMap) -> Result<Layout, Problem> {
    let layout = match web.signed_in(headers).await? {
        Some(user) => web.user_layout(&user.session, PATH),
        None => web.visitor_layout(PATH),
    };
    Ok(Layout { script: Some(web.assets.docs.path.clone()), ..layout })
}

fn sections<'a>(docs: &'a Library, here: Option<&DocPage>) -> Vec<Section<'a>> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    for page in docs.pages() {
        let link =
            Link { path: &page.path, title: &page.title, is_here: here.is_some_and(|here| here.slug == page.slug) };
        match sections.last_mut() {
            Some(section) if section.title == page.section => section.links.push(link),
            _ => sections.push(Section { title: page.section, links: vec![link] }),
        }
        if page.slug == pages::BEFORE_REFERENCE {
            let link = Link { path: super::API_REFERENCE, title: "API reference", is_here: false };
            sections.push(Section { title: pages::REFERENCE, links: vec![link] });
        }
    }
    sections
}

fn text(media_type: &'static str, text: String) -> Response {
    ([(CONTENT_TYPE, media_type), (CACHE_CONTROL, CACHED)], text).into_response()
}
