//! DECIMAL: exact decimal numbers of up to 81 digits (65 once stored).
//!
//! Arithmetic follows the reference where results show it: a result holds at most nine groups of nine digits, counted
//! separately before and after the point, and drops digits of the fraction first.

mod arithmetic;
mod big;
mod convert;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use big::Limbs;
pub use convert::ParsedDecimal;

/// Most digits of a DECIMAL column.
pub const MAX_PRECISION: u32 = 65;
/// Most digits after the point of a DECIMAL column.
pub const MAX_SCALE: u8 = 30;
/// Digits of an intermediate result.
const MAX_DIGITS: usize = 81;
/// Digits of a group.
const GROUP: usize = 9;

/// An exact decimal number. Equality and hash ignore trailing zeros of the fraction. Never minus zero.
#[derive(Clone)]
pub struct Decimal(Repr);

/// Small values are stored inline; 24 bytes in total.
#[derive(Clone)]
enum Repr {
    /// Two's complement of the unscaled number, low word first.
    Small {
        bits: [u64; 2],
        scale: u8,
    },
    Wide(Box<Wide>),
}

/// A number whose unscaled magnitude does not fit an `i128`.
#[derive(Clone)]
struct Wide {
    negative: bool,
    scale: u8,
    magnitude: [u64; 5],
}

/// Unpacked form for the wide path.
struct Parts {
    negative: bool,
    scale: usize,
    magnitude: Limbs,
}

impl Decimal {
    /// Zero without a fraction.
    pub const ZERO: Decimal = Decimal(Repr::Small { bits: [0, 0], scale: 0 });

    /// Exact.
    pub const fn from_i64(number: i64) -> Decimal {
        Decimal::from_i128(number as i128, 0)
    }

    /// Exact.
    pub const fn from_u64(number: u64) -> Decimal {
        Decimal::from_i128(number as i128, 0)
    }

    /// `unscaled / 10^scale`.
    pub const fn from_i128(unscaled: i128, scale: u8) -> Decimal {
        Decimal(Repr::Small { bits: [unscaled as u64, (unscaled >> 64) as u64], scale })
    }

    /// The largest value of `DECIMAL(precision, scale)`, or its negation.
    pub fn largest(precision: u32, scale: u8, negative: bool) -> Decimal {
        let digits = (precision as usize).min(MAX_DIGITS);
        let magnitude = big::sub(big::power_of_ten(digits), &big::from_u128(1));
        Decimal::from_parts(negative, magnitude, scale as usize)
    }

    /// Digits after the point.
    pub fn scale(&self) -> u8 {
        match &self.0 {
            Repr::Small { scale, .. } => *scale,
            Repr::Wide(wide) => wide.scale,
        }
    }

    /// Digits of the number, at least 1 and at least the scale.
    pub fn precision(&self) -> u32 {
        (big::digits(&self.parts().magnitude) as u32).max(u32::from(self.scale())).max(1)
    }

    /// Digits before the point, 0 below one.
    pub fn integer_digits(&self) -> u32 {
        (big::digits(&self.parts().magnitude) as u32).saturating_sub(u32::from(self.scale()))
    }

    /// The unscaled number and the scale, when it fits.
    pub fn as_i128(&self) -> Option<(i128, u8)> {
        match &self.0 {
            Repr::Small { bits, scale } => Some((join(*bits), *scale)),
            Repr::Wide(_) => None,
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        matches!(&self.0, Repr::Small { bits: [0, 0], .. })
    }

    /// Less than zero.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Small { bits, .. } => bits[1] >> 63 == 1,
            Repr::Wide(wide) => wide.negative,
        }
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        if self.is_negative() { -1 } else { i32::from(!self.is_zero()) }
    }

    /// Heap bytes that this value keeps alive.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Small { .. } => 0,
            Repr::Wide(_) => size_of::<Wide>(),
        }
    }

    fn from_parts(negative: bool, magnitude: Limbs, scale: usize) -> Decimal {
        let scale = scale as u8;
        if let Some(small) = big::to_u128(&magnitude).and_then(|m| i128::try_from(m).ok()) {
            return Decimal::from_i128(if negative { -small } else { small }, scale);
        }
        let mut kept = [0; 5];
        kept.copy_from_slice(&magnitude[..5]);
        Decimal(Repr::Wide(Box::new(Wide { negative, scale, magnitude: kept })))
    }

    fn parts(&self) -> Parts {
        match &self.0 {
            Repr::Small { bits, scale } => {
                let number = join(*bits);
                Parts {
                    negative: number < 0,
                    scale: *scale as usize,
                    magnitude: big::from_u128(number.unsigned_abs()),
                }
            }
            Repr::Wide(wide) => {
                let mut magnitude = big::ZERO;
                magnitude[..5].copy_from_slice(&wide.magnitude);
                Parts { negative: wide.negative, scale: wide.scale as usize, magnitude }
            }
        }
    }
}

fn join(bits: [u64; 2]) -> i128 {
    (bits[1] as i128) << 64 | bits[0] as i128
}

/// `number * 10^power` if it fits.
fn scale_up(number: i128, power: u8) -> Option<i128> {
    if power > 38 {
        return if number == 0 { Some(0) } else { None };
    }
    number.checked_mul(10i128.checked_pow(u32::from(power))?)
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Some((a, s)), Some((b, t))) = (self.as_i128(), other.as_i128()) {
            if s == t {
                return a.cmp(&b);
            }
            let (left, right) =
                (scale_up(a, t.saturating_sub(s)), scale_up(b, s.saturating_sub(t)));
            if let (Some(left), Some(right)) = (left, right) {
                return left.cmp(&right);
            }
        }
        let (a, b) = (self.parts(), other.parts());
        let scale = a.scale.max(b.scale);
        let left = big::mul_power(&a.magnitude, scale - a.scale);
        let right = big::mul_power(&b.magnitude, scale - b.scale);
        match (a.negative, b.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => big::compare(&left, &right),
            (true, true) => big::compare(&right, &left),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let plain = self.without_trailing_zeros();
        plain.scale().hash(state);
        match &plain.0 {
            Repr::Small { bits, .. } => bits.hash(state),
            Repr::Wide(wide) => (wide.negative, wide.magnitude).hash(state),
        }
    }
}

impl Default for Decimal {
    fn default() -> Self {
        Decimal::ZERO
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        Decimal::from_i64(number)
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Self {
        Decimal::from_u64(number)
    }
}
