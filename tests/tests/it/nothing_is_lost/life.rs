//! One life of the service: the real binary, from its start to its end, whichever way that comes.

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

/// How long a start, an end or an announced event may take. It only bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Asynchronous grabs a team may have open here: few enough that the limit is met.
const ASYNC_QUEUE: u32 = 12;
/// Renders at the same time.
pub(super) const SLOTS: u32 = 4;
/// What the service says of a fault of its own making: a guard that had to step in, or a bug.
const OWN_FAULTS: [&str; 4] =
    ["inconsistent: ", "a rule of the schema refused", "the schema is not the one", "panicked"];

/// What outlives every life: the data directory, and where the browsers of each life run.
pub(crate) struct Home {
    dir: tempfile::TempDir,
    binary: PathBuf,
}

/// A running service.
pub(crate) struct Life {
    child: Child,
    /// The API root, ending in `/v1`.
    pub(crate) base: String,
    said: watch::Receiver<Vec<String>>,
}

/// How a start came out.
pub(crate) enum Began {
    Up(Box<Life>),
    /// It ended before it was up, and this is what it said.
    Died(Vec<String>),
}

impl Home {
    /// # Errors
    /// When the binary is not built.
    pub(crate) fn new() -> Result<Self> {
        // Test binaries lie in `deps`, beside which the programs lie, unless cargo is told to build elsewhere.
        let this = std::env::current_exe()?;
        let beside = this.ancestors().nth(2).context("a target directory")?.to_owned();
        let target = std::env::var_os("CARGO_TARGET_DIR").map(|target| PathBuf::from(target).join("debug"));
        let directories = target.into_iter().chain([beside.clone()]);
        let binary = directories.map(|directory| directory.join("grabd")).find(|binary| binary.is_file());
        let binary = binary.with_context(|| format!("no grabd in {}: cargo build -p grabd", beside.display()))?;
        let dir = tempfile::tempdir()?;
        // The browser's own user has to pass through.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
        std::fs::create_dir(dir.path().join("data"))?;
        Ok(Self { dir, binary })
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

    /// Starts the service with these failpoints armed.
    pub(crate) async fn begin(&self, failpoints: &str) -> Result<Began> {
        let mut command = Command::new(&self.binary);
        command
            .arg("serve")
            .env("GRABD_DATA_DIR", self.dir.path().join("data"))
            .env("GRABD_BROWSER__RUN_DIR", self.run_dir())
            .env("GRABD_BROWSER__SLOTS", SLOTS.to_string())
            .env("GRABD_HTTP__LISTEN", "127.0.0.1:0")
            .env("GRABD_GRPC__LISTEN", "127.0.0.1:0")
            .env("GRABD_METRICS__LISTEN", "127.0.0.1:0")
            .env("GRABD_EGRESS__ALLOW_CIDRS", format!("{ALLOWED}/32"))
            .env("GRABD_WEBHOOKS__ALLOW_HTTP", "true")
            .env("GRABD_LIMITS__REQUESTS_PER_MINUTE", "1000000")
            .env("GRABD_LIMITS__ASYNC_QUEUE", ASYNC_QUEUE.to_string())
            .env("GRABD_LOG__FILTER", "warn")
            .env("GRABD_TEST_FAILPOINTS", failpoints)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut shown = lines(child.stdout.take().context("stdout")?);
        let mut said = lines(child.stderr.take().context("stderr")?);
        let up = shown.wait_for(|lines| lines.iter().any(|line| rest(line).is_some()));
        let base = match timeout(PATIENCE, up).await.context("a start that takes this long")? {
            Ok(lines) => lines.iter().find_map(|line| rest(line)).context("where it listens")?.to_owned(),
            // Its output ended with it.
            Err(_) => {
                child.wait().await?;
                while said.changed().await.is_ok() {}
                return Ok(Began::Died(said.borrow().clone()));
            }
        };
        Ok(Began::Up(Box::new(Life { child, base, said })))
    }
}

impl Life {
    /// Ends it as a power cut would, as far as a process can tell.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.child.kill().await?;
        self.had_no_fault_of_its_own()
    }

    /// Ends it as an operator does.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).context("a pid")?;
        kill_process(pid, Signal::TERM)?;
        let status = timeout(PATIENCE, self.child.wait()).await.context("a stop that takes this long")??;
        ensure!(status.success(), "it stopped with {status}: {:?}", self.said.borrow());
        self.had_no_fault_of_its_own()
    }

    /// Waits until this many failpoints have fired.
    pub(crate) async fn fires(&mut self, count: usize) -> Result<()> {
        let enough = timeout(PATIENCE, self.said.wait_for(|lines| fired(lines) >= count)).await;
        match enough.map(|seen| seen.is_ok()) {
            Ok(true) => Ok(()),
            Ok(false) => bail!("it died without the failpoint: {:?}", self.said.borrow()),
            Err(_) => bail!("the failpoint was never reached"),
        }
    }

    /// Have this many failpoints fired?
    pub(crate) fn has_fired(&self, count: usize) -> bool {
        fired(&self.said.borrow()) >= count
    }

    /// Waits until it has died by itself.
    pub(crate) async fn dies(mut self) -> Result<ExitStatus> {
        let status = timeout(PATIENCE, self.child.wait()).await.context("a death that takes this long")??;
        self.had_no_fault_of_its_own()?;
        Ok(status)
    }

    /// Everything it says, also after its end.
    pub(crate) fn said(&self) -> watch::Receiver<Vec<String>> {
        self.said.clone()
    }

    fn had_no_fault_of_its_own(&self) -> Result<()> {
        let said = self.said.borrow();
        let fault = said.iter().find(|line| OWN_FAULTS.iter().any(|fault| line.contains(fault)));
        ensure!(fault.is_none(), "it met a fault of its own: {fault:?}");
        Ok(())
    }
}

/// How many failpoints have fired, by what was said.
pub(crate) fn fired(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.contains("a failpoint fires")).count()
}

fn rest(line: &str) -> Option<&str> {
    line.trim().strip_prefix("REST ").map(str::trim)
}

/// Every line so far; the channel closes with the stream.
fn lines(stream: impl AsyncRead + Unpin + Send + 'static) -> watch::Receiver<Vec<String>> {
    let (tell, told) = watch::channel(Vec::new());
    let mut lines = BufReader::new(stream).lines();
    // Ends with the stream, and with the test's own runtime.
    TaskTracker::new().spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            tell.send_modify(|lines| lines.push(line));
        }
    });
    told
}

/// Kills them all.
pub(crate) fn kill_all(pids: &[u32]) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        // One that is gone already is what we want.
        let _ = kill_process(pid, Signal::KILL);
    }
}
