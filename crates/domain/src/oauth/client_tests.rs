use super::*;

fn raw() -> RawMetadata {
    RawMetadata { redirect_uris: vec!["https://a.example/cb".to_owned()], ..RawMetadata::default() }
}

#[test]
fn client_id_parses_registered_ids() {
    let random = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123-_9";
    let registered = format!("gcl_{random}");
    assert_eq!(ClientId::new(random), Some(ClientId::Registered(registered.clone())));
    assert_eq!(ClientId::parse(&registered).unwrap().as_str(), registered);
    for text in ["", "gcl_", &format!("gcl_{random}x"), "claude", &format!("gcs_{random}")] {
        assert_eq!(ClientId::parse(text), None, "{text}");
    }
}

#[test]
fn client_id_accepts_only_normalized_document_urls() {
    for text in [
        "https://app.example/client.json",
        "https://app.example/oauth/client-metadata",
        "https://app.example:8443/c",
        "https://app.example/c/",
        "https://127.0.0.2:9000/c",
    ] {
        assert_eq!(ClientId::parse(text).map(|id| id.to_string()), Some(text.to_owned()));
    }
    for text in [
        "http://app.example/c",
        "https://app.example",
        "https://app.example/",
        "https://app.example/c?x=1",
        "https://app.example/c?",
        "https://app.example/c#x",
        "https://app.example/c#",
        "https://user@app.example/c",
        "https://@app.example/c",
        "https://app.example/a/../c",
        "https://app.example/./c",
        "https://app.example/%2e%2e/c",
        "https://APP.example/c",
        "HTTPS://app.example/c",
        "https://app.example:443/c",
        "https://app.example:25/c",
        "https://bücher.example/c",
        "https://0x7f.1/c",
        "https://app.example\\c",
        " https://app.example/c",
        "https:app.example/c",
        "ftp://app.example/c",
    ] {
        assert_eq!(ClientId::parse(text), None, "{text}");
    }
}

#[test]
fn metadata_defaults_apply_to_missing_members() {
    let parsed = ClientMetadata::parse(&raw()).unwrap();
    assert_eq!((parsed.name.as_str(), parsed.auth_method), (DEFAULT_NAME, AuthMethod::Basic));
    assert_eq!(parsed.redirect_uris[0].as_str(), "https://a.example/cb");
}

#[test]
fn metadata_validates_every_member() {
    let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
    let name = |name: &str| RawMetadata { client_name: Some(name.to_owned()), ..raw() };
    let redirects = |redirect_uris: Vec<String>| RawMetadata { redirect_uris, ..raw() };
    let method = |method: &str| RawMetadata { token_endpoint_auth_method: Some(method.to_owned()), ..raw() };
    let many = |count: usize| redirects((0..count).map(|n| format!("https://a.example/{n}")).collect());
    for (raw, invalid_member) in [
        (name(&"é".repeat(100)), None),
        (name("<script>alert(1)</script>"), None),
        (name(" Claude "), None),
        (name(&"é".repeat(101)), Some("client_name")),
        (name(""), Some("client_name")),
        (name("  "), Some("client_name")),
        (name("Cl\naude"), Some("client_name")),
        (name("\u{202e}edualC"), Some("client_name")),
        (name("Cl\u{200b}aude"), Some("client_name")),
        (many(10), None),
        (many(11), Some("redirect_uris")),
        (many(0), Some("redirect_uris")),
        (redirects(vec!["https://a.example/".into(), "http://a.example/".into()]), Some("redirect_uris")),
        (method("none"), None),
        (method("client_secret_post"), None),
        (method("private_key_jwt"), Some("token_endpoint_auth_method")),
        (method(""), Some("token_endpoint_auth_method")),
        (RawMetadata { grant_types: words(&["authorization_code", "refresh_token", "x"]), ..raw() }, None),
        (RawMetadata { grant_types: words(&["client_credentials"]), ..raw() }, Some("grant_types")),
        (RawMetadata { grant_types: words(&[]), ..raw() }, Some("grant_types")),
        (RawMetadata { response_types: words(&["code"]), ..raw() }, None),
        (RawMetadata { response_types: words(&["token"]), ..raw() }, Some("response_types")),
    ] {
        match (ClientMetadata::parse(&raw), invalid_member) {
            (Ok(_), None) => {}
            (Err(error), Some(field)) => {
                assert!(error.to_string().contains(field), "{error}");
                assert_eq!(matches!(error, MetadataError::RedirectUri(_)), field == "redirect_uris", "{error}");
            }
            (parsed, _) => panic!("{raw:?}: {parsed:?}"),
        }
    }
}
