//! Processes of a cluster are killed at random while they capture pages, with images in a bucket.
//!
//! The seed is printed, and decides what is killed and when; `GRABD_TEST_CHAOS_SEED` repeats it, as far as time allows.
//! `script/fleet-test SECONDS` runs it for longer.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use grabd_domain::grabs::{Grab, ImageKey, State};
use grabd_domain::ids::GrabId;
use grabd_tests::harness::ALLOWED;
use grabd_tests::s3_server::S3Server;
use grabd_tests::site::Site;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::{sleep, timeout};

use super::processes::{Process, TestCluster, variable};

/// How long processes are killed, unless `GRABD_TEST_CHAOS_SECONDS` says otherwise.
const SECONDS: u64 = 30;
/// Time between the start of a process and the next kill, in milliseconds.
const PAUSE_MS: u64 = 2500;
/// Callers at the same time, of which every other one is synchronous.
pub(super) const CALLERS: usize = 4;
/// More than are spent.
pub(super) const CREDITS: u32 = 1_000_000;
/// Time limit for the grabs that are open at the end: two lost leases, and queued ones.
const DRAIN: Duration = Duration::from_secs(150);
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
    role: &'static str,
    settings: BTreeMap<String, String>,
    pub(super) process: Option<Process>,
}

impl Member {
    pub(super) async fn start(&mut self, cluster: &TestCluster) -> Result<()> {
        let settings: Vec<_> = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut command = cluster.command(&self.name, &settings)?;
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

/// Two edges, two cores and two renderers, not started.
pub(super) fn members(cluster: &TestCluster, bucket: &S3Server, sequence: &mut Sequence) -> Result<Vec<Member>> {
    let (edges, cores) = ([sequence.port()?, sequence.port()?], [sequence.port()?, sequence.port()?]);
    let images: Vec<_> = bucket.settings().into_iter().map(|(name, value)| (variable(name), value)).collect();
    let member = |name: String, role, own: &[(&str, String)]| {
        let settings = own.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let settings = match role {
            "renderer" => settings.collect(),
            _ => settings.chain(images.iter().cloned()).collect(),
        };
        Member { name, role, settings, process: None }
    };
    let mut members = Vec::new();
    for (number, port) in edges.into_iter().enumerate() {
        let listen = ("GRABD_HTTP__LISTEN", format!("127.0.0.1:{port}"));
        members.push(member(format!("edge-{number}"), "edge", &[listen]));
    }
    for (number, port) in cores.into_iter().enumerate() {
        let listen = ("GRABD_CLUSTER__LISTEN", format!("127.0.0.1:{port}"));
        members.push(member(format!("core-{number}"), "core", &[listen]));
    }
    for number in 0..2 {
        let own = [
            ("GRABD_RENDERER__CORES", cores.map(|port| format!("127.0.0.1:{port}")).join(",")),
            ("GRABD_BROWSER__SLOTS", "2".to_owned()),
            ("GRABD_BROWSER__RUN_DIR", cluster.dir.path().join(format!("run-{number}")).display().to_string()),
        ];
        members.push(member(format!("renderer-{number}"), "renderer", &own));
    }
    Ok(members)
}

/// What the callers saw.
#[derive(Default)]
struct Seen {
    answers: AtomicU32,
    /// Calls without an answer, whose grabs may exist.
    unanswered: AtomicU32,
}

/// Creates grabs at one edge or the other until the time is over.
async fn call(cluster: &TestCluster, edges: &[String], url: &str, number: usize, until: Instant, seen: &Seen) {
    let mut turn = number;
    while Instant::now() < until {
        turn += 1;
        let is_async = number.is_multiple_of(2);
        let edge = &edges[turn % edges.len()];
        let request = cluster.client.post(format!("http://{edge}/v1/grabs?async={is_async}"));
        let request = request.bearer_auth(cluster.team.live.expose()).json(&json!({ "url": url, "width": 320 }));
        match request.send().await {
            Ok(response) if response.status().is_success() => {
                seen.answers.fetch_add(1, Ordering::Relaxed);
            }
            // It was killed, or the cluster has too few processes at the moment. The next call goes to the other edge.
            Ok(_) | Err(_) => {
                seen.unanswered.fetch_add(1, Ordering::Relaxed);
            }
        }
        // Paced, since the captures are not the subject, and a killed edge refuses at once.
        sleep(Duration::from_millis(200)).await;
    }
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

/// All grabs, when all have ended.
pub(super) async fn ended(cluster: &TestCluster) -> Result<Vec<Grab>> {
    let all_ended = async {
        loop {
            let ids: Vec<GrabId> = cluster.grab_ids().await?;
            let mut grabs = Vec::new();
            for chunk in ids.chunks(500) {
                grabs.extend(cluster.store.find_grabs(chunk).await?);
            }
            if grabs.iter().all(|grab| grab.status().is_terminal()) {
                return anyhow::Ok(grabs);
            }
            sleep(Duration::from_millis(250)).await;
        }
    };
    timeout(DRAIN, all_ended).await.context("a grab does not end")?
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
    let mut members = members(&cluster, &bucket, &mut sequence)?;
    for member in &mut members {
        member.start(&cluster).await?;
    }
    let address = |member: &Member| Some(member.process.as_ref()?.http.to_string());
    let edges: Vec<String> = members.iter().take(2).filter_map(address).collect();
    for member in members.iter().take(2) {
        member.process.as_ref().context("it runs")?.wait_until_ready(&cluster.client).await?;
    }

    let (seen, url, until) = (Arc::new(Seen::default()), site.url("/tiny"), Instant::now() + length);
    let calls = join_all((0..CALLERS).map(|number| call(&cluster, &edges, &url, number, until, &seen)));
    let (kills, _) = tokio::join!(kill(&cluster, &mut members, &mut sequence, until), calls);
    let kills = kills.with_context(|| format!("seed {seed}"))?;

    let grabs = ended(&cluster).await.with_context(|| format!("seed {seed}"))?;
    let done: Vec<_> = grabs.iter().filter(|grab| matches!(grab.state, State::Done { .. })).collect();
    let spent = CREDITS - cluster.credits_left().await?;
    let (answers, unanswered) = (seen.answers.load(Ordering::Relaxed), seen.unanswered.load(Ordering::Relaxed));
    let retried = grabs.iter().filter(|grab| grab.attempts > 1).count();
    println!(
        "seed {seed}: {kills} kills, {answers} answers, {unanswered} calls without one, {} grabs, {} done, {retried} \
         rendered again, {spent} credits spent",
        grabs.len(),
        done.len()
    );
    assert_eq!(usize::try_from(spent)?, done.len(), "seed {seed}");
    ensure!(
        grabs.len() >= usize::try_from(answers)? && kills > 0 && !done.is_empty(),
        "seed {seed}: {answers} answers"
    );
    for grab in done {
        check_image(&cluster, &edges, grab.id).await.with_context(|| format!("seed {seed}"))?;
    }
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
