//! How long a browser's threads worked, and how long they waited because all processors were in use.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use super::tree;

/// The times of each thread of a browser's processes so far.
#[derive(Debug, Default)]
pub(crate) struct ProcessorTimes(HashMap<u32, ThreadTimes>);

#[derive(Clone, Copy, Debug, Default)]
struct ThreadTimes {
    /// On a processor.
    ran: Duration,
    /// Ready to run, without a processor.
    waited: Duration,
}

impl ProcessorTimes {
    /// Reads the times of all processes of a browser, which leads a process group. Reads hundreds of small files.
    pub(crate) fn read(browser: u32) -> Self {
        Self(tree::members(&[browser]).flat_map(of_process).collect())
    }

    /// The longest time that one thread waited for a processor since an earlier reading. The waits of several threads are
    /// not added up, since they may have waited at the same time.
    pub(crate) fn longest_wait_since(&self, earlier: &Self) -> Duration {
        self.longest_since(earlier, |times| times.waited)
    }

    /// The longest time that one thread had something to do since an earlier reading, whether it had a processor or not.
    pub(crate) fn longest_work_since(&self, earlier: &Self) -> Duration {
        self.longest_since(earlier, |times| times.ran + times.waited)
    }

    fn longest_since(&self, earlier: &Self, part: impl Fn(&ThreadTimes) -> Duration) -> Duration {
        let since = |(thread, now): (&u32, &ThreadTimes)| {
            part(now).saturating_sub(earlier.0.get(thread).map(&part).unwrap_or_default())
        };
        self.0.iter().map(since).max().unwrap_or_default()
    }
}

fn of_process(pid: u32) -> Vec<(u32, ThreadTimes)> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let ids = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |thread: u32| {
        let times = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
        // In nanoseconds. A third number counts how often it was given a processor.
        let mut times = times.split_whitespace().map_while(|time| time.parse().ok().map(Duration::from_nanos));
        Some((thread, ThreadTimes { ran: times.next()?, waited: times.next()? }))
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

    /// The times of threads: their ids, and the milliseconds that they ran and waited.
    fn times(threads: &[(u32, u64, u64)]) -> ProcessorTimes {
        let of_thread = |&(thread, ran, waited): &(u32, u64, u64)| {
            (thread, ThreadTimes { ran: Duration::from_millis(ran), waited: Duration::from_millis(waited) })
        };
        ProcessorTimes(threads.iter().map(of_thread).collect())
    }

    #[test]
    fn longest_wait_is_that_of_one_thread() {
        let before = times(&[(1, 0, 100), (2, 0, 5)]);
        let waited = |threads| times(threads).longest_wait_since(&before);
        assert_eq!(waited(&[(1, 900, 140), (2, 0, 35)]), Duration::from_millis(40));
        assert_eq!(waited(&[(1, 900, 100), (3, 0, 60)]), Duration::from_millis(60), "a new thread");
        assert_eq!(waited(&[]), Duration::ZERO, "all threads have ended");
    }

    #[test]
    fn work_is_what_one_thread_ran_and_waited() {
        let before = times(&[(1, 50, 100), (2, 7, 5)]);
        assert_eq!(times(&[(1, 70, 110), (2, 7, 30)]).longest_work_since(&before), Duration::from_millis(30));
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
        let before = ProcessorTimes::read(shell.id());
        // Each of them waits while the other one runs.
        while ProcessorTimes::read(shell.id()).longest_wait_since(&before) < Duration::from_millis(50) {}
        kill_process_group(Pid::from_child(&shell), Signal::KILL).unwrap();
        shell.wait().unwrap();
    }
}
