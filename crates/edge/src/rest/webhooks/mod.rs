//! Handlers of `/v1/webhooks`.

mod deliveries;
mod endpoints;
mod request;
mod wire;

pub(super) use deliveries::{deliveries, redeliver, test};
pub(super) use endpoints::{create, delete, fetch, list, rotate_secret, update};
pub(super) use wire::{Delivery, DeliveryList, Webhook, WebhookList};
