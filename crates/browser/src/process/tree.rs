//! Process information from `/proc`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::unistd;
use rustix::process::{Pid, Signal, kill_process};

/// Resource usage of a process group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Number of processes.
    pub(crate) processes: usize,
    /// Number of their threads, of which each process has at least one.
    pub(crate) tasks: u32,
    /// Anonymous and shared memory in bytes: what ending the group would release. File-backed pages, such as the
    /// program itself, are not counted.
    pub(crate) memory_bytes: u64,
}

/// The levels of processes between a browser and its renderers, which are the children of a zygote, at most.
const MAX_DEPTH: usize = 4;

/// The renderers of a browser. This reads some files, instead of looking at all processes of the system.
pub(crate) fn renderers(browser: u32) -> Vec<u32> {
    let (mut level, mut found) = (vec![browser], Vec::new());
    for _ in 0..MAX_DEPTH {
        level = level.iter().flat_map(|pid| children(*pid)).collect();
        found.extend(level.iter().copied().filter(|pid| is_renderer(*pid)));
    }
    found
}

/// The processes that the first thread of a process has started. Only that thread of a browser and of a zygote does so.
fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Current usage of a process group.
pub(crate) fn usage(group: u32) -> Usage {
    members(&[group]).fold(Usage::default(), |sum, pid| {
        let of_process = usage_of_process(pid);
        Usage {
            processes: sum.processes + 1,
            tasks: sum.tasks.saturating_add(of_process.tasks),
            memory_bytes: sum.memory_bytes.saturating_add(of_process.memory_bytes),
        }
    })
}

/// Whether a process of a group has not ended. One that has may wait for its parent to notice.
pub(super) fn has_living_member(group: u32) -> bool {
    let is_dead = |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The state follows the name in parentheses, which may contain any character.
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
    };
    members(&[group]).any(|pid| !is_dead(pid))
}

/// Kills the renderer of a process group that uses the most memory, as the kernel's OOM killer would. Returns its
/// process ID.
pub(crate) fn end_largest_renderer(group: u32) -> Option<u32> {
    let largest = members(&[group]).filter(|pid| is_renderer(*pid)).max_by_key(|pid| memory(*pid))?;
    let pid = Pid::from_raw(i32::try_from(largest).ok()?)?;
    kill_process(pid, Signal::KILL).is_ok().then_some(largest)
}

/// Processes with an argument that consists of `flag` and a path inside `directory`, and all members of the groups that
/// they lead.
pub(crate) fn with_path_argument_inside(flag: &str, directory: &Path) -> Vec<u32> {
    let names_inside = |argument: &[u8]| {
        let path = argument.strip_prefix(flag.as_bytes()).map(|path| Path::new(OsStr::from_bytes(path)));
        path.is_some_and(|path| path.starts_with(directory))
    };
    let named: Vec<u32> =
        pids().filter(|pid| arguments(*pid).iter().any(|argument| names_inside(argument.as_bytes()))).collect();
    let group_members = members(&named).filter(|pid| !named.contains(pid)).collect::<Vec<_>>();
    [named, group_members].concat()
}

/// Whether the process is a browser's renderer. False for a process that is exiting and has released its memory.
pub(super) fn is_renderer(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // Processes forked by a browser have all arguments in one string, separated by spaces.
    line.split(|byte| matches!(byte, 0 | b' ')).any(|argument| argument == b"--type=renderer")
}

/// The processes in any of these groups.
pub(super) fn members(groups: &[u32]) -> impl Iterator<Item = u32> {
    pids().filter(move |pid| group_of(*pid).is_some_and(|group| groups.contains(&group)))
}

/// Resident anonymous and shared memory of a process in bytes. Zero if it has exited.
fn memory(pid: u32) -> u64 {
    usage_of_process(pid).memory_bytes
}

fn usage_of_process(pid: u32) -> Usage {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut usage = Usage { processes: 1, ..Usage::default() };
    for line in status.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let number = || value.split_whitespace().next()?.parse::<u64>().ok();
        match name {
            "RssAnon" | "RssShmem" => {
                let bytes = number().unwrap_or(0).saturating_mul(1024);
                usage.memory_bytes = usage.memory_bytes.saturating_add(bytes);
            }
            "Threads" => usage.tasks = number().and_then(|tasks| u32::try_from(tasks).ok()).unwrap_or(0),
            _ => {}
        }
    }
    usage
}

fn arguments(pid: u32) -> Vec<OsString> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(|argument| OsStr::from_bytes(argument).to_owned()).collect()
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

/// Asks the kernel, which takes far less time than reading a file of the process. That matters because every browser's
/// watchdog looks for its processes among all of the system once a second. Threads of the kernel have the group 0, which
/// rustix does not expect.
fn group_of(pid: u32) -> Option<u32> {
    let group = unistd::getpgid(Some(unistd::Pid::from_raw(i32::try_from(pid).ok()?))).ok()?;
    u32::try_from(group.as_raw()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_group_has_members_and_memory() {
        let group = group_of(std::process::id()).unwrap();
        assert_eq!(group.cast_signed(), rustix::process::getpgrp().as_raw_nonzero().get());
        let before = usage(group);
        assert!(before.processes >= 1 && before.tasks >= 1 && has_living_member(group));
        let allocation = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(memory(std::process::id()) > 64 << 20);
        drop(allocation);
        assert_eq!(usage(u32::MAX), Usage::default());
        assert_eq!(end_largest_renderer(group), None);
    }
}
