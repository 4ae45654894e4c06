//! A device with a passkey, and the browser in front of it: creates and answers like `navigator.credentials`, but checks
//! nothing, so that tests can send what a browser would not.

use anyhow::Context;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use rcgen::{KeyPair, PublicKeyData, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The flags of authenticator data (section 6.1 of Web Authentication Level 3).
const USER_PRESENT: u8 = 0x01;
const USER_VERIFIED: u8 = 0x04;
const ATTESTED: u8 = 0x40;

/// A passkey.
pub struct Passkey {
    key: KeyPair,
    id: Vec<u8>,
    /// The user for whom it was created, which it reports.
    pub user: Vec<u8>,
    /// The host for which it was created.
    pub host: String,
    /// The origin of the page that uses it.
    pub origin: String,
    /// Signatures that it says it has made. The next answer has the next number; 0 if it does not count.
    pub counter: u32,
    /// Whether it counts.
    pub is_counting: bool,
    /// Whether it verifies its user, for example with a PIN.
    pub verifies_user: bool,
}

impl Passkey {
    /// Creates a passkey for a page of this origin. Returns it, and what the page sends.
    ///
    /// # Errors
    /// If an option is missing.
    pub fn create(origin: &str, options: &Value) -> anyhow::Result<(Self, String)> {
        let key = KeyPair::generate()?;
        let passkey = Self {
            // Any bytes that are different for each passkey.
            id: Sha256::digest(key.der_bytes()).to_vec(),
            key,
            user: BASE64.decode(text(options, "/user/id")?)?,
            host: text(options, "/rp/id")?.to_owned(),
            origin: origin.to_owned(),
            counter: 0,
            is_counting: true,
            verifies_user: true,
        };
        let created = passkey.created(options)?;
        Ok((passkey, created))
    }

    /// What a page sends when this passkey was created with these options.
    ///
    /// # Errors
    /// If an option is missing.
    pub fn created(&self, options: &Value) -> anyhow::Result<String> {
        let point = self.key.der_bytes();
        let (x, y) = (&point[1..33], &point[33..65]);
        // COSE: an elliptic curve key (1: 2) for ES256 (3: -7) on P-256 (-1: 1), with its coordinates (-2 and -3).
        let start = [0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20];
        let cose = [&start[..], x, &[0x22, 0x58, 0x20], y].concat();
        let length = u16::try_from(self.id.len())?.to_be_bytes();
        let data = [self.data(ATTESTED), [0; 16].to_vec(), length.to_vec(), self.id.clone(), cose].concat();
        let length = u16::try_from(data.len())?.to_be_bytes();
        // CBOR: {"fmt": "none", "attStmt": {}, "authData": data}.
        let parts: [&[u8]; 6] = [b"\xa3cfmtdnone", b"gattStmt", b"\xa0", b"hauthData", b"\x59", &length];
        let attestation = [&parts.concat()[..], &data].concat();
        self.message(&json!({
            "attestationObject": BASE64.encode(attestation),
            "clientDataJSON": BASE64.encode(self.client_data("webauthn.create", options)?),
        }))
    }

    /// Answers a challenge. Returns what the page sends.
    ///
    /// # Errors
    /// If an option is missing.
    pub fn answer(&mut self, options: &Value) -> anyhow::Result<String> {
        self.counter += u32::from(self.is_counting);
        let (data, client_data) = (self.data(0), self.client_data("webauthn.get", options)?);
        let signature = self.key.sign(&[&data[..], &Sha256::digest(&client_data)].concat())?;
        self.message(&json!({
            "authenticatorData": BASE64.encode(data),
            "clientDataJSON": BASE64.encode(client_data),
            "signature": BASE64.encode(signature),
            "userHandle": BASE64.encode(&self.user),
        }))
    }

    fn message(&self, response: &Value) -> anyhow::Result<String> {
        let id = BASE64.encode(&self.id);
        let message = json!({ "id": id, "rawId": id, "type": "public-key", "response": response });
        Ok(serde_json::to_string(&message)?)
    }

    fn client_data(&self, kind: &str, options: &Value) -> anyhow::Result<Vec<u8>> {
        let challenge = text(options, "/challenge")?;
        let data = json!({ "type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": false });
        Ok(serde_json::to_vec(&data)?)
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        let verified = if self.verifies_user { USER_VERIFIED } else { 0 };
        let flags = [flags | USER_PRESENT | verified];
        [&Sha256::digest(&self.host)[..], &flags, &self.counter.to_be_bytes()].concat()
    }
}

fn text<'a>(options: &'a Value, pointer: &str) -> anyhow::Result<&'a str> {
    options.pointer(pointer).and_then(Value::as_str).with_context(|| format!("no {pointer} in {options}"))
}
