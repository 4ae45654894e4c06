//! The elements of a page, from the file `elements`, and which of those of two captures are the same.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use serde_json::Value;

/// An element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Its role, such as `button`.
    pub role: String,
    /// Its name. Empty if it has none.
    pub name: String,
    /// A CSS selector that matches this element only.
    pub selector: Option<String>,
    /// Left edge, top edge, width and height in pixels of the image.
    pub place: [i64; 4],
    /// The other members, such as `url` and `checked`, as `name=value` with values in JSON.
    pub more: String,
    /// What is in front of it, as JSON. It is not part of the element, so that it is not compared.
    pub covered_by: Option<String>,
}

impl Element {
    /// Reads a member of the array `elements`.
    fn read(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let side = |name: &str| value["box"][name].as_f64().map_or(0, |pixels| pixels.round() as i64);
        let others = value.as_object().into_iter().flatten();
        let others =
            others.filter(|(name, _)| !["role", "name", "selector", "box", "covered_by"].contains(&name.as_str()));
        let more: Vec<String> = others.map(|(name, value)| format!("{name}={value}")).collect();
        Self {
            role: text("role").unwrap_or_default(),
            name: text("name").unwrap_or_default(),
            selector: text("selector"),
            place: [side("x"), side("y"), side("width"), side("height")],
            more: more.join(" "),
            covered_by: Some(&value["covered_by"]).filter(|front| !front.is_null()).map(Value::to_string),
        }
    }

    /// What it is and where: on one line.
    pub fn line(&self) -> String {
        let [x, y, width, height] = self.place;
        let mut line = format!("{} {} {x},{y} {width}x{height}", self.role, quoted(&self.name));
        if !self.more.is_empty() {
            line.push(' ');
            line.push_str(&self.more);
        }
        if let Some(front) = &self.covered_by {
            line.push_str(" covered_by=");
            line.push_str(front);
        }
        line
    }
}

/// The elements of the file, and the width and height of its image.
pub fn elements(file: &Value) -> (Vec<Element>, [i64; 2]) {
    let found = file["elements"].as_array().into_iter().flatten().map(Element::read).collect();
    (found, ["width", "height"].map(|side| file["image"][side].as_i64().unwrap_or(0)))
}

/// A text as JSON, so that it stays on its line.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Which elements of two captures are the same: by their positions in the lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Elements of both, in the order of the newer capture.
    pub pairs: Vec<(usize, usize)>,
    /// Elements of the older capture only.
    pub removed: Vec<usize>,
    /// Elements of the newer capture only.
    pub added: Vec<usize>,
}

impl Matches {
    /// Finds the same elements: first those that are alike in everything but their place, then those that are elsewhere in the
    /// document, and last those whose words changed.
    pub fn of(older: &[Element], newer: &[Element]) -> Self {
        let mut found =
            Self { pairs: Vec::new(), removed: (0..older.len()).collect(), added: (0..newer.len()).collect() };
        found.pair_by(older, newer, |of| Some((&of.role, &of.name, &of.selector, &of.more)));
        found.pair_by(older, newer, |of| Some((&of.role, &of.name, &of.more)));
        found.pair_by(older, newer, |of| Some((&of.role, &of.name, &of.selector)));
        found.pair_by(older, newer, |of| Some((&of.role, of.selector.as_ref()?)));
        found.pairs.sort_unstable_by_key(|(_, new)| *new);
        found
    }

    /// Pairs elements that have no pair yet and an equal key, in their order.
    fn pair_by<'a, K: Hash + Eq>(
        &mut self,
        older: &'a [Element],
        newer: &'a [Element],
        key: impl Fn(&'a Element) -> Option<K>,
    ) {
        let mut free: HashMap<K, VecDeque<usize>> = HashMap::new();
        for &old in &self.removed {
            if let Some(key) = key(&older[old]) {
                free.entry(key).or_default().push_back(old);
            }
        }
        let (mut added, mut paired) = (Vec::new(), vec![false; older.len()]);
        for &new in &self.added {
            match key(&newer[new]).and_then(|key| free.get_mut(&key)?.pop_front()) {
                Some(old) => {
                    paired[old] = true;
                    self.pairs.push((old, new));
                }
                None => added.push(new),
            }
        }
        self.added = added;
        self.removed.retain(|old| !paired[*old]);
    }
}
