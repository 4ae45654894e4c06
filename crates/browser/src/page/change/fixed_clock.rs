//! The program that gives a page a clock and random numbers that are the same in every capture, for `freeze_all`.

use std::time::Duration;

use grabd_domain::capture::{CaptureSpec, Freeze};
use serde::Serialize;

use crate::page::script::{millis, without_comments};

const PROGRAM: &str = include_str!("../scripts/fixed_clock.js");

/// When the clock begins, in seconds since 1970: 2026-01-01 12:00 UTC, which is the same day in nearly all time zones.
const EPOCH: Duration = Duration::from_secs(1_767_268_800);

/// How far the clock goes, besides the delay that the caller asks for. Scripts that hide a page until a test has been chosen for
/// the visitor give up after four seconds.
const END: Duration = Duration::from_secs(5);

/// How far it goes after the page was laid out for an image: scrolling starts animations, which last for a second or so.
const PHASE: Duration = Duration::from_millis(1500);

/// How far it goes after each click and each key of the caller.
const EVENT: Duration = Duration::from_secs(1);

/// How long it stands still until the document has loaded, and for what the page loads after that.
const LOAD: Duration = Duration::from_secs(10);
const HOLD: Duration = Duration::from_secs(2);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClockArguments {
    epoch_ms: u64,
    end_ms: u64,
    phase_ms: u64,
    event_ms: u64,
    load_ms: u64,
    hold_ms: u64,
}

/// The program, which runs in each document and in each worker before the page's own scripts. `None` if it is not asked for, and
/// if the page has no scripts.
pub(in crate::page) fn program(spec: &CaptureSpec) -> Option<String> {
    if spec.freeze != Freeze::All || !spec.javascript {
        return None;
    }
    let arguments = ClockArguments {
        epoch_ms: millis(EPOCH),
        end_ms: millis(END + spec.delay),
        phase_ms: millis(PHASE),
        event_ms: millis(EVENT),
        load_ms: millis(LOAD),
        hold_ms: millis(HOLD),
    };
    let arguments = serde_json::to_string(&arguments).ok()?;
    Some(format!("({})({arguments});", without_comments(&[PROGRAM])))
}

/// The expression that lets the clock of a worker go on to the end of a phase, and waits until it stands there.
pub(in crate::page) fn stand_in_worker(phase: u32) -> String {
    format!("globalThis[Symbol.for('grabd-clock')]?.({phase})")
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use super::*;

    fn program_of(change: impl FnOnce(&mut CaptureRequest)) -> Option<String> {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        change(&mut request);
        program(&CaptureSpec::parse(&request).unwrap())
    }

    #[test]
    fn program_is_one_call_with_the_end_after_the_delay() {
        let program = program_of(|r| (r.freeze_all, r.delay_ms) = (Some(true), Some(250))).unwrap();
        assert!(program.starts_with("(({ epochMs, endMs, phaseMs, eventMs, loadMs, holdMs }) => {\n"), "{program}");
        let arguments =
            r#"{"epochMs":1767268800000,"endMs":5250,"phaseMs":1500,"eventMs":1000,"loadMs":10000,"holdMs":2000}"#;
        assert!(program.ends_with(&format!("}}\n)({arguments});")), "{program}");
        assert!(!program.lines().any(|line| line.trim_start().starts_with("//")));
    }

    #[test]
    fn pages_without_scripts_or_without_the_option_have_their_own_clock() {
        assert!(program_of(|r| r.freeze = Some(true)).is_none());
        assert!(program_of(|r| (r.freeze_all, r.javascript) = (Some(true), Some(false))).is_none());
    }
}
