//! JSON representation of the pricing packet.

use prost_types::value::Kind;
use prost_types::{Struct, Value};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// The pricing packet: the three contract members first, all other members sorted by name.
#[derive(Debug)]
pub(crate) struct PricingPacket<'a>(pub(crate) &'a Struct);

const PACKET_ORDER: [&str; 3] = ["pricing", "comparison", "links"];

impl Serialize for PricingPacket<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = &self.0.fields;
        let first = PACKET_ORDER.iter().filter_map(|name| fields.get_key_value(*name));
        let others = fields.iter().filter(|(name, _)| !PACKET_ORDER.contains(&name.as_str()));
        serializer.collect_map(first.chain(others).map(|(name, value)| (name, JsonValue(value))))
    }
}

struct JsonValue<'a>(&'a Value);

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.kind {
            None | Some(Kind::NullValue(_)) => serializer.serialize_unit(),
            Some(Kind::BoolValue(value)) => serializer.serialize_bool(*value),
            Some(Kind::NumberValue(value)) => number(*value, serializer),
            Some(Kind::StringValue(value)) => serializer.serialize_str(value),
            Some(Kind::ListValue(list)) => serializer.collect_seq(list.values.iter().map(JsonValue)),
            Some(Kind::StructValue(object)) => {
                let mut map = serializer.serialize_map(Some(object.fields.len()))?;
                for (name, value) in &object.fields {
                    map.serialize_entry(name, &JsonValue(value))?;
                }
                map.end()
            }
        }
    }
}

/// `google.protobuf.Struct` has only floating-point numbers; whole numbers are written as integers.
fn number<S: Serializer>(value: f64, serializer: S) -> Result<S::Ok, S::Error> {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < MAX_EXACT {
        return serializer.serialize_i64(value as i64);
    }
    serializer.serialize_f64(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struct_of(fields: &[(&str, Kind)]) -> Struct {
        let fields = fields.iter().map(|(name, kind)| ((*name).to_owned(), Value { kind: Some(kind.clone()) }));
        Struct { fields: fields.collect() }
    }

    #[test]
    fn pricing_packet_is_ordered_and_writes_whole_numbers_as_integers() {
        let list = prost_types::ListValue {
            values: [2.0, 0.002, -3.0, 1e300].map(|number| Value { kind: Some(Kind::NumberValue(number)) }).to_vec(),
        };
        let inner = struct_of(&[("b", Kind::BoolValue(true)), ("a", Kind::NullValue(0)), ("c", Kind::ListValue(list))]);
        let packet = struct_of(&[
            ("links", Kind::StringValue("l".to_owned())),
            ("zone", Kind::NumberValue(25_000.0)),
            ("comparison", Kind::NumberValue(f64::NAN)),
            ("a", Kind::BoolValue(false)),
            ("pricing", Kind::StructValue(inner)),
        ]);
        assert_eq!(
            serde_json::to_string(&PricingPacket(&packet)).unwrap(),
            r#"{"pricing":{"a":null,"b":true,"c":[2,0.002,-3,1e+300]},"comparison":null,"links":"l","a":false,"zone":25000}"#
        );
    }
}
