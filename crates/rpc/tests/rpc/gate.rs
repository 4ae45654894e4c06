//! Authentication with tokens: a token is equivalent to a key of its team and environment until it is revoked.

use std::time::Duration;

use grabd_domain::credentials::{Environment, Scope, Scopes};
use grabd_domain::oauth::ACCESS_LIFE;
use grabd_engine::accounts::KeyLimits;
use grabd_engine::{accounts, oauth};
use grabd_proto::reason;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::usage_service_client::UsageServiceClient;
use grabd_proto::v1::{
    CreateGrabRequest, DeleteGrabRequest, ErrorCode, GetUsageRequest, GetUsageResponse, ListGrabsRequest,
};
use grabd_rpc::{Gate, PublicServices};
use tonic::service::Routes;
use tonic::{Code, Request, Status};

use crate::test_core::{HOME, NOW, TestCore, fields, pair, refresh, request, signed_in, user, value};

struct GatedRoutes(Gate<Routes>);

impl GatedRoutes {
    async fn of(test: &TestCore) -> Self {
        Self(PublicServices::new(&test.core, false).await.unwrap().gated())
    }

    async fn usage(&self, credential: &str) -> Result<GetUsageResponse, Status> {
        let mut client = UsageServiceClient::new(self.0.clone());
        let response = client.get_usage(with_bearer(GetUsageRequest {}, credential)).await?;
        Ok(response.into_inner())
    }

    async fn accepts(&self, credential: &str) -> bool {
        match self.usage(credential).await {
            Ok(_) => true,
            Err(status) if status.code() == Code::Unauthenticated => false,
            Err(status) => panic!("{status:?}"),
        }
    }
}

fn with_bearer<T>(message: T, credential: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {credential}").parse().unwrap());
    request
}

#[tokio::test]
async fn token_is_equivalent_to_a_key_of_its_team_and_environment() {
    let test = TestCore::new().await;
    let routes = GatedRoutes::of(&test).await;
    accounts::grant_prepaid(&test.store, test.team, 7, "order", NOW).await.unwrap();
    let client = test.app().await;
    for environment in [Environment::Live, Environment::Test] {
        let redirect = test.allow(&request(&client), environment).await;
        let token = pair(&test.exchange(&client, value(&redirect, "code")).await.unwrap()).access;
        let (_, key) = accounts::issue_key(&test.store, test.team, environment, "a key", NOW).await.unwrap();
        let (by_token, by_key) = (routes.usage(&token).await.unwrap(), routes.usage(key.expose()).await.unwrap());
        assert_eq!(by_token, by_key);
        assert_eq!(by_token.live, environment == Environment::Live);
        assert_eq!(by_token.credits.unwrap().total, 7);
    }
    test.end().await;
}

#[tokio::test]
async fn token_sees_only_its_team_and_environment() {
    let test = TestCore::new().await;
    let routes = GatedRoutes::of(&test).await;
    let client = test.app().await;
    let token = test.connect(&client).await.access;
    let (_, other) = user(&test.store, "bob@example.com").await;
    accounts::grant_prepaid(&test.store, other, 9, "order", NOW).await.unwrap();
    let usage = routes.usage(&token).await.unwrap();
    assert_eq!((usage.credits.unwrap().total, usage.live), (0, false));
    test.end().await;
}

#[tokio::test]
async fn only_unexpired_access_tokens_are_accepted() {
    let test = TestCore::new().await;
    let routes = GatedRoutes::of(&test).await;
    let client = test.app().await;
    let tokens = test.connect(&client).await;
    let code = test.code(&client).await;
    let session = signed_in(&test.core, "ada@example.com", crate::test_core::PASSWORD, &HOME).await;
    assert!(routes.accepts(&tokens.access).await);
    let forged = format!("gat_{}", &tokens.refresh[4..]);
    for credential in [tokens.refresh.as_str(), &code, &client, session.expose(), &forged, "gat_", ""] {
        assert!(!routes.accepts(credential).await, "{}", &credential[..credential.len().min(4)]);
    }
    test.advance(ACCESS_LIFE);
    assert!(!routes.accepts(&tokens.access).await);
    test.end().await;
}

#[tokio::test]
async fn token_is_refused_at_once_after_every_way_to_end_a_grant() {
    let test = TestCore::new().await;
    let routes = GatedRoutes::of(&test).await;
    let client = test.app().await;
    let connect = async || {
        let tokens = test.connect(&client).await;
        assert!(routes.accepts(&tokens.access).await);
        tokens
    };

    let tokens = connect().await;
    let form = fields(&[("client_id", &client), ("token", &tokens.access)]);
    oauth::revoke(&test.core, &form, None).await.unwrap();
    assert!(!routes.accepts(&tokens.access).await, "the app revoked the access token");

    let tokens = connect().await;
    let form = fields(&[("client_id", &client), ("token", &tokens.refresh)]);
    oauth::revoke(&test.core, &form, None).await.unwrap();
    assert!(!routes.accepts(&tokens.access).await, "the app revoked the refresh token");

    let tokens = connect().await;
    for app in oauth::list_apps(&test.core, test.user).await.unwrap() {
        oauth::disconnect(&test.core, test.user, app.grant).await.unwrap();
    }
    assert!(!routes.accepts(&tokens.access).await, "the person disconnected the app");

    let tokens = connect().await;
    test.token(&refresh(&client, &tokens.refresh)).await.unwrap();
    test.advance(Duration::from_secs(31));
    test.token(&refresh(&client, &tokens.refresh)).await.unwrap_err();
    assert!(!routes.accepts(&tokens.access).await, "the refresh token was reused");

    let tokens = connect().await;
    assert!(test.store.accounts().remove_member(test.team, test.user).await.unwrap());
    assert!(!routes.accepts(&tokens.access).await, "the person left the team");
    test.end().await;
}

#[tokio::test]
async fn tokens_and_keys_of_a_team_and_environment_share_a_rate_limit() {
    let test = TestCore::new().await;
    let routes = GatedRoutes::of(&test).await;
    let client = test.app().await;
    let token = test.connect(&client).await.access;
    let (_, key) = accounts::issue_key(&test.store, test.team, Environment::Test, "a key", NOW).await.unwrap();
    let (_, live) = accounts::issue_key(&test.store, test.team, Environment::Live, "a key", NOW).await.unwrap();
    for _ in 0..30 {
        routes.usage(&token).await.unwrap();
        routes.usage(key.expose()).await.unwrap();
    }
    let mut refused = 0;
    for credential in [token.as_str(), key.expose(), token.as_str(), key.expose()] {
        refused +=
            u32::from(routes.usage(credential).await.is_err_and(|status| status.code() == Code::ResourceExhausted));
    }
    // Part of the limit may have been refilled meanwhile.
    assert!(refused >= 2, "{refused}");
    routes.usage(live.expose()).await.unwrap();
    test.end().await;
}

#[tokio::test]
async fn last_use_of_an_app_is_recorded() {
    let test = TestCore::new().await;
    let routes = GatedRoutes::of(&test).await;
    let client = test.app().await;
    let token = test.connect(&client).await.access;
    let mut grabs = GrabServiceClient::new(routes.0.clone());
    grabs.list_grabs(with_bearer(ListGrabsRequest::default(), &token)).await.unwrap();
    // Written twice a second by the sweep, and when the core stops.
    test.core.stop().await;
    let apps = oauth::list_apps(&test.core, test.user).await.unwrap();
    assert_eq!(apps[0].last_used_at, Some(NOW));
    test.end().await;
}

#[tokio::test]
async fn restricted_key_may_only_call_what_its_scopes_allow() {
    let test = TestCore::new().await;
    let routes = GatedRoutes::of(&test).await;
    let mut grabs = GrabServiceClient::new(routes.0.clone());
    let restricted = async |scope: Scope| {
        let limits = KeyLimits { scopes: Scopes::new([scope]).unwrap(), life: None };
        let issued = accounts::issue_restricted_key(&test.store, test.team, Environment::Test, "x", limits, NOW).await;
        issued.unwrap().1.expose().to_owned()
    };
    let (reader, creator) = (restricted(Scope::Read).await, restricted(Scope::Create).await);
    grabs.list_grabs(with_bearer(ListGrabsRequest::default(), &reader)).await.unwrap();
    let refused = grabs.list_grabs(with_bearer(ListGrabsRequest::default(), &creator)).await.unwrap_err();
    assert_eq!((refused.code(), reason::code(&refused)), (Code::PermissionDenied, ErrorCode::Forbidden));
    assert!(refused.message().contains("`read`") && refused.message().contains("create"), "{refused:?}");
    let create = CreateGrabRequest { url: Some("https://example.com/".into()), ..CreateGrabRequest::default() };
    let refused = grabs.create_grab(with_bearer(create.clone(), &reader)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    grabs.create_grab(with_bearer(create, &creator)).await.unwrap();
    // Deletion needs a scope of its own.
    let delete = DeleteGrabRequest { id: "01993e1c-7b1a-7000-8000-0123456789ab".into() };
    for key in [&reader, &creator] {
        let refused = grabs.delete_grab(with_bearer(delete.clone(), key)).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
    }
    let manager = restricted(Scope::Manage).await;
    let missing = grabs.delete_grab(with_bearer(delete, &manager)).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    test.end().await;
}

#[tokio::test]
async fn expired_key_is_refused_from_its_expiry_on_with_a_clear_message() {
    let test = TestCore::new().await;
    let routes = GatedRoutes::of(&test).await;
    let limits = KeyLimits { life: Some(Duration::from_secs(60)), ..KeyLimits::default() };
    let issued = accounts::issue_restricted_key(&test.store, test.team, Environment::Test, "x", limits, NOW).await;
    let (_, key) = issued.unwrap();
    test.advance(Duration::from_secs(60) - Duration::from_millis(1));
    routes.usage(key.expose()).await.unwrap();
    test.advance(Duration::from_millis(1));
    let refused = routes.usage(key.expose()).await.unwrap_err();
    assert_eq!((refused.code(), reason::code(&refused)), (Code::Unauthenticated, ErrorCode::Unauthorized));
    assert!(refused.message().contains("expired at"), "{refused:?}");
    test.end().await;
}
