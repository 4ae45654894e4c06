//! What is needed to start browsers.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::restart::RecyclePolicy;
use super::start::StartError;
use crate::Options;
use crate::jail::Launcher;
use crate::options::FrameMode;
use crate::process::{
    self, Cgroup, Cgroups, Mapping, Owner, ProgramCopy, RunDir, RunDirError, can_enter, find_executable,
    remove_leftovers,
};
use crate::proxy::{self, Proxy};

/// Grabs per slot that a worn browser may still take until its successor has started.
const EXTRA_GRABS_PER_SLOT: usize = 8;

/// The divisor of the file descriptor limit for the sockets of one browser's jail. Two browsers may run at a time for a
/// moment, and most other descriptors are callers' connections.
const DESCRIPTOR_DIVISOR: u64 = 8;

/// The maximum number of sockets of a jail. They are created while the browser starts, and a grab may wait for that.
const MAX_JAIL_SOCKETS: u64 = 4096;

/// The least maximum size of a browser's response, in bytes. Results of scripts are smaller.
const MIN_RESPONSE_BYTES: u64 = 16 << 20;

/// What is needed to start a browser.
pub(super) struct Setup {
    /// The installed program.
    executable: PathBuf,
    /// A copy of it, which is used instead.
    copy: Option<Arc<ProgramCopy>>,
    pub(super) owner: Owner,
    /// When browsers draw.
    pub(super) frames: FrameMode,
    pub(super) proxy: Proxy,
    pub(super) tracker: TaskTracker,
    pub(super) recycle: RecyclePolicy,
    /// What is appended to the User-Agent.
    pub(super) user_agent_token: String,
    /// Jails browsers. `None` if they run without a jail.
    pub(super) launcher: Option<Launcher>,
    /// The maximum number of grabs of a browser until its successor has started.
    pub(super) max_grabs: usize,
    /// The maximum number of sockets of one jail.
    pub(super) max_sockets: usize,
    /// The maximum size of a browser's response, in bytes.
    pub(super) max_response_bytes: usize,
    run_dir: RunDir,
    cgroups: Option<Cgroups>,
    pub(super) limits: process::Limits,
    started: AtomicU64,
}

impl Setup {
    /// Finds the executable and the user, locks the run directory and removes what an earlier run left behind.
    pub(super) async fn new(
        options: &Options,
        guard: grabd_egress::Guard,
        shutdown: &CancellationToken,
    ) -> Result<Self, StartError> {
        let executable = find_executable(options.executable.as_deref(), "").ok_or(StartError::NoExecutable)?;
        let owner = Owner::find(options.user.as_ref())?;
        for former in &options.former_run_dirs {
            remove_former_run(former).await;
        }
        let failed = |reason: String| StartError::RunDir { path: options.run_dir.clone(), reason };
        let run_dir = RunDir::lock(&options.run_dir, owner).map_err(|error| failed(error.to_string()))?;
        can_enter(owner, run_dir.path()).map_err(StartError::Barred)?;
        remove_leftovers(&run_dir).await.map_err(|error| failed(error.to_string()))?;
        let cgroups = set_up_cgroups(&options.instance).await;
        let limits = process::Limits { memory_bytes: options.memory_limit_bytes, tasks: options.process_limit };
        let tracker = TaskTracker::new();
        let proxy = Proxy::new(guard, proxy::Options::default(), tracker.clone(), shutdown.clone());
        let recycle = RecyclePolicy {
            grabs: options.recycle_after.max(1),
            age: options.recycle_age,
            rss_bytes: options.recycle_rss_bytes,
            memory_limit_bytes: options.memory_limit_bytes,
        };
        let grabs = usize::try_from(recycle.grabs).unwrap_or(usize::MAX);
        Ok(Self {
            copy: copy_program(&executable, options.program_cache.as_deref(), owner).await,
            executable,
            owner,
            frames: options.frames,
            proxy,
            tracker,
            recycle,
            user_agent_token: options.user_agent_token.clone(),
            launcher: None,
            max_grabs: grabs.saturating_add(EXTRA_GRABS_PER_SLOT * options.slots),
            max_sockets: max_sockets(options),
            max_response_bytes: max_response_bytes(options),
            run_dir,
            cgroups,
            limits,
            started: AtomicU64::new(0),
        })
    }

    /// The program of the next browser.
    pub(super) fn executable(&self) -> &Path {
        match &self.copy {
            Some(copy) if copy.is_usable() => copy.program(),
            Some(_) | None => &self.executable,
        }
    }

    /// Checks in the background whether a new browser maps its program with huge pages. If only parts of the copy are, it is
    /// written again for the next browsers.
    pub(super) fn check_mapping(&self, pid: u32) {
        let Some(copy) = self.copy.clone() else { return };
        self.tracker.spawn_blocking(move || match copy.check(pid) {
            Mapping::Huge => tracing::info!(browser.pid = pid, "the browser's program is mapped with huge pages"),
            Mapping::Unsupported => tracing::info!("this system does not map the browser's program with huge pages"),
            Mapping::Unknown => {}
            Mapping::Fragmented => {
                tracing::info!(browser.pid = pid, "parts of the browser's program are mapped with small pages");
                if let Err(why) = copy.renew() {
                    tracing::info!(%why, "the copy of the browser's program is not written again");
                }
            }
        });
    }

    /// Uses the installed program from now on. Returns false if it is used already.
    pub(super) fn use_installed(&mut self) -> bool {
        self.copy.take().is_some()
    }

    /// Returns a new directory for a browser.
    pub(super) fn next_directory(&self) -> PathBuf {
        self.run_dir.path().join(format!("browser-{}", self.started.fetch_add(1, Ordering::Relaxed)))
    }

    /// Puts a new browser's process into its own control group if there are any. If that fails, the browser's memory is
    /// watched as if there were none.
    pub(super) async fn put_into_cgroup(&self, name: &OsStr, pid: u32) -> Option<Cgroup> {
        let cgroup = match self.cgroups.as_ref()?.make(name, self.limits) {
            Ok(cgroup) => cgroup,
            Err(why) => {
                tracing::warn!(%why, browser.pid = pid, "cannot create a control group for a browser");
                return None;
            }
        };
        if let Err(why) = cgroup.add(pid) {
            tracing::warn!(%why, browser.pid = pid, "cannot move a browser into its control group");
            cgroup.end().await;
            return None;
        }
        Some(cgroup)
    }

    /// Whether the kernel shares the processors by browsers, not by threads: by their control groups, or by the sessions that
    /// the launcher makes.
    pub(super) fn weighs_browsers(&self) -> bool {
        self.cgroups.as_ref().is_some_and(Cgroups::is_weighted) || self.launcher.is_some() && process::weighs_sessions()
    }

    /// Removes the run directory and the control groups after the last browser has ended.
    pub(super) async fn clear(&self) {
        // Empty by now. If it is not, the next start clears it.
        drop(tokio::fs::remove_dir(self.run_dir.path()).await);
        if let Some(cgroups) = &self.cgroups {
            cgroups.remove();
        }
    }
}

/// Prepares the copy of the program. Without one, browsers run the installed program.
async fn copy_program(executable: &Path, cache: Option<&Path>, owner: Owner) -> Option<Arc<ProgramCopy>> {
    let (executable, cache) = (executable.to_owned(), cache?.to_owned());
    let path = cache.display().to_string();
    let prepared = tokio::task::spawn_blocking(move || ProgramCopy::prepare(&executable, &cache, owner)).await.ok()?;
    match prepared {
        Ok(copy) => Some(Arc::new(copy)),
        Err(why) => {
            tracing::info!(%why, path, "the browser's program is not copied for huge pages");
            None
        }
    }
}

/// The largest image in base64 and 64 KB around it.
fn max_response_bytes(options: &Options) -> usize {
    let image = options.image_max_bytes.div_ceil(3).saturating_mul(4).saturating_add(64 << 10);
    usize::try_from(image.max(MIN_RESPONSE_BYTES)).unwrap_or(usize::MAX)
}

/// Allows at least one tab for every slot, whatever the descriptor limit is.
fn max_sockets(options: &Options) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let share = usize::try_from((limit / DESCRIPTOR_DIVISOR).min(MAX_JAIL_SOCKETS)).unwrap_or(usize::MAX);
    share.max(2 * (options.slots + options.spare_contexts) + 1)
}

/// Removes what an earlier run left in another directory. Errors do not prevent this run.
async fn remove_former_run(path: &Path) {
    let cleared = match RunDir::lock_existing(path) {
        Ok(held) => match remove_leftovers(&held).await {
            Ok(()) => tokio::fs::remove_dir(held.path()).await,
            failed => failed,
        },
        // A directory that is missing, in use or owned by someone else has no leftovers of ours.
        Err(RunDirError::Io(_) | RunDirError::Held | RunDirError::Foreign(_)) => return,
    };
    match cleared {
        Ok(()) => tracing::info!(path = %path.display(), "removed the files of an earlier run"),
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "cannot remove the files of an earlier run");
        }
    }
}

/// Sets up control groups. Logs at start if the kernel does not enforce the browsers' limits.
async fn set_up_cgroups(instance: &str) -> Option<Cgroups> {
    match Cgroups::set_up(instance).await {
        Ok(cgroups) => Some(cgroups),
        Err(why) => {
            tracing::warn!(%why, "browsers run without control groups: their memory is watched instead");
            None
        }
    }
}
