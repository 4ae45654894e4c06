//! What does not count in a comparison with an earlier image.

use grabd_options::{Object, Rectangle, Value};

/// What does not count in a comparison with an earlier image. It is no option of a capture: monitors have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// Parts of the image, in CSS pixels from its top left corner.
    pub ignored: Vec<Rectangle>,
    /// Changes of connected regions with fewer pixels do not count.
    pub min_region_px: u32,
}

const IGNORED: &str = "ignored";
const MIN_REGION_PX: &str = "min_region_px";

impl Tolerance {
    /// The stored form. `None` if everything counts.
    pub(super) fn to_value(&self) -> Option<Value> {
        let mut members = Object::new();
        if !self.ignored.is_empty() {
            members.insert(IGNORED.to_owned(), Value::Objects(self.ignored.iter().map(members_of).collect()));
        }
        if self.min_region_px > 0 {
            members.insert(MIN_REGION_PX.to_owned(), Value::Integer(self.min_region_px.into()));
        }
        (!members.is_empty()).then_some(Value::Object(members))
    }

    /// Reads the stored form. `None` if it is another one.
    pub(super) fn of_value(value: &Value) -> Option<Self> {
        let Value::Object(members) = value else { return None };
        let ignored = match members.get(IGNORED) {
            Some(Value::Objects(areas)) => areas.iter().map(area_of).collect::<Option<_>>()?,
            Some(_) => return None,
            None => Vec::new(),
        };
        let min_region_px = match members.get(MIN_REGION_PX) {
            Some(Value::Integer(pixels)) => u32::try_from(*pixels).ok()?,
            Some(_) => return None,
            None => 0,
        };
        Some(Self { ignored, min_region_px })
    }
}

fn members_of(Rectangle { x, y, width, height }: &Rectangle) -> Object {
    [("x", x), ("y", y), ("width", width), ("height", height)]
        .into_iter()
        .map(|(name, side)| (name.to_owned(), Value::Integer(*side)))
        .collect()
}

fn area_of(members: &Object) -> Option<Rectangle> {
    let side = |name: &str| match members.get(name) {
        Some(Value::Integer(side)) => Some(*side),
        Some(_) | None => None,
    };
    Some(Rectangle { x: side("x")?, y: side("y")?, width: side("width")?, height: side("height")? })
}
