//! Hostile clients on both listeners: each is refused with bounded memory, while a well-behaved client from another
//! address is served normally.

mod bodies;
mod floods;
mod frames;
mod grpc;
mod http1;
mod http2;
mod slow;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_tests::contract;
use grabd_tests::harness::TestApp;
use http::{HeaderMap, HeaderName, Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// The address of the attacker.
const ATTACKER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
/// Time limit for an event. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

async fn connect(to: SocketAddr) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(ATTACKER, 0))?;
    Ok(timeout(WAIT_LIMIT, socket.connect(to)).await??)
}

/// Reads until the connection is closed. A reset counts as a close.
async fn until_closed(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut received = Vec::new();
    match timeout(WAIT_LIMIT, stream.read_to_end(&mut received)).await.context("the connection was not closed")? {
        Ok(_) => Ok(received),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(received),
        Err(error) => Err(error.into()),
    }
}

/// Sends bytes and reads until the connection is closed.
async fn exchange(to: SocketAddr, sent: &[u8]) -> Result<String> {
    let mut stream = connect(to).await?;
    // The service may close the connection before everything is sent.
    let _ = stream.write_all(sent).await;
    Ok(String::from_utf8_lossy(&until_closed(&mut stream).await?).into_owned())
}

/// The status and the JSON of the last response in a text. Fails if it is an error that the contract does not allow.
fn answer(text: &str) -> Result<(u16, Value)> {
    let text = &text[text.rfind("HTTP/1.").with_context(|| format!("no response in {text:?}"))?..];
    let status: StatusCode = text.split(' ').nth(1).context("a status")?.parse()?;
    let (head, body) = text.split_once("\r\n\r\n").context("a body")?;
    if status.is_client_error() || status.is_server_error() {
        let mut headers = HeaderMap::new();
        for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
            headers.append(HeaderName::from_bytes(name.as_bytes())?, value.parse()?);
        }
        contract::check_response(&Method::GET, "/v1/", status, &headers, body.as_bytes())?;
    }
    Ok((status.as_u16(), serde_json::from_str(body).unwrap_or_default()))
}

/// Resident memory of this process, which contains both service and attacker.
fn resident_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Runs an attack while a well-behaved client reads and creates. Memory, including the attacker's, may grow by at most
/// `grow_mib` during and after the attack.
async fn attack<T>(app: &TestApp, name: &str, grow_mib: u64, attack: impl Future<Output = Result<T>>) -> Result<T> {
    check_good_client(app).await?;
    let before = resident_kib()?;
    let (mut peak, mut rounds) = (before, 0);
    let mut attack = std::pin::pin!(attack);
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut attack => break outcome.with_context(|| name.to_owned())?,
            good = check_good_client(app) => good.with_context(|| format!("a good client during {name}"))?,
        }
        rounds += 1;
        peak = peak.max(resident_kib()?);
    };
    check_good_client(app).await.with_context(|| format!("a good client after {name}"))?;
    let after = resident_kib()?;
    peak = peak.max(after);
    println!("{name}: {before} KiB before, {peak} peak, {after} after; {rounds} rounds of the good client");
    ensure!(peak - before <= grow_mib * 1024, "{name}: memory went from {before} to {peak} KiB");
    Ok(outcome)
}

/// One read and one create, which must succeed.
async fn check_good_client(app: &TestApp) -> Result<()> {
    let (status, usage) = timeout(WAIT_LIMIT, app.get("/usage", app.test())).await??;
    ensure!(status == 200 && usage["environment"] == "test", "{status} {usage}");
    let body = json!({ "url": "https://example.com/", "width": 320, "height": 240 });
    let create = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
    let response = timeout(WAIT_LIMIT, create.send()).await??;
    let status = response.status();
    let grab: Value = response.json().await?;
    ensure!(status == 200 && grab["status"] == "done", "{status} {grab}");
    Ok(())
}
