//! What a token opens: the same as a key of its team and environment, until it is revoked.

use std::time::Duration;

use grabd_domain::credentials::Environment;
use grabd_domain::oauth::ACCESS_LIFE;
use grabd_engine::rpc::{Gate, Public};
use grabd_engine::{accounts, oauth};
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::usage_service_client::UsageServiceClient;
use grabd_proto::v1::{GetUsageRequest, GetUsageResponse, ListGrabsRequest};
use tonic::service::Routes;
use tonic::{Code, Request, Status};

use crate::house::{House, NOW, fields, pair, person, refresh, request, value};

struct Door(Gate<Routes>);

impl Door {
    async fn of(house: &House) -> Self {
        Self(Public::new(&house.core, false).await.unwrap().gated())
    }

    async fn usage(&self, credential: &str) -> Result<GetUsageResponse, Status> {
        let mut client = UsageServiceClient::new(self.0.clone());
        let answer = client.get_usage(bearing(GetUsageRequest {}, credential)).await?;
        Ok(answer.into_inner())
    }

    async fn is_open(&self, credential: &str) -> bool {
        match self.usage(credential).await {
            Ok(_) => true,
            Err(status) if status.code() == Code::Unauthenticated => false,
            Err(status) => panic!("{status:?}"),
        }
    }
}

fn bearing<T>(message: T, credential: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {credential}").parse().unwrap());
    request
}

#[tokio::test]
async fn a_token_is_as_good_as_a_key_of_its_team_and_environment() {
    let house = House::new().await;
    let door = Door::of(&house).await;
    accounts::grant_prepaid(&house.store, house.team, 7, "order", NOW).await.unwrap();
    let client = house.app().await;
    for environment in [Environment::Live, Environment::Test] {
        let answer = house.allow(&request(&client), environment).await;
        let token = pair(&house.exchange(&client, value(&answer, "code")).await.unwrap()).access;
        let (_, key) = accounts::issue_key(&house.store, house.team, environment, "a key", NOW).await.unwrap();
        let (by_token, by_key) = (door.usage(&token).await.unwrap(), door.usage(key.expose()).await.unwrap());
        assert_eq!(by_token, by_key);
        assert_eq!(by_token.live, environment == Environment::Live);
        assert_eq!(by_token.credits.unwrap().total, 7);
    }
    house.end().await;
}

#[tokio::test]
async fn teams_and_environments_stay_apart() {
    let house = House::new().await;
    let door = Door::of(&house).await;
    let client = house.app().await;
    let token = house.connect(&client).await.access;
    let (_, other) = person(&house.store, "bob@example.com").await;
    accounts::grant_prepaid(&house.store, other, 9, "order", NOW).await.unwrap();
    let usage = door.usage(&token).await.unwrap();
    assert_eq!((usage.credits.unwrap().total, usage.live), (0, false));
    house.end().await;
}

#[tokio::test]
async fn only_an_access_token_opens_anything() {
    let house = House::new().await;
    let door = Door::of(&house).await;
    let client = house.app().await;
    let tokens = house.connect(&client).await;
    let code = house.code(&client).await;
    let session = accounts::sign_in(&house.core, "ada@example.com", crate::house::PASSWORD).await.unwrap();
    assert!(door.is_open(&tokens.access).await);
    let forged = format!("gat_{}", &tokens.refresh[4..]);
    for credential in [tokens.refresh.as_str(), &code, &client, session.expose(), &forged, "gat_", ""] {
        assert!(!door.is_open(credential).await, "{}", &credential[..credential.len().min(4)]);
    }
    house.advance(ACCESS_LIFE);
    assert!(!door.is_open(&tokens.access).await);
    house.end().await;
}

#[tokio::test]
async fn whatever_ends_a_grant_shuts_the_door_at_once() {
    let house = House::new().await;
    let door = Door::of(&house).await;
    let client = house.app().await;
    let open = async || {
        let tokens = house.connect(&client).await;
        assert!(door.is_open(&tokens.access).await);
        tokens
    };

    let tokens = open().await;
    let form = fields(&[("client_id", &client), ("token", &tokens.access)]);
    oauth::revoke(&house.core, &form, None).await.unwrap();
    assert!(!door.is_open(&tokens.access).await, "the app gave it back");

    let tokens = open().await;
    let form = fields(&[("client_id", &client), ("token", &tokens.refresh)]);
    oauth::revoke(&house.core, &form, None).await.unwrap();
    assert!(!door.is_open(&tokens.access).await, "the app gave the grant back");

    let tokens = open().await;
    for app in oauth::list_apps(&house.core, house.user).await.unwrap() {
        oauth::disconnect(&house.core, house.user, app.grant).await.unwrap();
    }
    assert!(!door.is_open(&tokens.access).await, "the person disconnected it");

    let tokens = open().await;
    house.token(&refresh(&client, &tokens.refresh)).await.unwrap();
    house.advance(Duration::from_secs(31));
    house.token(&refresh(&client, &tokens.refresh)).await.unwrap_err();
    assert!(!door.is_open(&tokens.access).await, "its refresh token was used twice");

    let tokens = open().await;
    assert!(house.store.remove_member(house.team, house.user).await.unwrap());
    assert!(!door.is_open(&tokens.access).await, "the person left the team");
    house.end().await;
}

#[tokio::test]
async fn tokens_and_keys_of_a_team_and_environment_share_one_bucket() {
    let house = House::new().await;
    let door = Door::of(&house).await;
    let client = house.app().await;
    let token = house.connect(&client).await.access;
    let (_, key) = accounts::issue_key(&house.store, house.team, Environment::Test, "a key", NOW).await.unwrap();
    let (_, live) = accounts::issue_key(&house.store, house.team, Environment::Live, "a key", NOW).await.unwrap();
    for _ in 0..30 {
        door.usage(&token).await.unwrap();
        door.usage(key.expose()).await.unwrap();
    }
    let mut refused = 0;
    for credential in [token.as_str(), key.expose(), token.as_str(), key.expose()] {
        refused +=
            u32::from(door.usage(credential).await.is_err_and(|status| status.code() == Code::ResourceExhausted));
    }
    // One may have come back while this ran.
    assert!(refused >= 2, "{refused}");
    door.usage(live.expose()).await.unwrap();
    house.end().await;
}

#[tokio::test]
async fn the_last_use_of_an_app_is_noted() {
    let house = House::new().await;
    let door = Door::of(&house).await;
    let client = house.app().await;
    let token = house.connect(&client).await.access;
    let mut grabs = GrabServiceClient::new(door.0.clone());
    grabs.list_grabs(bearing(ListGrabsRequest::default(), &token)).await.unwrap();
    // The sweep writes it, twice a second; the end of the core writes what is left.
    house.core.stop().await;
    let apps = oauth::list_apps(&house.core, house.user).await.unwrap();
    assert_eq!(apps[0].last_used_at, Some(NOW));
    house.end().await;
}
