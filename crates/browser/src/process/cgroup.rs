//! Kernel-enforced limits: a control group (cgroup v2) for every browser, where groups can be created.
//!
//! A service that may manage its own group, under systemd with `Delegate=yes` or as root, moves into a child group
//! `service`, since a group that limits its children must not contain processes, and creates `browsers-…/browser-N`
//! next to it. Elsewhere browsers run without groups, for the reason in [`Unavailable`].

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

/// Controllers that must be available.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// The controller that weighs groups. Without it, the niceness of their processes has to do.
const WEIGHT_CONTROLLER: &str = "cpu";

/// The weight of all browsers together. Groups usually have 100, as has that of the service.
const WEIGHT: u32 = 33;

/// Killed processes end within milliseconds, unless their disk hangs.
const DEATH_LIMIT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Changes of `cgroup.events` to wait for, before removing a group is left to the next start.
const MAX_POLLS: u32 = 100;

/// The limits of one browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Memory of all its processes, in bytes.
    pub(crate) memory_bytes: u64,
    /// Processes and threads.
    pub(crate) tasks: u32,
}

/// A limit that a browser exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// Its memory, so that the kernel ended one of its processes.
    Memory,
    /// Its processes and threads, so that the kernel refused one.
    Tasks,
}

/// Why groups cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    /// Not Linux, or an old kernel.
    #[error("cgroup v2 is not mounted")]
    NotMounted,
    /// In a hybrid setup cgroup v1 uses the controllers; or the parent group does not delegate them.
    #[error("cgroup v2 does not offer {0} here")]
    NoController(&'static str),
    /// The group belongs to a login session or a whole container.
    #[error("other processes share this service's group {0}; give it one of its own (systemd: Delegate=yes)")]
    Shared(PathBuf),
    /// Not delegated, or mounted read-only.
    #[error("{path} cannot be changed ({source}); delegate the service's group (systemd: Delegate=yes)")]
    Refused {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The parent group of this service's browsers.
#[derive(Debug)]
pub(crate) struct Cgroups {
    path: PathBuf,
    is_weighted: bool,
}

/// The group of one browser.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
}

impl Cgroups {
    /// Creates the parent group, and ends groups that an earlier run left in it. `name` must be unique to this service.
    pub(crate) async fn set_up(name: &str) -> Result<Self, Unavailable> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let own =
            own_group(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup")).ok_or(Unavailable::NotMounted)?;
        let available = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
        if let Some(missing) = CONTROLLERS.into_iter().find(|name| !available.split_whitespace().any(|is| is == *name))
        {
            return Err(Unavailable::NoController(missing));
        }
        move_to_child_group(&own)?;
        enable_controllers(&own)?;
        let path = own.join(format!("browsers-{name}"));
        make_directory(&path)?;
        let is_weighted = enable_weights(&own) && write(&path.join("cpu.weight"), &WEIGHT.to_string()).is_ok();
        for left in fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if left.is_dir() {
                tracing::warn!(group = %left.display(), "ending a browser group left by an earlier run");
                Cgroup { path: left }.end().await;
            }
        }
        enable_controllers(&path)?;
        // Browsers share their weight alike, however many threads each has.
        let is_weighted = is_weighted && enable_weights(&path);
        Ok(Self { path, is_weighted })
    }

    /// Whether the processors are shared by browsers, not by threads.
    pub(crate) fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    /// Creates an empty group for one browser.
    pub(crate) fn make(&self, name: &OsStr, limits: Limits) -> Result<Cgroup, Unavailable> {
        let group = Cgroup { path: self.path.join(name) };
        make_directory(&group.path)?;
        write(&group.path.join("memory.max"), &limits.memory_bytes.to_string())?;
        // Kill only the process that exceeded the limit, not the whole group.
        write(&group.path.join("memory.oom.group"), "0")?;
        write(&group.path.join("pids.max"), &limits.tasks.to_string())?;
        // The file does not exist without swap, where it is not needed.
        let _ = fs::write(group.path.join("memory.swap.max"), "0");
        Ok(group)
    }

    /// Removes the parent group after all browser groups are removed.
    pub(crate) fn remove(&self) {
        // A group that is not empty is cleared at the next start.
        let _ = fs::remove_dir(&self.path);
    }
}

impl Cgroup {
    /// The limit that its processes have exceeded, if any.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        let count = |file: &str, event: &str| {
            let events = fs::read_to_string(self.path.join(file)).unwrap_or_default();
            let found = events.lines().find_map(|line| line.strip_prefix(event)?.trim().parse::<u64>().ok());
            found.unwrap_or(0)
        };
        if count("memory.events", "oom_kill ") > 0 {
            return Some(Exceeded::Memory);
        }
        (count("pids.events", "max ") > 0).then_some(Exceeded::Tasks)
    }

    /// Moves a process into the group. Its future children are included.
    pub(crate) fn add(&self, pid: u32) -> Result<(), Unavailable> {
        write(&self.path.join("cgroup.procs"), &pid.to_string())
    }

    /// Kills every process in the group, and removes it.
    pub(crate) async fn end(self) {
        if fs::write(self.path.join("cgroup.kill"), "1").is_err() {
            // Linux before 5.14.
            members(&self.path)
                .into_iter()
                .filter_map(Pid::from_raw)
                .for_each(|pid| _ = kill_process(pid, Signal::KILL));
        }
        let path = self.path.clone();
        // The task has its own time limit.
        let _ = tokio::task::spawn_blocking(move || wait_until_empty(&path)).await;
        if let Err(error) = fs::remove_dir(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, group = %self.path.display(), "a browser's group cannot be removed");
        }
    }
}

/// Whether the kernel shares the processors by sessions (`autogroup`), not by threads. It does so only outside of control
/// groups for processors.
pub(crate) fn weighs_sessions() -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let groups = read("/proc/self/cgroup");
    let own = own_group(&read("/proc/self/mountinfo"), &groups);
    let is_in_group = own.is_some_and(|own| own.join("cpu.weight").exists()) || in_former_group(&groups);
    read("/proc/sys/kernel/sched_autogroup_enabled").trim() == "1" && !is_in_group
}

/// Whether `/proc/self/cgroup` has a group of cgroup v1 for processors, other than the root.
fn in_former_group(groups: &str) -> bool {
    groups.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        controllers.split(',').any(|name| name == WEIGHT_CONTROLLER) && group != "/"
    })
}

/// The directory of this process's group, from `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn own_group(mounts: &str, groups: &str) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        // The mount may show only a part of the hierarchy.
        let inside = Path::new("/").join(group).strip_prefix(root).ok()?.to_owned();
        system.starts_with("cgroup2 ").then(|| Path::new(point).join(inside))
    })
}

/// Moves this process out of its group: a group that limits its children must not contain processes, except the root.
fn move_to_child_group(own: &Path) -> Result<(), Unavailable> {
    let is_root = !own.join("cgroup.type").exists();
    let enabled = fs::read_to_string(own.join("cgroup.subtree_control")).unwrap_or_default();
    if is_root || CONTROLLERS.iter().all(|name| enabled.split_whitespace().any(|is| is == *name)) {
        return Ok(());
    }
    let own_pid = std::process::id();
    if members(own).into_iter().any(|pid| u32::try_from(pid) != Ok(own_pid)) {
        return Err(Unavailable::Shared(own.to_owned()));
    }
    let service = own.join("service");
    make_directory(&service)?;
    write(&service.join("cgroup.procs"), &own_pid.to_string())
}

fn enable_controllers(group: &Path) -> Result<(), Unavailable> {
    write(&group.join("cgroup.subtree_control"), &CONTROLLERS.map(|name| format!("+{name}")).join(" "))
}

/// Enables the weights of the groups in a group. Returns false if they are not available.
fn enable_weights(group: &Path) -> bool {
    write(&group.join("cgroup.subtree_control"), &format!("+{WEIGHT_CONTROLLER}")).is_ok()
}

fn members(group: &Path) -> Vec<i32> {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    listed.lines().filter_map(|line| line.parse().ok()).collect()
}

/// A change of `cgroup.events` is signalled as `POLLPRI`. The file must be read before polling.
fn wait_until_empty(group: &Path) -> io::Result<()> {
    for _ in 0..MAX_POLLS {
        let events = fs::File::open(group.join("cgroup.events"))?;
        let seen = io::read_to_string(&events)?;
        if seen.lines().any(|line| line == "populated 0")
            || poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&DEATH_LIMIT))? == 0
        {
            break;
        }
    }
    Ok(())
}

fn make_directory(path: &Path) -> Result<(), Unavailable> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Unavailable::Refused { path: path.to_owned(), source: error })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes to an existing kernel file, without creating it.
fn write(path: &Path, text: &str) -> Result<(), Unavailable> {
    let opened = fs::OpenOptions::new().write(true).open(path);
    opened
        .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
        .map_err(|source| Unavailable::Refused { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    #[test]
    fn own_group_is_found_for_every_kind_of_mount() {
        let unified = "29 22 0:25 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let mixed = "30 29 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            31 29 0:27 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n";
        let part = "29 22 0:25 /docker/4711 /sys/fs/cgroup ro shared:4 - cgroup2 cgroup rw\n";
        for (mounts, groups, own) in [
            (unified, "0::/system.slice/grabd.service\n", Some("/sys/fs/cgroup/system.slice/grabd.service")),
            (unified, "0::/\n", Some("/sys/fs/cgroup/")),
            (mixed, "4:memory:/user\n0::/a\n", Some("/sys/fs/cgroup/unified/a")),
            (part, "0::/docker/4711/b\n", Some("/sys/fs/cgroup/b")),
            (part, "0::/elsewhere\n", None),
            ("", "0::/\n", None),
            (unified, "4:memory:/user\n", None),
        ] {
            assert_eq!(own_group(mounts, groups).as_deref(), own.map(Path::new), "{mounts} {groups}");
        }
    }

    /// A parent group for this test, if groups can be created.
    fn test_group() -> Option<PathBuf> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let own = own_group(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))?;
        let test_group = own.join(format!("test-{}", std::process::id()));
        fs::create_dir(&test_group).is_ok().then_some(test_group)
    }

    fn has_exited(child: &mut Child) -> bool {
        child.try_wait().unwrap().is_some()
    }

    #[tokio::test]
    async fn ending_a_group_kills_all_its_processes() {
        // Skipped where groups cannot be created.
        let Some(test_group) = test_group() else { return };
        let start = || Command::new("setsid").args(["-w", "sleep", "60"]).spawn().unwrap();
        let (mut inside, mut outside) = (start(), start());
        let group = Cgroup { path: test_group.clone() };
        group.add(inside.id()).unwrap();
        group.end().await;
        assert!(!test_group.exists());
        assert!(has_exited(&mut inside));
        assert!(!has_exited(&mut outside));
        outside.kill().unwrap();
        outside.wait().unwrap();
    }

    #[tokio::test]
    async fn group_enforces_the_requested_limits() {
        // Where groups cannot be used, only the error text is checked.
        let groups = match Cgroups::set_up(&format!("test-{}", std::process::id())).await {
            Ok(groups) => groups,
            Err(why) => return assert!(!why.to_string().is_empty(), "{why:?}"),
        };
        let limits = Limits { memory_bytes: 64 << 20, tasks: 10 };
        let group = groups.make(OsStr::new("browser-0"), limits).unwrap();
        let script = "read go; (head -c 300000000 /dev/zero | tail -c 299999999 >/dev/null; echo $?); echo lives on";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        group.add(child.id()).unwrap();
        drop(child.stdin.take());
        let output = io::read_to_string(child.stdout.take().unwrap()).unwrap();
        assert!(output.contains("137") && output.contains("lives on"), "{output}");
        child.wait().unwrap();
        assert_eq!(fs::read_to_string(group.path.join("pids.max")).unwrap().trim(), "10");
        let path = group.path.clone();
        group.end().await;
        groups.remove();
        assert!(!path.exists() && !groups.path.exists());
    }

    #[test]
    fn exceeded_limit_is_read_from_the_events_of_the_group() {
        let directory = tempfile::tempdir().unwrap();
        let group = Cgroup { path: directory.path().to_owned() };
        assert_eq!(group.exceeded(), None, "an old kernel has no such files");
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write("memory.events", "low 0\nhigh 0\nmax 5\noom 0\noom_kill 0\noom_group_kill 0\n");
        write("pids.events", "max 0\n");
        assert_eq!(group.exceeded(), None);
        write("pids.events", "max 3\n");
        assert_eq!(group.exceeded(), Some(Exceeded::Tasks));
        write("memory.events", "low 0\nhigh 0\nmax 5\noom 1\noom_kill 1\noom_group_kill 0\n");
        assert_eq!(group.exceeded(), Some(Exceeded::Memory));
    }

    #[test]
    fn group_of_cgroup_v1_for_processors_is_recognized() {
        for (groups, expected) in [
            ("4:cpu,cpuacct:/docker/4711\n0::/\n", true),
            ("3:cpuset:/a\n2:cpuacct:/a\n1:cpu:/\n0::/x\n", false),
            ("0::/system.slice\n", false),
            ("", false),
        ] {
            assert_eq!(in_former_group(groups), expected, "{groups}");
        }
    }

    #[test]
    fn weights_are_enabled_only_where_the_kernel_offers_them() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!enable_weights(directory.path()));
        fs::write(directory.path().join("cgroup.subtree_control"), "").unwrap();
        assert!(enable_weights(directory.path()));
        assert_eq!(fs::read_to_string(directory.path().join("cgroup.subtree_control")).unwrap(), "+cpu");
    }
}
