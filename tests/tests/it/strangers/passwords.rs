//! A flood of wrong passwords does not keep out a device that has signed in before.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use futures::{StreamExt, stream};
use grabd_tests::visitor::{PASSWORD, Visitor, start_app};
use reqwest::header::{CONTENT_TYPE, COOKIE};
use tokio_util::sync::CancellationToken;
use url::form_urlencoded;

use super::{FORM, FORWARDED, TRUSTED};

#[tokio::test(flavor = "multi_thread")]
async fn known_device_signs_in_during_a_flood_of_wrong_passwords() -> Result<()> {
    let app = start_app(&[TRUSTED]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut stranger = Visitor::new(&app);
    let form_token = stranger.get("/sign-in").await?.hidden_field("form_token")?;
    let cookies: Vec<String> = stranger.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let (url, cookie) = (format!("{}/sign-in", app.service.public_url()), cookies.join("; "));
    let seen = std::sync::Mutex::new(BTreeMap::<u16, u32>::new());
    let stop = CancellationToken::new();
    // Each from another /48 and with another address, so that no other limit applies.
    let requests = (0..60_000_u32).map(|number| {
        let email = format!("nobody-{number}@example.com");
        let form = [("form_token", &*form_token), ("email", &*email), ("password", "a wrong password")];
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = app.client.post(&url).header(CONTENT_TYPE, FORM).body(body).header(COOKIE, &cookie);
        request.header(FORWARDED, format!("2001:db8:{:x}::1", number % 60_000)).send()
    });
    let flood = stream::iter(requests).buffer_unordered(200).for_each(async |answer| {
        let status = answer.map_or(0, |answer| answer.status().as_u16());
        *seen.lock().expect("not poisoned").entry(status).or_default() += 1;
    });
    let known = async {
        // Until the flood fills its places.
        while seen.lock().expect("not poisoned").get(&429).is_none_or(|refused| *refused < 50) {
            tokio::task::yield_now().await;
        }
        for round in 0..5 {
            ada.cookies.remove("grabd_session");
            let answer = ada.sign_in("ada@example.com", PASSWORD, "").await?;
            ensure!(answer.status == 303, "round {round}: {} {}", answer.status, answer.body);
        }
        stop.cancel();
        Ok(())
    };
    let (_, signed_in) = tokio::join!(stop.run_until_cancelled(flood), async {
        let signed_in = known.await;
        stop.cancel();
        signed_in
    });
    println!("statuses of the flood: {:?}", seen.lock().expect("not poisoned"));
    signed_in?;
    app.finish().await
}
