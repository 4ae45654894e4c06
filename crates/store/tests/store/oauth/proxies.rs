//! Proxies of apps: an app sees its own only, and they end with its grant.

use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::ProxyId;
use grabd_store::proxies::{CreateProxyOutcome, NewProxyRow};

use super::test_app::TestApp;
use crate::harness::on_both;
use crate::proxies::new_proxy;

on_both! {
    async fn app_sees_its_own_proxies_which_end_with_its_grant(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(1).await;
        let proxies = db.store.proxies();
        let new = || new_proxy(ProxyId(db.id()), app.team);
        let by_app = NewProxyRow { creator: Principal::Grant(grant), ..new() };
        for new in [new(), by_app.clone()] {
            assert!(matches!(proxies.create(new).await.unwrap(), CreateProxyOutcome::Created(_)));
        }
        let ids = async |grant| -> Vec<ProxyId> {
            let listed = db.store.proxies().list(app.team, Environment::Live, grant).await.unwrap();
            listed.iter().map(|proxy| proxy.id).collect()
        };
        assert_eq!(ids(Some(grant)).await, [by_app.id]);
        assert_eq!(ids(None).await.len(), 2);
        assert!(db.store.oauth().end_grant(app.user, grant).await.unwrap());
        assert_eq!(ids(None).await.len(), 1);
        let late = NewProxyRow { id: ProxyId(db.id()), ..by_app };
        assert_eq!(proxies.create(late).await.unwrap(), CreateProxyOutcome::AccessEnded);
    }
}
