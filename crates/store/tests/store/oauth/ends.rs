//! What ends a grant ends it at once, and ends no other.

use grabd_domain::ids::GrantId;
use grabd_store::{Exchanged, Revoked};

use super::house::{House, client_id, hash, new_client};
use crate::harness::{NOW, on_both};

on_both! {
    async fn revoking_a_refresh_token_ends_the_grant_and_an_access_token_itself(world) {
        let house = House::new(world).await;
        let (first, second) = (house.connect(1).await, house.connect(2).await);
        let revoke = async |hash, client| world.store.revoke_token(hash, client).await.unwrap();
        let client = || house.client.clone();
        world.store.create_client(new_client(client_id('x'))).await.unwrap();

        assert_eq!(revoke(hash(b'r', 1), client_id('x')).await, Revoked::Foreign);
        assert_eq!(revoke(hash(b'a', 1), client_id('x')).await, Revoked::Foreign);
        assert_eq!(house.opens(1, NOW).await, house.caller(first));

        assert_eq!(revoke(hash(b'a', 1), client()).await, Revoked::Token);
        assert_eq!(house.opens(1, NOW).await, None);
        assert!(matches!(house.refresh(1, 3, NOW).await, Exchanged::Issued { .. }), "the grant goes on");

        // A retired one is of the same family.
        assert_eq!(revoke(hash(b'r', 1), client()).await, Revoked::Grant(first));
        assert_eq!(house.opens(3, NOW).await, None);
        assert!(matches!(house.refresh(3, 4, NOW).await, Exchanged::Invalid(_)));
        assert_eq!(revoke(hash(b'r', 1), client()).await, Revoked::Unknown);
        assert_eq!(revoke(hash(b'r', 9), client()).await, Revoked::Unknown);
        assert_eq!(house.opens(2, NOW).await, house.caller(second));
    }

    async fn a_person_disconnects_their_own_apps_only(world) {
        let (house, other) = (House::new(world).await, House::new(world).await);
        let grant = house.connect(1).await;
        assert!(!world.store.end_grant(other.user, grant).await.unwrap());
        assert!(!world.store.end_grant(house.user, GrantId(world.id())).await.unwrap());
        assert_eq!(house.opens(1, NOW).await, house.caller(grant));
        assert!(world.store.end_grant(house.user, grant).await.unwrap());
        assert_eq!(house.opens(1, NOW).await, None);
        assert!(matches!(house.refresh(1, 2, NOW).await, Exchanged::Invalid(_)));
        assert_eq!(world.store.list_connections(house.user, NOW).await.unwrap(), []);
        assert!(!world.store.end_grant(house.user, grant).await.unwrap());
    }

    async fn who_leaves_a_team_takes_their_apps_along(world) {
        let (house, other) = (House::new(world).await, House::new(world).await);
        house.connect(1).await;
        house.consent(2).await;
        let theirs = other.connect(3).await;
        assert!(!world.store.remove_member(other.team, house.user).await.unwrap());
        assert!(world.store.remove_member(house.team, house.user).await.unwrap());
        assert_eq!(house.opens(1, NOW).await, None);
        assert!(matches!(house.refresh(1, 4, NOW).await, Exchanged::Invalid(_)));
        let exchanged = world.store.exchange(house.exchange(2, 5)).await.unwrap();
        assert!(matches!(exchanged, Exchanged::Invalid(_)), "a code on its way is worth nothing: {exchanged:?}");
        assert_eq!(other.opens(3, NOW).await, other.caller(theirs));
    }

    async fn a_person_or_team_that_is_deleted_takes_its_apps_along(world) {
        let (house, other) = (House::new(world).await, House::new(world).await);
        house.connect(1).await;
        other.connect(2).await;
        assert!(world.store.remove_person(house.user).await.unwrap());
        assert_eq!(house.opens(1, NOW).await, None);
        world.meddle(&format!("DELETE FROM team WHERE id = {}", world.literal(other.team.0))).await.unwrap();
        assert_eq!(other.opens(2, NOW).await, None);
        assert!(matches!(other.refresh(2, 3, NOW).await, Exchanged::Invalid(_)));
    }
}
