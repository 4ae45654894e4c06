use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;

use super::*;

#[test]
fn password_hash_uses_argon2id_with_the_documented_cost() {
    let stored = hash("correct horse battery staple");
    assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
    assert!(verify("correct horse battery staple", &stored));
    assert!(!verify("correct horse battery stapler", &stored));
    assert!(!verify("", &stored));
    assert_ne!(hash("correct horse battery staple"), stored, "each hash has its own salt");
    assert!(!verify("x", "not a hash"));
}

#[test]
fn dummy_hash_has_the_cost_of_a_real_hash() {
    let (dummy, real) = (PasswordHash::new(DUMMY_HASH).unwrap(), hash("x"));
    let real = PasswordHash::new(&real).unwrap();
    assert_eq!((dummy.algorithm, dummy.version), (real.algorithm, real.version));
    assert_eq!(dummy.params, real.params);
    let length = |hash: &PasswordHash| (hash.salt.as_ref().unwrap().len(), hash.hash.as_ref().unwrap().len());
    assert_eq!(length(&dummy), length(&real));
}

#[tokio::test]
async fn verify_without_a_stored_hash_takes_a_permit_and_fails() {
    let (passwords, tasks) = (Passwords::default(), TaskTracker::new());
    assert_eq!(passwords.verify(&tasks, "x", None).await, Ok(false));
    let _all = Arc::clone(&passwords.waiting).acquire_many_owned(u32::try_from(MAX_WAITING).unwrap()).await.unwrap();
    assert_eq!(passwords.verify(&tasks, "x", None).await, Err(Busy), "it takes a permit");
    assert_eq!(
        passwords.verify(&tasks, &"x".repeat(257), None).await,
        Ok(false),
        "a password that is too long is not hashed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_hashes_are_bounded_and_excess_requests_are_busy() {
    let (passwords, tasks) = (Passwords::default(), TaskTracker::new());
    let (running, peak) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let flood = (0..MAX_WAITING + 10).map(|_| {
        let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
        passwords.run(&tasks, move || {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::hint::black_box(hash("x"));
            running.fetch_sub(1, Ordering::SeqCst);
        })
    });
    let busy = join_all(flood).await.into_iter().filter(Result::is_err).count();
    assert_eq!(busy, 10);
    assert!((1..=MAX_CONCURRENT).contains(&peak.load(Ordering::SeqCst)), "{peak:?}");
    assert_eq!(
        (passwords.waiting.available_permits(), passwords.running.available_permits()),
        (MAX_WAITING, MAX_CONCURRENT)
    );
}
