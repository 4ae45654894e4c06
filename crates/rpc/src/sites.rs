//! `grabd.v1.SiteService`.

use grabd_domain::Fault;
use grabd_domain::capture::CaptureRequest;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::ids::SiteId;
use grabd_domain::site::{PageCounts, Pattern, Site, SiteError, SitePage, SiteRequest, SiteSpec, Source};
use grabd_engine::Core;
use grabd_engine::sites::{self, ListRequest};
use grabd_proto::v1::site_service_server::SiteService;
use grabd_proto::{options, v1};
use tonic::{Request, Response, Status};

use crate::convert::{timestamp, unparsed_fields};
use crate::grabs::{caller, may_read};
use crate::numbers::to_i32;
use crate::status::to_status;

/// The service over a core.
pub(crate) struct Sites(pub(crate) Core);

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl SiteService for Sites {
    async fn create_site(&self, request: Request<v1::CreateSiteRequest>) -> RpcResult<v1::CreateSiteResponse> {
        let caller = caller(&request)?;
        let created = sites::create(&self.0, caller, &create_request(request.into_inner())).await.map_err(to_status)?;
        Ok(Response::new(v1::CreateSiteResponse { site: Some(site(&created)) }))
    }

    async fn get_site(&self, request: Request<v1::GetSiteRequest>) -> RpcResult<v1::GetSiteResponse> {
        let caller = caller(&request)?;
        let id = site_id(&request.get_ref().id)?;
        let found = sites::get(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::GetSiteResponse { site: Some(site(&found)) }))
    }

    async fn list_sites(&self, request: Request<v1::ListSitesRequest>) -> RpcResult<v1::ListSitesResponse> {
        let caller = caller(&request)?;
        let v1::ListSitesRequest { limit, starting_after, unparsed } = request.into_inner();
        let query = list_request(limit, starting_after, unparsed);
        let found = sites::list(&self.0, caller, &query).await.map_err(to_status)?;
        let sites = found.sites.iter().map(site).collect();
        Ok(Response::new(v1::ListSitesResponse { sites, has_more: found.has_more }))
    }

    async fn list_site_pages(
        &self,
        request: Request<v1::ListSitePagesRequest>,
    ) -> RpcResult<v1::ListSitePagesResponse> {
        let caller = caller(&request)?;
        let v1::ListSitePagesRequest { id, limit, starting_after, unparsed } = request.into_inner();
        let id = site_id(&id)?;
        let query = list_request(limit, starting_after, unparsed);
        let found = sites::list_pages(&self.0, caller, id, &query).await.map_err(to_status)?;
        let pages = found.pages.iter().map(|of| page(of, self.0.public_url())).collect();
        let live = caller.environment == Environment::Live;
        Ok(Response::new(v1::ListSitePagesResponse { pages, has_more: found.has_more, live }))
    }

    async fn cancel_site(&self, request: Request<v1::CancelSiteRequest>) -> RpcResult<v1::CancelSiteResponse> {
        let (caller, may_read) = (caller(&request)?, may_read(&request));
        let id = site_id(&request.get_ref().id)?;
        check_visible(&self.0, caller, may_read, id).await?;
        let canceled = sites::cancel(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::CancelSiteResponse { site: Some(site(&canceled)) }))
    }

    async fn delete_site(&self, request: Request<v1::DeleteSiteRequest>) -> RpcResult<v1::DeleteSiteResponse> {
        let (caller, may_read) = (caller(&request)?, may_read(&request));
        let id = site_id(&request.get_ref().id)?;
        check_visible(&self.0, caller, may_read, id).await?;
        sites::remove(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::DeleteSiteResponse {}))
    }
}

/// Malformed ids are reported as not found.
fn site_id(text: &str) -> Result<SiteId, Status> {
    text.parse().map_err(|_| not_found())
}

/// A key that may not read sees only the jobs that it has created, also in responses to changes. Others are reported as not found.
async fn check_visible(core: &Core, caller: Caller, may_read: bool, id: SiteId) -> Result<(), Status> {
    if may_read || sites::get(core, caller, id).await.map_err(to_status)?.creator == caller.principal {
        return Ok(());
    }
    Err(not_found())
}

fn not_found() -> Status {
    to_status(Fault::NotFound { what: "site job" })
}

fn list_request(limit: Option<i32>, starting_after: Option<String>, unparsed: Vec<v1::Unparsed>) -> ListRequest {
    ListRequest { limit: limit.map(i64::from), starting_after, unparsed: unparsed_fields(unparsed) }
}

fn create_request(request: v1::CreateSiteRequest) -> SiteRequest {
    let v1::CreateSiteRequest {
        url,
        sitemap,
        capture,
        max_pages,
        max_depth,
        include,
        exclude,
        robots,
        requests_per_minute,
        name,
        capture_unparsed,
        unparsed,
        capture_unknown,
    } = request;
    SiteRequest {
        url,
        sitemap,
        capture: capture
            .map(|capture| CaptureRequest { unknown: capture_unknown, ..options::decode(capture, capture_unparsed) }),
        max_pages: max_pages.map(i64::from),
        max_depth: max_depth.map(i64::from),
        include,
        exclude,
        robots,
        requests_per_minute: requests_per_minute.map(i64::from),
        name,
        unparsed: unparsed_fields(unparsed),
    }
}

fn site(site: &Site) -> v1::Site {
    let Site {
        id,
        team: _,
        environment,
        creator: _,
        spec: SiteSpec { name, source, capture, max_pages, include, exclude, robots, requests_per_minute },
        state,
        error,
        pages: PageCounts { found, skipped, captured, failed, waiting },
        created_at,
        updated_at,
        finished_at,
    } = site;
    let (url, sitemap) = match source {
        Source::Links { start, .. } => (Some(start.to_string()), None),
        Source::Sitemap(sitemap) => (None, Some(sitemap.to_string())),
    };
    // The values of secret options are not there, and all others fit the message, in which they came. The address is that of each
    // page.
    let capture = CaptureRequest { url: None, ..capture.without_secrets().to_minimal_request() };
    let (capture, _) = options::encode(&capture);
    let patterns = |patterns: &[Pattern]| patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect();
    v1::Site {
        id: id.to_string(),
        live: *environment == Environment::Live,
        name: name.clone(),
        url,
        sitemap,
        capture: Some(capture),
        max_pages: to_i32(*max_pages),
        max_depth: site.spec.max_depth().map(to_i32),
        include: patterns(include),
        exclude: patterns(exclude),
        robots: *robots,
        requests_per_minute: to_i32(*requests_per_minute),
        state: state.as_str().to_owned(),
        created_at: Some(timestamp(*created_at)),
        updated_at: Some(timestamp(*updated_at)),
        finished_at: finished_at.map(timestamp),
        error: error.as_ref().map(site_error),
        pages: Some(v1::SitePages {
            found: to_i32(*found),
            skipped: to_i32(*skipped),
            captured: to_i32(*captured),
            failed: to_i32(*failed),
            waiting: to_i32(*waiting),
        }),
    }
}

fn site_error(error: &SiteError) -> v1::SiteError {
    let SiteError { code, message } = error;
    v1::SiteError { code: code.clone(), message: message.clone() }
}

fn page(page: &SitePage, origin: &str) -> v1::SitePage {
    let SitePage { number, url, depth, found_on, state, skipped_because, grab, image, error } = page;
    v1::SitePage {
        number: to_i32(*number),
        url: url.clone(),
        depth: to_i32(*depth),
        found_on: found_on.clone(),
        state: state.as_str().to_owned(),
        skipped_because: skipped_because.map(|reason| reason.as_str().to_owned()),
        grab_id: grab.map(|grab| grab.to_string()),
        image_url: image.as_ref().map(|key| format!("{origin}/{}", key.path())),
        error: error.as_ref().map(site_error),
    }
}
