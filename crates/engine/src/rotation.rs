//! Replacement of the key that encrypts stored secrets: everything is encrypted again with the new key.

use grabd_store::Store;
use grabd_store::vault::SealedEndpoint;

use crate::vault::Vault;

/// Rows read at a time.
const BATCH: u32 = 100;
/// Open grabs read at a time. Each may have secrets of more than a megabyte.
const JOB_BATCH: u32 = 8;

/// What one pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Secrets that were encrypted with the former key, and are now with the current one.
    pub changed: u64,
    /// Secrets that neither key can decrypt. They are left as they are.
    pub unreadable: u64,
}

impl Resealed {
    const fn add(&mut self, other: Self) {
        self.changed = self.changed.saturating_add(other.changed);
        self.unreadable = self.unreadable.saturating_add(other.unreadable);
    }
}

/// Encrypts all stored secrets with the current key that are encrypted with the former one. It can be repeated, and
/// continues where an interrupted pass ended. The service may run meanwhile.
///
/// # Errors
/// Store errors. Some secrets may be encrypted with the former key then.
pub async fn reseal(store: &Store, vault: &Vault) -> Result<Resealed, grabd_store::Error> {
    let mut done = Resealed::default();
    let mut after = None;
    loop {
        let endpoints = store.vault().list_sealed_endpoints(after, BATCH).await?;
        let Some(last) = endpoints.last() else { break };
        after = Some(last.id);
        for endpoint in endpoints {
            done.add(reseal_endpoint(store, vault, endpoint).await?);
        }
    }
    let mut after = None;
    loop {
        let keys = store.vault().list_sealed_link_secrets(after, BATCH).await?;
        let Some((last, _)) = keys.last() else { break };
        after = Some(*last);
        for (key, sealed) in keys {
            match vault.reseal(&sealed, key.0.as_bytes()) {
                Ok(None) => {}
                Ok(Some(new)) => done.changed += u64::from(store.vault().reseal_link_secret(key, sealed, new).await?),
                Err(_) => done.unreadable += 1,
            }
        }
    }
    let mut after = None;
    loop {
        let factors = store.vault().list_sealed_second_factors(after, BATCH).await?;
        let Some((last, _)) = factors.last() else { break };
        after = Some(*last);
        for (user, sealed) in factors {
            match vault.reseal(&sealed, user.0.as_bytes()) {
                Ok(None) => {}
                // `false`: it was turned off meanwhile.
                Ok(Some(new)) => {
                    done.changed += u64::from(store.vault().reseal_second_factor(user, sealed, new).await?);
                }
                Err(_) => done.unreadable += 1,
            }
        }
    }
    let mut after = None;
    loop {
        let monitors = store.vault().list_sealed_monitors(after, BATCH).await?;
        let Some((last, _)) = monitors.last() else { break };
        after = Some(*last);
        for (monitor, sealed) in monitors {
            match vault.reseal(&sealed, monitor.0.as_bytes()) {
                Ok(None) => {}
                // `false`: its capture was changed meanwhile.
                Ok(Some(new)) => done.changed += u64::from(store.vault().reseal_monitor(monitor, sealed, new).await?),
                Err(_) => done.unreadable += 1,
            }
        }
    }
    for key in store.identity().list_keys().await? {
        match vault.reseal(&key.secret, key.key_id.as_bytes()) {
            Ok(None) => {}
            // `false`: it was removed meanwhile.
            Ok(Some(new)) => {
                done.changed += u64::from(store.identity().reseal_key(key.number, key.secret, new).await?);
            }
            Err(_) => done.unreadable += 1,
        }
    }
    if let Some((key, sealed)) = store.vault().find_sealed_evidence_key().await? {
        match vault.reseal(&sealed, key.as_bytes()) {
            Ok(None) => {}
            // `false`: the key was replaced meanwhile.
            Ok(Some(new)) => done.changed += u64::from(store.vault().reseal_evidence_key(key, sealed, new).await?),
            Err(_) => done.unreadable += 1,
        }
    }
    let mut after = None;
    loop {
        let proxies = store.vault().list_sealed_proxies(after, BATCH).await?;
        let Some((last, _)) = proxies.last() else { break };
        after = Some(*last);
        for (proxy, sealed) in proxies {
            match vault.reseal(&sealed, proxy.0.as_bytes()) {
                Ok(None) => {}
                // `false`: it was changed meanwhile.
                Ok(Some(new)) => done.changed += u64::from(store.vault().reseal_proxy(proxy, sealed, new).await?),
                Err(_) => done.unreadable += 1,
            }
        }
    }
    let mut after = None;
    loop {
        let sites = store.vault().list_sealed_sites(after, BATCH).await?;
        let Some((last, _)) = sites.last() else { break };
        after = Some(*last);
        for (site, sealed) in sites {
            match vault.reseal(&sealed, site.0.as_bytes()) {
                Ok(None) => {}
                // `false`: it was deleted meanwhile.
                Ok(Some(new)) => done.changed += u64::from(store.vault().reseal_site(site, sealed, new).await?),
                Err(_) => done.unreadable += 1,
            }
        }
    }
    let mut after = None;
    loop {
        let jobs = store.vault().list_sealed_jobs(after, JOB_BATCH).await?;
        let Some((last, _)) = jobs.last() else { return Ok(done) };
        after = Some(*last);
        for (grab, sealed) in jobs {
            match vault.reseal(&sealed, grab.0.as_bytes()) {
                Ok(None) => {}
                // `false`: the grab has ended meanwhile, and its secrets with it.
                Ok(Some(new)) => done.changed += u64::from(store.vault().reseal_job(grab, sealed, new).await?),
                Err(_) => done.unreadable += 1,
            }
        }
    }
}

async fn reseal_endpoint(
    store: &Store,
    vault: &Vault,
    endpoint: SealedEndpoint,
) -> Result<Resealed, grabd_store::Error> {
    let owner = endpoint.id.0.as_bytes();
    let mut done = Resealed::default();
    let mut new = endpoint.clone();
    match vault.reseal(&endpoint.secret, owner) {
        Ok(None) => {}
        Ok(Some(secret)) => {
            new.secret = secret;
            done.changed += 1;
        }
        Err(_) => done.unreadable += 1,
    }
    match endpoint.previous.as_deref().map(|sealed| vault.reseal(sealed, owner)) {
        None | Some(Ok(None)) => {}
        Some(Ok(Some(secret))) => {
            new.previous = Some(secret);
            done.changed += 1;
        }
        Some(Err(_)) => done.unreadable += 1,
    }
    if new != endpoint {
        // If it was changed or removed meanwhile, the next pass reads it again.
        store.vault().reseal_endpoint(endpoint, new).await?;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::accounts::Email;
    use grabd_domain::credentials::{Environment, Principal};
    use grabd_domain::ids::{EndpointId, ProxyId, TeamId, UserId};
    use grabd_domain::proxies::ProxyUrl;
    use grabd_domain::target::TargetUrl;
    use grabd_domain::webhooks::{Creator, Events, Registration};
    use grabd_store::accounts::{InitialTeam, NewSecondFactor, NewTeam, NewUser};
    use grabd_store::proxies::NewProxyRow;
    use grabd_store::webhooks::NewEndpoint;
    use uuid::Uuid;

    use super::*;
    use crate::vault::{begin_rotation, end_rotation};

    const NOW: Timestamp = Timestamp::from_ms(1_795_206_774_120);

    async fn register(store: &Store, vault: &Vault, team: TeamId, number: u128) -> EndpointId {
        let id = EndpointId(Uuid::from_u128(number));
        let registration = Registration {
            url: TargetUrl::parse("https://example.com/hook").unwrap(),
            events: Events::all(),
            description: String::new(),
        };
        let secret = vault.seal(number.to_string().as_bytes(), id.0.as_bytes());
        let (environment, creator) = (Environment::Live, Creator::Key);
        let new = NewEndpoint { id, team, environment, registration, secret, creator, by: None, now: NOW };
        store.webhooks().register_endpoint(new).await.unwrap();
        id
    }

    #[tokio::test]
    async fn interrupted_rotation_continues_and_loses_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        let team = TeamId(Uuid::from_u128(9));
        store.accounts().create_team(NewTeam { id: team, name: "A team".into(), now: NOW }).await.unwrap();
        // The vault of a service that runs all the time.
        let service = Vault::open(&path).unwrap();
        for number in 1..=3 {
            register(&store, &service, team, number).await;
        }

        assert!(begin_rotation(&path).unwrap());
        let command = Vault::open(&path).unwrap();
        let first = store.vault().list_sealed_endpoints(None, 1).await.unwrap().remove(0);
        assert_eq!(reseal_endpoint(&store, &command, first).await.unwrap().changed, 1);
        drop(command);
        // The command crashed here. The service reads both kinds, and seals with the new key.
        let readable = async || {
            for endpoint in store.vault().list_sealed_endpoints(None, 99).await.unwrap() {
                let owner = endpoint.id.0.as_bytes();
                let text = String::from_utf8(service.unseal(&endpoint.secret, owner).unwrap()).unwrap();
                assert_eq!(text, endpoint.id.0.as_u128().to_string());
            }
        };
        readable().await;
        register(&store, &service, team, 4).await;

        assert!(!begin_rotation(&path).unwrap(), "it continues with the same new key");
        let command = Vault::open(&path).unwrap();
        let done = reseal(&store, &command).await.unwrap();
        assert_eq!(done, Resealed { changed: 2, unreadable: 0 });
        assert_eq!(reseal(&store, &command).await.unwrap(), Resealed::default());
        end_rotation(&path).unwrap();
        readable().await;
    }

    #[tokio::test]
    async fn secrets_of_authenticator_apps_are_encrypted_with_the_new_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        let vault = Vault::open(&path).unwrap();
        let team = TeamId(Uuid::from_u128(9));
        store.accounts().create_team(NewTeam { id: team, name: "A team".into(), now: NOW }).await.unwrap();
        // More than are read at a time.
        let users: Vec<UserId> = (1..=u128::from(BATCH) + 1).map(|number| UserId(Uuid::from_u128(number))).collect();
        for user in &users {
            let email = Email::parse(&format!("{}@example.com", user.0.as_u128())).unwrap();
            let (id, initial_team) = (*user, InitialTeam::Existing(team));
            let new = NewUser { id, email, password_hash: "x".into(), initial_team, verified: true, now: NOW };
            store.accounts().create_user(new).await.unwrap();
            let secret = vault.seal(user.0.as_bytes(), user.0.as_bytes());
            let recovery_codes = vec![[1; 32]];
            let factor = NewSecondFactor { user: *user, secret, step: 1, recovery_codes, keep: [0; 32], now: NOW };
            assert!(store.accounts().turn_on_second_factor(factor).await.unwrap());
        }
        assert!(begin_rotation(&path).unwrap());
        let done = reseal(&store, &Vault::open(&path).unwrap()).await.unwrap();
        assert_eq!(done, Resealed { changed: u64::from(BATCH) + 1, unreadable: 0 });
        end_rotation(&path).unwrap();
        let vault = Vault::open(&path).unwrap();
        for user in users {
            let factor = store.accounts().find_second_factor(user).await.unwrap().unwrap();
            assert_eq!(vault.unseal(&factor.secret.unwrap(), user.0.as_bytes()).unwrap(), user.0.as_bytes());
            assert_eq!((factor.last_step, factor.recovery_codes), (1, 1));
        }
    }

    #[tokio::test]
    async fn logins_of_proxies_are_encrypted_with_the_new_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        let vault = Vault::open(&path).unwrap();
        let team = TeamId(Uuid::from_u128(9));
        store.accounts().create_team(NewTeam { id: team, name: "A team".into(), now: NOW }).await.unwrap();
        for (number, has_login) in [(1, true), (2, false), (3, true)] {
            let id = ProxyId(Uuid::from_u128(number));
            let (environment, creator) = (Environment::Live, Principal::User(UserId(id.0)));
            let url = ProxyUrl::parse("http://proxy.example.com:3128").unwrap();
            let login = has_login.then(|| vault.seal(id.0.as_bytes(), id.0.as_bytes()));
            let new = NewProxyRow { id, team, environment, creator, name: "Office".into(), url, login, now: NOW };
            store.proxies().create(new).await.unwrap();
        }
        assert!(begin_rotation(&path).unwrap());
        let done = reseal(&store, &Vault::open(&path).unwrap()).await.unwrap();
        assert_eq!(done, Resealed { changed: 2, unreadable: 0 });
        end_rotation(&path).unwrap();
        let vault = Vault::open(&path).unwrap();
        for (id, login) in store.vault().list_sealed_proxies(None, 9).await.unwrap() {
            assert_eq!(vault.unseal(&login, id.0.as_bytes()).unwrap(), id.0.as_bytes());
        }
    }

    #[tokio::test]
    async fn secret_of_an_unknown_key_is_counted_and_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        let team = TeamId(Uuid::from_u128(9));
        store.accounts().create_team(NewTeam { id: team, name: "A team".into(), now: NOW }).await.unwrap();
        register(&store, &Vault::new([7; 32]), team, 1).await;
        register(&store, &Vault::open(&path).unwrap(), team, 2).await;
        begin_rotation(&path).unwrap();
        let before = store.vault().list_sealed_endpoints(None, 9).await.unwrap();
        let done = reseal(&store, &Vault::open(&path).unwrap()).await.unwrap();
        assert_eq!(done, Resealed { changed: 1, unreadable: 1 });
        let after = store.vault().list_sealed_endpoints(None, 9).await.unwrap();
        assert_eq!(before.iter().zip(&after).filter(|(old, new)| old == new).count(), 1);
    }
}
