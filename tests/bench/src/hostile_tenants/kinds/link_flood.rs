//! Published links that are opened again and again, each for a new image.

use std::time::Instant;

use anyhow::Context;
use futures::future::try_join_all;
use grabd_engine::links::credentials;
use grabd_engine::vault::Vault;
use grabd_tests::links::sign;

use crate::hostile_tenants::kind::{Kind, PAUSE};

/// Links that are open at the same time.
const AT_A_TIME: usize = 8;

pub(in crate::hostile_tenants) const KIND: Kind = Kind {
    // Enough that each opening is a capture.
    credits: 1_000_000,
    ..Kind::new("link-flood", "opens signed links to a slow page, 8 at a time", |field, team| {
        Box::pin(async move {
            let vault = Vault::open(&field.service.data_dir().join("secrets.key"))?;
            let store = field.service.store().await?;
            let found = credentials(&store, &vault, team.team, team.live_id).await?;
            store.close().await;
            let signer = found.context("the key is in use")?;
            let client = field.client_of(team)?;
            let url = field.site.url("/slow/1500");
            let opened = (0..AT_A_TIME).map(async |_| {
                while Instant::now() < field.until {
                    let members = [("url", &*url), ("max_age", "0"), ("expires", &*field.link_expiry())];
                    let link = format!("{}/shot?{}", field.service.base(), sign(&signer, &members));
                    client.get(link).send().await?.bytes().await?;
                    tokio::time::sleep(PAUSE).await;
                }
                anyhow::Ok(())
            });
            try_join_all(opened).await.map(drop)
        })
    })
};
