//! Whether a browser that does not answer could be about to.

use std::fs;

use super::tree;

/// What a still process looks like; equal at two looks when it did nothing in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Still {
    /// It was stopped, or is dead.
    Stopped,
    /// It waits. What the scheduler has counted for its first thread: run time, time without a processor, and turns.
    Waits(String),
}

/// Looks whether the browser that leads a process group moves: `None` when it does, or when the system does not say. It
/// does as long as a thread of it, or of a helper that it may be waiting for, runs, or waits for a processor or a disk.
/// Pages are not counted: nobody waits for them, and they may run for ever. Reads hundreds of small files.
pub(crate) fn stillness(leader: u32) -> Option<Still> {
    match first_state(leader)? {
        'T' | 't' | 'Z' | 'X' => return Some(Still::Stopped),
        _ => {}
    }
    let moves = tree::members(&[leader]).any(|pid| !tree::shows_pages(pid) && is_moving(pid));
    // A browser's first thread is the one that answers.
    let counted = fs::read_to_string(format!("/proc/{leader}/task/{leader}/schedstat")).ok()?;
    (!moves).then_some(Still::Waits(counted))
}

fn is_moving(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| state(&fs::read_to_string(thread.path().join("stat")).ok()?));
    states.any(|state| matches!(state, 'R' | 'D'))
}

fn first_state(pid: u32) -> Option<char> {
    state(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name in parentheses may hold anything; behind it comes the state.
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

    // What works for ever here ends by its processor time at the latest, whatever becomes of the test.

    #[test]
    fn a_process_is_still_while_it_waits_or_is_stopped_and_not_while_it_works() {
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
        // What it does takes as long as it takes.
        let until_still = || std::iter::repeat_with(|| stillness(pid)).flatten().next().unwrap();

        let before = until_still();
        assert_eq!(stillness(pid).as_ref(), Some(&before));
        input.write_all(b"hello\n").unwrap();
        output.read_line(&mut String::new()).unwrap();
        assert_ne!(until_still(), before, "it moved in between");

        input.write_all(b"work\n").unwrap();
        while stillness(pid).is_some() {}
        assert!((0..100).all(|_| stillness(pid).is_none()), "it never rests again");

        let raw = Pid::from_child(&shell);
        kill_process(raw, Signal::STOP).unwrap();
        waitpid(Some(raw), WaitOptions::UNTRACED).unwrap();
        assert_eq!(stillness(pid), Some(Still::Stopped));

        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(stillness(pid), None);
    }

    #[test]
    fn a_helper_that_works_is_waited_for_and_a_page_is_not() {
        for (helper, counts) in [("--type=utility", true), ("--type=renderer", false)] {
            let helper = format!("ulimit -t 20; sh -c 'while :; do :; done' sh {helper} & echo $!; wait");
            let mut leader = Command::new("sh");
            leader.args(["-c", &helper]).stdout(Stdio::piped()).process_group(0);
            let mut leader = leader.spawn().unwrap();
            let mut helper = String::new();
            BufReader::new(leader.stdout.take().unwrap()).read_line(&mut helper).unwrap();
            let path = format!("/proc/{}/cmdline", helper.trim());
            while !fs::read_to_string(&path).unwrap().contains("--type") {}
            // The leader itself comes to rest soon, if it has not yet.
            match counts {
                true => assert!((0..100).all(|_| stillness(leader.id()).is_none())),
                false => while stillness(leader.id()).is_none() {},
            }
            rustix::process::kill_process_group(Pid::from_child(&leader), Signal::KILL).unwrap();
            leader.wait().unwrap();
        }
    }
}
