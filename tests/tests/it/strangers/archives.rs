//! One account cannot take the downloads of archives from others.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::ids::TeamId;
use grabd_tests::harness::TestApp;
use grabd_tests::visitor::{Visitor, start_app};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::pages::team::{capture, team_of};

const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// Captures placeholders, and returns the path of an archive of them, which is larger than what sockets buffer.
async fn archive(visitor: &mut Visitor<'_>, team: TeamId) -> Result<String> {
    let mut query = Vec::new();
    for number in 0..100 {
        let url = format!("https://example.com/{number}");
        let fields = [("url", &*url), ("environment", "test"), ("width", "1920"), ("full_page", "true")];
        let answer = capture(visitor, team, &fields).await?;
        let id = answer.location().rsplit('/').next().unwrap_or_default().to_owned();
        query.push(format!("grab={id}"));
    }
    Ok(format!("/teams/{team}/grabs/download?{}", query.join("&")))
}

/// Asks for a file without reading it beyond the first bytes, which are returned with the open connection.
async fn begin(app: &TestApp, session: &str, path: &str) -> Result<(TcpStream, String)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    let mut stream = socket.connect(app.service.http()).await?;
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: {}\r\ncookie: grabd_session={session}\r\n\r\n", app.service.http());
    stream.write_all(head.as_bytes()).await?;
    let mut status = [0; 12];
    timeout(WAIT_LIMIT, stream.read_exact(&mut status)).await.context("no response")??;
    Ok((stream, String::from_utf8_lossy(&status).into_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn account_makes_one_archive_at_a_time_and_keeps_nobody_else_from_it() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let (hers, adas) = (team_of(&app, "eve@example.com", 0).await?, team_of(&app, "ada@example.com", 0).await?);
    let (large, small) = (archive(&mut eve, hers).await?, archive(&mut ada, adas).await?);
    let mut open = Vec::new();
    let mut statuses = Vec::new();
    for _ in 0..8 {
        let (stream, status) = begin(&app, &eve.session()?, &large).await?;
        open.push(stream);
        statuses.push(status);
    }
    println!("{statuses:?}");
    let (_, status) = begin(&app, &ada.session()?, &small).await?;
    assert_eq!(status, "HTTP/1.1 200", "another account, beside {statuses:?}");
    assert_eq!(statuses.iter().filter(|status| *status == "HTTP/1.1 200").count(), 1, "{statuses:?}");
    ensure!(statuses[1..].iter().all(|status| status == "HTTP/1.1 429"), "{statuses:?}");
    drop(open);
    app.finish().await
}
