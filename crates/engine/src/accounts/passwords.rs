//! Password hashing with argon2id, with a limit on concurrent hashes.
//!
//! Half of them is kept for those who have signed in before, or have a link from a mail: whoever floods the service with
//! passwords from unknown networks uses up the other half.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::PasswordHasher;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordVerifier, Version};
use grabd_domain::accounts::PASSWORD_CHARS;
use grabd_limiters::{Turn, Turns, end_site};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::tries::{Source, TryLimits};
use crate::digest;
use crate::random;

/// Retry delay in seconds when too many passwords are being hashed.
pub(super) const BUSY_RETRY_S: u64 = 5;

/// The argon2id parameters of OWASP's Password Storage Cheat Sheet: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// Hashes computed concurrently, for strangers and for others. Bounds a flood of sign-ins to 80 MB and leaves processors
/// for other work.
const MAX_CONCURRENT: usize = 2;
/// Requests in progress or waiting, for strangers and for others. One processor computes about twenty hashes per second, so
/// the last one waits a few seconds.
const MAX_WAITING: usize = 32;
/// Requests in progress or waiting of one end site of strangers.
const MAX_OF_END_SITE: usize = 16;
/// Requests in progress or waiting of one device, network, session or link.
const MAX_OF_KNOWN: usize = 4;
/// How long a request waits for a permit.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// A hash that no password matches. It is verified for unknown addresses, so that they take the same time.
const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGlzIHNhbHRlZA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Too many passwords are being hashed; retry later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Who has a password hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashedFor {
    /// A client of which nothing is known but its address.
    Stranger(IpAddr),
    /// A device, network, session or link that the service knows, by a digest.
    Known([u8; 32]),
}

impl From<Source> for HashedFor {
    fn from(source: Source) -> Self {
        match source {
            Source::Network(address) => Self::Stranger(address),
            Source::KnownNetwork(address) => Self::Known(digest::of(&address.to_string())),
            Source::Device(hash) | Source::Session(hash) => Self::Known(hash),
        }
    }
}

/// The requests of one half.
struct Half<K> {
    waiting: Turns<K>,
    running: Arc<Semaphore>,
}

impl<K: Clone + Eq + std::hash::Hash> Half<K> {
    fn new(max_of_key: usize) -> Self {
        let running = Arc::new(Semaphore::new(MAX_CONCURRENT));
        Self { waiting: Turns::new(MAX_WAITING, max_of_key), running }
    }

    /// Waits until a hash may be computed.
    async fn enter(&self, key: &K) -> Result<(Turn, OwnedSemaphorePermit), Busy> {
        let waiting = self.waiting.try_take(key).map_err(|_| Busy)?;
        let running = Arc::clone(&self.running).acquire_owned();
        let running = timeout(QUEUE_TIMEOUT, running).await.map_err(|_| Busy)?.map_err(|_| Busy)?;
        Ok((waiting, running))
    }
}

/// Hashes and checks passwords.
pub(crate) struct Passwords {
    /// By end site.
    strangers: Half<IpAddr>,
    known: Half<[u8; 32]>,
    /// Tries of each account.
    pub(super) tries: TryLimits,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { strangers: Half::new(MAX_OF_END_SITE), known: Half::new(MAX_OF_KNOWN), tries: TryLimits::default() }
    }
}

impl Passwords {
    /// Hashes a password for storage.
    ///
    /// # Errors
    /// [`Busy`] when too many are being hashed.
    pub(crate) async fn hash(&self, tasks: &TaskTracker, hashed: HashedFor, password: &str) -> Result<String, Busy> {
        let password = password.to_owned();
        self.run(tasks, hashed, move || hash(&password)).await
    }

    /// Verifies a password against the stored hash. Without a hash (unknown address) the result is `false` and takes as
    /// long.
    ///
    /// # Errors
    /// [`Busy`] when too many are being hashed.
    pub(crate) async fn verify(
        &self,
        tasks: &TaskTracker,
        hashed: HashedFor,
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
        Ok(self.run(tasks, hashed, move || verify(&password, &stored_hash)).await? && is_known)
    }

    async fn run<T: Send + 'static>(
        &self,
        tasks: &TaskTracker,
        hashed: HashedFor,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let permits = match hashed {
            HashedFor::Stranger(address) => self.strangers.enter(&end_site(address)).await?,
            HashedFor::Known(key) => self.known.enter(&key).await?,
        };
        // The permits move into the blocking task, which continues when the request is dropped.
        let task = move || {
            let _permits = permits;
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
