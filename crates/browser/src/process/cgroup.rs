//! Limits that the kernel keeps: a control group (cgroup v2) for every browser, where the system lets us make one.
//!
//! A service that may manage its own group, under systemd with `Delegate=yes` or as root, moves into a group `service`
//! below it, since a group with limits for its children holds no processes itself, and makes `browsers-…/browser-N`
//! beside that. Everywhere else browsers run without, which [`Unavailable`] explains.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

/// What the kernel has to limit for a group to be worth making.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// Killed processes are gone within milliseconds, unless their disk hangs.
const DEATH_LIMIT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Looks at `cgroup.events`, each after a change of it, before a group is left to the next start.
const LOOKS: u32 = 100;

/// What one browser may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Memory of all its processes, in bytes.
    pub(crate) memory_bytes: u64,
    /// Processes and threads.
    pub(crate) tasks: u32,
}

/// Why browsers get no groups here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    /// Another kind of system, or an old one.
    #[error("cgroup v2 is not mounted")]
    NotMounted,
    /// In a mixed system cgroup v1 has them; or the group above did not pass them on.
    #[error("cgroup v2 does not offer {0} here")]
    NoController(&'static str),
    /// A group that is somebody's session, or a container's whole.
    #[error("other processes share this service's group {0}; give it one of its own (systemd: Delegate=yes)")]
    Shared(PathBuf),
    /// Not delegated, or mounted read-only.
    #[error("{path} cannot be changed ({source}); delegate the service's group (systemd: Delegate=yes)")]
    Refused {
        /// What was to be changed.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The group that holds the groups of this service's browsers.
#[derive(Debug)]
pub(crate) struct Cgroups {
    path: PathBuf,
}

/// A browser's group.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
}

impl Cgroups {
    /// Makes the group, and ends what an earlier run left in one of that name. `name` is nobody else's.
    pub(crate) async fn set_up(name: &str) -> Result<Self, Unavailable> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let own =
            own_group(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup")).ok_or(Unavailable::NotMounted)?;
        let offered = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
        if let Some(missing) = CONTROLLERS.into_iter().find(|name| !offered.split_whitespace().any(|is| is == *name)) {
            return Err(Unavailable::NoController(missing));
        }
        make_room(&own)?;
        pass_on_controllers(&own)?;
        let path = own.join(format!("browsers-{name}"));
        make_directory(&path)?;
        for left in fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if left.is_dir() {
                tracing::warn!(group = %left.display(), "ending the group of a browser that an earlier run left behind");
                Cgroup { path: left }.end().await;
            }
        }
        pass_on_controllers(&path)?;
        Ok(Self { path })
    }

    /// A group for one browser, without anybody in it yet.
    pub(crate) fn make(&self, name: &OsStr, limits: Limits) -> Result<Cgroup, Unavailable> {
        let group = Cgroup { path: self.path.join(name) };
        make_directory(&group.path)?;
        write(&group.path.join("memory.max"), &limits.memory_bytes.to_string())?;
        // The page that asked for too much goes, its neighbours stay.
        write(&group.path.join("memory.oom.group"), "0")?;
        write(&group.path.join("pids.max"), &limits.tasks.to_string())?;
        // Not there without swap, where it is not needed.
        let _ = fs::write(group.path.join("memory.swap.max"), "0");
        Ok(group)
    }

    /// Removes the group once the browsers' ones are gone.
    pub(crate) fn remove(&self) {
        // One that is not empty is cleared by the next start.
        let _ = fs::remove_dir(&self.path);
    }
}

impl Cgroup {
    /// Puts a process into the group; what it starts from then on is in it, too.
    pub(crate) fn adopt(&self, pid: u32) -> Result<(), Unavailable> {
        write(&self.path.join("cgroup.procs"), &pid.to_string())
    }

    /// Ends everybody in the group, whatever they have become, and removes it.
    pub(crate) async fn end(self) {
        if fs::write(self.path.join("cgroup.kill"), "1").is_err() {
            // Linux before 5.14.
            members(&self.path)
                .into_iter()
                .filter_map(Pid::from_raw)
                .for_each(|pid| _ = kill_process(pid, Signal::KILL));
        }
        let path = self.path.clone();
        // The task ends by its own limit at the latest.
        let _ = tokio::task::spawn_blocking(move || wait_until_empty(&path)).await;
        if let Err(error) = fs::remove_dir(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, group = %self.path.display(), "a browser's group cannot be removed");
        }
    }
}

/// The directory of the group that this process is in, out of `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn own_group(mounts: &str, groups: &str) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        // What is mounted may be a part of the tree.
        let inside = Path::new("/").join(group).strip_prefix(root).ok()?.to_owned();
        system.starts_with("cgroup2 ").then(|| Path::new(point).join(inside))
    })
}

/// Empties our own group of ourselves: a group that limits its children holds no processes. Only the root may do both.
fn make_room(own: &Path) -> Result<(), Unavailable> {
    let is_root = !own.join("cgroup.type").exists();
    let passes_on = fs::read_to_string(own.join("cgroup.subtree_control")).unwrap_or_default();
    if is_root || CONTROLLERS.iter().all(|name| passes_on.split_whitespace().any(|is| is == *name)) {
        return Ok(());
    }
    let ourselves = std::process::id();
    if members(own).into_iter().any(|pid| u32::try_from(pid) != Ok(ourselves)) {
        return Err(Unavailable::Shared(own.to_owned()));
    }
    let service = own.join("service");
    make_directory(&service)?;
    write(&service.join("cgroup.procs"), &ourselves.to_string())
}

fn pass_on_controllers(group: &Path) -> Result<(), Unavailable> {
    write(&group.join("cgroup.subtree_control"), &CONTROLLERS.map(|name| format!("+{name}")).join(" "))
}

fn members(group: &Path) -> Vec<i32> {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    listed.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The kernel tells of a change of `cgroup.events` as an exceptional condition, so reading comes before waiting.
fn wait_until_empty(group: &Path) -> io::Result<()> {
    for _ in 0..LOOKS {
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

/// Writes to a file that the kernel made: one that is not there is not made.
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
    fn our_own_group_is_found_in_every_way_it_is_mounted() {
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

    /// A directory for groups of this test's own, where the system has one.
    fn ground() -> Option<PathBuf> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let own = own_group(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))?;
        let ground = own.join(format!("test-{}", std::process::id()));
        fs::create_dir(&ground).is_ok().then_some(ground)
    }

    fn is_over(child: &mut Child) -> bool {
        child.try_wait().unwrap().is_some()
    }

    #[tokio::test]
    async fn everybody_in_a_group_ends_with_it() {
        // Where no groups can be made, none are; the service says so at start.
        let Some(ground) = ground() else { return };
        let start = || Command::new("setsid").args(["-w", "sleep", "60"]).spawn().unwrap();
        let (mut inside, mut outside) = (start(), start());
        let group = Cgroup { path: ground.clone() };
        group.adopt(inside.id()).unwrap();
        group.end().await;
        assert!(!ground.exists());
        assert!(is_over(&mut inside));
        assert!(!is_over(&mut outside));
        outside.kill().unwrap();
        outside.wait().unwrap();
    }

    #[tokio::test]
    async fn where_limits_are_kept_they_are_those_that_were_asked_for() {
        // Runs for real where this process may manage its group; elsewhere the reason must be a clear one.
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
        group.adopt(child.id()).unwrap();
        drop(child.stdin.take());
        let said = io::read_to_string(child.stdout.take().unwrap()).unwrap();
        assert!(said.contains("137") && said.contains("lives on"), "{said}");
        child.wait().unwrap();
        assert_eq!(fs::read_to_string(group.path.join("pids.max")).unwrap().trim(), "10");
        let path = group.path.clone();
        group.end().await;
        groups.remove();
        assert!(!path.exists() && !groups.path.exists());
    }
}
