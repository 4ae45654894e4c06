//! Who a key stands for.

use std::time::Duration;

use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::{KeyId, TeamId};
use grabd_store::{Error, NewKey};

use crate::harness::{NOW, World, on_both};

fn new_key(world: &World, team: TeamId, environment: Environment, hash: u8) -> NewKey {
    NewKey {
        id: KeyId(world.id()),
        team,
        environment,
        name: "A key".into(),
        hash: [hash; 32],
        last4: "3-_9".into(),
        now: NOW,
    }
}

on_both! {
    async fn a_key_opens_its_team_and_environment_until_it_is_revoked(world) {
        let (team, other) = (world.team(0).await, world.team(0).await);
        let live = new_key(world, team, Environment::Live, 1);
        let test = new_key(world, other, Environment::Test, 2);
        for key in [&live, &test] {
            world.store.create_key(key.clone()).await.unwrap();
        }
        let caller = |key: &NewKey| Some(Caller { team: key.team, environment: key.environment, principal: Principal::Key(key.id) });
        assert_eq!(world.store.authenticate(&[1; 32]).await.unwrap(), caller(&live));
        assert_eq!(world.store.authenticate(&[2; 32]).await.unwrap(), caller(&test));
        assert_eq!(world.store.authenticate(&[3; 32]).await.unwrap(), None);

        assert!(world.store.revoke_key(live.id, NOW).await.unwrap());
        assert_eq!(world.store.authenticate(&[1; 32]).await.unwrap(), None);
        assert_eq!(world.store.authenticate(&[2; 32]).await.unwrap(), caller(&test));
    }

    async fn a_key_of_an_inactive_team_opens_nothing(world) {
        let team = world.team(0).await;
        world.store.create_key(new_key(world, team, Environment::Live, 1)).await.unwrap();
        world.meddle("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(world.store.authenticate(&[1; 32]).await.unwrap(), None);
        assert_eq!(world.store.find_team(team).await.unwrap().unwrap().status, "inactive");
    }

    async fn revoking_keeps_the_first_time_and_knows_no_strangers(world) {
        let team = world.team(0).await;
        let key = new_key(world, team, Environment::Live, 1);
        let id = key.id;
        world.store.create_key(key).await.unwrap();
        assert!(!world.store.revoke_key(KeyId(world.id()), NOW).await.unwrap());
        assert!(world.store.revoke_key(id, NOW).await.unwrap());
        assert!(world.store.revoke_key(id, NOW + Duration::from_secs(9)).await.unwrap());
        assert_eq!(world.store.list_keys(team).await.unwrap()[0].revoked_at, Some(NOW));
    }

    async fn uses_are_noted_in_bulk_and_never_go_back(world) {
        let team = world.team(0).await;
        let keys = [1, 2, 3].map(|hash| new_key(world, team, Environment::Live, hash));
        for key in &keys {
            world.store.create_key(key.clone()).await.unwrap();
        }
        let later = NOW + Duration::from_secs(1);
        world.store.touch_keys(vec![keys[0].id, keys[1].id], later).await.unwrap();
        world.store.touch_keys(vec![keys[1].id, keys[2].id, KeyId(world.id())], NOW).await.unwrap();
        world.store.touch_keys(Vec::new(), NOW).await.unwrap();
        let used: Vec<_> = world.store.list_keys(team).await.unwrap().iter().map(|key| key.last_used_at).collect();
        assert_eq!(used, [Some(later), Some(later), Some(NOW)]);
    }

    async fn teams_and_keys_are_listed_oldest_first(world) {
        let teams = [world.team(0).await, world.team(0).await];
        let listed: Vec<_> = world.store.list_teams().await.unwrap().iter().map(|team| team.id).collect();
        assert_eq!(listed, teams);
        world.store.create_key(new_key(world, teams[0], Environment::Live, 1)).await.unwrap();
        assert_eq!(world.store.list_keys(teams[1]).await.unwrap(), []);
        assert_eq!(world.store.find_team(TeamId(world.id())).await.unwrap(), None);
    }

    async fn a_hash_belongs_to_one_key_and_a_key_to_a_team(world) {
        let team = world.team(0).await;
        world.store.create_key(new_key(world, team, Environment::Live, 1)).await.unwrap();
        let twin = world.store.create_key(new_key(world, team, Environment::Test, 1)).await;
        assert!(matches!(twin, Err(Error::Constraint(_))), "{twin:?}");
        let stray = world.store.create_key(new_key(world, TeamId(world.id()), Environment::Test, 2)).await;
        assert!(matches!(stray, Err(Error::Constraint(_))), "{stray:?}");
    }
}
