//! Requests whose large bodies arrive slowly.

use std::time::Instant;

use futures::future::try_join_all;
use tokio::io::AsyncWriteExt;

use crate::hostile_tenants::kind::{Kind, PAUSE};

/// Bodies that one account sends at the same time.
const AT_A_TIME: usize = 24;
const BODY_BYTES: usize = 1_000_000;
/// More than bodies may have that are received before the credential was checked.
const FIRST_BYTES: usize = 70_000;

pub(in crate::hostile_tenants) const KIND: Kind =
    Kind::new("large-bodies", "sends 24 bodies of 1 MB at a time, a byte every quarter of a second", |field, team| {
        Box::pin(async move {
            let sent = (0..AT_A_TIME).map(async |_| {
                while Instant::now() < field.until {
                    let mut stream = field.connect(team).await?;
                    let head = format!(
                        "POST /v1/grabs HTTP/1.1\r\nhost: grabd\r\nauthorization: Bearer {}\r\n\
                         content-type: application/json\r\ncontent-length: {BODY_BYTES}\r\n\r\n{{",
                        team.live.expose()
                    );
                    let mut chunk = head.into_bytes();
                    chunk.resize(chunk.len() + FIRST_BYTES, b' ');
                    // The service closes connections that are too slow.
                    while stream.write_all(&chunk).await.is_ok() && Instant::now() < field.until {
                        chunk = vec![b' '];
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                anyhow::Ok(())
            });
            try_join_all(sent).await.map(drop)
        })
    });
