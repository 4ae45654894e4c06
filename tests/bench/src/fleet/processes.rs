//! The processes of the cluster: the real program.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use grabd_engine::vault::Vault;
use grabd_tests::process_tree::ProcessTree;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{interval, timeout};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::service::built_binary;

const CORES: usize = 3;
const EDGES: usize = 2;
/// Time limit of a start. Only reached when something is wrong.
const WAIT_LIMIT: Duration = Duration::from_secs(60);
/// No limit of the service is the subject.
const UNLIMITED: &str = "100000000";

/// Running processes. They are killed when dropped.
pub(super) struct Processes {
    cores: Vec<Process>,
    edges: Vec<Process>,
    _dir: tempfile::TempDir,
}

struct Process {
    child: Child,
    http: SocketAddr,
    renderers: Option<SocketAddr>,
    /// Reads what the process prints later.
    _output: AbortOnDropHandle<()>,
}

impl Processes {
    pub(super) async fn start(database: &str) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        Vault::open(&dir.path().join("secrets.key"))?;
        let (mut cores, mut edges) = (Vec::new(), Vec::new());
        for number in 0..CORES {
            cores.push(Process::start(dir.path(), database, "core", number).await?);
        }
        for number in 0..EDGES {
            edges.push(Process::start(dir.path(), database, "edge", number).await?);
        }
        Ok(Self { cores, edges, _dir: dir })
    }

    /// The addresses for renderers.
    pub(super) fn cores(&self) -> Vec<SocketAddr> {
        self.cores.iter().filter_map(|core| core.renderers).collect()
    }

    /// The addresses for callers.
    pub(super) fn edges(&self) -> Vec<SocketAddr> {
        self.edges.iter().map(|edge| edge.http).collect()
    }

    pub(super) async fn wait_until_ready(&self) -> Result<()> {
        let client = grabd_tests::client::client().build()?;
        for process in self.cores.iter().chain(&self.edges) {
            let ready = async {
                let mut ticks = interval(Duration::from_millis(100));
                loop {
                    ticks.tick().await;
                    let url = format!("http://{}/readyz", process.http);
                    if client.get(url).send().await.is_ok_and(|response| response.status().is_success()) {
                        return;
                    }
                }
            };
            timeout(WAIT_LIMIT, ready).await.context("a process is not ready")?;
        }
        Ok(())
    }

    /// Processor time of all cores, and of all edges.
    pub(super) fn cpu(&self) -> [Duration; 2] {
        [&self.cores, &self.edges].map(|processes| {
            let pids = processes.iter().filter_map(|process| process.child.id());
            pids.map(|pid| ProcessTree(pid).own_cpu()).sum()
        })
    }

    pub(super) async fn kill(self) -> Result<()> {
        for mut process in self.cores.into_iter().chain(self.edges) {
            process.child.kill().await?;
        }
        Ok(())
    }
}

impl Process {
    async fn start(dir: &Path, database: &str, role: &str, number: usize) -> Result<Self> {
        let path = |name: &str| dir.join(name).display().to_string();
        let mut command = Command::new(built_binary()?);
        command
            .args(["serve", "--role", role])
            .env("GRABD_DATA_DIR", path(&format!("{role}-{number}")))
            .env("GRABD_DATABASE__URL", database)
            .env("GRABD_CLUSTER__ENABLED", "true")
            .env("GRABD_IMAGES__URL", format!("file://{}", path("images")))
            .env("GRABD_SECRETS__KEY_FILE", path("secrets.key"))
            .env("GRABD_HTTP__LISTEN", "127.0.0.1:0")
            .env("GRABD_HTTP__PUBLIC_URL", "http://grabs.test")
            .env("GRABD_HTTP__CONNECTIONS_PER_ADDRESS", "4000")
            .env("GRABD_HTTP__REQUESTS_PER_ADDRESS", "4000")
            .env("GRABD_METRICS__LISTEN", "127.0.0.1:0")
            .env("GRABD_EGRESS__ALLOW_CIDRS", "127.0.0.2/32")
            .env("GRABD_LIMITS__REQUESTS_PER_MINUTE", UNLIMITED)
            .env("GRABD_LIMITS__ASYNC_QUEUE", UNLIMITED)
            .env("GRABD_RETENTION__MIN_FREE_PERCENT", "0")
            .env("GRABD_LOG__FILTER", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        if role == "core" {
            command.env("GRABD_GRPC__LISTEN", "127.0.0.1:0").env("GRABD_CLUSTER__LISTEN", "127.0.0.1:0");
        }
        let mut child = command.spawn().context("script/bench builds the program")?;
        let mut output = BufReader::new(child.stdout.take().context("stdout")?).lines();
        let listening = timeout(WAIT_LIMIT, addresses(&mut output)).await.context("a process does not start")?;
        let (http, renderers) = listening?;
        let rest = TaskTracker::new().spawn(async move { while let Ok(Some(_)) = output.next_line().await {} });
        Ok(Self { child, http, renderers, _output: AbortOnDropHandle::new(rest) })
    }
}

/// Reads the addresses that a process prints: for health checks, and for renderers.
async fn addresses(output: &mut Lines<BufReader<ChildStdout>>) -> Result<(SocketAddr, Option<SocketAddr>)> {
    let (mut http, mut renderers) = (None, None);
    while let Some(line) = output.next_line().await? {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("health"), Some(url)) => {
                let address = url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
                http = Some(address.context("an address")?.parse()?);
            }
            (Some("renderers"), Some(address)) => renderers = Some(address.parse()?),
            (Some("Stop"), _) => return Ok((http.context("no address for health checks")?, renderers)),
            _ => {}
        }
    }
    anyhow::bail!("a process ended")
}
