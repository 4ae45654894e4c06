//! `/teams/{team}/billing/checkout`: starts a purchase at Stripe.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::Fault;
use grabd_engine::{Error, accounts, billing};

use super::{HERE, paid};
use crate::extract::TeamForm;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// The origin of Stripe's checkout pages. The Content-Security-Policy allows no other form target.
pub(super) const STRIPE: &str = "https://checkout.stripe.com";

/// Redirects to Stripe's checkout page, which redirects back to [`super::PAID`] or to the billing page.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    if !accounts::is_verified(&web.core, at.team_member.user).await? {
        return Err(Problem::unverified());
    }
    web.limits.purchases.take(at.team_member.user).map_err(Problem::too_many_purchases)?;

    let here = format!("{}{}", web.core.public_url(), at.path(HERE));
    let (success, cancel) = (format!("{here}/{}", paid::return_path(web.core.now())), format!("{here}?cancelled"));
    let email = at.signed_in.session.user.email.as_str();
    let package = input.get("package");
    let started = billing::start_checkout(&web.core, at.team_member.team, email, package, &success, &cancel).await;
    match started.map_err(Error::into_fault) {
        Ok(address) if is_stripe_url(&address) => Ok(see_other(&address)),
        Ok(_) => {
            tracing::error!("Stripe's checkout page is not below {STRIPE}; the Content-Security-Policy would block it");
            Err(Problem::checkout_unavailable())
        }
        Err(Fault::BadRequest(_)) => Err(Problem::bad_request(
            "This package is not available",
            "The price list may have changed. Nothing was charged.",
            "Reload the page and choose again.",
        )),
        Err(_) => Err(Problem::checkout_unavailable()),
    }
}

fn is_stripe_url(address: &str) -> bool {
    address.strip_prefix(STRIPE).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_stripe_checkout_are_accepted() {
        for (address, expected) in [
            ("https://checkout.stripe.com/c/pay/cs_test_1#fid", true),
            ("https://checkout.stripe.com", false),
            ("https://checkout.stripe.com.evil.example/", false),
            ("https://checkout.stripe.com@evil.example/", false),
            ("http://checkout.stripe.com/", false),
            ("https://pay.example.com/c/pay/cs_test_1", false),
        ] {
            assert_eq!(is_stripe_url(address), expected, "{address}");
        }
    }
}
