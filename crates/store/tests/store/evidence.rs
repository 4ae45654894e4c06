//! The keys that sign evidence: all processes use the same, and a retired one keeps only its public key.

use std::time::Duration;

use futures::future::join_all;
use grabd_store::evidence::{EvidenceKey, NewEvidenceKey, RotateKeyOutcome};

use crate::harness::{NOW, on_both};

fn new_key(number: u8) -> NewEvidenceKey {
    NewEvidenceKey { id: format!("key {number}"), public_key: vec![number; 32], sealed: vec![number; 73], now: NOW }
}

on_both! {
    async fn processes_that_start_together_use_one_key(db) {
        assert_eq!(db.store.evidence().current_key().await.unwrap(), None);
        let keys = join_all((1..=8).map(|number| db.store.evidence().ensure_key(new_key(number)))).await;
        let keys: Vec<EvidenceKey> = keys.into_iter().map(Result::unwrap).collect();
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        assert_eq!(db.store.evidence().list_keys().await.unwrap(), &keys[..1]);
        assert_eq!(db.store.evidence().current_key().await.unwrap().as_ref(), Some(&keys[0]));
    }

    async fn replaced_key_keeps_only_its_public_key(db) {
        let keys = db.store.evidence();
        let first = keys.ensure_key(new_key(1)).await.unwrap();
        let later = NOW + Duration::from_secs(60);
        let rotated = keys.rotate_key(NewEvidenceKey { now: later, ..new_key(2) }).await.unwrap();
        let RotateKeyOutcome::Rotated { new, former } = rotated else { panic!("{rotated:?}") };
        assert_eq!(former.as_ref(), Some(&first.id));
        let retired = EvidenceKey { sealed: None, retired_at: Some(later), ..first };
        assert_eq!(keys.list_public_keys().await.unwrap(), [&new, &retired].map(|key| key.public_key.clone()));
        assert_eq!(keys.list_keys().await.unwrap(), [new.clone(), retired]);
        assert_eq!(keys.current_key().await.unwrap(), Some(new.clone()));
        assert_eq!(keys.ensure_key(new_key(3)).await.unwrap(), new);

        let vault = db.store.vault();
        let (id, sealed) = vault.find_sealed_evidence_key().await.unwrap().unwrap();
        assert_eq!((&id, Some(&sealed)), (&new.id, new.sealed.as_ref()));
        assert!(vault.reseal_evidence_key(id.clone(), sealed.clone(), vec![9; 73]).await.unwrap());
        assert!(!vault.reseal_evidence_key(id, sealed, vec![8; 73]).await.unwrap());
        assert_eq!(keys.current_key().await.unwrap().unwrap().sealed, Some(vec![9; 73]));
    }
}
