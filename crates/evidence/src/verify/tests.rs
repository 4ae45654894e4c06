//! Whatever is changed in a package is found.

use serde_json::json;

use super::*;
use crate::key::SigningKey;
use crate::manifest::MANIFEST_VERSION;
use crate::package::{Contents, PackageFile};

/// The number of changed packages that are tried, of each kind.
const CHANGES: usize = 1000;

fn manifest() -> Manifest {
    Manifest {
        version: MANIFEST_VERSION,
        test: false,
        grab_id: "01993e1c-7b1a-7000-8000-0123456789ab".to_owned(),
        requested_url: "https://example.com/".to_owned(),
        final_url: Some("https://example.com/end".to_owned()),
        http_status: Some(200),
        tls: Some(json!({ "protocol": "TLS 1.3", "issuer": "R11", "valid_until": "2027-01-01T00:00:00.000Z" })),
        created_at: "2026-11-20T20:32:54.120Z".to_owned(),
        captured_at: "2026-11-20T20:32:56.004Z".to_owned(),
        options: json!({ "width": 1280, "headers": true }),
        browser: Some("Chrome/150.0.0.0".to_owned()),
        grabd_version: "0.2.0".to_owned(),
        files: Vec::new(),
    }
}

fn key(seed: u8) -> SigningKey {
    SigningKey::of_seed(&[seed; 32]).unwrap()
}

fn files(image: &[u8], page: &[u8]) -> Vec<PackageFile> {
    let file = |name: &str, media_type: &str, content: &[u8]| PackageFile {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        content: content.to_vec(),
    };
    vec![file("image.png", "image/png", image), file("page.mhtml", "message/rfc822", page)]
}

fn package(signer: &SigningKey, image: &[u8], timestamp: Option<&[u8]>) -> Vec<u8> {
    let contents = Contents::new(manifest(), files(image, b"a page")).unwrap();
    let mut package = Vec::new();
    contents.sign(signer, timestamp.map(<[u8]>::to_vec)).unwrap().write(&mut package).unwrap();
    package
}

/// Numbers that are the same in each run.
fn numbers() -> impl Iterator<Item = usize> {
    let next =
        |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    std::iter::successors(Some(7_u64), next).map(|state| usize::try_from(state >> 33).unwrap())
}

#[test]
fn package_is_valid_as_it_was_written() {
    for timestamp in [None, Some(b"reply".as_slice())] {
        let written = package(&key(1), b"an image", timestamp);
        let Verified { manifest: found, key: by, has_timestamp } = verify(&written).unwrap();
        assert_eq!((by, has_timestamp), (key(1).public_key(), timestamp.is_some()));
        assert_eq!(found.files[0].sha256, sha256(b"an image"));
        assert_eq!(Manifest { files: Vec::new(), ..found }, manifest());
        // The same contents always make the same package.
        assert_eq!(package(&key(1), b"an image", timestamp), written);
    }
}

#[test]
fn each_changed_byte_and_each_cut_is_found() {
    for timestamp in [None, Some(b"reply".as_slice())] {
        let written = package(&key(1), b"an image", timestamp);
        for (at, number) in numbers().take(CHANGES).enumerate() {
            let mut changed = written.clone();
            let place = number % written.len();
            changed[place] ^= u8::try_from(1 + at % 255).unwrap();
            assert!(verify(&changed).is_err(), "byte {place}");
        }
        for number in numbers().skip(CHANGES).take(CHANGES) {
            let place = number % written.len();
            assert!(verify(&written[..place]).is_err(), "cut at {place}");
            let end = (place + 1 + number % 64).min(written.len());
            let without = [&written[..place], &written[end..]].concat();
            assert!(verify(&without).is_err(), "without {place} to {end}");
            let with = [&written[..place], &[0], &written[place..]].concat();
            assert!(verify(&with).is_err(), "with a byte at {place}");
        }
        // All of them, with one bit each.
        for place in 0..written.len() {
            let mut changed = written.clone();
            changed[place] ^= 0x20;
            assert!(verify(&changed).is_err(), "byte {place}");
        }
    }
}

/// An archive with these files, as a forger would write it who knows the format.
fn forged(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let entries: Vec<Entry<'_>> = entries.iter().map(|(name, content)| Entry { name, content }).collect();
    let mut archive = Vec::new();
    zip::write(&entries, &mut archive).unwrap();
    archive
}

#[test]
fn swapped_files_keys_and_time_stamps_are_found() {
    let (one, other) = (package(&key(1), b"one", Some(b"reply")), package(&key(2), b"another", Some(b"later")));
    let (one, other) = (zip::read(&one).unwrap(), zip::read(&other).unwrap());
    let list = |of: &[Entry<'_>]| -> Vec<(String, Vec<u8>)> {
        of.iter().map(|entry| (entry.name.to_owned(), entry.content.to_vec())).collect()
    };
    let verify_of = |entries: &[(String, Vec<u8>)]| {
        let entries: Vec<(&str, &[u8])> = entries.iter().map(|(name, content)| (&**name, &**content)).collect();
        verify(&forged(&entries))
    };
    assert!(verify_of(&list(&one)).is_ok());
    let expected = [
        Invalid::WrongSignature,
        Invalid::WrongSignature,
        Invalid::WrongSignature,
        Invalid::WrongFile("image.png".to_owned()),
    ];
    for (at, expected) in expected.into_iter().enumerate() {
        let mut swapped = list(&one);
        swapped[at].1 = other[at].content.to_vec();
        assert_eq!(verify_of(&swapped), Err(expected));
    }
    for at in 0..one.len() {
        let mut without = list(&one);
        without.remove(at);
        assert!(verify_of(&without).is_err(), "without {at}");
        let mut moved = list(&one);
        moved.swap(at, (at + 1) % one.len());
        assert!(verify_of(&moved).is_err(), "with {at} moved");
    }
    let mut longer = list(&one);
    longer.push(("more.txt".to_owned(), b"more".to_vec()));
    assert_eq!(verify_of(&longer), Err(Invalid::Unlisted("more.txt".to_owned())));
    let mut twice = list(&one);
    twice.push(("image.png".to_owned(), b"another".to_vec()));
    assert_eq!(verify_of(&twice), Err(Invalid::DuplicateName("image.png".to_owned())));
}

#[test]
fn time_stamp_cannot_be_added_or_removed() {
    let (stamped, plain) = (package(&key(1), b"one", Some(b"reply")), package(&key(1), b"one", None));
    let (stamped, plain) = (zip::read(&stamped).unwrap(), zip::read(&plain).unwrap());
    assert_eq!((stamped[0], stamped.len()), (plain[0], plain.len() + 1), "the manifest is the same");
    let verify_of = |entries: &[Entry<'_>]| {
        let entries: Vec<(&str, &[u8])> = entries.iter().map(|entry| (entry.name, entry.content)).collect();
        verify(&forged(&entries)).map(|verified| verified.has_timestamp)
    };
    assert_eq!((verify_of(&stamped), verify_of(&plain)), (Ok(true), Ok(false)));
    let removed = [&stamped[..2], &stamped[3..]].concat();
    let added = [&plain[..2], &stamped[2..]].concat();
    for changed in [removed, added] {
        assert_eq!(verify_of(&changed), Err(Invalid::WrongSignature));
    }
}

#[test]
fn signature_by_another_key_is_one_of_that_key() {
    let forged = package(&key(2), b"an image", None);
    assert_ne!(verify(&forged).unwrap().key, key(1).public_key());
}

#[test]
fn later_version_is_named() {
    let contents = Contents::new(Manifest { version: 2, ..manifest() }, Vec::new()).unwrap();
    let mut package = Vec::new();
    contents.sign(&key(1), None).unwrap().write(&mut package).unwrap();
    assert_eq!(verify(&package), Err(Invalid::Version(2)));
}
