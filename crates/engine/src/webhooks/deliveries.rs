//! What was sent to an endpoint, and what is asked to be sent.

use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::Field;
use grabd_domain::ids::{DeliveryId, EndpointId};
use grabd_domain::limits::{DEFAULT_PAGE_SIZE, PAGE_SIZE};
use grabd_domain::webhooks::{Delivery, DeliveryStatus};
use grabd_store::{Deliveries, Message, Resent};
use tokio::time::{Instant, timeout_at};

use super::endpoints::{get, mine, unknown};
use crate::chance;
use crate::core::{Core, inside};

/// A page as it was asked for over a wire.
#[derive(Debug, Default)]
pub struct DeliveriesRequest {
    /// How many at most.
    pub limit: Option<i64>,
    /// Those that come after this delivery in the list: older ones.
    pub starting_after: Option<String>,
    /// Parameters whose value had the wrong type on the wire it came by, with what was seen there.
    pub unparsed: Vec<(String, String)>,
}

const CURSOR: &str = "the id of one of this webhook's deliveries";

/// What was sent to an endpoint within a month, the newest first.
///
/// # Errors
/// [`Fault::NotFound`], and [`Fault::BadRequest`] naming the parameter that cannot be accepted.
pub async fn list_deliveries(
    core: &Core,
    caller: Caller,
    endpoint: EndpointId,
    request: &DeliveriesRequest,
) -> Result<Deliveries, Fault> {
    get(core, caller, endpoint).await?;
    let (limit, after) = parse(request)?;
    let listed = core.store.list_deliveries(endpoint, after, limit, core.clock.now()).await;
    listed.map_err(inside("webhooks.list_deliveries"))?.ok_or_else(|| {
        let seen = request.starting_after.as_deref().unwrap_or_default();
        Fault::BadRequest(Field::new("starting_after", &format!("\"{seen}\""), CURSOR))
    })
}

/// One message to an endpoint, with what is sent.
///
/// # Errors
/// [`Fault::NotFound`] for an endpoint that is not the caller's, and for a delivery that is not the endpoint's.
pub async fn get_delivery(
    core: &Core,
    caller: Caller,
    endpoint: EndpointId,
    delivery: DeliveryId,
) -> Result<Message, Fault> {
    get(core, caller, endpoint).await?;
    let found = core.store.find_delivery(endpoint, delivery, core.clock.now()).await;
    found.map_err(inside("webhooks.get_delivery"))?.ok_or(Fault::NotFound { what: "delivery" })
}

/// The same, but what is due or under way is waited for, up to `limit`. Only what this process sends is heard of at once.
///
/// # Errors
/// As [`get_delivery`].
pub async fn await_delivery(
    core: &Core,
    caller: Caller,
    endpoint: EndpointId,
    delivery: DeliveryId,
    limit: Duration,
) -> Result<Message, Fault> {
    let deadline = Instant::now() + limit;
    let mut settled = core.webhooks.settled.subscribe();
    loop {
        let message = get_delivery(core, caller, endpoint, delivery).await?;
        if message.delivery.status != DeliveryStatus::Pending {
            return Ok(message);
        }
        // Whoever cannot keep up with the news looks again: this one may have been among them.
        let this_one = async { while settled.recv().await.is_ok_and(|other| other != delivery) {} };
        if timeout_at(deadline, this_one).await.is_err() || Instant::now() >= deadline {
            return get_delivery(core, caller, endpoint, delivery).await;
        }
    }
}

/// Sends an endpoint a `webhook.test` message.
///
/// # Errors
/// [`Fault::NotFound`], and [`Fault::BadRequest`] when the endpoint is disabled.
pub async fn send_test(core: &Core, caller: Caller, endpoint: EndpointId) -> Result<Delivery, Fault> {
    let now = core.clock.now();
    let asked = core.store.test_endpoint(mine(caller, endpoint), chance::delivery_id(now), now).await;
    due(core, asked.map_err(inside("webhooks.test"))?)
}

/// Sends a message once more, now: the same one, under the same id.
///
/// # Errors
/// As [`send_test`].
pub async fn redeliver(
    core: &Core,
    caller: Caller,
    endpoint: EndpointId,
    delivery: DeliveryId,
) -> Result<Delivery, Fault> {
    let asked = core.store.redeliver(mine(caller, endpoint), delivery, core.clock.now()).await;
    due(core, asked.map_err(inside("webhooks.redeliver"))?)
}

fn due(core: &Core, asked: Resent) -> Result<Delivery, Fault> {
    match asked {
        Resent::Due(delivery) => {
            core.webhooks.ring();
            Ok(delivery)
        }
        Resent::Disabled => {
            let allowed = "\"enabled\" before anything is sent to this webhook";
            Err(Fault::BadRequest(Field::new("status", "\"disabled\"", allowed)))
        }
        Resent::NoEndpoint => Err(unknown()),
        Resent::NoDelivery => Err(Fault::NotFound { what: "delivery" }),
    }
}

fn parse(request: &DeliveriesRequest) -> Result<(u32, Option<DeliveryId>), Fault> {
    let limits = format!("an integer from {} to {}", PAGE_SIZE.start(), PAGE_SIZE.end());
    for (name, allowed) in [("limit", limits.as_str()), ("starting_after", CURSOR)] {
        if let Some((_, seen)) = request.unparsed.iter().find(|(field, _)| field == name) {
            return Err(Fault::BadRequest(Field::new(name, seen, allowed)));
        }
    }
    let limit = request.limit.unwrap_or_else(|| DEFAULT_PAGE_SIZE.into());
    let limit = u32::try_from(limit)
        .ok()
        .filter(|_| PAGE_SIZE.contains(&limit))
        .ok_or_else(|| Fault::BadRequest(Field::new("limit", &limit.to_string(), limits)))?;
    let after = request.starting_after.as_deref().map(|text| {
        let refused = || Fault::BadRequest(Field::new("starting_after", &format!("\"{text}\""), CURSOR));
        text.parse().map_err(|_| refused())
    });
    Ok((limit, after.transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_limited_and_cursors_are_ids() {
        let refused =
            |request: DeliveriesRequest| parse(&request).err().and_then(|fault| fault.field().map(|f| f.name));
        assert_eq!(parse(&DeliveriesRequest::default()).unwrap(), (25, None));
        for (limit, good) in [(1, true), (100, true), (0, false), (101, false), (-1, false), (i64::MAX, false)] {
            let request = DeliveriesRequest { limit: Some(limit), ..DeliveriesRequest::default() };
            assert_eq!(refused(request), (!good).then_some("limit"), "{limit}");
        }
        let request = DeliveriesRequest { starting_after: Some("x".into()), ..DeliveriesRequest::default() };
        assert_eq!(refused(request), Some("starting_after"));
        for name in ["limit", "starting_after"] {
            let request = DeliveriesRequest { unparsed: vec![(name.into(), "x".into())], ..Default::default() };
            assert_eq!(refused(request), Some(name));
        }
    }
}
