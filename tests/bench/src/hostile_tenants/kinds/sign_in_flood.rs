//! Passwords that are tried one after the other, each of which costs the service a slow hash.

use std::time::Instant;

use anyhow::Context;
use futures::future::try_join_all;
use url::form_urlencoded;

use crate::hostile_tenants::kind::Kind;

const FORM: &str = "application/x-www-form-urlencoded";

/// Passwords that one account tries at the same time.
const AT_A_TIME: usize = 8;

pub(in crate::hostile_tenants) const KIND: Kind = Kind {
    settings: &[("GRABD_ACCOUNTS__SIGN_UP", "true")],
    ..Kind::new("sign-in-flood", "tries passwords of made-up accounts, 8 at a time", |field, team| {
        Box::pin(async move {
            let client = field.client_of(team)?;
            let page = format!("{}/sign-in", field.service.web());
            let tried = (0..AT_A_TIME).map(async |at| {
                for number in 0_u32.. {
                    if Instant::now() >= field.until {
                        break;
                    }
                    let form = client.get(&page).send().await?;
                    let cookie = form.headers().get("set-cookie").and_then(|cookie| cookie.to_str().ok());
                    let cookie = cookie.and_then(|cookie| cookie.split(';').next()).unwrap_or_default().to_owned();
                    let form = form.text().await?;
                    // Without one, the form itself was refused: too many requests.
                    let Some(token) = form.split("name=\"form_token\" value=\"").nth(1) else { continue };
                    let token = token.split('"').next().context("a token")?;
                    let email = format!("nobody-{}-{at}-{number}@example.com", team.team);
                    let fields = [("form_token", token), ("email", &*email), ("password", "not the password")];
                    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
                    let post = client.post(&page).header("cookie", cookie).header("content-type", FORM).body(body);
                    post.send().await?.bytes().await?;
                }
                anyhow::Ok(())
            });
            try_join_all(tried).await.map(drop)
        })
    })
};
