//! The processor time of the threads beside a page's own.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use super::tree;

/// Threads that are busy while a page is drawn or receives something. The others compute what a page waits for: they decode
/// images and sound, derive keys and run workers.
const OWN_THREADS: [&str; 3] = ["Chrome_ChildIOT", "Compositor", "ThreadPoolServi"];

/// A thread that used this part of the time was computing.
const BUSY_PART: f64 = 0.4;

/// What the background threads of a browser's renderers have used so far.
#[derive(Debug)]
pub(crate) struct ThreadTimes {
    at: Instant,
    used: HashMap<(u32, u32), Duration>,
}

impl ThreadTimes {
    /// Reads the times of all renderers of a browser.
    pub(crate) fn read(browser: u32) -> Self {
        let used = tree::renderers(browser).into_iter().flat_map(other_threads).collect();
        Self { at: Instant::now(), used }
    }

    /// Whether one of the threads was computing since an earlier reading.
    pub(crate) fn were_busy_since(&self, earlier: &Self) -> bool {
        // Most threads were not, so their names need not be read.
        self.busy_since(earlier).any(|(pid, thread)| is_background(pid, thread))
    }

    /// The threads that used much of the time since an earlier reading.
    fn busy_since(&self, earlier: &Self) -> impl Iterator<Item = (u32, u32)> {
        let passed = self.at.duration_since(earlier.at).as_secs_f64();
        self.used.iter().filter_map(move |(thread, now)| {
            let before = earlier.used.get(thread).copied().unwrap_or_default();
            (now.saturating_sub(before).as_secs_f64() > passed * BUSY_PART).then_some(*thread)
        })
    }
}

/// The processor time of all threads of a process but the first one, which is the page's own.
fn other_threads(pid: u32) -> Vec<((u32, u32), Duration)> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let ids = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |thread: u32| {
        // The first number is the time on a processor in nanoseconds.
        let times = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
        let nanoseconds = times.split_whitespace().next()?.parse().ok()?;
        Some(((pid, thread), Duration::from_nanos(nanoseconds)))
    };
    ids.filter(|thread| *thread != pid).filter_map(read).collect()
}

fn is_background(pid: u32, thread: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm"));
    name.is_ok_and(|name| !OWN_THREADS.contains(&name.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(at: Instant, used: &[(u32, u64)]) -> ThreadTimes {
        ThreadTimes { at, used: used.iter().map(|(thread, ms)| ((1, *thread), Duration::from_millis(*ms))).collect() }
    }

    #[test]
    fn thread_that_used_most_of_the_time_was_busy() {
        let begin = Instant::now();
        let end = begin + Duration::from_millis(10);
        let before = times(begin, &[(1, 100), (2, 5)]);
        let busy =
            |after: &[(u32, u64)]| times(end, after).busy_since(&before).map(|(_, thread)| thread).collect::<Vec<_>>();
        assert_eq!(busy(&[(1, 108), (2, 5)]), [1]);
        assert_eq!(busy(&[(1, 102), (2, 7)]), [0_u32; 0], "the threads are counted one by one");
        assert_eq!(busy(&[(3, 9)]), [3], "a new thread");
    }

    #[test]
    fn threads_that_draw_and_receive_are_no_background() {
        let is_background = |name: &str| {
            let named = std::thread::Builder::new().name(name.into());
            let own = || is_background(std::process::id(), rustix::thread::gettid().as_raw_pid().cast_unsigned());
            named.spawn(own).unwrap().join().unwrap()
        };
        assert!(is_background("DedicatedWorker"));
        assert!(!is_background("Compositor"));
        // The kernel keeps fifteen characters.
        assert!(!is_background("ThreadPoolServiceThread"));
    }

    #[test]
    fn own_threads_have_times() {
        let pid = std::process::id();
        let busy = std::thread::spawn(|| {
            let end = Instant::now() + Duration::from_millis(30);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
            other_threads(std::process::id())
        });
        let threads = busy.join().unwrap();
        assert!(
            threads.iter().any(|(thread, used)| thread.0 == pid && *used > Duration::from_millis(5)),
            "{threads:?}"
        );
    }
}
