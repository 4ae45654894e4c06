//! The images that steps take.

/// The number of an image that a step took, in the order of the steps: 1 to 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepImageNumber(u8);

impl StepImageNumber {
    /// The most images that steps take.
    pub const MAX: u8 = 5;

    /// `None` unless it is from 1 to 5.
    pub fn new(number: usize) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| (1..=Self::MAX).contains(number)).map(Self)
    }

    /// The number, from 1.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// All numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=Self::MAX).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_numbered_from_1_to_5() {
        for (number, expected) in [(0, None), (1, Some(1)), (5, Some(5)), (6, None), (257, None)] {
            assert_eq!(StepImageNumber::new(number).map(StepImageNumber::get), expected);
        }
        assert_eq!(StepImageNumber::all().count(), 5);
    }
}
