//! Pages that are loaded through a proxy of the team, and proxies over REST.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use grabd_domain::credits::Balance;
use grabd_engine::clock::Clock;
use grabd_tests::harness::{ALLOWED, REFUSED, TestApp};
use grabd_tests::proxy_server::{Behaviour, LOGIN, ProxyServer, REPLY};
use grabd_tests::tls_front::TlsFront;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::secrets::check_files;

const UNKNOWN: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

async fn call(app: &TestApp, key: &str, method: Method, path: &str, body: Option<Value>) -> Result<(u16, Value)> {
    let mut request = app.client.request(method, format!("{}{path}", app.base())).bearer_auth(key);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await?;
    let (status, text) = (response.status().as_u16(), response.text().await?);
    Ok((status, if text.is_empty() { Value::Null } else { serde_json::from_str(&text)? }))
}

/// Creates a proxy with the login of [`ProxyServer`]. Returns its id.
async fn create_proxy(app: &TestApp, url: &str) -> Result<String> {
    let body = json!({ "name": "Office", "url": url, "username": LOGIN.0, "password": LOGIN.1 });
    let (status, proxy) = call(app, app.live(), Method::POST, "/proxies", Some(body)).await?;
    assert_eq!((status, &proxy["has_login"]), (201, &json!(true)), "{proxy}");
    assert!(!proxy.to_string().contains(LOGIN.1), "{proxy}");
    Ok(proxy["id"].as_str().context("an id")?.to_owned())
}

async fn credits(app: &TestApp) -> Result<(u64, u64)> {
    let balance = Balance::of(&app.service.store().credits().lots(app.team.team).await?, Clock::system().now());
    Ok((balance.prepaid, balance.held))
}

/// A site that counts its connections, and records the paths that it is asked for.
struct CountingSite {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Clone, Default)]
struct Seen {
    connections: usize,
    paths: Vec<String>,
}

impl CountingSite {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind((ALLOWED, 0)).await?;
        let address = listener.local_addr()?;
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let log = Arc::clone(&seen);
        let task = TaskTracker::new().spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                log.lock().unwrap_or_else(PoisonError::into_inner).connections += 1;
                connections.spawn(answer(stream, Arc::clone(&log)));
            }
        });
        Ok(Self { address, seen, _task: AbortOnDropHandle::new(task) })
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(mut stream: TcpStream, log: Arc<Mutex<Seen>>) {
    let mut head = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        head.push(byte);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8_lossy(&head).into_owned();
        let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
        log.lock().unwrap_or_else(PoisonError::into_inner).paths.push(path.clone());
        head.clear();
        let page = "<img src=/dot.svg width=9 height=9><script>new WebSocket(`ws://${location.host}/socket`)</script>";
        let dot = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>";
        let reply = match path.as_str() {
            "/start" => "HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "/page" => reply("text/html", page),
            "/dot.svg" => reply("image/svg+xml", dot),
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        // The other side may have closed the connection.
        if stream.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn reply(kind: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn page_with_its_parts_redirects_and_sockets_is_loaded_through_the_proxy() -> Result<()> {
    let app = TestApp::start(9, &[]).await?;
    for scheme in ["http", "socks5"] {
        let (site, server) = (CountingSite::start().await?, ProxyServer::start(ALLOWED, Behaviour::Forward).await?);
        let id = create_proxy(&app, &format!("{scheme}://{}", server.address())).await?;
        let (status, grab) = app.create(json!({ "url": site.url("/start"), "proxy": id })).await?;
        assert_eq!((status, &grab["status"]), (200, &json!("done")), "{scheme}: {grab}");
        let (seen, targets) = (site.seen(), server.targets());
        for path in ["/start", "/page", "/dot.svg", "/socket"] {
            assert!(seen.paths.iter().any(|asked| asked == path), "{scheme}: {path}: {:?}", seen.paths);
        }
        // The site got no other connection than those of the proxy, which was asked for the address. The browser may have opened
        // another one meanwhile.
        assert!(seen.connections <= targets.len(), "{scheme}: {targets:?}");
        assert!(targets.iter().all(|target| *target == site.address.to_string()), "{scheme}: {targets:?}");
        let (_, proxy) = call(&app, app.live(), Method::GET, &format!("/proxies/{id}"), None).await?;
        assert!(proxy["last_used_at"].is_string() && proxy["last_error"].is_null(), "{proxy}");

        // The next capture does not use it.
        let (status, grab) = app.create(json!({ "url": site.url("/page") })).await?;
        assert_eq!(status, 200, "{grab}");
        assert_eq!(server.targets().len(), targets.len());
    }
    assert_eq!(credits(&app).await?, (5, 0));
    check_files(&app.data_dir(), LOGIN.1)?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn https_proxy_is_reached_over_tls() -> Result<()> {
    let server = ProxyServer::start(ALLOWED, Behaviour::Forward).await?;
    let front = TlsFront::start(server.address()).await?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, front.authority())?;
    let file = file.display().to_string();
    let allowed = [("egress.allow_cidrs", "127.0.0.1/32,127.0.0.2/32")];
    let app = TestApp::start(9, &[allowed[0], ("proxies.ca_file", &file)]).await?;
    let id = create_proxy(&app, &front.origin()).await?;
    let (status, grab) = app.create(json!({ "url": app.site.url("/"), "proxy": id })).await?;
    assert_eq!(status, 200, "{grab}");
    assert!(!server.targets().is_empty());

    // Without the authority, the certificate is not trusted.
    let app = app.restart_with(&[("proxies.ca_file", "")]).await?;
    let failed = app.create_refused(json!({ "url": app.site.url("/"), "proxy": id })).await?;
    assert_eq!((failed.code.as_str(), failed.cause.as_str()), ("render_failed", "request"));
    assert_eq!(failed.message, "The proxy \"Office\" could not be reached over TLS.");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_of_the_proxy_are_uncharged_and_name_it_only() -> Result<()> {
    const REFUSAL: &str = "HTTP/1.1 403 reply-of-the-proxy\r\n\r\nreply-of-the-proxy";
    let app = TestApp::start(9, &[]).await?;
    let closed = TcpListener::bind((ALLOWED, 0)).await?.local_addr()?;
    let refusing = ProxyServer::start(ALLOWED, Behaviour::Answer(REFUSAL)).await?;
    let no_proxy = ProxyServer::start(ALLOWED, Behaviour::Answer("220 reply-of-the-proxy\r\n")).await?;
    let broken = ProxyServer::start(ALLOWED, Behaviour::Answer("")).await?;
    let forwarding = ProxyServer::start(ALLOWED, Behaviour::Forward).await?;
    for (address, username, words, problem) in [
        (closed, LOGIN.0, "could not be reached.", "unreachable"),
        (refusing.address(), LOGIN.0, "refused to connect to the site.", "refused"),
        (no_proxy.address(), LOGIN.0, "did not answer like a proxy of its kind.", "not_a_proxy"),
        (broken.address(), LOGIN.0, "broke the connection.", "broken"),
        (forwarding.address(), "somebody", "did not accept the user name and password.", "login"),
    ] {
        let id = create_proxy(&app, &format!("http://{address}")).await?;
        let path = format!("/proxies/{id}");
        call(&app, app.live(), Method::PATCH, &path, Some(json!({ "username": username }))).await?;
        let failed = app.create_refused(json!({ "url": app.site.url("/"), "proxy": id })).await?;
        assert_eq!(failed.message, format!("The proxy \"Office\" {words}"));
        assert_eq!((failed.code.as_str(), failed.cause.as_str()), ("render_failed", "request"), "{failed:?}");
        let (_, proxy) = call(&app, app.live(), Method::GET, &path, None).await?;
        assert_eq!(proxy["last_error"], problem, "{proxy}");
        assert!(proxy["last_error_at"].is_string() && !proxy.to_string().contains(REPLY), "{proxy}");
        // The failure stays when only the name is changed.
        let renamed = json!({ "name": "Vienna", "url": proxy["url"] });
        let (_, renamed) = call(&app, app.live(), Method::PATCH, &path, Some(renamed)).await?;
        assert_eq!((&renamed["name"], &renamed["last_error"]), (&json!("Vienna"), &json!(problem)), "{renamed}");
    }
    assert_eq!(credits(&app).await?, (9, 0));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn page_whose_proxy_dies_while_it_is_loaded_is_no_image() -> Result<()> {
    let app = TestApp::start(9, &[]).await?;
    let server = ProxyServer::start(ALLOWED, Behaviour::ForwardOnce).await?;
    let id = create_proxy(&app, &format!("http://{}", server.address())).await?;
    // The second image is at another origin, which needs another connection.
    let (site, second) = (CountingSite::start().await?, app.site.url("/none.png"));
    let html = format!("<p>Text.<img src='{}' onload='new Image().src=`{second}`'>", site.url("/dot.svg"));
    let body = json!({ "html": html, "base_url": app.site.url("/"), "proxy": id });
    let failed = app.create_refused(body).await?;
    assert_eq!(failed.message, "The proxy \"Office\" could not be reached.");
    assert_eq!(credits(&app).await?, (9, 0));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_capture_whose_proxy_is_deleted_fails_uncharged() -> Result<()> {
    let app = TestApp::start(9, &[("browser.slots", "1")]).await?;
    let id = create_proxy(&app, "http://8.8.8.8:3128").await?;
    // A page that is not answered yet uses the only slot.
    let page = TcpListener::bind((ALLOWED, 0)).await?;
    let first = json!({ "url": format!("http://{}/", page.local_addr()?) });
    assert_eq!(call(&app, app.live(), Method::POST, "/grabs?async=true", Some(first)).await?.0, 202);
    let (mut stream, _) = page.accept().await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let second = json!({ "url": app.site.url("/"), "proxy": id });
    let (status, queued) = call(&app, app.live(), Method::POST, "/grabs?async=true", Some(second)).await?;
    assert_eq!(status, 202, "{queued}");
    assert_eq!(call(&app, app.live(), Method::DELETE, &format!("/proxies/{id}"), None).await?.0, 204);
    stream.write_all(reply("text/html", "<p>Text.").as_bytes()).await?;
    let path = format!("{}/grabs/{}", app.base(), queued["id"].as_str().context("an id")?);
    let ended = app.client.get(path).bearer_auth(app.live()).header("prefer", "wait=25");
    let ended: Value = ended.send().await?.json().await?;
    assert_eq!((&ended["status"], &ended["error_code"]), (&json!("failed"), &json!("render_failed")), "{ended}");
    assert_eq!(ended["error_message"], "The proxy of this capture was deleted before it was used.");
    assert_eq!(credits(&app).await?, (8, 0));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn private_targets_and_proxies_are_refused() -> Result<()> {
    let app = TestApp::start(9, &[]).await?;
    let server = ProxyServer::start(ALLOWED, Behaviour::Forward).await?;
    let id = create_proxy(&app, &format!("http://{}", server.address())).await?;
    let secret = TcpListener::bind((REFUSED, 0)).await?;
    let private = format!("http://{}/", secret.local_addr()?);
    let refused = app.create_refused(json!({ "url": private, "proxy": id })).await?;
    assert_eq!(refused.code, "ssrf_detected");
    let to = app.site.url(&format!("/redirect?to={private}"));
    let refused = app.create_refused(json!({ "url": to, "proxy": id })).await?;
    assert_eq!(refused.code, "ssrf_detected", "{refused:?}");
    assert!(server.targets().iter().all(|target| !target.starts_with("127.0.0.3")), "{:?}", server.targets());
    for url in ["http://127.0.0.3:3128", "socks5://10.0.0.1:1080", "https://localhost:443", "http://[::1]:3128"] {
        let body = json!({ "name": "Office", "url": url });
        let (status, refused) = call(&app, app.live(), Method::POST, "/proxies", Some(body)).await?;
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("ssrf_detected")), "{url}: {refused}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_names_a_proxy_of_its_own_team_and_environment() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let live = create_proxy(&app, "http://8.8.8.8:3128").await?;
    let body = json!({ "name": "Test", "url": "http://8.8.8.8:3128" });
    let (_, created) = call(&app, app.test(), Method::POST, "/proxies", Some(body)).await?;
    let test = created["id"].as_str().context("an id")?;
    let capture = async |proxy: Value, further: Value| {
        let mut body = json!({ "url": "https://example.com/", "proxy": proxy });
        body.as_object_mut().zip(further.as_object()).into_iter().for_each(|(body, further)| {
            body.extend(further.clone());
        });
        call(&app, app.test(), Method::POST, "/grabs", Some(body)).await
    };
    let (status, grab) = capture(json!(test), json!({ "max_age": 3600 })).await?;
    assert_eq!(status, 200, "{grab}");
    // It belongs to what the capture shows.
    let (_, same) = capture(json!(test), json!({ "max_age": 3600 })).await?;
    assert_eq!((&same["id"], &same["cached"]), (&grab["id"], &json!(true)), "{same}");
    let (_, direct) =
        call(&app, app.test(), Method::POST, "/grabs", Some(json!({ "url": "https://example.com/", "max_age": 3600 })))
            .await?;
    assert_ne!(direct["id"], grab["id"]);
    for other in [json!(live), json!(UNKNOWN), json!("office"), Value::Null] {
        let (status, refused) = capture(other.clone(), json!({})).await?;
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("bad_request")), "{other}: {refused}");
        let message = refused["error"]["message"].as_str().context("a message")?;
        assert!(message.starts_with("`proxy` must be "), "{message}");
    }
    let monitor = json!({ "capture": { "url": "https://example.com/", "proxy": UNKNOWN }, "every": "1h" });
    let (status, refused) = call(&app, app.test(), Method::POST, "/monitors", Some(monitor)).await?;
    assert_eq!(status, 400, "{refused}");
    let site = json!({ "url": "https://example.com/", "capture": { "proxy": live } });
    let (status, refused) = call(&app, app.test(), Method::POST, "/sites", Some(site)).await?;
    let message = refused["error"]["message"].as_str().context("a message")?;
    assert!(status == 400 && message.starts_with("`proxy` must be "), "{status} {message}");
    let path = format!("/proxies/{test}");
    assert_eq!(call(&app, app.live(), Method::GET, &path, None).await?.0, 404);
    assert_eq!(call(&app, app.test(), Method::DELETE, &path, None).await?.0, 204);
    let (status, refused) = capture(json!(test), json!({})).await?;
    assert_eq!(status, 400, "{refused}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn team_has_twenty_proxies_in_each_environment() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let create = async |key: &str| {
        let body = json!({ "name": "One", "url": "http://8.8.8.8:3128" });
        call(&app, key, Method::POST, "/proxies", Some(body)).await
    };
    for _ in 0..20 {
        assert_eq!(create(app.test()).await?.0, 201);
    }
    let (status, refused) = create(app.test()).await?;
    assert_eq!(status, 400, "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("at most 20")), "{refused}");
    assert_eq!(create(app.live()).await?.0, 201);
    let (_, listed) = call(&app, app.test(), Method::GET, "/proxies", None).await?;
    assert_eq!((listed["data"].as_array().map(Vec::len), &listed["has_more"]), (Some(20), &json!(false)));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_password_is_not_sent_to_another_server() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let login = json!({ "name": "One", "url": "http://8.8.8.8:3128", "username": "me", "password": "hidden" });
    let (_, created) = call(&app, app.test(), Method::POST, "/proxies", Some(login)).await?;
    let path = format!("/proxies/{}", created["id"].as_str().context("an id")?);
    let change = async |body: Value| call(&app, app.test(), Method::PATCH, &path, Some(body)).await;
    for url in ["http://8.8.4.4:3128", "http://8.8.8.8:3129", "socks5://8.8.8.8:3128"] {
        for more in [json!({}), json!({ "username": "you" }), json!({ "password": "other" })] {
            let mut body = more.clone();
            body["url"] = json!(url);
            let (status, refused) = change(body).await?;
            let message = refused["error"]["message"].as_str().context("a message")?;
            assert!(status == 400 && message.contains("not sent to another server"), "{url} {more}: {refused}");
        }
    }
    assert_eq!(change(json!({ "url": "http://8.8.8.8:3128" })).await?.0, 200, "it is the current one");
    let (status, moved) = change(json!({ "url": "http://8.8.4.4:3128", "username": "me", "password": "new" })).await?;
    assert_eq!((status, &moved["has_login"]), (200, &json!(true)));
    let (status, moved) = change(json!({ "url": "http://8.8.8.8:3128", "username": "" })).await?;
    assert_eq!((status, &moved["has_login"]), (200, &json!(false)));
    assert_eq!(change(json!({ "url": "http://8.8.4.4:3128" })).await?.0, 200);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_can_turn_proxies_off() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let body = json!({ "name": "Test", "url": "http://8.8.8.8:3128" });
    let (_, created) = call(&app, app.test(), Method::POST, "/proxies", Some(body.clone())).await?;
    let path = format!("/proxies/{}", created["id"].as_str().context("an id")?);
    let app = app.restart_with(&[("proxies.enabled", "false")]).await?;
    let capture = json!({ "url": "https://example.com/", "proxy": created["id"] });
    for (method, path, body) in [
        (Method::GET, "/proxies", None),
        (Method::POST, "/proxies", Some(body)),
        (Method::GET, &*path, None),
        (Method::PATCH, &*path, Some(json!({ "name": "Other" }))),
        (Method::DELETE, &*path, None),
        (Method::POST, "/grabs", Some(capture)),
    ] {
        let (status, refused) = call(&app, app.test(), method.clone(), path, body).await?;
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("bad_request")), "{method} {path}: {refused}");
        let message = refused["error"]["message"].as_str().context("a message")?;
        assert!(message.contains("has turned proxies off"), "{message}");
    }
    let app = app.restart_with(&[("proxies.enabled", "true")]).await?;
    assert_eq!(call(&app, app.test(), Method::GET, &path, None).await?.0, 200, "it was kept");
    app.finish().await
}
