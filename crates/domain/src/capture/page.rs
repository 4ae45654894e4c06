//! How a page is waited for, which of its answers are captured, and which part of it the image shows.

use std::fmt;

use grabd_options::{FAILURE_STATUSES, Rectangle, STATUS_CLASSES};

/// What is waited for before a page is captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WaitUntil {
    /// Nothing under way would change the image.
    #[default]
    Auto,
    /// The document is parsed.
    Dom,
    /// The load event.
    Load,
    /// Hardly any request has been open for a while.
    Idle,
}

impl WaitUntil {
    /// The name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Dom => "dom",
            Self::Load => "load",
            Self::Idle => "idle",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        [Self::Auto, Self::Dom, Self::Load, Self::Idle].into_iter().find(|wait| wait.as_str() == name)
    }
}

/// Statuses with which a site denies access.
const DENIED_STATUSES: [u16; 5] = [401, 403, 407, 429, 503];

/// An HTTP status of a failure, or all of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FailureStatus {
    /// All with this first digit.
    Class(u16),
    /// This one.
    Exact(u16),
}

impl FailureStatus {
    /// Whether it is this status, or its class.
    pub(super) const fn has(self, status: u16) -> bool {
        match self {
            Self::Class(digit) => status / 100 == digit,
            Self::Exact(exact) => status == exact,
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        if STATUS_CLASSES.contains(&text) {
            return text.get(..1)?.parse().ok().map(Self::Class);
        }
        text.parse().ok().filter(|status| FAILURE_STATUSES.contains(status)).map(Self::Exact)
    }
}

impl fmt::Display for FailureStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(digit) => write!(f, "{digit}xx"),
            Self::Exact(status) => status.fmt(f),
        }
    }
}

/// Which statuses of the main document, and which challenges, are captured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatusPolicy {
    fail_on: Vec<FailureStatus>,
    allow_blocked: bool,
}

/// What a [`StatusPolicy`] says about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusDecision {
    /// It is captured.
    Capture,
    /// The site denies access.
    Blocked,
    /// The caller does not want it.
    Unwanted,
}

impl StatusPolicy {
    /// Parses the statuses. `None` if one is malformed.
    pub(super) fn new(fail_on: &[String], allow_blocked: bool) -> Option<Self> {
        let fail_on = fail_on.iter().map(|text| FailureStatus::parse(text)).collect::<Option<_>>()?;
        Some(Self { fail_on, allow_blocked })
    }

    /// The statuses as the caller wrote them.
    pub(super) fn fail_on(&self) -> Vec<String> {
        self.fail_on.iter().map(ToString::to_string).collect()
    }

    /// Whether pages are captured that deny access.
    pub const fn allows_blocked(&self) -> bool {
        self.allow_blocked
    }

    /// The decision about a page with this status. `is_challenge` says whether the page is the challenge of a bot
    /// protection service. A status that is listed by its number is more specific than one that denies access, and that
    /// is more specific than a class of statuses.
    pub fn decide(&self, status: u16, is_challenge: bool) -> StatusDecision {
        let is_blocked = is_challenge || DENIED_STATUSES.contains(&status);
        let is_listed = |listed: FailureStatus| self.fail_on.contains(&listed);
        if is_blocked && !self.allow_blocked {
            StatusDecision::Blocked
        } else if is_listed(FailureStatus::Exact(status))
            || (is_listed(FailureStatus::Class(status / 100)) && !is_blocked)
        {
            StatusDecision::Unwanted
        } else {
            StatusDecision::Capture
        }
    }
}

/// A rectangle of the page in CSS pixels. Its sides are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClipArea {
    /// The left edge.
    pub x: u32,
    /// The top edge.
    pub y: u32,
    /// The width.
    pub width: u32,
    /// The height.
    pub height: u32,
}

impl ClipArea {
    pub(super) fn new(rectangle: Rectangle) -> Option<Self> {
        let pixels = |number: i64| u32::try_from(number).ok();
        let Rectangle { x, y, width, height } = rectangle;
        let area = Self { x: pixels(x)?, y: pixels(y)?, width: pixels(width)?, height: pixels(height)? };
        (area.width > 0 && area.height > 0).then_some(area)
    }

    pub(super) fn to_rectangle(self) -> Rectangle {
        let Self { x, y, width, height } = self;
        Rectangle { x: x.into(), y: y.into(), width: width.into(), height: height.into() }
    }
}

/// The size that the image is scaled down to, in image pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fit {
    /// Largest width.
    pub width: Option<u32>,
    /// Largest height.
    pub height: Option<u32>,
}

impl Fit {
    /// The factor by which an image of this size is scaled, at most 1.
    pub fn factor(self, width: f64, height: f64) -> f64 {
        let limit = |most: Option<u32>, side: f64| most.map_or(1.0, |most| f64::from(most) / side);
        limit(self.width, width).min(limit(self.height, height)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(fail_on: &[&str], allow_blocked: bool) -> StatusPolicy {
        let fail_on: Vec<String> = fail_on.iter().map(|text| (*text).to_owned()).collect();
        let policy = StatusPolicy::new(&fail_on, allow_blocked).unwrap();
        assert_eq!(policy.fail_on(), fail_on);
        policy
    }

    #[test]
    fn most_specific_rule_decides_about_a_status() {
        use StatusDecision::{Blocked, Capture, Unwanted};
        for (fail_on, allow_blocked, status, is_challenge, decision) in [
            (&[][..], false, 200, false, Capture),
            (&[], false, 404, false, Capture),
            (&[], false, 500, false, Capture),
            (&[], false, 403, false, Blocked),
            (&[], false, 200, true, Blocked),
            (&["4xx"], false, 404, false, Unwanted),
            (&["4xx"], false, 500, false, Capture),
            (&["404"], false, 404, false, Unwanted),
            (&["404"], false, 410, false, Capture),
            (&["4xx", "5xx"], false, 403, false, Blocked),
            (&[], true, 403, false, Capture),
            (&[], true, 200, true, Capture),
            (&["4xx"], true, 403, false, Capture),
            (&["4xx"], true, 404, false, Unwanted),
            (&["4xx", "403"], true, 403, false, Unwanted),
            (&["5xx"], true, 503, true, Capture),
        ] {
            let decided = policy(fail_on, allow_blocked).decide(status, is_challenge);
            assert_eq!(decided, decision, "{fail_on:?} {allow_blocked} {status} {is_challenge}");
        }
    }

    #[test]
    fn images_are_scaled_down_to_fit_and_never_enlarged() {
        let fit = |width, height| Fit { width, height }.factor(1000.0, 500.0).to_string();
        assert_eq!(fit(None, None), "1");
        assert_eq!(fit(Some(2000), Some(500)), "1");
        assert_eq!(fit(Some(500), None), "0.5");
        assert_eq!(fit(Some(500), Some(125)), "0.25");
    }
}
