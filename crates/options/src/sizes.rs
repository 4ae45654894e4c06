//! Sizes as text: `390x844, 768x1024`.

use crate::{Member, Object, Value};

/// Reads sizes that are separated by commas, spaces or lines. `None` if one of them is not a width and a height.
pub(crate) fn parse(members: &[Member], text: &str) -> Option<Vec<Object>> {
    let sizes = text.split([',', ';', ' ', '\n', '\r', '\t']).filter(|size| !size.is_empty());
    sizes.map(|size| read(members, size)).collect()
}

fn read(members: &[Member], size: &str) -> Option<Object> {
    let parts: Vec<&str> = size.split(['x', 'X', '×']).collect();
    if parts.len() != members.len() {
        return None;
    }
    let pair = |(member, part): (&Member, &str)| Some((member.name.to_owned(), member.kind.parse(part)?));
    members.iter().zip(parts).map(pair).collect()
}

/// Writes what [`parse`] reads.
pub(crate) fn write(members: &[Member], sizes: &[Object]) -> String {
    let size = |size: &Object| {
        let sides = members.iter().filter_map(|member| size.get(member.name)).map(Value::to_string);
        sides.collect::<Vec<_>>().join("x")
    };
    sizes.iter().map(size).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::find;

    #[test]
    fn sizes_are_read_and_written() {
        let kind = find("viewports").unwrap().kind;
        let two = kind.parse("390x844, 768x1024").unwrap();
        assert_eq!(kind.to_text(&two), "390x844, 768x1024");
        for text in ["390x844,768x1024", "390X844\r\n768×1024", " 390x844;768x1024 "] {
            assert_eq!(kind.parse(text).as_ref(), Some(&two), "{text}");
        }
        for text in ["390", "390x", "390x844x1", "wide", "390*844", "390 x 844"] {
            assert_eq!(kind.parse(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_have_the_bounds_of_the_window_and_a_maximum_number() {
        let option = find("viewports").unwrap();
        let check = |text: &str| option.check(&option.kind.parse(text).unwrap()).map_err(|problem| problem.allowed);
        for text in ["", "320x240", "1920x1080", &["390x844"; 6].join(",")] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        let allowed = "an array of at most 6 objects, each with `width` (an integer from 320 to 1920), `height` (an integer \
                       from 240 to 1080)";
        for text in ["319x240", "320x239", "1921x800", "800x1081", "390x844,0x0", &["390x844"; 7].join(",")] {
            assert_eq!(check(text), Err(allowed.to_owned()), "{text}");
        }
    }
}
