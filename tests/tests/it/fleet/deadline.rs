//! A synchronous caller at an edge whose grab does not end in time.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use grabd_domain::limits::SYNC_DEADLINE;
use grabd_tests::harness::ALLOWED;
use serde_json::{Value, json};
use tonic::transport::Endpoint;

use super::RED;
use super::processes::{CREDITS, Process, TestCluster};
use super::renderer::{HeldSession, picture, report};

/// What a response at the deadline may take longer.
const LATE: Duration = Duration::from_secs(10);

/// A response to a create.
struct Answer {
    status: u16,
    /// The path of the grab.
    location: String,
    body: Value,
    /// Whose fault it is.
    cause: String,
    took: Duration,
}

/// Sends a synchronous create with an idempotency key.
async fn create(cluster: &TestCluster, edge: &Process, key: &str) -> Result<Answer> {
    let began = Instant::now();
    let request = cluster.client.post(format!("http://{}/v1/grabs", edge.http)).header("idempotency-key", key);
    let request = request.bearer_auth(cluster.team.live.expose());
    let response = request.json(&json!({ "url": format!("http://{ALLOWED}/page") })).send().await?;
    let status = response.status().as_u16();
    let location = response.headers().get("location").context("no location")?.to_str()?.to_owned();
    let cause = response.headers().get("error-cause").context("no cause")?.to_str()?.to_owned();
    Ok(Answer { status, location, body: response.json().await?, cause, took: began.elapsed() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_out_at_an_edge_is_uncharged_and_the_same_everywhere() -> Result<()> {
    let cluster = TestCluster::start().await?;
    // The failed render takes 25 s. With the default of 20 s of failures a minute, the grab that waits would be delayed.
    let budget = ("GRABD_ABUSE__FAILED_SECONDS_PER_MINUTE_UNPAID", "1000");
    let core = cluster.core_with("core", &[budget]).await?;
    let edges = tokio::try_join!(cluster.edge_named("one", &[]), cluster.edge_named("other", &[]))?;
    let endpoint = Endpoint::from_shared(format!("http://{}", core.renderers()))?;
    let mut held = HeldSession::attach(endpoint.connect().await?).await?;
    for edge in [&edges.0, &edges.1] {
        edge.wait_until_ready(&cluster.client).await?;
    }
    // The only slot gets the first grab, and never returns it. The second one waits behind it at the other edge.
    let rendered = create(&cluster, &edges.0, "rendered");
    let others = async {
        let assignment = held.assignment().await?;
        let waiting = create(&cluster, &edges.1, "waiting").await?;
        anyhow::Ok((assignment, waiting))
    };
    let (rendered, (assignment, waiting)) = tokio::try_join!(rendered, others)?;

    for (answer, expected) in [(&rendered, "target"), (&waiting, "service")] {
        let Answer { status, location, body, cause, took } = answer;
        ensure!((SYNC_DEADLINE..SYNC_DEADLINE + LATE).contains(took), "{took:?}");
        let error = &body["error"];
        assert_eq!((*status, &error["code"], &**cause), (500, &json!("render_failed"), expected), "{body}");
        let message = error["message"].as_str().context("a message")?;
        ensure!(message.contains("25 s"), "{message}");
        let grab = location.rsplit('/').next().context("an id")?.parse()?;
        let (at_one, at_other) = (cluster.get(&edges.0, grab).await?, cluster.get(&edges.1, grab).await?);
        assert_eq!(at_one, at_other);
        assert_eq!(
            (&at_one["status"], &at_one["error_code"], &at_one["error_message"], &at_one["error_cause"]),
            (&json!("failed"), &error["code"], &error["message"], &json!(expected))
        );
        assert_eq!(cluster.wait_for_end(grab).await?.attempts, u32::from(expected == "target"));
    }
    // A retry at the other edge gets the same answer, and captures nothing.
    let repeated = create(&cluster, &edges.1, "rendered").await?;
    assert_eq!((repeated.status, &repeated.body["error"]["message"]), (500, &rendered.body["error"]["message"]));
    assert_eq!(repeated.location, rendered.location);
    assert_eq!(cluster.grab_ids().await?.len(), 2);

    // The core ends the render, whose result comes too late.
    assert_eq!(held.cancelled_lease().await?, assignment.lease_token);
    ensure!(!report(endpoint.connect().await?, &assignment, picture(RED)).await?, "the grab had ended");
    assert_eq!(cluster.credits_left().await?, CREDITS);
    drop(held);
    for process in [edges.0, edges.1, core] {
        process.stop().await?;
    }
    cluster.finish().await;
    Ok(())
}
