//! What a process and its descendants use: processor time and memory, as `/proc` tells.

use std::collections::HashMap;
use std::time::Duration;

/// A process and everything below it.
#[derive(Clone, Copy)]
pub struct Tree(pub u32);

/// Clock ticks a second, as every Linux of today reports them to user space.
const TICKS: f64 = 100.0;

impl Tree {
    /// Processor time of the tree so far, ended children that were waited for included.
    pub fn cpu(self) -> Duration {
        let ticks: u64 = self.pids().into_iter().filter_map(stat).map(|stat| stat.ticks).sum();
        Duration::from_secs_f64(ticks as f64 / TICKS)
    }

    /// Memory of the tree in MiB, shared pages counted once.
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

    /// Resident memory of the process itself in KiB.
    pub fn own_rss_kib(self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// Processor time of the process itself so far.
    pub fn own_cpu(self) -> Duration {
        Duration::from_secs_f64(stat(self.0).map_or(0, |stat| stat.ticks) as f64 / TICKS)
    }

    /// Its members, itself first.
    pub fn pids(self) -> Vec<u32> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok())
                && let Some(stat) = stat(pid)
            {
                children.entry(stat.parent).or_default().push(pid);
            }
        }
        let mut found = vec![self.0];
        let mut next = 0;
        while let Some(pid) = found.get(next) {
            found.extend(children.get(pid).into_iter().flatten().copied().collect::<Vec<_>>());
            next += 1;
        }
        found
    }
}

struct Stat {
    parent: u32,
    ticks: u64,
}

/// `/proc/PID/stat`, see proc(5): the parent is the 4th field, the four times the 14th to 17th.
fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Stat { parent: fields.get(1)?.parse().ok()?, ticks })
}
