//! Grabs and credits of API keys.

use std::collections::BTreeMap;
use std::time::Duration;

use grabd_domain::ids::{KeyId, TeamId};
use grabd_domain::{Day, Timestamp};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::areas::Accounts;
use crate::codes::{self, DONE};
use crate::entities::{api_key, grab, key_tally};
use crate::padded::padded;

/// What a key was used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUsage {
    /// Grabs of any status.
    pub grabs: u64,
    /// Credits spent: one for each done live grab.
    pub credits: u64,
}

impl Accounts<'_> {
    /// What each key of a team was used for since a time, purged grabs included by whole days. Keys without grabs are
    /// left out.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn key_usage(self, team: TeamId, since: Timestamp) -> Result<BTreeMap<KeyId, KeyUsage>> {
        let keys: Vec<(Uuid, i16)> = api_key::Entity::find()
            .select_only()
            .columns([api_key::Column::Id, api_key::Column::Env])
            .filter(api_key::Column::TeamId.eq(team.0))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let ids = padded(keys.iter().map(|(key, _)| *key));
        let stored: Vec<(Uuid, i16, i64)> = grab::Entity::find()
            .select_only()
            .columns([grab::Column::KeyId, grab::Column::Status])
            .column_as(grab::Column::Id.count(), "grabs")
            .filter(grab::Column::KeyId.is_not_null())
            .filter(grab::Column::KeyId.is_in(ids.clone()))
            .filter(grab::Column::CreatedAt.gte(since.as_ms()))
            .group_by(grab::Column::KeyId)
            .group_by(grab::Column::Status)
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        // Of purged grabs, only those of whole days are known.
        let purged: Vec<(Uuid, i64, i64)> = key_tally::Entity::find()
            .select_only()
            .columns([key_tally::Column::KeyId, key_tally::Column::Grabs, key_tally::Column::Done])
            .filter(key_tally::Column::KeyId.is_in(ids))
            .filter(key_tally::Column::Day.gt(Day::of(since - Duration::from_millis(1)).number()))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let stored =
            stored.into_iter().map(|(key, status, grabs)| (key, grabs, if status == DONE { grabs } else { 0 }));
        let is_live = |key: Uuid| keys.iter().any(|(id, env)| *id == key && *env == codes::LIVE);
        let mut usage: BTreeMap<KeyId, KeyUsage> = BTreeMap::new();
        for (key, grabs, done) in stored.chain(purged) {
            let entry = usage.entry(KeyId(key)).or_default();
            entry.grabs = entry.grabs.saturating_add(u64::try_from(grabs).unwrap_or(0));
            if is_live(key) {
                entry.credits = entry.credits.saturating_add(u64::try_from(done).unwrap_or(0));
            }
        }
        Ok(usage)
    }
}
