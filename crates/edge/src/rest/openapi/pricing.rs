//! Schema of the pricing packet. It is written by hand because the packet is forwarded as untyped JSON.

use serde_json::{Value, json};
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, OneOfBuilder};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};

/// Providers that the comparison can be limited to.
pub(in super::super) const PROVIDERS: [&str; 3] = ["provider_a", "provider_b", "provider_c"];

/// An example packet with a shortened comparison.
pub(in super::super) fn example() -> Value {
    json!({
        "pricing": {
            "per_grab_usd": 0.002,
            "currency": "USD",
            "billing_model": "Flat price per successful live grab: one credit each. Failed grabs are free.",
            "free_tier": false,
            "test_mode": "Keys with the prefix sk_test_ return free placeholder images and spend no credits.",
            "annual": { "price_usd": 50, "credits_per_year": 25_000, "reset_policy": "Credits expire at term end." },
            "prepaid_packages": [
                { "name": "25k", "credits": 25_000, "price_usd": 50, "reset_policy": "Top-up credits do not expire." }
            ]
        },
        "comparison": {
            "schema_version": "1", "last_verified": "2026-11-21", "features": ["full_page"], "providers": [],
            "decision_pages": [], "agent_surfaces": [], "notes": ""
        },
        "links": { "docs": "https://grabd.example/docs" }
    })
}

/// Schema of the whole packet.
pub(in super::super) fn packet() -> RefOr<Schema> {
    let links = ObjectBuilder::new().additional_properties(Some(AdditionalProperties::RefOr(text())));
    object([("pricing", prices()), ("comparison", comparison()), ("links", links.into())], [])
}

fn prices() -> RefOr<Schema> {
    let annual = object([("price_usd", number()), ("credits_per_year", integer()), ("reset_policy", text())], []);
    let package =
        object([("name", text()), ("credits", integer()), ("price_usd", number()), ("reset_policy", text())], []);
    object(
        [
            ("per_grab_usd", number()),
            ("currency", text()),
            ("billing_model", text()),
            ("free_tier", flag()),
            ("test_mode", text()),
            ("annual", annual),
            ("prepaid_packages", list(package)),
        ],
        [],
    )
}

fn comparison() -> RefOr<Schema> {
    let tier = object([("name", text())], []);
    let page = object(
        [
            ("competitor", text()),
            ("url", text()),
            ("verdict", text()),
            ("pricing_tiers", list(tier)),
            ("capture_capabilities", list(text())),
            ("best_fit", list(text())),
        ],
        [],
    );
    let surface = object(
        ["name", "availability", "grabbit_availability", "source_url", "verified_on"].map(|name| (name, text())),
        [],
    );
    let surfaces = object([("provider", text()), ("comparison_url", text()), ("surfaces", list(surface))], []);
    let source = object(
        ["label", "url", "locator", "claim_group", "verified_on", "note", "evidence_status"].map(|name| (name, text())),
        [],
    );
    object(
        [
            ("schema_version", text()),
            ("last_verified", text()),
            ("features", list(text())),
            ("providers", list(provider())),
            ("decision_pages", list(page)),
            ("agent_surfaces", list(surfaces)),
            ("notes", text()),
        ],
        [("detail", text()), ("detail_hint", text()), ("sources", list(source))],
    )
}

fn provider() -> RefOr<Schema> {
    let texts = [
        "name",
        "plan",
        "per_grab",
        "billing",
        "billing_unit",
        "quota_note",
        "included",
        "unused_credits",
        "agent_install",
        "source_url",
        "verified_on",
        "evidence_status",
    ];
    let evidence = || object(["source_url", "locator", "note", "status"].map(|name| (name, text())), []);
    let nothing: RefOr<Schema> = ObjectBuilder::new().schema_type(Type::Null).into();
    let maybe_evidence = OneOfBuilder::new().item(evidence()).item(nothing).into();
    let further = [
        ("features_supported", list(text())),
        ("pricing_evidence", evidence()),
        ("capture_evidence", evidence()),
        ("agent_evidence", evidence()),
        ("quota_evidence", maybe_evidence),
        ("is_grabbit", flag()),
    ];
    object(texts.map(|name| (name, text())).into_iter().chain(further), [])
}

/// An object with required and optional members. Unknown members are allowed.
fn object(
    required: impl IntoIterator<Item = (&'static str, RefOr<Schema>)>,
    optional: impl IntoIterator<Item = (&'static str, RefOr<Schema>)>,
) -> RefOr<Schema> {
    let object = required
        .into_iter()
        .fold(ObjectBuilder::new(), |object, (name, schema)| object.property(name, schema).required(name));
    optional.into_iter().fold(object, |object, (name, schema)| object.property(name, schema)).into()
}

fn list(items: RefOr<Schema>) -> RefOr<Schema> {
    ArrayBuilder::new().items(items).into()
}

fn text() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).into()
}

fn number() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Number).into()
}

fn integer() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Integer).into()
}

fn flag() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Boolean).into()
}
