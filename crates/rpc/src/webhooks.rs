//! `grabd.v1.WebhookService`.

use grabd_domain::ids::{DeliveryId, EndpointId};
use grabd_domain::webhooks::{Delivery, DeliveryStatus, Endpoint, EndpointRequest, message_id};
use grabd_domain::{Fault, Timestamp};
use grabd_engine::Core;
use grabd_engine::webhooks::{self, DeliveriesRequest, Secret};
use grabd_proto::v1;
use grabd_proto::v1::webhook_service_server::WebhookService;
use tonic::{Request, Response, Status};

use crate::convert::{timestamp, unparsed_fields};
use crate::grabs::caller;
use crate::status::to_status;

/// The service over a core.
pub(crate) struct Webhooks(pub(crate) Core);

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl WebhookService for Webhooks {
    async fn create_webhook(&self, request: Request<v1::CreateWebhookRequest>) -> RpcResult<v1::CreateWebhookResponse> {
        let caller = caller(&request)?;
        let v1::CreateWebhookRequest { url, events, description, unparsed } = request.into_inner();
        let changes = EndpointRequest {
            url,
            events: Some(events),
            description,
            status: None,
            unparsed: unparsed_fields(unparsed),
        };
        let (endpoint, secret) = webhooks::register(&self.0, caller, &changes).await.map_err(to_status)?;
        Ok(Response::new(v1::CreateWebhookResponse { webhook: Some(webhook(endpoint, Some(&secret))) }))
    }

    async fn get_webhook(&self, request: Request<v1::GetWebhookRequest>) -> RpcResult<v1::GetWebhookResponse> {
        let caller = caller(&request)?;
        let id = endpoint_id(&request.get_ref().id)?;
        let endpoint = webhooks::get(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::GetWebhookResponse { webhook: Some(webhook(endpoint, None)) }))
    }

    async fn list_webhooks(&self, request: Request<v1::ListWebhooksRequest>) -> RpcResult<v1::ListWebhooksResponse> {
        let endpoints = webhooks::list(&self.0, caller(&request)?).await.map_err(to_status)?;
        let webhooks = endpoints.into_iter().map(|endpoint| webhook(endpoint, None)).collect();
        Ok(Response::new(v1::ListWebhooksResponse { webhooks, has_more: false }))
    }

    async fn update_webhook(&self, request: Request<v1::UpdateWebhookRequest>) -> RpcResult<v1::UpdateWebhookResponse> {
        let caller = caller(&request)?;
        let (id, changes) = update(request.into_inner());
        let id = endpoint_id(&id)?;
        let endpoint = webhooks::change(&self.0, caller, id, &changes).await.map_err(to_status)?;
        Ok(Response::new(v1::UpdateWebhookResponse { webhook: Some(webhook(endpoint, None)) }))
    }

    async fn delete_webhook(&self, request: Request<v1::DeleteWebhookRequest>) -> RpcResult<v1::DeleteWebhookResponse> {
        let caller = caller(&request)?;
        let id = endpoint_id(&request.get_ref().id)?;
        webhooks::remove(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::DeleteWebhookResponse {}))
    }

    async fn rotate_webhook_secret(
        &self,
        request: Request<v1::RotateWebhookSecretRequest>,
    ) -> RpcResult<v1::RotateWebhookSecretResponse> {
        let caller = caller(&request)?;
        let id = endpoint_id(&request.get_ref().id)?;
        let (endpoint, secret) = webhooks::rotate_secret(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::RotateWebhookSecretResponse { webhook: Some(webhook(endpoint, Some(&secret))) }))
    }

    async fn test_webhook(&self, request: Request<v1::TestWebhookRequest>) -> RpcResult<v1::TestWebhookResponse> {
        let caller = caller(&request)?;
        let id = endpoint_id(&request.get_ref().id)?;
        let message = webhooks::send_test(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::TestWebhookResponse { delivery: Some(delivery(&message)) }))
    }

    async fn list_deliveries(
        &self,
        request: Request<v1::ListDeliveriesRequest>,
    ) -> RpcResult<v1::ListDeliveriesResponse> {
        let caller = caller(&request)?;
        let v1::ListDeliveriesRequest { id, limit, starting_after, unparsed } = request.into_inner();
        let id = endpoint_id(&id)?;
        let query =
            DeliveriesRequest { limit: limit.map(i64::from), starting_after, unparsed: unparsed_fields(unparsed) };
        let page = webhooks::list_deliveries(&self.0, caller, id, &query).await.map_err(to_status)?;
        let deliveries = page.deliveries.iter().map(delivery).collect();
        Ok(Response::new(v1::ListDeliveriesResponse { deliveries, has_more: page.has_more }))
    }

    async fn redeliver_webhook(
        &self,
        request: Request<v1::RedeliverWebhookRequest>,
    ) -> RpcResult<v1::RedeliverWebhookResponse> {
        let caller = caller(&request)?;
        let v1::RedeliverWebhookRequest { id, delivery_id } = request.get_ref();
        let id = endpoint_id(id)?;
        // An unknown endpoint is reported before a malformed delivery id.
        let delivery_id = delivery_id.parse::<DeliveryId>();
        let message = match delivery_id {
            Ok(delivery_id) => webhooks::redeliver(&self.0, caller, id, delivery_id).await,
            Err(_) => webhooks::get(&self.0, caller, id).await.and(Err(Fault::NotFound { what: "delivery" }.into())),
        };
        let message = message.map_err(to_status)?;
        Ok(Response::new(v1::RedeliverWebhookResponse { delivery: Some(delivery(&message)) }))
    }
}

/// Malformed ids are reported as not found.
fn endpoint_id(text: &str) -> Result<EndpointId, Status> {
    text.parse().map_err(|_| to_status(Fault::NotFound { what: "webhook" }))
}

/// The endpoint's id, and the new values selected by the mask. Unknown paths are reported like fields of the wrong
/// type.
fn update(request: v1::UpdateWebhookRequest) -> (String, EndpointRequest) {
    let v1::UpdateWebhookRequest { id, webhook, update_mask, unparsed } = request;
    let v1::Webhook { id: _, url, events, description, status, created_at: _, secret: _, disabled_reason: _ } =
        webhook.unwrap_or_default();
    let mut changes = EndpointRequest { unparsed: unparsed_fields(unparsed), ..EndpointRequest::default() };
    for path in update_mask.map(|mask| mask.paths).unwrap_or_default() {
        match path.as_str() {
            "url" => changes.url = Some(url.clone()),
            "events" => changes.events = Some(events.clone()),
            "description" => changes.description = Some(description.clone()),
            "status" => match v1::WebhookStatus::try_from(status) {
                Ok(v1::WebhookStatus::Enabled) => changes.status = Some("enabled".to_owned()),
                Ok(v1::WebhookStatus::Disabled) => changes.status = Some("disabled".to_owned()),
                Ok(v1::WebhookStatus::Unspecified) | Err(_) => {
                    changes.unparsed.push(("status".to_owned(), status.to_string()));
                }
            },
            _ => changes.unparsed.push(("update_mask".to_owned(), format!("\"{path}\""))),
        }
    }
    (id, changes)
}

fn webhook(endpoint: Endpoint, secret: Option<&Secret>) -> v1::Webhook {
    let Endpoint { id, team: _, environment: _, url, events, description, disabled, created_at, creator: _ } = endpoint;
    let status = match disabled {
        None => v1::WebhookStatus::Enabled,
        Some(_) => v1::WebhookStatus::Disabled,
    };
    v1::Webhook {
        id: id.to_string(),
        url: url.to_string(),
        events: events.words().into_iter().map(str::to_owned).collect(),
        description,
        status: status.into(),
        created_at: Some(timestamp(created_at)),
        secret: secret.map(Secret::reveal),
        disabled_reason: disabled.map(|reason| reason.as_str().to_owned()),
    }
}

fn delivery(delivery: &Delivery) -> v1::Delivery {
    let Delivery {
        id,
        event,
        attempt,
        status,
        status_code,
        error,
        took: _,
        attempted_at,
        next_attempt_at,
        created_at: _,
    } = delivery;
    let status = match status {
        DeliveryStatus::Pending => v1::DeliveryStatus::Pending,
        DeliveryStatus::Delivered => v1::DeliveryStatus::Delivered,
        DeliveryStatus::Failed => v1::DeliveryStatus::Failed,
        DeliveryStatus::Exhausted => v1::DeliveryStatus::Exhausted,
    };
    let at = |at: &Option<Timestamp>| at.map(timestamp);
    v1::Delivery {
        id: id.to_string(),
        message_id: message_id(*id),
        r#type: event.as_str().to_owned(),
        attempt: i32::try_from(*attempt).unwrap_or(i32::MAX),
        status: status.into(),
        status_code: status_code.map(i32::from),
        attempted_at: at(attempted_at),
        next_attempt_at: at(next_attempt_at),
        error: error.map(|error| error.as_str().to_owned()),
    }
}
