use serde_json::{Value, json};

use super::*;

fn evidence() -> Value {
    json!({"source_url": "https://example.com/", "locator": "", "note": "", "status": "not_verified", "kept": 1})
}

fn provider(name: &str, is_grabbit: bool) -> Value {
    json!({
        "name": name, "plan": "", "per_grab": "", "billing": "", "billing_unit": "", "quota_note": "", "included": "",
        "unused_credits": "", "agent_install": "", "source_url": "https://example.com/", "verified_on": "2026-01-31",
        "evidence_status": "not_verified", "features_supported": ["png"], "pricing_evidence": evidence(),
        "capture_evidence": evidence(), "agent_evidence": evidence(), "quota_evidence": null,
        "is_grabbit": is_grabbit, "kept": {"a": [null, true, -1, 0.5, "x"]}
    })
}

fn decision_page(name: &str) -> Value {
    json!({
        "competitor": name, "url": "https://example.com/", "verdict": "v", "pricing_tiers": [{"name": "t", "kept": 1}],
        "capture_capabilities": ["c"], "best_fit": ["b"], "kept": 1
    })
}

fn agent_surfaces(name: &str) -> Value {
    json!({"provider": name, "comparison_url": "https://example.com/", "kept": 1, "surfaces": [{
        "name": "n", "availability": "a", "grabbit_availability": "g", "source_url": "https://example.com/",
        "verified_on": "2026-01-31", "kept": 1
    }]})
}

fn source(claim_group: &str) -> Value {
    json!({
        "label": "l", "url": "https://example.com/", "locator": "", "claim_group": claim_group,
        "verified_on": "2026-01-31", "note": "", "evidence_status": "not_verified", "kept": 1
    })
}

fn document() -> Value {
    let package = |credits: u32, price_usd: f64| json!({"name": "p", "credits": credits, "price_usd": price_usd, "reset_policy": "", "kept": 1});
    json!({
        "pricing": {
            "per_grab_usd": 0.002, "currency": "USD", "billing_model": "", "free_tier": false, "test_mode": "",
            "annual": {"price_usd": 50.0, "credits_per_year": 25000, "reset_policy": "", "kept": 1},
            "prepaid_packages": [package(25_000, 50.0), package(50_000, 100.0), package(125_000, 250.0)], "kept": 1
        },
        "comparison": {
            "schema_version": "1", "last_verified": "2026-01-31", "features": ["png"], "notes": "", "kept": 1,
            "providers": [
                provider("us", true), provider("provider_a", false), provider("provider_b", false),
                provider("provider_c", false)
            ],
            "decision_pages": [decision_page("provider_a"), decision_page("provider_b"), decision_page("provider_c")],
            "agent_surfaces": [agent_surfaces("us"), agent_surfaces("provider_a"), agent_surfaces("provider_b")],
            "sources": [source("us"), source("provider_a"), source("provider_b:pricing"), source("method")]
        },
        "links": {"docs": "https://example.com/docs"},
        "kept": 1
    })
}

fn packet() -> Packet {
    serde_json::from_value(document()).unwrap()
}

/// Collects all objects of the document as JSON pointers.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.push(at.to_owned());
            members.iter().for_each(|(name, member)| objects(member, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| objects(item, &format!("{at}/{i}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn packet_round_trips_with_all_members() {
    assert_eq!(serde_json::to_value(packet()).unwrap(), document());
    assert_eq!(packet().validate(), Ok(()));
}

#[test]
fn only_members_of_the_contract_are_required() {
    let optional = ["kept", "sources"];
    let mut pointers = Vec::new();
    objects(&document(), "", &mut pointers);
    let inside_extra = |pointer: &str| pointer.contains("/kept") || pointer == "/links";
    let mut required = 0;
    for pointer in pointers.iter().filter(|pointer| !inside_extra(pointer)) {
        let names: Vec<String> = document().pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        for name in names {
            let mut less = document();
            less.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(&name);
            let reading = serde_json::from_value::<Packet>(less);
            assert_eq!(reading.is_ok(), optional.contains(&name.as_str()), "without {pointer}/{name}");
            required += usize::from(reading.is_err());
        }
    }
    assert!(required > 100, "only {required} members were tried");
}

#[test]
fn validate_reports_the_path_of_each_problem() {
    let rows: [(&str, Value, &str); 31] = [
        ("/pricing/per_grab_usd", json!(0.0021), "pricing.per_grab_usd"),
        ("/pricing/currency", json!("EUR"), "pricing.currency"),
        ("/pricing/free_tier", json!(true), "pricing.free_tier"),
        ("/pricing/annual/price_usd", json!(49.99), "pricing.annual.price_usd"),
        ("/pricing/annual/credits_per_year", json!(25_001), "pricing.annual.credits_per_year"),
        ("/pricing/prepaid_packages", json!([]), "pricing.prepaid_packages"),
        ("/pricing/prepaid_packages/0/credits", json!(24_999), "pricing.prepaid_packages"),
        ("/pricing/prepaid_packages/0/price_usd", json!(51), "pricing.prepaid_packages"),
        ("/pricing/prepaid_packages/1/credits", json!(50_001), "pricing.prepaid_packages"),
        ("/pricing/prepaid_packages/1/price_usd", json!(99), "pricing.prepaid_packages"),
        ("/pricing/prepaid_packages/2/credits", json!(0), "pricing.prepaid_packages"),
        ("/pricing/prepaid_packages/2/price_usd", json!(249.5), "pricing.prepaid_packages"),
        ("/comparison/last_verified", json!("31.01.2026"), "comparison.last_verified"),
        ("/comparison/last_verified", json!("2026-02-30"), "comparison.last_verified"),
        ("/comparison/last_verified", json!("+2026-01-31"), "comparison.last_verified"),
        ("/comparison/providers/0/is_grabbit", json!(false), "comparison.providers"),
        ("/comparison/providers/1/is_grabbit", json!(true), "comparison.providers"),
        ("/comparison/providers/1/name", json!("acme"), "comparison.providers"),
        ("/comparison/providers/1/name", json!("provider_b"), "comparison.providers"),
        ("/comparison/providers/0/name", json!("provider_a"), "comparison.providers[0].name"),
        ("/comparison/providers/2/source_url", json!("/docs"), "comparison.providers[2].source_url"),
        ("/comparison/providers/2/verified_on", json!(""), "comparison.providers[2].verified_on"),
        (
            "/comparison/providers/3/agent_evidence/source_url",
            json!("x"),
            "comparison.providers[3].agent_evidence.source_url",
        ),
        ("/comparison/decision_pages/1/competitor", json!("us"), "comparison.decision_pages[1].competitor"),
        ("/comparison/decision_pages/1/url", json!("ftp://example.com"), "comparison.decision_pages[1].url"),
        ("/comparison/agent_surfaces/2/provider", json!("them"), "comparison.agent_surfaces[2].provider"),
        ("/comparison/agent_surfaces/0/comparison_url", json!(""), "comparison.agent_surfaces[0].comparison_url"),
        (
            "/comparison/agent_surfaces/0/surfaces/0/verified_on",
            json!("2026"),
            "comparison.agent_surfaces[0].surfaces[0].verified_on",
        ),
        ("/comparison/sources/3/url", json!("example.com"), "comparison.sources[3].url"),
        ("/comparison/sources/3/verified_on", json!("today"), "comparison.sources[3].verified_on"),
        ("/links/docs", json!("docs"), "links.docs"),
    ];
    for (pointer, value, path) in rows {
        let mut document = document();
        *document.pointer_mut(pointer).unwrap() = value.clone();
        let problems = serde_json::from_value::<Packet>(document).unwrap().validate().unwrap_err();
        assert!(problems.iter().any(|problem| problem.path == path), "{pointer} = {value}: {problems:?}");
    }
}

#[test]
fn problem_display_names_path_constraint_and_value() {
    let mut packet = packet();
    packet.pricing.free_tier = true;
    packet.links.insert("home".into(), "home".into());
    let messages: Vec<String> = packet.validate().unwrap_err().iter().map(Problem::to_string).collect();
    assert_eq!(
        messages,
        [
            "`pricing.free_tier` must be false; it is true",
            "`links.home` must be an absolute http(s) URL; it is \"home\""
        ]
    );
}

#[test]
fn filter_by_provider_keeps_that_competitor_and_the_service() {
    type Names = &'static [&'static str];
    let rows: [(Option<ProviderId>, Names, Names, Names, Names); 4] = [
        (
            None,
            &["us", "provider_a", "provider_b", "provider_c"],
            &["provider_a", "provider_b", "provider_c"],
            &["us", "provider_a", "provider_b"],
            &["us", "provider_a", "provider_b:pricing", "method"],
        ),
        (
            Some(ProviderId::A),
            &["us", "provider_a"],
            &["provider_a"],
            &["us", "provider_a"],
            &["us", "provider_a", "method"],
        ),
        (
            Some(ProviderId::B),
            &["us", "provider_b"],
            &["provider_b"],
            &["us", "provider_b"],
            &["us", "provider_b:pricing", "method"],
        ),
        (Some(ProviderId::C), &["us", "provider_c"], &["provider_c"], &["us"], &["us", "method"]),
    ];
    for (selected, providers, pages, surfaces, sources) in rows {
        let Packet { pricing, comparison, links, .. } = packet().filtered(selected, Detail::Full);
        assert_eq!((&pricing, &links), (&packet().pricing, &packet().links));
        assert!(comparison.providers.iter().map(|entry| &entry.name).eq(providers), "{selected:?}");
        assert!(comparison.decision_pages.iter().map(|page| &page.competitor).eq(pages), "{selected:?}");
        assert!(comparison.agent_surfaces.iter().map(|entry| &entry.provider).eq(surfaces), "{selected:?}");
        assert!(comparison.sources.unwrap().iter().map(|source| &source.claim_group).eq(sources), "{selected:?}");
    }
}

#[test]
fn full_detail_only_sets_the_detail_member() {
    let mut expected = document();
    expected["comparison"]["detail"] = json!("full");
    assert_eq!(serde_json::to_value(packet().filtered(None, Detail::Full)).unwrap(), expected);
}

#[test]
fn summary_keeps_required_members_and_drops_the_rest() {
    let summary = packet().filtered(None, Detail::Summary);
    assert!(summary.comparison.detail_hint.as_ref().is_some_and(|hint| hint.contains("detail=full")));
    let mut expected = document();
    let comparison = expected["comparison"].as_object_mut().unwrap();
    comparison.remove("sources");
    comparison.insert("detail".into(), json!("summary"));
    comparison.insert("detail_hint".into(), json!(summary.comparison.detail_hint));
    for name in ["provider_a", "provider_b", "provider_c"].into_iter().enumerate() {
        comparison["decision_pages"][name.0] = json!({
            "competitor": name.1, "url": "https://example.com/", "verdict": "v", "pricing_tiers": [],
            "capture_capabilities": [], "best_fit": []
        });
    }
    for name in ["us", "provider_a", "provider_b"].into_iter().enumerate() {
        comparison["agent_surfaces"][name.0] =
            json!({"provider": name.1, "comparison_url": "https://example.com/", "surfaces": []});
    }
    assert_eq!(serde_json::to_value(summary).unwrap(), expected);
}

#[test]
fn names_round_trip_and_unknown_names_are_bad_requests() {
    for id in ProviderId::ALL {
        assert_eq!(ProviderId::parse(id.as_str()), Ok(id));
    }
    for detail in Detail::ALL {
        assert_eq!(Detail::parse(detail.as_str()), Ok(detail));
        assert_eq!(serde_json::to_value(detail).unwrap(), json!(detail.as_str()));
    }
    let fault = ProviderId::parse("acme").unwrap_err().to_string();
    assert_eq!(fault, "`provider` must be one of \"provider_a\", \"provider_b\", \"provider_c\"; got \"acme\".");
    let fault = Detail::parse("Full").unwrap_err().to_string();
    assert_eq!(fault, "`detail` must be one of \"summary\", \"full\"; got \"Full\".");
}
