//! The SMTP transport to the operator's mail server.

use std::fmt;
use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use url::{Host, Url};

use super::queue::MailMessage;
use crate::random;

/// Time limit of one SMTP command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(15);

/// Configuration of the mail server.
#[derive(Clone, Copy)]
pub struct Server<'a> {
    /// `smtps://user:password@host`, `smtp://host?tls=required` for STARTTLS, or `smtp://host` without TLS.
    pub url: &'a str,
    /// The sender: `grabd <grabd@example.com>`.
    pub from: &'a str,
    /// Additional certificate authorities as PEM; may be empty.
    pub extra_roots: &'a [u8],
    /// Host name for EHLO.
    pub own_host: &'a str,
}

/// An invalid configuration. The texts complete "must be ...".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is not a supported SMTP URL.
    #[error("smtps://user:password@host, smtp://user:password@host?tls=required for STARTTLS, or smtp://host")]
    Url,
    /// The password would be sent without TLS to another machine.
    #[error("smtps:// or followed by ?tls=required, since it has a password")]
    PlaintextPassword,
    /// The sender is malformed.
    #[error("an address such as grabd <grabd@example.com>")]
    From,
    /// The additional certificates cannot be read.
    #[error("certificates that cannot be read")]
    Roots,
    /// TLS could not be initialised.
    #[error("TLS cannot be set up")]
    Tls(#[source] lettre::transport::smtp::Error),
}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The message cannot be built, for example for an unusable address. A retry would fail as well.
    #[error("the message cannot be built: {0}")]
    InvalidMessage(String),
    /// The server refused the message or cannot be reached.
    #[error("{}", with_causes(.0))]
    Server(#[source] lettre::transport::smtp::Error),
}

impl SendError {
    /// Whether a retry would fail as well.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::InvalidMessage(_) => true,
            Self::Server(error) => error.is_permanent(),
        }
    }
}

/// Sends messages, each on its own connection: they are rare.
#[derive(Clone)]
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Smtp {
    /// Creates the transport without connecting.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn new(server: Server<'_>) -> Result<Self, Error> {
        let Server { url: text, from, extra_roots, own_host } = server;
        let url = Url::parse(text).map_err(|_| Error::Url)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(Error::Url)?;
        let tls = tls(&url, host, extra_roots)?;
        if url.password().is_some() && matches!(tls, Tls::None) && !is_local(&url) {
            return Err(Error::PlaintextPassword);
        }
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(text).map_err(|_| Error::Url)?;
        let transport =
            builder.tls(tls).hello_name(ClientId::Domain(own_host.to_owned())).timeout(Some(COMMAND_TIMEOUT)).build();
        Ok(Self { transport, from: from.parse().map_err(|_| Error::From)? })
    }

    /// Sends a message.
    pub(super) async fn send(&self, message: &MailMessage) -> Result<(), SendError> {
        let to: Address =
            message.to.as_str().parse().map_err(|_| SendError::InvalidMessage("invalid address".to_owned()))?;
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(message.subject.clone())
            // Of the sender's domain, as spam filters expect: the name of this machine may be anything.
            .message_id(Some(format!("<{:032x}@{}>", random::random(), self.from.email.domain())))
            // Suppresses automatic replies such as out-of-office notices.
            .header(AutoSubmitted)
            .header(ContentType::TEXT_PLAIN)
            .body(message.text.clone())
            .map_err(|error| SendError::InvalidMessage(error.to_string()))?;
        self.transport.send(message).await.map(drop).map_err(SendError::Server)
    }
}

impl fmt::Debug for Smtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Smtp")
    }
}

/// The `Auto-Submitted` header of RFC 3834.
#[derive(Clone)]
struct AutoSubmitted;

impl lettre::message::header::Header for AutoSubmitted {
    fn name() -> lettre::message::header::HeaderName {
        lettre::message::header::HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> lettre::message::header::HeaderValue {
        lettre::message::header::HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Reads the TLS mode. Opportunistic TLS is not offered, since an attacker can strip it.
fn tls(url: &Url, host: &str, extra_roots: &[u8]) -> Result<Tls, Error> {
    let pairs: Vec<_> = url.query_pairs().collect();
    let required = match pairs.as_slice() {
        [] => false,
        [(name, value)] if name == "tls" && value == "required" => true,
        _ => return Err(Error::Url),
    };
    match (url.scheme(), required) {
        ("smtp", false) => Ok(Tls::None),
        ("smtp", true) => Ok(Tls::Required(parameters(host, extra_roots)?)),
        ("smtps", _) => Ok(Tls::Wrapper(parameters(host, extra_roots)?)),
        _ => Err(Error::Url),
    }
}

fn parameters(host: &str, extra_roots: &[u8]) -> Result<TlsParameters, Error> {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let mut builder = TlsParameters::builder(host);
    if !extra_roots.is_empty() {
        // lettre accepts PEM text without certificates.
        if CertificateDer::pem_slice_iter(extra_roots).next().is_none() {
            return Err(Error::Roots);
        }
        builder = builder.add_root_certificate(Certificate::from_pem(extra_roots).map_err(|_| Error::Roots)?);
    }
    builder.build_rustls().map_err(Error::Tls)
}

/// Whether the server is on this machine. `smtp` is not a special scheme of the URL standard, so IP addresses are
/// parsed as domains.
fn is_local(url: &Url) -> bool {
    let host = url.host().map(|host| match host {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    });
    host.is_some_and(|host| host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()))
}

fn with_causes(error: &lettre::transport::smtp::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(url: &str, from: &str) -> Result<Smtp, Error> {
        Smtp::new(Server { url, from, extra_roots: b"", own_host: "grabd.example" })
    }

    #[tokio::test]
    async fn server_urls_and_senders_are_validated() {
        for url in [
            "smtp://mail.example.com",
            "smtp://127.0.0.1:2525",
            "smtp://user:secret@127.0.0.1:2525",
            "smtp://user:secret@localhost",
            "smtp://user:secret@mail.example.com?tls=required",
            "smtps://user%40example.com:s%3Aecret@mail.example.com",
            "smtps://[2001:db8::1]:465",
        ] {
            assert!(new(url, "grabd <grabd@example.com>").is_ok(), "{url}");
        }
        for url in [
            "",
            "mail.example.com",
            "http://mail.example.com",
            "smtp://",
            "smtp://mail.example.com?tls=opportunistic",
            "smtp://mail.example.com?tls=required&tls=required",
            "smtp://mail.example.com?verify=no",
        ] {
            assert!(matches!(new(url, "a@b.example"), Err(Error::Url)), "{url}");
        }
        assert!(matches!(new("smtp://u:p@mail.example.com", "a@b.example"), Err(Error::PlaintextPassword)));
        for from in ["", "grabd", "a@b.example, c@d.example", "grabd <a@b.example>\r\nBcc: c@d.example"] {
            assert!(matches!(new("smtp://127.0.0.1", from), Err(Error::From)), "{from:?}");
        }
        let bad = Server { url: "smtps://a.example", from: "a@b.example", extra_roots: b"no pem", own_host: "x" };
        assert!(matches!(Smtp::new(bad), Err(Error::Roots)));
    }
}
