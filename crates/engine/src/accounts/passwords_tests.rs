use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;

use super::*;

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

fn email(name: usize) -> [u8; 32] {
    key(&Email::parse(&format!("{name}@example.com")).unwrap())
}

#[test]
fn a_password_is_kept_as_argon2id_with_the_documented_cost() {
    let kept = hash("correct horse battery staple");
    assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{kept}");
    assert!(verify("correct horse battery staple", &kept));
    assert!(!verify("correct horse battery stapler", &kept));
    assert!(!verify("", &kept));
    assert_ne!(hash("correct horse battery staple"), kept, "the salt is drawn anew");
    assert!(!verify("x", "not a hash"));
}

#[test]
fn nobodys_password_costs_as_much_as_anybodys() {
    let (nobody, somebody) = (PasswordHash::new(NOBODY).unwrap(), hash("x"));
    let somebody = PasswordHash::new(&somebody).unwrap();
    assert_eq!((nobody.algorithm, nobody.version), (somebody.algorithm, somebody.version));
    assert_eq!(nobody.params, somebody.params);
    let length = |hash: &PasswordHash| (hash.salt.as_ref().unwrap().len(), hash.hash.as_ref().unwrap().len());
    assert_eq!(length(&nobody), length(&somebody));
}

#[tokio::test]
async fn an_address_that_nobody_has_is_checked_all_the_same() {
    let (passwords, tasks) = (Passwords::default(), TaskTracker::new());
    // Whatever the password, and even if somebody found one that fits.
    assert_eq!(passwords.verify(&tasks, "x", None).await, Ok(false));
    let _all = Arc::clone(&passwords.waiting).acquire_many_owned(u32::try_from(WAITING).unwrap()).await.unwrap();
    assert_eq!(passwords.verify(&tasks, "x", None).await, Err(Busy), "it takes a place like any other");
    assert_eq!(passwords.verify(&tasks, &"x".repeat(257), None).await, Ok(false), "and this one is no work");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_worked_off_a_few_at_a_time_and_the_rest_is_told() {
    let (passwords, tasks) = (Passwords::default(), TaskTracker::new());
    let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let flood = (0..WAITING + 10).map(|_| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        passwords.run(&tasks, move || {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::hint::black_box(hash("x"));
            now.fetch_sub(1, Ordering::SeqCst);
        })
    });
    let busy = join_all(flood).await.into_iter().filter(Result::is_err).count();
    assert_eq!(busy, 10);
    assert!((1..=AT_ONCE).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    assert_eq!((passwords.waiting.available_permits(), passwords.running.available_permits()), (WAITING, AT_ONCE));
}

#[test]
fn tries_come_back_one_by_one() {
    let mut tries = Tries::default();
    for _ in 0..TRIES {
        assert_eq!(tries.take(email(1), NOW), Ok(()));
    }
    assert_eq!(tries.take(email(1), NOW), Err(TRY_EVERY));
    assert_eq!(tries.take(email(2), NOW), Ok(()), "another account has its own");
    let soon = NOW + TRY_EVERY / 3;
    assert_eq!(tries.take(email(1), soon), Err(TRY_EVERY - TRY_EVERY / 3));
    assert_eq!(tries.take(email(1), NOW + TRY_EVERY), Ok(()));
    assert_eq!(tries.take(email(1), NOW + TRY_EVERY), Err(TRY_EVERY));
    tries.give_back(email(1));
    assert_eq!(tries.take(email(1), NOW + TRY_EVERY), Ok(()));
    let much_later = NOW + TRY_EVERY * 1000;
    for _ in 0..TRIES {
        assert_eq!(tries.take(email(1), much_later), Ok(()));
    }
    assert!(tries.take(email(1), much_later).is_err(), "no more than all of them come back");
}

#[test]
fn what_is_counted_is_bounded_and_the_guessed_at_stay() {
    let mut tries = Tries::default();
    for _ in 0..TRIES {
        tries.take(email(0), NOW).unwrap();
    }
    for name in 1..COUNTED + 100 {
        tries.take(email(name), NOW).unwrap();
    }
    assert_eq!(tries.0.len(), COUNTED);
    assert!(tries.take(email(0), NOW).is_err(), "whoever has the fewest left is forgotten last");
    let later = NOW + TRY_EVERY;
    tries.take(email(COUNTED * 2), later).unwrap();
    assert_eq!(tries.0.len(), 2, "those that have all their tries are forgotten first");
}
