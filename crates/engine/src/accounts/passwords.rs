//! Password hashing with argon2id, with a limit on concurrent hashes.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::PasswordHasher;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordVerifier, Version};
use grabd_domain::accounts::PASSWORD_CHARS;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::tries::TryLimits;
use crate::random;

/// Retry delay in seconds when too many passwords are being hashed.
pub(super) const BUSY_RETRY_S: u64 = 5;

/// The argon2id parameters of OWASP's Password Storage Cheat Sheet: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// Hashes computed concurrently. Bounds a flood of sign-ins to 80 MB and leaves processors for other work.
const MAX_CONCURRENT: usize = 4;
/// Requests in progress or waiting for a permit. One processor computes about twenty hashes per second, so the last one
/// waits a few seconds.
const MAX_WAITING: usize = 64;
/// How long a request waits for a permit.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// A hash that no password matches. It is verified for unknown addresses, so that they take the same time.
const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGlzIHNhbHRlZA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Too many passwords are being hashed; retry later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Hashes and checks passwords.
pub(crate) struct Passwords {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// Tries of each account.
    pub(super) tries: TryLimits,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            running: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            tries: TryLimits::default(),
        }
    }
}

impl Passwords {
    /// Hashes a password for storage.
    ///
    /// # Errors
    /// [`Busy`] when too many are being hashed.
    pub(crate) async fn hash(&self, tasks: &TaskTracker, password: &str) -> Result<String, Busy> {
        let password = password.to_owned();
        self.run(tasks, move || hash(&password)).await
    }

    /// Verifies a password against the stored hash. Without a hash (unknown address) the result is `false` and takes as
    /// long.
    ///
    /// # Errors
    /// [`Busy`] when too many are being hashed.
    pub(crate) async fn verify(
        &self,
        tasks: &TaskTracker,
        password: &str,
        stored_hash: Option<String>,
    ) -> Result<bool, Busy> {
        // Longer than any allowed password, so it cannot match.
        if password.chars().nth(*PASSWORD_CHARS.end()).is_some() {
            return Ok(false);
        }
        let password = password.to_owned();
        let is_known = stored_hash.is_some();
        let stored_hash = stored_hash.unwrap_or_else(|| DUMMY_HASH.to_owned());
        Ok(self.run(tasks, move || verify(&password, &stored_hash)).await? && is_known)
    }

    async fn run<T: Send + 'static>(
        &self,
        tasks: &TaskTracker,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let waiting = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| Busy)?;
        let running = Arc::clone(&self.running).acquire_owned();
        let running = timeout(QUEUE_TIMEOUT, running).await.map_err(|_| Busy)?.map_err(|_| Busy)?;
        // The permits move into the blocking task, which continues when the request is dropped.
        let task = move || {
            let _permits = (waiting, running);
            work()
        };
        tasks.spawn_blocking(task).await.map_err(|_| Busy)
    }
}

/// Hashes a password. Blocking and slow: do not call it on an async worker thread.
pub(super) fn hash(password: &str) -> String {
    let salt = random::secret();
    let hash: PasswordHash = argon2()
        .hash_password_with_salt(password.as_bytes(), &salt[..16])
        .expect("salt and password lengths are within argon2's bounds");
    hash.to_string()
}

fn verify(password: &str, stored_hash: &str) -> bool {
    match PasswordHash::new(stored_hash) {
        Ok(hash) => argon2().verify_password(password.as_bytes(), &hash).is_ok(),
        Err(error) => {
            tracing::error!(%error, "a stored password hash is malformed");
            false
        }
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("the constants are within argon2's bounds");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

#[cfg(test)]
#[path = "passwords_tests.rs"]
mod tests;
