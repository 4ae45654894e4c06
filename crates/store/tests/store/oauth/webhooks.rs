//! Webhook endpoints of apps: who sees them, and that they end with the grant.

use std::collections::HashMap;
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::Role;
use grabd_domain::credentials::Environment;
use grabd_domain::credits::LotKind;
use grabd_domain::grabs::Class;
use grabd_domain::ids::{DeliveryId, EndpointId, GrantId};
use grabd_domain::oauth::{GRANTS, OauthScopes, REFRESH_LIFE};
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{Creator, EndpointUpdate, Events, Registration};
use grabd_store::oauth::{ConsentOutcome, NewConsent, RevokeOutcome, TokenOutcome};
use grabd_store::retention::DeleteUserOutcome;
use grabd_store::webhooks::{EndpointRef, NewEndpoint, NewEndpointSecret, RegisterOutcome, ResendOutcome};

use super::test_app::{GRACE, TestApp, hash};
use crate::harness::{NOW, completion, on_both};

const LIVE: Environment = Environment::Live;
const LEASE: Duration = Duration::from_secs(30);

fn new_endpoint(app: &TestApp<'_>, creator: Creator) -> NewEndpoint {
    NewEndpoint {
        id: EndpointId(app.db.id()),
        team: app.team,
        environment: LIVE,
        registration: Registration {
            url: TargetUrl::restore("https://example.com/hook").unwrap(),
            events: Events::all(),
            description: String::new(),
        },
        secret: vec![1; 73],
        creator,
        by: None,
        now: NOW,
    }
}

/// Registers an endpoint. The reference is that of its creator.
pub(super) async fn endpoint(app: &TestApp<'_>, creator: Creator) -> EndpointRef {
    let new = new_endpoint(app, creator);
    let grant = match creator {
        Creator::App(grant) => Some(grant),
        Creator::Key | Creator::User => None,
    };
    let target = EndpointRef { team: app.team, environment: LIVE, grant, endpoint: new.id };
    assert!(matches!(app.db.store.webhooks().register_endpoint(new).await.unwrap(), RegisterOutcome::Registered(_)));
    target
}

/// Connects an app that may manage the live environment.
pub(super) async fn connect(app: &TestApp<'_>, number: u16) -> GrantId {
    let consent = NewConsent { environment: LIVE, scopes: OauthScopes::ALL, ..app.new_consent(number) };
    let grant = consent.grant;
    assert_eq!(app.db.store.oauth().consent(consent).await.unwrap(), ConsentOutcome::Granted);
    let exchanged = app.db.store.oauth().exchange(app.exchange(number, number)).await.unwrap();
    assert!(matches!(exchanged, TokenOutcome::Issued { .. }), "{exchanged:?}");
    grant
}

/// Completes an asynchronous grab of the team.
async fn complete_grab(app: &TestApp<'_>) {
    let db = app.db;
    db.store.grabs().create(db.new_grab(app.team, Class::Async)).await.unwrap();
    let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
    assert!(db.store.grabs().complete(completion(&leased)).await.unwrap().is_some());
}

/// The endpoints that messages are sent to now.
async fn receivers(app: &TestApp<'_>, now: Timestamp) -> Vec<EndpointId> {
    let due = app.db.lease_due(now, 50, |_| "{}".to_owned()).await;
    let mut receivers: Vec<_> = due.into_iter().map(|attempt| attempt.endpoint).collect();
    receivers.sort_unstable();
    receivers
}

/// All endpoints of the team.
async fn listed(app: &TestApp<'_>) -> Vec<EndpointId> {
    let listed = app.db.store.webhooks().list_endpoints(app.team, LIVE, None).await.unwrap();
    listed.into_iter().map(|endpoint| endpoint.id).collect()
}

on_both! {
    async fn app_sees_and_changes_only_its_own_endpoints(db) {
        let app = TestApp::new(db).await;
        let (one, other) = (connect(&app, 1).await, connect(&app, 2).await);
        let of_key = endpoint(&app, Creator::Key).await;
        let of_user = endpoint(&app, Creator::User).await;
        let (mine, theirs) = (endpoint(&app, Creator::App(one)).await, endpoint(&app, Creator::App(other)).await);
        let own = db.store.webhooks().list_endpoints(app.team, LIVE, Some(one)).await.unwrap();
        assert_eq!(own.iter().map(|own| (own.id, own.creator)).collect::<Vec<_>>(), [(mine.endpoint, Some(Creator::App(one)))]);
        assert_eq!(db.store.webhooks().find_endpoint(mine).await.unwrap().as_ref(), own.first());
        let id = DeliveryId(db.id());
        for foreign in [of_key, of_user, theirs] {
            let foreign = EndpointRef { grant: Some(one), ..foreign };
            assert_eq!(db.store.webhooks().find_endpoint(foreign).await.unwrap(), None);
            assert_eq!(db.store.webhooks().change_endpoint(foreign, EndpointUpdate::default()).await.unwrap(), None);
            let secret = NewEndpointSecret { target: foreign, secret: vec![2], by: None, now: NOW, previous_until: NOW };
            assert_eq!(db.store.webhooks().rotate_secret(secret).await.unwrap(), None);
            assert_eq!(db.store.webhooks().test_endpoint(foreign, id, NOW).await.unwrap(), ResendOutcome::NoEndpoint);
            assert_eq!(db.store.webhooks().redeliver(foreign, id, NOW).await.unwrap(), ResendOutcome::NoEndpoint);
            assert!(!db.store.webhooks().remove_endpoint(foreign).await.unwrap());
        }
        // Keys and people see and change all of them.
        assert_eq!(listed(&app).await, [theirs, mine, of_user, of_key].map(|target| target.endpoint));
        let names = db.store.webhooks().app_names(&[one, other, GrantId(db.id())]).await.unwrap();
        assert_eq!(names, HashMap::from([(one, "An app".to_owned()), (other, "An app".to_owned())]));
        assert!(db.store.webhooks().remove_endpoint(EndpointRef { grant: None, ..mine }).await.unwrap());
        assert_eq!(db.store.webhooks().list_endpoints(app.team, LIVE, Some(one)).await.unwrap(), []);
    }

    async fn endpoints_share_the_limit_of_the_team(db) {
        let app = TestApp::new(db).await;
        let (one, other) = (connect(&app, 1).await, connect(&app, 2).await);
        for creator in [Creator::App(one), Creator::Key, Creator::App(other)].into_iter().cycle().take(10) {
            endpoint(&app, creator).await;
        }
        let full = db.store.webhooks().register_endpoint(new_endpoint(&app, Creator::App(one))).await.unwrap();
        assert_eq!(full, RegisterOutcome::TooMany { limit: 10 });
    }

    async fn endpoints_of_an_app_end_however_its_grant_ends(db) {
        for ending in Ending::ALL {
            let app = TestApp::new(db).await;
            db.grant(app.team, LotKind::Prepaid, 5, None).await;
            let grant = connect(&app, 1).await;
            let (of_app, own) = (endpoint(&app, Creator::App(grant)).await, endpoint(&app, Creator::Key).await);
            let connections = db.store.oauth().list_connections(app.user, NOW).await.unwrap();
            assert_eq!(connections.iter().map(|connection| connection.webhooks).collect::<Vec<_>>(), [1]);
            complete_grab(&app).await;
            assert_eq!(receivers(&app, NOW + LEASE).await, [of_app.endpoint, own.endpoint], "{ending:?}");
            // Another message is waiting when the grant ends.
            complete_grab(&app).await;
            ending.apply(&app, grant).await;
            assert_eq!(db.store.webhooks().find_endpoint(of_app).await.unwrap(), None, "{ending:?}");
            let gone = db.store.webhooks().register_endpoint(new_endpoint(&app, Creator::App(grant))).await.unwrap();
            // With the last account, the team ends too.
            let (expected, team_is_left) = match ending {
                Ending::Account => (RegisterOutcome::TeamInactive, false),
                Ending::Disconnect
                | Ending::Revocation
                | Ending::CodeReuse
                | Ending::TokenReuse
                | Ending::Leave
                | Ending::Removal
                | Ending::Expiry
                | Ending::Idleness
                | Ending::TooManyGrants
                | Ending::TakeOver => (RegisterOutcome::AccessEnded, true),
            };
            assert_eq!(gone, expected, "{ending:?}");
            let mut now = NOW + LEASE * 9;
            for _ in 0..2 {
                let sent = receivers(&app, now).await;
                assert!(!sent.contains(&of_app.endpoint), "{ending:?}");
                assert_eq!(sent.contains(&own.endpoint), team_is_left, "{ending:?}");
                assert!(!db.has_due(now).await, "{ending:?}: the waiting messages are cancelled");
                if team_is_left {
                    complete_grab(&app).await;
                }
                now = now + LEASE * 9;
            }
            db.execute_raw("DELETE FROM delivery").await.unwrap();
        }
    }

    async fn app_without_access_gets_no_messages_before_its_grant_is_purged(db) {
        let app = TestApp::new(db).await;
        db.grant(app.team, LotKind::Prepaid, 9, None).await;
        let grant = connect(&app, 1).await;
        let (of_app, own) = (endpoint(&app, Creator::App(grant)).await, endpoint(&app, Creator::Key).await);
        // The message that waits when access ends is not sent, and neither is a later one.
        let sent_only_to_own = async |now: Timestamp| {
            assert_eq!(receivers(&app, now).await, [own.endpoint]);
            complete_grab(&app).await;
            assert_eq!(receivers(&app, now).await, [own.endpoint]);
            db.execute_raw("DELETE FROM delivery").await.unwrap();
        };
        complete_grab(&app).await;
        assert!(db.store.accounts().suspend_user(app.user, "spam", NOW).await.unwrap());
        sent_only_to_own(NOW + LEASE).await;
        assert!(db.store.accounts().restore_user(app.user, NOW).await.unwrap());
        complete_grab(&app).await;
        assert_eq!(receivers(&app, NOW + LEASE).await, [of_app.endpoint, own.endpoint], "the account is restored");
        db.execute_raw("DELETE FROM delivery").await.unwrap();

        complete_grab(&app).await;
        db.execute_raw(&format!("UPDATE oauth_grant SET expires_at = {}", NOW.as_ms())).await.unwrap();
        sent_only_to_own(NOW + LEASE).await;
    }

    async fn endpoints_of_earlier_versions_are_kept_once_somebody_knows_them(db) {
        let (app, other) = (TestApp::new(db).await, TestApp::new(db).await);
        let former = endpoint(&app, Creator::Key).await;
        endpoint(&other, Creator::User).await;
        let uncertain = async |user| db.store.webhooks().teams_with_unknown_endpoints(user).await.unwrap();
        assert_eq!(uncertain(app.user).await, []);
        assert!(!db.store.webhooks().keep_endpoint(former).await.unwrap(), "its creator is known");
        let team = db.literal(app.team.0);
        db.execute_raw(&format!("UPDATE webhook_endpoint SET creator = NULL WHERE team_id = {team}")).await.unwrap();
        assert_eq!(db.store.webhooks().find_endpoint(former).await.unwrap().unwrap().creator, None);
        assert_eq!(uncertain(app.user).await, [(app.team, "A team".to_owned())]);
        assert_eq!(uncertain(other.user).await, []);
        let test = EndpointRef { environment: Environment::Test, ..former };
        for foreign in [EndpointRef { team: other.team, ..former }, test] {
            assert!(!db.store.webhooks().keep_endpoint(foreign).await.unwrap());
        }
        assert!(db.store.webhooks().keep_endpoint(former).await.unwrap());
        assert_eq!(db.store.webhooks().find_endpoint(former).await.unwrap().unwrap().creator, Some(Creator::User));
        assert_eq!(uncertain(app.user).await, []);
    }
}

/// How the grant of an app can end.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Disconnect,
    Revocation,
    CodeReuse,
    TokenReuse,
    Leave,
    Removal,
    Expiry,
    Idleness,
    TooManyGrants,
    TakeOver,
    Account,
}

impl Ending {
    const ALL: [Self; 11] = [
        Self::Disconnect,
        Self::Revocation,
        Self::CodeReuse,
        Self::TokenReuse,
        Self::Leave,
        Self::Removal,
        Self::Expiry,
        Self::Idleness,
        Self::TooManyGrants,
        Self::TakeOver,
        Self::Account,
    ];

    /// Ends the grant, for whose code and tokens the number is 1.
    async fn apply(self, app: &TestApp<'_>, grant: GrantId) {
        let store = &app.db.store;
        match self {
            Self::Disconnect => assert!(store.oauth().end_grant(app.user, grant).await.unwrap()),
            Self::Revocation => {
                let revoked = store.oauth().revoke_token(hash(b'r', 1), app.client.clone()).await.unwrap();
                assert_eq!(revoked, RevokeOutcome::Grant(grant));
            }
            Self::CodeReuse => {
                assert_eq!(store.oauth().exchange(app.exchange(1, 9)).await.unwrap(), TokenOutcome::Replayed(grant));
            }
            Self::TokenReuse => {
                assert!(matches!(app.refresh(1, 2, NOW).await, TokenOutcome::Issued { .. }));
                assert_eq!(app.refresh(1, 3, NOW + GRACE).await, TokenOutcome::Replayed(grant));
            }
            Self::Leave | Self::Removal | Self::TakeOver => {
                // Somebody else is an owner too, so that the team and its other webhooks stay.
                let owner = TestApp::new(app.db).await;
                store.accounts().add_member(app.team, owner.user, NOW).await.unwrap();
                store.accounts().set_role(app.team, owner.user, Role::Owner, app.user).await.unwrap().unwrap();
                match self {
                    Self::Leave => store.accounts().leave_team(app.team, app.user).await.unwrap().unwrap(),
                    Self::Removal => {
                        store.accounts().remove_team_member(app.team, app.user, owner.user).await.unwrap().unwrap();
                    }
                    Self::Disconnect
                    | Self::Revocation
                    | Self::CodeReuse
                    | Self::TokenReuse
                    | Self::Expiry
                    | Self::Idleness
                    | Self::TooManyGrants
                    | Self::TakeOver
                    | Self::Account => {
                        store.accounts().create_verification([9; 32], app.user, NOW + LEASE).await.unwrap();
                        let taken = store.accounts().take_over_account([9; 32], String::new(), NOW).await.unwrap();
                        assert_eq!(taken, Some(app.user));
                    }
                }
            }
            Self::Expiry => {
                app.db.execute_raw(&format!("UPDATE oauth_grant SET expires_at = {}", NOW.as_ms())).await.unwrap();
                store.oauth().purge_oauth(NOW, 99).await.unwrap();
            }
            Self::Idleness => drop(store.oauth().purge_oauth(NOW + REFRESH_LIFE, 99).await.unwrap()),
            Self::TooManyGrants => {
                for number in 0..u16::try_from(GRANTS).unwrap() {
                    app.consent(100 + number).await;
                }
            }
            Self::Account => {
                let deleted = store.retention().delete_user(app.user, NOW).await.unwrap();
                assert!(matches!(deleted, DeleteUserOutcome::Deleted { .. }), "{deleted:?}");
            }
        }
    }
}
