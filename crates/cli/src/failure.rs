//! Why something did not work, what to do about it, and the exit code that scripts see.

use std::path::PathBuf;
use std::process::ExitCode;

use reqwest::StatusCode;
use url::Url;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Done = 0,
    /// A page could not be captured, or there is no such capture.
    Failed = 1,
    /// Something was asked wrongly.
    Usage = 2,
    /// Nobody is signed in, or not as somebody who may.
    Unauthorized = 3,
    /// There are no credits left.
    NoCredits = 4,
    /// A limit held on beyond the retries.
    Limited = 5,
    /// The service cannot be reached.
    Unreachable = 6,
    /// The service or this machine failed.
    Broken = 7,
    /// Somebody pressed Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why something did not work. The causes behind it are its sources.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// What was asked makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The service did not answer.
    #[error("{base} cannot be reached")]
    Unreachable {
        /// Its address.
        base: Url,
        /// What happened.
        source: reqwest::Error,
    },
    /// The service said no.
    #[error("{0}")]
    Refused(Refusal),
    /// Something answered that does not speak as grabd does.
    #[error("{url} answered HTTP {status}, which is not an answer of grabd")]
    Foreign {
        /// What was asked.
        url: Url,
        /// What it said.
        status: StatusCode,
    },
    /// A queued capture took longer than somebody wanted to wait.
    #[error("capture {id} is still {status} after {seconds} s")]
    NotYet {
        /// Its id.
        id: String,
        /// How it stands.
        status: String,
        /// How long was waited.
        seconds: u64,
    },
    /// A queued capture failed.
    #[error("{message}")]
    NotCaptured {
        /// Why.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// Nobody is signed in.
    #[error("there is no API key and nobody is signed in")]
    SignedOut,
    /// Signing in did not work.
    #[error("signing in failed: {0}")]
    Login(String),
}

/// The service's no.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The contract's code.
    pub(crate) code: String,
    /// For people.
    pub(crate) message: String,
    /// By which the operator finds the request in the log.
    pub(crate) request_id: Option<String>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl Failure {
    /// A file that could not be read or written.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }

    /// Something that did not answer, or not to the end.
    pub(crate) fn unreachable(url: &Url) -> impl FnOnce(reqwest::Error) -> Self {
        let base = url.clone();
        // The address is told already, and once is enough.
        |source| Self::Unreachable { base, source: source.without_url() }
    }

    /// The contract's code, where the service said no.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => Some(&refusal.code),
            Self::Usage(_)
            | Self::Unreachable { .. }
            | Self::Foreign { .. }
            | Self::NotYet { .. }
            | Self::NotCaptured { .. }
            | Self::File { .. }
            | Self::SignedOut
            | Self::Login(_) => None,
        }
    }

    /// What scripts see.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::NotYet { .. } | Self::NotCaptured { .. } => Exit::Failed,
            Self::Foreign { .. } | Self::File { .. } => Exit::Broken,
            Self::SignedOut | Self::Login(_) => Exit::Unauthorized,
            Self::Refused(refusal) => match refusal.code.as_str() {
                "unauthorized" => Exit::Unauthorized,
                "bad_request" | "invalid_viewport" | "idempotency_mismatch" => Exit::Usage,
                "credits_exhausted" => Exit::NoCredits,
                "rate_limit_exceeded" | "queue_limit_exceeded" | "idempotency_conflict" => Exit::Limited,
                "ssrf_detected" | "render_blocked" | "render_failed" | "not_found" => Exit::Failed,
                _ => Exit::Broken,
            },
        }
    }

    /// What to do next, where that can be said.
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::SignedOut => "Run `grab login`, or put a key of the service into GRAB_API_KEY.",
            Self::Unreachable { base, .. } => {
                return Some(format!("Is the service running there? GRAB_BASE_URL or --base-url say where: {base}"));
            }
            Self::Foreign { .. } => "GRAB_BASE_URL has to be the address of a grabd service, ending in /v1.",
            Self::NotYet { id, .. } => return Some(format!("It goes on; `grab watch {id}` follows it.")),
            Self::NotCaptured { .. } => "Nothing was charged.",
            Self::Refused(refusal) => match refusal.code.as_str() {
                "unauthorized" => {
                    "The key or the sign-in is not known there, or was revoked: `grab login` makes a new one."
                }
                "credits_exhausted" => "`grab usage` shows where to buy more.",
                "rate_limit_exceeded" => "Ask again in a minute, or with a larger --retries.",
                "queue_limit_exceeded" => "Wait for some of the queued captures, or with a larger --retries.",
                "ssrf_detected" => "Only pages at public addresses are captured. Nothing was charged.",
                "render_blocked" | "render_failed" => "Nothing was charged.",
                "not_found" => "Captures are seen by the team and the environment that made them: `grab list`.",
                "internal_error" => match &refusal.request_id {
                    Some(id) => return Some(format!("The operator finds it in the log as request {id}.")),
                    None => return None,
                },
                _ => return None,
            },
            Self::Usage(_) | Self::File { .. } | Self::Login(_) => return None,
        };
        Some(hint.to_owned())
    }

    /// Does it concern everything that would be asked after it too?
    pub(crate) fn is_final(&self) -> bool {
        match self.exit() {
            Exit::Unauthorized | Exit::NoCredits | Exit::Unreachable => true,
            Exit::Broken => matches!(self, Self::Foreign { .. } | Self::File { .. }),
            Exit::Done | Exit::Failed | Exit::Usage | Exit::Limited | Exit::Interrupted => false,
        }
    }

    /// For people: what happened, the causes behind it, and what to do.
    pub(crate) fn told(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}
