//! A small web server on its own loopback address.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A server that counts requests.
#[derive(Clone)]
pub(crate) struct Site {
    address: SocketAddr,
    pages: Arc<HashMap<String, Reply>>,
    hits: Arc<Mutex<HashMap<String, usize>>>,
    awaited: Arc<Mutex<HashMap<String, usize>>>,
    heads: Arc<Mutex<Vec<String>>>,
    arrived: Arc<Notify>,
}

/// The response for a path.
#[derive(Clone)]
pub(crate) enum Reply {
    /// A response, after a delay, and after a path has been requested this often.
    Answer { after: Duration, awaits: Option<(&'static str, usize)>, head: String, body: Vec<u8> },
    /// Closes the connection.
    Close,
    /// Never responds.
    Silence,
}

/// An HTML page.
pub(crate) fn html(body: impl Into<String>) -> Reply {
    answer("200 OK", "Content-Type: text/html; charset=utf-8", body.into())
}

/// A response with any status, header lines, and body.
pub(crate) fn answer(status: &str, headers: &str, body: impl Into<Vec<u8>>) -> Reply {
    let headers = if headers.is_empty() { String::new() } else { format!("{headers}\r\n") };
    let head = format!("HTTP/1.1 {status}\r\n{headers}");
    Reply::Answer { after: Duration::ZERO, awaits: None, head, body: body.into() }
}

/// An SVG image of one colour.
pub(crate) fn svg(colour: &str) -> Reply {
    let body = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100"><rect width="100" height="100" fill="{colour}"/></svg>"#
    );
    answer("200 OK", "Content-Type: image/svg+xml", body)
}

impl Reply {
    /// The same response after a delay.
    pub(crate) fn after(mut self, delay_ms: u64) -> Self {
        if let Self::Answer { after, .. } = &mut self {
            *after = Duration::from_millis(delay_ms);
        }
        self
    }

    /// The same response when `path` has been requested `count` times.
    pub(crate) fn once_requested(mut self, path: &'static str, count: usize) -> Self {
        if let Self::Answer { awaits, .. } = &mut self {
            *awaits = Some((path, count));
        }
        self
    }
}

impl Site {
    /// Serves `pages` on `127.0.0.{last}`. Texts may contain `{site}` for its origin. `/to?<url>` redirects to `<url>`.
    pub(crate) async fn start(last: u8, pages: impl IntoIterator<Item = (&'static str, Reply)>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), 0)).await.unwrap();
        let site = Self {
            address: listener.local_addr().unwrap(),
            pages: Arc::new(pages.into_iter().map(|(path, reply)| (path.to_owned(), reply)).collect()),
            hits: Arc::default(),
            awaited: Arc::default(),
            heads: Arc::default(),
            arrived: Arc::default(),
        };
        let server = site.clone();
        // Ends with the test's runtime.
        #[expect(clippy::disallowed_methods, reason = "a test's server lives as long as its runtime")]
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        site
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Number of requests for a path.
    pub(crate) fn hits(&self, path: &str) -> usize {
        self.hits.lock().unwrap().get(path).copied().unwrap_or_default()
    }

    /// Number of requests for all paths.
    pub(crate) fn all_hits(&self) -> usize {
        self.hits.lock().unwrap().values().sum()
    }

    /// Heads of the requests for a path, as they were sent.
    pub(crate) fn sent_heads(&self, path: &str) -> Vec<String> {
        let of_path =
            |head: &&String| head.split([' ', '?']).nth(1).is_some_and(|target| target.eq_ignore_ascii_case(path));
        self.heads.lock().unwrap().iter().filter(of_path).cloned().collect()
    }

    /// Heads of the requests for a path, in lower case.
    pub(crate) fn heads(&self, path: &str) -> Vec<String> {
        self.sent_heads(path).into_iter().map(|head| head.to_ascii_lowercase()).collect()
    }

    /// Heads of all requests, in lower case.
    pub(crate) fn all_heads(&self) -> String {
        self.heads.lock().unwrap().concat().to_ascii_lowercase()
    }

    /// Waits for a request for a path, other than those that earlier calls waited for.
    pub(crate) async fn wait_for_request(&self, path: &str) {
        let expected = {
            let mut awaited = self.awaited.lock().unwrap();
            let expected = awaited.entry(path.to_owned()).or_default();
            *expected += 1;
            *expected
        };
        self.wait_for_hits(path, expected).await;
    }

    /// Waits until a path has been requested this often.
    async fn wait_for_hits(&self, path: &str, expected: usize) {
        let wait = async {
            loop {
                let arrived = self.arrived.notified();
                if self.hits(path) >= expected {
                    return;
                }
                arrived.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("no request arrived");
    }

    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut buffer = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                    break end + 4;
                }
                // A TLS client hello closes the connection.
                if stream.read_buf(&mut buffer).await.ok()? == 0 || buffer[0] == 0x16 {
                    return None;
                }
            };
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            buffer.drain(..end);
            let target = head.split(' ').nth(1)?.to_owned();
            let (path, query) = target.split_once('?').unwrap_or((&target, ""));
            self.heads.lock().unwrap().push(head);
            *self.hits.lock().unwrap().entry(path.to_owned()).or_default() += 1;
            self.arrived.notify_waiters();
            let found = match path {
                "/to" => answer("302 Found", &format!("Location: {query}"), ""),
                _ => self
                    .pages
                    .get(path)
                    .cloned()
                    .unwrap_or_else(|| answer("404 Not Found", "Content-Type: text/html", "none")),
            };
            match found {
                Reply::Answer { after, awaits, head, body } => {
                    // The delay is the purpose of such a page. It ends with the test's runtime.
                    tokio::time::sleep(after).await;
                    if let Some((path, count)) = awaits {
                        self.wait_for_hits(path, count).await;
                    }
                    let origin = self.url("");
                    let body = match String::from_utf8(body) {
                        Ok(text) => text.replace("{site}", &origin).replace("{query}", query).into_bytes(),
                        Err(binary) => binary.into_bytes(),
                    };
                    let head = format!("{head}Content-Length: {}\r\n\r\n", body.len()).replace("{site}", &origin);
                    stream.write_all(head.as_bytes()).await.ok()?;
                    stream.write_all(&body).await.ok()?;
                }
                Reply::Close => return None,
                Reply::Silence => std::future::pending().await,
            }
        }
    }
}
