//! Processes of a cluster are killed at random while they capture pages, with images in a bucket.
//!
//! The seed is printed, and decides what is killed and when; `GRABD_TEST_CHAOS_SEED` repeats it, as far as time allows.
//! `script/fleet-test SECONDS` runs it for longer.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use grabd_domain::grabs::{ImageKey, State};
use grabd_domain::ids::GrabId;
use grabd_tests::harness::ALLOWED;
use grabd_tests::s3_server::S3Server;
use grabd_tests::site::Site;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use super::load::Load;
use super::processes::{Process, TestCluster, variable};

/// How long processes are killed, unless `GRABD_TEST_CHAOS_SECONDS` says otherwise.
const SECONDS: u64 = 20;
/// Time between the start of a process and the next kill, in milliseconds.
const PAUSE_MS: u64 = 2500;
/// Callers of each kind.
pub(super) const CALLERS: usize = 2;
/// Cores, and renderers, in the suite and in longer runs.
pub(super) const SMALL: usize = 2;
const LARGE: usize = 3;
/// Open asynchronous grabs, beyond which callers are refused and try again.
const ASYNC_QUEUE: u32 = 20;
/// Images that are checked at once.
const CHECKS: usize = 8;
/// More than are spent.
pub(super) const CREDITS: u32 = 1_000_000;
/// Listeners of processes that are started again have fixed ports, below those that the system assigns to others.
const PORTS: std::ops::Range<u16> = 21_000..31_000;

/// A random sequence that depends on a seed only: SplitMix64.
pub(super) struct Sequence(pub(super) u64);

impl Sequence {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// A port that nobody listens on.
    fn port(&mut self) -> Result<u16> {
        for _ in 0..100 {
            let port = PORTS.start + u16::try_from(self.below(u64::from(PORTS.end - PORTS.start)))?;
            if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
                return Ok(port);
            }
        }
        anyhow::bail!("no port is free")
    }
}

/// How a process is started, each time.
pub(super) struct Member {
    pub(super) name: String,
    /// Another version of the program.
    pub(super) binary: Option<PathBuf>,
    role: &'static str,
    settings: BTreeMap<String, String>,
    pub(super) process: Option<Process>,
}

impl Member {
    pub(super) async fn start(&mut self, cluster: &TestCluster) -> Result<()> {
        let settings: Vec<_> = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut command = match &self.binary {
            Some(binary) => cluster.command_of_version(binary, &self.name, &settings),
            None => cluster.command(&self.name, &settings)?,
        };
        if self.role == "renderer" {
            // It has neither a database nor images.
            for name in
                ["GRABD_DATABASE__URL", "GRABD_CLUSTER__ENABLED", "GRABD_IMAGES__URL", "GRABD_SECRETS__KEY_FILE"]
            {
                command.env_remove(name);
            }
        }
        let started = Process::start(command.args(["serve", "--role", self.role])).await;
        self.process = Some(started.with_context(|| format!("the start of {}", self.name))?);
        Ok(())
    }
}

/// Two edges, and as many cores and renderers, not started.
pub(super) fn members(
    cluster: &TestCluster,
    bucket: &S3Server,
    sequence: &mut Sequence,
    size: usize,
) -> Result<Vec<Member>> {
    let edges = [sequence.port()?, sequence.port()?];
    let cores: Vec<u16> = (0..size).map(|_| sequence.port()).collect::<Result<_>>()?;
    let addresses: Vec<_> = cores.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let images: Vec<_> = bucket.settings().into_iter().map(|(name, value)| (variable(name), value)).collect();
    let member = |name: String, role, own: &[(&str, String)]| {
        let settings = own.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let settings = match role {
            "renderer" => settings.collect(),
            _ => settings.chain(images.iter().cloned()).collect(),
        };
        Member { name, binary: None, role, settings, process: None }
    };
    let may_send = ("GRABD_WEBHOOKS__ALLOW_HTTP", "true".to_owned());
    let mut members = Vec::new();
    for (number, port) in edges.into_iter().enumerate() {
        let listen = ("GRABD_HTTP__LISTEN", format!("127.0.0.1:{port}"));
        members.push(member(format!("edge-{number}"), "edge", &[listen, may_send.clone()]));
    }
    for (number, port) in cores.into_iter().enumerate() {
        let listen = ("GRABD_CLUSTER__LISTEN", format!("127.0.0.1:{port}"));
        members.push(member(format!("core-{number}"), "core", &[listen, may_send.clone()]));
    }
    for number in 0..size {
        let own = [
            ("GRABD_RENDERER__CORES", addresses.join(",")),
            ("GRABD_BROWSER__SLOTS", "2".to_owned()),
            ("GRABD_BROWSER__RUN_DIR", cluster.dir.path().join(format!("run-{number}")).display().to_string()),
        ];
        members.push(member(format!("renderer-{number}"), "renderer", &own));
    }
    Ok(members)
}

/// Kills and restarts a random process until the time is over. Returns the number of kills.
async fn kill(cluster: &TestCluster, members: &mut [Member], sequence: &mut Sequence, until: Instant) -> Result<u32> {
    let mut kills = 0;
    while Instant::now() < until {
        // The rhythm of the test.
        sleep(Duration::from_millis(sequence.below(PAUSE_MS))).await;
        let victim = usize::try_from(sequence.below(members.len() as u64))?;
        let member = &mut members[victim];
        member.process.take().context("it runs")?.kill().await?;
        kills += 1;
        member.start(cluster).await?;
    }
    Ok(kills)
}

/// Checks that both edges return the same image of a grab, which is that of the grab.
pub(super) async fn check_image(cluster: &TestCluster, edges: &[String], grab: GrabId) -> Result<()> {
    let mut images = Vec::new();
    for edge in edges {
        let request = cluster.client.get(format!("http://{edge}/v1/grabs/{grab}"));
        let request = request.bearer_auth(cluster.team.live.expose());
        let body: Value = request.send().await?.error_for_status()?.json().await?;
        let url = body["image_url"].as_str().with_context(|| format!("no image: {body}"))?;
        images.push((cluster.image_at(edge, url).await?, body["image_sha256"].clone()));
    }
    let (first, sha256) = &images[0];
    ensure!(first.starts_with(b"\x89PNG") && images.iter().all(|image| image == &images[0]), "{grab}: other images");
    let digest: String = Sha256::digest(first).iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(*sha256 == json!(digest), "{grab}: the image is another than {sha256}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_lose_no_grab_and_no_credit() -> Result<()> {
    let number = |name| std::env::var_os(name).and_then(|text| text.to_str()?.parse::<u64>().ok());
    let random = u64::from_le_bytes(grabd_engine::random::secret()[..8].try_into()?);
    let seed = number("GRABD_TEST_CHAOS_SEED").unwrap_or(random);
    let length = Duration::from_secs(number("GRABD_TEST_CHAOS_SECONDS").unwrap_or(SECONDS));
    println!("seed {seed}");
    let mut sequence = Sequence(seed);
    let cluster = TestCluster::start_with(CREDITS).await?;
    std::fs::set_permissions(cluster.dir.path(), std::fs::Permissions::from_mode(0o755))?;
    let (site, bucket) = (Site::start(ALLOWED).await?, S3Server::start().await?);
    let size = if length > Duration::from_secs(SECONDS) { LARGE } else { SMALL };
    let mut members = members(&cluster, &bucket, &mut sequence, size)?;
    for member in &mut members {
        // Grabs are created faster than a small machine renders them. Callers that watch must not wait for all of these.
        if member.role != "renderer" {
            member.settings.insert("GRABD_LIMITS__ASYNC_QUEUE".to_owned(), ASYNC_QUEUE.to_string());
        }
        member.start(&cluster).await?;
    }
    let address = |member: &Member| Some(member.process.as_ref()?.http.to_string());
    let edges: Vec<String> = members.iter().take(2).filter_map(address).collect();
    for member in members.iter().take(2) {
        member.process.as_ref().context("it runs")?.wait_until_ready(&cluster.client).await?;
    }

    let load = Load::new_with_browsers(&cluster, &edges, site.url("/tiny")).await?;
    let killing = kill(&cluster, &mut members, &mut sequence, Instant::now() + length);
    let kills = load.during(CALLERS, killing).await.with_context(|| format!("seed {seed}"))?;
    let outcome = load.finish().await.with_context(|| format!("seed {seed}"))?;
    println!("seed {seed}: {kills} kills, {outcome}");
    ensure!(kills > 0 && !outcome.done.is_empty(), "seed {seed}");
    let checks = stream::iter(outcome.done).map(|grab| check_image(&cluster, &edges, grab));
    checks.buffer_unordered(CHECKS).try_collect::<()>().await.with_context(|| format!("seed {seed}"))?;
    let grabs = cluster.grabs().await?;
    let names = grabs.iter().filter_map(|grab| match &grab.state {
        State::Done { image, .. } => image.as_ref().map(ImageKey::path),
        State::Pending | State::Processing | State::Failed { .. } => None,
    });
    cluster.wait_for_objects(&bucket, &names.collect()).await.with_context(|| format!("seed {seed}"))?;
    // Renderers first, so that cores need not wait for them.
    for member in members.into_iter().rev() {
        member.process.context("it runs")?.stop().await?;
    }
    cluster.finish().await;
    Ok(())
}
