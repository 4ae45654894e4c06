use http::HeaderValue;

use super::*;

#[test]
fn what_is_remembered_is_bounded() {
    let documents = Documents::default();
    let url = |number: usize| DocumentUrl::parse(&format!("https://app.example/{number}")).unwrap();
    let metadata = || ClientMetadata {
        name: "An app".into(),
        redirect_uris: Vec::new(),
        auth_method: grabd_domain::oauth::AuthMethod::None,
    };
    let now = Timestamp::from_ms(0);
    for number in 0..REMEMBERED * 2 {
        let life = Duration::from_secs(300 + u64::try_from(number).unwrap());
        documents.remember(url(number), metadata(), now, life);
    }
    assert_eq!(documents.known.lock().unwrap().len(), REMEMBERED);
    assert!(documents.find(&url(0), now).is_none(), "the first to be over was forgotten");
    assert!(documents.find(&url(REMEMBERED * 2 - 1), now).is_some());
}

#[test]
fn only_json_is_read() {
    for (value, is) in [
        ("application/json", true),
        ("Application/JSON; charset=utf-8", true),
        ("application/cimd+json", true),
        ("text/json", false),
        ("text/html", false),
        ("application/jsonp", false),
        ("", false),
    ] {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
        assert_eq!(is_json(&headers), is, "{value}");
    }
    assert!(!is_json(&HeaderMap::new()));
}
