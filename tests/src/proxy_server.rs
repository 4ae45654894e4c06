//! A proxy for tests: HTTP CONNECT and SOCKS 5, with a login, and a record of what it is asked for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// The user name and the password that the proxy accepts.
pub const LOGIN: (&str, &str) = ("me", "hidden-word");
/// What is in refusals of the proxy, and must not be shown to anybody.
pub const REPLY: &str = "reply-of-the-proxy";

/// What the proxy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// It connects to whatever it is asked for.
    Forward,
    /// It connects once, and listens no more.
    ForwardOnce,
    /// It answers with this text.
    Answer(&'static str),
}

/// A running proxy. It stops when dropped.
pub struct ProxyServer {
    address: SocketAddr,
    targets: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

impl ProxyServer {
    /// Starts on an address.
    ///
    /// # Errors
    /// If it cannot listen.
    pub async fn start(on: IpAddr, behaviour: Behaviour) -> Result<Self> {
        let listener = TcpListener::bind((on, 0)).await?;
        let address = listener.local_addr()?;
        let targets: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&targets);
        let task = TaskTracker::new().spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let log = Arc::clone(&log);
                connections.spawn(async move {
                    // Either side may close the connection at any time.
                    let _ = serve(client, behaviour, &log).await;
                });
                if behaviour == Behaviour::ForwardOnce {
                    break;
                }
            }
            drop(listener);
            while connections.join_next().await.is_some() {}
        });
        Ok(Self { address, targets, _task: AbortOnDropHandle::new(task) })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was asked to connect to with the right login, in order.
    pub fn targets(&self) -> Vec<String> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(mut client: TcpStream, behaviour: Behaviour, log: &Mutex<Vec<String>>) -> Result<()> {
    if let Behaviour::Answer(answer) = behaviour {
        let mut some = [0; 1024];
        if client.read(&mut some).await? == 0 {
            return Ok(());
        }
        client.write_all(answer.as_bytes()).await?;
        return Ok(());
    }
    let first = client.read_u8().await?;
    let target = if first == 5 { socks(&mut client).await? } else { http(first, &mut client).await? };
    log.lock().unwrap_or_else(PoisonError::into_inner).push(target.clone());
    let mut origin = TcpStream::connect(&target).await?;
    let answer: &[u8] = if first == 5 { &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0] } else { b"HTTP/1.1 200 OK\r\n\r\n" };
    client.write_all(answer).await?;
    copy_bidirectional(&mut client, &mut origin).await?;
    Ok(())
}

/// Reads a request of HTTP. Returns the target.
async fn http(first: u8, client: &mut TcpStream) -> Result<String> {
    let mut head = vec![first];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8(head)?;
    let login = STANDARD.encode(format!("{}:{}", LOGIN.0, LOGIN.1));
    if !head.contains(&format!("Proxy-Authorization: Basic {login}\r\n")) {
        let answer = format!("HTTP/1.1 407 {REPLY}\r\nProxy-Authenticate: Basic realm={REPLY}\r\n\r\n{REPLY}");
        client.write_all(answer.as_bytes()).await?;
        bail!("another login");
    }
    ensure!(head.starts_with("CONNECT "), "another method");
    Ok(head.split(' ').nth(1).unwrap_or_default().to_owned())
}

/// Reads a greeting, a login and a request of SOCKS 5. Returns the target.
async fn socks(client: &mut TcpStream) -> Result<String> {
    let mut methods = vec![0; usize::from(client.read_u8().await?)];
    client.read_exact(&mut methods).await?;
    if !methods.contains(&2) {
        client.write_all(&[5, 255]).await?;
        bail!("no login");
    }
    client.write_all(&[5, 2]).await?;
    ensure!(client.read_u8().await? == 1, "another version of the login");
    let mut words = Vec::new();
    for _ in 0..2 {
        let mut word = vec![0; usize::from(client.read_u8().await?)];
        client.read_exact(&mut word).await?;
        words.push(String::from_utf8(word)?);
    }
    let is_right = words == [LOGIN.0, LOGIN.1];
    client.write_all(&[1, u8::from(!is_right)]).await?;
    ensure!(is_right, "another login");
    let mut request = [0; 10];
    client.read_exact(&mut request).await?;
    ensure!(request[..4] == [5, 1, 0, 1], "no connection to an IPv4 address");
    let address = Ipv4Addr::new(request[4], request[5], request[6], request[7]);
    Ok(SocketAddr::from((address, u16::from_be_bytes([request[8], request[9]]))).to_string())
}
