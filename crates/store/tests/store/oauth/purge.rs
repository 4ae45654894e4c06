//! What is over is forgotten, a bounded part at a time, and what is not stays.

use std::time::Duration;

use grabd_domain::oauth::{ACCESS_LIFE, CODE_LIFE, GRANT_LIFE, REFRESH_LIFE, UNUSED_CLIENT_LIFE, USED_CODE_LIFE};
use grabd_store::{Exchanged, NewClient, NewTicket};

use super::house::{House, client_id, hash, new_client};
use crate::harness::{NOW, on_both};

const MOMENT: Duration = Duration::from_millis(1);

on_both! {
    async fn tickets_codes_and_tokens_go_when_they_are_over(world) {
        let house = House::new(world).await;
        let expires_at = NOW + CODE_LIFE;
        for number in 1..=3 {
            let ticket = NewTicket { hash: hash(b't', number), user: house.user, request: "{}".into(), expires_at };
            world.store.keep_ticket(ticket).await.unwrap();
        }
        let purge = async |now, limit| world.store.purge_oauth(now, limit).await.unwrap();
        assert_eq!(purge(expires_at - MOMENT, 9).await, 0);
        assert_eq!(purge(expires_at, 2).await, 2, "a bounded part");
        assert_eq!(purge(expires_at, 2).await, 1);

        house.connect(1).await;
        assert_eq!(purge(NOW + ACCESS_LIFE - MOMENT, 9).await, 0);
        assert_eq!(purge(NOW + ACCESS_LIFE, 9).await, 1, "the access token");
        assert!(matches!(house.refresh(1, 2, NOW + ACCESS_LIFE).await, Exchanged::Issued { .. }));
        // A second use of the code is known for what it is for a day.
        let day = NOW + CODE_LIFE + USED_CODE_LIFE;
        assert_eq!(purge(day - MOMENT, 9).await, 1, "the second access token");
        assert_eq!(purge(day, 9).await, 1, "the code");
        assert_eq!(purge(NOW + REFRESH_LIFE - MOMENT, 9).await, 0, "retired, and kept for its reuse");
        assert_eq!(purge(NOW + REFRESH_LIFE, 9).await, 1, "the retired refresh token");
    }

    async fn grants_go_when_they_are_over_or_were_never_taken_up(world) {
        let house = House::new(world).await;
        house.consent(1).await;
        house.connect(2).await;
        world.store.purge_oauth(NOW + USED_CODE_LIFE, 9).await.unwrap();
        let listed = world.store.list_connections(house.user, NOW).await.unwrap();
        assert_eq!(listed.len(), 1, "the one that is connected stays");
        assert!(matches!(house.refresh(2, 3, NOW + USED_CODE_LIFE).await, Exchanged::Issued { .. }));
        world.store.purge_oauth(NOW + GRANT_LIFE, 9).await.unwrap();
        assert_eq!(world.store.list_connections(house.user, NOW).await.unwrap(), []);
    }

    async fn a_client_is_forgotten_a_month_after_its_last_use_but_never_with_a_grant(world) {
        let house = House::new(world).await;
        let used = house.connect(1).await;
        for letter in ['u', 'v', 'w'] {
            world.store.create_client(new_client(client_id(letter))).await.unwrap();
        }
        let late = NewClient { now: NOW + MOMENT, ..new_client(client_id('l')) };
        world.store.create_client(late).await.unwrap();
        let known = async |letter| world.store.find_client(client_id(letter).as_str()).await.unwrap().is_some();
        let month = NOW + UNUSED_CLIENT_LIFE;
        // Keeps the grant while a month passes; the access tokens and the code are swept first.
        assert!(matches!(house.refresh(1, 2, month - MOMENT).await, Exchanged::Issued { .. }));
        world.store.purge_oauth(month - MOMENT, 99).await.unwrap();
        assert!(known('u').await);
        let before = world.store.purge_oauth(month, 2).await.unwrap();
        assert!(before <= 4, "a bounded part of each kind: {before}");
        assert_eq!([known('u').await, known('v').await, known('w').await].iter().filter(|known| **known).count(), 1);
        world.store.purge_oauth(month, 99).await.unwrap();
        assert!(!known('u').await && !known('v').await && !known('w').await);
        assert!(known('l').await && known('c').await);

        // Its last grant has ended, and it was in use a moment ago: it may come back.
        assert!(world.store.end_grant(house.user, used).await.unwrap());
        world.store.purge_oauth(month + MOMENT, 99).await.unwrap();
        assert!(known('c').await && !known('l').await);
        world.store.purge_oauth(month + UNUSED_CLIENT_LIFE, 99).await.unwrap();
        assert!(!known('c').await);
    }
}
