//! SOCKS 5 (RFC 1928), with user name and password (RFC 1929).

use std::net::{IpAddr, SocketAddr};

use grabd_domain::proxies::{ProxyLogin, ProxyProblem};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const LOGIN: u8 = 2;
const LOGIN_VERSION: u8 = 1;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Asks for a connection to `target`. From then on, the stream is that connection.
pub(super) async fn connect<S>(
    stream: &mut S,
    target: SocketAddr,
    login: Option<&ProxyLogin>,
) -> Result<(), ProxyProblem>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let methods: &[u8] = if login.is_some() { &[VERSION, 2, NO_LOGIN, LOGIN] } else { &[VERSION, 1, NO_LOGIN] };
    send(stream, methods).await?;
    let [version, method] = receive(stream).await?;
    match (version, method, login) {
        (VERSION, NO_LOGIN, _) => {}
        (VERSION, LOGIN, Some(login)) => authenticate(stream, login).await?,
        (VERSION, _, _) => return Err(ProxyProblem::Login),
        (_, _, _) => return Err(ProxyProblem::NotAProxy),
    }
    send(stream, &request(target)).await?;
    let [version, reply, _, kind] = receive(stream).await?;
    match (version, reply) {
        (VERSION, 0) => skip_address(stream, kind).await,
        // The network, the host or the port cannot be reached, or its time to live has expired.
        (VERSION, 3..=6) => Err(ProxyProblem::SiteUnreached),
        (VERSION, _) => Err(ProxyProblem::Refused),
        (_, _) => Err(ProxyProblem::NotAProxy),
    }
}

async fn authenticate<S>(stream: &mut S, login: &ProxyLogin) -> Result<(), ProxyProblem>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let ProxyLogin { username, password } = login;
    let mut message = vec![LOGIN_VERSION];
    for text in [username, password] {
        // Longer ones are refused when a proxy is created.
        message.push(u8::try_from(text.len()).map_err(|_| ProxyProblem::Login)?);
        message.extend(text.as_bytes());
    }
    send(stream, &message).await?;
    match receive(stream).await? {
        [_, 0] => Ok(()),
        [_, _] => Err(ProxyProblem::Login),
    }
}

fn request(target: SocketAddr) -> Vec<u8> {
    let mut message = vec![VERSION, CONNECT, 0];
    match target.ip() {
        IpAddr::V4(address) => {
            message.push(IPV4);
            message.extend(address.octets());
        }
        IpAddr::V6(address) => {
            message.push(IPV6);
            message.extend(address.octets());
        }
    }
    message.extend(target.port().to_be_bytes());
    message
}

/// Reads and ignores the address and the port that the proxy connects from.
async fn skip_address<S: AsyncRead + Unpin + Send>(stream: &mut S, kind: u8) -> Result<(), ProxyProblem> {
    let length = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => usize::from(stream.read_u8().await.map_err(|_| ProxyProblem::Broken)?),
        _ => return Err(ProxyProblem::NotAProxy),
    };
    let mut skipped = vec![0; length + 2];
    stream.read_exact(&mut skipped).await.map_err(|_| ProxyProblem::Broken)?;
    Ok(())
}

async fn send<S: AsyncWrite + Unpin + Send>(stream: &mut S, message: &[u8]) -> Result<(), ProxyProblem> {
    stream.write_all(message).await.map_err(|_| ProxyProblem::Broken)?;
    stream.flush().await.map_err(|_| ProxyProblem::Broken)
}

async fn receive<S: AsyncRead + Unpin + Send, const N: usize>(stream: &mut S) -> Result<[u8; N], ProxyProblem> {
    let mut message = [0; N];
    // The first byte shows whether it is a SOCKS proxy. Another server may send no second one.
    message[0] = stream.read_u8().await.map_err(|_| ProxyProblem::Broken)?;
    if message[0] != VERSION && message[0] != LOGIN_VERSION {
        return Err(ProxyProblem::NotAProxy);
    }
    stream.read_exact(&mut message[1..]).await.map_err(|_| ProxyProblem::Broken)?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of these answers, and what was sent.
    async fn answered(answers: &[u8], login: Option<&ProxyLogin>) -> (Result<(), ProxyProblem>, Vec<u8>) {
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 16);
        theirs.write_all(answers).await.unwrap();
        theirs.shutdown().await.unwrap();
        let result = connect(&mut ours, "192.0.2.1:443".parse().unwrap(), login).await;
        drop(ours);
        let mut sent = Vec::new();
        theirs.read_to_end(&mut sent).await.unwrap();
        (result, sent)
    }

    fn login() -> ProxyLogin {
        ProxyLogin { username: "me".into(), password: "secret".into() }
    }

    #[tokio::test]
    async fn connection_is_asked_for_by_address() {
        let (result, sent) = answered(&[5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0], None).await;
        assert_eq!(result, Ok(()));
        assert_eq!(sent, [5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 1, 187]);
        let named = [&[5, 0, 5, 0, 0, 3, 2][..], b"ab", &[0, 80]].concat();
        assert_eq!(answered(&named, None).await.0, Ok(()));
    }

    #[tokio::test]
    async fn login_is_sent_when_the_proxy_asks_for_it() {
        let (result, sent) = answered(&[5, 2, 1, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0], Some(&login())).await;
        assert_eq!(result, Ok(()));
        let expected = [&[5, 2, 0, 2, 1, 2][..], b"me", &[6], b"secret", &[5, 1, 0, 1, 192, 0, 2, 1, 1, 187]].concat();
        assert_eq!(sent, expected);
        let (_, sent) = answered(&[5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0], Some(&login())).await;
        assert!(!sent.windows(6).any(|window| window == b"secret"), "it is not sent unasked");
    }

    #[tokio::test]
    async fn each_failure_has_its_problem() {
        use ProxyProblem::{Broken, Login, NotAProxy, Refused, SiteUnreached};
        for (answers, problem) in [
            (&[5, 255][..], Login),
            (&[5, 2], Login),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", NotAProxy),
            (&[4, 0], NotAProxy),
            (&[], Broken),
            (&[5], Broken),
            (&[5, 0, 5, 0, 0, 1, 0], Broken),
            (&[5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0], Refused),
            (&[5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0], Refused),
            (&[5, 0, 5, 5, 0, 1, 0, 0, 0, 0, 0, 0], SiteUnreached),
            (&[5, 0, 5, 0, 0, 9, 0, 0, 0, 0, 0, 0], NotAProxy),
        ] {
            assert_eq!(answered(answers, None).await.0, Err(problem), "{answers:?}");
        }
        assert_eq!(answered(&[5, 2, 1, 1], Some(&login())).await.0, Err(Login));
    }
}
