//! Serves a folder as static hosting does: directory indexes, pages without their extension, 404.html, and projects below
//! their name.

use std::io;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE, LOCATION};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use grabd_tests::site::hard::media_type;
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A served folder. It stops when dropped.
pub(super) struct FolderSite {
    origin: String,
    _task: AbortOnDropHandle<()>,
}

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    File(PathBuf),
    /// A directory whose URL needs a slash at its end.
    Directory,
    Nothing,
}

impl FolderSite {
    /// Serves a folder on a free port of this address.
    pub(super) async fn start(address: IpAddr, folder: PathBuf) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let router = Router::new().fallback(respond).with_state(folder);
        let task = TaskTracker::new().spawn(async move {
            // It ends with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { origin, _task: AbortOnDropHandle::new(task) })
    }

    /// The URL of a path, which starts with a slash.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }
}

async fn respond(State(root): State<PathBuf>, request: Request) -> Response {
    let uri = request.uri();
    let (status, path) = match find(&root, uri.path()) {
        Found::File(path) => (StatusCode::OK, path),
        Found::Directory => return (StatusCode::MOVED_PERMANENTLY, [(LOCATION, with_slash(uri))]).into_response(),
        Found::Nothing => (StatusCode::NOT_FOUND, root.join("404.html")),
    };
    match tokio::fs::read(&path).await {
        Ok(content) => {
            let headers = [(CONTENT_TYPE, media_type(&path)), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")];
            (status, headers, content).into_response()
        }
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

fn with_slash(uri: &Uri) -> String {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}/{query}", uri.path())
}

fn find(root: &Path, path: &str) -> Found {
    let decoded = decode(path);
    let relative = decoded.trim_start_matches('/');
    let found = find_in(root, relative);
    // The pages of a project are below its name, which is not in its folder.
    match relative.split_once('/') {
        Some((project, rest)) if found == Found::Nothing && !root.join(project).exists() => find_in(root, rest),
        _ => found,
    }
}

fn find_in(root: &Path, relative: &str) -> Found {
    if !Path::new(relative).components().all(|part| matches!(part, Component::Normal(_))) {
        return Found::Nothing;
    }
    let path = root.join(relative);
    if path.is_dir() {
        return match path.join("index.html") {
            index if !index.is_file() => Found::Nothing,
            _ if !relative.is_empty() && !relative.ends_with('/') => Found::Directory,
            index => Found::File(index),
        };
    }
    let page = root.join(format!("{relative}.html"));
    match path.is_file() {
        true => Found::File(path),
        false if page.is_file() => Found::File(page),
        false => Found::Nothing,
    }
}

/// Decodes `%20` and the like. What is not well-formed stays as it is.
fn decode(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let code = others.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use grabd_tests::harness::ALLOWED;

    use super::*;

    #[tokio::test]
    async fn folder_is_served_as_static_hosting_does() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        fs::create_dir(root.join("blog"))?;
        fs::create_dir(root.join("empty"))?;
        for (file, content) in [
            ("index.html", "home"),
            ("about.html", "about"),
            ("404.html", "missing"),
            ("blog/index.html", "blog"),
            ("blog/a b.js", "script"),
        ] {
            fs::write(root.join(file), content)?;
        }
        let site = FolderSite::start(ALLOWED, root.to_owned()).await?;
        let client = grabd_tests::client::client().redirect(reqwest::redirect::Policy::none()).build()?;
        for (path, status, content) in [
            ("/", 200, "home"),
            ("/about", 200, "about"),
            ("/about.html?x=1", 200, "about"),
            ("/blog/", 200, "blog"),
            ("/blog/a%20b.js", 200, "script"),
            ("/project/", 200, "home"),
            ("/project/blog/", 200, "blog"),
            ("/blog?x=1", 301, "/blog/?x=1"),
            ("/nothing", 404, "missing"),
            ("/blog/nothing", 404, "missing"),
            ("/empty/", 404, "missing"),
            ("/..%2f..%2fetc/passwd", 404, "missing"),
        ] {
            let response = client.get(site.url(path)).send().await?;
            assert_eq!(response.status().as_u16(), status, "{path}");
            let location =
                response.headers().get(LOCATION).map(|value| value.to_str().map(str::to_owned)).transpose()?;
            let seen = match location {
                Some(location) => location,
                None => response.text().await?,
            };
            assert_eq!(seen, content, "{path}");
        }
        let script = client.get(site.url("/blog/a%20b.js")).send().await?;
        assert_eq!(script.headers()[CONTENT_TYPE], "text/javascript");
        Ok(())
    }
}
