//! `grabd.v1.ProxyService`.

use grabd_domain::Fault;
use grabd_domain::ids::ProxyId;
use grabd_domain::proxies::{Proxy, ProxyRequest};
use grabd_engine::{Core, proxies};
use grabd_proto::v1;
use grabd_proto::v1::proxy_service_server::ProxyService;
use tonic::{Request, Response, Status};

use crate::convert::{timestamp, unparsed_fields};
use crate::grabs::caller;
use crate::status::to_status;

/// The service over a core.
pub(crate) struct Proxies(pub(crate) Core);

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl ProxyService for Proxies {
    async fn create_proxy(&self, request: Request<v1::CreateProxyRequest>) -> RpcResult<v1::CreateProxyResponse> {
        let caller = caller(&request)?;
        let v1::CreateProxyRequest { name, url, username, password, unparsed } = request.into_inner();
        let members = ProxyRequest { name, url, username, password, unparsed: unparsed_fields(unparsed) };
        let created = proxies::create(&self.0, caller, &members).await.map_err(to_status)?;
        Ok(Response::new(v1::CreateProxyResponse { proxy: Some(proxy(created)) }))
    }

    async fn get_proxy(&self, request: Request<v1::GetProxyRequest>) -> RpcResult<v1::GetProxyResponse> {
        let caller = caller(&request)?;
        let id = proxy_id(&request.get_ref().id)?;
        let found = proxies::get(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::GetProxyResponse { proxy: Some(proxy(found)) }))
    }

    async fn list_proxies(&self, request: Request<v1::ListProxiesRequest>) -> RpcResult<v1::ListProxiesResponse> {
        let all = proxies::list(&self.0, caller(&request)?).await.map_err(to_status)?;
        let proxies = all.into_iter().map(proxy).collect();
        Ok(Response::new(v1::ListProxiesResponse { proxies, has_more: false }))
    }

    async fn update_proxy(&self, request: Request<v1::UpdateProxyRequest>) -> RpcResult<v1::UpdateProxyResponse> {
        let caller = caller(&request)?;
        let v1::UpdateProxyRequest { id, name, url, username, password, unparsed } = request.into_inner();
        let members = ProxyRequest { name, url, username, password, unparsed: unparsed_fields(unparsed) };
        let changed = proxies::change(&self.0, caller, proxy_id(&id)?, &members).await.map_err(to_status)?;
        Ok(Response::new(v1::UpdateProxyResponse { proxy: Some(proxy(changed)) }))
    }

    async fn delete_proxy(&self, request: Request<v1::DeleteProxyRequest>) -> RpcResult<v1::DeleteProxyResponse> {
        let caller = caller(&request)?;
        let id = proxy_id(&request.get_ref().id)?;
        proxies::remove(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::DeleteProxyResponse {}))
    }
}

/// Malformed ids are reported as not found.
fn proxy_id(text: &str) -> Result<ProxyId, Status> {
    text.parse().map_err(|_| to_status(Fault::NotFound { what: "proxy" }))
}

fn proxy(proxy: Proxy) -> v1::Proxy {
    let Proxy { id, team: _, environment: _, name, url, has_login, created_at, updated_at, last_used_at, last_error } =
        proxy;
    v1::Proxy {
        id: id.to_string(),
        name,
        url: url.to_string(),
        has_login,
        created_at: Some(timestamp(created_at)),
        updated_at: Some(timestamp(updated_at)),
        last_used_at: last_used_at.map(timestamp),
        last_error: last_error.map(|error| error.problem.as_str().to_owned()),
        last_error_at: last_error.map(|error| timestamp(error.at)),
    }
}
