//! The service process: the real binary, from start to exit.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use grabd_tests::harness::ALLOWED;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// Time limit for a start, an exit or an event. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(60);
/// Open asynchronous grabs per team: few enough that the limit is reached.
const ASYNC_QUEUE: u32 = 12;
/// Log messages that reveal a bug in the service: a rejected inconsistency or a panic.
const FAULT_MESSAGES: [&str; 4] =
    ["inconsistent: ", "a schema constraint rejected", "the schema does not match", "panicked"];

/// The directories that all service processes share: the data directory, and the run directory of the browsers.
pub(crate) struct ServiceDirs {
    dir: tempfile::TempDir,
    binary: PathBuf,
    /// Concurrent captures of a service.
    slots: u32,
}

/// A running service process.
pub(crate) struct ServiceProcess {
    child: Child,
    /// The API root, ending in `/v1`.
    pub(crate) base: String,
    log: watch::Receiver<Vec<String>>,
}

/// The result of a start.
pub(crate) enum StartResult {
    Running(Box<ServiceProcess>),
    /// The process exited before it was ready. Contains its log.
    Exited(Vec<String>),
}

impl ServiceDirs {
    /// # Errors
    /// If the binary is not built.
    pub(crate) fn new(slots: u32) -> Result<Self> {
        let binary = grabd_binary()?;
        let dir = tempfile::tempdir()?;
        // The user that runs the browser must be able to traverse the directory.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
        std::fs::create_dir(dir.path().join("data"))?;
        Ok(Self { dir, binary, slots })
    }

    pub(crate) fn database_url(&self) -> String {
        format!("sqlite://{}", self.dir.path().join("data/grabd.db").display())
    }

    pub(crate) fn images(&self) -> PathBuf {
        self.dir.path().join("data/images")
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    /// Starts the service with these failpoints.
    pub(crate) async fn start(&self, failpoints: &str) -> Result<StartResult> {
        let mut command = Command::new(&self.binary);
        command
            .arg("serve")
            .env("GRABD_DATA_DIR", self.dir.path().join("data"))
            .env("GRABD_BROWSER__RUN_DIR", self.run_dir())
            .env("GRABD_BROWSER__SLOTS", self.slots.to_string())
            .env("GRABD_HTTP__LISTEN", "127.0.0.1:0")
            .env("GRABD_GRPC__LISTEN", "127.0.0.1:0")
            .env("GRABD_METRICS__LISTEN", "127.0.0.1:0")
            .env("GRABD_EGRESS__ALLOW_CIDRS", format!("{ALLOWED}/32"))
            .env("GRABD_WEBHOOKS__ALLOW_HTTP", "true")
            .env("GRABD_LIMITS__REQUESTS_PER_MINUTE", "1000000")
            .env("GRABD_ABUSE__FAILED_SECONDS_PER_MINUTE_UNPAID", "1000000")
            .env("GRABD_LIMITS__ASYNC_QUEUE", ASYNC_QUEUE.to_string())
            .env("GRABD_LOG__FILTER", "warn")
            .env("GRABD_TEST_FAILPOINTS", failpoints)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut stdout = lines(child.stdout.take().context("stdout")?);
        let mut log = lines(child.stderr.take().context("stderr")?);
        let up = stdout.wait_for(|lines| lines.iter().any(|line| rest_address(line).is_some()));
        let base = match timeout(WAIT_LIMIT, up).await.context("the service did not start in time")? {
            Ok(lines) => {
                lines.iter().find_map(|line| rest_address(line)).context("no REST address in the output")?.to_owned()
            }
            // The output ends when the process exits.
            Err(_) => {
                child.wait().await?;
                while log.changed().await.is_ok() {}
                return Ok(StartResult::Exited(log.borrow().clone()));
            }
        };
        Ok(StartResult::Running(Box::new(ServiceProcess { child, base, log })))
    }
}

impl ServiceProcess {
    /// Kills the process, like a power failure.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.child.kill().await?;
        self.check_log()
    }

    /// Stops the service with SIGTERM, as an operator does.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).context("a pid")?;
        kill_process(pid, Signal::TERM)?;
        let status = timeout(WAIT_LIMIT, self.child.wait()).await.context("the service did not stop in time")??;
        ensure!(status.success(), "the service stopped with {status}: {:?}", self.log.borrow());
        self.check_log()
    }

    /// Waits until this many failpoints have fired.
    pub(crate) async fn wait_for_failpoints(&mut self, count: usize) -> Result<()> {
        let enough = timeout(WAIT_LIMIT, self.log.wait_for(|lines| fired(lines) >= count)).await;
        match enough.map(|seen| seen.is_ok()) {
            Ok(true) => Ok(()),
            Ok(false) => bail!("the service exited before the failpoint fired: {:?}", self.log.borrow()),
            Err(_) => bail!("the failpoint was never reached"),
        }
    }

    /// Whether this many failpoints have fired.
    pub(crate) fn has_fired(&self, count: usize) -> bool {
        fired(&self.log.borrow()) >= count
    }

    /// Waits until the process has exited by itself.
    pub(crate) async fn wait_for_exit(mut self) -> Result<ExitStatus> {
        let status = timeout(WAIT_LIMIT, self.child.wait()).await.context("the service did not exit in time")??;
        self.check_log()?;
        Ok(status)
    }

    /// The log lines, also after the exit.
    pub(crate) fn log(&self) -> watch::Receiver<Vec<String>> {
        self.log.clone()
    }

    fn check_log(&self) -> Result<()> {
        let log = self.log.borrow();
        let fault = log.iter().find(|line| FAULT_MESSAGES.iter().any(|fault| line.contains(fault)));
        ensure!(fault.is_none(), "the log contains a fault: {fault:?}");
        Ok(())
    }
}

/// Counts the failpoints that have fired, by the log.
pub(crate) fn fired(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.contains("a failpoint fires")).count()
}

/// The program.
///
/// # Errors
/// If it is not built.
pub(crate) fn grabd_binary() -> Result<PathBuf> {
    // Test binaries are in `deps` below the directory with the programs, unless `CARGO_TARGET_DIR` is set.
    let this = std::env::current_exe()?;
    let target_dir = this.ancestors().nth(2).context("a target directory")?.to_owned();
    let target = std::env::var_os("CARGO_TARGET_DIR").map(|target| PathBuf::from(target).join("debug"));
    let directories = target.into_iter().chain([target_dir.clone()]);
    let binary = directories.map(|directory| directory.join("grabd")).find(|binary| binary.is_file());
    binary.with_context(|| format!("no grabd in {}: cargo build -p grabd", target_dir.display()))
}

fn rest_address(line: &str) -> Option<&str> {
    line.trim().strip_prefix("REST ").map(str::trim)
}

/// Collects the lines of a stream. The channel closes with the stream.
pub(crate) fn lines(stream: impl AsyncRead + Unpin + Send + 'static) -> watch::Receiver<Vec<String>> {
    let (sender, receiver) = watch::channel(Vec::new());
    let mut lines = BufReader::new(stream).lines();
    // Ends with the stream, at the latest with the test's runtime.
    TaskTracker::new().spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            sender.send_modify(|lines| lines.push(line));
        }
    });
    receiver
}

/// Kills all these processes.
pub(crate) fn kill_all(pids: &[u32]) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        // The process may already be gone.
        let _ = kill_process(pid, Signal::KILL);
    }
}
