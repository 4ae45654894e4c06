//! `grabd.internal.v1.RendererService`: the core's side of a renderer's session.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use grabd_domain::grabs::{Failure, FailureReason};
use grabd_domain::ids::{LeaseToken, SessionId};
use grabd_domain::render::Condition;
use grabd_proto::internal::v1::attach_request::Message;
use grabd_proto::internal::v1::finish_request::Result as Wire;
use grabd_proto::internal::v1::renderer_service_server::RendererService;
use grabd_proto::internal::v1::{
    AttachRequest, AttachResponse, Condition as WireCondition, FinishRequest, FinishResponse, PageFailure, Picture,
    Released,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::chance;
use crate::core::Core;
use crate::grabs::finish::{self, finish};
use crate::queue::sweep;

/// The service over a core.
#[derive(Clone)]
pub struct Rendering(pub(crate) Core);

/// The most slots one renderer may claim.
const MAX_SLOTS: i32 = 256;

#[tonic::async_trait]
impl RendererService for Rendering {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<AttachResponse, Status>> + Send>>;

    async fn attach(&self, request: Request<Streaming<AttachRequest>>) -> Result<Response<Self::AttachStream>, Status> {
        let mut inbound = request.into_inner();
        let slots = match inbound.message().await? {
            Some(AttachRequest { message: Some(Message::Hello(hello)) }) => slots(hello.slots)?,
            Some(_) | None => return Err(Status::invalid_argument("the first message must be hello")),
        };
        let id = chance::session_id();
        let messages = self.0.dispatcher.attach(id, slots, self.0.clock.now());
        let core = self.0.clone();
        self.0.spawn(async move {
            listen(&core, id, &mut inbound).await;
            sweep::session_lost(&core, id).await;
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(messages).map(Ok))))
    }

    async fn finish(&self, request: Request<FinishRequest>) -> Result<Response<FinishResponse>, Status> {
        let FinishRequest { grab_id, lease_token, result } = request.into_inner();
        let grab = grab_id.parse().map_err(|_| Status::invalid_argument("grab_id"))?;
        let token: LeaseToken = lease_token.parse().map_err(|_| Status::invalid_argument("lease_token"))?;
        let result = result.ok_or_else(|| Status::invalid_argument("result")).and_then(parse)?;
        // A task of its own: a renderer that goes away now must not leave half an end behind.
        let core = self.0.clone();
        let ending = self.0.spawn(async move { finish(&core, grab, token, result).await });
        match ending.await {
            Ok(Ok(accepted)) => Ok(Response::new(FinishResponse { accepted })),
            Ok(Err(error)) => {
                tracing::error!(%error, grab.id = %grab, "the end of a grab could not be recorded");
                Err(Status::unavailable("the outcome is not known; repeat"))
            }
            Err(error) => {
                tracing::error!(%error, grab.id = %grab, "ending a grab panicked");
                Err(Status::internal("the outcome is not known"))
            }
        }
    }
}

/// Hears what the renderer says until the session ends.
async fn listen(core: &Core, id: SessionId, inbound: &mut Streaming<AttachRequest>) {
    loop {
        let message = tokio::select! {
            message = inbound.message() => message,
            () = core.stop.cancelled() => return,
        };
        match message {
            Ok(Some(AttachRequest { message: Some(Message::Ready(ready)) })) => match slots(ready.slots) {
                Ok(slots) => core.dispatcher.ready(id, slots),
                Err(_) => return,
            },
            Ok(Some(AttachRequest { message: Some(Message::Condition(said)) })) => {
                core.dispatcher.hear(id, condition(said), core.clock.now());
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

fn condition(said: WireCondition) -> Condition {
    let WireCondition { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test } = said;
    let restarts = restarts.into_iter().collect();
    Condition { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test }
}

fn slots(slots: i32) -> Result<usize, Status> {
    usize::try_from(slots)
        .ok()
        .filter(|_| (1..=MAX_SLOTS).contains(&slots))
        .ok_or_else(|| Status::invalid_argument("slots must be from 1 to 256"))
}

fn parse(result: Wire) -> Result<finish::Result, Status> {
    let facts = |text: &str| serde_json::from_str(text).map_err(|_| Status::invalid_argument("facts"));
    match result {
        Wire::Picture(Picture { image, execution_ms, facts: seen }) => Ok(finish::Result::Picture {
            image,
            execution_ms: u32::try_from(execution_ms).unwrap_or(0),
            facts: facts(&seen)?,
        }),
        Wire::Failure(PageFailure { code, message, facts: seen }) => {
            let reason = FailureReason::parse(&code).ok_or_else(|| Status::invalid_argument("code"))?;
            Ok(finish::Result::Failure { failure: Failure::new(reason, message), facts: facts(&seen)? })
        }
        Wire::Released(Released { cause }) => Ok(finish::Result::Released { cause }),
    }
}
