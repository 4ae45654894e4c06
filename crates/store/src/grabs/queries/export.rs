//! All grabs of a team in pages, for its export.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{QueryFilter, QueryOrder, QuerySelect};

use crate::Result;
use crate::areas::Grabs;
use crate::entities::grab::{self, WithJob};

/// Position of a grab in the export. It stays valid when the grab is deleted meanwhile.
pub type ExportCursor = (Timestamp, GrabId);

/// A page of the export of a team's grabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportPage {
    /// Newest first. Rows that cannot be read are left out.
    pub grabs: Vec<Grab>,
    /// Ids of the rows that were left out.
    pub unreadable: Vec<GrabId>,
    /// Where the next page begins. `None` on the last page.
    pub next: Option<ExportCursor>,
}

impl Grabs<'_> {
    /// Up to `limit` grabs of a team in an environment, newest first, after a position.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn export_grabs(
        self,
        team: TeamId,
        environment: Environment,
        after: Option<ExportCursor>,
        limit: u32,
    ) -> Result<ExportPage> {
        let mut query = grab::with_job(grab::scoped(team, environment));
        if let Some((at, id)) = after {
            let key = Expr::tuple([
                Expr::col((grab::Entity, grab::Column::CreatedAt)),
                Expr::col((grab::Entity, grab::Column::Id)),
            ]);
            query = query.filter(key.lt(Expr::tuple([Expr::value(at.as_ms()), Expr::value(id.0)])));
        }
        let rows = query
            .order_by_desc(grab::Column::CreatedAt)
            .order_by_desc(grab::Column::Id)
            .limit(u64::from(limit))
            .into_model::<WithJob>()
            .all(self.store.database.reader())
            .await?;
        let is_last = rows.len() < usize::try_from(limit).unwrap_or(usize::MAX);
        let next = rows.last().map(|last| (Timestamp::from_ms(last.row.created_at), GrabId(last.row.id)));
        let (mut grabs, mut unreadable) = (Vec::new(), Vec::new());
        for found in rows {
            let id = GrabId(found.row.id);
            match found.read() {
                Ok(grab) => grabs.push(grab),
                Err(_) => unreadable.push(id),
            }
        }
        Ok(ExportPage { grabs, unreadable, next: next.filter(|_| !is_last) })
    }
}
