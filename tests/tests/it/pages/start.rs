//! The start page, and the capture that anybody may try on it.

use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use grabd_tests::pixels;

use super::visitor::{Visitor, open_house};

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_is_drawn_and_leaves_nothing() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut anybody = Visitor::new(&house);
    let form_token = anybody.get("/").await?.hidden("form_token")?;
    let before = house.site.hits_in_all();
    let url = house.site.url("/tiny");
    let answer = anybody.post("/", &[("form_token", &form_token), ("url", &url)]).await?;
    assert_eq!(answer.status, 200);
    let source = answer.body.split("src=\"data:image/jpeg;base64,").nth(1).context("a picture")?;
    let file = BASE64.decode(source.split('"').next().unwrap_or_default())?;
    assert_eq!(pixels::decode(&file).dimensions(), (1280, 720));
    assert!(answer.header("content-security-policy").contains("img-src 'self' data:;"));
    assert_eq!(house.site.hits_in_all(), before, "the page was visited");
    let kept = std::fs::read_dir(house.data_dir().join("images/i"))?.count();
    assert_eq!(kept, 0);

    // What a test key is refused is refused here, beside the field.
    for (url, said) in [
        ("", "Write the address of a page."),
        ("http://localhost/", "This address is not public"),
        ("http://169.254.169.254/latest/", "This address is not public"),
        ("javascript:alert(1)", "must be an absolute http(s) URL"),
        ("https://user:password@example.com/", "without a user name"),
        ("https://blocked.test/", "HTTP 403 (a test)"),
        ("https://exhausted.test/", "no live credits left"),
    ] {
        let answer = anybody.post("/", &[("form_token", &form_token), ("url", url)]).await?;
        assert_eq!(answer.status, 422, "{url}");
        assert!(answer.body.contains(said), "{url}: {}", answer.body);
        assert!(answer.body.contains("id=\"url-error\"") && answer.body.contains("aria-invalid"), "{url}");
        assert!(!answer.header("content-security-policy").contains("data:"), "{url}");
    }
    // Other sites cannot have it drawn.
    assert_eq!(Visitor::new(&house).post("/", &[("form_token", &form_token), ("url", &url)]).await?.status, 403);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_are_those_of_the_packet() -> Result<()> {
    let house = open_house(&[]).await?;
    let (_, packet) = house.get("/pricing", house.test()).await?;
    let body = Visitor::new(&house).get("/").await?.body;
    for words in ["0.002 USD", "25,000 credits", "50,000 credits", "125,000 credits", "50 USD", "100 USD", "250 USD"] {
        assert!(body.contains(words), "{words}");
    }
    for words in ["billing_model", "test_mode"] {
        assert!(body.contains(packet["pricing"][words].as_str().context("words")?), "{words}");
    }
    house.finish().await
}
