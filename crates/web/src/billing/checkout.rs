//! `/teams/{team}/billing/checkout`: a purchase begins, and goes on at Stripe.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_engine::billing;

use super::{HERE, paid};
use crate::Web;
use crate::forgery;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::problem::Problem;

/// Where people pay. Browsers let the form lead to no other place.
pub(super) const STRIPE: &str = "https://checkout.stripe.com";

/// Sends the person to Stripe's page, which sends them back.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    let Some(at) = web.at_team(&head.headers, &team).await? else { return Err(Problem::signed_out()) };
    forgery::check(&head.headers, &sent, at.form_token())?;
    web.limits.purchases.take(at.insider.person).map_err(Problem::purchases_spent)?;

    let here = format!("{}{}", web.core.public_url(), at.path(HERE));
    let (success, cancel) = (format!("{here}/{}", paid::back(web.core.now())), format!("{here}?cancelled"));
    let email = at.signed_in.session.person.email.as_str();
    let package = sent.one("package");
    match billing::start_checkout(&web.core, at.insider.team, email, package, &success, &cancel).await {
        Ok(address) if is_stripes(&address) => Ok(see_other(&address)),
        Ok(_) => {
            tracing::error!("Stripe's page to pay on is not below {STRIPE}, and browsers would not go there");
            Err(Problem::no_page_to_pay_on())
        }
        Err(Fault::BadRequest(_)) => Err(Problem::bad_request(
            "This cannot be bought here",
            "The price list may have changed since you opened the page. Nothing was charged.",
            "Open the page anew and choose again.",
        )),
        Err(_) => Err(Problem::no_page_to_pay_on()),
    }
}

fn is_stripes(address: &str) -> bool {
    address.strip_prefix(STRIPE).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_sent_to_stripe_alone() {
        for (address, expected) in [
            ("https://checkout.stripe.com/c/pay/cs_test_1#fid", true),
            ("https://checkout.stripe.com", false),
            ("https://checkout.stripe.com.evil.example/", false),
            ("https://checkout.stripe.com@evil.example/", false),
            ("http://checkout.stripe.com/", false),
            ("https://pay.example.com/c/pay/cs_test_1", false),
        ] {
            assert_eq!(is_stripes(address), expected, "{address}");
        }
    }
}
