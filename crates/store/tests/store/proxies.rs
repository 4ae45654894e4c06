//! Proxies of teams.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::{KeyId, ProxyId, TeamId};
use grabd_domain::proxies::{LastError, MAX_PROXIES, Proxy, ProxyProblem, ProxyUrl};
use grabd_store::proxies::{ChangeProxyOutcome, CreateProxyOutcome, NewProxyRow, ProxyRef, ProxyUpdate};

use crate::harness::{NOW, TestDb, on_both};

const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn new_proxy(id: ProxyId, team: TeamId) -> NewProxyRow {
    NewProxyRow {
        id,
        team,
        environment: Environment::Live,
        creator: Principal::Key(KeyId(id.0)),
        name: "Office".into(),
        url: ProxyUrl::restore("http://proxy.example.com:3128").unwrap(),
        login: Some(b"sealed".to_vec()),
        now: NOW,
    }
}

async fn created(db: &TestDb, team: TeamId) -> Proxy {
    let outcome = db.store.proxies().create(new_proxy(ProxyId(db.id()), team)).await.unwrap();
    let CreateProxyOutcome::Created(proxy) = outcome else { panic!("{outcome:?}") };
    *proxy
}

fn target(proxy: &Proxy) -> ProxyRef {
    ProxyRef { team: proxy.team, environment: proxy.environment, grant: None, proxy: proxy.id }
}

/// A change of the proxy as [`created`] returns it.
fn update(proxy: &Proxy) -> ProxyUpdate {
    ProxyUpdate {
        target: target(proxy),
        current_url: proxy.url.clone(),
        current_login: Some(b"sealed".to_vec()),
        name: None,
        url: None,
        login: None,
        now: NOW + MINUTE,
    }
}

async fn changed(db: &TestDb, update: ProxyUpdate) -> Proxy {
    let outcome = db.store.proxies().change(update).await.unwrap();
    let ChangeProxyOutcome::Changed(proxy) = outcome else { panic!("{outcome:?}") };
    *proxy
}

async fn login(db: &TestDb, proxy: &Proxy) -> Option<Vec<u8>> {
    db.store.proxies().find_with_login(target(proxy)).await.unwrap().unwrap().1
}

on_both! {
    async fn proxy_is_found_by_its_team_and_environment_only(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let proxy = created(db, team).await;
        let proxies = db.store.proxies();
        assert_eq!(proxies.find(target(&proxy)).await.unwrap().as_ref(), Some(&proxy));
        assert!(proxy.has_login && proxy.last_used_at.is_none() && proxy.last_error.is_none());
        assert_eq!(proxies.list(team, Environment::Live, None).await.unwrap(), std::slice::from_ref(&proxy));
        assert_eq!(proxies.list(team, Environment::Test, None).await.unwrap(), []);
        for foreign in [
            ProxyRef { team: other, ..target(&proxy) },
            ProxyRef { environment: Environment::Test, ..target(&proxy) },
            ProxyRef { grant: Some(grabd_domain::ids::GrantId(db.id())), ..target(&proxy) },
        ] {
            assert_eq!(proxies.find(foreign).await.unwrap(), None, "{foreign:?}");
            assert_eq!(proxies.find_with_login(foreign).await.unwrap(), None, "{foreign:?}");
            let outcome = proxies.change(ProxyUpdate { target: foreign, ..update(&proxy) }).await.unwrap();
            assert_eq!(outcome, ChangeProxyOutcome::NotFound, "{foreign:?}");
            assert!(!proxies.remove(foreign).await.unwrap(), "{foreign:?}");
        }
        assert_eq!(proxies.begin_use(other, proxy.id, NOW).await.unwrap(), None);
        assert!(proxies.remove(target(&proxy)).await.unwrap());
        assert!(!proxies.remove(target(&proxy)).await.unwrap());
        assert_eq!(proxies.begin_use(team, proxy.id, NOW).await.unwrap(), None);
    }

    async fn concurrent_creates_do_not_exceed_the_limit(db) {
        let team = db.team(0).await;
        for _ in 2..MAX_PROXIES {
            created(db, team).await;
        }
        let creates = (0..4).map(|_| db.store.proxies().create(new_proxy(ProxyId(db.id()), team)));
        let outcomes = join_all(creates).await;
        let number = outcomes.iter().filter(|one| matches!(one, Ok(CreateProxyOutcome::Created(_)))).count();
        assert_eq!(number, 2, "{outcomes:?}");
        let of_test = NewProxyRow { environment: Environment::Test, ..new_proxy(ProxyId(db.id()), team) };
        assert!(matches!(db.store.proxies().create(of_test).await.unwrap(), CreateProxyOutcome::Created(_)));
    }

    async fn change_sets_what_is_given_and_forgets_the_last_failure_if_it_may_be_mended(db) {
        let team = db.team(0).await;
        let proxy = created(db, team).await;
        let proxies = db.store.proxies();
        let problem = ProxyProblem::Login;
        proxies.record_error(proxy.id, problem, NOW).await.unwrap();
        let renamed = changed(db, ProxyUpdate { name: Some("Vienna".into()), ..update(&proxy) }).await;
        assert_eq!((renamed.name.as_str(), renamed.updated_at), ("Vienna", NOW + MINUTE));
        assert_eq!(renamed.last_error, Some(LastError { problem, at: NOW }));
        assert_eq!(login(db, &proxy).await, Some(b"sealed".to_vec()));
        let replaced = ProxyUpdate { login: Some(Some(b"other".to_vec())), ..update(&proxy) };
        assert_eq!(changed(db, replaced).await.last_error, None);
        let url = ProxyUrl::restore("socks5://8.8.8.8:1080");
        let current_login = Some(b"other".to_vec());
        let moved = ProxyUpdate { current_login, url: url.clone(), login: Some(None), ..update(&proxy) };
        let moved = changed(db, moved).await;
        assert_eq!((Some(moved.url), moved.has_login, moved.name.as_str()), (url, false, "Vienna"));
    }

    async fn change_of_an_outdated_url_or_login_is_not_saved(db) {
        let team = db.team(0).await;
        let proxy = created(db, team).await;
        let url = ProxyUrl::restore("http://8.8.8.8:3128");
        // Somebody points the proxy to another server, and removes the login, while others change it.
        changed(db, ProxyUpdate { url: url.clone(), login: Some(None), ..update(&proxy) }).await;
        for (url, login) in [(None, Some(Some(b"new".to_vec()))), (Some(proxy.url.clone()), None)] {
            let outcome = db.store.proxies().change(ProxyUpdate { url, login, ..update(&proxy) }).await.unwrap();
            assert_eq!(outcome, ChangeProxyOutcome::Outdated);
        }
        let renamed = changed(db, ProxyUpdate { name: Some("Vienna".into()), ..update(&proxy) }).await;
        assert_eq!((Some(renamed.url), renamed.has_login, renamed.name.as_str()), (url.clone(), false, "Vienna"));

        // The same URL with another login.
        let current_url = url.unwrap();
        let current = ProxyUpdate { current_url, current_login: None, ..update(&proxy) };
        changed(db, ProxyUpdate { login: Some(Some(b"one".to_vec())), ..current.clone() }).await;
        let late = ProxyUpdate { login: Some(Some(b"two".to_vec())), ..current };
        assert_eq!(db.store.proxies().change(late).await.unwrap(), ChangeProxyOutcome::Outdated);
        assert_eq!(login(db, &proxy).await, Some(b"one".to_vec()));
    }

    async fn use_is_recorded_once_a_minute(db) {
        let team = db.team(0).await;
        let proxy = created(db, team).await;
        let proxies = db.store.proxies();
        for (at, recorded) in [
            (NOW, NOW),
            (NOW + Duration::from_secs(59), NOW),
            (NOW + MINUTE, NOW + MINUTE),
            // The clock of another process is behind.
            (NOW, NOW + MINUTE),
        ] {
            let route = proxies.begin_use(team, proxy.id, at).await.unwrap().unwrap();
            assert_eq!((route.name.as_str(), route.login.as_deref()), ("Office", Some(&b"sealed"[..])));
            let found = proxies.find(target(&proxy)).await.unwrap().unwrap();
            assert_eq!(found.last_used_at, Some(recorded));
        }
    }

    async fn proxies_end_with_their_team_and_are_sealed_again(db) {
        let (owner, team) = db.owned_team("ada@example.com").await;
        let proxy = created(db, team).await;
        let vault = db.store.vault();
        assert_eq!(vault.list_sealed_proxies(None, 9).await.unwrap(), [(proxy.id, b"sealed".to_vec())]);
        assert!(!vault.reseal_proxy(proxy.id, b"another".to_vec(), b"new".to_vec()).await.unwrap());
        assert!(vault.reseal_proxy(proxy.id, b"sealed".to_vec(), b"new".to_vec()).await.unwrap());
        assert_eq!(login(db, &proxy).await, Some(b"new".to_vec()));
        db.store.retention().delete_team(team, Some(owner), NOW).await.unwrap().unwrap();
        assert_eq!(db.store.proxies().find(target(&proxy)).await.unwrap(), None);
        let late = db.store.proxies().create(new_proxy(ProxyId(db.id()), team)).await.unwrap();
        assert_eq!(late, CreateProxyOutcome::TeamInactive);
    }
}
