//! `grabd.v1.AccessService`. The gate has authenticated and counted a call before it arrives here.

use grabd_domain::credentials::Environment;
use grabd_engine::{Core, billing};
use grabd_proto::v1::access_service_server::AccessService;
use grabd_proto::v1::{AuthenticateRequest, AuthenticateResponse, TakeRequestRequest, TakeRequestResponse};
use tonic::{Request, Response, Status};

use crate::grabs::caller;
use crate::status::to_status;

/// The service over a core. The gate has stored the caller in the request's extensions.
pub(crate) struct Access(pub(crate) Core);

#[tonic::async_trait]
impl AccessService for Access {
    async fn authenticate(
        &self,
        request: Request<AuthenticateRequest>,
    ) -> Result<Response<AuthenticateResponse>, Status> {
        let caller = caller(&request)?;
        let account = match request.get_ref().with_account {
            true => billing::payer_name(&self.0, caller.team).await.map_err(to_status)?,
            false => String::new(),
        };
        Ok(Response::new(AuthenticateResponse { live: caller.environment == Environment::Live, account }))
    }

    async fn take_request(
        &self,
        request: Request<TakeRequestRequest>,
    ) -> Result<Response<TakeRequestResponse>, Status> {
        caller(&request)?;
        Ok(Response::new(TakeRequestResponse {}))
    }
}
