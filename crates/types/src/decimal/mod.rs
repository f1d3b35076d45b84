//! DECIMAL: exact decimal numbers of up to 81 digits (65 once stored), at most 30 of them fractional.

/// An exact decimal number. Equality and hash ignore trailing zeros of the fraction.
#[derive(Clone, Debug)]
pub struct Decimal(Repr);

/// Small values stay inline; 24 bytes in all.
#[derive(Clone, Debug)]
enum Repr {
    /// Two's complement of the unscaled number, low word first.
    Small {
        bits: [u64; 2],
        scale: u8,
    },
    Wide(Box<Wide>),
}

/// A number whose unscaled magnitude does not fit an `i128`.
#[derive(Clone, Debug)]
struct Wide {
    negative: bool,
    scale: u8,
    magnitude: [u64; 5],
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

    /// Digits after the point.
    pub fn scale(&self) -> u8 {
        match &self.0 {
            Repr::Small { scale, .. } => *scale,
            Repr::Wide(wide) => wide.scale,
        }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Small { bits: a, scale: s }, Repr::Small { bits: b, scale: t }) => {
                a == b && s == t
            }
            (Repr::Wide(a), Repr::Wide(b)) => {
                a.magnitude == b.magnitude && a.negative == b.negative
            }
            _ => false,
        }
    }
}
