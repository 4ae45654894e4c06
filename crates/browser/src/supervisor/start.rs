//! Starting a browser, and why there is none.

use std::path::PathBuf;
use std::time::Duration;

use crate::jail::Jail;
use crate::process::OwnerError;

/// Starts that fail in a row before it is said that browsers cannot be started here.
const ATTEMPTS: u32 = 3;

/// Between two attempts: a moment's lack of memory or processes may pass.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// Why browsers cannot be started here. The texts are for operators.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// No program.
    #[error("chromium-headless-shell is not installed, or cannot be executed; install it or name its path")]
    NoExecutable,
    /// Nobody to run it as.
    #[error("no user to run the browser as: {0}")]
    NoUser(String),
    /// The directory for browsers cannot be used.
    #[error("the directory {path} cannot be used: {reason}")]
    RunDir {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The browser's user cannot reach its directory.
    #[error("the browser's user cannot enter {0}: let others pass (chmod o+x), or choose another directory")]
    Barred(PathBuf),
    /// The proxy in front of the browser cannot listen.
    #[error("the egress proxy cannot listen: {0}")]
    Proxy(String),
    /// It does not get the jail that it must have. What stands in the way.
    #[error("the browser gets no network jail, which is required: {0}. {remedy}", remedy = Jail::REMEDY)]
    Jail(String),
    /// The program does not start, or not speak.
    #[error("the browser does not start: {reason}{}", wrote(.last_words))]
    Browser {
        /// What happened.
        reason: String,
        /// The end of what it wrote.
        last_words: String,
    },
}

impl From<OwnerError> for StartError {
    fn from(error: OwnerError) -> Self {
        Self::NoUser(error.to_string())
    }
}

/// Counts starts that failed in a row.
#[derive(Default)]
pub(super) struct Attempts(u32);

impl Attempts {
    /// Notes a failed start, and waits until it is time for another; false when there have been enough. Nobody tells when a
    /// machine's lack is over, so it is tried. A signal ends the wait: the keeper drops it at shutdown, and before the first
    /// browser runs there is no shutdown but the end of the process.
    pub(super) async fn go_on_after(&mut self, error: &StartError) -> bool {
        self.0 += 1;
        tracing::warn!(%error, attempt = self.0, "a browser does not start");
        if self.0 == ATTEMPTS {
            return false;
        }
        tokio::time::sleep(BETWEEN_ATTEMPTS).await;
        true
    }
}

fn wrote(text: &str) -> String {
    match text {
        "" => String::new(),
        text if text.contains("No usable sandbox") => {
            format!("; it may not make its sandbox here (user namespaces are forbidden); it wrote: {text}")
        }
        text => format!("; it wrote: {text}"),
    }
}
