//! The handlers of the documentation: its pages, the search and the list for language models.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use grabd_domain::permissions::Permission;
use grabd_engine::{accounts, random};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};

use super::PATH;
use super::example::Example;
use super::library::{DocPage, Library, Reader};
use super::markdown::Heading;
use super::pages::Audience;
use super::search::{MAX_QUERY, MAX_RESULTS, Results};
use crate::client_ip::ClientIp;
use crate::form::Form;
use crate::page::{self, Layout};
use crate::problem::Problem;
use crate::session::SignedIn;
use crate::state::Web;
use crate::{grabs, paths};

/// How long a text may be kept. It changes only with the service.
const PUBLIC: &str = "public, max-age=300";
/// The same for a text that not everybody sees.
const PRIVATE: &str = "private, max-age=300";

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage<'a> {
    layout: Layout,
    query: &'a str,
    groups: Vec<Group<'a>>,
    page: &'a DocPage,
    pieces: Vec<Piece<'a>>,
    /// Runs examples. `None` for visitors, and on pages without examples.
    runner: Option<Runner>,
    previous: Option<&'a DocPage>,
    next: Option<&'a DocPage>,
}

#[derive(Template)]
#[template(path = "docs_search.html")]
struct SearchPage<'a> {
    layout: Layout,
    query: &'a str,
    groups: Vec<Group<'a>>,
    results: Vec<Results<'a>>,
    count: usize,
    /// Whether there may be more results than shown.
    is_cut: bool,
    /// The page has no headings to navigate to.
    outline: [Heading; 0],
}

/// What the forms need that run examples in test mode.
struct Runner {
    /// The path of the form for a new capture.
    action: String,
    form_token: String,
    /// The name of the field with the idempotency key.
    once: &'static str,
}

/// A part of a page, and the example below it.
struct Piece<'a> {
    html: &'a str,
    example: Option<&'a Example>,
    /// The idempotency key of the example's form.
    key: String,
}

/// The pages for one audience in the navigation.
struct Group<'a> {
    audience: Audience,
    sections: Vec<Section<'a>>,
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
    web.limits.pages.take(client.0)?;
    let user = web.signed_in(&headers).await?;
    show_page(&web, user.as_ref(), web.docs.first()).await
}

/// One page, or its Markdown if its name ends in `.md`.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show_slug(&web, client, &name, &headers).await
}

/// One page of the API reference.
pub(crate) async fn show_reference(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show_slug(&web, client, &format!("api/{name}"), &headers).await
}

/// A package of a client library.
pub(crate) async fn package(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
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
    let user = web.signed_in(&headers).await?;
    let reader = reader(user.as_ref());
    let results = web.docs.search(&query, reader);
    let page = SearchPage {
        layout: layout(&web, user.as_ref()),
        query: &query,
        groups: groups(&web.docs, reader, None),
        count: results.iter().map(|results| results.matches.len()).sum(),
        is_cut: results.iter().any(|results| results.matches.len() == MAX_RESULTS),
        results,
        outline: [],
    };
    Ok(page::page(StatusCode::OK, &page))
}

/// `/llms.txt`.
pub(crate) async fn llms(State(web): State<Arc<Web>>, client: ClientIp) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    Ok(text("text/plain; charset=utf-8", PUBLIC, web.docs.llms_txt(web.core.public_url())))
}

async fn show_slug(web: &Web, client: ClientIp, name: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let user = web.signed_in(headers).await?;
    let reader = reader(user.as_ref());
    let slug = name.strip_suffix(".md").unwrap_or(name);
    let not_found = || Problem::not_found("Look for the page in the documentation.");
    let Some(page) = web.docs.find(slug, reader) else {
        let moved = web.docs.moved(slug, reader).map(|path| Redirect::permanent(&path).into_response());
        return moved.ok_or_else(not_found);
    };
    if slug == name {
        return show_page(web, user.as_ref(), page).await;
    }
    // Caches must not give customers what only operators see.
    let cached = if web.docs.find(slug, Reader::Customer).is_some() { PUBLIC } else { PRIVATE };
    let markdown = page.markdown.clone().ok_or_else(not_found)?;
    Ok(text("text/markdown; charset=utf-8", cached, markdown))
}

async fn show_page(web: &Web, user: Option<&SignedIn>, page: &DocPage) -> Result<Response, Problem> {
    let reader = reader(user);
    let (previous, next) = web.docs.neighbours(page, reader);
    let groups = groups(&web.docs, reader, Some(page));
    let runner = match user {
        Some(user) if !page.examples.is_empty() => runner(web, user).await?,
        Some(_) | None => None,
    };
    let pieces = page.pieces().map(|(html, example)| Piece { html, example, key: random::secret_text() }).collect();
    let page = DocsPage { layout: layout(web, user), query: "", groups, page, pieces, runner, previous, next };
    Ok(page::page(StatusCode::OK, &page))
}

/// Runs examples for the team that the user joined first of those for which they may capture pages.
async fn runner(web: &Web, user: &SignedIn) -> Result<Option<Runner>, Problem> {
    let teams = accounts::list_memberships(&web.core, user.session.user.id).await?;
    let permitted = teams.iter().find(|membership| membership.role.allows(Permission::Capture));
    Ok(permitted.map(|membership| Runner {
        action: paths::team_page(membership.team, "capture"),
        form_token: user.session.csrf.clone(),
        once: grabs::capture::IDEMPOTENCY_FIELD,
    }))
}

fn reader(user: Option<&SignedIn>) -> Reader {
    match user {
        Some(user) if user.session.user.operator => Reader::Operator,
        Some(_) | None => Reader::Customer,
    }
}

/// The layout of the signed-in user, or that of visitors.
fn layout(web: &Web, user: Option<&SignedIn>) -> Layout {
    let layout = match user {
        Some(user) => web.user_layout(&user.session, PATH),
        None => web.visitor_layout(PATH),
    };
    Layout { script: Some(web.assets.docs.path.clone()), ..layout }
}

fn groups<'a>(docs: &'a Library, reader: Reader, here: Option<&DocPage>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for page in docs.pages(reader) {
        let link =
            Link { path: &page.path, title: &page.title, is_here: here.is_some_and(|here| here.slug == page.slug) };
        if groups.last().is_none_or(|group| group.audience != page.audience) {
            groups.push(Group { audience: page.audience, sections: Vec::new() });
        }
        let Some(Group { sections, .. }) = groups.last_mut() else { continue };
        match sections.last_mut() {
            Some(section) if section.title == page.section => section.links.push(link),
            _ => sections.push(Section { title: page.section, links: vec![link] }),
        }
    }
    groups
}

fn text(media_type: &'static str, cached: &'static str, text: String) -> Response {
    ([(CONTENT_TYPE, media_type), (CACHE_CONTROL, cached)], text).into_response()
}
