//! What `/proc` says about processes: read, never guessed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// What process groups use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Processes in it.
    pub(crate) processes: usize,
    /// Memory in bytes that is theirs alone or shared between them: what would come free with their end. Pages of
    /// files, the program's own first of all, are everybody's and do not count.
    pub(crate) memory_bytes: u64,
}

/// What a process group uses now.
pub(crate) fn usage(group: u32) -> Usage {
    members(&[group]).fold(Usage::default(), |sum, pid| Usage {
        processes: sum.processes + 1,
        memory_bytes: sum.memory_bytes.saturating_add(memory(pid)),
    })
}

/// Kills the member of a process group that shows pages and holds the most memory, as the kernel would; which one it
/// was.
pub(crate) fn end_largest_renderer(group: u32) -> Option<u32> {
    let largest = members(&[group]).filter(|pid| shows_pages(*pid)).max_by_key(|pid| memory(*pid))?;
    let pid = Pid::from_raw(i32::try_from(largest).ok()?)?;
    kill_process(pid, Signal::KILL).is_ok().then_some(largest)
}

/// Processes one of whose arguments names, behind `flag`, a path inside `directory`, and all of their groups that one of
/// them leads.
pub(crate) fn with_argument_inside(flag: &str, directory: &Path) -> Vec<u32> {
    let names_inside = |argument: &[u8]| {
        let path = argument.strip_prefix(flag.as_bytes()).map(|path| Path::new(OsStr::from_bytes(path)));
        path.is_some_and(|path| path.starts_with(directory))
    };
    let named: Vec<u32> =
        pids().filter(|pid| arguments(*pid).iter().any(|argument| names_inside(argument.as_bytes()))).collect();
    let led = members(&named).filter(|pid| !named.contains(pid)).collect::<Vec<_>>();
    [named, led].concat()
}

/// Is it a browser's process for pages? One that is ending, and has given its memory back, is none any more.
pub(super) fn shows_pages(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // What a browser forks has its arguments in one, with spaces in between.
    line.split(|byte| matches!(byte, 0 | b' ')).any(|argument| argument == b"--type=renderer")
}

/// The processes in any of these groups.
pub(super) fn members(groups: &[u32]) -> impl Iterator<Item = u32> {
    pids().filter(move |pid| group_of(*pid).is_some_and(|group| groups.contains(&group)))
}

/// Anonymous and shared memory of a process that is resident, in bytes; nothing of one that is gone.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    let counted = |line: &&str| line.starts_with("RssAnon:") || line.starts_with("RssShmem:");
    status.lines().filter(counted).filter_map(kilobytes).sum::<u64>().saturating_mul(1024)
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

fn group_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; behind it come state, parent, group.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_group_has_members_and_memory() {
        let group = group_of(std::process::id()).unwrap();
        let before = usage(group);
        assert!(before.processes >= 1);
        let hoard = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(memory(std::process::id()) > 64 << 20);
        drop(hoard);
        assert_eq!(usage(u32::MAX), Usage::default());
        assert_eq!(end_largest_renderer(group), None);
    }
}
