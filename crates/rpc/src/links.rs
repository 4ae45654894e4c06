//! `grabd.v1.LinkService`. It authenticates its calls itself, by the signature of the link.

use grabd_engine::Core;
use grabd_engine::accounts;
use grabd_engine::links::{self, LinkError, OpenedLink};
use grabd_proto::v1::link_service_server::LinkService;
use grabd_proto::v1::{OpenLinkRequest, OpenLinkResponse};
use tonic::{Request, Response, Status};

use crate::call_log::CallLog;
use crate::status::to_status;
use crate::{convert, gate};

const OPEN_LINK: &str = "/grabd.v1.LinkService/OpenLink";

/// The service over a core.
pub(crate) struct Links(pub(crate) Core);

/// Dropping a call does not cancel its grab.
#[tonic::async_trait]
impl LinkService for Links {
    async fn open_link(&self, request: Request<OpenLinkRequest>) -> Result<Response<OpenLinkResponse>, Status> {
        let core = &self.0;
        let log = CallLog::begin(core, request.metadata().as_ref(), OPEN_LINK);
        let OpenLinkRequest { query } = request.into_inner();
        let link = links::verify(core, query).await.map_err(to_status)?;
        accounts::record_use(core, link.caller);
        match links::open(core, &link).await {
            Ok(OpenedLink { result, fresh_for, counted }) => {
                let grab = Some(convert::created(&result, core.public_url()));
                let fresh_s = i64::try_from(fresh_for.as_secs()).unwrap_or(i64::MAX);
                let mut response = Response::new(OpenLinkResponse { grab, fresh_s });
                gate::add_limit(counted, response.metadata_mut());
                Ok(response)
            }
            Err(LinkError { fault, counted }) => {
                let mut status = to_status(fault);
                // Strangers open links, so only their errors are recorded, and nothing of the query.
                log.end_with(core, link.caller, Some(&status));
                gate::add_limit(counted, status.metadata_mut());
                Err(status)
            }
        }
    }
}
