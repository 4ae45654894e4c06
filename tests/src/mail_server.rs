//! An SMTP server that accepts emails in plain text, after STARTTLS or over TLS, sends scripted replies, and records
//! what it received.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::tls_front::create_certificate;

/// The longest wait for an email, on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(40);
/// The maximum line length.
const LINE_BYTES: usize = 64 << 10;

/// How connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Plain text.
    None,
    /// Plain text until STARTTLS. Other commands are refused before it.
    StartTls,
    /// TLS from the first byte.
    Tls,
}

/// An email that was received, whether or not it was then refused.
#[derive(Clone, Debug)]
pub struct ReceivedEmail {
    /// The argument of EHLO.
    pub hello: String,
    /// Whether the connection was encrypted.
    pub in_tls: bool,
    /// The argument of AUTH.
    pub auth: Option<String>,
    /// `MAIL FROM` and `RCPT TO`.
    pub envelope: (String, String),
    /// Header and body, with dot-stuffing removed.
    pub data: String,
}

/// A running server. It stops when dropped.
pub struct MailServer {
    address: SocketAddr,
    certificate: String,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

struct Shared {
    tls_mode: TlsMode,
    tls: TlsAcceptor,
    state: Mutex<Inbox>,
    arrived: Notify,
}

#[derive(Default)]
struct Inbox {
    replies: VecDeque<&'static str>,
    emails: Vec<ReceivedEmail>,
}

impl MailServer {
    /// Listens on a free loopback port.
    pub async fn start(tls_mode: TlsMode) -> anyhow::Result<Self> {
        let (certificate, tls) = create_certificate()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { tls_mode, tls, state: Mutex::default(), arrived: Notify::new() });
        let task = TaskTracker::new().spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, certificate, shared, _task: AbortOnDropHandle::new(task) })
    }

    /// The URL for the `mail.smtp_url` setting. `user` precedes the host: `user:password@` or nothing.
    pub fn url(&self, user: &str) -> String {
        let address = self.address;
        match self.shared.tls_mode {
            TlsMode::None => format!("smtp://{user}{address}"),
            TlsMode::StartTls => format!("smtp://{user}{address}?tls=required"),
            TlsMode::Tls => format!("smtps://{user}{address}"),
        }
    }

    /// The CA certificate as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Replies to the next emails with these lines, and to all later ones with 250.
    pub fn reply_with(&self, lines: &[&'static str]) {
        self.shared.lock().replies = lines.iter().copied().collect();
    }

    /// All received emails, including refused ones.
    pub fn emails(&self) -> Vec<ReceivedEmail> {
        self.shared.lock().emails.clone()
    }

    /// Waits for the email with this index, from 0.
    pub async fn wait_for(&self, number: usize) -> anyhow::Result<ReceivedEmail> {
        let wait = async {
            loop {
                let arrived = self.shared.arrived.notified();
                if let Some(email) = self.emails().get(number).cloned() {
                    return email;
                }
                arrived.await;
            }
        };
        timeout(WAIT_LIMIT, wait).await.with_context(|| format!("no email {number} within {WAIT_LIMIT:?}"))
    }
}

impl ReceivedEmail {
    /// A header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        let head = self.data.split("\r\n\r\n").next()?;
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The decoded body.
    pub fn text(&self) -> String {
        let body = self.data.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        match self.header("Content-Transfer-Encoding") {
            Some("quoted-printable") => decode_quoted_printable(body),
            _ => body.to_owned(),
        }
    }

    /// The link that is on a line of its own.
    pub fn link(&self) -> anyhow::Result<String> {
        let text = self.text();
        let link = text.lines().find(|line| line.starts_with("http")).map(|line| line.trim().to_owned());
        link.with_context(|| format!("no link in {text}"))
    }
}

/// Decodes quoted-printable (RFC 2045 section 6.7).
fn decode_quoted_printable(body: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = body.replace("=\r\n", "").into_bytes().into_iter();
    while let Some(byte) = rest.next() {
        let digits: Vec<u8> = if byte == b'=' { rest.by_ref().take(2).collect() } else { Vec::new() };
        let digits = std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(digits.unwrap_or(byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // Connections end with the listener.
    let connections = TaskTracker::new();
    let mut open = Vec::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        let connection = connections.spawn(async move {
            // Some tests close the connection early.
            drop(timeout(WAIT_LIMIT, handle_connection(stream, &shared)).await);
        });
        open.push(AbortOnDropHandle::new(connection));
    }
}

async fn handle_connection(stream: TcpStream, shared: &Shared) -> anyhow::Result<()> {
    match shared.tls_mode {
        TlsMode::None => SmtpSession::new(stream, shared, false).run(true).await.map(drop),
        TlsMode::Tls => SmtpSession::new(shared.tls.accept(stream).await?, shared, true).run(true).await.map(drop),
        TlsMode::StartTls => {
            let plain = SmtpSession::new(stream, shared, false).run(true).await?;
            let Some(stream) = plain else { return Ok(()) };
            SmtpSession::new(shared.tls.accept(stream).await?, shared, true).run(false).await.map(drop)
        }
    }
}

struct SmtpSession<'a, S> {
    stream: BufStream<S>,
    shared: &'a Shared,
    in_tls: bool,
    hello: String,
    auth: Option<String>,
    from: String,
    to: String,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> SmtpSession<'a, S> {
    fn new(stream: S, shared: &'a Shared, in_tls: bool) -> Self {
        let (hello, from, to) = (String::new(), String::new(), String::new());
        Self { stream: BufStream::new(stream), shared, in_tls, hello, auth: None, from, to }
    }

    /// Handles commands until QUIT or STARTTLS. Returns the stream for STARTTLS.
    async fn run(mut self, greeting: bool) -> anyhow::Result<Option<S>> {
        if greeting {
            self.send("220 mail.example.com ESMTP").await?;
        }
        let wants_tls = self.shared.tls_mode == TlsMode::StartTls && !self.in_tls;
        loop {
            let line = self.read_line().await?;
            let upper = line.to_ascii_uppercase();
            let rest = |prefix: &str| line.get(prefix.len()..).unwrap_or_default().trim().to_owned();
            if upper.starts_with("EHLO ") {
                self.hello = rest("EHLO ");
                self.send("250-mail.example.com").await?;
                self.send(if wants_tls { "250 STARTTLS" } else { "250 AUTH PLAIN LOGIN" }).await?;
            } else if upper == "STARTTLS" && wants_tls {
                self.send("220 go ahead").await?;
                return Ok(Some(self.stream.into_inner()));
            } else if upper == "QUIT" {
                self.send("221 bye").await?;
                return Ok(None);
            } else if wants_tls {
                self.send("530 STARTTLS first").await?;
            } else if upper.starts_with("AUTH ") {
                self.auth = Some(rest("AUTH "));
                self.send("235 you are").await?;
            } else if upper.starts_with("MAIL FROM:") {
                self.from = rest("MAIL FROM:");
                self.send("250 ok").await?;
            } else if upper.starts_with("RCPT TO:") {
                self.to = rest("RCPT TO:");
                self.send("250 ok").await?;
            } else if upper == "DATA" {
                self.send("354 go on").await?;
                let answer = self.receive_data().await?;
                self.send(answer).await?;
            } else {
                self.send("250 ok").await?;
            }
        }
    }

    async fn receive_data(&mut self) -> anyhow::Result<&'static str> {
        let mut data = String::new();
        loop {
            let line = self.read_line().await?;
            if line == "." {
                break;
            }
            data.push_str(line.strip_prefix('.').unwrap_or(&line));
            data.push_str("\r\n");
        }
        let answer = {
            let mut inbox = self.shared.lock();
            inbox.emails.push(ReceivedEmail {
                hello: self.hello.clone(),
                in_tls: self.in_tls,
                auth: self.auth.clone(),
                envelope: (self.from.clone(), self.to.clone()),
                data,
            });
            inbox.replies.pop_front().unwrap_or("250 taken")
        };
        self.shared.arrived.notify_waiters();
        Ok(answer)
    }

    async fn read_line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 || line.len() > LINE_BYTES {
            bail!("the client closed the connection");
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    async fn send(&mut self, line: &str) -> anyhow::Result<()> {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await?;
        Ok(self.stream.flush().await?)
    }
}
