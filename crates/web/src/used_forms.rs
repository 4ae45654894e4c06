//! The forms that have made a key, so that one that is sent again makes no second key.
//!
//! The answer to the form is the only page with the key, so it cannot redirect to a page that may be loaded again. The ids are
//! kept in memory: a form that is sent again after a restart, or to another process, makes another key.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::UserId;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// How long a form is remembered.
const REMEMBERED: Duration = Duration::from_secs(30 * 60);
/// Forms that are remembered of one user.
const MAX_OF_USER: usize = 20;
/// Users whose forms are remembered. Each takes at most 1 KiB.
const MAX_USERS: usize = 10_000;

type FormHash = [u8; 32];

/// The forms that have made a key, by user.
#[derive(Default)]
pub(crate) struct UsedForms(Mutex<HashMap<UserId, VecDeque<(FormHash, Timestamp)>>>);

impl UsedForms {
    /// Uses the form with this id. False if it was used before. A form without an id can always be used.
    pub(crate) fn start(&self, user: UserId, id: &str, now: Timestamp) -> bool {
        if id.is_empty() {
            return true;
        }
        let hash: FormHash = Sha256::digest(id).into();
        let mut users = self.0.lock();
        if !users.contains_key(&user) {
            make_room(&mut users, now);
        }
        let forms = users.entry(user).or_default();
        forms.retain(|(_, until)| now < *until);
        if forms.iter().any(|(used, _)| *used == hash) {
            return false;
        }
        if forms.len() == MAX_OF_USER {
            forms.pop_front();
        }
        forms.push_back((hash, now + REMEMBERED));
        true
    }

    /// Allows to send a form again, because it has made no key.
    pub(crate) fn release(&self, user: UserId, id: &str) {
        let hash: FormHash = Sha256::digest(id).into();
        if let Some(forms) = self.0.lock().get_mut(&user) {
            forms.retain(|(used, _)| *used != hash);
        }
    }
}

/// Makes room for another user: removes what has expired, then the user whose last form is the oldest.
fn make_room(users: &mut HashMap<UserId, VecDeque<(FormHash, Timestamp)>>, now: Timestamp) {
    if users.len() < MAX_USERS {
        return;
    }
    let last = |forms: &VecDeque<(FormHash, Timestamp)>| forms.back().map(|(_, until)| *until);
    users.retain(|_, forms| last(forms).is_some_and(|until| now < until));
    if users.len() < MAX_USERS {
        return;
    }
    let oldest = users.iter().min_by_key(|(_, forms)| last(forms)).map(|(user, _)| *user);
    if let Some(user) = oldest {
        users.remove(&user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: usize) -> UserId {
        format!("{number:08x}-0000-7000-8000-000000000000").parse().unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_ms(seconds * 1000)
    }

    #[test]
    fn form_makes_one_key_until_it_is_forgotten() {
        let forms = UsedForms::default();
        assert!(forms.start(user(1), "a", at(0)));
        assert!(!forms.start(user(1), "a", at(1)) && !forms.start(user(1), "a", at(1799)));
        assert!(forms.start(user(1), "b", at(1)) && forms.start(user(2), "a", at(1)));
        assert!(forms.start(user(1), "a", at(1800)));
    }

    #[test]
    fn form_that_made_no_key_can_be_sent_again() {
        let forms = UsedForms::default();
        assert!(forms.start(user(1), "a", at(0)));
        forms.release(user(1), "a");
        assert!(forms.start(user(1), "a", at(1)));
    }

    #[test]
    fn form_without_an_id_is_not_remembered() {
        let forms = UsedForms::default();
        assert!(forms.start(user(1), "", at(0)) && forms.start(user(1), "", at(0)));
    }

    #[test]
    fn memory_is_bounded_by_user_and_in_total() {
        let forms = UsedForms::default();
        for number in 0..=MAX_OF_USER {
            assert!(forms.start(user(0), &number.to_string(), at(0)));
        }
        // Only the oldest form of this user was forgotten.
        assert!(!forms.start(user(0), "1", at(1)) && forms.start(user(0), "0", at(1)));
        for number in 1..=MAX_USERS {
            assert!(forms.start(user(number), "a", at(2)));
        }
        assert_eq!(forms.0.lock().len(), MAX_USERS);
        assert!(!forms.start(user(MAX_USERS), "a", at(3)));
        assert!(!forms.0.lock().contains_key(&user(0)), "the user with the oldest form is forgotten");
    }
}
