//! The renderer's side of a session: asks a core for work, slot by slot, and reports how each piece ended.
//!
//! It is a client of [`grabd_proto::internal`] and knows neither database nor keys; a lease is all it ever holds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::capture::CaptureSpec;
use grabd_domain::render::{Capture, Condition, RenderError, RenderTask, Renderer};
use grabd_proto::internal::v1::attach_request::Message as Outgoing;
use grabd_proto::internal::v1::attach_response::Message as Incoming;
use grabd_proto::internal::v1::finish_request::Result as Wire;
use grabd_proto::internal::v1::renderer_service_client::RendererServiceClient;
use grabd_proto::internal::v1::{
    Assignment, AttachRequest, Condition as WireCondition, FinishRequest, Hello, PageFailure, Picture, Ready, Released,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Body as HttpBody, Bytes, StdError};

use grabd_domain::limits::LEASE_MARGIN;

/// Between two tries to reach a core: one that is down does not tell when it is back.
const RECONNECT: Duration = Duration::from_millis(500);
/// Between two tries to report an end whose outcome is unknown, and twice as long after each.
const REPEAT: Duration = Duration::from_millis(100);
/// How often a renderer tells how it is.
pub(crate) const TELL_EVERY: Duration = Duration::from_secs(5);
/// The largest message that goes to a core.
const MAX_PICTURE_BYTES: usize = 128 << 20;

/// Renders for a core until `stop`; then takes nothing new, finishes what it has, and returns.
pub async fn run<T, R>(core: T, renderer: R, slots: usize, stop: CancellationToken)
where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
    R: Renderer,
{
    let core = RendererServiceClient::new(core)
        .max_decoding_message_size(MAX_PICTURE_BYTES)
        .max_encoding_message_size(MAX_PICTURE_BYTES);
    let renderer = Arc::new(renderer);
    // Outlives its session: an end may still be reported when the stream of its assignment has broken.
    let renders = TaskTracker::new();
    while !stop.is_cancelled() {
        if let Err(status) = session(core.clone(), &renderer, slots, &renders, &stop).await {
            tracing::warn!(%status, "the session with the core broke; attaching again");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(RECONNECT) => {}
        }
    }
    renders.close();
    renders.wait().await;
}

/// One session, from attach to break or stop. Renders of a broken session are dropped: their leases are released.
async fn session<T, R>(
    mut core: RendererServiceClient<T>,
    renderer: &Arc<R>,
    slots: usize,
    renders: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), Status>
where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
    R: Renderer,
{
    // The hello, a condition, and word of each slot.
    let (say, outgoing) = mpsc::channel(slots + 2);
    let claimed = i32::try_from(slots).unwrap_or(i32::MAX);
    let hello = AttachRequest { message: Some(Outgoing::Hello(Hello { slots: claimed })) };
    say.send(hello).await.map_err(|_| Status::internal("the session's own channel is closed"))?;
    let mut incoming = core.attach(ReceiverStream::new(outgoing)).await?.into_inner();

    let broken = CancellationToken::new();
    let _cancels_what_is_left = broken.clone().drop_guard();
    let mut running: HashMap<String, CancellationToken> = HashMap::new();
    let mut tell = tokio::time::interval(TELL_EVERY);
    tell.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            message = incoming.message() => message?,
            _ = tell.tick() => {
                let condition = Outgoing::Condition(condition(&**renderer));
                // There is no room when the core hears nothing; then it would not hear this either.
                let _ = say.try_send(AttachRequest { message: Some(condition) });
                continue;
            }
            () = stop.cancelled() => break,
        };
        running.retain(|_, cancel| !cancel.is_cancelled());
        match message.and_then(|response| response.message) {
            Some(Incoming::Assignment(assignment)) => {
                // Cancelled by the core, by the end of the session, or by itself when it has ended.
                let cancel = broken.child_token();
                running.insert(assignment.lease_token.clone(), cancel.clone());
                let (core, renderer, say) = (core.clone(), Arc::clone(renderer), say.clone());
                renders.spawn(async move {
                    carry_out(core, &*renderer, assignment, &cancel).await;
                    cancel.cancel();
                    // A session that has ended needs no slot any more.
                    let _ = say.send(AttachRequest { message: Some(Outgoing::Ready(Ready { slots: 1 })) }).await;
                });
            }
            Some(Incoming::Cancel(cancel)) => {
                if let Some(render) = running.remove(&cancel.lease_token) {
                    render.cancel();
                }
            }
            None => return Err(Status::unavailable("the core closed the session")),
        }
    }
    // The stream stays open until the last render has been reported, or the core would release their leases.
    renders.close();
    renders.wait().await;
    Ok(())
}

fn condition<R: Renderer>(renderer: &R) -> WireCondition {
    let Condition { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test } = renderer.condition();
    let restarts = restarts.into_iter().collect();
    WireCondition { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test }
}

async fn carry_out<T, R>(
    core: RendererServiceClient<T>,
    renderer: &R,
    assignment: Assignment,
    cancel: &CancellationToken,
) where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
    R: Renderer,
{
    let Assignment { grab_id, lease_token, spec, budget, alone } = assignment;
    let budget = budget.and_then(|budget| Duration::try_from(budget).ok()).unwrap_or_default();
    let lease_ends = Instant::now() + budget + LEASE_MARGIN;
    let result = match task(&grab_id, &spec, budget, alone) {
        Some(task) => tokio::select! {
            outcome = renderer.render(task) => to_wire(outcome),
            () = cancel.cancelled() => return,
        },
        None => Wire::Released(Released { cause: "the assignment could not be read".to_owned() }),
    };
    report(core, FinishRequest { grab_id, lease_token, result: Some(result) }, lease_ends).await;
}

fn task(grab_id: &str, spec: &str, budget: Duration, alone: bool) -> Option<RenderTask> {
    let spec: CaptureSpec = serde_json::from_str(spec).ok()?;
    Some(RenderTask { id: grab_id.parse().ok()?, spec, budget, alone })
}

fn to_wire(outcome: Result<Capture, RenderError>) -> Wire {
    match outcome {
        Ok(Capture { image, facts, execution_ms }) => Wire::Picture(Picture {
            image: image.into(),
            execution_ms: i32::try_from(execution_ms).unwrap_or(i32::MAX),
            facts: serde_json::to_string(&facts).unwrap_or_default(),
        }),
        Err(RenderError::Page { failure, facts }) => Wire::Failure(PageFailure {
            code: failure.reason.code().as_str().to_owned(),
            message: failure.message,
            facts: serde_json::to_string(&facts).unwrap_or_default(),
        }),
        Err(RenderError::Lost(cause)) => Wire::Released(Released { cause }),
    }
}

/// Reports until the core knows, or the lease has ended and nobody wants to know. A shutdown waits for it no longer than
/// that either, since a picture that is not reported is made again.
async fn report<T>(mut core: RendererServiceClient<T>, request: FinishRequest, lease_ends: Instant)
where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    let grab = request.grab_id.clone();
    let repeated = async {
        let mut wait = REPEAT;
        loop {
            match core.finish(request.clone()).await {
                Ok(answer) => return answer.into_inner().accepted,
                Err(status) => tracing::warn!(%status, grab.id = grab, "the end of a render is not recorded yet"),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(2));
        }
    };
    match tokio::time::timeout_at(lease_ends, repeated).await {
        Ok(true) => {}
        Ok(false) => tracing::info!(grab.id = grab, "a render came too late: its lease had ended"),
        Err(_) => tracing::warn!(grab.id = grab, "a render could not be reported while its lease lasted"),
    }
}
