//! `grabd.v1.AccessService`. The gate has authenticated and counted a call before it arrives here.

use grabd_domain::credentials::Environment;
use grabd_proto::v1::access_service_server::AccessService;
use grabd_proto::v1::{AuthenticateRequest, AuthenticateResponse, TakeRequestRequest, TakeRequestResponse};
use tonic::{Request, Response, Status};

use crate::grabs::caller;

/// The service. It reports what the gate stored in the request's extensions.
pub(crate) struct Access;

#[tonic::async_trait]
impl AccessService for Access {
    async fn authenticate(
        &self,
        request: Request<AuthenticateRequest>,
    ) -> Result<Response<AuthenticateResponse>, Status> {
        let live = caller(&request)?.environment == Environment::Live;
        Ok(Response::new(AuthenticateResponse { live }))
    }

    async fn take_request(
        &self,
        request: Request<TakeRequestRequest>,
    ) -> Result<Response<TakeRequestResponse>, Status> {
        caller(&request)?;
        Ok(Response::new(TakeRequestResponse {}))
    }
}
