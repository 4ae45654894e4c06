//! Why a use case failed.
//!
//! Use cases pass on with `?` whatever goes wrong. Each interface turns the error into a [`Fault`] where it answers, with
//! [`Error::into_fault`], which is the only place that logs what went wrong inside.

use std::panic::Location;
use std::sync::Arc;

use grabd_domain::Fault;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::error::Elapsed;

use crate::vault::DecryptError;

/// The fault of a request that waited for the memory for images in vain.
pub(crate) const IMAGES_BUSY: Fault = Fault::ImagesBusy { retry_after_s: 5 };

/// Why a use case failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The request cannot be met, for a reason that its caller learns.
    #[error(transparent)]
    Fault(Fault),
    /// Something went wrong inside.
    #[error(transparent)]
    Internal(Arc<InternalError>),
}

/// What went wrong inside. Callers do not see it.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct InternalError {
    #[source]
    cause: Cause,
    /// The span in which it happened: most often that of the use case. Empty if nothing records spans.
    step: &'static str,
    /// The line that noticed it.
    at: &'static Location<'static>,
}

/// The kinds of what can go wrong inside.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
    /// The storage of images failed.
    #[error(transparent)]
    Images(#[from] grabd_images::Error),
    /// A task panicked, or was cancelled.
    #[error(transparent)]
    Task(#[from] JoinError),
    /// A task ended without its result.
    #[error("a task ended without a result")]
    NoResult(#[from] watch::error::RecvError),
    /// A step took longer than it may.
    #[error(transparent)]
    TooSlow(#[from] Elapsed),
    /// Data of our own cannot be written or read as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A stored secret cannot be decrypted.
    #[error(transparent)]
    Secret(#[from] DecryptError),
    /// A part of the service failed that has errors of its own.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// The state is one that cannot occur.
    #[error("{0}")]
    State(&'static str),
}

impl Error {
    /// A state that cannot occur.
    #[track_caller]
    pub(crate) fn state(what: &'static str) -> Self {
        Cause::State(what).into()
    }

    /// The error of a part of the service that has errors of its own.
    #[track_caller]
    pub(crate) fn other(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Cause::Other(Box::new(error)).into()
    }

    /// The fault, if nothing went wrong inside.
    pub fn as_fault(&self) -> Option<&Fault> {
        match self {
            Self::Fault(fault) => Some(fault),
            Self::Internal(_) => None,
        }
    }

    /// What the caller learns. Logs what went wrong inside, of which the caller learns only whether trying again may help.
    pub fn into_fault(self) -> Fault {
        match self {
            Self::Fault(fault) => fault,
            Self::Internal(internal) => {
                let InternalError { cause, step, at } = &*internal;
                tracing::error!(step, at = %at, error = %cause, "internal error");
                match cause {
                    Cause::Store(error) if error.is_outage() => Fault::Unavailable,
                    Cause::Store(_)
                    | Cause::Images(_)
                    | Cause::Task(_)
                    | Cause::NoResult(_)
                    | Cause::TooSlow(_)
                    | Cause::Json(_)
                    | Cause::Secret(_)
                    | Cause::Other(_)
                    | Cause::State(_) => Fault::InternalError,
                }
            }
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl<C> From<C> for Error
where
    Cause: From<C>,
{
    #[track_caller]
    fn from(cause: C) -> Self {
        let step = tracing::Span::current().metadata().map_or("", |span| span.name());
        Self::Internal(Arc::new(InternalError { cause: Cause::from(cause), step, at: Location::caller() }))
    }
}

/// Two faults are equal if callers cannot tell them apart. What went wrong inside equals only itself.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fault(one), Self::Fault(other)) => one == other,
            (Self::Internal(one), Self::Internal(other)) => Arc::ptr_eq(one, other),
            (Self::Fault(_), Self::Internal(_)) | (Self::Internal(_), Self::Fault(_)) => false,
        }
    }
}

impl Eq for Error {}

/// Lets `?` turn whatever an [`Error`] is made of into the variant `Internal` of another error.
macro_rules! internal_from {
    ($error:ty) => {
        impl<E> From<E> for $error
        where
            $crate::Error: From<E>,
        {
            #[track_caller]
            fn from(cause: E) -> Self {
                Self::Internal(<$crate::Error as From<E>>::from(cause))
            }
        }
    };
}

pub(crate) use internal_from;

#[cfg(test)]
mod tests {
    use super::*;

    fn outage() -> Result<(), Error> {
        Err(grabd_store::Error::Overloaded)?;
        Ok(())
    }

    #[test]
    fn error_names_the_line_that_noticed_it() {
        let Err(Error::Internal(internal)) = outage() else { panic!("not an internal error") };
        assert!(internal.at.file().ends_with("error.rs"), "{}", internal.at);
        assert_eq!(internal.at.line(), line!() - 8, "{}", internal.at);
    }

    #[test]
    fn error_of_a_use_case_names_the_same_line() {
        #[derive(Debug)]
        enum UseCaseError {
            Internal(Error),
        }
        internal_from!(UseCaseError);
        let use_case = || -> Result<(), UseCaseError> { Ok(Err(grabd_store::Error::Overloaded)?) };
        let UseCaseError::Internal(Error::Internal(internal)) = use_case().unwrap_err() else { panic!("a fault") };
        assert_eq!(internal.at.line(), line!() - 2, "{}", internal.at);
    }

    #[test]
    fn callers_learn_only_whether_trying_again_may_help() {
        assert_eq!(outage().map_err(Error::into_fault), Err(Fault::Unavailable));
        assert_eq!(Error::from(grabd_store::Error::Inconsistent("x")).into_fault(), Fault::InternalError);
        assert_eq!(Error::state("x").into_fault(), Fault::InternalError);
        assert_eq!(Error::from(Fault::CreditsExhausted).into_fault(), Fault::CreditsExhausted);
    }
}
