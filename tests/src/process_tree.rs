//! Processor time and memory of a process and its descendants, from `/proc`.

use std::collections::HashMap;
use std::time::Duration;

/// A process and its descendants, by the process id of the root.
#[derive(Clone, Copy)]
pub struct ProcessTree(pub u32);

/// Clock ticks per second. All current Linux systems report this value to user space.
const TICKS: f64 = 100.0;

impl ProcessTree {
    /// Processor time of the tree so far, including children that have ended and were waited for.
    pub fn cpu(self) -> Duration {
        let ticks: u64 = self.pids().into_iter().filter_map(stat).map(|stat| stat.ticks).sum();
        Duration::from_secs_f64(ticks as f64 / TICKS)
    }

    /// Memory of the tree in MiB (PSS: shared pages are counted once).
    pub fn pss_mib(self) -> f64 {
        let kib: u64 = self
            .pids()
            .into_iter()
            .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok())
            .filter_map(|text| {
                let line = text.lines().find(|line| line.starts_with("Pss:"))?.to_owned();
                line.split_whitespace().nth(1)?.parse::<u64>().ok()
            })
            .sum();
        kib as f64 / 1024.0
    }

    /// Resident memory of the root process in KiB.
    pub fn own_rss_kib(self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// Processor time of the root process so far.
    pub fn own_cpu(self) -> Duration {
        Duration::from_secs_f64(stat(self.0).map_or(0, |stat| stat.ticks) as f64 / TICKS)
    }

    /// All process ids, the root first.
    pub fn pids(self) -> Vec<u32> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok())
                && let Some(stat) = stat(pid)
            {
                children.entry(stat.parent).or_default().push(pid);
            }
        }
        let mut pids = vec![self.0];
        let mut next = 0;
        while let Some(pid) = pids.get(next) {
            pids.extend(children.get(pid).into_iter().flatten().copied().collect::<Vec<_>>());
            next += 1;
        }
        pids
    }
}

struct Stat {
    parent: u32,
    ticks: u64,
}

/// Reads `/proc/PID/stat`, see proc(5): field 4 is the parent, fields 14 to 17 are the four times.
fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Stat { parent: fields.get(1)?.parse().ok()?, ticks })
}
