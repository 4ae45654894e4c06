//! Measures how many names in the list of elements are those that public tests of accessible names expect.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use axum::Router;
use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use grabd_tests::harness::ALLOWED;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::service::Service;

/// The name for options.
pub(super) const NAME: &str = "names";

/// The name of the checkout: microsoft/playwright has a copy of the tests of web-platform-tests/wpt.
pub(super) const FOLDER: &str = "playwright";

/// What precedes the list of what a page expects, in its text.
const MARK: &str = "EXPECTED NAMES ";

/// In place of the scripts of the tests: writes the boxes and the expected names at the end of the page.
const SCRIPT: &str = r#"
if (!window.expected) {
  window.expected = [];
  window.setup = window.test = window.promise_test = () => {};
  window.AriaUtils = {
    verifyRolesBySelector() {},
    verifyLabelsBySelector(selector) {
      for (const element of document.querySelectorAll(selector)) expected.push([element, element.dataset.expectedlabel]);
    },
  };
  window.ATTAcomm = class {
    constructor({ steps }) {
      addEventListener('load', () => {
        for (const { element, test } of steps)
          for (const [kind, member, relation, name] of test.ATK ?? [])
            if (kind === 'property' && member === 'name' && relation === 'is') expected.push([document.getElementById(element), name]);
      });
    }
  };
  addEventListener('load', () => setTimeout(() => {
    const list = expected.filter(([element]) => element).map(([element, name]) => {
      const box = element.getBoundingClientRect();
      const [x, y] = [Math.round(box.left + scrollX), Math.round(box.top + scrollY)];
      return { name, box: [x, y, Math.round(box.right + scrollX) - x, Math.round(box.bottom + scrollY) - y] };
    });
    const text = JSON.stringify(list).replace(/[^ -~]/g, (one) => '\\u' + one.charCodeAt(0).toString(16).padStart(4, '0'));
    document.body.append(Object.assign(document.createElement('pre'), { textContent: 'EXPECTED NAMES ' + text }));
  }));
}
"#;

/// What a page expects of an element.
#[derive(Deserialize)]
struct Expected {
    name: String,
    /// Left edge, top edge, width and height.
    #[serde(rename = "box")]
    place: [i64; 4],
}

/// The cases of a part of the tests.
#[derive(Default)]
struct Counts {
    cases: u32,
    right: u32,
    /// Those of elements that are not in the list, because nobody can operate them or because they have no area.
    absent: u32,
}

/// Captures all pages of the tests, prints what is wrong, and the share of names that are right among listed elements.
pub(super) async fn measure(service: &Service, folder: &Path) -> anyhow::Result<()> {
    let root = folder.join("tests/assets/wpt");
    let pages = pages(&root)?;
    let (origin, _site) = serve(ALLOWED, root).await?;
    let mut parts: BTreeMap<&str, Counts> = BTreeMap::new();
    for page in &pages {
        let part = page.rsplit_once('/').map_or("", |(part, _)| part);
        let counts = parts.entry(part).or_default();
        let (expected, elements) = capture(service, &format!("{origin}/{page}")).await.with_context(|| page.clone())?;
        for Expected { name, place } in expected {
            counts.cases += 1;
            let is_there = |element: &&Value| {
                place == ["x", "y", "width", "height"].map(|side| element["box"][side].as_i64().unwrap_or(-1))
            };
            let names: Vec<&str> =
                elements.iter().filter(is_there).filter_map(|element| element["name"].as_str()).collect();
            if names.is_empty() {
                counts.absent += 1;
            } else if names.contains(&name.as_str()) {
                counts.right += 1;
            } else {
                println!("  {page}: expected {name:?}, found {names:?}");
            }
        }
    }
    println!("{:<32}{:>7}{:>8}{:>8}{:>8}", "names", "cases", "listed", "right", "share");
    let mut all = Counts::default();
    for (part, counts) in &parts {
        print(part, counts);
        all = Counts {
            cases: all.cases + counts.cases,
            right: all.right + counts.right,
            absent: all.absent + counts.absent,
        };
    }
    print("all", &all);
    Ok(())
}

fn print(part: &str, counts: &Counts) {
    let listed = counts.cases - counts.absent;
    let share = f64::from(counts.right) / f64::from(listed.max(1));
    println!("{part:<32}{:>7}{listed:>8}{:>8}{share:>8.3}", counts.cases, counts.right);
}

/// The paths of the pages about names below the folder.
fn pages(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut pages = Vec::new();
    for (folder, start) in [("accname/manual", "name"), ("accname/name", "comp"), ("accname/name/shadowdom", "")] {
        for entry in fs::read_dir(root.join(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with(start) && name.ends_with(".html") {
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// What a page expects, and its elements.
async fn capture(service: &Service, url: &str) -> anyhow::Result<(Vec<Expected>, Vec<Value>)> {
    let body = json!({ "url": url, "full_page": true, "content": "page", "also": ["text", "elements"] });
    let (status, grab) = service.capture(&body).await?;
    anyhow::ensure!(status == 200, "{status}: {grab}");
    let text = String::from_utf8(file(service, &grab, "text").await?)?;
    let (_, expected) = text.rsplit_once(MARK).context("a page lists what it expects")?;
    let elements: Value = serde_json::from_slice(&file(service, &grab, "elements").await?)?;
    if let Some(id) = grab["id"].as_str() {
        service.delete(id).await?;
    }
    let elements = elements["elements"].as_array().cloned().unwrap_or_default();
    Ok((serde_json::from_str(expected.trim())?, elements))
}

async fn file(service: &Service, grab: &Value, kind: &str) -> anyhow::Result<Vec<u8>> {
    let files = grab["files"].as_array().into_iter().flatten();
    let url = files.filter(|file| file["kind"] == kind).find_map(|file| file["url"].as_str());
    service.image(url.context("a done grab has its files")?).await
}

/// Serves the folder on a free port of this address. Stops when the handle is dropped.
async fn serve(address: IpAddr, root: PathBuf) -> io::Result<(String, AbortOnDropHandle<()>)> {
    let listener = TcpListener::bind((address, 0)).await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let router = Router::new().route("/{*path}", get(respond)).with_state(root);
    let task = TaskTracker::new().spawn(async move {
        // It ends with the task.
        let _ = axum::serve(listener, router).await;
    });
    Ok((origin, AbortOnDropHandle::new(task)))
}

async fn respond(State(root): State<PathBuf>, UrlPath(path): UrlPath<String>) -> Response {
    let extension = Path::new(&path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let media_type = match extension {
        "js" => return ([(CONTENT_TYPE, "text/javascript")], SCRIPT).into_response(),
        "html" => "text/html; charset=utf-8",
        "css" => "text/css",
        _ => "application/octet-stream",
    };
    match tokio::fs::read(root.join(&path)).await {
        Ok(content) => ([(CONTENT_TYPE, media_type)], content).into_response(),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}
