//! `grabd.v1.GrabService`.

use std::pin::Pin;

use futures::{Stream, StreamExt, stream};
use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Scope, Scopes};
use grabd_domain::faults::Field;
use grabd_domain::grabs::Stages;
use grabd_domain::ids::GrabId;
use grabd_engine::grabs::{self, Batch, CaptureState, CaptureStream, Follow, GrabUpdate};
use grabd_engine::{Core, accounts};
use grabd_proto::v1::grab_service_server::GrabService;
use grabd_proto::v1::{
    self, BatchCreateGrabsRequest, BatchCreateGrabsResponse, CaptureGrabRequest, CaptureGrabResponse,
    CreateGrabRequest, CreateGrabResponse, DeleteGrabRequest, DeleteGrabResponse, GetGrabRequest, GetGrabResponse,
    ListGrabsRequest, ListGrabsResponse, WatchGrabRequest, WatchGrabResponse, WatchGrabsRequest, WatchGrabsResponse,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::call_log::CallNotes;
use crate::status::{stream_cut, to_status};
use crate::{convert, gate};

/// The service over a core.
pub(crate) struct Grabs(pub(crate) Core);

/// Dropping a call does not cancel its grab, except for `capture_grab`.
#[tonic::async_trait]
impl GrabService for Grabs {
    async fn create_grab(&self, request: Request<CreateGrabRequest>) -> Result<Response<CreateGrabResponse>, Status> {
        let (caller, may_read, notes) = (caller(&request)?, may_read(&request), CallNotes::of(&request));
        let request = convert::create_request(request.into_inner(), may_read);
        notes.asked(&request);
        let result = grabs::create(&self.0, caller, &request).await.map_err(to_status)?;
        let grab = convert::created(&result, self.0.public_url());
        notes.answered(&grab);
        Ok(Response::new(CreateGrabResponse { grab: Some(grab), replayed: result.replayed }))
    }

    async fn batch_create_grabs(
        &self,
        request: Request<BatchCreateGrabsRequest>,
    ) -> Result<Response<BatchCreateGrabsResponse>, Status> {
        let (caller, may_read, notes) = (caller(&request)?, may_read(&request), CallNotes::of(&request));
        let requests = request.into_inner().requests.into_iter();
        let requests: Vec<_> = requests.map(|request| convert::queued_request(request, may_read)).collect();
        notes.asked_all(&requests);
        let batch = grabs::create_batch(&self.0, caller, &requests).await.map_err(to_status)?;
        let Batch { results, is_stopped: stopped, decision } = batch;
        let results: Vec<_> = results.iter().map(|result| convert::batch_result(result, self.0.public_url())).collect();
        notes.answered_all(&results, stopped);
        let mut response = Response::new(BatchCreateGrabsResponse { results, stopped });
        gate::add_limit(decision, response.metadata_mut());
        Ok(response)
    }

    type CaptureGrabStream = Pin<Box<dyn Stream<Item = Result<CaptureGrabResponse, Status>> + Send>>;

    /// Dropping the returned stream cancels the grab.
    async fn capture_grab(
        &self,
        request: Request<CaptureGrabRequest>,
    ) -> Result<Response<Self::CaptureGrabStream>, Status> {
        let (caller, may_read, notes) = (caller(&request)?, may_read(&request), CallNotes::of(&request));
        let CaptureGrabRequest { create, with_stages } = request.into_inner();
        let request = convert::create_request(create.unwrap_or_default(), may_read);
        notes.asked(&request);
        let captured = grabs::capture(&self.0, caller, &request, Follow::stages_if(with_stages)).await;
        let CaptureStream { first, rest } = captured.map_err(to_status)?;
        notes.answered(&convert::created(&first, self.0.public_url()));
        let first = CaptureState { result: first, stages: Stages::default() };
        let public_url = self.0.public_url().to_owned();
        let states = stream::once(async { Ok(first) }).chain(ReceiverStream::new(rest)).map(move |state| {
            let CaptureState { result, stages } = state.map_err(to_status)?;
            let stages = if with_stages { convert::stages(&stages) } else { Vec::new() };
            let grab = Some(v1::Grab { stages, ..convert::created(&result, &public_url) });
            Ok(CaptureGrabResponse { grab, replayed: result.replayed })
        });
        Ok(Response::new(Box::pin(states)))
    }

    async fn get_grab(&self, request: Request<GetGrabRequest>) -> Result<Response<GetGrabResponse>, Status> {
        let caller = caller(&request)?;
        let id = id(&request.get_ref().id)?;
        let grab = grabs::get(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(GetGrabResponse { grab: Some(self.to_proto(&grab)) }))
    }

    async fn list_grabs(&self, request: Request<ListGrabsRequest>) -> Result<Response<ListGrabsResponse>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        if !request.ids.is_empty() || request.unparsed.iter().any(|of| of.field == "ids") {
            let found = grabs::get_several(&self.0, caller, &several(&request)?).await.map_err(to_status)?;
            let grabs = found.iter().map(|grab| self.to_proto(grab)).collect();
            return Ok(Response::new(ListGrabsResponse { grabs, has_more: false, next: None }));
        }
        let request = convert::list_request(request);
        let listed = grabs::list(&self.0, caller, &request).await.map_err(to_status)?;
        let grabs = listed.grabs.iter().map(|grab| convert::listed(grab, self.0.public_url())).collect();
        let next = listed.next.map(|id| id.to_string());
        Ok(Response::new(ListGrabsResponse { grabs, has_more: listed.has_more, next }))
    }

    type WatchGrabStream = Pin<Box<dyn Stream<Item = Result<WatchGrabResponse, Status>> + Send>>;

    async fn watch_grab(&self, request: Request<WatchGrabRequest>) -> Result<Response<Self::WatchGrabStream>, Status> {
        let caller = caller(&request)?;
        let WatchGrabRequest { id: text, after_revision, with_stages } = request.into_inner();
        let (id, seen) = (id(&text)?, u64::try_from(after_revision).unwrap_or(0));
        let wait = accounts::open_wait(&self.0, caller).map_err(to_status)?;
        let states = grabs::watch(&self.0, caller, id, seen, Follow::stages_if(with_stages)).await;
        let states = states.map_err(to_status)?;
        let public_url = self.0.public_url().to_owned();
        let states = states.map(move |state| match state.inspect(|_| _ = &wait) {
            Ok(GrabUpdate { grab, stages }) => {
                let stages = if with_stages { convert::stages(&stages) } else { Vec::new() };
                Ok(WatchGrabResponse { grab: Some(v1::Grab { stages, ..convert::grab(&grab, &public_url) }) })
            }
            Err(_) => Err(stream_cut()),
        });
        Ok(Response::new(Box::pin(states)))
    }

    type WatchGrabsStream = Pin<Box<dyn Stream<Item = Result<WatchGrabsResponse, Status>> + Send>>;

    async fn watch_grabs(
        &self,
        request: Request<WatchGrabsRequest>,
    ) -> Result<Response<Self::WatchGrabsStream>, Status> {
        let caller = caller(&request)?;
        let ids = grabs::parse_ids(&request.get_ref().ids).map_err(to_status)?;
        let waits = accounts::open_waits(&self.0, caller, ids.len()).map_err(to_status)?;
        let states = grabs::watch_several(&self.0, caller, &ids).await.map_err(to_status)?;
        let public_url = self.0.public_url().to_owned();
        let states = states.map(move |state| match state.inspect(|_| _ = &waits) {
            Ok(GrabUpdate { grab, stages: _ }) => {
                Ok(WatchGrabsResponse { grab: Some(convert::grab(&grab, &public_url)) })
            }
            Err(_) => Err(stream_cut()),
        });
        Ok(Response::new(Box::pin(states)))
    }

    async fn delete_grab(&self, request: Request<DeleteGrabRequest>) -> Result<Response<DeleteGrabResponse>, Status> {
        let caller = caller(&request)?;
        let id = id(&request.get_ref().id)?;
        grabs::delete(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(DeleteGrabResponse {}))
    }
}

impl Grabs {
    fn to_proto(&self, grab: &grabd_domain::grabs::Grab) -> grabd_proto::v1::Grab {
        convert::grab(grab, self.0.public_url())
    }
}

/// The caller authenticated by the gate.
///
/// # Errors
/// [`Fault::Unauthorized`] when the call did not pass the gate.
pub(crate) fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    request.extensions().get().copied().ok_or_else(|| to_status(Fault::Unauthorized))
}

/// Whether the caller may read what others have created, and thus get it as an answer.
pub(crate) fn may_read<T>(request: &Request<T>) -> bool {
    request.extensions().get::<Scopes>().is_some_and(|scopes| scopes.includes(Scope::Read))
}

/// Malformed ids are reported as not found.
fn id(text: &str) -> Result<GrabId, Status> {
    text.parse().map_err(|_| to_status(Fault::NotFound { what: "grab" }))
}

/// The ids of a list request, which excludes the members that select a page.
fn several(request: &ListGrabsRequest) -> Result<Vec<GrabId>, Status> {
    let excluded =
        |name: &'static str| to_status(Fault::BadRequest(Field::new(name, "a value", "absent when ids is given")));
    let ListGrabsRequest { limit, status, starting_after, ending_before, url, from, until, ids, unparsed } = request;
    match unparsed.iter().find(|of| of.field == "ids") {
        Some(of) => return Err(to_status(Fault::BadRequest(Field::new("ids", &of.seen, "one list of ids")))),
        None if limit.is_some() => return Err(excluded("limit")),
        None if *status != 0 => return Err(excluded("status")),
        None if starting_after.is_some() => return Err(excluded("starting_after")),
        None if ending_before.is_some() => return Err(excluded("ending_before")),
        None if url.is_some() => return Err(excluded("url")),
        None if from.is_some() => return Err(excluded("from")),
        None if until.is_some() => return Err(excluded("until")),
        None => {}
    }
    grabs::parse_ids(ids).map_err(to_status)
}
