//! Finds the elements in which two captures differ.

use grabd_api::elements::{Element, Matches, elements};
use grabd_domain::monitor::{ElementChange, MAX_ELEMENT_CHANGES};
use serde_json::Value;

/// How far an element may move, and how much its size may change, in CSS pixels.
const MOVE_TOLERANCE: u64 = 4;

/// The named elements that were added or removed, whose name, state or target changed, and that moved, in this order. The files
/// are those of the kind `elements`, of images with this many hundredths of pixels per CSS pixel. `None` if one of them is no such
/// file, or if it was stopped.
pub(super) fn changes(
    before: &str,
    after: &str,
    scale_hundredths: u16,
    is_stopped: &dyn Fn() -> bool,
) -> Option<Vec<ElementChange>> {
    let read = |file: &str| if is_stopped() { None } else { named(file) };
    let (older, newer) = (read(before)?, read(after)?);
    if is_stopped() {
        return None;
    }
    let Matches { pairs, removed, added } = Matches::of(&older, &newer);
    let pairs: Vec<(&Element, &Element)> =
        pairs.iter().filter_map(|(old, new)| older.get(*old).zip(newer.get(*new))).collect();
    let tolerance = MOVE_TOLERANCE * u64::from(scale_hundredths);
    let added = added.iter().filter_map(|at| newer.get(*at)).map(|of| ElementChange::added(&of.role, &of.name));
    let removed = removed.iter().filter_map(|at| older.get(*at)).map(|of| ElementChange::removed(&of.role, &of.name));
    let changed = pairs.iter().filter_map(|(old, new)| changed(old, new));
    let moved = pairs.iter().filter_map(|(old, new)| moved(old, new, tolerance));
    Some(added.chain(removed).chain(changed).chain(moved).take(MAX_ELEMENT_CHANGES).collect())
}

/// The elements that have a name.
fn named(file: &str) -> Option<Vec<Element>> {
    let file: Value = serde_json::from_str(file).ok()?;
    file["elements"].as_array()?;
    let (found, _) = elements(&file);
    Some(found.into_iter().filter(|element| !element.name.trim().is_empty()).collect())
}

/// The change of the name, or of the state or target.
fn changed(old: &Element, new: &Element) -> Option<ElementChange> {
    let with = |before: &str, after: &str| Some(ElementChange::changed(&new.role, &new.name, before, after));
    match (old.name == new.name, old.more == new.more) {
        (true, true) => None,
        (false, true) => with(&old.name, &new.name),
        (true, false) => with(&old.more, &new.more),
        (false, false) => with(&format!("{} {}", old.name, old.more), &format!("{} {}", new.name, new.more)),
    }
}

/// The change of the place or size of an element that is the same otherwise.
fn moved(old: &Element, new: &Element, tolerance_hundredths: u64) -> Option<ElementChange> {
    let mut sides = old.place.iter().zip(new.place);
    let has_moved = sides.any(|(old, new)| old.abs_diff(new).saturating_mul(100) > tolerance_hundredths);
    let is_same = old.name == new.name && old.more == new.more;
    let place = |[x, y, width, height]: [i64; 4]| format!("{x},{y} {width}x{height}");
    (is_same && has_moved).then(|| ElementChange::moved(&new.role, &new.name, &place(old.place), &place(new.place)))
}

#[cfg(test)]
mod tests {
    use grabd_domain::monitor::ElementChangeKind;
    use serde_json::json;

    use super::*;

    fn element(role: &str, name: &str, selector: &str, y: i64) -> Value {
        let place = json!({ "x": 10, "y": y, "width": 80, "height": 30 });
        json!({ "role": role, "name": name, "selector": selector, "box": place })
    }

    fn file(elements: &[Value]) -> String {
        json!({ "image": { "width": 1280, "height": 720 }, "elements": elements }).to_string()
    }

    #[test]
    fn changes_are_distinguished_and_small_moves_do_not_count() {
        let mut unchecked = element("checkbox", "News", "#news", 200);
        unchecked["checked"] = json!(false);
        let mut checked = unchecked.clone();
        checked["checked"] = json!(true);
        let before = file(&[
            element("link", "Home", "#home", 0),
            element("button", "Buy", "#buy", 100),
            unchecked,
            element("link", "Old", "#old", 300),
            element("link", "Near", "#near", 400),
            element("link", "Far", "#far", 500),
            element("generic", "", "#nameless", 600),
        ]);
        let after = file(&[
            element("link", "Home", "#home", 0),
            element("button", "Order", "#buy", 100),
            checked,
            element("button", "Chat", "#chat", 300),
            element("link", "Near", "#near", 404),
            element("link", "Far", "#far", 505),
        ]);
        let expected = [
            ElementChange::added("button", "Chat"),
            ElementChange::removed("link", "Old"),
            ElementChange::changed("button", "Order", "Buy", "Order"),
            ElementChange::changed("checkbox", "News", "checked=false", "checked=true"),
            ElementChange::moved("link", "Far", "10,500 80x30", "10,505 80x30"),
        ];
        let of = |after: &str, scale_hundredths| changes(&before, after, scale_hundredths, &|| false);
        assert_eq!(of(&after, 100).unwrap(), expected);
        assert_eq!(of(&before, 100), Some(Vec::new()));
        assert_eq!(changes(&before, &after, 100, &|| true), None, "stopped");
        let of_two_pixels = of(&after, 200).unwrap();
        assert!(of_two_pixels.iter().all(|change| change.kind != ElementChangeKind::Moved), "{of_two_pixels:?}");
    }

    #[test]
    fn summary_is_bounded_and_files_of_another_kind_are_not_compared() {
        let items = (0..50).map(|at| element("link", &format!("Item {at}"), &format!("#i{at}"), at));
        let many = file(&items.collect::<Vec<_>>());
        let of = |before: &str, after: &str| changes(before, after, 100, &|| false);
        assert_eq!(of(&file(&[]), &many).unwrap().len(), MAX_ELEMENT_CHANGES);
        assert_eq!(of("[]", &many), None);
        assert_eq!(of(&many, "not JSON"), None);
    }
}
