//! How letters are handed to the operator's mail server.

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

use super::Letter;

/// How long one step of the conversation may take.
const STEP: Duration = Duration::from_secs(15);

/// The operator's mail server, as they wrote it down.
#[derive(Clone, Copy)]
pub struct Server<'a> {
    /// `smtps://user:password@host`, `smtp://host?tls=required` for STARTTLS, or `smtp://host` without TLS.
    pub url: &'a str,
    /// Whom the letters are from: `grabd <grabd@example.com>`.
    pub from: &'a str,
    /// Certificate authorities, as PEM, beside the public ones; may be empty.
    pub extra_roots: &'a [u8],
    /// What we call ourselves in front of it: a host name.
    pub own_host: &'a str,
}

/// Why no letters can be sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none that we know how to use.
    #[error("smtps://user:password@host, smtp://user:password@host?tls=required for STARTTLS, or smtp://host")]
    Url,
    /// Everybody on the way could read the password.
    #[error("smtps:// or followed by ?tls=required, since it has a password")]
    InTheClear,
    /// The sender is none.
    #[error("an address such as grabd <grabd@example.com>")]
    From,
    /// The extra certificates are none.
    #[error("certificates that cannot be read")]
    Roots,
    /// This build of TLS cannot do what it must.
    #[error("TLS cannot be set up")]
    Tls(#[source] lettre::transport::smtp::Error),
}

/// Why a letter was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTaken {
    /// Nobody can be written to there, so there is nothing to try again.
    #[error("it cannot be written: {0}")]
    Unwritable(String),
    /// The server, or the way to it.
    #[error("{}", with_causes(.0))]
    Server(#[source] lettre::transport::smtp::Error),
}

impl NotTaken {
    /// Would another try end the same?
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Unwritable(_) => true,
            Self::Server(error) => error.is_permanent(),
        }
    }
}

/// Hands letters over, on a connection of its own for each: they are few.
#[derive(Clone)]
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Smtp {
    /// Letters for this server. It is not asked yet whether it is there.
    ///
    /// # Errors
    /// What is wrong with what was written down.
    pub fn new(server: Server<'_>) -> Result<Self, Error> {
        let Server { url: text, from, extra_roots, own_host } = server;
        let url = Url::parse(text).map_err(|_| Error::Url)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(Error::Url)?;
        let tls = tls(&url, host, extra_roots)?;
        if url.password().is_some() && matches!(tls, Tls::None) && !is_here(&url) {
            return Err(Error::InTheClear);
        }
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(text).map_err(|_| Error::Url)?;
        let transport = builder.tls(tls).hello_name(ClientId::Domain(own_host.to_owned())).timeout(Some(STEP)).build();
        Ok(Self { transport, from: from.parse().map_err(|_| Error::From)? })
    }

    /// Has the server take a letter.
    pub(super) async fn hand_over(&self, letter: &Letter) -> Result<(), NotTaken> {
        let to: Address = letter.to.as_str().parse().map_err(|_| NotTaken::Unwritable("no such address".to_owned()))?;
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(letter.subject.clone())
            .message_id(None)
            // Nobody is told that somebody is away by a letter that a program wrote.
            .header(AutoSubmitted)
            .header(ContentType::TEXT_PLAIN)
            .body(letter.text.clone())
            .map_err(|error| NotTaken::Unwritable(error.to_string()))?;
        self.transport.send(message).await.map(drop).map_err(NotTaken::Server)
    }
}

impl fmt::Debug for Smtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Smtp")
    }
}

/// The header of RFC 3834.
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

/// TLS that falls back to none is as good as none, so there is no such mode.
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
        // lettre passes over a text without any.
        if CertificateDer::pem_slice_iter(extra_roots).next().is_none() {
            return Err(Error::Roots);
        }
        builder = builder.add_root_certificate(Certificate::from_pem(extra_roots).map_err(|_| Error::Roots)?);
    }
    builder.build_rustls().map_err(Error::Tls)
}

/// Does the way to it stay on this machine? The scheme is none that the web knows, so addresses come as names.
fn is_here(url: &Url) -> bool {
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
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
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
    async fn servers_are_written_as_addresses() {
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
        assert!(matches!(new("smtp://u:p@mail.example.com", "a@b.example"), Err(Error::InTheClear)));
        for from in ["", "grabd", "a@b.example, c@d.example", "grabd <a@b.example>\r\nBcc: c@d.example"] {
            assert!(matches!(new("smtp://127.0.0.1", from), Err(Error::From)), "{from:?}");
        }
        let bad = Server { url: "smtps://a.example", from: "a@b.example", extra_roots: b"no pem", own_host: "x" };
        assert!(matches!(Smtp::new(bad), Err(Error::Roots)));
    }
}
