//! Errors, with a hint for the user and an exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use reqwest::StatusCode;
use url::Url;

use crate::http::EVIDENCE_KEYS_PATH;

/// Exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Done = 0,
    /// A page could not be captured, or the capture does not exist.
    Failed = 1,
    /// The arguments are invalid.
    Usage = 2,
    /// Not signed in, or not allowed.
    Unauthorized = 3,
    /// No credits are left.
    NoCredits = 4,
    /// Still rate limited after all retries.
    Limited = 5,
    /// The service cannot be reached.
    Unreachable = 6,
    /// An internal error, in the service or on this machine.
    Internal = 7,
    /// A page changed by more than `--fail-over`.
    Changed = 8,
    /// Evidence is valid, but does not prove that the service captured a page: the key was not checked, or it is of a test key.
    Unproven = 9,
    /// Interrupted with Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What a failed capture costs.
pub(crate) const NOTHING_CHARGED: &str = "Nothing was charged.";

/// The error type of the program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Invalid arguments.
    #[error("{0}")]
    Usage(String),
    /// The service did not respond.
    #[error("{base} cannot be reached")]
    Unreachable {
        /// The base URL.
        base: Url,
        /// The cause.
        source: reqwest::Error,
    },
    /// The API returned an error.
    #[error("{0}")]
    Api(ApiError),
    /// The response is not one that grabd sends.
    #[error("{url} returned HTTP {status}, which is not a grabd response")]
    UnexpectedResponse {
        /// The requested URL.
        url: Url,
        /// The status code.
        status: StatusCode,
    },
    /// A queued capture did not end within `--wait`.
    #[error("capture {id} is still {status} after {seconds} s")]
    WaitTimedOut {
        /// The id of the capture.
        id: String,
        /// Its last status.
        status: String,
        /// The value of `--wait`.
        seconds: u64,
    },
    /// A capture failed.
    #[error("{0}")]
    CaptureFailed(CaptureError),
    /// A capture has no image to download or open.
    #[error("{0}")]
    NoImage(String),
    /// A capture succeeded, but its image could not be saved.
    #[error("the image was captured, but not saved: {}", cause.message())]
    NotSaved {
        /// The id of the capture.
        id: String,
        /// The reason.
        cause: Box<Failure>,
    },
    /// A file could not be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// There is neither an API key nor a sign-in.
    #[error("no API key is set and you are not signed in")]
    NotSignedIn,
    /// The sign-in failed.
    #[error("sign-in failed: {0}")]
    Login(String),
}

/// An error that the API returned.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    /// The error code.
    pub(crate) code: String,
    /// The message for the user.
    pub(crate) message: String,
    /// Whose fault it is, if the service says it.
    pub(crate) cause: Option<String>,
    /// Identifies the request in the service's log.
    pub(crate) request_id: Option<String>,
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

/// Why a capture failed, as its grab says.
#[derive(Clone, Debug)]
pub(crate) struct CaptureError {
    /// The error code. None from versions of the service that do not send it.
    pub(crate) code: Option<String>,
    /// The message for the user.
    pub(crate) message: String,
    /// Whose fault it is.
    pub(crate) cause: Option<String>,
}

impl std::fmt::Display for CaptureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.code {
            Some(code) => write!(f, "{} ({code})", self.message),
            None => write!(f, "{}", self.message),
        }
    }
}

impl Failure {
    /// Maps an I/O error on `path`.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }

    /// Maps a request that got no response or an incomplete one.
    pub(crate) fn unreachable(url: &Url) -> impl FnOnce(reqwest::Error) -> Self {
        let base = url.clone();
        // The message already contains the URL.
        |source| Self::Unreachable { base, source: source.without_url() }
    }

    /// The error code, if the API returned an error or a failed capture.
    pub(crate) fn code(&self) -> Option<&str> {
        self.api_error().0
    }

    /// Whose fault it is, if the API says it.
    pub(crate) fn error_cause(&self) -> Option<&str> {
        self.api_error().1
    }

    /// Code and cause of what the API returned.
    fn api_error(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Self::Api(ApiError { code, cause, .. }) => (Some(code), cause.as_deref()),
            Self::CaptureFailed(CaptureError { code, cause, .. }) => (code.as_deref(), cause.as_deref()),
            Self::Usage(_)
            | Self::Unreachable { .. }
            | Self::UnexpectedResponse { .. }
            | Self::WaitTimedOut { .. }
            | Self::NoImage(_)
            | Self::NotSaved { .. }
            | Self::File { .. }
            | Self::NotSignedIn
            | Self::Login(_) => (None, None),
        }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::WaitTimedOut { .. } | Self::CaptureFailed(_) | Self::NoImage(_) => Exit::Failed,
            Self::NotSaved { cause, .. } => cause.exit(),
            Self::UnexpectedResponse { .. } | Self::File { .. } => Exit::Internal,
            Self::NotSignedIn | Self::Login(_) => Exit::Unauthorized,
            Self::Api(error) => match error.code.as_str() {
                "unauthorized" | "forbidden" => Exit::Unauthorized,
                "bad_request" | "invalid_viewport" | "idempotency_mismatch" => Exit::Usage,
                "credits_exhausted" => Exit::NoCredits,
                "rate_limit_exceeded" | "queue_limit_exceeded" | "idempotency_conflict" => Exit::Limited,
                "ssrf_detected" | "render_blocked" | "render_failed" | "not_found" => Exit::Failed,
                _ => Exit::Internal,
            },
        }
    }

    /// What the user can do, if there is anything.
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotSignedIn => "Run `grab login`, or set GRAB_API_KEY to an API key.",
            Self::Unreachable { base: url, .. } | Self::UnexpectedResponse { url, .. }
                if url.path() == EVIDENCE_KEYS_PATH =>
            {
                "--from must be the address of a grabd service, such as https://grabd.example."
            }
            Self::Unreachable { base, .. } => {
                return Some(format!(
                    "Is the service running at {base}? Set its address with GRAB_BASE_URL or --base-url."
                ));
            }
            Self::UnexpectedResponse { .. } => "GRAB_BASE_URL must be the address of a grabd service, ending in /v1.",
            Self::WaitTimedOut { id, .. } => {
                return Some(format!("The capture continues; follow it with `grab watch {id}`."));
            }
            Self::CaptureFailed(_) => NOTHING_CHARGED,
            Self::NotSaved { id, .. } => {
                return Some(format!(
                    "The capture is complete and was charged. Download its image with `grab show {id} -o FILE`."
                ));
            }
            Self::Api(error) => match error.code.as_str() {
                "forbidden" => "Sign in with `grab login --manage`, or use an API key with that scope.",
                "unauthorized" => "The API key or the sign-in is unknown or revoked. Sign in with `grab login`.",
                "credits_exhausted" => "`grab usage` shows where to buy credits.",
                "rate_limit_exceeded" => "Try again in a minute, or use a larger --retries.",
                "queue_limit_exceeded" => "Wait until some queued captures have ended, or use a larger --retries.",
                "ssrf_detected" => "Only pages at public addresses can be captured. Nothing was charged.",
                "render_blocked" | "render_failed" => NOTHING_CHARGED,
                "not_found" if error.message.starts_with("No monitor") => {
                    "Monitors belong to one team and one environment. `grab monitor list` shows those you can access."
                }
                "not_found" if error.message.starts_with("No proxy") => {
                    "Proxies belong to one team and one environment. `grab proxy list` shows those you can access."
                }
                "not_found" if error.message.starts_with("No site") => {
                    "Site jobs belong to one team and one environment. `grab site list` shows those you can access."
                }
                "not_found" if error.message.starts_with("No webhook") => {
                    "Webhooks belong to one team and one environment. `grab webhooks list` shows those you can access."
                }
                "not_found" => {
                    "Captures belong to one team and one environment. `grab list` shows those you can access."
                }
                "internal_error" => match &error.request_id {
                    Some(id) => return Some(format!("The request id for the operator's log is {id}.")),
                    None => return None,
                },
                _ => return None,
            },
            Self::Usage(_) | Self::NoImage(_) | Self::File { .. } | Self::Login(_) => return None,
        };
        Some(hint.to_owned())
    }

    /// Whether all following requests would fail in the same way.
    pub(crate) fn is_fatal(&self) -> bool {
        if let Self::NotSaved { cause, .. } = self {
            return cause.is_fatal();
        }
        match self.exit() {
            Exit::Unauthorized | Exit::NoCredits | Exit::Unreachable => true,
            Exit::Internal => matches!(self, Self::UnexpectedResponse { .. } | Self::File { .. }),
            Exit::Done
            | Exit::Failed
            | Exit::Usage
            | Exit::Limited
            | Exit::Changed
            | Exit::Unproven
            | Exit::Interrupted => false,
        }
    }

    /// The message, followed by its causes.
    pub(crate) fn message(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}
