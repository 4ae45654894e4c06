//! A small web server on a loopback address of its own, and the pages on it.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A server that counts what it is asked for.
#[derive(Clone)]
pub(crate) struct Site {
    address: SocketAddr,
    pages: Arc<HashMap<String, Reply>>,
    hits: Arc<Mutex<HashMap<String, usize>>>,
    arrived: Arc<Notify>,
}

/// What a path is answered with.
#[derive(Clone)]
pub(crate) enum Reply {
    /// An answer, after a while.
    Answer { after: Duration, head: String, body: Vec<u8> },
    /// The connection is closed.
    Close,
    /// Nothing, for ever.
    Silence,
}

/// An HTML page.
pub(crate) fn html(body: impl Into<String>) -> Reply {
    answer("200 OK", "Content-Type: text/html; charset=utf-8", body.into())
}

/// Any answer: status line's end, header lines, body.
pub(crate) fn answer(status: &str, headers: &str, body: impl Into<Vec<u8>>) -> Reply {
    let headers = if headers.is_empty() { String::new() } else { format!("{headers}\r\n") };
    Reply::Answer { after: Duration::ZERO, head: format!("HTTP/1.1 {status}\r\n{headers}"), body: body.into() }
}

/// A picture of one colour.
pub(crate) fn svg(colour: &str) -> Reply {
    let body = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100"><rect width="100" height="100" fill="{colour}"/></svg>"#
    );
    answer("200 OK", "Content-Type: image/svg+xml", body)
}

impl Reply {
    /// The same answer, later.
    pub(crate) fn after(self, delay_ms: u64) -> Self {
        match self {
            Self::Answer { head, body, .. } => Self::Answer { after: Duration::from_millis(delay_ms), head, body },
            Self::Close | Self::Silence => self,
        }
    }
}

impl Site {
    /// Serves `pages` on `127.0.0.{last}`; `{site}` in texts becomes its own origin. `/to?<address>` redirects there.
    pub(crate) async fn start(last: u8, pages: impl IntoIterator<Item = (&'static str, Reply)>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), 0)).await.unwrap();
        let site = Self {
            address: listener.local_addr().unwrap(),
            pages: Arc::new(pages.into_iter().map(|(path, reply)| (path.to_owned(), reply)).collect()),
            hits: Arc::default(),
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

    /// The address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How often a path was asked for.
    pub(crate) fn hits(&self, path: &str) -> usize {
        self.hits.lock().unwrap().get(path).copied().unwrap_or_default()
    }

    /// Requests in all.
    pub(crate) fn all_hits(&self) -> usize {
        self.hits.lock().unwrap().values().sum()
    }

    /// Waits until a path was asked for.
    pub(crate) async fn asked_for(&self, path: &str) {
        let wait = async {
            loop {
                let arrived = self.arrived.notified();
                if self.hits(path) > 0 {
                    return;
                }
                arrived.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("nobody asked");
    }

    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut buffer = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                    break end + 4;
                }
                // A hello of TLS is hung up on.
                if stream.read_buf(&mut buffer).await.ok()? == 0 || buffer[0] == 0x16 {
                    return None;
                }
            };
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            buffer.drain(..end);
            let target = head.split(' ').nth(1)?.to_owned();
            let (path, query) = target.split_once('?').unwrap_or((&target, ""));
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
                Reply::Answer { after, head, body } => {
                    // To be slow is what such a page is for. It ends with the test's runtime.
                    tokio::time::sleep(after).await;
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
