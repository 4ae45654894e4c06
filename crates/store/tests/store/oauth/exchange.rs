//! What a code is bound to, and what its tokens open.

use std::time::Duration;

use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::oauth::{ACCESS_LIFE, AuthMethod, CODE_LIFE, Challenge, ClientMetadata, RedirectUri, Resources};
use grabd_store::{Client, Consented, Error, Exchange, Exchanged, NewClient, NewConsent, NewTicket};

use super::house::{House, client_id, hash, new_client, redirect};
use crate::harness::{NOW, on_both};

const SOON: Duration = Duration::from_secs(1);

on_both! {
    async fn clients_come_back_as_they_registered(world) {
        let redirect_uris =
            ["https://a.example/cb", "cursor://x/y"].map(|uri| RedirectUri::parse(uri).unwrap()).to_vec();
        let metadata = ClientMetadata { name: "É & Co".into(), redirect_uris, auth_method: AuthMethod::Post };
        let id = client_id('p');
        let new = NewClient { id: id.clone(), secret_hash: Some([7; 32]), metadata: metadata.clone(), now: NOW };
        world.store.create_client(new.clone()).await.unwrap();
        let found = world.store.find_client(id.as_str()).await.unwrap();
        assert_eq!(found, Some(Client { metadata, secret_hash: Some([7; 32]) }));
        assert_eq!(world.store.find_client(client_id('q').as_str()).await.unwrap(), None);
        for bad in [new.clone(), NewClient { id: client_id('q'), secret_hash: None, ..new }] {
            let refused = world.store.create_client(bad).await;
            assert!(matches!(refused, Err(Error::Constraint(_))), "{refused:?}");
        }
    }

    async fn a_ticket_is_for_one_person_one_time_and_a_while(world) {
        let (house, other) = (House::new(world).await, House::new(world).await);
        let keep = async |number| {
            let expires_at = NOW + SOON;
            let ticket = NewTicket { hash: hash(b't', number), user: house.user, request: "{}".into(), expires_at };
            world.store.keep_ticket(ticket).await.unwrap();
        };
        let take = async |number, user, now| world.store.take_ticket(hash(b't', number), user, now).await.unwrap();
        keep(1).await;
        assert_eq!(take(1, other.user, NOW).await, None, "it is somebody else's");
        assert_eq!(take(1, house.user, NOW).await, Some("{}".to_owned()));
        assert_eq!(take(1, house.user, NOW).await, None, "it was used");
        keep(2).await;
        assert_eq!(take(2, house.user, NOW + SOON).await, None, "it is too old");
    }

    async fn only_ones_own_active_team_can_be_given_away(world) {
        let (house, other) = (House::new(world).await, House::new(world).await);
        for team in [other.team, TeamId(world.id())] {
            let consent = NewConsent { team, ..house.new_consent(1) };
            assert_eq!(world.store.consent(consent).await.unwrap(), Consented::NotTheirs);
        }
        let consent = NewConsent { user: UserId(world.id()), ..house.new_consent(1) };
        assert_eq!(world.store.consent(consent).await.unwrap(), Consented::NotTheirs);
        world.meddle("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(world.store.consent(house.new_consent(1)).await.unwrap(), Consented::NotTheirs);
    }

    async fn a_code_becomes_tokens_of_that_team_and_environment(world) {
        let (house, other) = (House::new(world).await, House::new(world).await);
        let grant = house.consent(1).await;
        assert_eq!(world.store.list_connections(house.user, NOW).await.unwrap(), [], "it is not connected yet");
        let exchanged = world.store.exchange(house.exchange(1, 1)).await.unwrap();
        assert_eq!(exchanged, Exchanged::Issued { grant, expires_at: NOW + ACCESS_LIFE });
        let expected =
            Caller { team: house.team, environment: Environment::Test, principal: Principal::Grant(grant) };
        assert_eq!(house.opens(1, NOW).await, Some(expected));
        let last = NOW + ACCESS_LIFE - Duration::from_millis(1);
        assert_eq!(house.opens(1, last).await, Some(expected));
        assert_eq!(house.opens(1, NOW + ACCESS_LIFE).await, None);
        assert_eq!(world.store.authenticate_token(&hash(b'r', 1), NOW).await.unwrap(), None, "it only refreshes");
        assert_eq!(world.store.authenticate(&hash(b'a', 1)).await.unwrap(), None, "it is no key");

        world.store.touch_grants(vec![grant], NOW + SOON).await.unwrap();
        world.store.touch_grants(vec![grant], NOW).await.unwrap();
        let connected = world.store.list_connections(house.user, NOW).await.unwrap();
        assert_eq!(connected.len(), 1);
        assert_eq!((connected[0].grant, connected[0].last_used_at), (grant, Some(NOW + SOON)));
        assert_eq!((connected[0].environment, connected[0].team_name.as_str()), (Environment::Test, "A team"));
        assert_eq!(world.store.list_connections(other.user, NOW).await.unwrap(), []);
    }

    async fn live_and_test_are_two_grants(world) {
        let house = House::new(world).await;
        house.connect(1).await;
        let live = NewConsent { environment: Environment::Live, ..house.new_consent(2) };
        assert_eq!(world.store.consent(live).await.unwrap(), Consented::Yes);
        world.store.exchange(house.exchange(2, 2)).await.unwrap();
        assert_eq!(house.opens(1, NOW).await.unwrap().environment, Environment::Test);
        assert_eq!(house.opens(2, NOW).await.unwrap().environment, Environment::Live);
    }

    async fn a_code_that_is_presented_wrongly_gives_nothing_and_is_not_spent(world) {
        let house = House::new(world).await;
        world.store.create_client(new_client(client_id('x'))).await.unwrap();
        let grant = house.consent(1).await;
        let good = || house.exchange(1, 1);
        let other = Challenge::parse(&"x".repeat(43), Some("S256")).unwrap();
        let wrong = [
            Exchange { code: hash(b'c', 9), ..good() },
            Exchange { client: client_id('x'), ..good() },
            Exchange { redirect: Some(format!("{}/", redirect())), ..good() },
            Exchange { redirect: Some(String::new()), ..good() },
            Exchange { challenge: other, ..good() },
            Exchange { now: NOW + CODE_LIFE, ..good() },
        ];
        for exchange in wrong {
            let refused = world.store.exchange(exchange.clone()).await.unwrap();
            assert!(matches!(refused, Exchanged::Invalid(_)), "{exchange:?}: {refused:?}");
            assert_eq!(house.opens(1, NOW).await, None);
        }
        let last = NOW + CODE_LIFE - Duration::from_millis(1);
        let exchanged = world.store.exchange(Exchange { redirect: None, now: last, ..good() }).await.unwrap();
        assert_eq!(exchanged, Exchanged::Issued { grant, expires_at: last + ACCESS_LIFE });
    }

    async fn a_code_is_for_the_resources_that_were_allowed(world) {
        let house = House::new(world).await;
        let (mcp, api) = (Resources::from_text("https://a.example/mcp"), Resources::from_text("https://a.example/v1"));
        let consent = NewConsent { resources: mcp.clone(), ..house.new_consent(1) };
        world.store.consent(consent).await.unwrap();
        let foreign = Exchange { resources: api.clone(), ..house.exchange(1, 1) };
        assert_eq!(world.store.exchange(foreign).await.unwrap(), Exchanged::Target);
        let own = Exchange { resources: mcp, ..house.exchange(1, 1) };
        assert!(matches!(world.store.exchange(own).await.unwrap(), Exchanged::Issued { .. }));
        let mut foreign = house.refreshing(1, 2, NOW);
        foreign.resources = api;
        assert_eq!(world.store.refresh(foreign).await.unwrap(), Exchanged::Target);
        assert!(matches!(house.refresh(1, 2, NOW).await, Exchanged::Issued { .. }), "it was not spent");
    }

    async fn a_second_use_of_a_code_ends_what_came_of_the_first(world) {
        let house = House::new(world).await;
        let (grant, other) = (house.connect(1).await, house.connect(2).await);
        assert!(matches!(house.refresh(1, 3, NOW).await, Exchanged::Issued { .. }));
        // Even when whoever comes second knows nothing but the code, and comes late.
        let mut second = house.exchange(1, 9);
        second.challenge = Challenge::parse(&"x".repeat(43), Some("S256")).unwrap();
        second.now = NOW + CODE_LIFE * 9;
        assert_eq!(world.store.exchange(second.clone()).await.unwrap(), Exchanged::Replayed(grant));
        for number in [1, 3, 9] {
            assert_eq!(house.opens(number, NOW).await, None, "{number}");
        }
        assert!(matches!(house.refresh(3, 4, NOW).await, Exchanged::Invalid(_)));
        assert!(matches!(world.store.exchange(second).await.unwrap(), Exchanged::Invalid(_)));
        assert_eq!(house.opens(2, NOW).await, house.caller(other), "another grant is another matter");
    }

    async fn nothing_is_had_of_an_inactive_team(world) {
        let house = House::new(world).await;
        house.connect(1).await;
        house.consent(2).await;
        world.meddle("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(house.opens(1, NOW).await, None);
        assert!(matches!(house.refresh(1, 3, NOW).await, Exchanged::Invalid(_)));
        assert!(matches!(world.store.exchange(house.exchange(2, 2)).await.unwrap(), Exchanged::Invalid(_)));
    }
}
