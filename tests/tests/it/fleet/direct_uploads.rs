//! Renderers that upload images to the object store themselves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use grabd_domain::Timestamp;
use grabd_domain::grabs::State;
use grabd_domain::ids::GrabId;
use grabd_engine::renderers::Uploader;
use grabd_proto::internal::v1::Assignment;
use grabd_rpc::direct_uploads::{DirectUploadCounts, DirectUploads};
use grabd_tests::harness::ALLOWED;
use grabd_tests::s3_server::S3Server;
use grabd_tests::tls_front::TlsFront;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};

use super::processes::{CREDITS, Process, TestCluster, variable};
use super::renderer::{HeldSession, ScriptedRenderer, TEXT, picture, report_uploaded, target};
use super::{BLUE, RED};

/// A cluster whose images are in a bucket.
struct BucketCluster {
    cluster: TestCluster,
    server: S3Server,
}

impl BucketCluster {
    async fn start() -> Result<Self> {
        Ok(Self { cluster: TestCluster::start().await?, server: S3Server::start().await? })
    }

    async fn core(&self, name: &str, more: &[(&str, &str)]) -> Result<Process> {
        let own = self.settings();
        let settings: Vec<_> = borrowed(&own).chain(more.iter().copied()).collect();
        self.cluster.core_with(name, &settings).await
    }

    async fn edge(&self, name: &str) -> Result<Process> {
        let own = self.settings();
        self.cluster.edge_named(name, &borrowed(&own).collect::<Vec<_>>()).await
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.server.settings().into_iter().map(|(name, value)| (variable(name), value)).collect()
    }

    /// TLS in front of the store, and the settings of processes that use it. The last one is for renderers, too.
    async fn start_tls(&self) -> Result<(TlsFront, Vec<(String, String)>)> {
        let front = TlsFront::start(self.server.address()).await?;
        let ca_file = self.cluster.dir.path().join("store-ca.pem");
        std::fs::write(&ca_file, front.authority())?;
        let endpoint = ("GRABD_IMAGES__ENDPOINT".to_owned(), front.origin());
        let ca_file = ("GRABD_IMAGES__CA_FILE".to_owned(), ca_file.display().to_string());
        Ok((front, self.settings().into_iter().chain([endpoint, ca_file]).collect()))
    }

    /// Creates an asynchronous grab of a page that no scripted renderer opens, with more options.
    async fn queue(&self, edge: &Process, options: Value) -> Result<GrabId> {
        let mut body = options;
        body["url"] = json!(format!("http://{ALLOWED}/page"));
        self.queue_page(edge, body).await
    }

    /// Creates an asynchronous grab.
    async fn queue_page(&self, edge: &Process, body: Value) -> Result<GrabId> {
        let request = self.cluster.client.post(format!("http://{}/v1/grabs?async=true", edge.http));
        let response = request.bearer_auth(self.cluster.team.live.expose()).json(&body).send().await?;
        let (status, grab) = (response.status(), response.json::<Value>().await?);
        ensure!(status == 202, "{status} {grab}");
        Ok(grab["id"].as_str().context("an id")?.parse()?)
    }

    /// The image of a done grab, from an edge.
    async fn image(&self, edge: &Process, grab: GrabId) -> Result<Vec<u8>> {
        let grab = self.cluster.get(edge, grab).await?;
        self.cluster.image(edge, grab["image_url"].as_str().context("an image")?).await
    }

    /// Fails if the grab has ended.
    async fn ensure_open(&self, grab: GrabId) -> Result<()> {
        let grab = self.cluster.store.grabs().find_grabs(&[grab]).await?.pop().context("the grab")?;
        ensure!(!grab.status().is_terminal(), "{grab:?}");
        Ok(())
    }

    /// Deletes what is scheduled, and waits until only the images of these grabs are left.
    async fn collect(&self, edge: &Process, kept: &[GrabId]) -> Result<()> {
        let mut expected = BTreeSet::new();
        for grab in kept {
            let grab = self.cluster.get(edge, *grab).await?;
            let url = grab["image_url"].as_str().context("an image")?;
            expected.insert(format!("i/{}", url.split_once("/i/").context("an image")?.1));
        }
        self.cluster.wait_for_objects(&self.server, &expected).await
    }

    async fn finish(self) {
        self.cluster.finish().await;
    }
}

fn borrowed(settings: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    settings.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

async fn channel(core: &Process) -> Result<Channel> {
    Ok(Endpoint::from_shared(format!("http://{}", core.renderers()))?.connect().await?)
}

fn uploads() -> Result<Arc<DirectUploads>> {
    Ok(Arc::new(DirectUploads::new(Uploader::new(b"")?)))
}

/// Uploads an image for an assignment, as a renderer does.
async fn upload(assignment: &Assignment, image: &Bytes) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(20);
    Ok(Uploader::new(b"")?.upload(&target(assignment)?, image, until).await?)
}

fn size(image: &Bytes) -> u64 {
    u64::try_from(image.len()).unwrap_or(u64::MAX)
}

/// The values of a metric of a core, by the label in quotes.
async fn images_stored(cluster: &TestCluster, metrics: &str, way: &str) -> Result<u64> {
    let text = cluster.client.get(format!("http://{metrics}/metrics")).send().await?.text().await?;
    let name = format!("grabd_images_stored_total{{way=\"{way}\"}} ");
    Ok(text.lines().find_map(|line| line.strip_prefix(&name)).map_or(Ok(0), str::parse)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_do_not_pass_through_the_core() -> Result<()> {
    let bucket = BucketCluster::start().await?;
    // Everything that the libraries log is wanted, too.
    let core = bucket.core("core", &[("GRABD_LOG__FILTER", "trace")]).await?;
    let edges = [bucket.edge("one").await?, bucket.edge("other").await?];
    // Larger than the buffers of all connections.
    let image =
        Bytes::from((0..9_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>());
    let uploads = uploads()?;
    let renderer = ScriptedRenderer::attach_uploading(&[core.renderers()], image.clone(), Arc::clone(&uploads));
    core.wait_until_ready(&bucket.cluster.client).await?;

    let plain = bucket.queue(&edges[0], json!({})).await?;
    let with_text = bucket.queue(&edges[1], json!({ "also": ["text"] })).await?;
    for grab in [plain, with_text] {
        let ended = bucket.cluster.wait_for_end(grab).await?;
        let State::Done { metadata, .. } = &ended.state else { anyhow::bail!("{ended:?}") };
        let digest: String = Sha256::digest(&image).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((ended.attempts, metadata.image_sha256.as_deref()), (1, Some(digest.as_str())));
        for edge in &edges {
            ensure!(bucket.image(edge, grab).await? == image, "another image");
        }
    }
    let grab = bucket.cluster.get(&edges[0], with_text).await?;
    let text = grab["files"][0]["url"].as_str().context("the text")?;
    assert_eq!(bucket.cluster.image(&edges[0], text).await?, TEXT);
    assert_eq!(grab["bytes"], json!(image.len()));
    assert_eq!(uploads.counts(), DirectUploadCounts { stored: 2, ..DirectUploadCounts::default() });
    let stored = async |way| images_stored(&bucket.cluster, &core.metrics, way).await;
    assert_eq!((stored("direct").await?, stored("core").await?), (2, 0));

    // The core compares and hashes images, so that it needs them.
    let hashed = bucket.queue(&edges[0], json!({ "phash": true })).await?;
    bucket.cluster.wait_for_end(hashed).await?;
    assert_eq!(uploads.counts(), DirectUploadCounts { stored: 2, ..DirectUploadCounts::default() });
    ensure_no_signature(&core.log())?;
    drop(renderer);
    for process in edges.into_iter().chain([core]) {
        process.stop().await?;
    }
    bucket.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upload_targets_are_for_remote_renderers_whose_images_the_core_does_not_read() -> Result<()> {
    let bucket = BucketCluster::start().await?;
    let edge = bucket.edge("edge").await?;
    let core = bucket.core("core", &[]).await?;
    let mut held = HeldSession::attach_as(channel(&core).await?, 1).await?;
    for (options, is_direct) in [
        (json!({}), true),
        (json!({ "also": ["html"], "slice_height": 500 }), true),
        (json!({ "phash": true }), false),
        (json!({ "also": ["marks"] }), false),
        (json!({ "thumbnail": { "width": 100, "height": 100 } }), false),
        (json!({ "upload_url": "https://93.184.215.14/image" }), false),
    ] {
        let grab = bucket.queue(&edge, options.clone()).await?;
        let assignment = held.assignment().await?;
        assert_eq!(
            (assignment.grab_id.clone(), assignment.upload.is_some()),
            (grab.to_string(), is_direct),
            "{options}"
        );
        if is_direct {
            let [budget, margin] = [assignment.budget, assignment.margin]
                .map(|limit| Duration::try_from(limit.expect("a duration")).expect("a duration"));
            let target = target(&assignment)?;
            ensure!(target.valid < budget + margin, "{target:?} is valid after the end of its lease");
            ensure!(target.valid + Duration::from_secs(3) >= budget + margin, "{target:?}");
            assert_eq!(target.headers, [("content-type", "image/png"), ("if-none-match", "*")].map(owned));
        }
        held.free_slot().await?;
    }
    drop(held);
    // A renderer that is part of its core's process.
    bucket.cluster.execute("DELETE FROM job").await?;
    let mut held = HeldSession::attach_as(channel(&core).await?, 0).await?;
    bucket.queue(&edge, json!({})).await?;
    assert_eq!(held.assignment().await?.upload, None);
    drop(held);
    core.stop().await?;
    // The operator does not want it.
    bucket.cluster.execute("DELETE FROM job").await?;
    let core = bucket.core("core", &[("GRABD_IMAGES__DIRECT_UPLOAD", "false")]).await?;
    let mut held = HeldSession::attach_as(channel(&core).await?, 1).await?;
    bucket.queue(&edge, json!({})).await?;
    assert_eq!(held.assignment().await?.upload, None);
    drop(held);
    for process in [edge, core] {
        process.stop().await?;
    }
    bucket.finish().await;
    Ok(())
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_report_of_an_uploaded_image_changes_nothing() -> Result<()> {
    let bucket = BucketCluster::start().await?;
    let edge = bucket.edge("edge").await?;
    let (first, second) = tokio::try_join!(bucket.core("first", &[]), bucket.core("second", &[]))?;
    let mut late = HeldSession::attach_as(channel(&first).await?, 2).await?;
    let grab = bucket.queue(&edge, json!({})).await?;
    let lost = late.assignment().await?;
    upload(&lost, &picture(RED)).await?;
    // The lease is taken over, of which the first core learns nothing.
    let now = Timestamp::from_ms(i64::try_from(std::time::UNIX_EPOCH.elapsed()?.as_millis())?);
    bucket.cluster.store.grabs().release(grab, lost.lease_token.parse()?, now).await?;
    let mut winner = HeldSession::attach_as(channel(&second).await?, 2).await?;
    let current = winner.assignment().await?;
    assert_eq!(current.grab_id, grab.to_string());
    ensure!(!report_uploaded(channel(&first).await?, &lost, size(&picture(RED))).await?, "the lease was lost");
    bucket.ensure_open(grab).await?;
    upload(&current, &picture(BLUE)).await?;
    ensure!(report_uploaded(channel(&second).await?, &current, size(&picture(BLUE))).await?);
    ensure!(!report_uploaded(channel(&first).await?, &lost, size(&picture(RED))).await?, "the grab has ended");
    let ended = bucket.cluster.wait_for_end(grab).await?;
    ensure!(matches!(ended.state, State::Done { .. }) && ended.attempts == 2, "{ended:?}");
    assert_eq!(bucket.server.objects()?.len(), 2);
    bucket.collect(&edge, &[grab]).await?;
    assert_eq!(bucket.image(&edge, grab).await?, picture(BLUE));
    assert_eq!(bucket.cluster.credits_left().await?, CREDITS - 1);
    drop((late, winner));
    for process in [edge, first, second] {
        process.stop().await?;
    }
    bucket.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grab_is_done_only_with_the_object_that_its_renderer_reports() -> Result<()> {
    let bucket = BucketCluster::start().await?;
    let (edge, core) = tokio::try_join!(bucket.edge("edge"), bucket.core("core", &[]))?;
    let mut held = HeldSession::attach_as(channel(&core).await?, 1).await?;
    let grab = bucket.queue(&edge, json!({})).await?;
    let image = picture(RED);
    // It reports an object that it did not upload.
    let missing = held.assignment().await?;
    ensure!(report_uploaded(channel(&core).await?, &missing, size(&image)).await?, "the lease was held");
    bucket.ensure_open(grab).await?;
    // It uploads another size than it reports.
    held.free_slot().await?;
    let other = held.assignment().await?;
    assert_eq!(other.grab_id, grab.to_string());
    upload(&other, &image).await?;
    ensure!(report_uploaded(channel(&core).await?, &other, size(&image) + 1).await?, "the lease was held");
    bucket.ensure_open(grab).await?;
    held.free_slot().await?;
    let last = held.assignment().await?;
    assert_eq!(last.grab_id, grab.to_string());
    // The object of the attempt before does not count.
    upload(&last, &image).await?;
    ensure!(report_uploaded(channel(&core).await?, &last, size(&image)).await?);
    let ended = bucket.cluster.wait_for_end(grab).await?;
    ensure!(matches!(ended.state, State::Done { .. }) && ended.attempts == 3, "{ended:?}");
    bucket.collect(&edge, &[grab]).await?;
    assert_eq!(bucket.image(&edge, grab).await?, image);
    assert_eq!(bucket.cluster.credits_left().await?, CREDITS - 1);
    drop(held);
    for process in [edge, core] {
        process.stop().await?;
    }
    bucket.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn object_of_a_renderer_that_is_lost_before_its_report_is_deleted() -> Result<()> {
    let bucket = BucketCluster::start().await?;
    let (edge, core) = tokio::try_join!(bucket.edge("edge"), bucket.core("core", &[]))?;
    let mut killed = HeldSession::attach_as(channel(&core).await?, 1).await?;
    let grab = bucket.queue(&edge, json!({})).await?;
    let assignment = killed.assignment().await?;
    upload(&assignment, &picture(RED)).await?;
    drop(killed);
    let renderer = ScriptedRenderer::attach_uploading(&[core.renderers()], picture(BLUE), uploads()?);
    let ended = bucket.cluster.wait_for_end(grab).await?;
    ensure!(matches!(ended.state, State::Done { .. }) && ended.attempts == 2, "{ended:?}");
    assert_eq!(bucket.server.objects()?.len(), 2);
    bucket.collect(&edge, &[grab]).await?;
    assert_eq!(bucket.image(&edge, grab).await?, picture(BLUE));
    drop(renderer);
    for process in [edge, core] {
        process.stop().await?;
    }
    bucket.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_uploads_are_repeated_or_pass_through_the_core() -> Result<()> {
    let bucket = BucketCluster::start().await?;
    let (edge, core) = tokio::try_join!(bucket.edge("edge"), bucket.core("core", &[]))?;
    let uploads = uploads()?;
    let renderer = ScriptedRenderer::attach_uploading(&[core.renderers()], picture(RED), Arc::clone(&uploads));
    let counts = |stored, failed, skipped| DirectUploadCounts { stored, failed, skipped };
    let done = async |attempts| {
        let grab = bucket.queue(&edge, json!({})).await?;
        let ended = bucket.cluster.wait_for_end(grab).await?;
        ensure!(matches!(ended.state, State::Done { .. }) && ended.attempts == attempts, "{ended:?}");
        ensure!(bucket.image(&edge, grab).await? == picture(RED), "another image");
        anyhow::Ok(())
    };
    bucket.server.fail_next(2, Method::PUT, StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
    done(1).await?;
    assert_eq!((bucket.server.failures_left(), uploads.counts()), (0, counts(1, 0, 0)));

    // The store has received the request, and does not answer yet.
    let pause = bucket.server.pause_next(Method::PUT);
    let grab = bucket.queue(&edge, json!({})).await?;
    pause.reached().await;
    bucket.ensure_open(grab).await?;
    assert_eq!(bucket.server.objects()?.len(), 1);
    pause.release();
    let ended = bucket.cluster.wait_for_end(grab).await?;
    ensure!(matches!(ended.state, State::Done { .. }) && ended.attempts == 1, "{ended:?}");
    assert_eq!(uploads.counts(), counts(2, 0, 0));

    // A store that refuses signed URLs may accept the credentials of the core.
    bucket.server.fail_next(1, Method::PUT, StatusCode::FORBIDDEN, "AccessDenied");
    done(1).await?;
    assert_eq!((bucket.server.failures_left(), uploads.counts()), (0, counts(2, 1, 0)));
    // It refuses those, too: the attempt is given back, and the next one is stored.
    bucket.server.fail_next(1, Method::PUT, StatusCode::FORBIDDEN, "AccessDenied");
    done(2).await?;
    assert_eq!((bucket.server.failures_left(), uploads.counts()), (0, counts(2, 1, 2)));
    assert_eq!(bucket.cluster.credits_left().await?, CREDITS - 4);

    // A grab whose image cannot be stored at all is not charged.
    bucket.server.fail_next(3, Method::PUT, StatusCode::FORBIDDEN, "AccessDenied");
    let grab = bucket.queue(&edge, json!({})).await?;
    let ended = bucket.cluster.wait_for_end(grab).await?;
    ensure!(matches!(ended.state, State::Failed { .. }) && ended.attempts == 3, "{ended:?}");
    assert_eq!(bucket.cluster.credits_left().await?, CREDITS - 4);
    drop(renderer);
    for process in [edge, core] {
        process.stop().await?;
    }
    bucket.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_of_a_renderer_that_cannot_reach_the_store_pass_through_the_core() -> Result<()> {
    let bucket = BucketCluster::start().await?;
    let (_front, own) = bucket.start_tls().await?;
    let settings: Vec<_> = borrowed(&own).collect();
    let core = bucket.cluster.core_with("core", &settings).await?;
    let edge = bucket.cluster.edge_named("edge", &settings).await?;
    // It does not trust the certificate of the store.
    let uploads = uploads()?;
    let renderer = ScriptedRenderer::attach_uploading(&[core.renderers()], picture(RED), Arc::clone(&uploads));
    for skipped in 0..3 {
        let grab = bucket.queue(&edge, json!({})).await?;
        let ended = bucket.cluster.wait_for_end(grab).await?;
        ensure!(matches!(ended.state, State::Done { .. }) && ended.attempts == 1, "{ended:?}");
        assert_eq!(bucket.image(&edge, grab).await?, picture(RED));
        assert_eq!(uploads.counts(), DirectUploadCounts { stored: 0, failed: 1, skipped });
    }
    let stored = async |way| images_stored(&bucket.cluster, &core.metrics, way).await;
    assert_eq!((stored("direct").await?, stored("core").await?), (0, 3));
    drop(renderer);
    for process in [edge, core] {
        process.stop().await?;
    }
    bucket.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renderer_uploads_over_tls_and_its_pages_do_not_reach_the_store() -> Result<()> {
    let bucket = BucketCluster::start().await?;
    let (front, own) = bucket.start_tls().await?;
    let (origin, settings) = (front.origin(), borrowed(&own).collect::<Vec<_>>());
    let ca_file = *settings.last().context("the certificate authority")?;
    let core = bucket.cluster.core_with("core", &settings).await?;
    let edge = bucket.cluster.edge_named("edge", &settings).await?;
    let trace = ("GRABD_LOG__FILTER", "trace");
    let renderer = bucket.cluster.renderer("renderer", &[core.renderers()], &[ca_file, trace]).await?;
    core.wait_until_ready(&bucket.cluster.client).await?;
    // The store would answer a page with an error. Nothing may get that far.
    bucket.server.fail_next(9, Method::GET, StatusCode::FORBIDDEN, "AccessDenied");
    let plain = bucket.server.endpoint();
    let html = format!(
        "<body>text<img src='{plain}/grabd-test/a'><img src='{origin}/grabd-test/b'><script>fetch('{plain}/c')</script>"
    );
    let created = bucket.queue_page(&edge, json!({ "html": html, "width": 320, "height": 240 })).await?;
    let ended = bucket.cluster.wait_for_end(created).await?;
    let State::Done { metadata, .. } = &ended.state else { anyhow::bail!("{ended:?}") };
    assert_eq!((ended.attempts, metadata.blocked_requests), (1, 3), "{metadata:?}");
    assert_eq!(bucket.server.failures_left(), 9, "a page has reached the store");
    for _ in 0..9 {
        bucket.cluster.client.get(format!("{plain}/x")).send().await?;
    }
    let image = bucket.image(&edge, created).await?;
    let digest: String = Sha256::digest(&image).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((metadata.image_sha256.as_deref(), image.starts_with(b"\x89PNG")), (Some(digest.as_str()), true));
    assert_eq!(images_stored(&bucket.cluster, &core.metrics, "direct").await?, 1);
    let metrics =
        bucket.cluster.client.get(format!("http://{}/metrics", renderer.metrics)).send().await?.text().await?;
    ensure!(metrics.contains("grabd_direct_uploads_total{result=\"stored\"} 1\n"), "{metrics}");
    ensure_no_signature(&renderer.log())?;
    for process in [renderer, edge, core] {
        process.stop().await?;
    }
    bucket.finish().await;
    Ok(())
}

/// Whoever has the URL of an upload can write to the store.
fn ensure_no_signature(log: &[String]) -> Result<()> {
    ensure!(log.iter().any(|line| line.contains("TRACE")), "the log is not complete");
    let found = log.iter().find(|line| line.to_ascii_lowercase().contains("x-amz-signature"));
    ensure!(found.is_none(), "{found:?}");
    Ok(())
}
