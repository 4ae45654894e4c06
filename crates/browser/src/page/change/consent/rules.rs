//! The script and the rules of autoconsent, and what is sent to a frame.

use std::sync::LazyLock;

use serde_json::{Value, json};

const HOST: &str = include_str!("../../scripts/consent.js");
const SCRIPT: &str = include_str!("../../../../assets/autoconsent/autoconsent.playwright.js");
const RULES: &str = include_str!("../../../../assets/autoconsent/compact-rules.json");

/// The scripts for the main frame and for other frames, with their rules and the configuration.
static MAIN: LazyLock<String> = LazyLock::new(|| start_script(RULES));
static FRAME: LazyLock<String> = LazyLock::new(|| start_script(&frame_rules().unwrap_or_default().to_string()));

/// The parsed rules.
static PARSED: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(RULES).unwrap_or_default());

/// The script that starts autoconsent in a frame.
pub(super) fn script(is_main: bool) -> &'static str {
    if is_main { &MAIN } else { &FRAME }
}

/// The selectors of the elements of a vendor's dialog. Empty if they are not known.
pub(super) fn selectors(cmp: &str) -> Vec<&'static str> {
    // A compact rule is an array: its name is the second member, the indices of its selectors are the sixth.
    let rule = PARSED["r"].as_array().and_then(|rules| rules.iter().find(|rule| rule[1] == cmp));
    let indices = rule.and_then(|rule| rule[5].as_array()).into_iter().flatten();
    let string = |index: &Value| PARSED["s"].get(usize::try_from(index.as_u64()?).ok()?)?.as_str();
    indices.filter_map(string).collect()
}

/// The rules for frames: the others would be tried in vain.
fn frame_rules() -> Option<Value> {
    let index = &PARSED["index"];
    let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let range = number(&index["frameRuleRange"][0])?..number(&index["frameRuleRange"][1])?;
    let rules = PARSED["r"].as_array()?.get(range)?;
    let strings = PARSED["s"].as_array()?.get(..number(&index["frameStringEnd"])?)?;
    Some(json!({ "v": PARSED["v"], "s": strings, "r": rules }))
}

fn start_script(rules: &str) -> String {
    let config = json!({
        "enabled": true,
        "autoAction": "optOut",
        // The image is taken later, so nothing flickers.
        "enablePrehide": false,
        "enableCosmeticRules": true,
        "enableGeneratedRules": true,
        "enableHeuristicDetection": false,
        // Clicks buttons that refuse in dialogs of unknown vendors, and none that accept.
        "heuristicMode": "reject",
        "detectRetries": 20,
        "isMainWorld": false,
    });
    format!(
        "if (!globalThis.consent) {{\n{HOST}\n{SCRIPT}\nautoconsentReceiveMessage({{ type: 'initResp', config: {config}, \
         rules: {{ autoconsent: [], compact: {rules} }} }});\n}}\n0"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_parsed_and_frames_get_a_part_of_them() {
        assert!(PARSED["r"].as_array().unwrap().len() > 500);
        let frame = frame_rules().unwrap();
        assert!((1..100).contains(&frame["r"].as_array().unwrap().len()));
        // Every string that a rule of a frame refers to is there.
        let strings = frame["s"].as_array().unwrap().len();
        for rule in frame["r"].as_array().unwrap() {
            for index in rule[5].as_array().unwrap() {
                assert!(index.as_u64().unwrap() < u64::try_from(strings).unwrap());
            }
        }
        assert!(script(true).len() > script(false).len());
    }

    #[test]
    fn selectors_of_a_vendor_are_found() {
        assert_eq!(selectors("quantcast"), ["#qc-cmp2-main,#qc-cmp2-container"]);
        assert!(selectors("no such vendor").is_empty());
    }
}
