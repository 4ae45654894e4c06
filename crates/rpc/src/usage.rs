//! `grabd.v1.UsageService`.

use grabd_domain::credentials::Environment;
use grabd_engine::{Core, billing};
use grabd_proto::v1::usage_service_server::UsageService;
use grabd_proto::v1::{Credits, GetUsageRequest, GetUsageResponse, Plan};
use tonic::{Request, Response, Status};

use crate::convert;
use crate::grabs::caller;
use crate::status::to_status;

/// The service over a core.
pub(crate) struct Usage(pub(crate) Core);

#[tonic::async_trait]
impl UsageService for Usage {
    async fn get_usage(&self, request: Request<GetUsageRequest>) -> Result<Response<GetUsageResponse>, Status> {
        let caller = caller(&request)?;
        let billing::Usage { balance, plan, counts } = billing::get(&self.0, caller).await.map_err(to_status)?;
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        Ok(Response::new(GetUsageResponse {
            credits: Some(Credits {
                subscription: whole(balance.subscription),
                prepaid: whole(balance.prepaid),
                total: whole(balance.total()),
                held: whole(balance.held),
            }),
            plan: Some(Plan {
                name: plan.name.to_owned(),
                status: plan.status.to_owned(),
                expires_at: plan.expires_at.map(convert::timestamp),
            }),
            grabs_last_30d: whole(counts.all),
            live_grabs_last_30d: whole(counts.live),
            live: caller.environment == Environment::Live,
            top_up: self.0.top_up(caller.team),
        }))
    }
}
