//! Detects whether an unresponsive browser is idle or still working.

use std::fs;

use super::tree;

/// The state of an idle process. Two equal values mean that it did nothing in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdleState {
    /// Stopped or dead.
    Stopped,
    /// Waiting. The `schedstat` of its first thread: run time, wait time, and time slices.
    Waiting(String),
}

/// Returns the idle state of the browser that leads a process group. `None` if it is busy or its state is unknown. It
/// is busy if any of its threads, or of a helper that it may wait for, is running, runnable, or waiting for a disk.
/// Renderers are ignored: the browser does not wait for them, and they may run forever. Reads hundreds of small files.
pub(crate) fn idle_state(leader: u32) -> Option<IdleState> {
    match first_state(leader)? {
        'T' | 't' | 'Z' | 'X' => return Some(IdleState::Stopped),
        _ => {}
    }
    let is_busy = tree::members(&[leader]).any(|pid| !tree::is_renderer(pid) && has_busy_thread(pid));
    // The browser's first thread handles commands.
    let counted = fs::read_to_string(format!("/proc/{leader}/task/{leader}/schedstat")).ok()?;
    (!is_busy).then_some(IdleState::Waiting(counted))
}

fn has_busy_thread(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| state(&fs::read_to_string(thread.path().join("stat")).ok()?));
    states.any(|state| matches!(state, 'R' | 'D'))
}

fn first_state(pid: u32) -> Option<char> {
    state(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The state follows the name in parentheses, which may contain any character.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    // `ulimit -t` ends the busy loops even if the test fails.

    #[test]
    fn process_is_idle_while_waiting_or_stopped_and_not_while_working() {
        let mut shell = Command::new("sh")
            .args([
                "-c",
                "ulimit -t 20; while read word; do case $word in work) while :; do :; done;; esac; echo $word; done",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let (pid, mut input) = (shell.id(), shell.stdin.take().unwrap());
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        // Starting up and working take unpredictable time.
        let until_idle = || std::iter::repeat_with(|| idle_state(pid)).flatten().next().unwrap();

        let before = until_idle();
        assert_eq!(idle_state(pid).as_ref(), Some(&before));
        input.write_all(b"hello\n").unwrap();
        output.read_line(&mut String::new()).unwrap();
        assert_ne!(until_idle(), before, "it ran in between");

        input.write_all(b"work\n").unwrap();
        while idle_state(pid).is_some() {}
        assert!((0..100).all(|_| idle_state(pid).is_none()), "it is busy all the time");

        let raw = Pid::from_child(&shell);
        kill_process(raw, Signal::STOP).unwrap();
        waitpid(Some(raw), WaitOptions::UNTRACED).unwrap();
        assert_eq!(idle_state(pid), Some(IdleState::Stopped));

        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(idle_state(pid), None);
    }

    #[test]
    fn working_helper_counts_as_busy_and_renderer_does_not() {
        for (helper, counts) in [("--type=utility", true), ("--type=renderer", false)] {
            let helper = format!("ulimit -t 20; sh -c 'while :; do :; done' sh {helper} & echo $!; wait");
            let mut leader = Command::new("sh");
            leader.args(["-c", &helper]).stdout(Stdio::piped()).process_group(0);
            let mut leader = leader.spawn().unwrap();
            let mut helper = String::new();
            BufReader::new(leader.stdout.take().unwrap()).read_line(&mut helper).unwrap();
            let path = format!("/proc/{}/cmdline", helper.trim());
            while !fs::read_to_string(&path).unwrap().contains("--type") {}
            // The leader becomes idle after its start.
            match counts {
                true => assert!((0..100).all(|_| idle_state(leader.id()).is_none())),
                false => while idle_state(leader.id()).is_none() {},
            }
            rustix::process::kill_process_group(Pid::from_child(&leader), Signal::KILL).unwrap();
            leader.wait().unwrap();
        }
    }
}
