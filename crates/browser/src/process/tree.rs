//! What `/proc` says about processes: read, never guessed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Memory of a process group in bytes: the resident pages of all its members, shared ones counted for each.
pub(crate) fn group_rss(group: u32) -> u64 {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    pids()
        .filter(|pid| group_of(*pid) == Some(group))
        .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/statm")).ok())
        .filter_map(|statm| statm.split(' ').nth(1)?.parse::<u64>().ok())
        .map(|pages| pages.saturating_mul(page))
        .sum()
}

/// Processes one of whose arguments names, behind `flag`, a path inside `directory`.
pub(crate) fn with_argument_inside(flag: &str, directory: &Path) -> Vec<u32> {
    let names_inside = |argument: &[u8]| {
        let path = argument.strip_prefix(flag.as_bytes()).map(|path| Path::new(OsStr::from_bytes(path)));
        path.is_some_and(|path| path.starts_with(directory))
    };
    pids().filter(|pid| arguments(*pid).iter().any(|argument| names_inside(argument.as_bytes()))).collect()
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
    fn our_own_group_has_memory() {
        let group = group_of(std::process::id()).unwrap();
        assert!(group_rss(group) > 100_000);
        assert_eq!(group_rss(u32::MAX), 0);
    }
}
