//! The grabd binary, started as an operator does and called as a customer does.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use grabd_store::Store;
use serde_json::{Value, json};

use grabd_tests::process_tree::ProcessTree;
use grabd_tests::scenario::Customer;

/// Which control groups the service sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    /// Those of the machine, if it has any.
    OfTheMachine,
    /// None, by a mount over them. Needs root.
    Hidden,
}

/// The data directory of a service that does not run yet, with a team and its keys.
pub(crate) struct DataDirectory {
    dir: tempfile::TempDir,
    live_key: String,
    test_key: String,
}

impl DataDirectory {
    /// Creates a database with these settings.
    pub(crate) fn create(settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let binary = built_binary()?;
        Self::of(&|| Command::new(&binary), settings)
    }

    fn of(program: &dyn Fn() -> Command, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let team = command(program, dir.path(), settings)
            .args(["admin", "team", "create", "bench", "--credits", "100000000", "--json"])
            .output()
            .with_context(|| format!("{:?}; script/bench builds it", program()))?;
        let team: Value = serde_json::from_slice(&team.stdout).context("the team's keys")?;
        let key = |name: &str| team[name].as_str().map(str::to_owned).context("a key");
        Ok(Self { live_key: key("live_key")?, test_key: key("test_key")?, dir })
    }

    /// The SQLite database.
    pub(crate) fn database(&self) -> PathBuf {
        database_in(self.dir.path())
    }
}

/// The grabd that was built with this benchmark.
pub(crate) fn built_binary() -> std::io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("grabd"))
}

/// The binary with the benchmark's settings and these.
fn command(program: &dyn Fn() -> Command, dir: &Path, settings: &[(&str, &str)]) -> Command {
    let mut command = program();
    command
        .env("GRABD_DATA_DIR", dir.join("data"))
        .env("GRABD_HTTP__LISTEN", "127.0.0.1:0")
        .env("GRABD_GRPC__LISTEN", "127.0.0.1:0")
        .env("GRABD_METRICS__LISTEN", "127.0.0.1:0")
        .env("GRABD_EGRESS__ALLOW_CIDRS", "127.0.0.2/32")
        .env("GRABD_LIMITS__REQUESTS_PER_MINUTE", "100000000")
        .env("GRABD_ABUSE__FAILED_SECONDS_PER_MINUTE_UNPAID", "100000000")
        .env("GRABD_LOG__FILTER", "warn")
        .envs(settings.iter().copied())
        .stdin(Stdio::null());
    command
}

fn database_in(dir: &Path) -> PathBuf {
    dir.join("data/grabd.db")
}

/// The running binary, with a team and its keys.
pub(crate) struct Service {
    process: Child,
    started: Instant,
    client: grabd_tests::client::Client,
    base: String,
    /// The gRPC address as `host:port`.
    pub(crate) grpc: String,
    pub(crate) live_key: String,
    test_key: String,
    dir: tempfile::TempDir,
}

impl Service {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Self::start_with(&[]).await
    }

    /// Starts with these settings in addition to the benchmark's own.
    pub(crate) async fn start_with(settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::start_binary(&built_binary()?, settings).await
    }

    /// Starts with or without the control groups of the machine.
    pub(crate) async fn start_in(groups: Groups, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let binary = built_binary()?;
        match groups {
            Groups::OfTheMachine => Self::start_command(|| Command::new(&binary), settings).await,
            Groups::Hidden => {
                let hidden = || {
                    let mut command = Command::new("unshare");
                    let script = r#"mount -t tmpfs none /sys/fs/cgroup && exec "$0" "$@""#;
                    command.args(["--mount", "--", "sh", "-c", script]).arg(&binary);
                    command
                };
                Self::start_command(hidden, settings).await
            }
        }
    }

    /// Starts another build with these settings.
    pub(crate) async fn start_binary(binary: &Path, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::start_command(|| Command::new(binary), settings).await
    }

    /// Starts on a database that exists, with the settings with which it was created.
    pub(crate) fn start_on(data: DataDirectory, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let binary = built_binary()?;
        Self::serve(&|| Command::new(&binary), data, settings)
    }

    async fn start_command(program: impl Fn() -> Command, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let data = DataDirectory::of(&program, settings)?;
        Self::serve(&program, data, settings)
    }

    fn serve(program: &dyn Fn() -> Command, data: DataDirectory, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let started = Instant::now();
        let mut process = command(program, data.dir.path(), settings).arg("serve").stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("stdout")?).lines();
        let mut address_of = |name: &str| {
            let mut lines = lines.by_ref().map_while(Result::ok);
            let address =
                lines.find_map(|line| line.trim().strip_prefix(name)?.split_whitespace().next().map(str::to_owned));
            address.context("the service did not print where it listens")
        };
        let (base, grpc) = (address_of("REST ")?, address_of("gRPC ")?);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let DataDirectory { dir, live_key, test_key } = data;
        let client = grabd_tests::client::client().build()?;
        Ok(Self { process, started, client, base, grpc, live_key, test_key, dir })
    }

    pub(crate) fn tree(&self) -> ProcessTree {
        ProcessTree(self.process.id())
    }

    /// Whether its browsers are in control groups.
    pub(crate) fn uses_control_groups(&self) -> bool {
        let is_in_group = |pid: u32| {
            let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            groups.lines().any(|line| line.contains("/browsers-"))
        };
        self.tree().pids().into_iter().any(is_in_group)
    }

    /// When its process was started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Whether it can capture, by its own account.
    pub(crate) async fn is_ready(&self) -> bool {
        let answer = self.client.get(format!("{}/readyz", self.web())).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// A client with the live key.
    pub(crate) fn customer(&self) -> Customer {
        Customer { client: self.client.clone(), base: self.base.clone(), key: self.live_key.clone() }
    }

    /// Captures a page over REST.
    pub(crate) async fn grab(&self, url: &str, full_page: bool) -> anyhow::Result<()> {
        self.create(&self.live_key, &json!({ "url": url, "full_page": full_page })).await.map(drop)
    }

    /// Creates a placeholder over REST.
    pub(crate) async fn placeholder(&self) -> anyhow::Result<Value> {
        self.create(&self.test_key, &json!({ "url": "https://example.com/" })).await
    }

    /// Reads a grab by its id.
    pub(crate) async fn get(&self, id: &str) -> anyhow::Result<()> {
        let request = self.client.get(format!("{}/grabs/{id}", self.base)).bearer_auth(&self.test_key);
        request.send().await?.error_for_status()?.bytes().await?;
        Ok(())
    }

    /// Reads the events of a grab of the live key until it has ended. Returns the last one.
    pub(crate) async fn events(&self, id: &str) -> anyhow::Result<Value> {
        let request = self.client.get(format!("{}/grabs/{id}/events", self.base)).bearer_auth(&self.live_key);
        let events = request.send().await?.error_for_status()?.text().await?;
        let last = events.lines().rev().find_map(|line| line.strip_prefix("data:")).context("an event")?;
        Ok(serde_json::from_str(last)?)
    }

    /// Captures with the live key. Returns the stages of the render, each with the milliseconds since its start.
    pub(crate) async fn stages(&self, body: &Value) -> anyhow::Result<Vec<(String, f64)>> {
        let request = self.client.post(format!("{}/grabs?async=true", self.base)).bearer_auth(&self.live_key);
        let grab: Value = request.json(body).send().await?.error_for_status()?.json().await?;
        let id = grab["id"].as_str().context("an id")?;
        let request = self.client.get(format!("{}/grabs/{id}/events", self.base)).bearer_auth(&self.live_key);
        let events = request.send().await?.error_for_status()?.text().await?;
        // Each event has all stages so far, and the one of the end has none.
        let data = events.lines().rev().filter_map(|line| line.strip_prefix("data:"));
        let mut stages = data.filter_map(|data| {
            let grab: Value = serde_json::from_str(data).ok()?;
            let reached = grab["stages"].as_array()?.iter();
            reached.map(|stage| Some((stage["stage"].as_str()?.to_owned(), stage["ms"].as_f64()?))).collect()
        });
        stages.next().context("no stage of a render was reported")
    }

    /// The address of REST, with `/v1`.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The address of the web app.
    pub(crate) fn web(&self) -> &str {
        self.base.trim_end_matches("/v1")
    }

    /// The socket address of REST and the web app.
    pub(crate) fn http_address(&self) -> anyhow::Result<std::net::SocketAddr> {
        self.web().trim_start_matches("http://").parse().context("an address")
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The service's SQLite database.
    pub(crate) fn database(&self) -> PathBuf {
        database_in(self.dir.path())
    }

    /// Opens the service's database directly.
    pub(crate) async fn store(&self) -> anyhow::Result<Store> {
        Ok(Store::open(&format!("sqlite://{}", self.database().display())).await?)
    }

    /// Queues a grab and returns its id.
    pub(crate) async fn queue(&self, key: &str, url: &str) -> anyhow::Result<String> {
        let body = json!({ "url": url, "width": 320, "height": 240 });
        let request = self.client.post(format!("{}/grabs?async=true", self.base)).bearer_auth(key).json(&body);
        let grab: Value = request.send().await?.error_for_status()?.json().await?;
        Ok(grab["id"].as_str().context("an id")?.to_owned())
    }

    /// Registers a webhook for all events and returns its id.
    pub(crate) async fn register_webhook(&self, key: &str, url: &str) -> anyhow::Result<String> {
        let request = self.client.post(format!("{}/webhooks", self.base)).bearer_auth(key);
        let webhook: Value = request.json(&json!({ "url": url })).send().await?.error_for_status()?.json().await?;
        Ok(webhook["id"].as_str().context("an id")?.to_owned())
    }

    /// Sends a webhook a test message.
    pub(crate) async fn test_webhook(&self, key: &str, id: &str) -> anyhow::Result<()> {
        let request = self.client.post(format!("{}/webhooks/{id}/test", self.base)).bearer_auth(key);
        request.send().await?.error_for_status()?.bytes().await?;
        Ok(())
    }

    /// Creates a grab with the live key. Returns status and body.
    pub(crate) async fn capture(&self, body: &Value) -> anyhow::Result<(u16, Value)> {
        self.post(&self.live_key, body).await
    }

    /// Downloads the image of a grab.
    pub(crate) async fn image(&self, url: &str) -> anyhow::Result<Vec<u8>> {
        Ok(self.client.get(url).send().await?.error_for_status()?.bytes().await?.to_vec())
    }

    /// Deletes the image and the files of a grab of the live key.
    pub(crate) async fn delete(&self, id: &str) -> anyhow::Result<()> {
        let request = self.client.delete(format!("{}/grabs/{id}", self.base)).bearer_auth(&self.live_key);
        request.send().await?.error_for_status()?.bytes().await?;
        Ok(())
    }

    async fn create(&self, key: &str, body: &Value) -> anyhow::Result<Value> {
        let (status, answer) = self.post(key, body).await?;
        anyhow::ensure!(status == 200, "{status}: {answer}");
        Ok(answer)
    }

    /// Creates a grab with a key. Returns status and body.
    pub(crate) async fn post(&self, key: &str, body: &Value) -> anyhow::Result<(u16, Value)> {
        let response = self.client.post(format!("{}/grabs", self.base)).bearer_auth(key).json(body).send().await?;
        Ok((response.status().as_u16(), response.json().await?))
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw).context("a pid")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The process has already been waited for unless an error occurred.
        let _ = self.process.kill();
    }
}
