//! HTTP CONNECT (RFC 9110 section 9.3.6), with Basic authentication.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use grabd_domain::proxies::{ProxyLogin, ProxyProblem};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum size of the answer's header section.
const HEAD_BYTES: usize = 8 << 10;

const VERSION: &[u8] = b"HTTP/1.";

/// Asks for a connection to `target`. From then on, the stream is that connection.
pub(super) async fn connect<S>(
    stream: &mut S,
    target: SocketAddr,
    login: Option<&ProxyLogin>,
) -> Result<(), ProxyProblem>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    stream.write_all(request(target, login).as_bytes()).await.map_err(|_| ProxyProblem::Broken)?;
    stream.flush().await.map_err(|_| ProxyProblem::Broken)?;
    match status(&read_head(stream).await?) {
        Some(200..=299) => Ok(()),
        Some(401 | 407) => Err(ProxyProblem::Login),
        Some(502..=504) => Err(ProxyProblem::SiteUnreached),
        // The usual answers of web servers that are not proxies.
        Some(400 | 405 | 501) | None => Err(ProxyProblem::NotAProxy),
        Some(_) => Err(ProxyProblem::Refused),
    }
}

fn request(target: SocketAddr, login: Option<&ProxyLogin>) -> String {
    let authorization = match login {
        Some(ProxyLogin { username, password }) => {
            format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(format!("{username}:{password}")))
        }
        None => String::new(),
    };
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n")
}

/// Reads the header section and nothing behind it, which belongs to the target.
async fn read_head<S: AsyncRead + Unpin + Send>(stream: &mut S) -> Result<Vec<u8>, ProxyProblem> {
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        head.push(stream.read_u8().await.map_err(|_| ProxyProblem::Broken)?);
        let begins = head.iter().zip(VERSION).all(|(byte, expected)| byte == expected);
        if !begins || head.len() > HEAD_BYTES {
            return Err(ProxyProblem::NotAProxy);
        }
    }
    Ok(head)
}

/// The status of a header section. `None` if it has none.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let word = line.split(|byte| *byte == b' ').nth(1)?;
    let word = std::str::from_utf8(word).ok()?.trim_end();
    (word.len() == 3).then(|| word.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answered(answer: &[u8]) -> Result<(), ProxyProblem> {
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 16);
        theirs.write_all(answer).await.unwrap();
        theirs.shutdown().await.unwrap();
        connect(&mut ours, "192.0.2.1:443".parse().unwrap(), None).await
    }

    #[tokio::test]
    async fn status_of_the_answer_decides() {
        use ProxyProblem::{Broken, Login, NotAProxy, Refused, SiteUnreached};
        for (answer, result) in [
            ("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n", Ok(())),
            ("HTTP/1.0 200\n\n", Ok(())),
            ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", Err(Login)),
            ("HTTP/1.1 403 Forbidden\r\n\r\nno", Err(Refused)),
            ("HTTP/1.1 503 Service Unavailable\r\n\r\n", Err(SiteUnreached)),
            ("HTTP/1.1 405 Not Allowed\r\n\r\n", Err(NotAProxy)),
            ("HTTP/1.1 2000 x\r\n\r\n", Err(NotAProxy)),
            ("SSH-2.0-OpenSSH_9.9\r\n", Err(NotAProxy)),
            ("\u{15}\u{3}", Err(NotAProxy)),
            ("HTTP/1.1 200 Connection", Err(Broken)),
            ("", Err(Broken)),
        ] {
            assert_eq!(answered(answer.as_bytes()).await, result, "{answer:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(HEAD_BYTES));
        assert_eq!(answered(endless.as_bytes()).await, Err(NotAProxy));
    }

    #[tokio::test]
    async fn bytes_behind_the_answer_belong_to_the_target() {
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 16);
        theirs.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").await.unwrap();
        theirs.shutdown().await.unwrap();
        connect(&mut ours, "192.0.2.1:443".parse().unwrap(), None).await.unwrap();
        let mut rest = String::new();
        ours.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "hello");
    }

    #[test]
    fn request_has_the_address_and_the_login() {
        let login = ProxyLogin { username: "me".into(), password: "secret".into() };
        assert_eq!(
            request("[2001:db8::1]:443".parse().unwrap(), Some(&login)),
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
        );
    }
}
