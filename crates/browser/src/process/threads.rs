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
        let used = tree::renderers(browser).into_iter().flat_map(background_threads).collect();
        Self { at: Instant::now(), used }
    }

    /// Whether one of the threads was computing since an earlier reading.
    pub(crate) fn were_busy_since(&self, earlier: &Self) -> bool {
        let passed = self.at.duration_since(earlier.at).as_secs_f64();
        let used = |(thread, now): (&(u32, u32), &Duration)| {
            let before = earlier.used.get(thread).copied().unwrap_or_default();
            now.saturating_sub(before).as_secs_f64()
        };
        self.used.iter().map(used).any(|used| used > passed * BUSY_PART)
    }
}

fn background_threads(pid: u32) -> Vec<((u32, u32), Duration)> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let ids = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |thread: u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm")).ok()?;
        if thread == pid || OWN_THREADS.contains(&name.trim_end()) {
            return None;
        }
        // The first number is the time on a processor in nanoseconds.
        let times = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
        let nanoseconds = times.split_whitespace().next()?.parse().ok()?;
        Some(((pid, thread), Duration::from_nanos(nanoseconds)))
    };
    ids.filter_map(read).collect()
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
        assert!(times(end, &[(1, 108), (2, 5)]).were_busy_since(&before));
        assert!(!times(end, &[(1, 102), (2, 7)]).were_busy_since(&before), "the threads are counted one by one");
        assert!(times(end, &[(3, 9)]).were_busy_since(&before), "a new thread");
    }

    #[test]
    fn own_threads_have_times() {
        let pid = std::process::id();
        let busy = std::thread::spawn(|| {
            let end = Instant::now() + Duration::from_millis(30);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
            background_threads(std::process::id())
        });
        let threads = busy.join().unwrap();
        assert!(
            threads.iter().any(|(thread, used)| thread.0 == pid && *used > Duration::from_millis(5)),
            "{threads:?}"
        );
    }
}
