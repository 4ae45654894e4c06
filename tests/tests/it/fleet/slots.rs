//! Slots of several renderers add up: one, two and four renderers with Chromium, each with a fixed share of the processor.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use grabd_domain::grabs::State;
use grabd_tests::cpu_share::CpuShare;
use grabd_tests::harness::ALLOWED;
use grabd_tests::process_tree::ProcessTree;
use grabd_tests::site::Site;
use serde_json::json;
use tokio::time::sleep;

use super::processes::{Process, TestCluster, poll};

/// Percentage of one processor for each renderer. Four of them leave something for the other processes on two processors.
const PERCENT: u64 = 30;
/// Slots of each renderer.
const SLOTS: usize = 2;
/// Grabs that wait for each renderer, so that no slot is idle.
const QUEUED_EACH: usize = 6;
/// Length of each measurement.
const LENGTH: Duration = Duration::from_secs(60);
/// More than are spent.
const CREDITS: u32 = 100_000;

/// What renderers did.
struct Rate {
    per_second: f64,
    /// Processor seconds of the renderers for each grab.
    cpu_each: f64,
}

/// Measures this number of renderers.
async fn measure(renderers: usize) -> Result<Rate> {
    let cluster = TestCluster::start_with(CREDITS).await?;
    std::fs::set_permissions(cluster.dir.path(), std::fs::Permissions::from_mode(0o755))?;
    let site = Site::start(ALLOWED).await?;
    let settings = [("GRABD_LIMITS__ASYNC_QUEUE", "1000")];
    let (core, edge) = tokio::try_join!(cluster.core_with("core", &settings), cluster.edge_with(&settings))?;
    let mut running = Vec::new();
    for number in 0..renderers {
        running.push(start(&cluster, &core, number).await?);
    }
    for (process, _) in &running {
        process.wait_until_ready(&cluster.client).await?;
    }
    let url = site.url("/article");
    let create = async || {
        let request = cluster.client.post(format!("http://{}/v1/grabs?async=true", edge.http));
        let response = request.bearer_auth(cluster.team.live.expose()).json(&json!({ "url": url })).send().await?;
        ensure!(response.status() == 202, "{:?}", response.text().await?);
        anyhow::Ok(())
    };
    // As many as wait are created again, until the time is over.
    let mut created = 0;
    let done = async || {
        let grabs = cluster.grabs().await?;
        let failed = grabs.iter().find(|grab| matches!(grab.state, State::Failed { .. }));
        ensure!(failed.is_none(), "{failed:?}");
        anyhow::Ok(grabs.iter().filter(|grab| matches!(grab.state, State::Done { .. })).count())
    };
    let cpu = || -> Duration {
        running.iter().filter_map(|(process, _)| process.pid().ok()).map(|pid| ProcessTree(pid).cpu()).sum()
    };
    let mut begin = None;
    loop {
        let ended = done().await?;
        while created < ended + renderers * QUEUED_EACH {
            create().await?;
            created += 1;
        }
        // The first ones warm the browsers up.
        if begin.is_none() && ended >= renderers * SLOTS {
            begin = Some((Instant::now(), ended, cpu()));
        }
        if let Some((began, before, cpu_before)) = begin
            && began.elapsed() >= LENGTH
        {
            let grabs = ended - before;
            let rate = Rate {
                per_second: grabs as f64 / began.elapsed().as_secs_f64(),
                cpu_each: cpu().saturating_sub(cpu_before).as_secs_f64() / grabs.max(1) as f64,
            };
            poll("the end of all grabs", async || Ok((done().await? == created).then_some(()))).await?;
            for (process, _) in running {
                process.stop().await?;
            }
            edge.stop().await?;
            core.stop().await?;
            cluster.finish().await;
            return Ok(rate);
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Starts a renderer, in a control group of its own where this machine has them.
async fn start(cluster: &TestCluster, core: &Process, number: usize) -> Result<(Process, Option<CpuShare>)> {
    let run_dir = cluster.dir.path().join(format!("run-{number}")).display().to_string();
    let (cores, slots) = (core.renderers().to_string(), SLOTS.to_string());
    let settings = [
        ("GRABD_RENDERER__CORES", cores.as_str()),
        ("GRABD_BROWSER__SLOTS", slots.as_str()),
        ("GRABD_BROWSER__RUN_DIR", run_dir.as_str()),
    ];
    let name = format!("renderer-{number}");
    let mut command = cluster.command(&name, &settings)?;
    for name in ["GRABD_DATABASE__URL", "GRABD_CLUSTER__ENABLED", "GRABD_IMAGES__URL", "GRABD_SECRETS__KEY_FILE"] {
        command.env_remove(name);
    }
    let process = Process::start(command.args(["serve", "--role", "renderer"])).await?;
    let share = CpuShare::create(&format!("grabd-{name}"), PERCENT)?;
    if let Some(share) = &share {
        for pid in ProcessTree(process.pid()?).pids() {
            share.add(pid)?;
        }
    }
    Ok((process, share))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes five minutes and needs a quiet machine: run by script/fleet-test --slots"]
async fn throughput_of_renderers_adds_up() -> Result<()> {
    let mut first = None;
    println!("{:>9}{:>10}{:>22}{:>16}", "renderers", "grabs/s", "per share of one", "CPU-s per grab");
    let mut worst = f64::INFINITY;
    for renderers in [1, 2, 4] {
        let rate = measure(renderers).await.with_context(|| format!("{renderers} renderers"))?;
        let one = *first.get_or_insert(rate.per_second);
        let share = rate.per_second / one / renderers as f64;
        println!("{renderers:>9}{:>10.2}{share:>22.2}{:>16.2}", rate.per_second, rate.cpu_each);
        worst = worst.min(share);
    }
    ensure!(worst >= 0.9, "the throughput for each share is {worst:.2} of that of one renderer");
    Ok(())
}
