//! Every process of a cluster is stopped and started again, one after the other, while it captures pages.
//!
//! `GRABD_TEST_PREVIOUS` names the program of another version, whose processes are replaced by those of this one, as
//! `script/fleet-test --previous` does. Its schema may be older.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use grabd_domain::grabs::State;
use grabd_tests::harness::ALLOWED;
use grabd_tests::s3_server::S3Server;
use grabd_tests::site::Site;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::chaos::{CALLERS, CREDITS, Member, SMALL, Sequence, check_image, members};
use super::processes::TestCluster;

/// Attempts at a call: a client tries another edge if one stops.
const ATTEMPTS: usize = 4;

/// Creates grabs at one edge or the other, as a client that retries with the same idempotency key. Returns the number of
/// calls.
async fn call(
    cluster: &TestCluster,
    edges: &[String],
    url: &str,
    number: usize,
    over: &CancellationToken,
) -> Result<usize> {
    let mut calls = 0;
    while !over.is_cancelled() {
        let is_async = number.is_multiple_of(2);
        let mut failed = String::new();
        let mut is_answered = false;
        for attempt in 0..ATTEMPTS {
            let edge = &edges[(number + calls + attempt) % edges.len()];
            let request = cluster.client.post(format!("http://{edge}/v1/grabs?async={is_async}"));
            let request = request.header("idempotency-key", format!("{number}-{calls}"));
            let request = request.bearer_auth(cluster.team.live.expose()).json(&json!({ "url": url, "width": 320 }));
            match request.send().await {
                Ok(response) if response.status().is_success() => {
                    is_answered = true;
                    break;
                }
                Ok(response) => {
                    let status = response.status();
                    let body = response.text().await?;
                    ensure!(status == 503, "{status} {body}");
                    failed = body;
                }
                Err(error) => failed = error.to_string(),
            }
        }
        ensure!(is_answered, "no edge answers: {failed}");
        calls += 1;
        // Paced, since the captures are not the subject.
        sleep(Duration::from_millis(200)).await;
    }
    Ok(calls)
}

/// Stops each process in order, and starts it again.
async fn restart_each(cluster: &TestCluster, members: &mut [Member]) -> Result<()> {
    // As documented: renderers, then cores, then edges.
    for member in members.iter_mut().rev() {
        member.binary = None;
        member
            .process
            .take()
            .context("it runs")?
            .stop()
            .await
            .with_context(|| format!("the stop of {}", member.name))?;
        member.start(cluster).await?;
        member.process.as_ref().context("it runs")?.wait_until_ready(&cluster.client).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolling_restart_fails_no_call_and_renders_each_grab_once() -> Result<()> {
    let random = u64::from_le_bytes(grabd_engine::random::secret()[..8].try_into()?);
    let previous = std::env::var_os("GRABD_TEST_PREVIOUS").map(PathBuf::from);
    let cluster = match &previous {
        Some(binary) => TestCluster::start_with_version(binary, CREDITS).await?,
        None => TestCluster::start_with(CREDITS).await?,
    };
    std::fs::set_permissions(cluster.dir.path(), std::fs::Permissions::from_mode(0o755))?;
    let (site, bucket) = (Site::start(ALLOWED).await?, S3Server::start().await?);
    let mut members = members(&cluster, &bucket, &mut Sequence(random), SMALL)?;
    for member in &mut members {
        member.binary.clone_from(&previous);
        member.start(&cluster).await?;
    }
    for member in &members {
        member.process.as_ref().context("it runs")?.wait_until_ready(&cluster.client).await?;
    }
    let address = |member: &Member| Some(member.process.as_ref()?.http.to_string());
    let edges: Vec<String> = members.iter().take(2).filter_map(address).collect();

    let (url, over) = (site.url("/tiny"), CancellationToken::new());
    let calls = try_join_all((0..2 * CALLERS).map(|number| call(&cluster, &edges, &url, number, &over)));
    let restarts = async {
        let restarted = restart_each(&cluster, &mut members).await;
        over.cancel();
        restarted
    };
    let (calls, ()) = tokio::try_join!(calls, restarts)?;
    let calls: usize = calls.into_iter().sum();

    let grabs = cluster.ended_grabs().await?;
    let other: Vec<_> = grabs.iter().filter(|grab| !matches!(grab.state, State::Done { .. })).collect();
    ensure!(other.is_empty(), "{} of {} failed: {:?}", other.len(), grabs.len(), other[0]);
    let again = grabs.iter().filter(|grab| grab.attempts > 1).count();
    println!("{calls} calls, {again} rendered again");
    assert_eq!(grabs.len(), calls, "each call makes one grab");
    assert_eq!(usize::try_from(CREDITS - cluster.credits_left().await?)?, calls);
    for grab in grabs.iter().step_by(10) {
        check_image(&cluster, &edges, grab.id).await?;
    }
    // Renderers first, so that cores need not wait for them.
    for member in members.into_iter().rev() {
        member.process.context("it runs")?.stop().await?;
    }
    cluster.finish().await;
    Ok(())
}
