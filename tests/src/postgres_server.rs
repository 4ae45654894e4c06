//! PostgreSQL servers of a test: a primary, and a standby that receives its changes and can be promoted.
//!
//! Tests that need only a database use the server that all tests share. These servers are for tests that kill them.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sea_orm::{ConnectionTrait, Database, DbBackend, Statement};
use tokio::process::{Child, Command};
use tokio::time::{interval, timeout};

use crate::process_tree::ProcessTree;

/// The database of a new server.
const DATABASE: &str = "grabd";
/// Time limit for a program and for each start. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(60);
/// Poll interval.
const POLL: Duration = Duration::from_millis(50);

/// A server on loopback. It is killed when dropped.
pub struct PostgresServer {
    directory: tempfile::TempDir,
    process: Child,
    port: u16,
}

impl PostgresServer {
    /// Starts a server with an empty database.
    ///
    /// # Errors
    /// If PostgreSQL is not installed, or does not start.
    pub async fn start() -> Result<Self> {
        let directory = new_directory()?;
        let data = data_of(&directory);
        run(program("initdb").arg("-D").arg(&data).args(["-A", "trust", "-U", DATABASE, "-E", "UTF8", "-N"])).await?;
        let server = Self::start_in(directory).await?;
        server.execute_in("postgres", &format!("CREATE DATABASE {DATABASE}")).await?;
        Ok(server)
    }

    /// Starts a standby of this server. From now on, each commit waits until the standby has it.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start_standby(&self) -> Result<Self> {
        let directory = new_directory()?;
        let mut copy = program("pg_basebackup");
        copy.arg("-D").arg(data_of(&directory)).args(["-h", "127.0.0.1", "-U", DATABASE, "-R", "-N", "-c", "fast"]);
        run(copy.args(["-p", &self.port.to_string()])).await?;
        let standby = Self::start_in(directory).await?;
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await?;
        self.execute("SELECT pg_reload_conf()").await?;
        let synchronous = "SELECT count(*) AS n FROM pg_stat_replication WHERE sync_state = 'sync'";
        self.poll("a synchronous standby", synchronous, |count| count == 1).await?;
        Ok(standby)
    }

    async fn start_in(directory: tempfile::TempDir) -> Result<Self> {
        let (process, port) = start_on_a_port(directory.path())?;
        let mut server = Self { directory, process, port };
        // Another program may have taken the port meanwhile; then another one is tried.
        for _ in 0..8 {
            if server.wait_until_up().await? {
                return Ok(server);
            }
            (server.process, server.port) = start_on_a_port(server.directory.path())?;
        }
        anyhow::bail!("PostgreSQL does not start: {}", log_of(&server.directory))
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The URL of the database.
    pub fn url(&self) -> String {
        Self::url_of(&[self.address()])
    }

    /// The URL of the database on these servers, of which one accepts writes.
    pub fn url_of(servers: &[SocketAddr]) -> String {
        let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
        format!("postgres://{DATABASE}@{}/{DATABASE}", servers.join(","))
    }

    /// The process id of the server.
    ///
    /// # Errors
    /// If it has ended.
    pub fn pid(&self) -> Result<u32> {
        self.process.id().context("the server has ended")
    }

    /// Kills the server with all its processes, like a power failure.
    ///
    /// # Errors
    /// If it has ended already.
    pub async fn kill(&mut self) -> Result<()> {
        for pid in ProcessTree(self.pid()?).pids() {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("a pid")?;
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        timeout(WAIT_LIMIT, self.process.wait()).await.context("the server was not killed")??;
        Ok(())
    }

    /// Stops the server as `pg_ctl -m immediate` does: it ends all connections, and recovers at the next start.
    ///
    /// # Errors
    /// If it does not end.
    pub async fn stop_immediately(&mut self) -> Result<()> {
        let pid = i32::try_from(self.pid()?).ok().and_then(Pid::from_raw).context("a pid")?;
        kill_process(pid, Signal::QUIT)?;
        timeout(WAIT_LIMIT, self.process.wait()).await.context("the server did not stop")??;
        Ok(())
    }

    /// Starts the server again after it was stopped or killed, at the same port, and waits until it accepts connections.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start_again(&mut self) -> Result<()> {
        let pid_file = data_of(&self.directory).join("postmaster.pid");
        if pid_file.exists() {
            std::fs::remove_file(pid_file)?;
        }
        self.process = spawn(self.directory.path(), self.port)?;
        ensure!(self.wait_until_up().await?, "PostgreSQL does not start: {}", log_of(&self.directory));
        Ok(())
    }

    /// Makes a standby accept writes.
    ///
    /// # Errors
    /// If it does not.
    pub async fn promote(&self) -> Result<()> {
        run(program("pg_ctl").arg("-D").arg(data_of(&self.directory)).args(["-W", "promote"])).await
    }

    /// Executes a statement in the database.
    ///
    /// # Errors
    /// If that fails.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        self.execute_in(DATABASE, sql).await
    }

    async fn execute_in(&self, database: &str, sql: &str) -> Result<()> {
        let connection = Database::connect(format!("postgres://{DATABASE}@{}/{database}", self.address())).await?;
        connection.execute_unprepared(sql).await?;
        Ok(connection.close().await?)
    }

    /// Waits until a number that a query returns as `n` is as expected.
    async fn poll(&self, what: &str, sql: &str, is_expected: impl Fn(i64) -> bool) -> Result<()> {
        let connection = Database::connect(self.url()).await?;
        let reached = async {
            let mut ticks = interval(POLL);
            loop {
                ticks.tick().await;
                let row = connection.query_one_raw(Statement::from_string(DbBackend::Postgres, sql)).await?;
                if is_expected(row.context("a row")?.try_get("", "n")?) {
                    return anyhow::Ok(());
                }
            }
        };
        timeout(WAIT_LIMIT, reached).await.with_context(|| format!("{what}: not in time"))??;
        Ok(connection.close().await?)
    }

    /// Waits until the server accepts connections. Returns `false` if it has exited.
    async fn wait_until_up(&mut self) -> Result<bool> {
        let up = async {
            let mut ticks = interval(POLL);
            loop {
                ticks.tick().await;
                if self.process.try_wait()?.is_some() {
                    return anyhow::Ok(false);
                }
                let mut ready = program("pg_isready");
                ready.args(["-q", "-h", "127.0.0.1", "-d", "postgres", "-U", DATABASE, "-p", &self.port.to_string()]);
                if ready.status().await?.success() {
                    return Ok(true);
                }
            }
        };
        timeout(WAIT_LIMIT, up).await.context("PostgreSQL did not start in time")?
    }
}

fn start_on_a_port(directory: &Path) -> Result<(Child, u16)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    Ok((spawn(directory, port)?, port))
}

/// A directory that the server's user owns, in memory if possible: nothing outlives the test.
fn new_directory() -> Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let directory = tempfile::Builder::new().prefix("grabd-postgres-").tempdir_in(parent)?;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o711))?;
    let data = data_of(&directory);
    std::fs::create_dir(&data)?;
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700))?;
    if rustix::process::geteuid().is_root() {
        let owned = std::process::Command::new("chown").arg("postgres").arg(&data).status()?;
        ensure!(owned.success(), "the directory of the server cannot be given to the user postgres");
    }
    Ok(directory)
}

fn data_of(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("data")
}

fn log_of(directory: &tempfile::TempDir) -> String {
    std::fs::read_to_string(directory.path().join("log")).unwrap_or_default()
}

/// Starts the server itself, not `pg_ctl`, so that it ends with the test.
fn spawn(directory: &Path, port: u16) -> Result<Child> {
    let log = std::fs::File::options().create(true).append(true).open(directory.join("log"))?;
    let mut server = program("postgres");
    server.arg("-D").arg(directory.join("data")).args(["-h", "127.0.0.1", "-k", "", "-F", "-p", &port.to_string()]);
    for setting in ["full_page_writes=off", "max_connections=300", "hot_standby=on", "wal_keep_size=64MB"] {
        server.args(["-c", setting]);
    }
    // Shared memory in the directory, which is deleted: a server that is killed leaves it behind.
    server.args(["-c", "dynamic_shared_memory_type=mmap"]);
    Ok(server.stdout(log.try_clone()?).stderr(log).kill_on_drop(true).spawn()?)
}

/// A program of the server, which does not run as root. It is killed when its parent dies.
fn program(name: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    }
    command.arg(programs().join(name)).current_dir("/").env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Debian installs the server's programs outside of the path, in one directory per version.
fn programs() -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed.map(|version| version.path().join("bin")).filter(|bin| bin.join("initdb").exists()).max();
    newest.unwrap_or_default()
}

async fn run(command: &mut Command) -> Result<()> {
    let output = command.stderr(Stdio::piped()).output();
    let output = timeout(WAIT_LIMIT, output).await.context("a program of PostgreSQL did not end")?;
    let output = output.context("PostgreSQL is missing: run script/setup --tests")?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
