//! Deliveries of an endpoint: list, get, wait, test, redeliver.

use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::Field;
use grabd_domain::ids::{DeliveryId, EndpointId};
use grabd_domain::webhooks::{Delivery, DeliveryStatus, MAX_SENDS};
use grabd_store::webhooks::{Deliveries, Message, ResendOutcome};
use tokio::time::{Instant, timeout_at};

use super::endpoints::{endpoint_of, get, not_found};
use crate::error::Error;
use crate::list_parameters::{invalid_cursor, parse_typed_limit};
use crate::random;
use crate::service::Core;

/// A list request, not validated yet.
#[derive(Debug, Default)]
pub struct DeliveriesRequest {
    /// Maximum number of deliveries.
    pub limit: Option<i64>,
    /// Only deliveries after this one in the list, which are older.
    pub starting_after: Option<String>,
    /// Parameters whose value had the wrong type, with the received value.
    pub unparsed: Vec<(String, String)>,
}

/// The field that is invalid when a message was sent too often.
pub const DELIVERY_FIELD: &str = "delivery_id";

const CURSOR: &str = "the id of one of this webhook's deliveries";

/// Lists the deliveries to an endpoint within the last month, newest first.
///
/// # Errors
/// [`Fault::NotFound`], and [`Fault::BadRequest`] with the invalid parameter.
#[tracing::instrument(name = "webhooks.list_deliveries", skip_all)]
pub async fn list_deliveries(
    core: &Core,
    caller: Caller,
    endpoint: EndpointId,
    request: &DeliveriesRequest,
) -> Result<Deliveries, Error> {
    get(core, caller, endpoint).await?;
    let (limit, after) = parse(request)?;
    let page = core.store.webhooks().list_deliveries(endpoint, after, limit, core.clock.now()).await;
    Ok(page?.ok_or_else(|| invalid_cursor(request.starting_after.as_deref().unwrap_or_default(), CURSOR))?)
}

/// Returns one delivery of an endpoint, with the message body.
///
/// # Errors
/// [`Fault::NotFound`] when the endpoint is not the caller's, or the delivery is not the endpoint's.
#[tracing::instrument(name = "webhooks.get_delivery", skip_all)]
pub async fn get_delivery(
    core: &Core,
    caller: Caller,
    endpoint: EndpointId,
    delivery: DeliveryId,
) -> Result<Message, Error> {
    get(core, caller, endpoint).await?;
    let message = core.store.webhooks().find_delivery(endpoint, delivery, core.clock.now()).await;
    Ok(message?.ok_or(Fault::NotFound { what: "delivery" })?)
}

/// Like [`get_delivery`], but waits up to `limit` for a pending delivery. Only attempts of this process end the wait
/// early.
///
/// # Errors
/// The same as [`get_delivery`].
pub async fn await_delivery(
    core: &Core,
    caller: Caller,
    endpoint: EndpointId,
    delivery: DeliveryId,
    limit: Duration,
) -> Result<Message, Error> {
    let deadline = Instant::now() + limit;
    let mut recorded = core.webhooks.recorded.subscribe();
    loop {
        let message = get_delivery(core, caller, endpoint, delivery).await?;
        if message.delivery.status != DeliveryStatus::Pending {
            return Ok(message);
        }
        // Also ends when the receiver lagged, since this delivery may be among the lost messages.
        let this_one = async { while recorded.recv().await.is_ok_and(|other| other != delivery) {} };
        if timeout_at(deadline, this_one).await.is_err() || Instant::now() >= deadline {
            return get_delivery(core, caller, endpoint, delivery).await;
        }
    }
}

/// Sends an endpoint a `webhook.test` message.
///
/// # Errors
/// [`Fault::NotFound`], and [`Fault::BadRequest`] when the endpoint is disabled.
#[tracing::instrument(name = "webhooks.test", skip_all)]
pub async fn send_test(core: &Core, caller: Caller, endpoint: EndpointId) -> Result<Delivery, Error> {
    let now = core.clock.now();
    let queued =
        core.store.webhooks().test_endpoint(endpoint_of(caller, endpoint), random::delivery_id(now), now).await;
    Ok(handle_queued(core, queued?)?)
}

/// Sends a message again immediately, with the same id.
///
/// # Errors
/// The same as [`send_test`], and [`Fault::BadRequest`] about [`DELIVERY_FIELD`] when the message was sent
/// [`MAX_SENDS`] times.
#[tracing::instrument(name = "webhooks.redeliver", skip_all)]
pub async fn redeliver(
    core: &Core,
    caller: Caller,
    endpoint: EndpointId,
    delivery: DeliveryId,
) -> Result<Delivery, Error> {
    let queued = core.store.webhooks().redeliver(endpoint_of(caller, endpoint), delivery, core.clock.now()).await;
    Ok(handle_queued(core, queued?)?)
}

fn handle_queued(core: &Core, queued: ResendOutcome) -> Result<Delivery, Fault> {
    match queued {
        ResendOutcome::Due(delivery) => {
            core.webhooks.notify();
            Ok(delivery)
        }
        ResendOutcome::Disabled => {
            let allowed = "\"enabled\" before anything is sent to this webhook";
            Err(Fault::BadRequest(Field::new("status", "\"disabled\"", allowed)))
        }
        ResendOutcome::TooManyAttempts(attempts) => {
            let allowed = format!("a message that was sent fewer than {MAX_SENDS} times");
            Err(Fault::BadRequest(Field::new(DELIVERY_FIELD, &format!("one sent {attempts} times"), allowed)))
        }
        ResendOutcome::TooManyOpen => {
            let allowed =
                "sent again when fewer messages of your account wait; `DELETE` or disable webhooks that do not respond";
            Err(Fault::BadRequest(Field::new(DELIVERY_FIELD, "too many that wait", allowed)))
        }
        ResendOutcome::NoEndpoint => Err(not_found()),
        ResendOutcome::NoDelivery => Err(Fault::NotFound { what: "delivery" }),
    }
}

fn parse(request: &DeliveriesRequest) -> Result<(u32, Option<DeliveryId>), Fault> {
    let limit = parse_typed_limit(request.limit, &request.unparsed, CURSOR)?;
    let after = request.starting_after.as_deref();
    let after = after.map(|text| text.parse::<DeliveryId>().map_err(|_| invalid_cursor(text, CURSOR)));
    Ok((limit, after.transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reports_the_invalid_parameter() {
        let invalid_field =
            |request: DeliveriesRequest| parse(&request).err().and_then(|fault| fault.field().map(|f| f.name));
        assert_eq!(parse(&DeliveriesRequest::default()).unwrap(), (25, None));
        for (limit, is_valid) in [(1, true), (100, true), (0, false), (101, false), (-1, false), (i64::MAX, false)] {
            let request = DeliveriesRequest { limit: Some(limit), ..DeliveriesRequest::default() };
            assert_eq!(invalid_field(request), (!is_valid).then_some("limit"), "{limit}");
        }
        let request = DeliveriesRequest { starting_after: Some("x".into()), ..DeliveriesRequest::default() };
        assert_eq!(invalid_field(request), Some("starting_after"));
        for name in ["limit", "starting_after"] {
            let request = DeliveriesRequest { unparsed: vec![(name.into(), "x".into())], ..Default::default() };
            assert_eq!(invalid_field(request), Some(name));
        }
    }
}
