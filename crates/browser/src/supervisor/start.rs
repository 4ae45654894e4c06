//! Errors and retries of browser starts.

use std::path::PathBuf;
use std::time::Duration;

use crate::jail::Jail;
use crate::process::OwnerError;

/// Consecutive failed starts after which starting a browser counts as impossible.
const MAX_ATTEMPTS: u32 = 3;

/// The pause between two attempts. A lack of memory or processes may be temporary.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Why browsers cannot be started. The texts are for operators.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// No executable was found.
    #[error("chromium-headless-shell is not installed, or cannot be executed; install it or name its path")]
    NoExecutable,
    /// No user to run it as was found.
    #[error("no user to run the browser as: {0}")]
    NoUser(String),
    /// The run directory cannot be used.
    #[error("the directory {path} cannot be used: {reason}")]
    RunDir {
        /// Its path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The browser's user cannot enter this directory.
    #[error("the browser's user cannot enter {0}: let others pass (chmod o+x), or choose another directory")]
    Barred(PathBuf),
    /// The egress proxy cannot listen.
    #[error("the egress proxy cannot listen: {0}")]
    Proxy(String),
    /// The network jail is required and unavailable for this reason.
    #[error("the browser gets no network jail, which is required: {0}. {remedy}", remedy = Jail::REMEDY)]
    Jail(String),
    /// The browser does not start or does not answer.
    #[error("the browser does not start: {reason}{}", stderr_suffix(.stderr_tail))]
    Browser {
        /// The reason.
        reason: String,
        /// The end of its standard error output.
        stderr_tail: String,
    },
}

impl From<OwnerError> for StartError {
    fn from(error: OwnerError) -> Self {
        Self::NoUser(error.to_string())
    }
}

/// Counts consecutive failed starts.
#[derive(Default)]
pub(super) struct StartAttempts(u32);

impl StartAttempts {
    /// Records a failed start and waits before the next attempt. Returns false after the last attempt. There is no
    /// notification when resources become available, so it polls. The supervisor drops this future at shutdown; before
    /// the first browser runs, a signal ends the process.
    pub(super) async fn retry_after(&mut self, error: &StartError) -> bool {
        self.0 += 1;
        tracing::warn!(%error, attempt = self.0, "cannot start a browser");
        if self.0 == MAX_ATTEMPTS {
            return false;
        }
        // Backoff before the next start.
        tokio::time::sleep(RETRY_DELAY).await;
        true
    }
}

fn stderr_suffix(text: &str) -> String {
    match text {
        "" => String::new(),
        text if text.contains("No usable sandbox") => {
            format!("; it may not make its sandbox here (user namespaces are forbidden); it wrote: {text}")
        }
        text => format!("; it wrote: {text}"),
    }
}
