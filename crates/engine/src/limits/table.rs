//! The overrides of all teams, in memory, because every request checks some of them.
//!
//! The sweep asks for their version twice a second, and reads all of them after a change. So a change by a command
//! applies within about a second, and no request needs a query for it.

use std::collections::HashMap;
use std::sync::Arc;

use grabd_domain::ids::{PayerId, TeamId};
use grabd_domain::team_limits::TeamLimit;
use grabd_store::limits::{StoredLimit, TeamLimitsVersion};
use grabd_store::{Error, Store};
use parking_lot::RwLock;

/// The current overrides.
#[derive(Default)]
pub(crate) struct TeamLimits {
    current: RwLock<Arc<Overrides>>,
}

#[derive(Default)]
struct Overrides {
    /// `None`: not read yet.
    version: Option<TeamLimitsVersion>,
    values: HashMap<(TeamId, TeamLimit), u32>,
    /// Budgets of failed renders.
    payers: HashMap<PayerId, u32>,
}

impl TeamLimits {
    /// Reads the overrides if they changed. Returns whether they did.
    pub(crate) async fn refresh(&self, store: &Store) -> Result<bool, Error> {
        // Read first, so that a change meanwhile is read the next time.
        let version = Some(store.limits().team_limits_version().await?);
        if self.current().version == version {
            return Ok(false);
        }
        let stored = store.limits().list_team_limits().await?;
        let values = stored.into_iter().map(|StoredLimit { team, limit, value }| ((team, limit), value)).collect();
        let payers = payer_budgets(store).await?;
        *self.current.write() = Arc::new(Overrides { version, values, payers });
        Ok(true)
    }

    /// Reads again which payers have their own budget: the first owner of a team may have changed.
    pub(crate) async fn refresh_payers(&self, store: &Store) -> Result<(), Error> {
        if self.of_all(TeamLimit::FailedSecondsPerMinute).is_empty() {
            return Ok(());
        }
        let payers = payer_budgets(store).await?;
        let mut current = self.current.write();
        let Overrides { version, values, .. } = &**current;
        *current = Arc::new(Overrides { version: *version, values: values.clone(), payers });
        Ok(())
    }

    /// The team's own limit; `None`: the setting applies.
    pub(crate) fn of(&self, team: TeamId, limit: TeamLimit) -> Option<u32> {
        self.current().values.get(&(team, limit)).copied()
    }

    /// The payer's own budget of failed renders, in seconds per minute; `None`: the setting applies.
    pub(crate) fn budget_of(&self, payer: PayerId) -> Option<u32> {
        self.current().payers.get(&payer).copied()
    }

    /// The teams with an own value of this limit.
    pub(crate) fn of_all(&self, limit: TeamLimit) -> HashMap<TeamId, u32> {
        let current = self.current();
        let of_limit = current.values.iter().filter(|((_, of), _)| *of == limit);
        of_limit.map(|((team, _), value)| (*team, *value)).collect()
    }

    /// The version of the overrides. It differs after every change.
    pub(crate) fn version(&self) -> Option<TeamLimitsVersion> {
        self.current().version
    }

    fn current(&self) -> Arc<Overrides> {
        Arc::clone(&self.current.read())
    }
}

/// The own budgets of payers, and of their links.
async fn payer_budgets(store: &Store) -> Result<HashMap<PayerId, u32>, Error> {
    let payers = store.limits().list_payer_budgets().await?;
    Ok(payers.into_iter().flat_map(|(id, budget)| [(id, budget), (id.for_links(), budget)]).collect())
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::team_limits::LimitChange;
    use grabd_store::accounts::NewTeam;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn overrides_are_read_again_after_every_change() {
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        let (team, now) = (TeamId(Uuid::from_u128(1)), Timestamp::from_ms(5));
        store.accounts().create_team(NewTeam { id: team, name: "A team".into(), now }).await.unwrap();
        let limits = TeamLimits::default();
        assert!(limits.refresh(&store).await.unwrap());
        assert!(!limits.refresh(&store).await.unwrap(), "nothing changed");
        // All at the same time of the clock, which may also be set back.
        for (change, at, expected) in
            [("keys=5", 5, Some(5)), ("keys=6", 5, Some(6)), ("keys=7", 1, Some(7)), ("members=7", 1, Some(7))]
        {
            let change = LimitChange::parse(change).unwrap();
            store.limits().change_team_limits(team, vec![change], Timestamp::from_ms(at)).await.unwrap();
            assert!(limits.refresh(&store).await.unwrap(), "{change}");
            assert_eq!(limits.of(team, change.limit), expected, "{change}");
        }
        store.limits().change_team_limits(team, vec![LimitChange::reset("keys").unwrap()], now).await.unwrap();
        assert!(limits.refresh(&store).await.unwrap());
        assert_eq!((limits.of(team, TeamLimit::Keys), limits.of(team, TeamLimit::Members)), (None, Some(7)));
        assert_eq!(limits.of_all(TeamLimit::Members), HashMap::from([(team, 7)]));
        store.close().await;
    }
}
