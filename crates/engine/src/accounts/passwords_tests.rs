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

/// A stranger from the IPv4 end site with this number.
fn stranger(site: u8) -> HashedFor {
    HashedFor::Stranger(IpAddr::from([203, 0, site, 9]))
}

/// Takes all places of strangers.
fn flood(passwords: &Passwords) -> Vec<Turn> {
    let sites = (0..=255_u8).map(|number| IpAddr::from([203, 0, number, 0]));
    sites.map_while(|site| passwords.strangers.waiting.try_take(&site).ok()).collect()
}

#[tokio::test]
async fn verify_without_a_stored_hash_takes_a_permit_and_fails() {
    let (passwords, tasks) = (Passwords::default(), TaskTracker::new());
    assert_eq!(passwords.verify(&tasks, stranger(1), "x", None).await, Ok(false));
    let _all = flood(&passwords);
    assert_eq!(passwords.verify(&tasks, stranger(1), "x", None).await, Err(Busy), "it takes a permit");
    assert_eq!(
        passwords.verify(&tasks, stranger(1), &"x".repeat(257), None).await,
        Ok(false),
        "a password that is too long is not hashed"
    );
}

#[tokio::test]
async fn half_of_the_places_is_kept_for_those_who_are_known() {
    let (passwords, tasks) = (Passwords::default(), TaskTracker::new());
    let _waiting = flood(&passwords);
    let _running = Arc::clone(&passwords.strangers.running).acquire_many_owned(2).await.unwrap();
    assert_eq!(passwords.hash(&tasks, stranger(1), "x").await, Err(Busy));
    let network = IpAddr::from([203, 0, 1, 9]);
    for source in [Source::Device([1; 32]), Source::KnownNetwork(network), Source::Session([1; 32])] {
        assert_eq!(passwords.verify(&tasks, source.into(), "x", None).await, Ok(false), "{source:?}");
    }
    // One of them cannot take all of that half.
    let held: Vec<_> = (0..100).map_while(|_| passwords.known.waiting.try_take(&[1; 32]).ok()).collect();
    assert_eq!(held.len(), MAX_OF_KNOWN);
    assert_eq!(passwords.verify(&tasks, HashedFor::Known([1; 32]), "x", None).await, Err(Busy));
    assert!(passwords.hash(&tasks, HashedFor::Known([2; 32]), "x").await.is_ok());
}

#[tokio::test]
async fn end_site_has_a_part_of_the_places_of_strangers() {
    let (passwords, tasks) = (Passwords::default(), TaskTracker::new());
    let held: Vec<_> = (0..=255_u8)
        .map_while(|host| passwords.strangers.waiting.try_take(&end_site(IpAddr::from([203, 0, 7, host]))).ok())
        .collect();
    assert_eq!(held.len(), MAX_OF_END_SITE);
    assert_eq!(passwords.hash(&tasks, stranger(7), "x").await, Err(Busy));
    assert!(passwords.hash(&tasks, stranger(8), "x").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_hashes_are_bounded_and_excess_requests_are_busy() {
    let (passwords, tasks) = (Passwords::default(), TaskTracker::new());
    let (running, peak) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let flood = (0..MAX_WAITING + 10).map(|number| {
        let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
        passwords.run(&tasks, stranger(u8::try_from(number).unwrap()), move || {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::hint::black_box(hash("x"));
            running.fetch_sub(1, Ordering::SeqCst);
        })
    });
    let busy = join_all(flood).await.into_iter().filter(Result::is_err).count();
    assert_eq!(busy, 10);
    assert!((1..=MAX_CONCURRENT).contains(&peak.load(Ordering::SeqCst)), "{peak:?}");
    assert_eq!(passwords.strangers.running.available_permits(), MAX_CONCURRENT);
}
