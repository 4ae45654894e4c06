//! Faults of the service itself, as callers see them.

use std::any::Any;
use std::fmt::Display;

use grabd_domain::Fault;

use crate::placeholder;

/// The fault of a placeholder that could not be drawn.
pub(crate) fn not_drawn(step: &'static str) -> impl FnOnce(placeholder::Error) -> Fault {
    move |error| match error {
        placeholder::Error::Busy => IMAGES_BUSY,
        error @ (placeholder::Error::Draw(_)
        | placeholder::Error::Encode(_)
        | placeholder::Error::Cut(_)
        | placeholder::Error::Task(_)) => internal_error(step)(error),
    }
}

/// The fault of a request that waited for the memory for images in vain.
pub(crate) const IMAGES_BUSY: Fault = Fault::ImagesBusy { retry_after_s: 5 };

/// Logs an internal error and hides its cause from the caller, who learns only whether trying again may help.
pub(crate) fn internal_error<E: Display + 'static>(step: &'static str) -> impl FnOnce(E) -> Fault {
    move |error| {
        tracing::error!(step, error = %error, "internal error");
        let error: &dyn Any = &error;
        match error.downcast_ref().is_some_and(grabd_store::Error::is_outage) {
            true => Fault::Unavailable,
            false => Fault::InternalError,
        }
    }
}
