//! Resources that a service uses.

use std::fs;
use std::path::Path;

use grabd_tests::process_tree::ProcessTree;

/// Memory in MiB, of the service and its browsers and of the service alone, and the numbers of what they hold.
pub(crate) struct ResourceUsage {
    pub(crate) mib: f64,
    pub(crate) service_mib: f64,
    pub(crate) processes: usize,
    pub(crate) open_files: usize,
    pub(crate) directories: usize,
}

impl ResourceUsage {
    pub(crate) fn of(tree: ProcessTree, run_dir: &Path) -> Self {
        let count = |path: &Path| fs::read_dir(path).map_or(0, Iterator::count);
        #[expect(clippy::cast_precision_loss, reason = "kilobytes of one process")]
        let service_mib = tree.own_rss_kib() as f64 / 1024.0;
        Self {
            mib: tree.pss_mib(),
            service_mib,
            processes: tree.pids().len(),
            open_files: count(Path::new(&format!("/proc/{}/fd", tree.0))),
            directories: count(run_dir),
        }
    }

    pub(crate) fn print_header(first: &str) {
        println!(
            "{first:<10}{:>10}{:>14}{:>12}{:>12}{:>14}",
            "MiB in all", "service MiB", "processes", "open files", "directories"
        );
    }

    pub(crate) fn print(&self, when: &str) {
        let Self { mib, service_mib, processes, open_files, directories } = self;
        println!("{when:<10}{mib:>10.0}{service_mib:>14.0}{processes:>12}{open_files:>12}{directories:>14}");
    }
}
