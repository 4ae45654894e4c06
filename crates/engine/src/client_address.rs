//! The network address of the request that is being handled, for the audit trail.
//!
//! It is kept beside the arguments, because every use case that changes something would otherwise pass it on only to be
//! recorded, and no rule depends on it.

use std::future::Future;
use std::net::IpAddr;

tokio::task_local! {
    static ADDRESS: IpAddr;
}

/// Runs work on behalf of a request from this address.
pub fn from_address<F: Future>(address: IpAddr, work: F) -> impl Future<Output = F::Output> {
    ADDRESS.scope(address, work)
}

/// The address of the request, unless the work is not done for a request.
pub(crate) fn address() -> Option<IpAddr> {
    ADDRESS.try_with(|address| *address).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn address_is_that_of_the_request() {
        let given: IpAddr = "2001:db8::7".parse().unwrap();
        assert_eq!(from_address(given, async { address() }).await, Some(given));
        assert_eq!(address(), None);
    }
}
