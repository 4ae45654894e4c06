//! The processes of a cluster: the real binary, on one database.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::credentials::{ApiKey, Environment};
use grabd_domain::grabs::Grab;
use grabd_domain::ids::{GrabId, TeamId};
use grabd_engine::accounts::{self, NewTeamKeys};
use grabd_engine::clock::Clock;
use grabd_engine::vault::Vault;
use grabd_store::Store;
use grabd_store::grabs::{Cursor, PageRequest};
use grabd_tests::client::Client;
use grabd_tests::contract::ApiError;
use grabd_tests::harness::ALLOWED;
use grabd_tests::s3_server::S3Server;
use reqwest::Response;
use rustix::process::{Pid, Signal, kill_process};
use sea_orm::{ConnectionTrait, Statement};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{interval, timeout};

use crate::billing::cluster::PrivateDatabase;
use crate::crash_recovery::service::{grabd_binary, lines};

/// Time limit for everything that is awaited. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(60);
/// Time limit for the end of all grabs: two lost leases, and queued ones.
const END_LIMIT: Duration = Duration::from_secs(150);
/// Number of grabs that are read at a time.
const PAGE: u32 = 500;
/// Poll interval.
const POLL: Duration = Duration::from_millis(50);
/// The public origin, which leads nowhere.
const PUBLIC_URL: &str = "http://grabs.test";
/// Credits of the team.
pub(super) const CREDITS: u32 = 50;

/// A database with a team, and what the processes share.
pub(super) struct TestCluster {
    /// A database on the server that all tests share. `None`: one on a server of the test's own.
    database: Option<PrivateDatabase>,
    /// The URL of the database for the test, and for the processes.
    url: String,
    process_url: String,
    credits: u32,
    pub(super) dir: tempfile::TempDir,
    pub(super) store: Store,
    pub(super) team: Team,
    pub(super) client: Client,
}

/// The team whose grabs are created.
pub(super) struct Team {
    pub(super) team: TeamId,
    pub(super) live: ApiKey,
}

/// A process of the cluster. It is killed when dropped.
pub(super) struct Process {
    child: Child,
    pub(super) http: SocketAddr,
    /// The address of the metrics.
    pub(super) metrics: String,
    renderers: Option<SocketAddr>,
    log: watch::Receiver<Vec<String>>,
}

impl TestCluster {
    pub(super) async fn start() -> Result<Self> {
        Self::start_with(CREDITS).await
    }

    /// With other credits than [`CREDITS`].
    pub(super) async fn start_with(credits: u32) -> Result<Self> {
        let database = PrivateDatabase::create_migrated().await;
        let url = database.url();
        Ok(Self { database: Some(database), ..Self::start_on(&url, &url, credits).await? })
    }

    /// On a database at this URL, which the processes reach at another one.
    pub(super) async fn start_on(url: &str, process_url: &str, credits: u32) -> Result<Self> {
        let store = Store::open(url).await?;
        store.migrate().await?;
        let NewTeamKeys { team, live, .. } =
            accounts::create_team(&store, "the test's", credits, Clock::system().now()).await?;
        let team = Team { team, live };
        let dir = tempfile::tempdir()?;
        Vault::open(&dir.path().join("secrets.key"))?;
        let client = grabd_tests::client::client().build()?;
        let (url, process_url) = (url.to_owned(), process_url.to_owned());
        Ok(Self { database: None, url, process_url, credits, dir, store, team, client })
    }

    /// With the schema of another version of the program, which creates the team.
    pub(super) async fn start_with_version(binary: &Path, credits: u32) -> Result<Self> {
        let database = PrivateDatabase::create().await;
        let (url, dir) = (database.url(), tempfile::tempdir()?);
        Vault::open(&dir.path().join("secrets.key"))?;
        let create = ["admin", "--json", "team", "create", "the test's", "--credits", &credits.to_string()];
        let mut command = Self::command_of(binary, &url, dir.path(), "create", &[]);
        let created: Value = serde_json::from_str(&output_of(command.args(create)).await?)?;
        let live = created["live_key"].as_str().and_then(ApiKey::parse).context("a live key")?;
        let team = Team { team: created["team_id"].as_str().context("a team")?.parse()?, live };
        let (store, client) = (Store::open(&url).await?, grabd_tests::client::client().build()?);
        Ok(Self { database: Some(database), process_url: url.clone(), url, credits, dir, store, team, client })
    }

    /// Runs a command with the configuration of the cluster.
    pub(super) fn command(&self, data_dir: &str, settings: &[(&str, &str)]) -> Result<Command> {
        Ok(Self::command_of(&grabd_binary()?, &self.process_url, self.dir.path(), data_dir, settings))
    }

    /// The same with another version of the program.
    pub(super) fn command_of_version(&self, binary: &Path, data_dir: &str, settings: &[(&str, &str)]) -> Command {
        Self::command_of(binary, &self.process_url, self.dir.path(), data_dir, settings)
    }

    fn command_of(binary: &Path, url: &str, dir: &Path, data_dir: &str, settings: &[(&str, &str)]) -> Command {
        let path = |name: &str| dir.join(name).display().to_string();
        let mut command = Command::new(binary);
        command
            .env("GRABD_DATA_DIR", path(data_dir))
            .env("GRABD_DATABASE__URL", url)
            .env("GRABD_CLUSTER__ENABLED", "true")
            .env("GRABD_IMAGES__URL", format!("file://{}", path("images")))
            .env("GRABD_SECRETS__KEY_FILE", path("secrets.key"))
            .env("GRABD_HTTP__LISTEN", "127.0.0.1:0")
            .env("GRABD_HTTP__PUBLIC_URL", PUBLIC_URL)
            .env("GRABD_GRPC__LISTEN", "127.0.0.1:0")
            .env("GRABD_METRICS__LISTEN", "127.0.0.1:0")
            .env("GRABD_EGRESS__ALLOW_CIDRS", format!("{ALLOWED}/32"))
            .env("GRABD_LIMITS__REQUESTS_PER_MINUTE", "1000000")
            // On a busy machine, callers queue grabs faster than they are rendered.
            .env("GRABD_LIMITS__ASYNC_QUEUE", "1000")
            .env("GRABD_RETENTION__MIN_FREE_PERCENT", "0")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(super) async fn core(&self, name: &str) -> Result<Process> {
        self.core_with(name, &[]).await
    }

    pub(super) async fn core_with(&self, name: &str, settings: &[(&str, &str)]) -> Result<Process> {
        let mut command = self.command(name, settings)?;
        Process::start(command.args(["serve", "--role", "core"]).env("GRABD_CLUSTER__LISTEN", "127.0.0.1:0")).await
    }

    /// A renderer with a browser, which has neither a database nor images.
    pub(super) async fn renderer(
        &self,
        name: &str,
        cores: &[SocketAddr],
        settings: &[(&str, &str)],
    ) -> Result<Process> {
        // The user of the browsers has a directory in it.
        std::fs::set_permissions(self.dir.path(), std::fs::Permissions::from_mode(0o755))?;
        let mut command = self.command(name, settings)?;
        for name in ["GRABD_DATABASE__URL", "GRABD_CLUSTER__ENABLED", "GRABD_IMAGES__URL", "GRABD_SECRETS__KEY_FILE"] {
            command.env_remove(name);
        }
        let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
        command
            .env("GRABD_RENDERER__CORES", cores.join(","))
            .env("GRABD_BROWSER__SLOTS", "1")
            .env("GRABD_BROWSER__RUN_DIR", self.dir.path().join(format!("run-{name}")));
        Process::start(command.args(["serve", "--role", "renderer"])).await
    }

    pub(super) async fn edge(&self) -> Result<Process> {
        self.edge_with(&[]).await
    }

    pub(super) async fn edge_with(&self, settings: &[(&str, &str)]) -> Result<Process> {
        self.edge_named("edge", settings).await
    }

    pub(super) async fn edge_named(&self, name: &str, settings: &[(&str, &str)]) -> Result<Process> {
        Process::start(self.command(name, settings)?.args(["serve", "--role", "edge"])).await
    }

    /// Creates a grab through an edge. Returns the status and the body.
    pub(super) async fn create(&self, edge: &Process, is_async: bool) -> Result<(u16, Value)> {
        let response = self.send_create(edge, is_async).await?;
        Ok((response.status().as_u16(), response.json().await?))
    }

    /// Creates a synchronous grab, which must be refused.
    pub(super) async fn create_refused(&self, edge: &Process) -> Result<ApiError> {
        ApiError::read(self.send_create(edge, false).await?).await
    }

    async fn send_create(&self, edge: &Process, is_async: bool) -> Result<Response> {
        let request = self.client.post(format!("http://{}/v1/grabs?async={is_async}", edge.http));
        let body = json!({ "url": format!("http://{ALLOWED}/page") });
        Ok(request.bearer_auth(self.team.live.expose()).json(&body).send().await?)
    }

    /// Creates an asynchronous grab.
    pub(super) async fn queue(&self, edge: &Process) -> Result<GrabId> {
        let (status, grab) = self.create(edge, true).await?;
        ensure!(status == 202, "{status} {grab}");
        Ok(grab["id"].as_str().context("an id")?.parse()?)
    }

    /// A grab as an edge returns it.
    pub(super) async fn get(&self, edge: &Process, grab: GrabId) -> Result<Value> {
        let request = self.client.get(format!("http://{}/v1/grabs/{grab}", edge.http));
        Ok(request.bearer_auth(self.team.live.expose()).send().await?.error_for_status()?.json().await?)
    }

    /// Waits until a grab has ended.
    pub(super) async fn wait_for_end(&self, grab: GrabId) -> Result<Grab> {
        poll("the end of a grab", async || {
            let found = self.store.grabs().find_grabs(&[grab]).await?.pop().context("the grab exists")?;
            Ok(found.status().is_terminal().then_some(found))
        })
        .await
    }

    /// The image at a URL of the service, from an edge.
    pub(super) async fn image(&self, edge: &Process, url: &str) -> Result<Vec<u8>> {
        self.image_at(&edge.http.to_string(), url).await
    }

    /// The same, from the edge at this address.
    pub(super) async fn image_at(&self, edge: &str, url: &str) -> Result<Vec<u8>> {
        let path = url.strip_prefix(PUBLIC_URL).context("an image below the public URL")?;
        let response = self.client.get(format!("http://{edge}{path}")).send().await?;
        Ok(response.error_for_status()?.bytes().await?.to_vec())
    }

    /// Deletes the images that are scheduled for it, and waits until the bucket has these objects and no others, except
    /// for those with which a process that was killed has checked the bucket.
    pub(super) async fn wait_for_objects(&self, bucket: &S3Server, expected: &BTreeSet<String>) -> Result<()> {
        self.execute("UPDATE image_gc SET not_before = 0").await?;
        poll("the deletion of lost images", async || {
            let mut objects = bucket.objects()?;
            objects.retain(|name| !name.starts_with("grabd-probe-"));
            Ok((objects == *expected).then_some(()))
        })
        .await
    }

    /// The address of the process that holds the lease of a grab.
    pub(super) async fn holder(&self, grab: GrabId) -> Result<Option<String>> {
        let sql = format!(
            "SELECT node.address FROM job JOIN node_session USING (session_id) JOIN node ON node.id = node_session.node_id \
             WHERE job.grab_id = '{grab}'"
        );
        let database = sea_orm::Database::connect(&self.url).await?;
        let row = database.query_one_raw(Statement::from_string(database.get_database_backend(), sql)).await?;
        let address = row.map(|row| row.try_get::<String>("", "address")).transpose()?;
        database.close().await?;
        Ok(address)
    }

    /// All grabs.
    pub(super) async fn grabs(&self) -> Result<Vec<Grab>> {
        let mut grabs: Vec<Grab> = Vec::new();
        loop {
            let cursor = grabs.last().map(|last| Cursor::After(last.id));
            let page = PageRequest { limit: PAGE, cursor, ..PageRequest::default() };
            let listed = self.store.grabs().list_grabs(self.team.team, Environment::Live, page).await?;
            let listed = listed.context("the last grab is gone")?;
            grabs.extend(listed.grabs);
            if !listed.has_more {
                return Ok(grabs);
            }
        }
    }

    /// All grabs, when all have ended.
    pub(super) async fn ended_grabs(&self) -> Result<Vec<Grab>> {
        let all_ended = async {
            let mut ticks = interval(POLL);
            loop {
                ticks.tick().await;
                let grabs = self.grabs().await?;
                if grabs.iter().all(|grab| grab.status().is_terminal()) {
                    return anyhow::Ok(grabs);
                }
            }
        };
        timeout(END_LIMIT, all_ended).await.context("a grab does not end")?
    }

    /// The ids of all grabs.
    pub(super) async fn grab_ids(&self) -> Result<Vec<GrabId>> {
        let database = sea_orm::Database::connect(&self.url).await?;
        let all = Statement::from_string(database.get_database_backend(), "SELECT id FROM grab");
        let rows = database.query_all_raw(all).await?;
        let ids: Result<Vec<_>, _> = rows.iter().map(|row| row.try_get("", "id").map(GrabId)).collect();
        database.close().await?;
        Ok(ids?)
    }

    /// Executes a statement.
    pub(super) async fn execute(&self, sql: &str) -> Result<()> {
        let database = sea_orm::Database::connect(&self.url).await?;
        database.execute_unprepared(sql).await?;
        Ok(database.close().await?)
    }

    /// The credits that the team got.
    pub(super) const fn credits_granted(&self) -> u32 {
        self.credits
    }

    /// The credits that are left, after a check of the ledger.
    pub(super) async fn credits_left(&self) -> Result<u32> {
        let drift = self.store.credits().verify_ledger().await?;
        ensure!(drift.is_empty(), "the ledger does not balance: {drift:?}");
        let lots = self.store.credits().lots(self.team.team).await?;
        ensure!(lots.iter().all(|lot| lot.held == 0), "a credit is still held: {lots:?}");
        Ok(lots.iter().map(|lot| lot.remaining).sum())
    }

    pub(super) async fn finish(self) {
        self.store.close().await;
        if let Some(database) = self.database {
            database.drop_database().await;
        }
    }
}

impl Process {
    pub(super) async fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.spawn()?;
        let mut output = lines(child.stdout.take().context("stdout")?);
        let log = lines(child.stderr.take().context("stderr")?);
        let is_up = |lines: &Vec<String>| lines.iter().any(|line| line.starts_with("Stop with"));
        let output = match timeout(WAIT_LIMIT, output.wait_for(is_up)).await.context("the process did not start")? {
            Ok(lines) => lines.clone(),
            Err(_) => anyhow::bail!("the process exited: {:?}", log.borrow()),
        };
        let words: BTreeMap<&str, &str> =
            output.iter().filter_map(|line| line.trim().split_once(char::is_whitespace)).collect();
        let health = words.get("health").context("the address of health checks")?.trim_start();
        let http = health.strip_prefix("http://").and_then(|rest| rest.split('/').next()).context("an address")?;
        let metrics = words.get("metrics").context("the address of metrics")?.trim_start();
        let metrics = metrics.strip_prefix("http://").and_then(|rest| rest.split('/').next()).context("an address")?;
        let renderers = words.get("renderers").and_then(|rest| rest.split_whitespace().next());
        let renderers = renderers.map(str::parse).transpose()?;
        Ok(Self { http: http.parse()?, metrics: metrics.to_owned(), renderers, child, log })
    }

    /// The lines of the log so far.
    pub(super) fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    /// The address for renderers.
    pub(super) fn renderers(&self) -> SocketAddr {
        self.renderers.expect("the process is a core")
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).context("a pid")?;
        Ok(kill_process(pid, signal)?)
    }

    /// The process id.
    pub(super) fn pid(&self) -> Result<u32> {
        self.child.id().context("the process has ended")
    }

    /// Checks that the process has not ended.
    pub(super) fn check_running(&mut self) -> Result<()> {
        let ended = self.child.try_wait()?;
        ensure!(ended.is_none(), "the process has ended: {ended:?} {:?}", self.log.borrow());
        Ok(())
    }

    /// Kills the process, and waits for its end.
    pub(super) async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Sends SIGTERM, and waits for the end.
    pub(super) async fn stop(mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let status = timeout(WAIT_LIMIT, self.child.wait()).await.context("the process did not stop in time")??;
        ensure!(status.success(), "{status}: {:?}", self.log.borrow());
        Ok(())
    }

    /// Waits for a line of the log.
    pub(super) async fn wait_for_log(&mut self, text: &str) -> Result<()> {
        let has_line = |lines: &Vec<String>| lines.iter().any(|line| line.contains(text));
        let waited = timeout(WAIT_LIMIT, self.log.wait_for(has_line)).await.with_context(|| format!("no “{text}”"))?;
        waited.context("the process exited")?;
        Ok(())
    }

    /// Waits until `/readyz` answers 200.
    pub(super) async fn wait_until_ready(&self, client: &Client) -> Result<()> {
        poll("readiness", async || {
            let response = client.get(format!("http://{}/readyz", self.http)).send().await?;
            Ok(response.status().is_success().then_some(()))
        })
        .await
    }
}

/// The environment variable of a setting.
pub(super) fn variable(setting: &str) -> String {
    format!("GRABD_{}", setting.to_uppercase().replace('.', "__"))
}

/// Polls until there is a value.
pub(super) async fn poll<T>(what: &str, mut value: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let found = async {
        let mut ticks = interval(POLL);
        loop {
            ticks.tick().await;
            if let Some(value) = value().await? {
                return Ok(value);
            }
        }
    };
    timeout(WAIT_LIMIT, found).await.with_context(|| format!("{what}: not in time"))?
}

/// Runs a command that must succeed, and returns its output.
pub(super) async fn output_of(command: &mut Command) -> Result<String> {
    let output = timeout(WAIT_LIMIT, command.output()).await.context("the command did not end in time")??;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// A file in a directory, as text.
pub(super) fn file(directory: &Path, name: &str) -> (PathBuf, String) {
    let path = directory.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    (path, text)
}
