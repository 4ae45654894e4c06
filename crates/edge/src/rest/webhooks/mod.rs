//! Handlers of `/v1/webhooks`.

mod deliveries;
mod endpoints;
mod examples;
mod request;
mod wire;

pub(super) use deliveries::{deliveries, deliveries_operation, redeliver, redeliver_operation, test, test_operation};
pub(super) use endpoints::{
    create, create_operation, delete, delete_operation, fetch, fetch_operation, list, list_operation, rotate_secret,
    rotate_secret_operation, update, update_operation,
};
pub(super) use wire::{Delivery, DeliveryList, Webhook, WebhookList};
