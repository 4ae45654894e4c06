//! Clients that mean ill, on both listeners: each gets what it deserves, in bounded memory, while a client that means
//! well and comes from another address goes on as if nothing happened.

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
use grabd_tests::harness::Harness;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Where the attacks come from.
const ATTACKER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
/// How long an awaited event may take. It only bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);

async fn connect(to: SocketAddr) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(ATTACKER, 0))?;
    Ok(timeout(PATIENCE, socket.connect(to)).await??)
}

/// Everything the other side says until it closes. A reset is an end like any other.
async fn until_closed(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut said = Vec::new();
    match timeout(PATIENCE, stream.read_to_end(&mut said)).await.context("the connection stays open")? {
        Ok(_) => Ok(said),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(said),
        Err(error) => Err(error.into()),
    }
}

/// What is said to these bytes before the connection is closed.
async fn exchange(to: SocketAddr, sent: &[u8]) -> Result<String> {
    let mut stream = connect(to).await?;
    // Who refuses early may close before everything is sent.
    let _ = stream.write_all(sent).await;
    Ok(String::from_utf8_lossy(&until_closed(&mut stream).await?).into_owned())
}

/// The status and the JSON of the last answer in a text.
fn answer(text: &str) -> Result<(u16, Value)> {
    let text = &text[text.rfind("HTTP/1.").with_context(|| format!("no answer in {text:?}"))?..];
    let status = text.split(' ').nth(1).context("a status")?.parse()?;
    let body = text.split_once("\r\n\r\n").context("a body")?.1;
    Ok((status, serde_json::from_str(body).unwrap_or_default()))
}

/// Resident memory of this process, in which service and attacker are both.
fn resident_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Carries an attack out while a good client reads and creates. Memory, the attacker's own included, may grow by
/// `grow_mib` at most, looked at during the attack and afterwards.
async fn attack<T>(harness: &Harness, name: &str, grow_mib: u64, attack: impl Future<Output = Result<T>>) -> Result<T> {
    good_client(harness).await?;
    let before = resident_kib()?;
    let (mut peak, mut rounds) = (before, 0);
    let mut attack = std::pin::pin!(attack);
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut attack => break outcome.with_context(|| name.to_owned())?,
            good = good_client(harness) => good.with_context(|| format!("a good client during {name}"))?,
        }
        rounds += 1;
        peak = peak.max(resident_kib()?);
    };
    good_client(harness).await.with_context(|| format!("a good client after {name}"))?;
    let after = resident_kib()?;
    peak = peak.max(after);
    println!("{name}: {before} KiB before, {peak} peak, {after} after; {rounds} rounds of a good client");
    ensure!(peak - before <= grow_mib * 1024, "{name}: memory went from {before} to {peak} KiB");
    Ok(outcome)
}

/// One read and one create, each with its right answer.
async fn good_client(harness: &Harness) -> Result<()> {
    let (status, usage) = timeout(PATIENCE, harness.get("/usage", harness.test())).await??;
    ensure!(status == 200 && usage["environment"] == "test", "{status} {usage}");
    let body = json!({ "url": "https://example.com/", "width": 320, "height": 240 });
    let create = harness.client.post(format!("{}/grabs", harness.base())).bearer_auth(harness.test()).json(&body);
    let response = timeout(PATIENCE, create.send()).await??;
    let status = response.status();
    let grab: Value = response.json().await?;
    ensure!(status == 200 && grab["status"] == "done", "{status} {grab}");
    Ok(())
}
