use super::*;

const NOW: Timestamp = Timestamp::from_ms(1_795_206_774_120);
const EXPIRES: i64 = 1_795_206_775;

fn key() -> LinkKey {
    LinkKey(KeyId(Uuid::from_u128(0xabc)))
}

fn query(members: &str) -> String {
    format!("key={}&{members}&sig={}", key(), "0f".repeat(32))
}

fn read(members: &str) -> Result<Link, Fault> {
    let query = query(members);
    SignedQuery::parse(&query)?.read(NOW)
}

#[test]
fn link_keys_are_read_as_they_are_printed_only() {
    let text = key().to_string();
    assert_eq!(text, "lk_00000000000000000000000000000abc");
    assert_eq!(LinkKey::parse(&text), Some(key()));
    for other in
        ["", "lk_", "lk_abc", &text.to_ascii_uppercase(), &text.replace("abc", "ABC"), &text.replace("lk", "sk")]
    {
        assert_eq!(LinkKey::parse(other), None, "{other}");
    }
}

#[test]
fn query_is_split_before_the_last_signature() {
    let signed = format!("key={}&url=https://a.example/?a%26sig=b&sig=x&expires=1", key());
    let query = format!("{signed}&sig={}", "0f".repeat(32));
    let expected = SignedQuery { signed: &signed, key: key(), signature: [15; 32] };
    assert_eq!(SignedQuery::parse(&query), Ok(expected));
}

#[test]
fn query_without_key_or_signature_is_refused() {
    let good = query("url=a");
    assert!(SignedQuery::parse(&good).is_ok());
    let without_key = good.replace("key=", "kex=");
    let upper = good.replace("0f", "0F");
    let cases =
        ["", "&sig=", &good[..good.len() - 1], &format!("{good}0"), &format!("{good}&a=b"), &without_key, &upper];
    for query in cases {
        assert_eq!(SignedQuery::parse(query), Err(Fault::LinkRefused(LinkRefusal::Signature)), "{query}");
    }
    let long = query(&"a".repeat(QUERY_BYTES));
    assert_eq!(SignedQuery::parse(&long).unwrap_err().field().map(|field| field.name), Some("query"));
}

#[test]
fn members_become_options_with_a_day_of_age() {
    let link = read(&format!(
        "url=https%3A%2F%2Fexample.com%2F%3Fa%3D1&full_page=1&scale=1.5&hide=.a%0A.b&block_types=image,font&\
         expires={EXPIRES}"
    ));
    let link = link.unwrap();
    assert_eq!(link.expires_at, Timestamp::from_ms(EXPIRES * 1000));
    let expected = CaptureRequest {
        url: Some("https://example.com/?a=1".to_owned()),
        full_page: Some(true),
        scale: Some(1.5),
        hide: Some(vec![".a".to_owned(), ".b".to_owned()]),
        block_types: Some(vec!["image".to_owned(), "font".to_owned()]),
        max_age: Some(86_400),
        ..CaptureRequest::default()
    };
    assert_eq!(link.capture, expected);
    let with_age = |age: &str| read(&format!("url=a&expires={EXPIRES}&max_age={age}")).unwrap().capture;
    assert_eq!(with_age("0").max_age, Some(0));
    assert_eq!(with_age("x").unparsed, [("max_age".to_owned(), "\"x\"".to_owned())]);
    assert_eq!(with_age("x").max_age, None);
}

#[test]
fn members_that_links_cannot_have_are_named() {
    for (members, name) in [
        ("url=a&colour=red", "query"),
        ("url=a&async=1", "query"),
        ("url=a&url=b", "url"),
        ("url=a&key=b", "key"),
        ("url=a&on_error=json", "on_error"),
        ("url=a&headers=a:%20b", "headers"),
        ("url=a&cookies=a%3Db", "cookies"),
        ("url=a&basic_auth=a:b", "basic_auth"),
        ("url=a&script=1", "script"),
        ("url=a&base_url=https://b.example/", "base_url"),
        ("url=a&wait_for_expression=1", "wait_for_expression"),
        ("url=a&proxy=01993e1c-7b1a-7000-8000-0123456789ab", "proxy"),
        ("url=a&compare_to=01993e1c-7b1a-7000-8000-0123456789ab", "compare_to"),
        ("url=a&sig=b", "query"),
    ] {
        let fault = read(&format!("{members}&expires={EXPIRES}")).unwrap_err();
        assert_eq!(fault.field().map(|field| field.name), Some(name), "{members}: {fault}");
        assert!(!fault.to_string().contains("a: b"), "{fault}");
    }
    assert!(read(&format!("url=a&on_error=placeholder&expires={EXPIRES}")).is_ok());
}

#[test]
fn expiry_is_required_and_bounded() {
    let last = (NOW + LIFE).as_ms() / 1000;
    assert!(read(&format!("url=a&expires={last}")).is_ok());
    for expires in
        ["", "expires=", "expires=x", "expires=1.5", &format!("expires={}", last + 1), "expires=9999999999999"]
    {
        let fault = read(&format!("url=a&{expires}")).unwrap_err();
        assert_eq!(fault.field().map(|field| field.name), Some("expires"), "{expires}: {fault}");
    }
    let expired = read("url=a&expires=1795206774").unwrap_err();
    assert_eq!(expired, Fault::LinkRefused(LinkRefusal::Expired(Timestamp::from_ms(1_795_206_774_000))));
    assert_eq!(expired.to_string(), "The link expired at 2026-11-20T20:32:54.000Z.");
}

#[test]
fn answer_is_fresh_until_the_image_is_too_old_or_the_link_expires() {
    let link =
        |expires_s| Link { capture: CaptureRequest::default(), expires_at: NOW + Duration::from_secs(expires_s) };
    let fresh = |expires_s, max_age_s, age_s| {
        let captured_at = NOW - Duration::from_secs(age_s);
        link(expires_s).fresh_for(Duration::from_secs(max_age_s), captured_at, NOW).as_secs()
    };
    assert_eq!(fresh(1000, 60, 20), 40);
    assert_eq!(fresh(10, 60, 20), 10);
    assert_eq!(fresh(1000, 60, 61), 0);
    assert_eq!(fresh(1000, 0, 0), 0);
}
