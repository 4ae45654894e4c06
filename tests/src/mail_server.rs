//! An operator's mail server: takes letters over SMTP, in the clear, after STARTTLS or in TLS from the start, answers by
//! script, and keeps what it got.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// The longest a letter may keep its reader waiting, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(40);
/// The longest line that is read.
const LINE_BYTES: usize = 64 << 10;

/// How the conversation is kept from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// It is not.
    None,
    /// It begins in the clear, and nothing else is answered before STARTTLS.
    StartTls,
    /// It is in TLS from the first byte.
    Tls,
}

/// A letter that was taken, or refused after it had been read.
#[derive(Clone, Debug)]
pub struct Letter {
    /// What the client called itself.
    pub hello: String,
    /// Was it in TLS?
    pub in_tls: bool,
    /// What followed AUTH.
    pub auth: Option<String>,
    /// `MAIL FROM` and `RCPT TO`.
    pub envelope: (String, String),
    /// Header and body as they came, without the dots that SMTP puts before dots.
    pub data: String,
}

/// A running server; it ends when it is dropped.
pub struct MailServer {
    address: SocketAddr,
    certificate: String,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

struct Shared {
    secrecy: Secrecy,
    tls: TlsAcceptor,
    state: Mutex<Inbox>,
    arrived: Notify,
}

#[derive(Default)]
struct Inbox {
    answers: VecDeque<&'static str>,
    letters: Vec<Letter>,
}

impl MailServer {
    /// Listens on any port of the loopback.
    pub async fn start(secrecy: Secrecy) -> anyhow::Result<Self> {
        let (certificate, tls) = certify()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { secrecy, tls, state: Mutex::default(), arrived: Notify::new() });
        let task = TaskTracker::new().spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, certificate, shared, _task: AbortOnDropHandle::new(task) })
    }

    /// Its address as the setting has it, with this before the host: `user:password@` or nothing.
    pub fn url(&self, user: &str) -> String {
        let address = self.address;
        match self.shared.secrecy {
            Secrecy::None => format!("smtp://{user}{address}"),
            Secrecy::StartTls => format!("smtp://{user}{address}?tls=required"),
            Secrecy::Tls => format!("smtps://{user}{address}"),
        }
    }

    /// The authority that its certificate is signed by, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Answers the next letters with these lines, and all after them with 250.
    pub fn answers(&self, lines: &[&'static str]) {
        self.shared.lock().answers = lines.iter().copied().collect();
    }

    /// Every letter that has come in, refused ones too.
    pub fn letters(&self) -> Vec<Letter> {
        self.shared.lock().letters.clone()
    }

    /// The letter with this number, from 0, as soon as it is there.
    pub async fn wait_for(&self, number: usize) -> anyhow::Result<Letter> {
        let wait = async {
            loop {
                let arrived = self.shared.arrived.notified();
                if let Some(letter) = self.letters().get(number).cloned() {
                    return letter;
                }
                arrived.await;
            }
        };
        timeout(PATIENCE, wait).await.with_context(|| format!("no letter {number} within {PATIENCE:?}"))
    }
}

impl Letter {
    /// A line of the header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let head = self.data.split("\r\n\r\n").next()?;
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The body as its reader sees it.
    pub fn text(&self) -> String {
        let body = self.data.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        match self.header("Content-Transfer-Encoding") {
            Some("quoted-printable") => unquoted(body),
            _ => body.to_owned(),
        }
    }

    /// The link that stands on a line of its own.
    pub fn link(&self) -> anyhow::Result<String> {
        let text = self.text();
        let link = text.lines().find(|line| line.starts_with("http")).map(|line| line.trim().to_owned());
        link.with_context(|| format!("no link in {text}"))
    }
}

/// RFC 2045 section 6.7, as far as letters of ours need it.
fn unquoted(body: &str) -> String {
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

/// An authority as PEM, and a server for 127.0.0.1 that it vouches for.
fn certify() -> anyhow::Result<(String, TlsAcceptor)> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let pem = authority.self_signed(&key)?.pem();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &issuer)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))?;
    Ok((pem, TlsAcceptor::from(Arc::new(config))))
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // Conversations end with the listener.
    let conversations = TaskTracker::new();
    let mut open = Vec::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        let conversation = conversations.spawn(async move {
            // A client that hangs up in the middle is what some tests want.
            drop(timeout(PATIENCE, converse(stream, &shared)).await);
        });
        open.push(AbortOnDropHandle::new(conversation));
    }
}

async fn converse(stream: TcpStream, shared: &Shared) -> anyhow::Result<()> {
    match shared.secrecy {
        Secrecy::None => Conversation::new(stream, shared, false).run(true).await.map(drop),
        Secrecy::Tls => Conversation::new(shared.tls.accept(stream).await?, shared, true).run(true).await.map(drop),
        Secrecy::StartTls => {
            let plain = Conversation::new(stream, shared, false).run(true).await?;
            let Some(stream) = plain else { return Ok(()) };
            Conversation::new(shared.tls.accept(stream).await?, shared, true).run(false).await.map(drop)
        }
    }
}

struct Conversation<'a, S> {
    stream: BufStream<S>,
    shared: &'a Shared,
    in_tls: bool,
    hello: String,
    auth: Option<String>,
    from: String,
    to: String,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Conversation<'a, S> {
    fn new(stream: S, shared: &'a Shared, in_tls: bool) -> Self {
        let (hello, from, to) = (String::new(), String::new(), String::new());
        Self { stream: BufStream::new(stream), shared, in_tls, hello, auth: None, from, to }
    }

    /// Until the end, or until the client wants TLS: the stream then.
    async fn run(mut self, greets: bool) -> anyhow::Result<Option<S>> {
        if greets {
            self.say("220 mail.example.com ESMTP").await?;
        }
        let wants_tls = self.shared.secrecy == Secrecy::StartTls && !self.in_tls;
        loop {
            let line = self.line().await?;
            let upper = line.to_ascii_uppercase();
            let rest = |prefix: &str| line.get(prefix.len()..).unwrap_or_default().trim().to_owned();
            if upper.starts_with("EHLO ") {
                self.hello = rest("EHLO ");
                self.say("250-mail.example.com").await?;
                self.say(if wants_tls { "250 STARTTLS" } else { "250 AUTH PLAIN LOGIN" }).await?;
            } else if upper == "STARTTLS" && wants_tls {
                self.say("220 go ahead").await?;
                return Ok(Some(self.stream.into_inner()));
            } else if upper == "QUIT" {
                self.say("221 bye").await?;
                return Ok(None);
            } else if wants_tls {
                self.say("530 STARTTLS first").await?;
            } else if upper.starts_with("AUTH ") {
                self.auth = Some(rest("AUTH "));
                self.say("235 you are").await?;
            } else if upper.starts_with("MAIL FROM:") {
                self.from = rest("MAIL FROM:");
                self.say("250 ok").await?;
            } else if upper.starts_with("RCPT TO:") {
                self.to = rest("RCPT TO:");
                self.say("250 ok").await?;
            } else if upper == "DATA" {
                self.say("354 go on").await?;
                let answer = self.take().await?;
                self.say(answer).await?;
            } else {
                self.say("250 ok").await?;
            }
        }
    }

    async fn take(&mut self) -> anyhow::Result<&'static str> {
        let mut data = String::new();
        loop {
            let line = self.line().await?;
            if line == "." {
                break;
            }
            data.push_str(line.strip_prefix('.').unwrap_or(&line));
            data.push_str("\r\n");
        }
        let answer = {
            let mut inbox = self.shared.lock();
            inbox.letters.push(Letter {
                hello: self.hello.clone(),
                in_tls: self.in_tls,
                auth: self.auth.clone(),
                envelope: (self.from.clone(), self.to.clone()),
                data,
            });
            inbox.answers.pop_front().unwrap_or("250 taken")
        };
        self.shared.arrived.notify_waiters();
        Ok(answer)
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 || line.len() > LINE_BYTES {
            bail!("the client hung up");
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    async fn say(&mut self, line: &str) -> anyhow::Result<()> {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await?;
        Ok(self.stream.flush().await?)
    }
}
