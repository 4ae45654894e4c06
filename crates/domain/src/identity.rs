//! The identity of the service towards the sites that it captures: Ed25519 keys, and signatures of HTTP messages (RFC 9421) as
//! Web Bot Auth uses them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use url::Url;

use crate::Timestamp;

/// The path of the directory of public keys.
pub const DIRECTORY_PATH: &str = "/.well-known/http-message-signatures-directory";

/// The bytes from which a key is made.
pub const SEED_BYTES: usize = 32;

/// How long the signature of a request is valid.
pub const REQUEST_VALID: Duration = Duration::from_secs(60);

/// The label of the signature of a request, and the key of the member that names the agent.
const LABEL: &str = "sig1";

/// The header fields of a signed request: names and values.
pub type SignatureFields = [(&'static str, String); 3];

/// How `Signature-Agent` names the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentForm {
    /// As the member of a dictionary that has the label of the signature, as draft-meunier-webbotauth-httpsig-protocol demands.
    #[default]
    Member,
    /// As one text, as in draft-meunier-web-bot-auth-architecture. Verifiers of that draft do not know parameters of covered
    /// fields, and take a signature with them for a wrong one.
    Text,
}

/// The https origin under which the directory is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentUrl {
    origin: String,
    authority: String,
    form: AgentForm,
}

impl AgentUrl {
    /// What is accepted, as the end of "must be …".
    pub const ALLOWED: &str = "an https origin such as https://grabs.example.com, without a path";

    /// Parses an origin. `None` if it is another URL, or not one of https.
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let has_rest = url.path() != "/" || url.query().is_some() || url.fragment().is_some() || text.contains('@');
        if url.scheme() != "https" || has_rest {
            return None;
        }
        Some(Self { origin: url.origin().ascii_serialization(), authority: authority(&url)?, form: AgentForm::Member })
    }

    /// The same origin, in the given form.
    #[must_use]
    pub fn in_form(self, form: AgentForm) -> Self {
        Self { form, ..self }
    }

    /// How requests name it.
    pub const fn form(&self) -> AgentForm {
        self.form
    }

    /// The origin, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.origin
    }
}

/// A private key. Its debug output has only the id.
pub struct SigningKey {
    seed: [u8; SEED_BYTES],
    pair: Ed25519KeyPair,
    id: String,
}

impl SigningKey {
    /// The key that is made from [`SEED_BYTES`] bytes. `None` for any other number of bytes.
    pub fn from_seed(seed: &[u8]) -> Option<Self> {
        let seed: [u8; SEED_BYTES] = seed.try_into().ok()?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).ok()?;
        let id = thumbprint(&URL_SAFE_NO_PAD.encode(pair.public_key().as_ref()));
        Some(Self { seed, pair, id })
    }

    /// The secret bytes that the key is made from.
    pub const fn seed(&self) -> &[u8; SEED_BYTES] {
        &self.seed
    }

    /// The thumbprint of the public key (RFC 7638, RFC 8037), by which verifiers find it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The public key, as the member `x` of a JSON Web Key (RFC 8037).
    pub fn public_key(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref())
    }

    /// Signs the response with the directory for the request of its own origin, so that it cannot be served under another
    /// one. `content_digest` is the value of that header field.
    pub fn sign_directory(
        &self,
        label: &str,
        agent: &AgentUrl,
        content_digest: &str,
        now: Timestamp,
        valid: Duration,
    ) -> MessageSignature {
        let components = [("\"@authority\";req", agent.authority.as_str()), ("\"content-digest\"", content_digest)];
        let (created, expires) = validity(now, valid);
        let parameters = format!(
            ";created={created};expires={expires};keyid=\"{}\";alg=\"ed25519\";tag=\"http-message-signatures-directory\"",
            self.id
        );
        self.sign_message(label, &components, &parameters)
    }

    /// Signs components of a message: identifiers and values (RFC 9421, section 3.1).
    fn sign_message(&self, label: &str, components: &[(&str, &str)], parameters: &str) -> MessageSignature {
        let (base, covered) = signature_base(components, parameters);
        let signature = STANDARD.encode(self.pair.sign(base.as_bytes()).as_ref());
        MessageSignature { input: format!("{label}={covered}"), signature: format!("{label}=:{signature}:") }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.id).finish()
    }
}

/// A signature as members of two header fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSignature {
    /// The member of `Signature-Input`.
    pub input: String,
    /// The member of `Signature`.
    pub signature: String,
}

/// A key, and where its public part is published.
#[derive(Clone, Debug)]
pub struct SigningIdentity {
    /// Where the directory is.
    pub agent: AgentUrl,
    /// The key.
    pub key: Arc<SigningKey>,
}

impl SigningIdentity {
    /// The header fields that sign a request for this URL. They are valid for its host and port only, and for
    /// [`REQUEST_VALID`]. `None` if the URL is not one of HTTP.
    pub fn sign_request(&self, url: &str, now: Timestamp, nonce: &str) -> Option<SignatureFields> {
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let (authority, agent) = (authority(&url)?, format!("\"{}\"", self.agent.origin));
        let (created, expires) = validity(now, REQUEST_VALID);
        let (field, covered) = match self.agent.form {
            AgentForm::Member => (format!("{LABEL}={agent}"), format!("\"signature-agent\";key=\"{LABEL}\"")),
            AgentForm::Text => (agent.clone(), "\"signature-agent\"".to_owned()),
        };
        let components = [("\"@authority\"", authority.as_str()), (covered.as_str(), agent.as_str())];
        let parameters = format!(
            ";created={created};expires={expires};keyid=\"{}\";alg=\"ed25519\";nonce=\"{nonce}\";tag=\"web-bot-auth\"",
            self.key.id
        );
        let MessageSignature { input, signature } = self.key.sign_message(LABEL, &components, &parameters);
        Some([("Signature-Agent", field), ("Signature-Input", input), ("Signature", signature)])
    }
}

/// The value of the header field `Content-Digest` (RFC 9530) for a body.
pub fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(digest(&SHA256, body).as_ref()))
}

/// Host and port, without the default port (RFC 9421, section 2.2.3). The URL's host is in lower case.
fn authority(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// When a signature was made, and when it expires, in seconds since 1970.
fn validity(now: Timestamp, valid: Duration) -> (i64, i64) {
    (now.as_ms() / 1000, (now + valid).as_ms() / 1000)
}

/// The thumbprint of a public key, from its member `x`.
fn thumbprint(x: &str) -> String {
    let members = format!("{{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"{x}\"}}");
    URL_SAFE_NO_PAD.encode(digest(&SHA256, members.as_bytes()).as_ref())
}

/// The text that is signed, and the covered components with the parameters (RFC 9421, section 2.5).
fn signature_base(components: &[(&str, &str)], parameters: &str) -> (String, String) {
    let identifiers: Vec<&str> = components.iter().map(|(identifier, _)| *identifier).collect();
    let covered = format!("({}){parameters}", identifiers.join(" "));
    let lines: Vec<String> = components.iter().map(|(identifier, value)| format!("{identifier}: {value}\n")).collect();
    (format!("{}\"@signature-params\": {covered}", lines.concat()), covered)
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    /// The key of RFC 9421, appendix B.1.4.
    fn test_key() -> SigningKey {
        let seed = URL_SAFE_NO_PAD.decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU").unwrap();
        SigningKey::from_seed(&seed).unwrap()
    }

    #[test]
    fn keys_have_the_public_key_and_the_thumbprint_of_the_standards() {
        let key = test_key();
        assert_eq!(key.public_key(), "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs");
        assert_eq!(key.id(), "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U");
        // RFC 8037, appendix A.3.
        assert_eq!(
            thumbprint("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"),
            "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
        );
        for length in [0, 31, 33] {
            assert!(SigningKey::from_seed(&vec![1; length]).is_none(), "{length}");
        }
        assert_eq!(format!("{key:?}"), "SigningKey(\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\")");
    }

    /// RFC 9421, appendix B.2.6.
    #[test]
    fn request_of_the_standard_gets_the_signature_of_the_standard() {
        let components = [
            ("\"date\"", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("\"@method\"", "POST"),
            ("\"@path\"", "/foo"),
            ("\"@authority\"", "example.com"),
            ("\"content-type\"", "application/json"),
            ("\"content-length\"", "18"),
        ];
        let parameters = ";created=1618884473;keyid=\"test-key-ed25519\"";
        let signed = test_key().sign_message("sig-b26", &components, parameters);
        assert_eq!(
            signed.input,
            "sig-b26=(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\");\
             created=1618884473;keyid=\"test-key-ed25519\""
        );
        assert_eq!(
            signed.signature,
            "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:"
        );
    }

    /// The test vectors of draft-meunier-webbotauth-httpsig-protocol.
    #[test]
    fn messages_of_web_bot_auth_get_the_signatures_of_its_draft() {
        let key = test_key();
        let request = [
            ("\"@authority\"", "example.com"),
            ("\"signature-agent\";key=\"agent2\"", "\"https://signature-agent.test\""),
        ];
        let parameters = format!(
            ";created=1735689600;keyid=\"{}\";alg=\"ed25519\";expires=4889289600;nonce=\"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q\
             /F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==\";tag=\"web-bot-auth\"",
            key.id()
        );
        assert_eq!(
            key.sign_message("sig2", &request, &parameters).signature,
            "sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:"
        );
        let body = "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\",\
                    \"x\":\"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs\",\"use\":\"sig\"}]}";
        let content_digest = content_digest(body.as_bytes());
        assert_eq!(content_digest, "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:");
        let response = [("\"@authority\";req", "signature-agent.test"), ("\"content-digest\"", &*content_digest)];
        let parameters = format!(
            ";created=1735689600;expires=4889289600;keyid=\"{}\";tag=\"http-message-signatures-directory\"",
            key.id()
        );
        assert_eq!(
            key.sign_message("binding", &response, &parameters).signature,
            "binding=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:"
        );
    }

    #[test]
    fn signed_request_is_valid_for_its_host_and_port_for_a_minute() {
        let agent = AgentUrl::parse("https://grabs.example.com/").unwrap();
        let identity = SigningIdentity { agent, key: Arc::new(test_key()) };
        let now = Timestamp::from_ms(1_795_206_774_120);
        for (url, authority) in [
            ("https://Shop.Example:443/a?b#c", "shop.example"),
            ("http://shop.example:8080/", "shop.example:8080"),
            ("http://[::1]:81/", "[::1]:81"),
            ("https://ünder.example/", "xn--nder-zra.example"),
        ] {
            let [agent, input, signature] = identity.sign_request(url, now, "once").unwrap();
            assert_eq!(agent, ("Signature-Agent", "sig1=\"https://grabs.example.com\"".to_owned()));
            let covered = "(\"@authority\" \"signature-agent\";key=\"sig1\");created=1795206774;expires=1795206834;\
                           keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";nonce=\"once\";\
                           tag=\"web-bot-auth\"";
            assert_eq!(input, ("Signature-Input", format!("sig1={covered}")));
            let base = format!(
                "\"@authority\": {authority}\n\"signature-agent\";key=\"sig1\": \"https://grabs.example.com\"\n\
                 \"@signature-params\": {covered}"
            );
            let sent = signature.1.strip_prefix("sig1=:").and_then(|rest| rest.strip_suffix(':')).unwrap();
            let public_key = UnparsedPublicKey::new(&ED25519, URL_SAFE_NO_PAD.decode(test_key().public_key()).unwrap());
            public_key.verify(base.as_bytes(), &STANDARD.decode(sent).unwrap()).unwrap();
        }
        for url in ["about:blank", "data:text/html,x", "ftp://shop.example/", ""] {
            assert_eq!(identity.sign_request(url, now, "once"), None, "{url}");
        }
    }

    #[test]
    fn request_names_the_agent_as_a_text_for_verifiers_of_the_former_draft() {
        let agent = AgentUrl::parse("https://grabs.example.com").unwrap().in_form(AgentForm::Text);
        let identity = SigningIdentity { agent, key: Arc::new(test_key()) };
        let now = Timestamp::from_ms(1_795_206_774_120);
        let [agent, input, signature] = identity.sign_request("https://shop.example/", now, "once").unwrap();
        assert_eq!(agent, ("Signature-Agent", "\"https://grabs.example.com\"".to_owned()));
        let covered = input.1.strip_prefix("sig1=").unwrap();
        assert!(covered.starts_with("(\"@authority\" \"signature-agent\");created="), "{covered}");
        let base = format!(
            "\"@authority\": shop.example\n\"signature-agent\": \"https://grabs.example.com\"\n\"@signature-params\": {covered}"
        );
        let sent = signature.1.strip_prefix("sig1=:").and_then(|rest| rest.strip_suffix(':')).unwrap();
        let public_key = UnparsedPublicKey::new(&ED25519, URL_SAFE_NO_PAD.decode(test_key().public_key()).unwrap());
        public_key.verify(base.as_bytes(), &STANDARD.decode(sent).unwrap()).unwrap();
    }

    #[test]
    fn agents_are_https_origins() {
        for (text, expected) in [
            ("https://grabs.example.com", Some("https://grabs.example.com")),
            ("https://GRABS.example.com:443/", Some("https://grabs.example.com")),
            ("https://grabs.example.com:8443", Some("https://grabs.example.com:8443")),
            ("http://grabs.example.com", None),
            ("https://grabs.example.com/path", None),
            ("https://grabs.example.com?x", None),
            ("https://me@grabs.example.com", None),
            ("grabs.example.com", None),
            ("", None),
        ] {
            assert_eq!(AgentUrl::parse(text).as_ref().map(AgentUrl::as_str), expected, "{text}");
        }
    }
}
