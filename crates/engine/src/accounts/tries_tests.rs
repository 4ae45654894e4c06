use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

fn key(name: usize) -> [u8; 32] {
    Sha256::digest(name.to_string().as_bytes()).into()
}

fn email(name: &str) -> Email {
    Email::parse(&format!("{name}@example.com")).unwrap()
}

/// A network of an end site of its own.
fn network(number: u32) -> Source {
    Source::Network(Ipv4Addr::from_bits(number << 8).into())
}

/// Takes tries until one is refused. Returns their number and the wait.
fn exhaust(limits: &TryLimits, email: &Email, source: Source) -> (u32, Duration) {
    let mut taken = 0;
    loop {
        match limits.take(email, source, NOW) {
            Ok(()) => taken += 1,
            Err(wait) => return (taken, wait),
        }
    }
}

#[test]
fn tries_are_refilled_one_by_one() {
    let (mut tries, interval) = (Tries::new(BY_SOURCE), BY_SOURCE.interval);
    for _ in 0..BY_SOURCE.tries {
        assert_eq!(tries.take(key(1), NOW), Ok(()));
    }
    assert_eq!(tries.take(key(1), NOW), Err(interval));
    assert_eq!(tries.take(key(2), NOW), Ok(()), "tries are counted per key");
    assert_eq!(tries.take(key(1), NOW + interval / 3), Err(interval - interval / 3));
    assert_eq!(tries.take(key(1), NOW + interval), Ok(()));
    assert_eq!(tries.take(key(1), NOW + interval), Err(interval));
    tries.give_back(key(1));
    assert_eq!(tries.take(key(1), NOW + interval), Ok(()));
    let much_later = NOW + interval * 1000;
    for _ in 0..BY_SOURCE.tries {
        assert_eq!(tries.take(key(1), much_later), Ok(()));
    }
    assert!(tries.take(key(1), much_later).is_err(), "the refill is capped");
}

#[test]
fn tracked_keys_are_bounded_and_exhausted_ones_are_evicted_last() {
    let mut tries = Tries::new(BY_SOURCE);
    for _ in 0..BY_SOURCE.tries {
        tries.take(key(0), NOW).unwrap();
    }
    for name in 1..MAX_TRACKED {
        tries.take(key(name), NOW).unwrap();
    }
    tries.take(key(MAX_TRACKED), NOW).unwrap();
    assert_eq!(tries.full_at.len(), MAX_TRACKED);
    assert!(tries.take(key(0), NOW).is_err(), "the key with the fewest tries left is evicted last");
    let later = NOW + BY_SOURCE.interval;
    tries.take(key(MAX_TRACKED * 2), later).unwrap();
    assert_eq!(tries.full_at.len(), 2, "keys with all tries are evicted first");
}

#[test]
fn tries_of_one_network_do_not_affect_other_sources_of_the_account() {
    let (limits, ada) = (TryLimits::default(), email("ada"));
    assert_eq!(exhaust(&limits, &ada, network(1)), (10, BY_SOURCE.interval));
    for other in [network(2), Source::Device([1; 32]), Source::KnownNetwork(Ipv4Addr::LOCALHOST.into())] {
        assert_eq!(limits.take(&ada, other, NOW), Ok(()), "{other:?}");
    }
    assert_eq!(limits.take(&email("bob"), network(1), NOW), Ok(()));
}

#[test]
fn unknown_networks_share_the_tries_of_the_account_and_known_sources_do_not_need_them() {
    let (limits, ada) = (TryLimits::default(), email("ada"));
    let taken: u32 = (0..1000).map(|number| exhaust(&limits, &ada, network(number)).0).sum();
    assert_eq!(taken, 100);
    assert_eq!(limits.take(&ada, network(5000), NOW), Err(BY_ACCOUNT.interval));
    assert_eq!(limits.take(&ada, network(5000), NOW + BY_ACCOUNT.interval), Ok(()), "it slows and does not lock");
    let known = Ipv4Addr::from_bits(6000).into();
    for source in [Source::Device([1; 32]), Source::KnownNetwork(known), Source::Session([1; 32])] {
        assert_eq!(exhaust(&limits, &ada, source).0, 10, "{source:?}");
    }
    // A refused try is not counted for its network.
    let later = NOW + BY_ACCOUNT.interval * 100;
    for _ in 0..10 {
        assert_eq!(limits.take(&ada, network(7000), later), Ok(()));
    }
}

#[test]
fn networks_of_one_end_site_do_not_use_up_the_tries_of_others() {
    let ada = email("ada");
    let in_ipv6 =
        |site: u16, network: u16| Source::Network(Ipv6Addr::new(0x2001, 0xdb8, site, network, 0, 0, 0, 0).into());
    let in_ipv4 =
        |site: u16, host: u16| Source::Network(Ipv4Addr::from_bits(u32::from(site) << 8 | u32::from(host)).into());
    let sources: [&dyn Fn(u16, u16) -> Source; 2] = [&in_ipv6, &in_ipv4];
    for source in sources {
        let limits = TryLimits::default();
        let mut now = NOW;
        // For an hour, as often as possible.
        let mut taken: u32 = 0;
        while now < NOW + Duration::from_secs(60 * 60) {
            taken += (0..256).map(|network| u32::from(limits.take(&ada, source(1, network), now).is_ok())).sum::<u32>();
            now = now + Duration::from_secs(30);
        }
        assert!((20..=60).contains(&taken), "{taken}");
        assert_eq!(limits.take(&ada, source(2, 1), now), Ok(()));
    }
}

#[test]
fn device_has_its_own_tries_in_its_network() {
    let (limits, ada) = (TryLimits::default(), email("ada"));
    let address = Ipv4Addr::LOCALHOST.into();
    assert_eq!(exhaust(&limits, &ada, Source::KnownNetwork(address)).0, 10);
    assert_eq!(exhaust(&limits, &ada, Source::Network(address)).0, 0, "a network keeps its tries when it is known");
    assert_eq!(exhaust(&limits, &ada, Source::Device([1; 32])).0, 10);
}

#[test]
fn returned_tries_can_be_taken_again() {
    let (limits, ada) = (TryLimits::default(), email("ada"));
    for _ in 0..1000 {
        limits.take(&ada, network(1), NOW).unwrap();
        limits.give_back(&ada, network(1));
    }
}

#[test]
fn wrong_codes_from_all_networks_share_five_tries_and_devices_have_their_own() {
    let (limits, ada) = (TryLimits::default(), email("ada"));
    let exhaust_codes = |source| (0..1000).take_while(|_| limits.take_code(&ada, source, NOW).is_ok()).count();
    assert_eq!(exhaust_codes(network(1)), 5);
    assert_eq!(exhaust_codes(network(2)), 0);
    assert_eq!(exhaust_codes(Source::KnownNetwork(Ipv4Addr::LOCALHOST.into())), 0);
    for source in [Source::Device([1; 32]), Source::Device([2; 32]), Source::Session([1; 32])] {
        assert_eq!(exhaust_codes(source), 5, "{source:?}");
    }
    assert_eq!(limits.take_code(&email("bob"), network(1), NOW), Ok(()));
    // Passwords are counted apart.
    assert_eq!(limits.take(&ada, network(1), NOW), Ok(()));
    assert_eq!(limits.take_code(&ada, network(3), NOW), Err(CODES.interval));
    let later = NOW + CODES.interval;
    assert_eq!(limits.take_code(&ada, network(3), later), Ok(()));
    assert!(limits.take_code(&ada, network(3), later).is_err());
    limits.give_back_code(&ada, network(4));
    assert_eq!(limits.take_code(&ada, network(3), later), Ok(()));
}

#[test]
fn fifth_wrong_code_of_a_day_is_reported_once_however_slow_the_guesses_are() {
    let (limits, ada) = (TryLimits::default(), email("ada"));
    let reported = |number: u32, source| limits.count_wrong_code(&ada, source, NOW + CODES.interval * number);
    // As many as the limit allows: 480 a day.
    let reports: Vec<u32> = (0..500).filter(|number| reported(*number, network(*number))).collect();
    assert_eq!(reports, [4, 484]);
    for number in 0..100 {
        assert!(!limits.count_wrong_code(&email("bob"), Source::Device([1; 32]), NOW), "{number}");
    }
}
