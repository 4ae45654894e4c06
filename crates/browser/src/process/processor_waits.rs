//! How long a browser's threads waited because all processors were in use.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use super::tree;

/// How long each thread of a browser's processes has been ready to run so far, without a processor.
#[derive(Debug, Default)]
pub(crate) struct ProcessorWaits(HashMap<u32, Duration>);

impl ProcessorWaits {
    /// Reads the waits of all processes of a browser, which leads a process group. Reads hundreds of small files.
    pub(crate) fn read(browser: u32) -> Self {
        Self(tree::members(&[browser]).flat_map(of_process).collect())
    }

    /// The longest wait of one thread since an earlier reading. Waits of several threads are not added up, since they
    /// may have waited at the same time.
    pub(crate) fn longest_since(&self, earlier: &Self) -> Duration {
        let since = |(thread, now): (&u32, &Duration)| {
            let before = earlier.0.get(thread).copied().unwrap_or_default();
            now.saturating_sub(before)
        };
        self.0.iter().map(since).max().unwrap_or_default()
    }
}

fn of_process(pid: u32) -> Vec<(u32, Duration)> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let ids = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |thread: u32| {
        let times = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
        // The second number is the time on a run queue in nanoseconds.
        let nanoseconds = times.split_whitespace().nth(1)?.parse().ok()?;
        Some((thread, Duration::from_nanos(nanoseconds)))
    };
    ids.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use rustix::process::{Pid, Signal, kill_process_group};
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    fn waits(threads: &[(u32, u64)]) -> ProcessorWaits {
        ProcessorWaits(threads.iter().map(|(thread, ms)| (*thread, Duration::from_millis(*ms))).collect())
    }

    #[test]
    fn longest_wait_is_that_of_one_thread() {
        let before = waits(&[(1, 100), (2, 5)]);
        assert_eq!(waits(&[(1, 140), (2, 35)]).longest_since(&before), Duration::from_millis(40));
        assert_eq!(waits(&[(1, 100), (3, 60)]).longest_since(&before), Duration::from_millis(60), "a new thread");
        assert_eq!(waits(&[]).longest_since(&before), Duration::ZERO, "all threads have ended");
    }

    /// A process group with `processes` endless loops, which all run on the same processor.
    fn loops_on_one_processor(processes: usize) -> Child {
        let loops = "while :; do :; done & ".repeat(processes);
        // `ulimit -t` ends the loops even if the test fails.
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &format!("ulimit -t 20; {loops} wait")]).process_group(0).spawn().unwrap();
        let everywhere = sched_getaffinity(None).unwrap();
        let processor = (0..CpuSet::MAX_CPU).find(|processor| everywhere.is_set(*processor)).unwrap();
        let mut one = CpuSet::new();
        one.set(processor);
        while tree::usage(shell.id()).processes <= processes {}
        for pid in tree::members(&[shell.id()]) {
            sched_setaffinity(Pid::from_raw(pid.cast_signed()), &one).unwrap();
        }
        shell
    }

    #[test]
    fn processes_that_share_a_processor_wait_for_it() {
        let mut shell = loops_on_one_processor(2);
        let before = ProcessorWaits::read(shell.id());
        // Each of them waits while the other one runs.
        while ProcessorWaits::read(shell.id()).longest_since(&before) < Duration::from_millis(50) {}
        kill_process_group(Pid::from_child(&shell), Signal::KILL).unwrap();
        shell.wait().unwrap();
    }
}
