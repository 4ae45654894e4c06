//! Passwords: kept as argon2id, a few hashed at a time, and tried a few times only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::password_hash::PasswordHasher;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordVerifier, Version};
use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, PASSWORD_CHARS};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::chance;

/// What OWASP's Password Storage Cheat Sheet asks of argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// Hashes computed at a time, so that a flood of sign-ins takes no more than 80 MB and some of the processors.
const AT_ONCE: usize = 4;
/// Who may wait for a place. At some twenty a second on one processor, the last of them waits a few seconds.
const WAITING: usize = 64;
/// How long anybody waits for a place.
const PATIENCE: Duration = Duration::from_secs(10);
/// Wrong passwords for one account at once, and how long it takes until one more may be tried: NIST SP 800-63B section
/// 3.2.2 wants no more than 100 in a row; at this rate a guesser has a thousand a day, and a person who mistypes has enough.
const TRIES: u32 = 10;
const TRY_EVERY: Duration = Duration::from_secs(90);
/// Accounts whose wrong passwords are counted. Whoever wants to push another account out of the memory has to try wrong
/// passwords for as many others.
const COUNTED: usize = 10_000;

/// A hash of no password: what is computed for an address that nobody has must take the same time.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGlzIHNhbHRlZA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Too many want the same; come back later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Hashes and checks passwords.
pub(crate) struct Passwords {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    tries: Mutex<Tries>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            running: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Arc::new(Semaphore::new(WAITING)),
            tries: Mutex::default(),
        }
    }
}

impl Passwords {
    /// What is kept of a password.
    ///
    /// # Errors
    /// When too many are being hashed.
    pub(crate) async fn hash(&self, tasks: &TaskTracker, password: &str) -> Result<String, Busy> {
        let password = password.to_owned();
        self.run(tasks, move || hash(&password)).await
    }

    /// Is this the password? For an address that nobody has, the answer is no and takes as long.
    ///
    /// # Errors
    /// When too many are being hashed.
    pub(crate) async fn verify(&self, tasks: &TaskTracker, password: &str, kept: Option<String>) -> Result<bool, Busy> {
        // No account has such a password, and hashing it would be work for nothing.
        if password.chars().nth(*PASSWORD_CHARS.end()).is_some() {
            return Ok(false);
        }
        let password = password.to_owned();
        let is_somebody = kept.is_some();
        let kept = kept.unwrap_or_else(|| NOBODY.to_owned());
        Ok(self.run(tasks, move || verify(&password, &kept)).await? && is_somebody)
    }

    /// Takes one try at an account's password.
    ///
    /// # Errors
    /// When there is none left; how long until there is one.
    pub(crate) fn take_try(&self, email: &Email, now: Timestamp) -> Result<(), Duration> {
        self.tries.lock().unwrap_or_else(PoisonError::into_inner).take(key(email), now)
    }

    /// Gives a try back, since the password was right.
    pub(crate) fn give_back(&self, email: &Email) {
        self.tries.lock().unwrap_or_else(PoisonError::into_inner).give_back(key(email));
    }

    async fn run<T: Send + 'static>(
        &self,
        tasks: &TaskTracker,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let waiting = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| Busy)?;
        let running = Arc::clone(&self.running).acquire_owned();
        let running = timeout(PATIENCE, running).await.map_err(|_| Busy)?.map_err(|_| Busy)?;
        // The places go with the work, which goes on when whoever wants it has gone.
        let held = move || {
            let _places = (waiting, running);
            work()
        };
        tasks.spawn_blocking(held).await.map_err(|_| Busy)
    }
}

/// What is kept of a password. Takes a while: not for a task that others wait for.
pub(super) fn hash(password: &str) -> String {
    let salt = chance::secret();
    let hash: PasswordHash = argon2()
        .hash_password_with_salt(password.as_bytes(), &salt[..16])
        .expect("the length of salt and password are in argon2's bounds");
    hash.to_string()
}

fn verify(password: &str, kept: &str) -> bool {
    match PasswordHash::new(kept) {
        Ok(kept) => argon2().verify_password(password.as_bytes(), &kept).is_ok(),
        Err(error) => {
            tracing::error!(%error, "what is kept of a password cannot be read");
            false
        }
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("the numbers are in argon2's bounds");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// Not the address itself: who tries to sign in is nobody's business.
fn key(email: &Email) -> [u8; 32] {
    Sha256::digest(email.as_str().as_bytes()).into()
}

/// For each account, when all its tries will be back. Those that have theirs need not be remembered.
#[derive(Default)]
struct Tries(HashMap<[u8; 32], Timestamp>);

impl Tries {
    fn take(&mut self, key: [u8; 32], now: Timestamp) -> Result<(), Duration> {
        let full_at = self.0.get(&key).copied().unwrap_or(now).max(now) + TRY_EVERY;
        let limit = now + TRY_EVERY * TRIES;
        if full_at > limit {
            return Err(full_at.since(limit));
        }
        if self.0.len() >= COUNTED && !self.0.contains_key(&key) {
            self.make_room(now);
        }
        self.0.insert(key, full_at);
        Ok(())
    }

    fn give_back(&mut self, key: [u8; 32]) {
        if let Some(full_at) = self.0.get_mut(&key) {
            *full_at = *full_at - TRY_EVERY;
        }
    }

    /// Forgets those that have all their tries, or else the one that is closest to it.
    fn make_room(&mut self, now: Timestamp) {
        self.0.retain(|_, full_at| *full_at > now);
        if self.0.len() >= COUNTED
            && let Some(first) = self.0.iter().min_by_key(|(_, full_at)| **full_at).map(|(key, _)| *key)
        {
            self.0.remove(&first);
        }
    }
}

#[cfg(test)]
#[path = "passwords_tests.rs"]
mod tests;
