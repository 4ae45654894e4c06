//! Site jobs through the whole service, against a site of the test: links, sitemaps, robots.txt, and addresses that are refused.

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, LOCATION};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use grabd_tests::dns::{Dns, Record};
use grabd_tests::harness::{ALLOWED, TestApp};
use grabd_tests::receiver::Receiver;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
const WAIT_LIMIT: Duration = Duration::from_secs(60);
const PRIVATE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
const ALLOWED_V4: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// What the site of a test answers.
#[derive(Clone)]
enum Answer {
    Page(String),
    Document(Vec<u8>),
    Redirect(String),
    Status(u16),
}

/// A site with several names. It stops when dropped.
struct Site {
    port: u16,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<HashMap<String, Answer>>,
    /// Host without a port, and path, in the order of arrival.
    requests: Mutex<Vec<String>>,
}

impl Site {
    async fn start(ip: IpAddr) -> Result<Self> {
        let listener = TcpListener::bind((ip, 0)).await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = TaskTracker::new().spawn(async move {
            // Ends when the task is aborted.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self { port, shared, _task: AbortOnDropHandle::new(task) })
    }

    fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    /// Sets what is at an address, such as `www.example.com/a`.
    fn set(&self, address: &str, answer: Answer) {
        self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(address.to_owned(), answer);
    }

    /// A page with these links.
    fn page(&self, address: &str, links: &[String]) {
        let links: String = links.iter().map(|link| format!("<p><a href='{link}'>{link}</a>")).collect();
        self.set(address, Answer::Page(format!("<!DOCTYPE html><title>Page</title><body>{links}")));
    }

    fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, address: &str) -> usize {
        self.requests().iter().filter(|request| *request == address).count()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let address = format!("{host}{path}");
    shared.requests.lock().unwrap_or_else(PoisonError::into_inner).push(address.clone());
    let found = shared.answers.lock().unwrap_or_else(PoisonError::into_inner).get(&address).cloned();
    let response = Response::builder();
    let built = match found {
        Some(Answer::Page(html)) => response.header(CONTENT_TYPE, "text/html").body(Body::from(html)),
        Some(Answer::Document(bytes)) => response.header(CONTENT_TYPE, "application/xml").body(Body::from(bytes)),
        Some(Answer::Redirect(to)) => response.status(302).header(LOCATION, to).body(Body::empty()),
        Some(Answer::Status(status)) => response.status(status).body(Body::empty()),
        None => response.status(404).body(Body::from("Not found")),
    };
    built.unwrap_or_default()
}

/// Sends a request with a key. Returns the status and the body.
async fn call(app: &TestApp, key: &str, method: Method, path: &str, body: Option<Value>) -> Result<(u16, Value)> {
    let mut request = app.client.request(method, format!("{}{path}", app.base())).bearer_auth(key);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    Ok((status, if text.is_empty() { Value::Null } else { serde_json::from_str(&text)? }))
}

/// Creates a job. Returns its path.
async fn create(app: &TestApp, key: &str, mut body: Value) -> Result<String> {
    body["requests_per_minute"] = json!(120);
    let (status, site) = call(app, key, Method::POST, "/sites", Some(body)).await?;
    ensure!(status == 202, "{status} {site}");
    Ok(format!("/sites/{}", site["id"].as_str().context("id")?))
}

/// Waits until a job is as `is_expected` says. Returns it.
async fn until(app: &TestApp, key: &str, path: &str, is_expected: impl Fn(&Value) -> bool) -> Result<Value> {
    let mut last = Value::Null;
    let poll = async {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        loop {
            ticks.tick().await;
            last = app.get(path, key).await?.1;
            if is_expected(&last) {
                return anyhow::Ok(());
            }
        }
    };
    let waited = timeout(WAIT_LIMIT, poll).await;
    waited.with_context(|| format!("{last}"))??;
    Ok(last)
}

pub(crate) async fn finished(app: &TestApp, key: &str, path: &str) -> Result<Value> {
    until(app, key, path, |site| !site["finished_at"].is_null()).await
}

/// The pages of a job.
async fn pages(app: &TestApp, key: &str, path: &str) -> Result<Vec<Value>> {
    let (_, list) = app.get(&format!("{path}/pages?limit=100"), key).await?;
    Ok(list["data"].as_array().context("pages")?.clone())
}

/// The state of the page with this address, and why it is skipped.
fn state_of<'a>(pages: &'a [Value], url: &str) -> (&'a str, &'a str) {
    let page = pages.iter().find(|page| page["url"] == url);
    page.map_or(("absent", ""), |page| {
        (page["state"].as_str().unwrap_or_default(), page["skipped_because"].as_str().unwrap_or_default())
    })
}

/// A DNS server for which all names are those of the site, except one with a private address.
async fn dns() -> Result<Dns> {
    let dns = Dns::start(ALLOWED_V4).await?;
    dns.set_records("intern.example.com", &[&[Record::A(PRIVATE)]]);
    Ok(dns)
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_followed_within_the_site_and_its_robots_txt() -> Result<()> {
    let (dns, site) = (dns().await?, Site::start(ALLOWED).await?);
    let receiver = Receiver::start(ALLOWED).await?;
    let address = dns.address.to_string();
    let app = TestApp::start(20, &[("egress.dns", &*address), ("webhooks.allow_http", "true")]).await?;
    let webhook = json!({ "url": receiver.url(), "events": ["site.finished"] });
    assert_eq!(call(&app, app.live(), Method::POST, "/webhooks", Some(webhook)).await?.0, 201);

    let www = |path: &str| site.url("www.example.com", path);
    let (other, intern) = (site.url("other.example.org", "/"), site.url("intern.example.com", "/"));
    let robots = b"User-agent: *\nDisallow: /\n\nUser-agent: grabd\nDisallow: /secret/\n".to_vec();
    site.set("www.example.com/robots.txt", Answer::Document(robots));
    let links = ["/a", "/a#part", "/moved", "/secret/x", "/archive.zip", "/draft/1"].map(www);
    let start = [&links[..], &[other.clone(), intern.clone(), site.url("shop.example.com", "/")]].concat();
    site.page("www.example.com/", &start);
    site.page("www.example.com/a", &[www("/"), www("/deep")]);
    site.page("www.example.com/deep", &[www("/deeper")]);
    site.set("www.example.com/moved", Answer::Redirect(other.clone()));
    site.page("other.example.org/", &[www("/from-elsewhere")]);
    site.page("shop.example.com/", &[]);

    let body = json!({ "url": www("/#top"), "max_depth": 2, "exclude": ["/draft/*"], "capture": { "width": 320, "height": 320 } });
    let path = create(&app, app.live(), body).await?;
    let job = finished(&app, app.live(), &path).await?;
    let found = pages(&app, app.live(), &path).await?;
    assert_eq!((&job["state"], &job["error"]), (&json!("done"), &Value::Null), "{job} {found:?}");
    for (url, expected) in [
        (www("/"), ("done", "")),
        (www("/a"), ("done", "")),
        (www("/moved"), ("done", "")),
        (www("/deep"), ("done", "")),
        (site.url("shop.example.com", "/"), ("done", "")),
        (www("/secret/x"), ("skipped", "robots")),
        (www("/archive.zip"), ("skipped", "not_html")),
        (www("/draft/1"), ("skipped", "excluded")),
        (other, ("skipped", "other_site")),
        (intern, ("skipped", "private_address")),
        (www("/deeper"), ("absent", "")),
        (www("/from-elsewhere"), ("absent", "")),
        (www("/a#part"), ("absent", "")),
    ] {
        assert_eq!(state_of(&found, &url), expected, "{url} {found:?}");
    }
    let moved = found.iter().find(|page| page["url"] == json!(www("/moved"))).context("moved")?;
    let about = moved["error"]["message"].as_str().unwrap_or_default();
    assert!(moved["error"]["code"] == "other_site" && about.contains("other.example.org"), "{moved}");
    assert_eq!(found.iter().filter(|page| page["state"] == "done" && !page["error"].is_null()).count(), 1, "{found:?}");
    let counts = json!({ "found": 10, "skipped": 5, "captured": 5, "failed": 0, "waiting": 0 });
    assert_eq!(job["pages"], counts, "{found:?}");
    assert_eq!((&found[0]["number"], &found[0]["found_on"]), (&json!(1), &Value::Null));
    assert_eq!((&found[1]["depth"], &found[1]["found_on"]), (&json!(1), &json!(www("/"))));
    let image = found[0]["image_url"].as_str().context("image_url")?;
    assert_eq!(app.client.get(image).send().await?.status(), 200);
    assert_eq!(site.count("www.example.com/robots.txt"), 1);
    assert_eq!(site.count("www.example.com/secret/x") + site.count("www.example.com/draft/1"), 0);
    // Each page is a grab of the team, which costs a credit.
    assert_eq!(app.get("/usage", app.live()).await?.1["credits"]["total"], json!(15));
    let grab = format!("/grabs/{}", found[0]["grab_id"].as_str().context("grab")?);
    assert_eq!(app.get(&grab, app.live()).await?.1["target_url"], json!(www("/")));
    let message: Value = serde_json::from_str(&receiver.wait_for(0).await?.body)?;
    assert_eq!((&message["type"], &message["data"]["site"]), (&json!("site.finished"), &job));

    assert_eq!(call(&app, app.live(), Method::DELETE, &path, None).await?.0, 204);
    assert_eq!(app.get(&path, app.live()).await?.0, 404);
    assert_eq!(app.get(&grab, app.live()).await?.0, 200, "captures stay");
    app.finish().await
}

fn gzip(text: &str) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?)
}

fn urlset(addresses: &[String]) -> String {
    let urls: String = addresses.iter().map(|address| format!("<url><loc>{address}</loc></url>")).collect();
    format!("<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{urls}</urlset>")
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_an_index_of_sitemaps_are_found() -> Result<()> {
    let (dns, site) = (dns().await?, Site::start(ALLOWED).await?);
    let address = dns.address.to_string();
    // Nothing is captured without a browser, so that pages wait.
    let app = TestApp::start_without_browser(20, &[("egress.dns", &*address)]).await?;
    let www = |path: &str| site.url("www.example.com", path);
    let entries = ["/zipped.xml.gz", "/hostile.xml", "/missing.xml", "/list.txt"].map(www);
    let sitemaps: String = entries.iter().map(|entry| format!("<sitemap><loc>{entry}</loc></sitemap>")).collect();
    let index = format!("<sitemapindex>{sitemaps}</sitemapindex>");
    site.set("www.example.com/old.xml", Answer::Redirect("/sitemap.xml".to_owned()));
    site.set("www.example.com/sitemap.xml", Answer::Document(index.into_bytes()));
    let pages_of = ["/a", "/b?x=1"].map(www);
    site.set("www.example.com/zipped.xml.gz", Answer::Document(gzip(&urlset(&pages_of))?));
    let bomb = format!("<!DOCTYPE urlset [<!ENTITY a '{}'>]>{}", www("/bomb"), urlset(&["&a;".to_owned()]));
    site.set("www.example.com/hostile.xml", Answer::Document(bomb.into_bytes()));
    let list = format!("{}\n{}\n{}\n", www("/c"), www("/a"), site.url("other.example.org", "/"));
    site.set("www.example.com/list.txt", Answer::Document(list.into_bytes()));

    let path = create(&app, app.live(), json!({ "sitemap": www("/old.xml") })).await?;
    let job = until(&app, app.live(), &path, |site| site["state"] == "capturing").await?;
    assert_eq!((&job["url"], &job["max_depth"]), (&Value::Null, &Value::Null));
    let found = pages(&app, app.live(), &path).await?;
    let urls: Vec<&Value> = found.iter().map(|page| &page["url"]).collect();
    let expected = [www("/a"), www("/b?x=1"), www("/c"), site.url("other.example.org", "/")].map(Value::from);
    assert_eq!(urls, expected.iter().collect::<Vec<_>>());
    assert_eq!(found[0]["found_on"], json!(www("/zipped.xml.gz")));
    assert_eq!(state_of(&found, &site.url("other.example.org", "/")), ("skipped", "other_site"));

    // Pages that wait are not captured any more. Those whose grab was created stay open.
    let (status, canceled) = call(&app, app.live(), Method::POST, &format!("{path}/cancel"), None).await?;
    assert_eq!((status, &canceled["state"]), (200, &json!("canceled")), "{canceled}");
    let found = pages(&app, app.live(), &path).await?;
    assert!(found.iter().all(|page| page["state"] != "waiting"), "{found:?}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn job_that_cannot_begin_fails_with_the_reason() -> Result<()> {
    let (dns, site) = (dns().await?, Site::start(ALLOWED).await?);
    let address = dns.address.to_string();
    let app = TestApp::start_without_browser(20, &[("egress.dns", &*address)]).await?;
    let www = |path: &str| site.url("www.example.com", path);
    site.set("down.example.com/robots.txt", Answer::Status(503));
    site.set("www.example.com/moved.xml", Answer::Redirect(site.url("other.example.org", "/sitemap.xml")));
    site.set("www.example.com/inside.xml", Answer::Redirect(site.url("intern.example.com", "/sitemap.xml")));
    site.set("www.example.com/loop.xml", Answer::Redirect("/loop.xml".to_owned()));
    site.set("www.example.com/page.xml", Answer::Document(b"<html><body>Not a sitemap".to_vec()));
    site.set("www.example.com/broken.xml", Answer::Document(b"<urlset><url><loc>".to_vec()));
    for (body, code, reason) in [
        (json!({ "url": site.url("down.example.com", "/") }), "render_failed", "robots.txt of down.example.com"),
        (json!({ "sitemap": www("/moved.xml") }), "render_failed", "it leads to another site"),
        (json!({ "sitemap": www("/inside.xml") }), "render_failed", "not public"),
        (json!({ "sitemap": www("/loop.xml") }), "render_failed", "redirects"),
        (json!({ "sitemap": www("/none.xml") }), "render_failed", "status 404"),
        (json!({ "sitemap": www("/page.xml") }), "render_failed", "neither a sitemap"),
        (json!({ "sitemap": www("/broken.xml") }), "no_pages", "No page was captured"),
    ] {
        let path = create(&app, app.live(), body.clone()).await?;
        let job = finished(&app, app.live(), &path).await?;
        assert_eq!((&job["state"], &job["error"]["code"]), (&json!("failed"), &json!(code)), "{body} {job}");
        let message = job["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{body}: {message}");
    }
    assert_eq!(site.count("other.example.org/sitemap.xml") + site.count("intern.example.com/sitemap.xml"), 0);
    assert_eq!(site.count("down.example.com/"), 0);
    let private = json!({ "url": site.url("intern.example.com", "/") });
    let (status, refused) = call(&app, app.live(), Method::POST, "/sites", Some(private)).await?;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("ssrf_detected")), "{refused}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn test_keys_make_placeholders_and_requests_are_checked() -> Result<()> {
    let (dns, site) = (dns().await?, Site::start(ALLOWED).await?);
    let address = dns.address.to_string();
    let app = TestApp::start_without_browser(20, &[("egress.dns", &*address), ("sites.max_pages", "100")]).await?;
    let sitemap = site.url("www.example.com", "/sitemap.xml");
    let path = create(&app, app.test(), json!({ "sitemap": sitemap, "capture": { "width": 640 } })).await?;
    let job = finished(&app, app.test(), &path).await?;
    assert_eq!((&job["state"], &job["live"], &job["pages"]["captured"]), (&json!("done"), &json!(false), &json!(3)));
    assert_eq!(job["capture"], json!({ "width": 640 }));
    let (_, first) = app.get(&format!("{path}/pages?limit=1"), app.test()).await?;
    assert_eq!((&first["data"][0]["number"], &first["has_more"]), (&json!(1), &json!(true)), "{first}");
    assert!(first["data"][0]["image_url"].as_str().is_some_and(|url| url.starts_with("/i/")), "{first}");
    let (_, rest) = app.get(&format!("{path}/pages?starting_after=1"), app.test()).await?;
    assert_eq!(rest["data"].as_array().map(Vec::len), Some(2), "{rest}");
    assert_eq!(site.requests(), [] as [String; 0], "no site is contacted for test keys");
    assert_eq!(app.get(&path, app.live()).await?.0, 404, "environments are apart");

    let url = site.url("www.example.com", "/");
    for (body, field) in [
        (json!({}), "`url` must be present, unless `sitemap` is"),
        (json!({ "url": url, "sitemap": url }), "`sitemap` must be left out"),
        (json!({ "url": url, "max_pages": 101 }), "`max_pages` must be an integer from 1 to 100; got 101"),
        (json!({ "url": url, "robots": false }), "`robots` must be true or left out"),
        (json!({ "url": url, "maxpages": 5 }), "`body` must be a JSON object"),
        (json!({ "url": null }), "`url` must be the absolute"),
        (json!({ "url": url, "capture": { "url": url } }), "`capture.url` must be left out"),
    ] {
        let (status, refused) = call(&app, app.test(), Method::POST, "/sites", Some(body.clone())).await?;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.starts_with(field), "{body} {status} {refused}");
    }
    let (status, _) = app.get("/sites/not-an-id", app.test()).await?;
    assert_eq!(status, 404);
    let (_, list) = app.get("/sites?limit=1", app.test()).await?;
    assert_eq!(list["data"][0], job);
    app.finish().await
}
