use http::HeaderValue;

use super::*;

#[test]
fn cache_is_bounded_and_evicts_the_first_to_expire() {
    let documents = Documents::default();
    let url = |number: usize| DocumentUrl::parse(&format!("https://app.example/{number}")).unwrap();
    let metadata = || ClientMetadata {
        name: "An app".into(),
        redirect_uris: Vec::new(),
        auth_method: grabd_domain::oauth::AuthMethod::None,
    };
    let now = Timestamp::from_ms(0);
    for number in 0..MAX_CACHED * 2 {
        let lifetime = Duration::from_secs(300 + u64::try_from(number).unwrap());
        documents.insert(url(number), metadata(), now, lifetime);
    }
    assert_eq!(documents.cached.lock().len(), MAX_CACHED);
    assert!(documents.find(&url(0), now).is_none(), "the first to expire was evicted");
    assert!(documents.find(&url(MAX_CACHED * 2 - 1), now).is_some());
}

#[test]
fn only_json_content_types_are_accepted() {
    for (value, expected) in [
        ("application/json", true),
        ("Application/JSON; charset=utf-8", true),
        ("application/cimd+json", true),
        ("text/json", false),
        ("text/html", false),
        ("application/jsonp", false),
        ("", false),
    ] {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
        assert_eq!(is_json(&headers), expected, "{value}");
    }
    assert!(!is_json(&HeaderMap::new()));
}
