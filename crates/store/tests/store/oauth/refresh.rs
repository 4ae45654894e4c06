//! Refresh tokens retire, and are noticed when they come back.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::oauth::{ACCESS_LIFE, GRANT_LIFE, MAX_SIBLINGS, REFRESH_LIFE};
use grabd_store::{Exchanged, Refresh};

use super::house::{GRACE, House, client_id, new_client};
use crate::harness::{NOW, World, on_both};

const MOMENT: Duration = Duration::from_millis(1);

fn is_issued(exchanged: &Exchanged) -> bool {
    matches!(exchanged, Exchanged::Issued { .. })
}

async fn assert_over(house: &House<'_>, numbers: &[u16], now: Timestamp) {
    for number in numbers {
        assert_eq!(house.opens(*number, now).await, None, "{number}");
        let refreshed = house.refresh(*number, 99, now).await;
        assert!(matches!(refreshed, Exchanged::Invalid(_)), "{number}: {refreshed:?}");
    }
}

async fn lives_on(world: &World, house: &House<'_>, token: u16, pair: u16, now: Timestamp) -> bool {
    is_issued(&world.store.refresh(house.refreshing(token, pair, now)).await.unwrap())
}

on_both! {
    async fn each_use_gives_the_next_pair_and_access_goes_on(world) {
        let house = House::new(world).await;
        let grant = house.connect(1).await;
        let later = NOW + ACCESS_LIFE;
        assert_eq!(house.refresh(1, 2, later).await, Exchanged::Issued { grant, expires_at: later + ACCESS_LIFE });
        assert_eq!(house.opens(2, later).await, house.caller(grant));
        assert!(lives_on(world, &house, 2, 3, later).await);
    }

    async fn a_use_after_the_grace_ends_everything(world) {
        let house = House::new(world).await;
        let (grant, other) = (house.connect(1).await, house.connect(5).await);
        assert!(lives_on(world, &house, 1, 2, NOW).await);
        assert!(lives_on(world, &house, 1, 3, NOW + GRACE - MOMENT).await, "an answer was lost");
        assert_eq!(house.refresh(1, 4, NOW + GRACE).await, Exchanged::Replayed(grant));
        assert_over(&house, &[1, 2, 3, 4], NOW + GRACE).await;
        assert_eq!(house.opens(5, NOW).await, house.caller(other));
    }

    async fn a_use_after_a_successor_was_used_ends_everything(world) {
        let house = House::new(world).await;
        let grant = house.connect(1).await;
        assert!(lives_on(world, &house, 1, 2, NOW).await);
        assert!(lives_on(world, &house, 2, 3, NOW).await, "its owner has moved on");
        assert_eq!(house.refresh(1, 4, NOW + MOMENT).await, Exchanged::Replayed(grant));
        assert_over(&house, &[1, 2, 3, 4], NOW).await;
    }

    async fn a_use_after_a_sibling_was_used_ends_everything(world) {
        let house = House::new(world).await;
        let grant = house.connect(1).await;
        assert!(lives_on(world, &house, 1, 2, NOW).await);
        assert!(lives_on(world, &house, 1, 3, NOW).await);
        assert!(lives_on(world, &house, 3, 4, NOW).await);
        assert!(lives_on(world, &house, 2, 5, NOW).await, "the other process goes on with its own");
        assert_eq!(house.refresh(1, 6, NOW).await, Exchanged::Replayed(grant));
    }

    async fn it_is_forgiven_three_times(world) {
        let house = House::new(world).await;
        let grant = house.connect(1).await;
        for number in 0..=u16::try_from(MAX_SIBLINGS).unwrap() {
            assert!(lives_on(world, &house, 1, 2 + number, NOW).await, "{number}");
        }
        assert_eq!(house.refresh(1, 9, NOW).await, Exchanged::Replayed(grant));
        assert_over(&house, &[1, 2, 3, 4, 5, 9], NOW).await;
    }

    async fn without_a_grace_every_second_use_ends_everything(world) {
        let house = House::new(world).await;
        let grant = house.connect(1).await;
        let strict = |pair| Refresh { grace: Duration::ZERO, ..house.refreshing(1, pair, NOW) };
        assert!(is_issued(&world.store.refresh(strict(2)).await.unwrap()));
        assert_eq!(world.store.refresh(strict(3)).await.unwrap(), Exchanged::Replayed(grant));
        assert_over(&house, &[1, 2, 3], NOW).await;
    }

    async fn another_client_gets_nothing_and_ends_nothing(world) {
        let house = House::new(world).await;
        world.store.create_client(new_client(client_id('x'))).await.unwrap();
        let grant = house.connect(1).await;
        let foreign = |pair, now| Refresh { client: client_id('x'), ..house.refreshing(1, pair, now) };
        assert!(matches!(world.store.refresh(foreign(2, NOW)).await.unwrap(), Exchanged::Invalid(_)));
        assert!(lives_on(world, &house, 1, 3, NOW).await);
        let late = world.store.refresh(foreign(4, NOW + GRACE)).await.unwrap();
        assert!(matches!(late, Exchanged::Invalid(_)), "{late:?}");
        assert_eq!(house.opens(3, NOW).await, house.caller(grant));
    }

    async fn a_refresh_token_slides_and_the_grant_does_not(world) {
        let house = House::new(world).await;
        let grant = house.connect(1).await;
        assert!(matches!(house.refresh(1, 2, NOW + REFRESH_LIFE).await, Exchanged::Invalid(_)), "a month away");
        let (mut now, mut token) = (NOW, 1);
        loop {
            now = now + REFRESH_LIFE - MOMENT;
            if now >= NOW + GRANT_LIFE {
                break;
            }
            assert!(lives_on(world, &house, token, token + 1, now).await, "{token}");
            token += 1;
        }
        assert_eq!(token, 7, "about half a year");
        let end = NOW + GRANT_LIFE;
        let expected = Exchanged::Issued { grant, expires_at: end };
        assert_eq!(house.refresh(token, 50, end - MOMENT).await, expected, "nothing outlives the grant");
        assert_eq!(house.opens(50, end).await, None);
        assert!(matches!(house.refresh(50, 51, end).await, Exchanged::Invalid(_)));
        assert_eq!(world.store.list_connections(house.user, end).await.unwrap(), []);
    }

    async fn an_access_token_refreshes_nothing(world) {
        let house = House::new(world).await;
        house.connect(1).await;
        let refresh = Refresh { token: super::house::hash(b'a', 1), ..house.refreshing(1, 2, NOW) };
        assert!(matches!(world.store.refresh(refresh).await.unwrap(), Exchanged::Invalid(_)));
    }
}
