//! A grab: one capture from create to its end.

use serde::{Deserialize, Serialize};

use crate::capture::CaptureSpec;
use crate::credentials::Environment;
use crate::faults::{Code, Fault, Field};
use crate::ids::{GrabId, TeamId};
use crate::timestamp::Timestamp;

/// The contract's four states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the contract's own words")]
pub enum Status {
    Pending,
    Processing,
    Done,
    Failed,
}

impl Status {
    /// The contract's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// The state behind the contract's word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Processing, Self::Done, Self::Failed].into_iter().find(|s| s.as_str() == text)
    }

    /// Does nothing follow it?
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

/// How the caller waits, which decides who goes first and which queue limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The caller holds the line.
    Sync,
    /// The caller comes back.
    Async,
}

impl Class {
    /// Both, in the order slots ask for work.
    pub const ALL: [Self; 2] = [Self::Sync, Self::Async];
}

/// Why the shot was taken when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettledBy {
    /// The page came to rest.
    Quiet,
    /// The settle budget ended first.
    Deadline,
}

impl SettledBy {
    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Deadline => "deadline",
        }
    }
}

/// What was seen while rendering. Whatever was not reached is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The document's address after redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// The document's HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Why the shot was taken when it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<SettledBy>,
    /// Requests the egress guard refused.
    pub blocked_requests: u32,
    /// Width of the image in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_width: Option<u32>,
    /// Height of the image in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_height: Option<u32>,
    /// Was the page longer than what a full-page image may hold?
    pub truncated: bool,
}

/// Why a grab ended without a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// The target site refused.
    RenderBlocked,
    /// The page could not be rendered.
    RenderFailed,
    /// The page led to an address that is not public.
    SsrfDetected,
    /// Ours: the attempts ran out.
    InternalError,
}

impl FailureReason {
    /// The contract's code for it.
    pub const fn code(self) -> Code {
        match self {
            Self::RenderBlocked => Code::RenderBlocked,
            Self::RenderFailed => Code::RenderFailed,
            Self::SsrfDetected => Code::SsrfDetected,
            Self::InternalError => Code::InternalError,
        }
    }

    /// The reason behind a stored code.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::RenderBlocked, Self::RenderFailed, Self::SsrfDetected, Self::InternalError]
            .into_iter()
            .find(|reason| reason.code().as_str() == text)
    }
}

/// A failure with the sentence its caller reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind.
    pub reason: FailureReason,
    /// One sentence for people, without anything of our inside.
    pub message: String,
}

impl Failure {
    /// A failure.
    pub fn new(reason: FailureReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// What a synchronous caller is answered.
    pub fn to_fault(&self) -> Fault {
        match self.reason {
            FailureReason::RenderBlocked => Fault::RenderBlocked(self.message.clone()),
            FailureReason::RenderFailed => Fault::RenderFailed(self.message.clone()),
            FailureReason::SsrfDetected => {
                Fault::SsrfDetected(Field::new("url", "", "a URL that leads to public addresses only"))
            }
            FailureReason::InternalError => Fault::InternalError,
        }
    }
}

/// The secret part of an image's address: 22 base62 characters, and the format's ending.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageKey(String);

const IMAGE_KEY_CHARS: usize = 22;

impl ImageKey {
    /// From 128 random bits and the file's ending.
    pub fn new(random: u128, ending: &str) -> Self {
        const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut rest = random;
        let mut text: String = (0..IMAGE_KEY_CHARS)
            .map(|_| {
                let digit = usize::try_from(rest % 62).unwrap_or(0);
                rest /= 62;
                char::from(DIGITS[digit])
            })
            .collect();
        text.push('.');
        text.push_str(ending);
        Self(text)
    }

    /// A key that came back from a store or an address, when it has the shape of one.
    pub fn parse(text: &str) -> Option<Self> {
        let (random, ending) = text.split_once('.')?;
        let shaped = random.len() == IMAGE_KEY_CHARS
            && random.bytes().all(|b| b.is_ascii_alphanumeric())
            && ["png", "jpeg", "webp"].contains(&ending);
        shaped.then(|| Self(text.to_owned()))
    }

    /// `{22}.{ending}`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where it lies below the image root: `i/{2}/{2}/{22}.{ending}`, so that no directory grows too large.
    pub fn path(&self) -> String {
        format!("i/{}/{}/{}", &self.0[..2], &self.0[2..4], self.0)
    }

    /// The format its ending names.
    pub fn format(&self) -> crate::capture::Format {
        self.0.split_once('.').and_then(|(_, ending)| crate::capture::Format::parse(ending)).unwrap_or_default()
    }
}

/// Where a grab stands, with what only that state has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a renderer.
    Pending,
    /// A renderer has it.
    Processing,
    /// There is, or was, a picture.
    Done {
        /// When it ended.
        finished_at: Timestamp,
        /// Where the picture lies; `None` for a placeholder, which is drawn on demand, and after deletion.
        image: Option<ImageKey>,
        /// Size of the file.
        size_bytes: u64,
        /// From the start of the render to the finished file.
        execution_ms: u32,
        /// What was seen.
        facts: Facts,
    },
    /// There is no picture.
    Failed {
        /// When it ended.
        finished_at: Timestamp,
        /// Why.
        failure: Failure,
        /// What was seen before it failed.
        facts: Facts,
    },
}

/// A grab as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grab {
    /// Its id.
    pub id: GrabId,
    /// Whose it is.
    pub team: TeamId,
    /// Which world it belongs to.
    pub environment: Environment,
    /// How its caller waits.
    pub class: Class,
    /// What was asked for.
    pub spec: CaptureSpec,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When its picture was deleted on request.
    pub deleted_at: Option<Timestamp>,
    /// Renders begun so far.
    pub attempts: u32,
    /// Where it stands.
    pub state: State,
}

impl Grab {
    /// The public status.
    pub const fn status(&self) -> Status {
        match self.state {
            State::Pending => Status::Pending,
            State::Processing => Status::Processing,
            State::Done { .. } => Status::Done,
            State::Failed { .. } => Status::Failed,
        }
    }

    /// Grows with every visible change, without a counter that each change would have to write.
    ///
    /// A grab alternates between pending and processing once per attempt, ends once and is deleted at most once.
    pub const fn revision(&self) -> u64 {
        let attempts = self.attempts as u64;
        match (&self.state, self.deleted_at) {
            (State::Pending, _) => 2 * attempts + 1,
            (State::Processing, _) => 2 * attempts,
            (State::Done { .. } | State::Failed { .. }, None) => 2 * attempts + 2,
            (State::Done { .. } | State::Failed { .. }, Some(_)) => 2 * attempts + 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::CaptureRequest;

    fn grab(attempts: u32, state: State, deleted: bool) -> Grab {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        Grab {
            id: GrabId(uuid::Uuid::nil()),
            team: TeamId(uuid::Uuid::nil()),
            environment: Environment::Live,
            class: Class::Sync,
            spec: CaptureSpec::parse(&request).unwrap(),
            created_at: Timestamp::from_ms(0),
            deleted_at: deleted.then_some(Timestamp::from_ms(1)),
            attempts,
            state,
        }
    }

    fn failed() -> State {
        State::Failed {
            finished_at: Timestamp::from_ms(0),
            failure: Failure::new(FailureReason::RenderFailed, "x"),
            facts: Facts::default(),
        }
    }

    #[test]
    fn revisions_grow_along_every_path() {
        let paths = [
            vec![grab(0, State::Pending, false), grab(0, failed(), false), grab(0, failed(), true)],
            vec![
                grab(0, State::Pending, false),
                grab(1, State::Processing, false),
                grab(1, State::Pending, false),
                grab(2, State::Processing, false),
                grab(2, failed(), false),
                grab(2, failed(), true),
            ],
        ];
        for path in paths {
            let revisions: Vec<u64> = path.iter().map(Grab::revision).collect();
            assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
        }
    }

    #[test]
    fn image_keys_have_one_shape() {
        let key = ImageKey::new(u128::MAX, "png");
        assert_eq!(ImageKey::parse(key.as_str()), Some(key.clone()));
        assert_eq!(key.path().len(), "i/ab/cd/".len() + 26);
        assert_ne!(key, ImageKey::new(u128::MAX - 1, "png"));
        for text in ["", "../../etc/passwd", "a.png", "0123456789012345678901.gif", "012345678901234567890/.png"] {
            assert_eq!(ImageKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn words_are_one_to_one() {
        for status in [Status::Pending, Status::Processing, Status::Done, Status::Failed] {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        assert_eq!(Status::parse("queued"), None);
    }
}
